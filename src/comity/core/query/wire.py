"""Results in the JSON that Tempo's HTTP API answers with, so that its clients can read ours."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from comity.core.query.metrics import Series
from comity.core.query.search import SearchResult, SpanMatch, SpansetMatch, TraceMatch
from comity.core.query.trace import NOT_RECEIVED
from comity.core.query.values import Duration
from comity.core.span import encode_value


def encode_result(value: Any) -> dict[str, Any]:
    """Return a value of a query as an OTLP value: durations, statuses, kinds and nil are text."""
    if value is None:
        return {"stringValue": "nil"}
    return {"stringValue": str(value)} if isinstance(value, Duration) else encode_value(value)


def encode_search(result: SearchResult) -> dict[str, Any]:
    """Return the answer to a search."""
    return {
        "traces": [_trace(trace) for trace in result.traces],
        "metrics": {"inspectedTraces": result.inspected_traces, "inspectedSpans": str(result.inspected_spans)},
    }


def _trace(trace: TraceMatch) -> dict[str, Any]:
    spansets = [_spanset(spanset) for spanset in trace.spansets]
    return {
        "traceID": trace.trace_id.lstrip("0") or "0",
        "rootServiceName": trace.root_service_name if trace.has_root else NOT_RECEIVED,
        "rootTraceName": trace.root_name,
        "startTimeUnixNano": str(trace.start_ns),
        "durationMs": trace.duration_ns // 10**6,
        "spanSet": spansets[0],
        "spanSets": spansets,
        "serviceStats": {
            service: {"spanCount": stats.span_count} | ({"errorCount": stats.error_count} if stats.error_count else {})
            for service, stats in sorted(trace.services.items())
        },
    }


def _spanset(spanset: SpansetMatch) -> dict[str, Any]:
    encoded: dict[str, Any] = {"spans": [_span(match) for match in spanset.spans], "matched": spanset.matched}
    if spanset.attributes:
        encoded["attributes"] = _pairs(spanset.attributes)
    return encoded


def _span(match: SpanMatch) -> dict[str, Any]:
    encoded: dict[str, Any] = {
        "spanID": match.span.span_id,
        "startTimeUnixNano": str(match.span.start_ns),
        "durationNanos": str(match.span.duration_ns),
    }
    if match.shows_name:
        encoded["name"] = match.span.name
    if match.attributes:
        encoded["attributes"] = _pairs(match.attributes)
    return encoded


def _pairs(pairs: Iterable[tuple[str, Any]]) -> list[dict[str, Any]]:
    return [{"key": key, "value": encode_result(value)} for key, value in pairs]


def encode_series(series: Iterable[Series]) -> dict[str, Any]:
    """Return the answer to a metrics query. A sample of zero has no value, as protobuf writes it."""
    return {
        "series": [
            {"labels": _pairs(one.labels), "samples": [_sample(time_ms, value) for time_ms, value in one.samples]}
            for one in series
        ],
        "metrics": {},
    }


def _sample(time_ms: int, value: float) -> dict[str, Any]:
    if math.isinf(value):
        return {"timestampMs": str(time_ms), "value": "Infinity" if value > 0 else "-Infinity"}
    return {"timestampMs": str(time_ms)} | ({"value": value} if value else {})
