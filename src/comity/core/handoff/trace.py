"""Where a handoff stands in its trace. It outlives the process that made it, so its place is part of its request."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from comity.core.envelope.envelope import Request
from comity.core.tracing.trace_context import SAMPLED, TraceContext, read_state

_FLAGS, _STATE = "trace_flags", "tracestate"  # in the metadata of a request whose trace began elsewhere
_FLAGS_MAX: Final = 0xFF


def metadata_of(remote: TraceContext | None) -> dict[str, Any]:
    """Return what must be kept with a request of the trace it belongs to; nothing if it begins one of its own."""
    if remote is None:
        return {}
    return {_FLAGS: remote.flags} | ({_STATE: remote.state} if remote.state else {})


def remote_of(request: Request) -> TraceContext | None:
    """Return the trace that a request came with from elsewhere, or None if its trace began with it."""
    flags = request.metadata.get(_FLAGS)
    if type(flags) is not int or not 0 <= flags <= _FLAGS_MAX:
        return None
    return TraceContext(request.trace_id, request.parent_span_id, flags, read_state(request.metadata.get(_STATE)))


def place_of(request: Request) -> TraceContext:
    """Return where a handed-off request stands: what is done for it hangs under its span."""
    remote = remote_of(request)
    if remote is None:
        return TraceContext(request.trace_id, request.span_id, SAMPLED)
    return TraceContext(request.trace_id, request.span_id, remote.flags, remote.state)


def result_span_id(handoff_id: str, fence: int) -> str:
    """Return the id of the span of a result: the same wherever it is asked for, so that a link to it needs no record."""
    return hashlib.blake2b(f"{handoff_id}\x1f{fence}".encode(), digest_size=8).hexdigest()
