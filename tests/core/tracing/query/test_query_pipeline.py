import pytest
from query_world import found, span, spansets

from comity.core.tracing.query.pipeline import summarize
from comity.core.tracing.query.values import Duration

MS = 10**6
SPANS = [
    span(1, name="a", end_ns=10 * MS, attributes={"n": 1, "f": 0.5, "team": "x"}),
    span(2, 1, name="a", end_ns=20 * MS, attributes={"n": 2, "f": 1.5, "team": "y"}),
    span(3, 1, name="b", end_ns=30 * MS, attributes={"n": 6, "team": "x", "tags": ("p", {"k": 1})}),
    span(4, 1, name="b", end_ns=41 * MS),
]


@pytest.mark.parametrize(
    ("query", "attributes", "ids"),
    [
        ("{} | count() = 4", {"count()": 4}, [1, 2, 3, 4]),
        ("{ name = `a` } | count() > 1", {"count()": 2}, [1, 2]),
        ("{} | sum(span.n) = 9", {"sum(span.n)": 9}, [1, 2, 3, 4]),
        ("{} | avg(span.n) = 3", {"avg(span.n)": 3.0}, [1, 2, 3, 4]),
        ("{} | min(span.n) = 1", {"min(span.n)": 1}, [1, 2, 3, 4]),
        ("{} | max(span.f) = 1.5", {"max(span.f)": 1.5}, [1, 2, 3, 4]),
        ("{} | sum(duration) = 101ms", {"sum(duration)": Duration(101 * MS)}, [1, 2, 3, 4]),
        ("{} | avg(duration) > 25ms", {"avg(duration)": Duration(25_250_000)}, [1, 2, 3, 4]),
        ("{ span.n != nil } | max(span.n * 2 + 1) = 13", {"max(span.n * 2 + 1)": 13}, [1, 2, 3]),
        ("{} | count() > 1 | { name = `b` }", {"count()": 4}, [3, 4]),
        ("{} | count() > 1 | max(span.n) = 6", {"count()": 4, "max(span.n)": 6}, [1, 2, 3, 4]),
        ("count() = 4", {"count()": 4}, [1, 2, 3, 4]),
        # without a filter in front only the spans of the later filter are fetched, and so counted
        ("count() = 2 | { name = `a` }", {"count()": 2}, [1, 2]),
    ],
)
def test_an_aggregate_is_compared_and_shown_with_its_value(query, attributes, ids):
    ((shown, kept),) = spansets(query, SPANS)
    assert shown == attributes
    assert {key: type(value) for key, value in shown.items()} == {key: type(value) for key, value in attributes.items()}
    assert kept == ids


@pytest.mark.parametrize(
    "query",
    [
        "{} | count() > 4",
        "{} | sum(span.none) = 0",
        "{} | avg(span.team) > 0",
        "{ name = `c` } | count() = 0",
        "{} | min(span.n) > 1",
    ],
)
def test_a_spanset_that_fails_the_comparison_or_has_no_numbers_is_dropped(query):
    assert spansets(query, SPANS) == []


def test_grouping_splits_by_value_and_keeps_the_spans_that_lack_it_together():
    assert spansets("{} | by(span.team)", SPANS) == [
        ({"by(span.team)": "x"}, [1, 3]),
        ({"by(span.team)": "y"}, [2]),
        ({"by(span.team)": None}, [4]),
    ]
    assert spansets("{} | by(span.team) | count() > 1", SPANS) == [({"by(span.team)": "x", "count()": 2}, [1, 3])]


def test_grouping_twice_groups_by_both():
    labels = [shown for shown, _ in spansets("{ span.n != nil } | by(name) | by(span.team)", SPANS)]
    assert labels == [
        {"by(name)": "a", "by(span.team)": "x"},
        {"by(name)": "a", "by(span.team)": "y"},
        {"by(name)": "b", "by(span.team)": "x"},
    ]


def test_grouping_by_something_computed_or_unhashable_does_not_fail():
    assert [kept for _, kept in spansets("{} | by(span.n % 2)", SPANS)] == [[1], [2, 3], [4]]
    assert [kept for _, kept in spansets("{} | by(span.tags)", SPANS)] == [[1, 2, 3, 4]]
    assert [kept for _, kept in spansets("{} | by(1 / span.none)", SPANS)] == [[1, 2, 3, 4]]


def test_coalescing_joins_the_groups_again():
    assert spansets("{ span.team != nil } | by(span.team) | coalesce()", SPANS) == [({}, [1, 3, 2])]


def test_a_filter_after_a_filter_narrows_it():
    assert found("{ name = `b` } | { span.n = 6 }", SPANS) == [3]
    assert found("{ name = `b` } | { span.n = 1 }", SPANS) == []


def test_pipelines_in_parentheses_combine_like_spansets():
    assert found("({ name = `a` } | count() > 1) && ({ name = `b` } | count() > 1)", SPANS) == [1, 2, 3, 4]
    assert found("({ name = `a` } | count() > 2) && ({ name = `b` } | count() > 1)", SPANS) == []
    assert found("({ name = `a` } | count() > 2) || ({ name = `b` })", SPANS) == [3, 4]
    assert found("({} | count() > 2 | { name = `a` }) > ({ name = `b` })", SPANS) == [3, 4]


def test_numbers_are_summarized_in_the_type_they_have():
    assert summarize("sum", [Duration(1), 2]) == Duration(1)  # only those of the first one's type add up
    assert summarize("avg", [1, 2.5]) == 0.5
    assert summarize("max", [7, "a", True]) is True
    assert summarize("min", ["a", 7.5, 8]) == 7.5
    assert summarize("sum", ["a", 7]) == "a"
    assert summarize("avg", [Duration(-3), Duration(-4)]) == Duration(-3)
    assert summarize("avg", [Duration(3), Duration(4)]) == Duration(3)
    assert summarize("min", []) is None
