"""Running a search: which traces a query finds, and what it shows of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Any

from msgspec import Struct

from comity.core.tracing.query import ast
from comity.core.tracing.query.errors import Fault, QueryError
from comity.core.tracing.query.evaluate import Value, absence, field_value
from comity.core.tracing.query.fetch import ABSENT, placed
from comity.core.tracing.query.parse import parse
from comity.core.tracing.query.pipeline import CompiledPipeline, Spanset
from comity.core.tracing.query.trace import Trace
from comity.core.tracing.query.validate import validate
from comity.core.tracing.query.values import groupable
from comity.core.tracing.span import Span, Status

LIMIT_DEFAULT = 20
SPANS_PER_SPANSET_DEFAULT = 3

_OF_TRACE = frozenset({ast.Intrinsic.ROOT_NAME, ast.Intrinsic.ROOT_SERVICE_NAME, ast.Intrinsic.TRACE_DURATION})
# Shown elsewhere in an answer, or the same for the whole trace.
_NOT_SHOWN = frozenset(
    {
        ast.Intrinsic.NAME,
        ast.Intrinsic.DURATION,
        ast.Intrinsic.TRACE_DURATION,
        ast.Intrinsic.ROOT_NAME,
        ast.Intrinsic.ROOT_SERVICE_NAME,
        ast.Intrinsic.TRACE_ID,
        ast.Intrinsic.SPAN_ID,
    }
)


class SpanMatch(Struct, frozen=True, kw_only=True):
    """A span that was found, and the fields the query fetched or selected, by name."""

    span: Span
    attributes: tuple[tuple[str, Any], ...]
    shows_name: bool


class SpansetMatch(Struct, frozen=True, kw_only=True):
    """A spanset that was found: how many spans matched, and the first of them."""

    matched: int
    spans: tuple[SpanMatch, ...]
    attributes: tuple[tuple[str, Any], ...]


class ServiceStats(Struct, frozen=True, kw_only=True):
    """How many spans of a trace one service wrote, and how many of those failed."""

    span_count: int = 0
    error_count: int = 0


class TraceMatch(Struct, frozen=True, kw_only=True):
    """A trace that was found. The root's names are empty if its root is not among its spans."""

    trace_id: str
    root_service_name: str
    root_name: str
    has_root: bool
    start_ns: int
    duration_ns: int
    spansets: tuple[SpansetMatch, ...]
    services: dict[str, ServiceStats]


class SearchResult(Struct, frozen=True, kw_only=True):
    """What a search found, newest trace first, and how much it looked at."""

    traces: tuple[TraceMatch, ...]
    inspected_traces: int
    inspected_spans: int


def matched_spans(result: SearchResult) -> list[Span]:
    """Return the spans a search shows, trace by trace."""
    return [match.span for trace in result.traces for spanset in trace.spansets for match in spanset.spans]


def prepare(query: str | ast.Query) -> ast.Query:
    """Return a query that parses and makes sense, or raise `QueryError`."""
    if isinstance(query, str):
        parsed = parse(query)
        validate(parsed, query)
        return parsed
    validate(query)
    return query


def searchable(query: ast.Query) -> ast.Query:
    """Return the search within a query: a metrics function is left out, and what it would measure is found, as in Tempo."""
    if isinstance(query.root, ast.MetricsOperation):
        raise QueryError("this is a metrics query", fault=Fault.INVALID, expected="a search without metrics functions")
    return ast.Query(query.root.pipeline, query.hints) if isinstance(query.root, ast.MetricsQuery) else query


def search(
    query: str | ast.Query,
    traces: Iterable[Sequence[Span]],
    *,
    start_ns: int | None = None,
    end_ns: int | None = None,
    limit: int = LIMIT_DEFAULT,
    spans_per_spanset: int = SPANS_PER_SPANSET_DEFAULT,
) -> SearchResult:
    """Return the traces a query finds. Each item of `traces` is all spans of one trace.

    A trace is looked at if it overlaps the time range. The search stops at `limit` traces, so the order of `traces` decides
    which are found; the hint `most_recent=true` looks at all of them and keeps the newest. A limit of 0 means no limit.
    """
    prepared = searchable(prepare(query))
    assert not isinstance(prepared.root, ast.MetricsQuery | ast.MetricsOperation)
    pipeline = CompiledPipeline(prepared.root, join=prepared.hint("skip_optimization") is not True)
    shown = _Shown(pipeline)
    lost = {field for field in _OF_TRACE if pipeline.regroups and pipeline.request.loses(field)}
    newest = prepared.hint("most_recent") is True
    found: list[TraceMatch] = []
    inspected_traces = inspected_spans = 0
    for spans in traces:
        if not spans:
            continue
        trace = Trace(spans)
        if (end_ns is not None and trace.start_ns > end_ns) or (start_ns is not None and trace.end_ns < start_ns):
            continue
        inspected_traces += 1
        inspected_spans += len(spans)
        if spansets := pipeline.run(trace):
            found.append(_match(trace, spansets, shown, spans_per_spanset, lost))
            if limit and len(found) >= limit and not newest:
                break
    found.sort(key=lambda match: (-match.start_ns, match.trace_id))
    return SearchResult(
        traces=tuple(found[:limit] if limit else found),
        inspected_traces=inspected_traces,
        inspected_spans=inspected_spans,
    )


class _Shown:
    """What is shown of a span: every field that was selected, and what the query was handed of those it asks for."""

    __slots__ = ("_fields", "_name")

    def __init__(self, pipeline: CompiledPipeline) -> None:
        request = pipeline.request
        reads: dict[str, tuple[ast.Field, Value]] = {}
        for condition in request.conditions:
            for field in placed(condition.field):
                read = absence(field) if condition.op == ABSENT else pipeline.compiler.value_of(field)
                reads.setdefault(str(field), (field, read))
        reads |= {str(field): (field, field_value(field)) for one in request.selected for field in placed(one)}
        self._name = next((read for field, read in reads.values() if _intrinsic(field) is ast.Intrinsic.NAME), None)
        self._fields = sorted(
            (
                (field.name if isinstance(field, ast.Attribute) else text, read)
                for text, (field, read) in reads.items()
                if _intrinsic(field) not in _NOT_SHOWN
            ),
            key=lambda pair: pair[0],
        )

    def of(self, span: Span, trace: Trace) -> SpanMatch:
        values = ((key, groupable(read(span, trace))) for key, read in self._fields)
        return SpanMatch(
            span=span,
            attributes=tuple(pair for pair in values if pair[1] is not None),
            shows_name=self._name is not None and self._name(span, trace) is not None,
        )


def _intrinsic(field: ast.Field) -> ast.Intrinsic | None:
    return field.intrinsic if isinstance(field, ast.IntrinsicField) else None


def _match(
    trace: Trace, spansets: list[Spanset], shown: _Shown, spans_per_spanset: int, lost: Set[ast.Intrinsic]
) -> TraceMatch:
    services: dict[str, ServiceStats] = {}
    for span in trace.spans:
        service = str(span.resource.get("service.name", ""))
        stats = services.get(service, ServiceStats())
        services[service] = ServiceStats(
            span_count=stats.span_count + 1, error_count=stats.error_count + (span.status is Status.ERROR)
        )
    return TraceMatch(
        trace_id=trace.spans[0].trace_id,
        root_service_name="" if ast.Intrinsic.ROOT_SERVICE_NAME in lost else trace.root_service_name,
        root_name="" if ast.Intrinsic.ROOT_NAME in lost else trace.root_name,
        has_root=trace.root is not None and ast.Intrinsic.ROOT_SERVICE_NAME not in lost,
        start_ns=trace.start_ns,
        duration_ns=0 if ast.Intrinsic.TRACE_DURATION in lost else trace.duration_ns,
        spansets=tuple(_spanset_match(trace, spanset, shown, spans_per_spanset) for spanset in spansets),
        services=services,
    )


def _spanset_match(trace: Trace, spanset: Spanset, shown: _Shown, spans_per_spanset: int) -> SpansetMatch:
    kept = spanset.spans[:spans_per_spanset] if spans_per_spanset else spanset.spans
    return SpansetMatch(
        matched=len(spanset.spans),
        spans=tuple(shown.of(span, trace) for span in kept),
        attributes=spanset.attributes,
    )
