from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from query_world import span

from comity.core.tracing.query import QueryError, parse, search
from comity.core.tracing.query.ast import Attribute, Scope
from comity.core.tracing.query.builder import attribute, either, every, field, spans, where
from comity.core.tracing.query.values import Duration
from comity.core.tracing.span import Kind, Status


def text(*conditions):
    return str(spans(*conditions).build())


@pytest.mark.parametrize(
    ("condition", "written"),
    [
        (where("span.insight.type", "=", "decision"), 'span.insight.type = "decision"'),
        (where("span.n", ">=", 3), "span.n >= 3"),
        (where("span.f", "<", 0.5), "span.f < 0.5"),
        (where("span.b", "!=", True), "span.b != true"),
        (where("span.x", "=", None), "span.x = nil"),
        (where("status", "=", Status.ERROR), "status = error"),
        (where("kind", "!=", Kind.CLIENT), "kind != client"),
        (where("duration", ">", timedelta(seconds=1.5)), "duration > 1.5s"),
        (where("duration", ">", Duration(5)), "duration > 5ns"),
        (where("span.x", "=", ["a", "b"]), 'span.x = "a" || span.x = "b"'),
        (where("span.x", "!=", ("a", "b")), 'span.x != "a" && span.x != "b"'),
        (where("span.x", "=~", "a|b"), 'span.x =~ "a|b"'),
        (where(attribute("odd name"), "=", 1), 'span."odd name" = 1'),
        (where(attribute("x", Scope.RESOURCE), "=", 1), "resource.x = 1"),
        (every(where(".a", "=", 1), either(where(".b", "=", 2), where(".c", "=", 3))), ".a = 1 && (.b = 2 || .c = 3)"),
    ],
)
def test_a_condition_is_written_as_it_was_meant(condition, written):
    assert text(condition) == f"{{ {written} }}"


def test_a_search_is_built_step_by_step():
    built = (
        spans(where("span.a", "=", 1), where("span.b", "=", 2))
        .select("span.c", "name")
        .group_by("span.d")
        .count(">", 2)
        .most_recent()
    )
    assert str(built.build()) == (
        "{ span.a = 1 && span.b = 2 } | select(span.c, name) | by(span.d) | count() > 2 with(most_recent=true)"
    )
    assert text() == "{ true }"


VALUES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(NAMES, VALUES, st.sampled_from(Scope))
def test_no_name_or_value_can_change_what_is_asked(name, value, scope):
    query = spans(where(attribute(name, scope), "=", value)).build()
    assert parse(str(query)) == query
    (stage,) = query.root.stages
    assert stage.expression.left == Attribute(scope, name)
    assert stage.expression.right.value == value


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_value_finds_itself_and_nothing_else(value):
    world = [[span(1, attributes={"x": value}), span(2, 1, attributes={"x": value + "!"})]]
    (match,) = search(spans(where("span.x", "=", value)).build(), world).traces
    assert [m.span.span_id[-1] for m in match.spansets[0].spans] == ["1"]


@pytest.mark.parametrize("written", ["", "insight.type", "span.", "span.a = 1", "span.a }", "1", "name name", " name", "}"])
def test_what_is_not_exactly_one_field_is_refused(written):
    with pytest.raises(QueryError):
        field(written)


@pytest.mark.parametrize(
    ("op", "value"),
    [
        ("==", 1),
        ("&&", True),
        ("=", object()),
        ("=", float("nan")),
        ("=", float("inf")),
        ("=", 2**63),
        ("=", "\ud800"),
        ("=", []),
        (">", [1, 2]),
        ("=", [[1]]),
        ("=", b"x"),
    ],
)
def test_what_is_not_a_comparison_with_a_value_is_refused(op, value):
    with pytest.raises(QueryError):
        where("span.x", op, value)


def test_a_thousand_values_are_one_query_and_endless_nesting_is_refused():
    query = spans(where("span.x", "=", list(range(1000)))).build()
    assert parse(str(query)) == query
    assert (
        len(search(query, [[span(1, attributes={"x": 999}), span(2, 1, attributes={"x": 1000})]]).traces[0].spansets[0].spans)
        == 1
    )
    condition = where("span.x", "=", 1)
    for _ in range(5000):
        condition = either(condition, condition)
    with pytest.raises(QueryError, match="too deep"):
        spans(condition).build()


def test_parts_that_do_not_fit_together_are_refused():
    with pytest.raises(QueryError):
        spans(where("name", "=", 1)).build()
    with pytest.raises(QueryError):
        spans(where("span.x", "=~", "[")).build()
    with pytest.raises(QueryError):
        spans().select()
    with pytest.raises(QueryError):
        either()
    with pytest.raises(QueryError):
        attribute("")
    with pytest.raises(QueryError):
        attribute("\ud800")
