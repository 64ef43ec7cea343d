"""Numbers as agents write them: with separators, scales, signs of currencies, units, ranges and bounds."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any, Final

from comity.core.orchestration.conflict.units import (
    CENTS,
    CURRENCIES,
    DAY,
    MONTH,
    SCALES,
    SHARED_SIGNS,
    SIGNS,
    UNITS,
    YEAR,
    to_kelvin,
)
from comity.core.orchestration.conflict.wording import FRACTIONS, WORDED, WORDS, reworded

INFINITE: Final = float("inf")
DEGREES: Final = frozenset({"degrees", "degree", "deg", "°"})
LENGTH_MAX: Final = 120  # characters of a text that can be a quantity


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number or a range, in the base unit of its dimension. `half` is half of its last digit: how exactly it was said."""

    low: float
    high: float
    half: float = 0.0
    dimension: str = ""  # of a unit; `money`; empty for a bare number
    unit: str = ""  # the currency, or the word for what was counted
    size: float = 1.0  # of the unit it was said in
    is_whole: bool = False
    is_rough: bool = False
    period: float = 0.0  # seconds it is said for, as in "per month"; 0 for no rate
    per: str = ""  # what else it is said for: the dimension of "per litre", the word of "per guest"

    @property
    def is_point(self) -> bool:
        """Whether it is one number."""
        return self.low == self.high

    def for_a_year(self) -> Quantity:
        """Return a rate as what it comes to in a year."""
        times = YEAR / self.period
        return replace(self, low=self.low * times, high=self.high * times, half=self.half * times, is_whole=False, period=YEAR)


_NUMBER: Final = (
    r"[+\-−]?\s*(?:\d{1,2}(?:,\d\d)+,\d{3}(?:\.\d+)?(?!\d)|\d{1,3}(?:['’ ]\d{3})+,\d+|\d{1,3}(?:[,'’ ]\d{3})+(?:\.\d+)?|"
    r"\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}|\d+(?:[.,]\d+)?(?:[eE][+-]?\d+)?|\.\d+)"
)
_POINT: Final = re.compile(
    rf"^(?P<sign>[-−+])?\s*(?P<money>us\$|ca?\$|au?\$|hk\$|nz\$|s\$|r\$|[$€£¥₹₩₽₺₪₦₫฿₴]|kč|rs\.?(?=\s*\d)|kr\.?(?=\s*\d)|[a-z]{{3}}(?=\s*[-−\d]))?\s*"
    rf"(?P<number>{_NUMBER})\s*(?P<rest>.*)$",
    re.IGNORECASE,
)
_ROUGH: Final = re.compile(
    r"^(?:~|≈|c\.|ca\.?|circa|about|around|approx(?:imately|\.)?|roughly|nearly|almost|some|an estimated|"
    r"estimated at|close to|just (?:over|under|above|below)|a (?:little|bit) (?:over|under|more than|less than)|"
    r"in the region of|more or less|or so)(?![a-z])\s*",
    re.IGNORECASE,
)
_LEAST: Final = (
    r">=|≥|>|at least|not below|not under|min(?:imum|\.)?(?: of)?|not less than|no less than|from|"
    r"more than|over|above|greater than|exceeding|"
    r"upwards of|no fewer than"
)
_MOST: Final = (
    r"<=|≤|<|at most|up to|not above|not over|max(?:imum|\.)?(?: of)?|"
    r"not more than|no more than|less than|under|below|fewer than|within|"
    r"no longer than|not exceeding|no later than"
)
_BOUNDS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), side)
    for pattern, side in (
        (rf"^(?:{_LEAST})(?![a-z])\s*(?P<value>.+)$", "low"),
        (rf"^(?:{_MOST})(?![a-z])\s*(?P<value>.+)$", "high"),
        (r"^(?P<value>.+?)\s*(?:\+|or more|and (?:above|over|up)|or higher|minimum|at least)$", "low"),
        (r"^(?P<value>.+?)\s*(?:or less|or fewer|or under|or below|and below|or lower|max(?:imum|\.)?|at most)$", "high"),
    )
)
_RANGE: Final = re.compile(
    rf"^(?:between\s+|from\s+)?(?P<low>[^\d]{{0,6}}{_NUMBER}[^\d–—]{{0,12}}?)\s*(?:-|–|—|to|and|until|\.\.)\s*"
    rf"(?P<high>[^\d]{{0,6}}{_NUMBER}.*)$",
    re.IGNORECASE,
)
_BESIDES: Final = re.compile(  # what stands behind a unit and does not change it: 5 km away, 20 litres of milk
    r"^(?:away|(?:in )?total|long|wide|high|tall|deep|thick|old|of .+|free|walk|drive|altogether|overall|on average|left|"
    r"remaining|only|or so|in cash|apart|from now|from today|hence)$"
)
_ANYTHING: Final = frozenset({"pcs", "pc", "piece", "pieces", "unit", "units", "item", "items", "people", "persons", "heads"})
_MARGIN: Final = re.compile(r"^(?:±|\+/-|\+-|plus or minus)\s*(?=\d)", re.IGNORECASE)
_PLUS_MINUS: Final = re.compile(r"^(?P<value>.+?)\s*(?:±|\+/-|\+-|plus or minus)\s*(?P<margin>.+)$", re.IGNORECASE)
_DOSE: Final = re.compile(  # 500 mg twice a day
    r"^(?P<value>.*\d.*?),? (?P<often>(?:once|twice|thrice|\w+ times|every|each|hourly|daily|weekly|"
    r"bid|tid|qid|[bt]\.i\.d\.).*)$",
    re.IGNORECASE,
)
_ELAPSED: Final = re.compile(
    r"^(?:(?P<hours>\d{1,3}):)?(?P<minutes>\d{1,3}):(?P<seconds>[0-5]\d)"
    r"(?: ?(?:(?P<in_hours>h(?:rs?|ours?)?)|min(?:s|utes?)?))?$",
    re.IGNORECASE,
)
_PERIODS: Final = {
    name: UNITS[unit][1]
    for unit, names in (("second", "second s sec"), ("minute", "minute min"), ("hour", "hour h hr hourly"), ("day",
    "day d daily"),
                        ("week", "week wk weekly pw p.w"),
                        ("month", "month mo monthly pcm p.c.m"), ("quarter", "quarter quarterly"),
                        ("year", "year yr y annum yearly annually annual p.a pa"))
    for name in names.split()
}  # fmt: skip
_RATE: Final = re.compile(
    r"^(?P<value>.*\d.*?)\s*(?:(?:per|/|each|every|an?)\s*"
    r"(?P<period>second|minute|min|hour|hr|h|day|week|month|mo|quarter|year|yr|annum)"
    r"|(?:\bper\s|/)\s*(?P<short>sec|s|d|wk|y)"
    r"|(?P<word>p\.a\.?|pcm|p\.c\.m\.|pw|p\.w\.|yearly|annually|monthly|weekly|daily|quarterly|hourly))$",
    re.IGNORECASE,
)
_CASED: Final = {  # units that differ in the size of a letter only, or that are often written so
    "kN": ("kilonewton",), "MN": ("meganewton",), "nm": ("nanometre", "newton metre"), "mW": ("milliwatt",),
    "MV": ("megavolt",),
    "mHz": ("millihertz",), "mPa": ("millipascal",), "PS": ("metric horsepower",), "MA": ("megaampere",), "Mg": ("tonne",),
}  # fmt: skip
_IN_BRACKETS: Final = re.compile(r"/\(([^()]{1,12})\)")
_RATES: Final = {"length": ("speed", 1.0), "data": ("data rate", 8.0)}  # what a second of it is, and how much
_SHARE_OF: Final = re.compile(
    r"^([\d.,]+\s?(?:%|percent|per cent)) (?:(?:of|in|VAT|tax|interest)\b.{0,40}|[a-z]+)$", re.IGNORECASE
)
_PER: Final = re.compile(
    r"^(?P<value>.*\d.*?)\s*(?:\bper\b|/|\ba(?:n)?\b|\beach\b)\s*(?P<count>\d+ ?)?"
    r"(?P<unit>(?!(?:hundred|thousand|million|dozen)\b)(?:(?:square|cubic|sq|cu)\.? )?[a-z]+[²³23]?)$",
    re.IGNORECASE,
)
_MINUS: Final = re.compile(r"^(?:minus|negative)\s+(?=[\d$€£a-z])", re.IGNORECASE)
_ISO_DURATION: Final = re.compile(
    r"^P(?=[\dT])(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$"
)
_ISO_SIZES: Final = (YEAR, MONTH, 7 * DAY, DAY, 3600.0, 60.0, 1.0)
_COMPONENT: Final = re.compile(r"\d+(?:\.\d+)?\s*[a-z]+", re.IGNORECASE)
_COMPOUND: Final = re.compile(r"^(?:\d+(?:\.\d+)?\s*[a-z]+(?:\s*,\s*|\s+and\s+|\s*)(?=\d|$)){2,4}$", re.IGNORECASE)
_PART: Final = re.compile(
    r"^(?P<part>\d{1,4})\s*(?:(?:[a-z]+\s+)?out of|of|(?:(?:chance|time|case|person|household|customer|patient|user)s?\s+)?in|"
    r"per|/)\s*(?P<whole>[1-9]\d{0,3})$",
    re.IGNORECASE,
)
_TO: Final = re.compile(r"^(?P<part>\d)\s?(?::|to)\s?(?P<whole>[1-9])$")
_FRACTION: Final = "|".join(sorted(FRACTIONS, key=len, reverse=True))
_FRACTION_OF: Final = re.compile(
    rf"^(?P<part>{_FRACTION}) (?:of )?an? (?P<unit>[a-z]+(?: [a-z]+)?)$",
    re.IGNORECASE,
)
_CHANGES: Final = tuple(  # of a share: "down 12 %", "12 % decline"
    (re.compile(pattern, re.IGNORECASE), sign)
    for pattern, sign in (
        (r"^(?:up|rose|grew|gained|growth|rise|increased?)(?:\s+(?:by|of))?\s+(?P<value>.+)$", 1),
        (r"^(?:down|fell|dropped|declined?|decreased?|drop|fall|loss)(?:\s+(?:by|of))?\s+(?P<value>.+)$", -1),
        (r"^(?P<value>.*\d.*?(?:%|percent|points?))\s+(?:up|growth|increase|rise|gain|higher|off|discount|reduction)$", 1),
        (
            rf"^(?P<value>{_FRACTION})\s+(?:up|increase|more|higher|off|discount|reduction)$",
            1,
        ),
        (rf"^(?P<value>{_FRACTION})\s+(?:down|decrease|less|fewer|lower)$", -1),
        (r"^(?P<value>.*\d.*?(?:%|percent|points?))\s+(?:down|decline|decrease|drop|fall|loss|lower|less)$", -1),
    )
)
_NOTHING: Final = re.compile(
    r"^(?:no|zero|nil|without(?: any)?)\s+[a-z]+$|^(?:free|free of charge|nothing|nil)$", re.IGNORECASE
)


def nothing(value: Any) -> tuple[Quantity, ...]:
    """Return the quantity of a text that says there is none of something, "no discount"; none for any other value."""
    return (Quantity(0.0, 0.0, is_whole=True),) if isinstance(value, str) and _NOTHING.match(value.strip()) else ()


def quantities(value: Any) -> tuple[Quantity, ...]:
    """Return every reading of a value as a quantity; none if it is no quantity."""
    if isinstance(value, bool):
        return ()
    if isinstance(value, int | float):
        return (_plain(value),) if math.isfinite(value) else ()
    if isinstance(value, str):
        return _of_text(re.sub(r"\s+", " ", value.strip())) if 0 < len(value) <= LENGTH_MAX else ()
    if isinstance(value, dict):
        return _of_object(value)
    if isinstance(value, list | tuple) and len(value) == 2:
        ends = [quantities(one) for one in value]
        if all(len(one) == 1 and one[0].is_point for one in ends) and ends[0][0].low < ends[1][0].low:
            return (_spanned(ends[0][0], ends[1][0]),)
    return ()


def _plain(value: float) -> Quantity:
    text = repr(value)
    decimals = _decimals(text) if not text.endswith(".0") else 0
    is_whole = float(value).is_integer()
    return Quantity(float(value), float(value), half=0.5 * 10.0**-decimals if not is_whole else 0.5, is_whole=is_whole)


def _spanned(low: Quantity, high: Quantity) -> Quantity:
    return replace(high if high.dimension or high.unit else low, low=low.low, high=high.high, is_whole=False)


def _of_object(value: dict[str, Any]) -> tuple[Quantity, ...]:
    for low, high in (("low", "high"), ("min", "max"), ("lower", "upper"), ("from", "to"), ("minimum", "maximum")):
        if low in value and high in value:
            ends = [quantities(value[low]), quantities(value[high])]
            if all(ends) and ends[0][0].low <= ends[1][0].high:
                return tuple(_with_unit(_spanned(ends[0][0], ends[1][0]), value))
    for name in ("amount", "value", "number"):
        unit = value.get("currency", value.get("unit"))
        if name in value and len(value) <= 3 and (isinstance(unit, str) or len(value) == 1):
            return tuple(read for one in quantities(value[name]) for read in _with_unit(one, value))
    return ()


def _with_unit(found: Quantity, value: dict[str, Any]) -> list[Quantity]:
    unit = str(value.get("currency", value.get("unit", ""))).strip()
    return list(_measured(found, unit)) if unit else [found]


def _of_text(text: str) -> tuple[Quantity, ...]:
    text = _IN_BRACKETS.sub(lambda found: "/" + re.sub(r"[\s·⋅*]", "", found[1]), text)  # W/(m·K)
    text = reworded(text)
    rough = _ROUGH.match(text)
    if rough and rough.end() < len(text):
        return tuple(replace(one, is_rough=True) for one in _of_text(text[rough.end() :].strip()))
    if text.startswith("(") and text.endswith(")") and any(one.isdigit() for one in text):
        return tuple(replace(one, low=-one.low, high=-one.high) for one in _of_text(text[1:-1]) if one.is_point)
    if alone := _MARGIN.match(text):
        return tuple(replace(one, low=-one.high) for one in _of_text(text[alone.end() :]) if one.is_point and one.low >= 0)
    if (found := _PLUS_MINUS.match(text)) and (read := _of_margin(found["value"], found["margin"])):
        return read
    if (found := _RANGE.match(text)) and (read := _of_range(found["low"], found["high"])):
        return read
    for pattern, side in _BOUNDS:
        if found := pattern.match(text):
            inner = _of_text(found["value"].strip())
            return tuple(replace(one, high=INFINITE) if side == "low" else replace(one, low=-INFINITE) for one in inner)
    for pattern, sign in _CHANGES:
        if found := pattern.match(text):
            shares = [one for one in _of_text(found["value"].strip()) if one.dimension == "share"]
            return tuple(replace(one, low=-one.high, high=-one.low) if sign < 0 else one for one in shares)
    if signed := _MINUS.match(text):
        return tuple(replace(one, low=-one.high, high=-one.low) for one in _of_text(text[signed.end() :]))
    if elapsed := _ELAPSED.match(text):
        first, minutes, last = (int(elapsed[name] or 0) for name in ("hours", "minutes", "seconds"))
        sizes = [first * 3600 + minutes * 60 + last] if elapsed["hours"] else [minutes * 60 + last, (minutes * 60 + last) * 60]
        if not elapsed["hours"] and not text[-1].isdigit():  # 1:30 min, 1:30 h
            sizes = sizes[1:] if elapsed["in_hours"] else sizes[:1]
        return tuple(Quantity(size, size, half=0.5, dimension="time") for size in map(float, sizes))
    if (dose := _DOSE.match(text)) and (often := [one for one in _of_text(dose["often"]) if one.period]):
        rate = often[0]
        return tuple(
            replace(one, low=one.low * rate.low, high=one.high * rate.low, period=rate.period, is_whole=False)
            for one in _of_text(dose["value"])
            if not one.period
        )
    if seconds := _iso_seconds(text):
        return (Quantity(seconds, seconds, half=0.5, dimension="time"),)
    if _COMPOUND.match(text) and (read := _of_compound(text)):
        return read
    text = _SHARE_OF.sub(r"\1", text)
    point = _POINT.match(text)
    is_unit = point is not None and point["rest"].strip().lower() in UNITS  # km/h is no rate of kilometres
    if not is_unit and (found := _RATE.match(text)) and (read := _of_text(found["value"].strip())):
        period = _PERIODS.get((found["period"] or found["word"] or found["short"]).lower().rstrip("."), 0.0)
        return tuple(_in_a_period(one, period) for one in read)
    if not is_unit and (found := _PER.match(text)) and (read := _of_text(found["value"].strip())):
        return tuple(_for_each(one, found["unit"].lower(), float(found["count"] or 1)) for one in read)
    if found := _FRACTION_OF.match(text):
        part = _of_text(found["part"])
        return tuple(
            replace(
                one, low=one.low * part[0].low, high=one.low * part[0].low, half=0.05 * one.low * part[0].low, is_whole=False
            )
            for one in _of_text(f"1 {found['unit']}")
            if part
        )
    if found := _PART.match(text) or _TO.match(text):
        share = float(found["part"]) / (float(found["whole"]) or 1.0)
        return (Quantity(share, share, half=0.005, dimension="share", size=0.01),)
    if (spelt := text.lower().replace("-", " ")) in FRACTIONS:
        share = FRACTIONS[spelt]
        return (Quantity(share, share, half=0.005, dimension="share", size=0.01),)
    if found := WORDED.match(text):
        word = (found[1] or found[3]).lower()
        return _of_text(f"{WORDS[word]} {found[2] or ''}".strip())
    if found := _POINT.match(text):
        return _of_point(found)
    return ()


def _in_a_period(found: Quantity, seconds: float) -> Quantity:
    """Return a quantity that is said for a period; a length for a second or an hour is a speed, data are a data rate."""
    if seconds > _PERIODS["hour"] or found.dimension not in _RATES or found.per or found.period:
        return replace(found, period=seconds)
    dimension, size = _RATES[found.dimension]
    return _converted(found, size / seconds, dimension)


def _converted(found: Quantity, times: float, dimension: str) -> Quantity:
    """Return a quantity `times` as large, in the unit of a dimension."""
    low, high, half = found.low * times, found.high * times, found.half * times
    return replace(found, low=low, high=high, half=half, dimension=dimension, size=found.size * times)


def _for_each(found: Quantity, unit: str, count: float) -> Quantity:
    """Return a quantity that is said for each of something: "€1.79 per litre", "5 mmol/l", "$2 per 100 g"."""
    unit = unit.replace(".", "").replace("²", "2").replace("³", "3")
    dimension, size = UNITS.get(unit, (unit.removesuffix("s"), 1.0))
    size *= count or 1.0
    if dimension == "time":
        return _in_a_period(found, size)
    return replace(found, low=found.low / size, high=found.high / size, half=found.half / size, is_whole=False, per=dimension)


def _iso_seconds(text: str) -> float:
    """Return the length of a duration such as PT1H30M; 0 for any other text."""
    found = _ISO_DURATION.match(text)
    return 0.0 if found is None else sum(float(count) * _ISO_SIZES[at] for at, count in enumerate(found.groups()) if count)


def _of_compound(text: str) -> tuple[Quantity, ...]:
    """Return a quantity said in two units or more, such as "1 h 30 min" or "5 ft 11 in"."""
    said = re.sub(r"(?<=\d)(\s*)m(?=\W|\d|$)", r"\1min", text) if re.search(r"\d\s*(?:h|d)", text) else text  # 1h 30m
    said = re.sub(r"(?<=\d)(\s*)st(?=\W|\d)", r"\1stone", said)  # 11 st 6 lb
    parts = [_of_text(one.strip()) for one in _COMPONENT.findall(said)]
    if not all(parts) or any(one[0].dimension not in {"time", "length", "mass"} for one in parts):
        return ()
    last = parts[-1][0]
    if any(one[0].dimension != last.dimension for one in parts):
        return ()
    total = sum(one[0].low for one in parts)
    return (replace(last, low=total, high=total, is_whole=False),)


def _of_margin(value: str, margin: str) -> tuple[Quantity, ...]:
    """Return what a value with a margin spans: 5 ± 0.1 mm, 20 °C ± 2 °C, 100 ± 5 %."""
    said, unit = _POINT.match(margin), _POINT.match(value)
    if said is None or unit is None:
        return ()
    is_share = said["rest"].strip() in {"%", "percent"} and unit["rest"].strip() not in {"%", "percent"}
    shared = "" if is_share or unit["rest"] else said["rest"]
    found: list[Quantity] = []
    for one in _of_text(f"{value} {shared}".strip()):
        wide = next(iter(_numbers(said["number"])), (0.0, 0))[0]
        wide = abs(one.low * wide / 100) if is_share else abs(wide * one.size)
        found.append(replace(one, low=one.low - wide, high=one.high + wide))
    return tuple(found)


def _of_range(low_text: str, high_text: str) -> tuple[Quantity, ...]:
    if _RANGE.match(high_text.strip()):
        return ()  # "1 to 2 to 3": each reading would be read twice again
    highs = _of_text(high_text.strip())
    lows = _of_text(low_text.strip())
    point = _POINT.match(high_text.strip())
    if (
        point
        and point["rest"]
        and not any(map(str.isdigit, point["rest"]))
        and all(not one.dimension and not one.unit and one.size == 1.0 for one in lows)
    ):
        lows = (*_of_text(f"{low_text.strip()} {point['rest']}"), *lows)  # 2 to 8 °C
    for high in highs:
        for low in lows:
            if not low.is_point or not high.is_point:
                continue
            if low.dimension == "money" and not high.dimension and not high.unit and low.low <= high.low:
                first = low.low * (high.size if low.size == 1.0 else 1.0)
                return (replace(low, low=first, high=high.low, size=high.size, is_whole=False),)  # $20-30, $1.2-1.4 million
            scale = high.size if low.dimension == "money" and low.size == 1.0 else 1.0
            if low.low * scale <= high.low and (low.dimension, low.unit) in {(high.dimension, high.unit), ("", "")}:
                return (replace(high, low=low.low * scale, is_whole=False),)
    return ()


def _of_point(found: re.Match[str]) -> tuple[Quantity, ...]:
    sign, money, raw, rest = found["sign"] or "", found["money"] or "", found["number"], found["rest"].strip()
    if money and money.upper() not in CURRENCIES and money.lower() not in SIGNS:
        return ()
    readings: list[Quantity] = []
    for number, decimals in _numbers(sign + raw):
        start = Quantity(number, number, half=0.5 * 10.0**-decimals, is_whole=float(number).is_integer() and not decimals)
        for scaled, left in _scaled(start, rest):
            if money:
                if not left or left.lower() in {"per year", "p.a."} or _BESIDES.match(left):
                    readings += _measured(scaled, money)
                elif left.upper() in CURRENCIES:  # kr 500 NOK
                    readings += _measured(scaled, left)
            else:
                readings += _measured(scaled, left) if left else [scaled]
        if rest == "K" and not money:
            readings.append(_in_unit(start, "kelvin", *UNITS["kelvin"]))
    return tuple(readings)


def _numbers(text: str) -> list[tuple[float, int]]:
    """Return each reading of the digits, with its decimals: `1.234` may be a thousand."""
    bare = re.sub(r"[\s'’  ]", "", text).replace("−", "-")
    comma, dot = bare.count(","), bare.count(".")
    if comma and dot:
        is_comma_last = bare.rfind(",") > bare.rfind(".")
        bare = bare.replace(".", "").replace(",", ".") if is_comma_last else bare.replace(",", "")
    elif comma:
        whole, _, last = bare.rpartition(",")
        bare = bare.replace(",", "") if comma > 1 or (len(last) == 3 and whole.lstrip("+-") != "0") else f"{whole}.{last}"
    elif dot > 1:
        bare = bare.replace(".", "")
    try:
        number = float(bare)
    except ValueError:
        return []
    decimals = _decimals(bare)
    readings = [(number, decimals)]
    if dot == 1 and not comma and decimals == 3 and abs(number) >= 1:
        readings.append((float(bare.replace(".", "")), 0))
    return readings


def _decimals(number: str) -> int:
    """Return how many digits stand behind the point; 3.4e-3 has four of them."""
    digits, _, exponent = number.lower().partition("e")
    return max(len(digits.partition(".")[2]) - int(exponent or 0), 0)


def _scaled(start: Quantity, rest: str) -> list[tuple[Quantity, str]]:
    """Return the number with what follows it, read as a scale and not."""
    word, _, left = rest.partition(" ")
    if not word:
        return [(start, "")]
    readings = []
    scale = SCALES.get(word.lower().rstrip("."))
    if scale:
        is_whole = (start.low * scale).is_integer()
        half = start.half * (1.0 if word.lower().startswith("dozen") else scale)  # a dozen is twelve, not about twelve
        scaled = replace(start, low=start.low * scale, high=start.high * scale, half=half, size=scale, is_whole=is_whole)
        readings.append((scaled, left.strip()))
    if not scale or (word.lower() in UNITS and word != word.upper()):
        readings.append((start, rest))
    return readings


def _measured(found: Quantity, unit: str) -> tuple[Quantity, ...]:
    """Return a number in a unit or a currency, in both where a word is either; of an unknown unit the word is kept."""
    spelt = re.sub(r"\s+", " ", unit.strip().lower()).rstrip(".") if unit != "°" else unit
    spelt = re.sub(r"^(?:of|in)\s+", "", spelt)
    if bits := re.fullmatch(r"([KMGT])(b)(?:ps|/s)|([KMGT])(b|B)(?:/s|ps)?", unit.strip()):
        rate = "/s" if unit.strip()[-1] == "s" else ""
        spelt = f"{unit.strip()[0].lower()}{'bit' if 'b' in bits.groups() else 'b'}{rate}"
    if cased := _CASED.get(unit.strip()):
        return tuple(_in_unit(found, name, *UNITS[name]) for name in cased)
    readings: list[Quantity] = []
    if code := spelt.upper() if spelt.upper() in CURRENCIES else SIGNS.get(spelt):
        readings += [replace(found, dimension="money", unit=one) for one in SHARED_SIGNS.get(spelt, (code,))]
    cents = replace(found, low=found.low / 100, high=found.high / 100, half=found.half / 100, dimension="money")
    readings += [replace(cents, unit=code) for code in CENTS.get(spelt, ())]
    if known := UNITS.get(spelt) or UNITS.get(spelt.replace("²", "2")):
        readings.append(_in_unit(found, spelt, *known))
    if readings:
        return tuple(readings)
    word, _, rest = spelt.partition(" ")
    if _BESIDES.match(rest) and (word in UNITS or word in SIGNS or word.upper() in CURRENCIES):
        return _measured(found, word)
    if spelt in _ANYTHING:
        return (found,)
    if spelt in DEGREES:  # of a temperature on either scale, or of an angle
        readings = [_in_unit(found, scale, *UNITS[scale]) for scale in ("celsius", "fahrenheit")]
        return (*readings, replace(found, unit="degrees"))
    return (replace(found, unit=spelt),) if len(spelt.split()) <= 3 and not re.search(r"[\d,]", spelt) else ()


def _in_unit(found: Quantity, spelt: str, dimension: str, size: float) -> Quantity:
    if dimension == "temperature":
        low, high = to_kelvin(found.low, spelt), to_kelvin(found.high, spelt)
        return replace(found, low=low, high=high, half=found.half * size, dimension=dimension, size=size)
    if dimension == "consumption" and found.low > 0:  # 5 l/100 km is 20 km with a litre
        low, high = 1e5 / found.high, 1e5 / found.low
        return replace(
            found, low=low, high=high, half=found.half * low / found.high, dimension="length", per="volume", is_whole=False
        )
    return _converted(found, size, dimension)
