import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.core.tracing.query.values import Duration, Type, Undefined, arithmetic, groupable, parse_duration, type_of, wrap
from comity.core.tracing.span import INT64_MAX, INT64_MIN, Kind, Status


@pytest.mark.parametrize(
    ("nanos", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1_500, "1.5µs"),
        (54_666_666, "54.666666ms"),
        (62_000_000, "62ms"),
        (1_500_000_000, "1.5s"),
        (60_000_000_000, "1m0s"),
        (3_723_500_000_000, "1h2m3.5s"),
        (-2_000_000, "-2ms"),
    ],
)
def test_a_duration_prints_as_go_prints_it(nanos, text):
    assert str(Duration(nanos)) == text


@given(st.integers(0, INT64_MAX))
def test_a_printed_duration_reads_back_to_the_nanosecond(nanos):
    assert parse_duration(str(Duration(nanos))) == nanos


@pytest.mark.parametrize("text", ["", "5", "s", "5x", "5s!", "9223372036854775808ns", "1s 2s"])
def test_what_is_no_duration_is_none(text):
    assert parse_duration(text) is None


def test_every_value_has_the_type_it_is_queried_as():
    values = [None, "a", True, 1, 1.0, Duration(1), Status.OK, Kind.CLIENT, ("a",), b"x", {"a": 1}]
    assert [type_of(value) for value in values] == [
        Type.NIL, Type.STRING, Type.BOOL, Type.INT, Type.FLOAT, Type.DURATION, Type.STATUS, Type.KIND, Type.ARRAY, Type.NIL,
        Type.NIL,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("left", "op", "right", "result"),
    [
        (7, "+", 2, 9),
        (7, "/", 2, 3),
        (-7, "/", 2, -3),
        (-7, "%", 2, -1),
        (7, "%", -2, 1),
        (10, "^", 2, 1024),  # the other way round, as in Tempo
        (-1, "^", 2, 0),
        (64, "^", 2, INT64_MIN),
        (INT64_MAX, "+", 1, INT64_MIN),
        (INT64_MIN, "/", -1, INT64_MIN),
        (7, "/", 2.0, 3.5),
        (Duration(10), "/", 4, 2.5),
        (Duration(10**9), "*", 0.4, 4e8),
        (7.5, "%", 2, 1.5),
        (2.0, "^", 0.5, math.sqrt(2)),
        (10.0, "^", 400, math.inf),
        (-10.0, "^", 401, -math.inf),
        (0.0, "^", -1, math.inf),
    ],
)
def test_integers_stay_integers_and_everything_else_becomes_a_float(left, op, right, result):
    found = arithmetic(op, left, right)
    assert found == result
    assert type(found) is type(result)


def test_division_by_zero_has_no_integer_but_a_float_answer():
    for op in "/%":
        with pytest.raises(Undefined):
            arithmetic(op, 1, 0)
    assert arithmetic("/", 1.0, 0) == math.inf
    assert arithmetic("/", -1.0, 0) == -math.inf
    assert math.isnan(arithmetic("/", 0.0, 0))
    assert math.isnan(arithmetic("%", 1.5, 0))
    assert math.isnan(arithmetic("^", -1.0, 0.5))


@given(st.integers(-(2**70), 2**70))
def test_wrapping_keeps_the_low_64_bits(value):
    assert INT64_MIN <= wrap(value) <= INT64_MAX
    assert (wrap(value) - value) % 2**64 == 0


def test_only_what_the_language_can_hold_is_grouped_by():
    assert groupable(("a", 1)) == ("a", 1)
    assert (groupable(("a",)), groupable(())) == ("a", None)
    assert [groupable(value) for value in (None, {"a": 1}, b"x", ({"a": 1},), (("a",),))] == [None] * 5
