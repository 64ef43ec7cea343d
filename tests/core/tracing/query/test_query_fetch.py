"""What Tempo's storage fetches decides some answers; these are the cases that differ from plain logic."""

import pytest
from query_world import found, span, spansets

from comity.core.tracing.query import parse, query_range
from comity.core.tracing.query.fetch import decides_alone, plan_fetch
from comity.core.tracing.query.normalize import normalize
from comity.core.tracing.span import Kind, Status

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
        # two fields that are both missing are not equal
        ("{ span.none = span.neither } && {}", []),
        # a field that must be missing and must not is not found
        ("{ span.a = nil && !(span.a = 7) }", []),
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
        ("{ span.f != 7.0 && span.f != 8.0 && span.a != 7 && span.a != 8 }", [1, 2]),
        ("{ span.f > 1ns }", []),
        ("{ span.f > 1ns && span.f != nil }", [1, 2, 3]),
    ],
)
def test_numbers_are_looked_up_by_their_type_unless_fetched_anyway(query, ids):
    assert found(query, SPANS) == ids


MANY = [
    span(1, kind=Kind.CLIENT, attributes={"n": 1, "m": 2, "tags": ("a", "b"), "who": "x", "by": "x"}, resource={"n": 5}),
    span(2, 1, kind=Kind.SERVER, attributes={"n": 2.0, "flag": True, "tags": ("a",), "who": "y", "by": "x"}, resource={"n": 1}),
    span(3, 1, kind=Kind.SERVER, attributes={"flag": False}, status=Status.ERROR),
]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        # attributes of one place are looked up together: what one condition lets through is let through for all
        ("{ span.n = 1.0 }", []),
        ("{ span.n = 1.0 && span.m > 0 }", [1]),
        ("{ span.n = 1.0 && span.m != nil }", [1]),
        ("{ span.n = 1.0 && resource.n > 0 }", []),
        ("{ span.who = `x` && !(span.by = `z`) }", [1]),
        ("{ span.who = `y` && !(span.by = `z`) }", []),
        ("{ span.n = 1 && span.by = `x` && !(span.who = `z`) }", [1]),
        # a constant on the left is looked up as if it stood on the right
        ("{ 0 < span.n }", []),
        ("{ 0 < span.n && span.n < 9 }", [1]),
        # of an array, what satisfies a condition is seen
        ("{ span.tags != `a` }", [1]),
        ("{ span.tags != `a` && span.tags != nil }", []),
        ("{ span.tags != `a` && span.tags != `c` }", [1]),
        # an || after a field that stands alone is overlooked: both must be found
        ("{ span.flag || kind = server }", [2, 3]),
        ("{ span.flag || kind = client }", []),
        ("{ kind = client || span.flag }", [2]),
        ("{ span.who || kind = server }", []),
        # what Tempo keeps apart reads as the text nil where it is read at all
        ("{ span.http.method != `GET` }", []),
        ("{ span.http.method != `GET` && span.http.method != span.none }", []),
        ("{ span.http.method != `GET` || span.http.method = span.none }", [1, 2, 3]),
        # missing in one place is missing, without a scope
        ("{ .n = nil }", [3]),
        ("{ .m = nil }", [1, 2, 3]),
        ("{ .n != nil }", [1, 2]),
        # relations fetch every span that has a place in the tree
        ("{ kind = client } > { !(status = error) }", [2]),
        ("{ kind = client } && { !(status = error) }", [1]),
        # what is asked for after a select comes too late to decide anything
        ("{ kind = server } | select(span.n) | { status = error }", []),
        ("{ kind = server } | select(span.n) | { span.n = nil }", []),
        ("{ kind = server } | select(span.n) | max(span.n) > 0", []),
        ("{ kind = server } | select(span.n) | { kind = server }", [2, 3]),
    ],
)
def test_what_is_seen_of_a_span_is_what_some_condition_let_through(query, ids):
    assert found(query, MANY) == ids


def test_what_is_kept_apart_is_looked_up_alone():
    spans = [span(1, attributes={"http.status_code": 200, "code": 200, "m": 2})]
    assert found("{ span.code = 200.0 && span.m > 0 }", spans) == [1]
    assert found("{ span.http.status_code = 200.0 && span.m > 0 }", spans) == []


def test_what_is_grouped_by_is_what_was_seen():
    (series,) = query_range(
        "{ span.n = nil || kind = client } | rate() by (span.n)", [MANY[:1]], start_ns=0, end_ns=1, step_ns=1
    )
    assert series.labels == (("span.n", 1),)  # that it was asked to be absent keeps nothing from being read
    (series,) = query_range("{ span.tags = `b` } | rate() by (span.tags)", [MANY], start_ns=0, end_ns=10**9, step_ns=10**9)
    assert series.labels == (("span.tags", "b"),)
    assert [group for group, _ in spansets("{ kind = client } | select(name) | by(span.n)", MANY)] == [{"by(span.n)": None}]


@pytest.mark.parametrize(
    ("query", "counted"),
    [
        ("{ kind = server && !(status = error) }", {"server": 1}),
        ("{ !(kind = client) && resource.n > 0 }", {}),
        ("{ !(status = error) && duration < 1s && duration >= 0s }", {}),
        ("{ kind = server && !(status = error) && status != ok }", {"server": 1}),
    ],
)
def test_metrics_of_fields_that_every_span_has_count_what_was_fetched_unjudged(query, counted):
    rates = query_range(f"{query} | count_over_time() by (kind)", [MANY], start_ns=0, end_ns=10**9, step_ns=10**9)
    assert {str(dict(one.labels)["kind"]): max(value for _, value in one.samples) for one in rates} == counted


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
        (".a = .b", True),
        (".a || .b = 1", False),
        ("-.a > 1", True),
        ("true && .a", False),
    ],
)
def test_only_negations_constants_and_lone_fields_need_the_fetch_to_be_checked(text, alone):
    (stage,) = parse(f"{{ {text} }}").root.stages
    assert decides_alone(normalize(stage.expression)) is alone
