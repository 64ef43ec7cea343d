"""Whether two numbers, ranges or bounds of one dimension agree, and within what tolerance."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Final

from comity.core.orchestration.conflict.finding import Rules, name_of
from comity.core.orchestration.conflict.quantity import Quantity
from comity.core.orchestration.conflict.units import CALENDAR

SAME: Final = 1e-9  # of the larger number: what arithmetic with units leaves
TOLERANCE_KELVIN: Final = 0.3  # a share of an absolute temperature means nothing
TOLERANCE: Final = 0.01  # of the larger number
TOLERANCE_ROUGH: Final = 0.05  # where a number is said to be about right
TOLERANCE_UNITS: Final = 0.02  # between two units: 25 mm are an inch
TOLERANCE_CALENDAR: Final = 0.03  # between days and months, which have no one length
COUNT_MAX: Final = 1_000  # whole numbers below it are counts, and exact
SHARED_TOLERANCE: Final = 0.5  # of the larger of two tolerances around one value the smaller has if they agree
CENT: Final = 0.01
TURNED_MIN: Final = 4  # digits of a number
ALMOST_ALL: Final = 0.95  # two shares from 95 % on are compared by what each lacks: 99.9 % and 99 % are far apart
_BILLED: Final = re.compile(r"(?:^|_)(?:invoice|total|price|balance|due|paid|refund|rent|deposit|fee|bill|fare)(?:_|$)")


def _limits(one: Quantity, other: Quantity) -> tuple[Quantity, Quantity] | None:
    """Return the limits of two bounds on one side, "at most 4" and "at most 8"; None for anything else."""
    if one.high == other.high == math.inf:
        return replace(one, high=one.low), replace(other, high=other.low)
    if one.low == other.low == -math.inf:
        return replace(one, low=one.high), replace(other, low=other.high)
    return None


def _overlap(one: Quantity, other: Quantity) -> bool:
    """Return whether a range or a bound agrees with another, or with a number: it holds the number, or a part of the range."""
    largest = max(abs(value) for value in (one.low, one.high, other.low, other.high) if math.isfinite(value))
    is_as_said = one.size == other.size and not one.is_rough and not other.is_rough
    slack = TOLERANCE_KELVIN if one.dimension == "temperature" else (SAME if is_as_said else TOLERANCE) * largest
    shared = min(one.high, other.high) - max(one.low, other.low)
    if one.is_point or other.is_point:
        return shared >= -slack
    if math.isinf(one.high - one.low) or math.isinf(other.high - other.low):
        return shared > slack  # at least 5, and at most 5
    every = max(one.high, other.high) - min(one.low, other.low)
    if abs(one.low + one.high - other.low - other.high) <= SAME * largest:  # 5 ± 0.1 mm and 5 ± 1 mm
        return shared + slack >= SHARED_TOLERANCE * every
    return shared > 0


def _are_turned(one: Quantity, other: Quantity) -> bool:
    """Return whether two numbers in one unit have the same digits in another order: 4,215 and 4,251."""
    if one.size != other.size or one.half != other.half or one.is_rough or other.is_rough or not one.size:
        return False
    said, told = (f"{side.low / side.size:.9g}".strip("-0.") for side in (one, other))
    return len(said) == len(told) >= TURNED_MIN and said != told and sorted(said) == sorted(told)


def are_near(one: Quantity, other: Quantity, path: str, rules: Rules, at_least: float = 0.0) -> bool:
    """Return whether two quantities of one dimension agree: within a tolerance, or as exactly as they are said."""
    if not one.is_point or not other.is_point:
        if (limits := _limits(one, other)) is not None:
            return are_near(*limits, path, rules, at_least)
        return _overlap(one, other)
    apart, larger = abs(one.low - other.low), max(abs(one.low), abs(other.low))
    if apart <= SAME * larger:
        return True
    tolerance = rules.tolerance.get(path, rules.tolerance.get(name_of(path)))
    if tolerance is not None:
        return apart <= tolerance * larger
    if one.dimension == "temperature":
        return apart <= (TOLERANCE_KELVIN if one.size == other.size else max(TOLERANCE_KELVIN, one.half, other.half))
    is_exact = one.is_whole and other.is_whole and not one.is_rough and not other.is_rough
    if is_exact and one.size == other.size and larger < COUNT_MAX * one.size:
        return False
    is_billed = one.dimension == "money" == other.dimension and bool(_BILLED.search(name_of(path)))
    if is_billed and one.size == other.size == 1 and not one.is_rough and not other.is_rough:
        return apart <= max(one.half, other.half)
    if (one.low < 0) != (other.low < 0) or _are_turned(one, other):
        return False
    is_to_the_cent = (
        one.dimension == "money" == other.dimension and one.size == other.size == 1 and one.half == other.half == CENT / 2
    )
    if is_to_the_cent and not one.is_rough and not other.is_rough:
        return apart <= CENT
    share = max(at_least, TOLERANCE_ROUGH if one.is_rough or other.is_rough else TOLERANCE)
    if (
        one.dimension == other.dimension
        and one.size != other.size
        and one.dimension not in {"", "money", "share", "time", "data"}
    ):
        share = max(share, TOLERANCE_UNITS)
    if one.dimension == "time" and (one.size in CALENDAR) != (other.size in CALENDAR):
        share = max(share, TOLERANCE_CALENDAR)
    if one.dimension == other.dimension == "share" and ALMOST_ALL <= min(one.low, other.low) <= larger <= 1:
        larger = 1 - min(one.low, other.low)  # 99.0 % of the time is ten times more downtime than 99.9 %
    if apart <= share * larger:
        return True
    coarse = max(one.half, other.half)
    is_same_unit = (
        not one.dimension or one.size == other.size or coarse <= TOLERANCE_ROUGH * larger
    )  # 18 months are not 2 years
    return one.half != other.half and is_same_unit and apart <= coarse * (1 + SAME)
