"""What there is to show of a call that ends before its work is done, and the names of what it did not complete.

To show there is what the call told itself, what the calls it made delivered, and what those of them that still run had told.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from comity.core.call.limits import REPLY_BYTES_MAX, WARNINGS_MAX
from comity.core.call.tree import Branch
from comity.core.document.payload import PayloadError, pack
from comity.core.envelope.envelope import Error, Reply, Request, Status

_NAMES_MAX: Final = 10  # in one sentence
_NOTHING_RAN: Final = frozenset({Status.REFUSED, Status.NEEDS_INPUT})


def timed_out(call: Branch) -> Reply:
    """Return the reply to a call whose time is up."""
    allowed = call.request.deadline_at - call.request.created_at
    what = f"{_name(call.request)} did not end within {allowed} ms"
    if names := not_completed(call):
        more = f" and {len(names) - _NAMES_MAX} more" if len(names) > _NAMES_MAX else ""
        what = f"{what}; not completed: {', '.join(names[:_NAMES_MAX])}{more}"
    return Reply(
        status=Status.TIMEOUT,
        error=Error.of("CALL_TIMEOUT", what, facts={"timeout_ms": allowed}),
        message=what,
        data=data_of(call),
        warnings=warnings_of(call),
    )


def not_completed(call: Branch) -> list[str]:
    """Return the calls it made that gave no result, each once, in words."""
    return list(dict.fromkeys(_name(request) for request, _, _ in _incomplete(call)))


def warnings_of(call: Branch) -> tuple[str, ...]:
    """Return a sentence for each call it made that gave no result."""
    return tuple(f"{name} was not completed" for name in not_completed(call)[:WARNINGS_MAX])


def data_of(call: Branch) -> Any:
    """Return what there is to show: what the call told itself or, if it made others, that together with theirs."""
    own = call.shown
    completed = [(request, reply.status, _said(reply)) for request, reply in call.parts or () if reply.ok]
    incomplete = list(_incomplete(call))
    if not completed and not incomplete:
        return own
    progress = {} if own is None else {"progress": own}
    for has_data in (True, False):  # without what the others said, if that is too much for one reply
        lists = {
            "completed": [_entry(*part, has_data=has_data) for part in completed],
            "incomplete": [_entry(*part, has_data=has_data) for part in incomplete],
        }
        if _fits(told := progress | lists):
            return told
    return lists


def _incomplete(call: Branch) -> Iterator[tuple[Request, str, Any]]:
    """Yield the calls it made that gave no result, with how they stand and what they had to show."""
    parts = call.parts or []
    for place, (request, reply) in enumerate(parts, 1):
        is_made_up_for = any(later.ok and _is_same(request, other) for other, later in parts[place:])
        if not reply.ok and reply.status not in _NOTHING_RAN and not is_made_up_for:
            yield request, reply.status, reply.data
    for child in call.waits_for:
        yield child.request, child.state, data_of(child)


def _said(reply: Reply) -> Any:
    """Return a reply's data, or the words of a reply that has none."""
    return reply.data if reply.data is not None or not reply.message else {"message": reply.message}


def _entry(request: Request, status: str, data: Any, *, has_data: bool) -> dict[str, Any]:
    entry = {"agent": request.target, "capability": request.capability, "status": str(status)}
    return entry | {"data": data} if has_data and data is not None else entry


def _is_same(request: Request, other: Request) -> bool:
    """Return whether the second call asked what the first one asked."""
    return (request.target, request.capability, bytes(request.body), request.message) == (
        other.target,
        other.capability,
        bytes(other.body),
        other.message,
    )


def _fits(data: Any) -> bool:
    try:
        pack(data, "data", REPLY_BYTES_MAX)
    except PayloadError:
        return False
    return True


def _name(request: Request) -> str:
    return f"{request.capability} of {request.target}"
