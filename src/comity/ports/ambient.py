"""The current span: Comity's own, joined with OpenTelemetry's if the program uses it.

OpenTelemetry is never imported here. If the program has imported it, its current span counts, and spans of Comity become its
current span; a program without it pays one dict lookup. See ADR 41.
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
    """Whether a span of Comity was ever current in this process."""

    __slots__ = ("has_begun",)

    def __init__(self) -> None:
        self.has_begun = False


use: Final = _Use()


def is_used() -> bool:
    """Return whether there can be a current span at all; most programs use none."""
    return OTEL in MODULES or use.has_begun


def current() -> TraceContext | None:
    """Return the current span, or None. A span of OpenTelemetry takes precedence over Comity's."""
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
    """Set the current span for the rest of this task, independent of the code that started the task."""
    if use.has_begun:
        _here.set(at)
    if OTEL in MODULES:
        _attach(at, is_fresh=True)


@contextmanager
def standing_at(at: TraceContext) -> Iterator[None]:
    """Context manager: set the current span for the block."""
    use.has_begun = True
    token = _here.set(at)
    attached = _attach(at) if OTEL in MODULES else None
    is_abandoned = False
    try:
        yield
    except GeneratorExit:  # the coroutine is discarded, perhaps in another contextvars context, where nothing can be reset
        is_abandoned = True
        raise
    finally:
        if not is_abandoned:
            if attached is not None:
                MODULES[_OTEL_CONTEXT].detach(attached)
            _here.reset(token)


def _attach(at: TraceContext | None, *, is_fresh: bool = False) -> Any:
    """Make a span OpenTelemetry's current one; `is_fresh` drops everything else of its context."""
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
    """Return the parent span id for a child of a call: the current span if it is in the same trace, else the call's."""
    if is_used() and (here := current()) is not None and here.trace_id == above.trace_id:
        return here.span_id
    return above.span_id
