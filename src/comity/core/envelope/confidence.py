"""How sure a reply is: one float from 0 to 1 everywhere, four named bands for people, percent for those who count in it."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Final


class Band(StrEnum):
    """The four words for a confidence, surest first."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"
    SPECULATIVE = "SPECULATIVE"


FLOORS: Final = {Band.HIGH: 0.85, Band.MEDIUM: 0.60, Band.LOW: 0.40, Band.SPECULATIVE: 0.0}

# The middle of each band: where only the word is known, this is the number that is least wrong.
_MIDDLES: Final = {Band.HIGH: 0.925, Band.MEDIUM: 0.725, Band.LOW: 0.5, Band.SPECULATIVE: 0.2}


def band(confidence: float) -> Band:
    """Return the band a confidence lies in; a floor belongs to its own band."""
    _require(confidence)
    return next(band for band, floor in FLOORS.items() if confidence >= floor)


def representative(band: Band) -> float:
    """Return the float that stands for a band where nothing finer is known; it lies in that band."""
    return _MIDDLES[band]


def at_most(band_max: Band, confidence: float) -> float:
    """Return the confidence, or what stands for `band_max` if it lies in a surer band."""
    _require(confidence)
    return confidence if FLOORS[band(confidence)] <= FLOORS[band_max] else representative(band_max)


def from_percent(percent: float) -> float:
    """Return a confidence given as 0 to 100."""
    confidence = _shifted(percent, -2)
    _require(confidence)
    return confidence


def to_percent(confidence: float) -> float:
    """Return a confidence as 0 to 100; `from_percent` gives it back if it has at most 15 digits."""
    _require(confidence)
    return _shifted(confidence, 2)


def _shifted(number: float, places: int) -> float:
    """Move the decimal point of the number as it is written: in binary, 0.57 times 100 is 56.99999999999999."""
    return float(Decimal(repr(float(number))).scaleb(places))


def _require(confidence: float) -> None:
    if not 0.0 <= confidence <= 1.0:
        raise ValueError(f"a confidence lies from 0 to 1, not at {confidence!r}")
