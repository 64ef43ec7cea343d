"""What is handed in is taken as it will be read again, or refused by the path of what is wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, json

from comity.core.document.checks import read, take, take_text, take_whole
from comity.core.document.payload import PayloadError
from comity.errors import CallerError


class Pair(Struct, frozen=True):
    """Two parts."""

    words: tuple[str, ...]
    number: int


decode = json.Decoder(Pair).decode


def test_what_is_taken_is_a_copy_that_the_giver_cannot_change():
    words = ["a"]
    taken = take(Pair(words, 1), "pair", decode)
    words.append("b")
    assert taken == Pair(("a",), 1)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (Pair(("a", 5), 1), "pair.words[1]"),
        (Pair("ab", 1), "pair.words"),
        (Pair(("\ud800",), 1), "pair.words[0]"),
        (Pair((), 1.5), "pair.number"),
        (Pair((), float("nan")), "pair.number"),
        (Pair((), object()), "pair.number"),
    ],
)
def test_what_would_not_be_read_again_is_refused_by_its_path(value, path):
    with pytest.raises(CallerError) as caught:
        take(value, "pair", decode)
    assert (caught.value.code, caught.value.facts["problems"][0].path) == ("INPUT_VALIDATION_FAILED", path)


def test_more_than_the_limit_is_refused():
    with pytest.raises(PayloadError) as caught:
        read("x" * 100, "text", json.Decoder(str).decode, 50)
    assert caught.value.code == "ENVELOPE_TOO_LARGE"


@given(value=st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary())
def test_a_whole_number_is_an_integer_within_its_bounds_and_nothing_else(value):
    if type(value) is int and 0 <= value <= 100:
        assert take_whole(value, "n", 100) == value
    else:
        with pytest.raises(CallerError, match="n: must be a whole number from 0 to 100"):
            take_whole(value, "n", 100)


@pytest.mark.parametrize("value", [5, None, b"x", "\ud800", "a\x00", "x" * 101])
def test_a_text_is_valid_and_within_its_bound(value):
    with pytest.raises(CallerError) as caught:
        take_text(value, "note", 100)
    assert caught.value.facts["problems"][0].path == "note"
    assert take_text("fine ✓", "note", 100) == "fine ✓"
