"""Spans made short, and strategies for spans, traces and whole queries."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from comity.core.query import ast, search
from comity.core.query.values import Duration
from comity.core.span import INT64_MAX, INT64_MIN, Event, Kind, Link, Span, Status


def span(span_id: int = 1, parent_id: int | None = None, *, trace_id: int = 1, **fields: Any) -> Span:
    """A span whose ids are small numbers; everything else as given."""
    return Span(
        trace_id=f"{trace_id:032x}",
        span_id=f"{span_id:016x}",
        parent_id=None if parent_id is None else f"{parent_id:016x}",
        **fields,
    )


def found(query: str, spans: list[Span]) -> list[int]:
    """The ids of the spans a search finds in one trace, as numbers, in order."""
    result = search(query, [spans], spans_per_spanset=0)
    return sorted(int(m.span.span_id, 16) for t in result.traces for s in t.spansets for m in s.spans)


def spansets(query: str, spans: list[Span]) -> list[tuple[dict[str, Any], list[int]]]:
    """The spansets a search finds in one trace: their attributes and the ids of their spans."""
    result = search(query, [spans], spans_per_spanset=0)
    return [(dict(s.attributes), [int(m.span.span_id, 16) for m in s.spans]) for t in result.traces for s in t.spansets]


# whole queries, as the parser could have made them

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
LITERALS = st.one_of(
    TEXTS,
    st.booleans(),
    st.none(),
    st.integers(INT64_MIN, INT64_MAX),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(10**18), 10**18).map(Duration),
    st.sampled_from(Status),
    st.sampled_from(Kind),
).map(ast.Literal)
INTRINSIC_FIELDS = st.sampled_from(sorted(ast.INTRINSICS)).map(ast.IntrinsicField)
ATTRIBUTES = st.one_of(
    st.builds(ast.Attribute, st.sampled_from(ast.Scope), TEXTS.filter(bool)),
    st.builds(
        ast.Attribute,
        st.sampled_from([ast.Scope.NONE, ast.Scope.SPAN, ast.Scope.RESOURCE]),
        st.sampled_from(["a", "span.a", "resource.b c", '"', "\\", "5"]),
        st.just(True),
    ),
)
FIELDS = st.one_of(INTRINSIC_FIELDS, ATTRIBUTES)
_OPERATORS = sorted(ast.COMPARISONS | ast.ARITHMETIC | ast.LOGICAL)


def _unary(op: str, operand: ast.Expression) -> ast.Expression:
    # A minus before a number is part of the number, so it never becomes a node.
    is_number = isinstance(operand, ast.Literal) and type(operand.value) in (int, float, Duration)
    return operand if op == "-" and is_number else ast.Unary(op, operand)


EXPRESSIONS = st.recursive(
    st.one_of(LITERALS, FIELDS),
    lambda inner: st.one_of(
        st.builds(_unary, st.sampled_from("-!"), inner),
        st.builds(ast.Binary, st.sampled_from(_OPERATORS), inner, inner),
    ),
    max_leaves=8,
)
FILTERS = st.builds(ast.SpansetFilter, EXPRESSIONS)
SPANSETS = st.recursive(
    FILTERS,
    lambda inner: st.builds(ast.SpansetOperation, st.sampled_from(sorted(ast.SPANSET_OPERATORS)), inner, inner),
    max_leaves=4,
)
AGGREGATES = st.one_of(
    st.just(ast.Aggregate("count", None)),
    st.builds(ast.Aggregate, st.sampled_from(["min", "max", "avg", "sum"]), EXPRESSIONS),
)
BOUNDS = st.one_of(st.integers(INT64_MIN, INT64_MAX), st.floats(allow_nan=False, allow_infinity=False)).map(ast.Literal)
SCALAR_FILTERS = st.builds(ast.ScalarFilter, st.sampled_from(["=", "!=", ">", ">=", "<", "<="]), AGGREGATES, BOUNDS)
STARTS = st.one_of(SPANSETS, SCALAR_FILTERS, st.builds(ast.GroupBy, EXPRESSIONS))
STAGES = st.one_of(STARTS, st.builds(ast.Coalesce), st.builds(ast.Select, st.lists(FIELDS, min_size=1, max_size=3).map(tuple)))
PIPELINES = st.builds(lambda first, rest: ast.Pipeline((first, *rest)), STARTS, st.lists(STAGES, max_size=3))
BY = st.lists(FIELDS, max_size=2).map(tuple)
MEASURES = st.one_of(
    st.builds(ast.MetricsAggregate, st.sampled_from(["rate", "count_over_time"]), by=BY),
    st.builds(ast.MetricsAggregate, st.sampled_from(sorted(ast.OVER_TIME)), FIELDS, by=BY),
    st.builds(
        ast.MetricsAggregate,
        st.just("quantile_over_time"),
        FIELDS,
        st.lists(st.floats(0, 1), min_size=1, max_size=2).map(tuple),
        BY,
    ),
    st.builds(ast.Compare, FILTERS, st.integers(1, 9)),
)
SECOND = st.lists(
    st.one_of(
        st.builds(ast.Rank, st.sampled_from(sorted(ast.RANKINGS)), st.integers(0, 99)),
        st.builds(ast.Threshold, st.sampled_from(["=", "!=", ">", ">=", "<", "<="]), BOUNDS),
    ),
    max_size=2,
).map(tuple)
METRICS = st.recursive(
    st.builds(ast.MetricsQuery, PIPELINES, MEASURES, SECOND),
    lambda inner: st.one_of(
        st.builds(ast.MetricsOperation, st.sampled_from("+-*/"), inner, inner, SECOND),
        st.builds(ast.MetricsOperation, st.sampled_from("+-*/"), inner, BOUNDS, SECOND),
        st.builds(ast.MetricsOperation, st.sampled_from("+-*/"), BOUNDS, inner, SECOND),
    ),
    max_leaves=2,
)
HINTS = st.lists(st.tuples(st.sampled_from(["sample", "most_recent"]), LITERALS), max_size=2).map(tuple)
QUERIES = st.builds(ast.Query, st.one_of(PIPELINES, METRICS), HINTS)


# a small world in which queries often find something

VALUES = st.sampled_from(["a", "b", 1, 2, 2.0, 2.5, True, False, ("a", "b"), (1, 2), ()])
_NAMES = ["x", "y"]
_BAGS = st.dictionaries(st.sampled_from(_NAMES), VALUES, max_size=2)


@st.composite
def traces(draw: st.DrawFn, spans_max: int = 6) -> list[Span]:
    """One trace: each span has an earlier one as parent, none, or one that never arrived."""
    count = draw(st.integers(1, spans_max))
    made = []
    for number in range(1, count + 1):
        parent = draw(st.one_of(st.none(), st.integers(1, max(number - 1, 1)), st.just(99))) if number > 1 else None
        start_ns = draw(st.integers(0, 30)) * 10**9
        made.append(
            span(
                number,
                parent,
                name=draw(st.sampled_from(["a", "b"])),
                kind=draw(st.sampled_from([Kind.SERVER, Kind.CLIENT])),
                status=draw(st.sampled_from(Status)),
                start_ns=start_ns,
                end_ns=start_ns + draw(st.integers(0, 3)) * 10**9,
                attributes=draw(_BAGS),
                resource=draw(_BAGS),
                events=tuple(
                    Event(name=draw(st.sampled_from(["a", "b"])), time_ns=start_ns, attributes=draw(_BAGS))
                    for _ in range(draw(st.integers(0, 2)))
                ),
                links=tuple(
                    Link(trace_id="0" * 31 + "1", span_id="0" * 15 + "1", attributes=draw(_BAGS))
                    for _ in range(draw(st.integers(0, 1)))
                ),
            )
        )
    return made


_SCOPED = st.builds(ast.Attribute, st.sampled_from(ast.Scope), st.sampled_from(_NAMES))
_PLAIN = st.sampled_from(["a", "b", 1, 2, 2.5, True, None]).map(ast.Literal)
_TESTS = st.one_of(
    st.builds(ast.Binary, st.sampled_from(["=", "!="]), _SCOPED, _PLAIN),
    st.builds(ast.Binary, st.sampled_from([">", "<="]), _SCOPED, st.sampled_from(["a", 1, 2.5]).map(ast.Literal)),
    st.builds(ast.Binary, st.sampled_from(["=~", "!~"]), _SCOPED, st.sampled_from(["a|b", "a.*", "b"]).map(ast.Literal)),
    st.builds(ast.Binary, st.sampled_from(["=", "!="]), st.just(ast.IntrinsicField("name")), st.just(ast.Literal("a"))),
    st.builds(
        ast.Binary, st.sampled_from(["=", "!="]), st.just(ast.IntrinsicField("status")), st.just(ast.Literal(Status.ERROR))
    ),
    st.builds(
        ast.Binary, st.sampled_from([">", "<"]), st.just(ast.IntrinsicField("duration")), st.just(ast.Literal(Duration(10**9)))
    ),
    st.builds(ast.Binary, st.just("="), st.just(ast.IntrinsicField("rootName")), st.just(ast.Literal("a"))),
    st.builds(ast.Binary, st.just("="), _SCOPED, _SCOPED),
    _SCOPED,
    st.booleans().map(ast.Literal),
)
CONDITIONS = st.recursive(
    _TESTS,
    lambda inner: st.one_of(
        st.builds(ast.Binary, st.sampled_from(["&&", "||"]), inner, inner),
        st.builds(ast.Unary, st.just("!"), inner),
    ),
    max_leaves=4,
)
_SMALL_SPANSETS = st.recursive(
    st.builds(ast.SpansetFilter, CONDITIONS),
    lambda inner: st.builds(ast.SpansetOperation, st.sampled_from(sorted(ast.SPANSET_OPERATORS)), inner, inner),
    max_leaves=3,
)
_SMALL_STAGES = st.one_of(
    _SMALL_SPANSETS,
    st.builds(ast.ScalarFilter, st.just(">"), st.just(ast.Aggregate("count", None)), st.integers(0, 2).map(ast.Literal)),
    st.builds(ast.GroupBy, _SCOPED),
    st.builds(ast.Coalesce),
    st.builds(ast.Select, st.tuples(_SCOPED)),
)
SMALL_PIPELINES = st.builds(
    lambda first, rest: ast.Pipeline((first, *rest)), _SMALL_SPANSETS, st.lists(_SMALL_STAGES, max_size=2)
)
SEARCHES = st.builds(ast.Query, SMALL_PIPELINES)
MEASURED = st.builds(
    ast.Query,
    st.builds(
        ast.MetricsQuery,
        SMALL_PIPELINES,
        st.one_of(
            st.builds(ast.MetricsAggregate, st.just("count_over_time"), by=st.lists(_SCOPED, max_size=2).map(tuple)),
            st.builds(ast.MetricsAggregate, st.just("sum_over_time"), _SCOPED),
            st.builds(ast.MetricsAggregate, st.just("rate"), by=st.just((ast.IntrinsicField("rootName"),))),
        ),
    ),
)
