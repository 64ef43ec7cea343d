"""What the checkout service recorded: traces of its requests, quick until yesterday and slow since."""

from __future__ import annotations

from collections.abc import Iterator

from comity.core.tracing.span import Span

REQUESTS = 40
QUERIES_BEFORE, QUERIES_SINCE = 1, 41
QUERY_MS, OTHER_MS = 15, 170
_MS_NS = 1_000_000


def traces(now_ns: int) -> Iterator[Span]:
    """Yield the spans of requests in the last two hours; in the second, payments are verified one order line at a time."""
    for number in range(REQUESTS):
        queries = QUERIES_BEFORE if number < REQUESTS // 2 else QUERIES_SINCE
        start_ns = now_ns - (REQUESTS - number) * 180_000 * _MS_NS
        yield from _request(number + 1, queries, start_ns)


def _request(number: int, queries: int, start_ns: int) -> Iterator[Span]:
    spent_ms = OTHER_MS + queries * QUERY_MS
    trace_id, resource = f"{number:032x}", {"service.name": "checkout"}

    def span(place: int, name: str, parent: int | None, begin_ms: int, end_ms: int) -> Span:
        return Span(
            trace_id=trace_id,
            span_id=f"{number:08x}{place:08x}",
            parent_id=None if parent is None else f"{number:08x}{parent:08x}",
            name=name,
            start_ns=start_ns + begin_ms * _MS_NS,
            end_ns=start_ns + end_ms * _MS_NS,
            attributes={"db.system": "postgresql"} if name == "db.query" else {},
            resource=resource,
        )

    yield span(1, "POST /checkout", None, 0, spent_ms)
    yield span(2, "payment.verify", 1, OTHER_MS, spent_ms)
    for query in range(queries):
        begin_ms = OTHER_MS + query * QUERY_MS
        yield span(3 + query, "db.query", 2, begin_ms, begin_ms + QUERY_MS)
