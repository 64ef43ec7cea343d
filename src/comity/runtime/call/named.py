"""Calls that an external agent makes on behalf of a call in progress, under ids that the agent chooses.

Such an id is an idempotency key within the parent call: the same request runs once, a different request under it is refused.
The stored id has the parent's id as prefix, apart from the numbered ids, so a replayed tree finds it in the store.
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
    """Return why an external agent may not choose this id for a call below `parent`; empty if it may."""
    if problem := chosen_id_problem(chosen):
        return problem
    is_short = len(below(parent.request.request_id, chosen)) <= ID_CHARS_MAX
    return "" if is_short else f"makes an id of more than {ID_CHARS_MAX} characters below the call it belongs to"


def call_named(path: CallPath, parent: Call, draft: Draft, chosen: str, identity: Identity) -> Coroutine[Any, Any, Reply]:
    """Return a coroutine that makes a child call of `parent`, once for each chosen id, and returns the reply."""
    request_id = below(parent.request.request_id, chosen)
    is_repeated = parent.note_named(request_id)
    # It takes no number: a replayed tree need not repeat an id that its earlier run used twice.
    return path.call_under(parent, draft, request_id, parent.calls_made + parent.asked, identity, is_repeated=is_repeated)
