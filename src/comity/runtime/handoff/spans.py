"""The spans of handoffs: one from creation to end, and a child span for the result."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from comity.core.handoff.machine import Handoff, State
from comity.core.handoff.trace import remote_of, result_span_id
from comity.core.tracing.call_spans import HANDOFF_LEGACY, result_span
from comity.core.tracing.span import Link, Span
from comity.core.tracing.telemetry import CallEnd, Handed
from comity.ports import ambient

if TYPE_CHECKING:
    from comity.runtime.tracing.recorder import Recorder

_RESULT_NAMES = tuple(
    (one, name, HANDOFF_LEGACY[name]) for one, name in (("id", "gen_ai.tool.call.id"), ("result", "gen_ai.tool.call.result"))
)
_decode = msgspec.json.Decoder().decode
_BY_A_RECEIVER = (State.COMPLETED, State.FAILED)
_MS_NS = 1_000_000


def handed_of(handoff: Handoff) -> Handed:
    """Return the span fields of a handoff."""
    has_result = handoff.state in _BY_A_RECEIVER and handoff.fence > 0
    span_id = result_span_id(handoff.id, handoff.fence) if has_result else ""
    return Handed(handoff.receiver, handoff.state.value, handoff.attempts, handoff.result_trace_id, span_id)


def record(recorder: Recorder, handoff: Handoff) -> None:
    """Record the spans of a handoff that ended here; for a handoff within a call tree only the result's span."""
    request, reply = handoff.request, handoff.reply
    if recorder.ended is None or reply is None:
        return
    end_ns, handed, remote = handoff.changed_at * _MS_NS, handed_of(handoff), remote_of(request)
    if handoff.settles:
        recorder.ended(CallEnd(request, reply, request.created_at * _MS_NS, end_ns, remote, handed))
    if handed.result_span_id and recorder.settings.samples(request.trace_id, remote):
        taken = next((entry.at_ms for entry in reversed(handoff.history) if entry.kind == State.ACCEPTED), handoff.changed_at)
        end = CallEnd(request, reply, taken * _MS_NS, end_ns, remote, handed)
        recorder.keep(result_span(end, recorder.settings, _source(handoff)))


def _source(handoff: Handoff) -> tuple[Link, ...]:
    """Return a link to the trace that produced the result, if that is another trace and known here."""
    here = ambient.current() if ambient.is_used() else None
    if here is None or here.trace_id != handoff.result_trace_id or here.trace_id == handoff.request.trace_id:
        return ()
    return (Link(trace_id=here.trace_id, span_id=here.span_id, attributes={"link.relationship": "result"}),)


def results_in(spans: Iterable[Span]) -> list[tuple[str, Any]]:
    """Return the handoff ids and results in the spans of a trace, newest first."""
    found = []
    for span in sorted(spans, key=lambda one: -one.end_ns):
        names = [(one, span.attributes.get(name) or span.attributes.get(old)) for one, name, old in _RESULT_NAMES]
        told = {one: value for one, value in names if isinstance(value, str)}
        if span.name.startswith("handoff") and told.keys() == {"id", "result"}:
            with contextlib.suppress(msgspec.MsgspecError):
                found.append((told["id"], _decode(told["result"])))
    return found
