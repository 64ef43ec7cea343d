import pytest
from hypothesis import given
from hypothesis import strategies as st
from query_world import MEASURED, SEARCHES, traces

from comity.core.tracing.query import parse, query_range, search
from comity.core.tracing.query.ast import Attribute, IntrinsicField, Scope
from comity.core.tracing.query.conditions import ANYTHING, EXISTS, AllOf, AnyOf, Exists, Leaf, prefilter
from comity.core.tracing.query.evaluate import field_value, lists_of
from comity.core.tracing.query.operators import make_test
from comity.core.tracing.query.trace import Trace
from comity.core.tracing.query.values import Type, type_of
from comity.core.tracing.span import Kind

A, B, C = (Leaf(Attribute(Scope.SPAN, name), "=", (1,)) for name in "abc")


@pytest.mark.parametrize(
    ("query", "trace", "span"),
    [
        ("{}", ANYTHING, ANYTHING),
        ("{ span.a = 1 }", Exists(A), A),
        ("{ span.a = 1 && span.b = 1 }", Exists(AllOf((A, B))), AllOf((A, B))),
        ("{ span.a = 1 || span.b = 1 }", Exists(AnyOf((A, B))), AnyOf((A, B))),
        ("{ span.a = 1 || (span.b = 1 || span.c = 1) }", Exists(AnyOf((A, B, C))), AnyOf((A, B, C))),
        ("{ span.a = 1 && !(rootName = `x`) }", Exists(A), None),
        ("{ span.a = 1 || !(span.b = 1) }", ANYTHING, ANYTHING),
        ("{ span.a = 1 && !(span.b = 1) }", Exists(A), A),
        ("{ span.a = 1 } | { span.b = 1 }", Exists(AllOf((A, B))), AllOf((A, B))),
        ("{ span.a = 1 } | select(span.b)", Exists(A), A),
        ("{ span.a = 1 } | count() > 2", Exists(A), None),
        ("{ span.a = 1 } | by(name)", Exists(A), None),
        ("{ span.a = 1 } && { span.b = 1 }", AllOf((Exists(A), Exists(B))), None),
        ("{ span.a = 1 } >> { span.b = 1 }", AllOf((Exists(A), Exists(B))), None),
        ("{ span.a = 1 } !>> { span.b = 1 }", Exists(B), None),
        ("{ span.a = 1 } && { span.b = 1 } && { span.c = 1 }", AllOf((Exists(A), Exists(B), Exists(C))), None),
        ("{ span.a = 1 } || { span.b = 1 }", AnyOf((Exists(A), Exists(B))), None),
        ("{ span.a = 1 } || {}", ANYTHING, None),
        ("{} >> { span.b = 1 }", Exists(B), None),
        ("({ span.a = 1 } | count() > 1) && ({ span.b = 1 })", AllOf((Exists(A), Exists(B))), None),
        ("{ span.a != 1 }", Exists(Leaf(A.field)), Leaf(A.field)),
        ("{ span.a != nil }", Exists(Leaf(A.field)), Leaf(A.field)),
        ("{ span.a = nil }", ANYTHING, ANYTHING),
        ("{ name != `x` }", ANYTHING, ANYTHING),
        (
            "{ kind = client }",
            Exists(Leaf(IntrinsicField("kind"), "=", (Kind.CLIENT,))),
            Leaf(IntrinsicField("kind"), "=", (Kind.CLIENT,)),
        ),
        ("{ rootName = `x` }", Exists(Leaf(IntrinsicField("rootName"), "=", ("x",))), None),
        ("{ span.a = 1 } | rate() by (rootName)", Exists(A), None),
        ("{ span.a = 1 } | rate() by (name)", Exists(A), A),
        ("{ span.a = 1 } | compare({ span.b = 1 })", Exists(A), None),
        ("({ span.a = 1 } | rate()) / ({ span.b = 1 } | rate())", AnyOf((Exists(A), Exists(B))), AnyOf((A, B))),
        ("({ span.a = 1 } | rate()) / ({} | rate())", ANYTHING, ANYTHING),
        ("({ span.a = 1 } | rate()) * 2", Exists(A), A),
    ],
)
def test_a_query_says_what_can_be_looked_up_first(query, trace, span):
    found = prefilter(parse(query))
    assert found.trace == trace
    assert found.span == span


@pytest.mark.parametrize(
    ("pattern", "op", "values"),
    [
        ("decision|lesson", "=", ("decision", "lesson")),
        ("agent", "=", ("agent",)),
        (r"a\.b", "=", ("a.b",)),
        ("agent-.*", EXISTS, ()),
        ("(?i)agent", EXISTS, ()),
        ("a|b.", EXISTS, ()),
        ("[ab]", EXISTS, ()),
        ("[^a]", EXISTS, ()),
        ("[a-b]", EXISTS, ()),
        (r"\pL", EXISTS, ()),
    ],
)
def test_a_pattern_that_only_lists_texts_is_looked_up_as_those_texts(pattern, op, values):
    found = prefilter(parse(f"{{ span.a =~ `{pattern}` }}"))
    assert found.span == Leaf(A.field, op, values)


# what a store must do at the least


def holds_on_span(condition, span, trace):
    match condition:
        case AllOf(parts):
            return all(holds_on_span(part, span, trace) for part in parts)
        case AnyOf(parts):
            return any(holds_on_span(part, span, trace) for part in parts)
        case Leaf(field, op, values):
            several = lists_of(field)
            seen = several(span, trace) if several else [field_value(field)(span, trace)]
            if op == EXISTS:
                return any(type_of(value) is not Type.NIL for value in seen)
            return any(make_test(op, constant, exact_type=False)(value) for value in seen for constant in values)
    raise AssertionError(condition)


def holds(condition, spans):
    match condition:
        case AllOf(parts):
            return all(holds(part, spans) for part in parts)
        case AnyOf(parts):
            return any(holds(part, spans) for part in parts)
        case Exists(inner):
            trace = Trace(spans)
            return any(holds_on_span(inner, span, trace) for span in spans)
    raise AssertionError(condition)


@given(SEARCHES, st.lists(traces(), max_size=4))
def test_leaving_out_what_the_prefilter_leaves_out_never_changes_a_search(query, world):
    condition = prefilter(query).trace
    kept = [spans for spans in world if holds(condition, spans)]
    assert search(query, kept, limit=0).traces == search(query, world, limit=0).traces


@given(MEASURED, st.lists(traces(), max_size=3))
def test_leaving_out_what_the_prefilter_leaves_out_never_changes_a_metric(query, world):
    found = prefilter(query)
    bounds = {"start_ns": 0, "end_ns": 40 * 10**9, "step_ns": 10 * 10**9}
    everything = query_range(query, world, **bounds)
    assert query_range(query, [spans for spans in world if holds(found.trace, spans)], **bounds) == everything
    if found.span is not None:
        parts = [[s for s in spans if holds_on_span(found.span, s, Trace(spans))] for spans in world]
        assert query_range(query, parts, **bounds) == everything
