"""Where the running code stands in a trace: Comity's own notion of it, joined with OpenTelemetry's where a program uses that.

OpenTelemetry is never imported here. Where the program has, its current span counts, and what Comity opens becomes its current
span; a program without it pays a look into a dict. See ADR 41.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from comity.core.envelope.envelope import Request
from comity.core.tracing.trace_context import SAMPLED, TraceContext, read_state

OTEL: Final = "opentelemetry.trace"
MODULES: Final = sys.modules
_OTEL_CONTEXT: Final = "opentelemetry.context"

_here: ContextVar[TraceContext | None] = ContextVar("comity_here", default=None)


class _Use:
    """Whether anything in this process ever stood somewhere by Comity's own notion."""

    __slots__ = ("has_begun",)

    def __init__(self) -> None:
        self.has_begun = False


use: Final = _Use()


def is_used() -> bool:
    """Return whether running code can stand in a trace at all; most programs do not care."""
    return OTEL in MODULES or use.has_begun


def current() -> TraceContext | None:
    """Return the span that running code stands in, or None. An OpenTelemetry span comes before one of Comity's."""
    if OTEL in MODULES and (found := _otel_current()) is not None:
        return found
    return _here.get() if use.has_begun else None


def _otel_current() -> TraceContext | None:
    try:
        context = MODULES[OTEL].get_current_span().get_span_context()
        if not context.is_valid:
            return None
        state = read_state(context.trace_state.to_header())
        flags = int(context.trace_flags)
        return TraceContext(f"{context.trace_id:032x}", f"{context.span_id:016x}", flags, state, not context.is_remote)
    except AttributeError:  # it is being imported just now
        return None


def enter(at: TraceContext | None) -> None:
    """Let the rest of this task stand somewhere, apart from where the code that began the task stood."""
    if use.has_begun:
        _here.set(at)
    if OTEL in MODULES:
        _attach(at, is_fresh=True)


@contextmanager
def standing_at(at: TraceContext) -> Iterator[None]:
    """Let what happens inside stand somewhere."""
    use.has_begun = True
    token = _here.set(at)
    attached = _attach(at) if OTEL in MODULES else None
    is_abandoned = False
    try:
        yield
    except GeneratorExit:  # its coroutine is thrown away, perhaps in another context, where nothing can be put back
        is_abandoned = True
        raise
    finally:
        if not is_abandoned:
            if attached is not None:
                MODULES[_OTEL_CONTEXT].detach(attached)
            _here.reset(token)


def _attach(at: TraceContext | None, *, is_fresh: bool = False) -> Any:
    """Make a place OpenTelemetry's current span; `is_fresh` leaves behind everything else that its context holds."""
    try:
        trace, context = MODULES[OTEL], MODULES[_OTEL_CONTEXT]
        below = context.Context() if is_fresh else None
        if at is None:
            return context.attach(context.Context())
        place = trace.SpanContext(
            int(at.trace_id, 16),
            int(at.span_id, 16),
            is_remote=False,
            trace_flags=trace.TraceFlags(at.flags & SAMPLED),
            trace_state=trace.TraceState.from_header([at.state]) if at.state else None,
        )
        return context.attach(trace.set_span_in_context(trace.NonRecordingSpan(place), below))
    except (AttributeError, KeyError):  # it is being imported just now
        return None


def parent_span(above: Request) -> str:
    """Return the span that something a call does hangs under: the current one if it is of the same trace, else the call's."""
    if is_used() and (here := current()) is not None and here.trace_id == above.trace_id:
        return here.span_id
    return above.span_id
