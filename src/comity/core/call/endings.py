"""The records that end what did not come to its own end: calls left open, and tools in use when their call ended."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Raw
from msgspec.structs import replace

from comity.core.call.tree import Branch
from comity.core.envelope.envelope import Error, Reply, Request, Status
from comity.core.journal.records import Settled, fingerprint
from comity.core.journal.terms import is_below


def outlined(request: Request) -> Request:
    """Return a request that has ended without what made it long; its fingerprint still tells it from others."""
    return replace(request, body=Raw(b"{}"), message="", context=None, fingerprint=fingerprint(request))


def unknown_outcomes(uses: Iterable[Request], target: str, now_ms: int) -> list[Settled]:
    """Return the ends of the tools a call was using: whether they did what they do is not known, and comes late if ever."""
    error = Error.of("TOOL_OUTCOME_UNKNOWN", f"{target}, which used this tool, has ended")
    return [
        Settled(use, Reply(status=Status.CANCELLED, error=error, request_id=use.request_id, source=use.target), now_ms)
        for use in uses
    ]


def at_and_below(request_ids: Iterable[str], request_id: str) -> list[str]:
    """Return the ids of a call and of everything below it."""
    return [one for one in request_ids if one == request_id or is_below(one, request_id)]


def interrupted(requests: Iterable[Request], now_ms: int) -> tuple[Settled, ...]:
    """Return the ends of calls that an earlier run left open and no node takes up."""
    records = []
    for request in requests:
        if request.deadline_at <= now_ms:
            status, error = Status.TIMEOUT, Error.of("CALL_TIMEOUT", "its node stopped, and its deadline has passed since")
        else:
            status, error = Status.ERROR, Error.of("CALL_INTERRUPTED", "its node stopped before it ended")
        reply = Reply(status=status, error=error, request_id=request.request_id, source=request.target)
        records.append(Settled(request, reply, now_ms))
    return tuple(records)


def end_leftovers(root: Branch, request_id: str, now_ms: int) -> tuple[Settled, ...]:
    """Return the ends of what an earlier run left open at and below a call, which are left open no more."""
    left = root.leftovers or {}
    return interrupted([left.pop(one) for one in at_and_below(left, request_id)], now_ms)
