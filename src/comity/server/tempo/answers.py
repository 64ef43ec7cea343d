"""Tempo's answers: JSON as its protobuf messages are printed, and protobuf for traces. Not one field more than Tempo has."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from comity.core.tracing.otlp import encode_request, sized
from comity.core.tracing.query import QueryError, Series
from comity.core.tracing.query.errors import Fault
from comity.core.tracing.query.wire import encode_result
from comity.core.tracing.span import Kind, Span, Status, encode_spans


def trace_v1(spans: Sequence[Span]) -> dict[str, Any]:
    """Return a trace as `/api/traces` prints it."""
    return {"batches": _resource_spans(spans)}


def trace_v2(spans: Sequence[Span]) -> dict[str, Any]:
    """Return a trace as `/api/v2/traces` prints it; an unknown trace is an empty one."""
    return {"trace": {"resourceSpans": _resource_spans(spans)} if spans else {}, "metrics": {}}


def _resource_spans(spans: Sequence[Span]) -> Any:
    """Return spans as protobuf's own printer writes them: ids in base64, enumerations by name, zeros left out."""
    batches = encode_spans(spans, base64_ids=True)["resourceSpans"]
    for batch in batches:
        batch["resource"] = _said(batch["resource"])
        for scope in batch["scopeSpans"]:
            scope["scope"] = _said(scope["scope"])
            scope["spans"] = [_span(span) for span in scope["spans"]]
    return batches


def _span(span: dict[str, Any]) -> dict[str, Any]:
    status = span["status"]
    named = {"kind": _KINDS[span["kind"]] if span["kind"] else ""}
    lists = {name: [_said(one) for one in span[name]] for name in ("events", "links")}
    printed = {"status": status | {"code": _STATUSES[status["code"]]} if "code" in status else status}
    return _said(span | named | lists) | printed


def _said(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message without fields that say nothing."""
    return {name: value for name, value in message.items() if value not in ("", [], {})}


_KINDS = tuple(f"SPAN_KIND_{kind.upper()}" for kind in Kind)
_STATUSES = tuple(f"STATUS_CODE_{status.upper()}" for status in Status)


def trace_v1_bytes(spans: Sequence[Span]) -> bytes:
    """Return the message Trace: an export request has its one field under the same number."""
    return encode_request(spans)


def trace_v2_bytes(spans: Sequence[Span]) -> bytes:
    """Return the message TraceByIDResponse. Its trace is present though it be empty: without it Grafana's plugin crashes."""
    return b"\x0a" + sized(encode_request(spans)) + b"\x12\x00"


def instant(many: Iterable[Series]) -> dict[str, Any]:
    """Return one value for each series."""
    return {
        "series": [
            {"labels": [{"key": key, "value": encode_result(value)} for key, value in one.labels], **_value(one.samples[0][1])}
            for one in many
            if one.samples
        ],
        "metrics": {},
    }


def _value(value: float) -> dict[str, Any]:
    if math.isinf(value):
        return {"value": "Infinity" if value > 0 else "-Infinity"}
    return {"value": value} if value else {}


def problem(error: QueryError) -> str:
    """Return what is wrong with a query in one line, as Tempo says it and Grafana shows it."""
    place = f"parse error at line {error.line}, col {error.column}: " if error.fault is Fault.SYNTAX else ""
    return f"invalid TraceQL query: {place}{error.problem}"
