"""What Tempo's storage fetches decides some answers; these are the cases that differ from plain logic."""

import pytest
from query_world import found, span

from comity.core.query import parse
from comity.core.query.fetch import decides_alone, plan_fetch
from comity.core.query.normalize import normalize
from comity.core.span import Kind, Status

SPANS = [
    span(1, kind=Kind.CLIENT, status=Status.ERROR, attributes={"a": 1, "f": 3.0}),
    span(2, 1, kind=Kind.CLIENT, status=Status.OK, attributes={"a": 1, "f": 2.5}),
    span(3, 1, kind=Kind.SERVER, status=Status.OK, attributes={"b": True, "f": 3}),
]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        # one conjunction: every field named must satisfy a condition of its own, even one under a !
        ("{ kind = client && !(status = error) }", []),
        ("{ !(status = error) }", []),
        ("{ !(rootName = `x`) }", []),
        ("{ kind = client && (span.a = 1 || span.a = 2) && !(status = error) }", []),
        ("{ kind != server && !(kind = server) }", [1, 2]),
        ("{ !(status = error) } | select(span.a)", []),
        # no conjunction: one satisfied condition is enough
        ("{ kind = client && (span.a = 1 || span.b = true) && !(status = error) }", [2]),
        ("{ kind = client && !(status = error) } | count() > 0", [2]),
        ("{ kind = client && !(status = error) } | by(name)", [2]),
        ("{ kind = client && !(status = error) } || { 1 = 2 }", [2]),
        ("({ kind = client && !(status = error) } | select(name)) || ({ 1 = 2 })", [2]),
        ("{ .a = 1 && !(status = error) }", [2]),
        ("{ !(status = error) || kind = client }", [1, 2]),
        # a condition about the whole trace, or a filter that asks nothing, fetches every span
        ("{ !(status = error) || rootName = `x` }", [2, 3]),
        ("{ !(status = error) } || {}", [1, 2, 3]),
        # the same without alternatives joined
        ("{ kind = client && (span.a = 1 || span.a = 2) && !(status = error) } with(skip_optimization=true)", [2]),
        # a constant that is true fetches nothing by itself
        ("{ true || kind = client }", [1, 2]),
        # a pipeline that begins with an aggregate sees the spans that have what it asks about
        ("avg(span.a) = 1", [1, 2]),
        ("count() = 3", [1, 2, 3]),
        ("by(span.b) | count() = 1", [3]),
        ("{} | by(span.b) | count() = 2", [1, 2]),
        # two fields that are both missing are equal, but were not fetched
        ("{ span.none = span.neither }", []),
    ],
)
def test_what_is_fetched_decides_what_can_be_found(query, ids):
    assert found(query, SPANS) == ids


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("{ span.f = 3 }", [3]),
        ("{ span.f = 3.0 }", [1]),
        ("{ span.f >= 2 }", [3]),
        ("{ span.f > 2.4 && span.f < 4 }", [1, 2, 3]),
        ("{ span.f > 2.9 || span.f < 1 }", [1]),
        ("{ span.f = 3 && span.f != nil }", [1, 3]),
        ("{ span.f + 0 = 3 }", [1, 3]),
        ("{ span.f > 1ns }", []),
        ("{ span.f > 1ns && span.f != nil }", [1, 2, 3]),
    ],
)
def test_numbers_are_looked_up_by_their_type_unless_fetched_anyway(query, ids):
    assert found(query, SPANS) == ids


def test_a_request_names_what_is_asked_and_what_is_only_shown():
    pipeline = parse("{ span.a = 1 && !(.b > 2) && span.c = nil && span.d != nil } | select(span.e)").root
    request = plan_fetch(pipeline)
    assert [(str(c.field), c.op, c.literal and c.literal.value) for c in request.conditions] == [
        ("span.a", "=", 1),
        (".b", ">", 2),
        ("span.c", "absent", None),
        ("span.d", "exists", None),
    ]
    assert [str(field) for field in request.selected] == ["span.e"]
    assert request.is_conjunction
    assert not request.requires_every_field  # .b may be on the span or the resource


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        (".a = 1", True),
        (".a = 1 || .b", True),
        ("!(.a = 1)", False),
        (".a = .b", False),
        ("-.a > 1", True),
        ("true && .a", False),
    ],
)
def test_only_negations_constants_and_pairs_of_fields_need_the_fetch_to_be_checked(text, alone):
    (stage,) = parse(f"{{ {text} }}").root.stages
    assert decides_alone(normalize(stage.expression)) is alone
