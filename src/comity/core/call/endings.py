"""Records that end open calls after a restart, and tool uses that were in progress when their call ended."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Raw
from msgspec.structs import replace

from comity.core.call.tree import Branch
from comity.core.envelope.envelope import Error, Reply, Request, Status
from comity.core.journal.records import Settled, fingerprint
from comity.core.journal.terms import is_below


def outlined(request: Request) -> Request:
    """Return an ended request without its long content; its fingerprint stays."""
    return replace(request, body=Raw(b"{}"), message="", context=None, fingerprint=fingerprint(request))


def unknown_outcomes(uses: Iterable[Request], target: str, now_ms: int) -> list[Settled]:
    """Return the ends of a call's tool uses in progress, as TOOL_OUTCOME_UNKNOWN; a result may still come late."""
    error = Error.of("TOOL_OUTCOME_UNKNOWN", f"{target}, which used this tool, has ended")
    return [
        Settled(use, Reply(status=Status.CANCELLED, error=error, request_id=use.request_id, source=use.target), now_ms)
        for use in uses
    ]


def at_and_below(request_ids: Iterable[str], request_id: str) -> list[str]:
    """Return those of the ids that are a call's or of calls below it."""
    return [one for one in request_ids if one == request_id or is_below(one, request_id)]


def interrupted(requests: Iterable[Request], now_ms: int) -> tuple[Settled, ...]:
    """Return the ends of calls that an earlier run left open and that no node resumes."""
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
    """Remove a call and the calls below it from the root's leftovers, and return their ends."""
    left = root.leftovers or {}
    return interrupted([left.pop(one) for one in at_and_below(left, request_id)], now_ms)
