import sys

import pytest
from query_world import span

from comity.core.tracing.query import QueryError, parse, prefilter, search
from comity.core.tracing.query.search import ServiceStats
from comity.core.tracing.query.values import Duration
from comity.core.tracing.span import Kind, Status

SECOND = 10**9


def trace(number, *, start_s=0, spans=1):
    return [
        span(n, None if n == 1 else 1, trace_id=number, start_ns=start_s * SECOND, end_ns=(start_s + n) * SECOND)
        for n in range(1, spans + 1)
    ]


def ids(result):
    return [int(match.trace_id, 16) for match in result.traces]


def test_traces_come_newest_first():
    assert ids(search("{}", [trace(1, start_s=5), trace(2, start_s=9), trace(3, start_s=7)])) == [2, 3, 1]


def test_the_search_stops_at_its_limit_unless_the_newest_are_wanted():
    traces = [trace(number, start_s=number) for number in range(1, 6)]
    first = search("{}", traces, limit=2)
    assert ids(first) == [2, 1]
    assert (first.inspected_traces, first.inspected_spans) == (2, 2)
    newest = search("{} with(most_recent=true)", traces, limit=2)
    assert ids(newest) == [5, 4]
    assert newest.inspected_traces == 5
    assert len(search("{}", traces, limit=0).traces) == 5


@pytest.mark.parametrize(
    ("start_s", "end_s", "expected"),
    [(0, 9, []), (0, 10, [1]), (11, 11, [1]), (12, 20, [1]), (13, 20, []), (None, 9, []), (13, None, []), (None, None, [1])],
)
def test_a_trace_is_looked_at_if_it_overlaps_the_range(start_s, end_s, expected):
    bounds = {
        "start_ns": None if start_s is None else start_s * SECOND,
        "end_ns": None if end_s is None else end_s * SECOND,
    }
    assert ids(search("{}", [trace(1, start_s=10, spans=2)], **bounds)) == expected


def test_a_trace_without_spans_is_passed_over():
    assert search("{}", [[]]).traces == ()


def test_only_so_many_spans_are_returned_but_all_are_counted():
    (match,) = search("{}", [trace(1, spans=5)], spans_per_spanset=2).traces
    (spanset,) = match.spansets
    assert spanset.matched == 5
    assert [m.span.span_id[-1] for m in spanset.spans] == ["1", "2"]


def test_a_match_tells_about_the_whole_trace():
    spans = [
        span(1, name="root", start_ns=SECOND, end_ns=3 * SECOND, resource={"service.name": "a"}),
        span(2, 1, start_ns=2 * SECOND, end_ns=5 * SECOND, status=Status.ERROR, resource={"service.name": "b"}),
        span(3, 1, start_ns=2 * SECOND, end_ns=2 * SECOND, resource={"service.name": "b"}),
    ]
    (match,) = search("{ status = error }", [spans]).traces
    assert (match.root_name, match.root_service_name, match.has_root) == ("root", "a", True)
    assert (match.start_ns, match.duration_ns) == (SECOND, 4 * SECOND)
    assert match.services == {"a": ServiceStats(span_count=1), "b": ServiceStats(span_count=2, error_count=1)}


def shown(query, one):
    (match,) = search(query, [[one]]).traces
    return match.spansets[0].spans[0]


def test_what_a_query_asks_about_and_selects_is_shown_by_name():
    one = span(1, name="n", kind=Kind.CLIENT, attributes={"a": 1, "b": ("x",)}, resource={"service.name": "s"})
    match = shown(
        '{ span.a = 1 && kind = client && duration < 1s && resource.service.name = "s" } | select(span.b, span.none)', one
    )
    assert match.attributes == (("a", 1), ("b", "x"), ("kind", Kind.CLIENT), ("service.name", "s"))
    assert not match.shows_name
    assert shown("{ name = `n` }", one).shows_name
    assert shown("{} | select(status, nestedSetLeft)", one).attributes == (("nestedSetLeft", 1), ("status", Status.UNSET))


def test_a_value_that_was_not_fetched_is_not_shown_unless_selected():
    one = span(1, kind=Kind.CLIENT, attributes={"f": 2.5})
    query = "{ kind = client && (span.f = 2 || span.f = 9.5 || kind = client) }"
    assert dict(shown(query, one).attributes) == {"kind": Kind.CLIENT}
    assert dict(shown(f"{query} | select(span.f)", one).attributes) == {"kind": Kind.CLIENT, "f": 2.5}


def test_only_what_satisfies_a_condition_is_shown():
    one = span(
        1, name="n", kind=Kind.CLIENT, status=Status.ERROR, attributes={"tags": ("a", "b", "c"), "x": 1}, resource={"x": 2}
    )
    match = shown('{ kind = client || status = ok || name = `other` || span.tags > "a" }', one)
    assert dict(match.attributes) == {"kind": Kind.CLIENT, "tags": ("b", "c")}
    assert not match.shows_name
    assert dict(shown('{ span.tags = "b" }', one).attributes) == {"tags": "b"}
    assert shown("{ .x > 0 }", one).attributes == (("x", 1), ("x", 2))  # on the span and on its resource
    assert dict(shown("{ span.y = nil }", one).attributes) == {"y": "nil"}


def test_what_every_span_has_in_tempo_is_shown_blank_where_it_is_missing():
    match = shown(
        "{} | select(span:parentID, event:name, event:timeSinceStart, link:spanID, span.http.method, span.y)", span(1)
    )
    assert dict(match.attributes) == {
        "event:name": "",
        "event:timeSinceStart": Duration(0),
        "http.method": "nil",
        "link:spanID": "0" * 16,
        "span:parentID": "0" * 16,
    }


def test_what_was_read_with_the_spans_is_lost_to_the_trace_when_they_are_grouped_anew():
    one = span(1, name="n", end_ns=10**6, resource={"service.name": "s"})

    def about(query):
        (found,) = search(query, [[one]]).traces
        return found.root_name, found.root_service_name, found.has_root, found.duration_ns

    assert about("{} | by(name)") == ("n", "s", True, 10**6)
    assert about("{} | by(rootName)") == ("", "s", True, 10**6)
    assert about("{} | by(rootServiceName)") == ("n", "", False, 10**6)
    assert about("{} | by(traceDuration)") == ("n", "s", True, 0)
    assert about("{ rootName = `n` }") == ("n", "s", True, 10**6)


def test_a_tree_can_be_searched_with_as_well_as_text():
    assert search(parse("{}"), [trace(1)]) == search("{}", [trace(1)])


@pytest.mark.parametrize("query", ["({} | rate()) * 2", "{ name = 1 }", "{"])
def test_what_is_no_valid_search_is_refused(query):
    with pytest.raises(QueryError):
        search(query, [])
    if query.startswith(("{ name", "{} ")):
        with pytest.raises(QueryError):
            search(parse(query), [])


def test_a_metrics_function_is_left_out_of_a_search_and_what_it_would_measure_is_found():
    spans = [span(1, name="a"), span(2, 1, name="b")]
    for query in (
        '{ name = "b" } | rate()',
        '{ name = "b" } | rate() by (name) > 0',
        '{ name = "b" } | avg_over_time(span.none)',
    ):
        assert search(query, [spans]) == search('{ name = "b" }', [spans])


def calls_to_answer(query, attributes):
    """How many function calls it takes to plan a search and to run it over one span."""
    calls, before = 0, sys.getprofile()

    def count(_frame, event, _argument):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        prefilter(query)
        assert search(query, [[span(1, attributes=attributes)]]).traces
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize("joint", [" && ", " || "])
@pytest.mark.parametrize(
    ("whole", "part"), [("{{ {} }}", ".a{n} = {n}"), ("{{ {} }}", "!(.a{n} != {n})"), ("{}", "{{ .a{n} = {n} }}")]
)
def test_the_work_for_a_query_grows_as_its_conditions_and_not_as_their_square(whole, part, joint):
    def calls_for(count):
        query = parse(whole.format(joint.join(part.format(n=n) for n in range(count))))
        return calls_to_answer(query, {f"a{n}": n for n in range(count)})

    assert calls_for(40) < 4.4 * calls_for(10)
