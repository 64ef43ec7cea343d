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
    running = node.running()
    yield from series(
        "comity_calls_running",
        "gauge",
        "Calls under way by agent.",
        (({"agent": agent}, count) for agent, count in running.items()),
    )
