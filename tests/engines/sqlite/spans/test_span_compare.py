"""A number inside an encoded body compares as it would after decoding."""

import operator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.engines.sqlite.spans.compare import OPERATORS, compares

NUMBERS = st.one_of(st.integers(-(2**63), 2**64 - 1), st.integers(-200, 200), st.floats(allow_nan=False))
PYTHON = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
encode = msgspec.msgpack.encode


@given(NUMBERS, NUMBERS, st.sampled_from(sorted(PYTHON)))
def test_any_number_compares_as_python_compares_it(value, bound, op):
    body = encode([{"other": 1, "tokens": value, "more": "x"}])
    assert compares(body, encode("tokens"), op, bound) is PYTHON[op](value, bound)


@given(st.binary(max_size=40), NUMBERS, st.sampled_from(sorted(OPERATORS)))
def test_bytes_that_are_no_body_at_all_do_no_harm(body, bound, op):
    for tail in (b"", b"\xcb", b"\xcd\x01"):
        assert compares(body + encode("n") + tail, encode("n"), op, bound) in (True, False)


def test_a_name_that_occurs_twice_is_compared_twice():
    body = encode([{"n": 1}, [["event", {"n": 9}]]])
    assert compares(body, encode("n"), ">", 5)
    assert not compares(body, encode("n"), ">", 9)


@pytest.mark.parametrize("value", ["text", None, True, [7], {"n": "x"}])
def test_what_is_no_number_compares_with_none(value):
    assert not any(compares(encode({"n": value}), encode("n"), op, 5) for op in OPERATORS)
