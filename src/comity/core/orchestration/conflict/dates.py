"""Dates as intervals: a day, a month, a quarter, a year, an instant. Two dates agree where their intervals meet."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

Interval = tuple[datetime, datetime]  # from, and up to but not including

_MONTHS: Final = {
    name: at + 1
    for at, names in enumerate(
        ("jan january", "feb february", "mar march", "apr april", "may", "jun june", "jul july", "aug august",
         "sep sept september", "oct october", "nov november", "dec december")
    )
    for name in names.split()
}  # fmt: skip
_MONTH: Final = "|".join(sorted(_MONTHS, key=len, reverse=True))
_YEAR: Final = r"(?P<year>(?:19|20|21)\d\d)"
_MONTHS_FROM: Final = re.compile(
    rf"^(?P<from>{_MONTH})\.? ?(?:to|-|–|until|through) ?(?P<to>{_MONTH})\.?,? {_YEAR}$", re.IGNORECASE
)
_ISO: Final = re.compile(
    rf"^{_YEAR}-(?P<month>\d\d)-(?P<day>\d\d)"
    r"(?:[T ](?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.\d+)?)?\s*(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d)?)?$"
)
_PATTERNS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"^{_YEAR}-(?P<month>\d\d)$",
        rf"^{_YEAR}$",
        rf"^(?:Q(?P<quarter>[1-4])[ -/]*(?:of )?{_YEAR})$",
        rf"^{_YEAR}[ -/]*Q(?P<quarter>[1-4])$",
        rf"^(?:H(?P<half>[12])[ -/]*{_YEAR})$",
        rf"^{_YEAR}[ -/]*H(?P<half>[12])$",
        rf"^(?P<word>{_MONTH})\.?,? {_YEAR}$",
        rf"^(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\.? (?:of )?(?P<word>{_MONTH})\.?,? {_YEAR}$",
        rf"^(?P<word>{_MONTH})\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?,? {_YEAR}$",
        rf"^{_YEAR}/(?P<month>\d{{1,2}})/(?P<day>\d{{1,2}})$",
        rf"^(?P<day>\d{{1,2}})\.(?P<month>\d{{1,2}})\.{_YEAR}$",
        rf"^(?P<season>early|mid|late|(?:the )?(?:beginning|start|middle|end) of|year[- ]end)[ -]?{_YEAR}$",
        rf"^(?P<weather>spring|summer|autumn|fall|winter)(?: of)?,? {_YEAR}$",
        rf"^(?P<third>early|mid|late|(?:the )?(?:beginning|start|middle|end) of)[ -]?(?P<word>{_MONTH})\.?,? {_YEAR}$",
        rf"^(?P<first>\d{{1,2}})[/-](?P<other>\d{{1,2}})[/-]{_YEAR}$",
    )
)
_CLOCK: Final = re.compile(
    r"^(?P<hour>\d{1,2})(?:[:.h](?P<minute>\d\d))?(?::\d\d)?\s*(?P<half>am|pm|a\.m\.|p\.m\.)?(?:\s*o'clock)?$", re.IGNORECASE
)
_HOURS: Final = {"noon": 720, "midday": 720, "12 noon": 720, "midnight": 0}
_NUMERALS: Final = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_SPOKEN: Final = re.compile(rf"^(?:a )?(?P<part>half past|quarter past|quarter to) (?P<hour>\d{{1,2}}|{'|'.join(_NUMERALS)})$")
_TIMED: Final = re.compile(
    r"^(?P<day>.*\d{4}),?\s+(?:at\s+)?(?P<clock>\d{1,2}(?:[:.]\d\d)?\s*(?:am|pm)?|noon|midnight)$", re.IGNORECASE
)
_WEEKDAY: Final = re.compile(r"^(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?,? ", re.IGNORECASE)
_SHORT_YEAR: Final = re.compile(r"\bfy ?['’]?(?=\d\d$)", re.IGNORECASE)  # FY25
_UNTIL: Final = re.compile(
    r"^(?:(?:valid|effective|due)\s+)?(?:until|till|by|on|from|since|as of|due|before)\s+(?=.*\d{4})", re.IGNORECASE
)
_FISCAL: Final = re.compile(r"\b(?:fy|(?:fiscal|financial|calendar) year|^year) ?(?=(?:19|20|21)\d\d\b)", re.IGNORECASE)
_ZONES: Final = {
    "WET": "+00:00", "BST": "+01:00", "CET": "+01:00", "CEST": "+02:00", "EET": "+02:00", "EEST": "+03:00", "IST": "+05:30",
    "JST": "+09:00", "EST": "-05:00", "EDT": "-04:00", "CST": "-06:00", "CDT": "-05:00", "MST": "-07:00", "MDT": "-06:00",
    "PST": "-08:00", "PDT": "-07:00",
}  # fmt: skip
_ZONE: Final = re.compile(rf"(?<=\d)\s*({'|'.join(_ZONES)})$")
_ORDINAL: Final = re.compile(
    r"^(?:the )?(?P<which>first|second|third|fourth|1st|2nd|3rd|4th)[ -](?P<part>half|quarter)(?: of|,)? ", re.IGNORECASE
)
# By the first letters: early, beginning, start, mid, late, end, year-end; wide, as such words are meant.
_SEASONS: Final = {"ear": (1, 4), "beg": (1, 4), "sta": (1, 4), "mid": (4, 6), "lat": (9, 4), "end": (10, 3), "yea": (12, 1)}
_THIRDS: Final = {
    "ear": (0, 12),
    "beg": (0, 12),
    "sta": (0, 12),
    "mid": (8, 14),
    "lat": (18, 14),
    "end": (20, 12),
}  # days of a month
_FAR: Final = timedelta(hours=14)  # a time without a zone may be this much earlier or later


def month(value: Any) -> int | None:
    """Return the number of a month that stands alone, by name or number; None for anything else."""
    word = str(value).strip(" .").casefold()
    number = int(word) if word.isascii() and word.isdigit() and len(word) <= 2 else _MONTHS.get(word, 0)
    return number if 1 <= number <= 12 else None


def intervals(value: Any) -> tuple[Interval, ...]:
    """Return every reading of a text as a date; none if it is no date."""
    if not isinstance(value, str) or not 4 <= len(value) <= 40:
        return ()
    text = _ORDINAL.sub(
        _as_number,
        _FISCAL.sub(
            "",
            _SHORT_YEAR.sub("20", _ZONE.sub(lambda found: _ZONES[found[1]], _WEEKDAY.sub("", _UNTIL.sub("", value.strip())))),
        ),
    )
    try:
        if found := _ISO.match(text):
            return (_of_iso(found),)
        for pattern in _PATTERNS:
            if found := pattern.match(text):
                return _of_parts(found.groupdict())
        if span := _MONTHS_FROM.match(text):
            first, last = (_MONTHS[span[name].lower()] for name in ("from", "to"))
            return (_months(int(span["year"]), first, last - first + 1),) if first <= last else ()
        if (timed := _TIMED.match(text)) and (clock := minutes(timed["clock"])):
            return tuple(
                (start + timedelta(minutes=at) - _FAR, start + timedelta(minutes=at + 1) + _FAR)
                for start, _ in intervals(timed["day"])
                for at in clock
            )
    except ValueError:  # the 31st of February
        return ()
    return ()


def _as_number(found: re.Match[str]) -> str:
    """Return "first half of" as `H1`, "third quarter of" as `Q3`."""
    which = found["which"].lower()
    number = which[0] if which[0].isdigit() else str(("first", "second", "third", "fourth").index(which) + 1)
    return f"{found['part'][0].upper()}{number} ".replace("H3", "").replace("H4", "")


def minutes(value: Any) -> frozenset[int]:
    """Return the times of day, in minutes, that a text can mean: "half past eight" has two; none if it is no time."""
    text = value.strip().lower() if isinstance(value, str) else ""
    if text in _HOURS:
        return frozenset({_HOURS[text]})
    if spoken := _SPOKEN.match(text):
        hour = int(spoken["hour"]) if spoken["hour"].isdigit() else _NUMERALS.index(spoken["hour"]) + 1
        said = hour * 60 + {"half past": 30, "quarter past": 15, "quarter to": -15}[spoken["part"]]
        return frozenset({said % 1440, (said + 720) % 1440})
    found = _CLOCK.match(text)
    if found is None or (found["minute"] is None and found["half"] is None):
        return frozenset()
    hour = int(found["hour"])
    if found["half"]:
        hour = hour % 12 + (12 if found["half"].startswith("p") else 0)
    return frozenset({hour * 60 + int(found["minute"] or 0)})


def _of_iso(found: re.Match[str]) -> Interval:
    day = datetime(int(found["year"]), int(found["month"]), int(found["day"]), tzinfo=UTC)
    if found["hour"] is None:
        return day, day + timedelta(days=1)
    start = day + timedelta(hours=int(found["hour"]), minutes=int(found["minute"]), seconds=int(found["second"] or 0))
    end = start + (timedelta(seconds=1) if found["second"] else timedelta(minutes=1))
    zone = found["zone"]
    if zone is None:
        return start - _FAR, end + _FAR
    if zone[0] in "+-":
        digits = zone[1:].replace(":", "")
        ahead = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
        shift = -ahead if zone[0] == "+" else ahead
        return start + shift, end + shift
    return start, end


def _of_parts(parts: dict[str, str | None]) -> tuple[Interval, ...]:
    year = int(parts["year"] or 0)
    if parts.get("first"):
        first, other = int(parts["first"] or 0), int(parts["other"] or 0)
        pairs = {(month, day) for month, day in ((first, other), (other, first)) if month <= 12}
        return tuple(_days(year, month, day) for month, day in sorted(pairs))
    if weather := parts.get("weather"):
        first = {"sp": 3, "su": 6, "au": 9, "fa": 9, "wi": 12}[weather[:2].lower()]
        return (_months(year, first, 3), *([_months(year - 1, first, 3)] if first == 12 else []))
    if season := parts.get("season"):
        word = season.lower().removeprefix("the ")
        begin, count = _SEASONS[word[:3]]
        return (_months(year, begin, count),)
    if quarter := parts.get("quarter"):
        return (_months(year, 3 * int(quarter) - 2, 3),)
    if half := parts.get("half"):
        return (_months(year, 6 * int(half) - 5, 6),)
    month = _MONTHS.get((parts.get("word") or "").lower()) or int(parts.get("month") or 0)
    if not month:
        return (_months(year, 1, 12),)
    if third := parts.get("third"):
        begin, count = _THIRDS[third.lower().removeprefix("the ")[:3]]
        start, end = _months(year, month, 1)
        return ((start + timedelta(days=begin), min(end, start + timedelta(days=begin + count))),)
    if day := parts.get("day"):
        return (_days(year, month, int(day)),)
    return (_months(year, month, 1),)


def _days(year: int, month: int, day: int) -> Interval:
    start = datetime(year, month, day, tzinfo=UTC)
    return start, start + timedelta(days=1)


def _months(year: int, month: int, count: int) -> Interval:
    end = year * 12 + month - 1 + count
    return datetime(year, month, 1, tzinfo=UTC), datetime(end // 12, end % 12 + 1, 1, tzinfo=UTC)


def meet(left: tuple[Interval, ...], right: tuple[Interval, ...]) -> bool:
    """Return whether a reading of one date meets a reading of the other."""
    return any(one[0] < other[1] and other[0] < one[1] for one in left for other in right)
