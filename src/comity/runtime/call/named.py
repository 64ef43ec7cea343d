"""Calls that an agent outside makes for a call under way, under ids of its own choice.

Such an id is idempotent within the call it is used in: the same request runs once, another one under it is refused. It stands
below the id of that call, apart from the ids that a node numbers, so that a tree that is run again finds it in the store.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from comity.core.call.limits import ID_CHARS_MAX
from comity.core.envelope.envelope import Reply
from comity.core.envelope.request_id import below, chosen_id_problem
from comity.runtime.call.call import Call
from comity.runtime.call.draft import Draft, Identity
from comity.runtime.call.path import CallPath


def named_id_problem(chosen: str, parent: Call) -> str:
    """Return why an agent may not choose this id for a call that it makes for another, or nothing."""
    if problem := chosen_id_problem(chosen):
        return problem
    is_short = len(below(parent.request.request_id, chosen)) <= ID_CHARS_MAX
    return "" if is_short else f"makes an id of more than {ID_CHARS_MAX} characters below the call it belongs to"


def call_named(path: CallPath, parent: Call, draft: Draft, chosen: str, identity: Identity) -> Coroutine[Any, Any, Reply]:
    """Call on behalf of a call under way, once for each chosen id; the reply is there when the coroutine ends."""
    request_id = below(parent.request.request_id, chosen)
    is_repeated = parent.note_named(request_id)
    # It takes no number: a tree that is replayed need not repeat what its earlier run asked twice.
    return path.call_under(parent, draft, request_id, parent.calls_made + parent.asked, identity, is_repeated=is_repeated)
