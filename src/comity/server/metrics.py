"""What the server counts, in Prometheus's text format."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from comity.core.envelope.envelope import Status
from comity.core.tracing.telemetry import CallEnd
from comity.core.units import MS_PER_S
from comity.errors import CODES

# Upper bounds in milliseconds of the buckets for how long requests took.
BUCKETS_MS: Final = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000)
UNKNOWN: Final = "(unknown)"  # an agent that the node does not know, a code that an agent made up
MEDIA_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Requests by route and status, how long they took, and what is open."""

    __slots__ = ("_durations", "in_flight", "requests", "streams", "streams_cut")

    def __init__(self) -> None:
        self.requests: dict[tuple[str, int], int] = {}
        self.in_flight = 0
        self.streams = 0
        self.streams_cut = 0
        self._durations: dict[str, list[float]] = {}  # per route: buckets, then how many and their sum in ms

    def answered(self, route: str, status: int, took_ms: float) -> None:
        """Count an answer."""
        key = (route, status)
        self.requests[key] = self.requests.get(key, 0) + 1
        count(self._durations, route, took_ms)

    def lines(self) -> Iterator[str]:
        """Yield the text of what the server itself counts."""
        yield from series(
            "comity_http_requests_total",
            "counter",
            "Answers by route and status.",
            (({"route": route, "status": status}, count) for (route, status), count in sorted(self.requests.items())),
        )
        yield from histogram("comity_http_request_duration_seconds", "How long requests took.", "route", self._durations)
        for name, what, value in (
            ("comity_http_in_flight", "Requests that are being answered.", self.in_flight),
            ("comity_http_streams", "Open event streams.", self.streams),
        ):
            yield from series(name, "gauge", what, [({}, value)])
        yield from series(
            "comity_http_streams_cut_total", "counter", "Streams whose client took nothing.", [({}, self.streams_cut)]
        )


class CallCounts:
    """Calls of a node by agent: how they ended, how long they took, which codes they ended with, tokens and cost of models.

    Only agents that the node knows have a label of their own, so that no client can make labels up.
    """

    __slots__ = ("_agents", "_codes", "_costs", "_durations", "_ends", "_tokens")

    def __init__(self, agents: Container[str]) -> None:
        self._agents = agents
        self._ends: dict[tuple[str, str], int] = {}
        self._codes: dict[tuple[str, str], int] = {}
        self._tokens: dict[tuple[str, str], int] = {}
        self._costs: dict[tuple[str, str], float] = {}
        self._durations: dict[str, list[float]] = {}  # per agent: buckets, then how many and their sum in ms

    def take(self, end: CallEnd) -> None:
        """Count a call that has ended."""
        request, reply = end.request, end.reply
        if end.asked is not None:  # of a model, for the agent that asked
            usage, agent = reply.usage, request.source or ""
            self._tokens[agent, "input"] = self._tokens.get((agent, "input"), 0) + usage.prompt_tokens
            self._tokens[agent, "output"] = self._tokens.get((agent, "output"), 0) + usage.completion_tokens
            if usage.cost is not None:
                key = (agent, usage.cost.currency)
                self._costs[key] = self._costs.get(key, 0.0) + usage.cost.amount
            return
        agent = request.target.partition("/")[0]
        if agent not in self._agents:
            if reply.status is not Status.REFUSED:
                return  # a tool
            agent = UNKNOWN
        key = (agent, reply.status.value)
        self._ends[key] = self._ends.get(key, 0) + 1
        if reply.error is not None:
            code = (agent, reply.error.code if reply.error.code in CODES else UNKNOWN)
            self._codes[code] = self._codes.get(code, 0) + 1
        if reply.status is not Status.REFUSED:
            count(self._durations, agent, (end.end_ns - end.start_ns) / 1e6)

    def lines(self) -> Iterator[str]:
        """Yield the text of what was counted."""
        labelled = (({"agent": agent, "status": status}, count) for (agent, status), count in sorted(self._ends.items()))
        yield from series("comity_calls_total", "counter", "Calls by the agent called and by how they ended.", labelled)
        labelled = (({"agent": agent, "code": code}, count) for (agent, code), count in sorted(self._codes.items()))
        yield from series("comity_call_errors_total", "counter", "Calls that were refused or failed, by code.", labelled)
        labelled = (({"agent": agent, "direction": way}, count) for (agent, way), count in sorted(self._tokens.items()))
        yield from series("comity_model_tokens_total", "counter", "Tokens of models by the agent that asked.", labelled)
        spent = (({"agent": agent, "currency": currency}, amount) for (agent, currency), amount in sorted(self._costs.items()))
        yield from series("comity_model_cost_total", "counter", "Cost of models by the agent that asked.", spent)
        yield from histogram("comity_call_duration_seconds", "How long calls took.", "agent", self._durations)


def count(durations: dict[str, list[float]], name: str, took_ms: float) -> None:
    """Add one duration to the buckets of a name."""
    counts = durations.get(name)
    if counts is None:
        counts = durations[name] = [0.0] * (len(BUCKETS_MS) + 2)
    if (index := bisect_left(BUCKETS_MS, took_ms)) < len(BUCKETS_MS):
        counts[index] += 1
    counts[-2] += 1
    counts[-1] += took_ms


def histogram(name: str, what: str, label: str, durations: Mapping[str, Sequence[float]]) -> Iterator[str]:
    """Yield buckets as Prometheus adds them up."""
    yield from head(name, "histogram", what)
    for one, counts in sorted(durations.items()):
        below = 0.0
        for index, bound in enumerate(BUCKETS_MS):
            below += counts[index]
            yield line(f"{name}_bucket", {label: one, "le": bound / MS_PER_S}, below)
        yield line(f"{name}_bucket", {label: one, "le": "+Inf"}, counts[-2])
        yield line(f"{name}_sum", {label: one}, counts[-1] / MS_PER_S)
        yield line(f"{name}_count", {label: one}, counts[-2])


def series(name: str, kind: str, what: str, values: Iterable[tuple[Mapping[str, Any], float]]) -> Iterator[str]:
    """Yield one metric with its help and its values."""
    yield from head(name, kind, what)
    for labels, value in values:
        yield line(name, labels, value)


def head(name: str, kind: str, what: str) -> Iterator[str]:
    """Yield the two lines that introduce a metric."""
    yield f"# HELP {name} {what}"
    yield f"# TYPE {name} {kind}"


def line(name: str, labels: Mapping[str, Any], value: float) -> str:
    """Return one value of a metric."""
    inside = ",".join(f'{key}="{_escaped(str(said))}"' for key, said in labels.items())
    shown = f"{value:.0f}" if float(value).is_integer() else repr(float(value))
    return f"{name}{{{inside}}} {shown}" if inside else f"{name} {shown}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
