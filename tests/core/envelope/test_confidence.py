"""One float, four bands, and percent."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.core.envelope.confidence import FLOORS, Band, at_most, band, from_percent, representative, to_percent

unit = st.floats(0, 1)


@pytest.mark.parametrize(
    ("confidence", "expected"),
    [
        (1.0, Band.HIGH),
        (0.85, Band.HIGH),
        (math.nextafter(0.85, 0), Band.MEDIUM),
        (0.60, Band.MEDIUM),
        (math.nextafter(0.60, 0), Band.LOW),
        (0.40, Band.LOW),
        (math.nextafter(0.40, 0), Band.SPECULATIVE),
        (0.0, Band.SPECULATIVE),
    ],
)
def test_a_floor_belongs_to_its_own_band(confidence, expected):
    assert band(confidence) is expected


@pytest.mark.parametrize("each", Band)
def test_the_number_for_a_band_lies_in_it(each):
    assert band(representative(each)) is each
    assert set(FLOORS) == set(Band)


@given(st.sampled_from(Band), unit)
def test_a_bound_moves_only_what_is_surer_and_into_its_band(most, confidence):
    bounded = at_most(most, confidence)
    assert FLOORS[band(bounded)] <= FLOORS[most]
    assert bounded == confidence or band(bounded) is most


@pytest.mark.parametrize("wrong", [-0.01, 1.01, math.nan, math.inf])
def test_what_is_not_from_0_to_1_is_refused_everywhere(wrong):
    for function in (band, to_percent, lambda value: from_percent(value * 100)):
        with pytest.raises(ValueError, match="from 0 to 1"):
            function(wrong)


@given(st.integers(0, 10**12))
def test_percent_gives_back_every_confidence_of_twelve_decimals(parts):
    confidence = parts / 10**12
    assert from_percent(to_percent(confidence)) == confidence


def test_a_whole_percent_stays_whole():
    assert [to_percent(from_percent(percent)) for percent in range(101)] == list(range(101))


@given(unit)
def test_a_confidence_keeps_its_band_through_percent(confidence):
    assert band(from_percent(to_percent(confidence))) is band(confidence)
