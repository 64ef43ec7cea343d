"""What is counted of the node itself."""

from __future__ import annotations

from collections.abc import Iterator

from comity.server.metrics import series
from comity.server.state import State


def node_lines(state: State) -> Iterator[str]:
    """Yield the node's part of the metrics."""
    node = state.node
    yield from series("comity_streams_open", "gauge", "Open event streams.", [({}, state.streams.open)])
    yield from series(
        "comity_ready", "gauge", "Whether calls are accepted.", [({}, 0 if node.failure or state.is_draining else 1)]
    )
    yield from series("comity_agents", "gauge", "Registered agents.", [({}, len(node.registry))])
    yield from state.calls.lines()
    running = node.running()
    yield from series(
        "comity_calls_running",
        "gauge",
        "Calls under way by agent.",
        (({"agent": agent}, count) for agent, count in running.items()),
    )
    yield from series(
        "comity_calls_queued",
        "gauge",
        "Calls that wait for a place, by agent.",
        (({"agent": agent}, count) for agent, count in node.queued().items()),
    )
    breakers = sorted(node.breakers().items())
    yield from series(
        "comity_breaker_closed",
        "gauge",
        "Whether calls pass the breaker of a capability that ever failed.",
        (({"agent": agent, "capability": code}, int(state == "closed")) for (agent, code), state in breakers),
    )
    export = node.export
    for name, what, value in (
        ("comity_spans_exported_total", "Spans that were exported.", export.exported),
        ("comity_spans_lost_total", "Spans dropped, refused or not stored.", export.dropped + export.refused + export.unstored),
    ):
        yield from series(name, "counter", what, [({}, value)])
    yield from series("comity_spans_waiting", "gauge", "Spans that wait to be exported.", [({}, export.waiting)])
