import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.core.tracing.query.series import combine, order_of, rank, threshold

NAN = math.nan
RATE = (("__name__", "rate"),)


def by(value):
    return (("team", value),)


def test_series_meet_by_equal_labels():
    left, right = {by("x"): [6.0], by("y"): [8.0]}, {by("y"): [2.0], by("z"): [1.0]}
    assert combine("/", left, right) == {by("y"): [4.0]}


def test_a_series_without_labels_meets_every_series_of_the_other_side():
    total = {RATE: [10.0]}
    parts = {by("x"): [4.0], by("y"): [6.0]}
    assert combine("/", parts, total) == {by("x"): [0.4], by("y"): [0.6]}
    assert combine("-", total, parts) == {by("x"): [6.0], by("y"): [4.0]}


def test_the_name_tells_what_was_combined():
    assert combine("+", {RATE: [1.0]}, {RATE: [2.0]}) == {(("__name__", "(rate + rate)"),): [3.0]}
    assert combine("*", {RATE: [1.0]}, 100) == {RATE: [100.0]}
    assert combine("-", 1.5, {RATE: [1.0]}) == {RATE: [0.5]}


def test_labels_meet_in_the_order_they_were_asked_for():
    left, right = {(("a", 1), ("b", 2)): [1.0]}, {(("b", 2), ("a", 1)): [2.0]}
    assert combine("+", left, right) == {}


def test_the_last_label_takes_the_place_of_a_name_that_is_gone_and_still_meets_as_asked_for():
    parts = {(("a", 1), ("b", 2)): [4.0]}
    share = combine("-", {RATE: [10.0]}, parts)
    assert share == {(("b", 2), ("a", 1)): [6.0]}
    assert list(combine("+", share, parts).values()) == [[10.0]]
    assert combine("-", parts, {RATE: [1.0]}) == {(("a", 1), ("b", 2)): [3.0]}


def test_a_gap_on_either_side_stays_a_gap_and_division_by_zero_makes_one():
    ((first, second, third),) = combine("/", {RATE: [NAN, 0.0, 1.0]}, {RATE: [1.0, 0.0, 0.0]}).values()
    assert math.isnan(first)
    assert math.isnan(second)
    assert math.isnan(third)
    assert math.isnan(combine("/", {RATE: [1.0]}, 0)[RATE][0])


def test_a_threshold_turns_what_fails_into_gaps():
    ((kept, dropped, gap),) = threshold({RATE: [3.0, 1.0, NAN]}, ">", 2).values()
    assert kept == 3.0
    assert math.isnan(dropped)
    assert math.isnan(gap)


@pytest.mark.parametrize(
    ("values", "highest", "lowest"),
    [("abc", {"a", "b"}, {"b", "c"}), ([1, 2, 3], {2, 3}, {1, 2}), ([0.5, 1.5, 2.5], {1.5, 2.5}, {0.5, 1.5})],
)
def test_of_equal_samples_the_first_texts_and_the_last_numbers_are_the_highest(values, highest, lowest):
    found = {by(value): [1.0] for value in values}

    def kept(is_highest):
        ranked = rank(found, 2, highest=is_highest)
        return {value for ((_, value),), samples in ranked.items() if not math.isnan(samples[0])}

    assert (kept(True), kept(False)) == (highest, lowest)


def test_of_equal_samples_a_missing_label_and_a_type_decide_too():
    found = {by(True): [1.0], by(1): [1.0], (("p", 0.5),): [1.0]}
    assert [labels for labels, (value,) in rank(found, 1, highest=True).items() if value == 1.0] == [(("p", 0.5),)]
    assert [labels for labels, (value,) in rank(found, 1, highest=False).items() if value == 1.0] == [by(1)]


def test_series_stand_in_the_order_in_which_protobuf_prints_them():
    given = [by("100ms"), by("100µs"), by(2), by(10), by(True), by(0.5), (("team", "a"), ("zone", "b")), by("a b"), by("a")]
    order = [by(True), by(0.5), by(10), by(2), by("100µs"), by("100ms"), by("a b"), by("a"), (("team", "a"), ("zone", "b"))]
    assert sorted(given, key=order_of) == order


SAMPLES = st.one_of(st.just(NAN), st.integers(0, 3).map(float))


@given(
    st.dictionaries(st.sampled_from("abcd").map(by), st.lists(SAMPLES, min_size=3, max_size=3)),
    st.integers(1, 5),
    st.booleans(),
)
def test_each_step_keeps_its_own_best_and_no_more_than_asked(found, limit, highest):
    kept = rank(found, limit, highest=highest)
    for at in range(3 if found else 0):
        present = [v[at] for v in found.values() if not math.isnan(v[at])]
        chosen = [v[at] for v in kept.values() if not math.isnan(v[at])]
        assert sorted(chosen) == sorted(sorted(present, reverse=highest)[:limit])


def test_ranking_nothing_gives_nothing():
    assert rank({}, 3, highest=True) == {}
