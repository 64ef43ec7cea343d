"""Dates as intervals: a day, a month, a quarter, a year, an instant. Two dates agree where their intervals meet."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from comity.core.orchestration.conflict.clock import clock, zone
from comity.core.orchestration.conflict.periods import MONTH, MONTHS, written


class Interval(NamedTuple):
    """From when, and up to but not including when; for a time of day, whether it says its zone."""

    start: datetime
    end: datetime
    has_zone: bool | None = None


_YEAR: Final = r"(?P<year>(?:19|20|21)\d\d)"
_WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_NAMED_DAY: Final = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_NTHS: Final = "first|second|third|fourth|last|1st|2nd|3rd|4th"
_NTH: Final = {"fir": 0, "1st": 0, "sec": 1, "2nd": 1, "thi": 2, "3rd": 2, "fou": 3, "4th": 3}
_PART: Final = r"early|mid|late|(?:the )?(?:beginning|start|middle|end) of"
_PATTERNS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"^{_YEAR}-(?P<month>\d\d)-(?P<day>\d\d)$",
        rf"^{_YEAR}-(?P<month>0[1-9]|1[0-2])$",
        rf"^{_YEAR}$",
        rf"^(?:Q(?P<quarter>[1-4])[ -/]*(?:of )?{_YEAR})$",
        rf"^{_YEAR}[ -/]*Q(?P<quarter>[1-4])$",
        rf"^(?:H(?P<half>[12])[ -/]*(?:of )?{_YEAR})$",
        rf"^{_YEAR}[ -/]*H(?P<half>[12])$",
        rf"^(?P<word>{MONTH})\.?,?[ -/]?{_YEAR}$",
        rf"^(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\.?[ -/]?(?:of )?(?P<word>{MONTH})\.?,?[ -/]?{_YEAR}$",
        rf"^(?P<word>{MONTH})\.? (?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,? {_YEAR}$",
        rf"^{_YEAR}[ -/](?P<word>{MONTH})[ -/](?P<day>\d{{1,2}})$",
        rf"^{_YEAR}[/.](?P<month>\d{{1,2}})[/.](?P<day>\d{{1,2}})$",
        rf"^(?P<day>\d{{1,2}})\.\s?(?P<month>\d{{1,2}})\.\s?{_YEAR}$",
        rf"^(?P<month>0?[1-9]|1[0-2])[/.-]{_YEAR}$",
        rf"^(?P<season>{_PART}|year[- ]end)[ -]?(?:(?:the )?year )?{_YEAR}$",
        rf"^(?P<weather>spring|summer|autumn|fall|winter)(?: of)?,? {_YEAR}(?:/\d\d)?$",
        rf"^(?P<third>{_PART})[ -]?(?P<word>{MONTH})\.?,? {_YEAR}$",
        rf"^(?P<third>{_PART})[ -]?Q(?P<quarter>[1-4])[ -/]*{_YEAR}$",
        rf"^(?P<first>\d{{1,2}})[/-](?P<other>\d{{1,2}})[/-]{_YEAR}$",
        rf"^{_YEAR}-?W(?P<week>\d\d?)(?:-(?P<weekday>[1-7]))?$",
        rf"^(?:calendar )?(?:week|CW|KW) ?(?P<week>\d\d?)(?: of|,|/)? ?{_YEAR}$",
        rf"^(?:the )?(?P<nth>{_NTHS}) (?P<named>{_NAMED_DAY}) (?:in|of) (?P<word>{MONTH})\.?,? {_YEAR}$",
        rf"^(?:the )?(?P<nth>{_NTHS}|final) (?P<piece>week|half|third) (?:in|of) (?P<word>{MONTH})\.?,? {_YEAR}$",
        rf"^{_YEAR}-(?P<of_year>[0-3]\d\d)$",
        rf"^(?:the )?week (?:of|commencing|beginning|starting|from) (?P<inside>.+{_YEAR})$",
        rf"^{_YEAR}[/-](?:20)?(?P<next>\d\d)$",
    )
)
_MONTHS_FROM: Final = re.compile(
    rf"^(?P<from>{MONTH})\.? ?(?:to|-|–|until|through) ?(?P<to>{MONTH})\.?,? {_YEAR}$", re.IGNORECASE
)
_TIME: Final = r"\d{1,2}(?:[:.]\d\d(?P<second>:\d\d(?:\.\d+)?)?)?\s*(?:[ap]\.?m\.?)?|noon|midday|midnight"
_TIMED: Final = re.compile(rf"^(?P<day>.*\b\d{{4}}|\d{{4}}-\d\d-\d\d)(?:T|,?\s+(?:at\s+)?)(?P<clock>{_TIME})$", re.IGNORECASE)
_TIME_FIRST: Final = re.compile(
    rf"^(?P<clock>{_TIME})(?P<zone>\s+(?!on\b)[a-z]{{2,4}})?(?:,\s*|\s+on\s+|\s+)(?P<day>.*\d{{4}}.*)$", re.IGNORECASE
)
_DECADE: Final = re.compile(
    r"^(?:in )?(?:the )?(?P<part>early|mid|late)?(?: to late)?[- ]?(?:the )?"
    r"(?:(?P<decade>(?:1[5-9]|20)\d0)['’]?s|(?P<century>1\d|2[01])(?:st|nd|rd|th)[- ]century)$",
    re.IGNORECASE,
)
_TENTHS: Final = {"": (0, 10), "early": (0, 4), "mid": (3, 7), "late": (6, 10)}  # of a decade or a century
_FULL_DAY: Final = re.compile(
    rf"\b(?:\d{{4}}-\d\d-\d\d|\d{{1,2}}(?:st|nd|rd|th)? (?:of )?(?:{MONTH})\.?,? (?:19|20|21)\d\d|"
    rf"(?:{MONTH})\.? \d{{1,2}}(?:st|nd|rd|th)?,? (?:19|20|21)\d\d)\b",
    re.IGNORECASE,
)
LENGTH_MIN: Final = 12  # characters of a text that has more than a day in it
TEXT_MAX: Final = 200
LENGTH_MAX: Final = 45  # characters of a date
_DATED: Final = re.compile(
    rf"\b(?:{MONTH}|[qh][1-4]|early|mid|late|beginning|start|middle|end|spring|summer|autumn|fall|winter|half|quarter|week|cw|kw)",
    re.IGNORECASE,
)
_TWO_FIGURES: Final = re.compile(r"\d\d")
_HAS_YEAR: Final = re.compile(r"(?:19|20|21)\d\d")
_HAS_TIME: Final = re.compile(r"\d:\d\d|\d\s*[ap]\.?m\b|\b(?:noon|midday|midnight)\b", re.IGNORECASE)
_WEEKDAY: Final = re.compile(r"^(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?,? (?:the )?", re.IGNORECASE)
_TWO_DIGITS: Final = re.compile(  # FY25, Q2 '25, 03.04.25, 3-Apr-25, Apr '25
    rf"(?P<before>^fy ?|^[qh][1-4][ /-]?|^\d{{1,2}}[./-]\d{{1,2}}[./-]|^\d{{1,2}}[ -](?:{MONTH})[ -]|"
    rf"^(?:{MONTH})-|['’])['’]?(?P<year>\d\d)$",
    re.IGNORECASE,
)
_THE: Final = re.compile(r"^the (?=\d)", re.IGNORECASE)
_TWO_YEARS: Final = re.compile(r"^fy ?['’]?(\d\d)(?=[/-]\d\d$)", re.IGNORECASE)  # FY24/25
_UNTIL: Final = re.compile(
    r"^(?:(?:valid|effective|due|expires|expiring|ends|ending|starts|starting|begins|beginning|published|released)"
    r"\s+)?(?:best before|use by|(?:by\s+)?(?:cob|eod|close of business|end of (?:the )?day)(?:\s+on)?"
    r"|until|till|by|on|in|during|from|since|as of|due|before|no later than)\s+(?=.*\d{2})",
    re.IGNORECASE,
)
_FISCAL: Final = re.compile(r"\b(?:fy|(?:fiscal|financial|calendar)(?: year)?|^year) ?(?=(?:19|20|21)\d\d\b)", re.IGNORECASE)
_ORDINAL: Final = re.compile(
    r"(?:\bthe )?\b(?P<which>first|second|third|fourth|1st|2nd|3rd|4th|last|final)[ -](?P<part>half|quarter)"
    rf"(?!(?: of|,)? (?:{MONTH})\b)(?: of|,)? ",
    re.IGNORECASE,
)
# By the first letters: early, beginning, start, mid, late, end, year-end; wide, as such words are meant.
_SEASONS: Final = {"ear": (1, 4), "beg": (1, 4), "sta": (1, 4), "mid": (4, 6), "lat": (9, 4), "end": (10, 3), "yea": (12, 1)}
_THIRDS: Final = {"ear": (0, 12), "beg": (0, 12), "sta": (0, 12), "mid": (8, 14), "lat": (18, 14), "end": (20, 12)}  # days
_FAR: Final = timedelta(hours=14)  # a time without a zone may be this much earlier or later than one with a zone


def month(value: Any) -> int | None:
    """Return the number of a month that stands alone, by name or number; None for anything else."""
    word = str(value).strip(" .").casefold()
    number = int(word) if word.isascii() and word.isdigit() and len(word) <= 2 else MONTHS.get(word, 0)
    return number if 1 <= number <= 12 else None


def intervals_of_both(left: Any, right: Any) -> tuple[tuple[Interval, ...], tuple[Interval, ...]]:
    """Return every reading of two values as dates; a value that names no year is in the other's."""
    one, other = intervals(left), intervals(right)
    if one and not other:
        return one, _beside(right, one)
    if other and not one:
        return _beside(left, other), other
    if not one and isinstance(left, str) and isinstance(right, str):
        return _in_year(left, 2024), _in_year(right, 2024)  # a leap year
    return one, other


def _beside(value: Any, dates: tuple[Interval, ...]) -> tuple[Interval, ...]:
    """Return the readings of a value that is a date only beside another: 20250403, seconds since 1970, "3 April"."""
    text = str(value).strip() if isinstance(value, int | str) and not isinstance(value, bool) else ""
    if re.fullmatch(r"(?:19|20)\d{6}", text):
        return intervals(f"{text[:4]}-{text[4:6]}-{text[6:]}")
    if re.fullmatch(r"1\d{9}(?:\d{3})?", text):
        instant = datetime.fromtimestamp(int(text[:10]), UTC)
        return (Interval(instant, instant + timedelta(seconds=1), True),)
    if re.fullmatch(r"1[0-8]\d\d", text):
        return (_months(int(text), 1, 12),)
    years = {year for one in dates for year in (one.start.year, (one.end - timedelta(seconds=1)).year)}
    return tuple(read for year in sorted(years) for read in _in_year(text, year))


def _in_year(text: str, year: int) -> tuple[Interval, ...]:
    """Return the readings of a text that names a day, a month or a quarter, but no year."""
    if len(text) > LENGTH_MAX or not _DATED.search(text):
        return ()
    dated = f"{text.strip()} {year}"
    return intervals(dated) if _plain(dated) != str(year) else ()


def intervals(value: Any) -> tuple[Interval, ...]:
    """Return every reading of a text as a date; none if it is no date."""
    if not isinstance(value, str) or not 4 <= len(value) <= LENGTH_MAX:
        return ()
    if not _TWO_FIGURES.search(value):
        return ()
    if decade := _DECADE.match(value.strip()):
        return (_decade(decade),)
    text = _plain(value)
    if not _HAS_YEAR.search(text):
        return ()
    try:
        if _HAS_TIME.search(text) and (read := _timed(text)):
            return read
        for pattern in _PATTERNS:
            if found := pattern.match(text):
                return _of_parts(found.groupdict())
        if span := _MONTHS_FROM.match(text):
            first, last = (MONTHS[span[name].lower()] for name in ("from", "to"))
            return (_months(int(span["year"]), first, last - first + 1),) if first <= last else ()
    except (ValueError, OverflowError):  # the 31st of February
        return ()
    return ()


def embedded(value: Any) -> tuple[Interval, ...]:
    """Return the readings of the one day that a longer text names in full, "expected by 3 May 2027 at the latest"; or none."""
    found = set(_FULL_DAY.findall(value)) if isinstance(value, str) and LENGTH_MIN <= len(value) <= TEXT_MAX else set()
    return intervals(found.pop()) if len(found) == 1 else ()


def _plain(value: str) -> str:
    """Return the text of a date without its weekday and what stands before it, its year in four digits."""
    text = written(_THE.sub("", _WEEKDAY.sub("", _UNTIL.sub("", value.strip()))))
    text = _TWO_YEARS.sub(r"20\1", _TWO_DIGITS.sub(r"\g<before>20\g<year>", text)).replace("'20", " 20").replace("’20", " 20")
    return _ORDINAL.sub(_as_number, _FISCAL.sub("", re.sub(r"\s+", " ", text)))


def _timed(text: str) -> tuple[Interval, ...]:
    """Return every reading of a day with a time of day, before or behind it."""
    said, ahead = zone(text)
    found = _TIMED.match(said)
    if found is None and (found := _TIME_FIRST.match(said)) and found["zone"]:
        rest, ahead = zone(f"{found['clock']}{found['zone']}")
        found = found if rest == found["clock"] else None
    at = clock(found["clock"]) if found else None
    if found is None or at is None:
        return ()
    lasts = timedelta(seconds=1) if found["second"] else timedelta(minutes=1)
    seconds = float(found["second"][1:]) if found["second"] else 0.0
    return tuple(
        Interval(start, start + lasts, bool(ahead))
        for day in intervals(found["day"])
        for minute in at.minutes
        for shift in ahead or (0,)
        for start in [day.start + timedelta(minutes=minute - shift, seconds=seconds)]
    )


def _as_number(found: re.Match[str]) -> str:
    """Return "first half of" as `H1`, "third quarter of" as `Q3`."""
    which = found["which"].lower()
    if which in {"last", "final"}:
        which = "2" if found["part"].lower() == "half" else "4"
    number = which[0] if which[0].isdigit() else str(("first", "second", "third", "fourth").index(which) + 1)
    return f"{found['part'][0].upper()}{number} ".replace("H3", "").replace("H4", "").replace("h", "H").replace("q", "Q")


def _of_parts(parts: dict[str, str | None]) -> tuple[Interval, ...]:
    year = int(parts["year"] or 0)
    if parts.get("first"):
        first, other = int(parts["first"] or 0), int(parts["other"] or 0)
        pairs = {(month, day) for month, day in ((first, other), (other, first)) if month <= 12}
        return tuple(_days(year, month, day) for month, day in sorted(pairs))
    if weather := parts.get("weather"):
        first = {"sp": 3, "su": 6, "au": 9, "fa": 9, "wi": 12}[weather[:2].lower()]
        return (_months(year, first, 3), *([_months(year - 1, first, 3)] if first == 12 else []))  # winter is of two years
    if week := parts.get("week"):
        start = datetime.fromisocalendar(year, int(week), int(parts.get("weekday") or 1)).replace(tzinfo=UTC)
        return (Interval(start, start + timedelta(days=1 if parts.get("weekday") else 7)),)
    if inside := parts.get("inside"):
        return tuple(
            Interval(monday, monday + timedelta(days=7)) for one in intervals(inside) for monday in [_monday(one.start)]
        )
    if of_year := parts.get("of_year"):
        start = datetime(year, 1, 1, tzinfo=UTC) + timedelta(days=int(of_year) - 1)
        return (Interval(start, start + timedelta(days=1)),) if start.year == year else ()
    if following := parts.get("next"):  # a business year from one into the next
        return (_months(year, 7, 12),) if int(following) == (year + 1) % 100 else ()
    if season := parts.get("season"):
        begin, count = _SEASONS[season.lower().removeprefix("the ")[:3]]
        return (_months(year, begin, count),)
    third = (parts.get("third") or "").lower().removeprefix("the ")[:3]
    if quarter := parts.get("quarter"):
        first = 3 * int(quarter) - 2
        return (_months(year, first + {"mid": 1, "lat": 2, "end": 2}.get(third, 0), 1 if third else 3),)
    if half := parts.get("half"):
        return (_months(year, 6 * int(half) - 5, 6),)
    month = MONTHS.get((parts.get("word") or "").lower()) or int(parts.get("month") or 0)
    if not month:
        return (_months(year, 1, 12),)
    if piece := parts.get("piece"):
        return _pieces(_months(year, month, 1), (parts.get("nth") or "").lower()[:3], piece.lower())
    if nth := parts.get("nth"):
        return (_nth(_months(year, month, 1), nth.lower()[:3], (parts.get("named") or "").lower()[:3]),)
    if third:
        begin, count = _THIRDS[third]
        whole = _months(year, month, 1)
        start = whole.start + timedelta(days=begin)
        return (Interval(start, min(whole.end, start + timedelta(days=count))),)
    if day := parts.get("day"):
        return (_days(year, month, int(day)),)
    return (_months(year, month, 1),)


def _decade(found: re.Match[str]) -> Interval:
    """Return the years of a decade or a century, or of its early, middle or late part."""
    start, years = (int(found["decade"]), 1) if found["decade"] else (100 * int(found["century"]) - 100, 10)
    first, last = _TENTHS[(found["part"] or "").lower()]
    return Interval(datetime(start + first * years, 1, 1, tzinfo=UTC), datetime(start + last * years, 1, 1, tzinfo=UTC))


def _monday(day: datetime) -> datetime:
    return day - timedelta(days=day.weekday())


def _nth(month: Interval, which: str, weekday: str) -> Interval:
    """Return a day such as the first Monday of a month."""
    start = month.start + timedelta(days=(_WEEKDAYS.index(weekday) - month.start.weekday()) % 7)
    if which == "las":
        start += timedelta(days=7 * ((month.end - start - timedelta(days=1)).days // 7))
    else:
        start += timedelta(days=7 * _NTH[which])
    return Interval(start, start + timedelta(days=1))


def _pieces(month: Interval, which: str, piece: str) -> tuple[Interval, ...]:
    """Return the first, second … week, half or third of a month; "the last" is at its end."""
    days = {"week": 7, "half": 15, "third": 10}[piece]
    if which in {"las", "fin"} or (piece == "half" and which in {"sec", "2nd"}):
        return (Interval(month.end - timedelta(days=days + 1 if piece == "half" else days), month.end),)
    start = month.start + timedelta(days=days * _NTH[which])
    return (Interval(start, min(month.end, start + timedelta(days=days))),) if start < month.end else ()


def _days(year: int, month: int, day: int) -> Interval:
    start = datetime(year, month, day, tzinfo=UTC)
    return Interval(start, start + timedelta(days=1))


def _months(year: int, month: int, count: int) -> Interval:
    end = year * 12 + month - 1 + count
    return Interval(datetime(year, month, 1, tzinfo=UTC), datetime(end // 12, end % 12 + 1, 1, tzinfo=UTC))


def meet(left: tuple[Interval, ...], right: tuple[Interval, ...]) -> bool:
    """Return whether a reading of one date meets a reading of the other."""
    return any(_meets(one, other) for one in left for other in right)


def _meets(one: Interval, other: Interval) -> bool:
    is_one_in_a_zone = {one.has_zone, other.has_zone} == {True, False}
    far = _FAR if is_one_in_a_zone else timedelta()
    return one.start < other.end + far and other.start < one.end + far
