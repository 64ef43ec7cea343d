"""Spans made short, and strategies for spans, traces and whole queries."""

from __future__ import annotations

from itertools import product
from typing import Any

from hypothesis import strategies as st

from comity.core.tracing.query import ast, search
from comity.core.tracing.query.values import Duration
from comity.core.tracing.span import INT64_MAX, INT64_MIN, Event, Kind, Link, Span, Status


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
#
# What a span or a condition can be is listed once, so that one choice stands for many: choosing is what costs the time.


def one_of_many(things: list[Any]) -> st.SearchStrategy[Any]:
    """One of a list that is too long to be shown, as `st.sampled_from` would show it."""

    def thing(at: int) -> Any:
        return things[at]

    return st.integers(0, len(things) - 1).map(thing)


_HELD = ["a", "b", 1, 2, 2.0, 2.5, True, False, ("a", "b"), (1, 2), ()]
VALUES = st.sampled_from(_HELD)
_NAMES = ["x", "y"]
_MISSING = object()
_BAGS = [
    {name: value for name, value in zip(_NAMES, pair, strict=True) if value is not _MISSING}
    for pair in product([*[_MISSING] * 6, *_HELD], repeat=2)
]
_ATTRIBUTES = one_of_many(_BAGS)
_PARENTS = [st.sampled_from([None, 99, *range(1, number)]) for number in range(13)]
_TOLD = one_of_many(list(product("ab", [Kind.SERVER, Kind.CLIENT], Status, range(4))))
_STARTS_S = st.integers(0, 30)
_COUNTS = st.sampled_from(list(product(range(3), range(2))))
_NAMED = one_of_many(list(product("ab", _BAGS)))


@st.composite
def traces(draw: st.DrawFn, spans_max: int = 6) -> list[Span]:
    """One trace: each span has an earlier one as parent, none, or one that never arrived."""
    made = []
    for number in range(1, draw(st.integers(1, spans_max)) + 1):
        name, kind, status, duration_s = draw(_TOLD)
        start_ns = draw(_STARTS_S) * 10**9
        events, links = draw(_COUNTS)
        made.append(
            span(
                number,
                draw(_PARENTS[number]) if number > 1 else None,
                name=name,
                kind=kind,
                status=status,
                start_ns=start_ns,
                end_ns=start_ns + duration_s * 10**9,
                attributes=draw(_ATTRIBUTES),
                resource=draw(_ATTRIBUTES),
                events=tuple(
                    Event(name=event, time_ns=start_ns, attributes=bag) for event, bag in (draw(_NAMED) for _ in range(events))
                ),
                links=tuple(
                    Link(trace_id="0" * 31 + "1", span_id="0" * 15 + "1", attributes=draw(_ATTRIBUTES)) for _ in range(links)
                ),
            )
        )
    return made


def _compared(ops: list[str], fields: list[ast.Field], constants: list[Any]) -> st.SearchStrategy[ast.Expression]:
    return one_of_many([ast.Binary(op, field, ast.Literal(one)) for op, field, one in product(ops, fields, constants)])


_SCOPED = [ast.Attribute(scope, name) for scope, name in product(ast.Scope, _NAMES)]
_FIELD = st.sampled_from(_SCOPED)
_TESTS = st.one_of(
    _compared(["=", "!="], _SCOPED, ["a", "b", 1, 2, 2.5, True, None]),
    _compared([">", "<="], _SCOPED, ["a", 1, 2.5]),
    _compared(["=~", "!~"], _SCOPED, ["a|b", "a.*", "b"]),
    _compared(["=", "!="], [ast.IntrinsicField("name")], ["a"]),
    _compared(["=", "!="], [ast.IntrinsicField("status")], [Status.ERROR]),
    _compared([">", "<"], [ast.IntrinsicField("duration")], [Duration(10**9)]),
    _compared(["="], [ast.IntrinsicField("rootName")], ["a"]),
    one_of_many([ast.Binary("=", left, right) for left, right in product(_SCOPED, repeat=2)]),
    _FIELD,
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
    st.sampled_from([ast.ScalarFilter(">", ast.Aggregate("count", None), ast.Literal(bound)) for bound in range(3)]),
    st.sampled_from([ast.GroupBy(field) for field in _SCOPED]),
    st.just(ast.Coalesce()),
    st.sampled_from([ast.Select((field,)) for field in _SCOPED]),
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
            st.builds(ast.MetricsAggregate, st.just("count_over_time"), by=st.lists(_FIELD, max_size=2).map(tuple)),
            st.sampled_from([ast.MetricsAggregate("sum_over_time", field) for field in _SCOPED]),
            st.just(ast.MetricsAggregate("rate", by=(ast.IntrinsicField("rootName"),))),
        ),
    ),
)
