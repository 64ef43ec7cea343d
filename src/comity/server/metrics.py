"""What the server counts, in Prometheus's text format."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

# Upper bounds in milliseconds of the buckets for how long requests took.
BUCKETS_MS: Final = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000)
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
        counts = self._durations.get(route)
        if counts is None:
            counts = self._durations[route] = [0.0] * (len(BUCKETS_MS) + 2)
        if (index := bisect_left(BUCKETS_MS, took_ms)) < len(BUCKETS_MS):
            counts[index] += 1
        counts[-2] += 1
        counts[-1] += took_ms

    def lines(self) -> Iterator[str]:
        """Yield the text of what the server itself counts."""
        yield from series(
            "comity_http_requests_total",
            "counter",
            "Answers by route and status.",
            (({"route": route, "status": status}, count) for (route, status), count in sorted(self.requests.items())),
        )
        yield from head("comity_http_request_duration_seconds", "histogram", "How long requests took.")
        for route, counts in sorted(self._durations.items()):
            below = 0.0
            for index, bound in enumerate(BUCKETS_MS):
                below += counts[index]
                yield line("comity_http_request_duration_seconds_bucket", {"route": route, "le": bound / 1000}, below)
            yield line("comity_http_request_duration_seconds_bucket", {"route": route, "le": "+Inf"}, counts[-2])
            yield line("comity_http_request_duration_seconds_sum", {"route": route}, counts[-1] / 1000)
            yield line("comity_http_request_duration_seconds_count", {"route": route}, counts[-2])
        for name, what, value in (
            ("comity_http_in_flight", "Requests that are being answered.", self.in_flight),
            ("comity_http_streams", "Open event streams.", self.streams),
        ):
            yield from series(name, "gauge", what, [({}, value)])
        yield from series(
            "comity_http_streams_cut_total", "counter", "Streams whose client took nothing.", [({}, self.streams_cut)]
        )


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
