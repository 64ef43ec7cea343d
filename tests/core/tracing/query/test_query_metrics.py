import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from query_world import span

from comity.core.tracing.query import QueryError, query_range
from comity.core.tracing.query.metrics import STEPS_MAX, Steps, log2_quantile
from comity.core.tracing.query.series import SAMPLES_MAX

SECOND = 10**9
TEN = 10 * SECOND


def made(number, start_s, duration_ms=0, **attributes):
    start_ns = int(start_s * SECOND)
    return span(
        number, None if number == 1 else 1, start_ns=start_ns, end_ns=start_ns + duration_ms * 10**6, attributes=attributes
    )


SPANS = [
    made(1, 100, 8, team="x", n=1, f=0.5),
    made(2, 101, 16, team="x", n=3),
    made(3, 109, 40, team="y", n=4),
    made(4, 110, 100, team="y"),
    made(5, 125, 200),
]


def series(query, spans=SPANS, start_s=105, end_s=128, step_s=10):
    found = query_range(query, [spans], start_ns=start_s * SECOND, end_ns=end_s * SECOND, step_ns=step_s * SECOND)
    return {tuple(dict(one.labels).values()): {t // 1000: v for t, v in one.samples} for one in found}


def test_samples_stand_at_the_end_of_right_closed_steps_that_cover_the_range():
    assert series("{} | count_over_time()") == {("count_over_time",): {100: 1.0, 110: 3.0, 120: 0.0, 130: 1.0}}


def test_the_first_sample_counts_the_step_that_ends_where_the_range_begins():
    spans = [made(1, 90), made(2, 91), made(3, 100), made(4, 101)]
    assert series("{} | count_over_time()", spans, end_s=109) == {("count_over_time",): {100: 2.0, 110: 1.0}}


def test_a_rate_is_the_count_per_second_to_the_last_digit_of_tempo():
    assert series("{} | rate()") == {("rate",): {100: 0.1, 110: 3 * (1.0 / 10), 120: 0.0, 130: 0.1}}


def test_series_are_split_by_labels_and_missing_ones_say_nil():
    assert series("{} | count_over_time() by (span.team)") == {
        ("nil",): {100: 0, 110: 0, 120: 0, 130: 1},
        ("x",): {100: 1, 110: 1, 120: 0, 130: 0},
        ("y",): {100: 0, 110: 2, 120: 0, 130: 0},
    }


def test_of_several_labels_the_missing_are_left_out_and_of_none_the_first_says_nil():
    found = query_range("{} | rate() by (span.team, span.f)", [SPANS], start_ns=TEN * 10, end_ns=TEN * 13, step_ns=TEN)
    assert [one.labels for one in found] == [
        (("span.team", "nil"),),
        (("span.team", "x"),),
        (("span.team", "y"),),
        (("span.team", "x"), ("span.f", 0.5)),
    ]


@pytest.mark.parametrize(
    ("function", "samples"),
    [
        ("min_over_time(span.n)", {100: 1, 110: 3}),
        ("max_over_time(span.n)", {100: 1, 110: 4}),
        ("sum_over_time(span.n)", {100: 1, 110: 7}),
        ("avg_over_time(span.n)", {100: 1, 110: 3.5}),
        ("max_over_time(duration)", {100: 0.008, 110: 0.1, 130: 0.2}),
        ("sum_over_time(span.f)", {100: 0.5}),
    ],
)
def test_values_over_time_leave_gaps_where_nothing_was_measured(function, samples):
    assert list(series(f"{{}} | {function}").values()) == [pytest.approx(samples)]


def test_what_is_not_a_number_is_not_measured():
    assert series("{} | max_over_time(span.team)") == {}
    assert series("{ name = `none` } | max_over_time(duration)") == {}


def test_counting_nothing_gives_zeros_unless_nothing_could_ever_be_counted():
    nothing = {100: 0, 110: 0, 120: 0, 130: 0}
    assert series("{ name = `none` } | rate()") == {("rate",): nothing}
    assert series("{ name = `none` } | count_over_time()") == {("count_over_time",): nothing}
    assert series("{ name = `none` } | rate() by (name)") == {}
    assert series("{ 1 = 2 } | rate()") == {}


def test_quantiles_come_from_powers_of_two_with_a_series_each():
    found = series("{ span.n != nil } | quantile_over_time(duration, 0.5, 1)")
    # 16 ms and 40 ms lie in the buckets up to 2^24 and 2^26 ns
    assert found[(1.0,)] == pytest.approx({100: 2**23 / 1e9, 110: 2**26 / 1e9, 120: 0, 130: 0})
    assert found[(0.5,)][110] == pytest.approx(2**24 / 1e9)


def test_a_histogram_counts_per_power_of_two():
    assert series("{} | histogram_over_time(span.n)") == {
        (4.0,): {100: 0, 110: 2, 120: 0, 130: 0},
    }
    assert [labels[0] for labels in series("{} | histogram_over_time(duration)")] == [
        power / 1e9 for power in (2**23, 2**24, 2**26, 2**27, 2**28)
    ]


def test_floats_and_numbers_below_two_have_no_bucket():
    assert series("{} | histogram_over_time(span.f)") == {}
    assert series("{ span.n = 1 } | quantile_over_time(span.n, 0.5)") == {}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("{} | count_over_time() > 1", {("count_over_time",): {110: 3}}),
        ("{} | count_over_time() != 0", {("count_over_time",): {100: 1, 110: 3, 130: 1}}),
        ("{} | max_over_time(duration) >= 100ms", {("max_over_time",): {110: 0.1, 130: 0.2}}),
        ("{} | count_over_time() by (span.team) | topk(1)", {("x",): {100: 1}, ("y",): {110: 2}, ("nil",): {120: 0, 130: 1}}),
        ("{} | count_over_time() by (span.team) | bottomk(1) > 5", {}),
        ("({} | count_over_time()) * 2 + 1", {("count_over_time",): {100: 3, 110: 7, 120: 1, 130: 3}}),
        ("10 - ({} | count_over_time())", {("count_over_time",): {100: 9, 110: 7, 120: 10, 130: 9}}),
        (
            "({ span.n != nil } | count_over_time()) / ({} | count_over_time())",
            {("(count_over_time / count_over_time)",): {100: 1, 110: pytest.approx(2 / 3), 130: 0}},
        ),
    ],
)
def test_second_stages_and_arithmetic_work_on_samples(query, expected):
    assert series(query) == expected


def test_a_structural_query_measures_the_spans_it_selects():
    assert series("{ span.n = 1 } > { span.team = `y` } | count_over_time()") == {
        ("count_over_time",): {100: 0, 110: 2, 120: 0, 130: 0}
    }


def test_compare_reports_what_sets_the_selection_apart():
    found = series("{} | compare({ span.n != nil })", step_s=100)
    assert found[("selection", "x")] == {100: 1, 200: 1}
    assert found[("baseline", "y")] == {100: 0, 200: 1}


@pytest.mark.parametrize(
    ("query", "bounds"),
    [
        ("{}", (0, 10, 1)),
        ("{} | rate()", (10, 0, 1)),
        ("{} | rate()", (0, 10, 0)),
        ("{} | rate()", (0, STEPS_MAX + 1, 1)),
        ("{ name = 1 } | rate()", (0, 10, 1)),
    ],
)
def test_what_cannot_be_measured_is_refused(query, bounds):
    start_ns, end_ns, step_ns = bounds
    with pytest.raises(QueryError):
        query_range(query, [], start_ns=start_ns, end_ns=end_ns, step_ns=step_ns)


@pytest.mark.parametrize("measure", ["rate() by (span.n)", "compare({ span.n = 1 })"])
def test_more_series_than_memory_should_hold_are_refused(measure):
    spans = [span(n, None if n == 1 else 1, start_ns=n, attributes={"n": n}) for n in range(1, SAMPLES_MAX // 10_000 + 2)]
    with pytest.raises(QueryError, match="series of 10,001 steps"):
        query_range(f"{{}} | {measure}", [spans], start_ns=0, end_ns=10_000, step_ns=1)


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(1, 60), st.integers(0, 1000))
def test_every_moment_of_the_range_falls_into_the_step_that_ends_next(start, length, step, offset):
    steps = Steps.of(start, start + length, step)
    assert steps.first_ns <= start <= start + length <= steps.last_ns
    moment = start + offset % (length + 1)
    at = steps.index(moment)
    assert steps.first_ns + (at - 1) * step < moment <= steps.first_ns + at * step
    assert steps.index(steps.first_ns - step) is None
    assert steps.index(steps.first_ns - step + 1) == 0
    assert steps.index(steps.last_ns + 1) is None


@given(st.floats(0, 1), st.dictionaries(st.sampled_from([2.0**n for n in range(1, 12)]), st.integers(1, 50), min_size=1))
def test_a_quantile_lies_in_the_bucket_that_holds_it(quantile, counts):
    value = log2_quantile(quantile, counts)
    rank = math.ceil(quantile * sum(counts.values()))
    below = sum(count for bucket, count in counts.items() if bucket < value)
    assert min(counts) / 2 <= value <= max(counts)
    assert below <= rank


def test_a_quantile_is_spread_within_its_bucket_by_rank_rounded_up():
    assert log2_quantile(0.5, {4.0: 3}) == pytest.approx(2 * 2 ** (2 / 3))
    assert log2_quantile(0.9, {2.0: 1, 8.0: 1}) == 8.0
    assert log2_quantile(0.5, {2.0: 1, 8.0: 1}) == 2.0
    assert log2_quantile(0.5, {}) == 0


def test_values_of_different_types_are_different_series_though_python_takes_them_for_equal():
    values = [1, 1.0, True, (1,), (1.0,), 1, 0, False, 0.0]
    spans = [made(number, 101, x=value) for number, value in enumerate(values, 1)]
    found = query_range("{} | count_over_time() by (span.x)", [spans], start_ns=TEN * 10, end_ns=TEN * 11, step_ns=TEN)
    counted = [(repr(dict(one.labels)["span.x"]), max(value for _, value in one.samples)) for one in found]
    # An array of one element is that element.
    assert sorted(counted) == sorted([("1", 3.0), ("1.0", 2.0), ("True", 1.0), ("0", 1.0), ("False", 1.0), ("0.0", 1.0)])
    ratio = "({} | rate() by (span.x)) / ({} | rate() by (span.x))"
    found = query_range(ratio, [spans], start_ns=TEN * 10, end_ns=TEN * 11, step_ns=TEN)
    assert [{value for _, value in one.samples} for one in found] == [{1.0}] * 6
