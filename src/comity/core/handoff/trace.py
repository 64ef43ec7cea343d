"""The trace context of a handoff. A handoff outlives its process, so the context is part of its request."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from comity.core.envelope.envelope import Request
from comity.core.tracing.trace_context import SAMPLED, TraceContext, read_state

_FLAGS, _STATE = "trace_flags", "tracestate"  # in the metadata of a request whose trace began elsewhere
_FLAGS_MAX: Final = 0xFF


def metadata_of(remote: TraceContext | None) -> dict[str, Any]:
    """Return the metadata that keeps a remote trace context with a request; empty if the request begins its own trace."""
    if remote is None:
        return {}
    return {_FLAGS: remote.flags} | ({_STATE: remote.state} if remote.state else {})


def remote_of(request: Request) -> TraceContext | None:
    """Return the trace context that a request arrived with, or None if it began its own trace."""
    flags = request.metadata.get(_FLAGS)
    if type(flags) is not int or not 0 <= flags <= _FLAGS_MAX:
        return None
    return TraceContext(request.trace_id, request.parent_span_id, flags, read_state(request.metadata.get(_STATE)))


def place_of(request: Request) -> TraceContext:
    """Return the trace context of a handoff, the parent of spans of work done for it."""
    remote = remote_of(request)
    if remote is None:
        return TraceContext(request.trace_id, request.span_id, SAMPLED)
    return TraceContext(request.trace_id, request.span_id, remote.flags, remote.state)


def result_span_id(handoff_id: str, fence: int) -> str:
    """Return the span id of a result, derived from id and fencing token, so that a link to it needs no record."""
    return hashlib.blake2b(f"{handoff_id}\x1f{fence}".encode(), digest_size=8).hexdigest()
