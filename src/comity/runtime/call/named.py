"""Calls that an agent outside makes for a call under way, under ids of its own choice.

Such an id is idempotent within the call it is used in: the same request runs once, another one under it is refused. It stands
below the id of that call, apart from the ids that a node numbers, so that a tree that is run again finds it in the store.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from comity.core.call.limits import ID_CHARS_MAX
from comity.core.envelope.envelope import Reply, Request, Status
from comity.core.envelope.request_id import below, chosen_id_problem, chosen_part
from comity.core.journal.records import is_same
from comity.ports import Journal
from comity.runtime.call.replay import again, reused

if TYPE_CHECKING:
    from comity.runtime.call.call import Call
    from comity.runtime.call.draft import Arrival, Draft, Identity
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


def open_named(path: CallPath, journal: Journal, parent: Call, arrival: Arrival, now_ns: int) -> Call | Reply:
    """Make a call under an id that an agent outside chose: once, whatever became of it, and again only if it was refused."""
    request, named = arrival.request, parent.named
    assert named is not None
    before = named[request.request_id]
    if before is None:
        is_again = parent.top.leftovers is not None
        opened = again(path, journal, parent, arrival, now_ns) if is_again else path.enter(arrival, parent, now_ns, None)
        if not isinstance(opened, Reply) or opened.status is not Status.REFUSED:
            named[request.request_id] = request, opened
        return opened
    if is_same(request, before[0]):
        return before[1]
    asked = as_asked(request)
    return path.refuse(asked, reused(asked))


def as_asked(request: Request) -> Request:
    """Return a request as its refusal is recorded: under the id that an agent outside chose, which stays free to be used."""
    chosen = chosen_part(request.request_id)
    return replace(request, request_id=chosen, parent_id=None) if chosen else request
