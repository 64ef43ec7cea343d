"""Where calls stand in a trace: under the span that is current where they are made, and current for the code they run.

Nothing here costs a program anything in which no span is ever current: callers ask `ambient.OTEL in ambient.MODULES` and
`ambient.use.has_begun` first.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from comity.core.envelope.envelope import Request
from comity.core.tracing import trace_context
from comity.core.tracing.trace_context import TraceContext
from comity.ports import ambient
from comity.ports.ambient import parent_span

if TYPE_CHECKING:
    from comity.ports import Ids
    from comity.runtime.call.call import Call
    from comity.runtime.call.draft import Arrival
    from comity.runtime.tracing.recorder import Recorder

Result = TypeVar("Result")


def joined(traceparent: Any, tracestate: Any) -> TraceContext | None:
    """Return the trace that a call from outside belongs to: as its headers say, else that of the current span."""
    return ambient.current() if traceparent is None else trace_context.read(traceparent, tracestate)


def placed(arrival: Arrival, remote: TraceContext, ids: Ids) -> Arrival:
    """Return a root call as part of a trace that began elsewhere."""
    place = {"trace_id": remote.trace_id, "span_id": ids.span_id(), "parent_span_id": remote.span_id}
    return replace(arrival, request=replace(arrival.request, **place))


def hung(arrival: Arrival, above: Request) -> Arrival:
    """Return a call that an agent makes under the span in which the agent makes it."""
    parent_span_id = parent_span(above)
    if parent_span_id == above.span_id:
        return arrival
    return replace(arrival, request=replace(arrival.request, parent_span_id=parent_span_id))


def place_of(recorder: Recorder, call: Call, request: Request) -> TraceContext | None:
    """Return where code stands that does something for a call; what is not recorded is no place.

    A request from a store that is older than traces has no ids of a span.
    """
    is_recorded = not recorder.settings.is_disabled and bool(request.trace_id)
    return recorder.context(request, call.remote) if is_recorded else call.remote


async def inside(recorder: Recorder, call: Call, request: Request, work: Awaitable[Result]) -> Result:
    """Wait for work that has a span of its own, which is current meanwhile."""
    place = place_of(recorder, call, request) if ambient.is_used() else None
    if place is None:
        return await work
    with ambient.standing_at(place):
        return await work
