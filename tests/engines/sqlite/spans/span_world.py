"""Insight spans made short, and a world of traces for the tests of the span store."""

from __future__ import annotations

from hypothesis import strategies as st
from query_world import MEASURED, SEARCHES, span, traces

from comity.core.tracing.span import Kind, Span

__all__ = ["MEASURED", "SEARCHES", "insight_span", "span", "worlds"]

SECOND_NS = 10**9


def insight_span(number: int, kind: str = "decision", project: str = "checkout", **attributes: object) -> Span:
    """One insight in a trace of its own."""
    return Span(
        trace_id=f"{number:032x}",
        span_id=f"{number:016x}",
        name=f"insight.{kind}",
        kind=Kind.INTERNAL,
        start_ns=number * SECOND_NS,
        end_ns=number * SECOND_NS,
        attributes={"insight.type": kind, "insight.id": f"insight-{number}", "project.id": project, **attributes},
        resource={"service.name": "agents"},
    )


def numbered(spans: list[Span], number: int) -> list[Span]:
    trace_id = f"{number:032x}"
    return [Span(**{name: getattr(one, name) for name in Span.__struct_fields__} | {"trace_id": trace_id}) for one in spans]


worlds = st.lists(traces(), max_size=4).map(lambda found: [numbered(spans, at) for at, spans in enumerate(found, 1)])
"""Several traces, each with an id of its own."""
