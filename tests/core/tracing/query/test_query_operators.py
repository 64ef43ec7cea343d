import pytest
from hypothesis import given
from hypothesis import strategies as st
from query_world import VALUES

from comity.core.tracing.query.operators import apply, make_test
from comity.core.tracing.query.values import Duration
from comity.core.tracing.span import Kind, Status

SECOND = Duration(10**9)


@pytest.mark.parametrize(
    ("left", "op", "right", "result"),
    [
        (1, "=", 1.0, True),
        (SECOND, ">", 1, True),
        (SECOND, "=", 1e9, True),
        ("b", ">", "a", True),
        ("a", "=", 1, False),
        ("a", "!=", 1, False),
        (None, "=", None, False),
        (None, "!=", None, False),
        (None, "=", "a", False),
        (None, "!=", "a", False),
        (True, "=", 1, False),
        (True, "&&", True, True),
        (True, "&&", "a", False),
        (None, "||", True, False),
        (False, "||", True, True),
        (True, ">", False, False),
        (Status.OK, "=", Status.OK, True),
        (Status.OK, "!=", Kind.CLIENT, False),
        (Status.OK, "=", "ok", False),
        ("abc", "=~", "a.*", True),
        ("abc", "!~", "a.*", False),
        (1, "=~", "1", False),
        ("a", "+", "b", False),
        (("a", "b"), "=", "b", True),
        (("a", "b"), "!=", "b", False),
        (("a", "b"), "!=", "c", True),
        ((), "!=", "c", False),
        ((1, 5), ">", 4, True),
        (4, "<", (1, 5), True),
        (("a",), "=", ("a",), True),
        (("a",), "+", 1, False),
    ],
)
def test_values_of_different_types_never_compare_and_arrays_by_their_elements(left, op, right, result):
    assert apply(op, left, right) is result


def test_a_test_of_exact_type_does_not_confuse_integers_with_floats():
    assert make_test("=", 3, exact_type=True)(3)
    assert not make_test("=", 3, exact_type=True)(3.0)
    assert make_test("=", 3, exact_type=False)(3.0)
    assert not make_test("=", 1, exact_type=False)(True)
    assert not make_test(">", SECOND, exact_type=True)(2 * 10**9)
    assert make_test(">", SECOND, exact_type=False)(2 * 10**9)


def test_a_constant_that_is_an_array_stands_for_any_or_none_of_its_elements():
    assert make_test("=", ("a", "b"), exact_type=True)("b")
    assert not make_test("=", ("a", "b"), exact_type=True)("c")
    assert make_test("!=", (1, 2), exact_type=True)(3)
    assert not make_test("!=", (1, 2), exact_type=True)(2)
    assert not make_test("!=", (1, 2), exact_type=True)("x")
    assert make_test("=~", ("a.*", "b"), exact_type=True)("b")
    assert not make_test("!~", ("a.*", "b"), exact_type=True)("ax")
    assert make_test("!~", ("a.*", "b"), exact_type=True)("c")


@given(VALUES, st.sampled_from(["=", "!=", ">", ">=", "<", "<="]), st.sampled_from(["a", 1, 2.5, True]))
def test_a_prepared_test_says_what_the_operator_says(value, op, constant):
    assert make_test(op, constant, exact_type=False)(value) is bool(apply(op, value, constant))
