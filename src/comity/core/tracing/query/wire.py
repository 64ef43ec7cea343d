"""Results in the JSON that Tempo's HTTP API answers with: written, so that its clients can read ours, and read."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from comity.core.tracing.query.metrics import Series
from comity.core.tracing.query.search import SearchResult, ServiceStats, SpanMatch, SpansetMatch, TraceMatch
from comity.core.tracing.query.trace import NOT_RECEIVED
from comity.core.tracing.query.values import Duration
from comity.core.tracing.span import Span, SpanError, decode_value, encode_value


def encode_result(value: Any) -> dict[str, Any]:
    """Return a value of a query as an OTLP value: durations, statuses, kinds and nil are text."""
    if value is None:
        return {"stringValue": "nil"}
    if isinstance(value, float) and value.is_integer():
        return {"doubleValue": int(value)}  # as protobuf writes it: 1, not 1.0
    return {"stringValue": str(value)} if isinstance(value, Duration) else encode_value(value)


def encode_search(result: SearchResult) -> dict[str, Any]:
    """Return the answer to a search."""
    return {
        "traces": [_trace(trace) for trace in result.traces],
        "metrics": {"inspectedTraces": result.inspected_traces, "inspectedSpans": str(result.inspected_spans)},
    }


def _trace(trace: TraceMatch) -> dict[str, Any]:
    spansets = [_spanset(spanset) for spanset in trace.spansets]
    given = {
        "rootServiceName": trace.root_service_name if trace.has_root else NOT_RECEIVED,
        "rootTraceName": trace.root_name,
        "durationMs": trace.duration_ns // 10**6,
    }
    return {
        "traceID": trace.trace_id.lstrip("0") or "0",
        **{key: value for key, value in given.items() if value},  # protobuf leaves out what is empty or zero
        "startTimeUnixNano": str(trace.start_ns),
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
    }
    if match.span.duration_ns:
        encoded["durationNanos"] = str(match.span.duration_ns)
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


def decode_search(document: Any) -> SearchResult:
    """Return the answer to a search, or raise `SpanError`. Of a span there is what the answer shows and no more."""
    try:
        metrics = document.get("metrics") or {}
        return SearchResult(
            traces=tuple(_read_trace(trace) for trace in document.get("traces") or ()),
            inspected_traces=int(metrics.get("inspectedTraces", 0)),
            inspected_spans=int(metrics.get("inspectedSpans", 0)),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise SpanError("answer", f"is not the answer to a search: {error!r}") from None


def _read_trace(raw: Any) -> TraceMatch:
    trace_id = raw["traceID"].rjust(32, "0")  # its zeros in front are left out
    service = raw.get("rootServiceName", "")
    stats = raw.get("serviceStats") or {}
    return TraceMatch(
        trace_id=trace_id,
        root_service_name="" if service == NOT_RECEIVED else service,
        root_name=raw.get("rootTraceName", ""),
        has_root=service != NOT_RECEIVED,
        start_ns=int(raw.get("startTimeUnixNano", 0)),
        duration_ns=int(raw.get("durationMs", 0)) * 10**6,
        spansets=tuple(_read_spanset(spanset, trace_id) for spanset in raw.get("spanSets") or ()),
        services={
            name: ServiceStats(span_count=int(one.get("spanCount", 0)), error_count=int(one.get("errorCount", 0)))
            for name, one in stats.items()
        },
    )


def _read_spanset(raw: Any, trace_id: str) -> SpansetMatch:
    return SpansetMatch(
        matched=int(raw.get("matched", 0)),
        spans=tuple(_read_span(span, trace_id) for span in raw.get("spans") or ()),
        attributes=_read_pairs(raw.get("attributes")),
    )


def _read_span(raw: Any, trace_id: str) -> SpanMatch:
    start_ns = int(raw.get("startTimeUnixNano", 0))
    attributes = _read_pairs(raw.get("attributes"))
    span = Span(
        trace_id=trace_id,
        span_id=raw["spanID"].rjust(16, "0"),
        name=raw.get("name", ""),
        start_ns=start_ns,
        end_ns=start_ns + int(raw.get("durationNanos", 0)),
        attributes=dict(attributes),
    )
    return SpanMatch(span=span, attributes=attributes, shows_name="name" in raw)


def decode_series(document: Any) -> tuple[Series, ...]:
    """Return the answer to a metrics query, or raise `SpanError`."""
    try:
        return tuple(
            Series(
                labels=_read_pairs(one.get("labels")),
                samples=tuple((int(s["timestampMs"]), float(s.get("value", 0.0))) for s in one.get("samples") or ()),
            )
            for one in document.get("series") or ()
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise SpanError("answer", f"is not the answer to a metrics query: {error!r}") from None


def _read_pairs(raw: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((pair["key"], decode_value(pair.get("value"))) for pair in raw or ())
