"""Values of several parts: sizes such as 10 x 20 cm, coordinates, times from one to another, days of a week."""

from __future__ import annotations

import re
from typing import Any, Final

from comity.core.orchestration.conflict.quantity import Quantity, quantities

_BY: Final = re.compile(r"\s*(?:[x×*]|\bby\b)\s*(?=[\d.])", re.IGNORECASE)
_SCORE: Final = re.compile(r"^\s*(\d{1,3})\s?[:–-]\s?(\d{1,3})\s*$")
_SCORES: Final = re.compile(r"(?:^|_)(?:score|result)$")
_PLACE: Final = re.compile(r"(?:^|_)(?:coordinates?|coords?|location|position|gps|lat_?l(?:on|ng)|latitude|longitude)(?:_|$)")
_DEGREES: Final = re.compile(r"^\s*(?P<number>[+-]?\d+(?:\.\d+)?)\s*°?\s*(?P<side>[nsew])?\s*$", re.IGNORECASE)
_UNTIL: Final = tuple(
    re.compile(rf"^(?:from |between )?(?P<first>.+?)\s*(?:{until})\s*(?P<last>.+)$", re.IGNORECASE)
    for until in (r"–|—|(?<=\s)-(?=\s)|\bto\b|\buntil\b|\btill\b|\bthrough\b", r"(?<=[\dm])-(?=\d)")
)
_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY: Final = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:days?)?\.?"
_DAY_SPAN: Final = re.compile(rf"({_DAY})(?:\s*(?:-|–|to|through|until)\s*({_DAY}))?", re.IGNORECASE)
_EXCEPT: Final = re.compile(
    r"^(?:every ?day|daily|all days)\s+(?:except|but|excluding|apart from)(?: for| on)?\s+(?P<days>.+)$", re.IGNORECASE
)
_WEEK: Final = {
    "weekday": _DAYS[:5], "weekdays": _DAYS[:5], "working days": _DAYS[:5], "business days": _DAYS[:5],
    "every weekday": _DAYS[:5], "weekend": _DAYS[5:], "weekends": _DAYS[5:], "the weekend": _DAYS[5:], "at weekends": _DAYS[5:],
    "every day": _DAYS, "daily": _DAYS, "seven days a week": _DAYS, "all week": _DAYS,
}  # fmt: skip
LENGTH_MAX: Final = 60  # characters of a text that has two ends
PLACE_TOLERANCE: Final = 0.001  # degrees, about a hundred metres


def sides(value: Any) -> list[Quantity]:
    """Return the lengths of a size such as "10 x 20 cm", the smallest first; none for any other value."""
    texts = _BY.split(value.strip()) if isinstance(value, str) else []
    if not 2 <= len(texts) <= 3:
        return []
    read = [quantities(text) for text in texts]
    if not all(len(one) >= 1 and one[0].is_point for one in read):
        return []
    last = read[-1][-1]
    if last.unit:
        return []
    found = [last if one is read[-1] else _in_unit_of(one[-1], last) for one in read]
    return sorted(found, key=lambda one: one.low)


def _in_unit_of(bare: Quantity, last: Quantity) -> Quantity:
    if bare.dimension or not last.dimension:
        return bare
    low = bare.low * last.size
    return Quantity(low, low, bare.half * last.size, last.dimension, size=last.size, is_whole=bare.is_whole)


def score(value: Any, name: str) -> tuple[int, int] | None:
    """Return the two sides of a score such as 1-0, which is no range, or 3:2 in `final_score`; None for any other value."""
    found = _SCORE.match(value) if isinstance(value, str) and (":" not in value or _SCORES.search(name)) else None
    return (int(found[1]), int(found[2])) if found else None


def place(value: Any, name: str) -> tuple[float, float] | None:
    """Return the latitude and longitude that a text says; None for any other text."""
    parts = [str(part) for part in value] if isinstance(value, list) else value.split(",") if isinstance(value, str) else []
    found = [_DEGREES.match(part) for part in parts]
    if len(found) != 2 or not _PLACE.search(name):
        return None
    read = [float(one["number"]) * (-1 if (one["side"] or "").lower() in {"s", "w"} else 1) for one in found if one]
    return (read[0], read[1]) if len(read) == 2 else None


def ends(value: Any) -> tuple[str, str] | None:
    """Return the first and the last of a text such as "9:00 to 17:00"; None for any other text."""
    text = value.strip() if isinstance(value, str) and len(value) <= LENGTH_MAX else ""
    found = next(filter(None, (pattern.match(text) for pattern in _UNTIL)), None)
    return (found["first"], found["last"]) if found else None


def week(value: Any) -> frozenset[str]:
    """Return the days of the week that a text or a list names, "Mon-Fri" and "weekdays" alike; none for anything else."""
    text = ", ".join(value) if isinstance(value, list) and all(isinstance(one, str) for one in value) else value
    if not isinstance(text, str) or len(text) > 90:
        return frozenset()
    if (known := _WEEK.get(text.strip().lower())) is not None:
        return frozenset(known)
    if (besides := _EXCEPT.match(text)) and (without := week(besides["days"])):
        return frozenset(_DAYS) - without
    found: set[str] = set()
    for span in _DAY_SPAN.finditer(text):
        first, last = (_DAYS.index((span[at] or span[1])[:3].lower()) for at in (1, 2))
        found.update(_DAYS[at % 7] for at in range(first, last + 1 if first <= last else last + 8))
    rest = re.sub(r"\band\b|[\s,;/&+]", "", _DAY_SPAN.sub("", text), flags=re.IGNORECASE)
    return frozenset(found) if not rest else frozenset()
