"""The counting of steps finds out what is not linear, and what never ends."""

import pytest
from steps import count_steps, grows_no_faster_than_the_text


def linear(text):
    for _ in text:
        pass


def square(text):
    for _ in text:
        linear(text)


def test_steps_that_grow_as_a_square_are_found_out():
    assert grows_no_faster_than_the_text(linear, "a" * 100)
    assert not grows_no_faster_than_the_text(square, "a" * 100)


def test_what_takes_too_many_steps_is_ended():
    def endless():
        while True:
            pass

    with pytest.raises(AssertionError, match="more than 1,000 steps"):
        count_steps(endless, 1_000)
