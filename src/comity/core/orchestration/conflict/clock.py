"""Times of day, with the time zone that they are said in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

DAY: Final = 1440  # minutes

_CLOCK: Final = re.compile(
    r"^(?P<hour>\d{1,2})(?:[:.h](?P<minute>\d\d))?(?::\d\d)?\s*(?P<half>am|pm|a\.m\.?|p\.m\.?)?"
    r"(?:\s*o['’]clock|\s*h(?:rs|ours)?)?$",
    re.IGNORECASE,
)
_HOURS: Final = {"noon": 720, "midday": 720, "12 noon": 720, "midnight": 0}
_NUMERALS: Final = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_HOUR: Final = rf"(?P<hour>\d{{1,2}}|{'|'.join(_NUMERALS)})"
_SPOKEN: Final = re.compile(
    rf"^(?:a |an )?(?:(?P<part>half|quarter|twenty[ -]five|twenty|ten|five|\d{{1,2}})(?: minutes?)? "
    r"(?P<way>past|to|after|before|till)|"
    rf"(?=\w+ o['’]clock)) ?{_HOUR}(?: o['’]clock)? ?(?P<half>[ap]\.?m\.?)?$"
)
_NAMED_HOUR: Final = re.compile(rf"^({'|'.join(_NUMERALS)})(?=$| ?[ap]\.?m)")
_OF_DAY: Final = re.compile(r"\s+(?:in the (?P<part>morning|afternoon|evening)|at night)$", re.IGNORECASE)
_OPENING: Final = re.compile(r"^(?:from )?(\d{1,2})\s?(?:-|–|to|until)\s?(\d{1,2})$", re.IGNORECASE)
_ON_A_DAY: Final = re.compile(
    r"^(?:on )?(?P<day>today|tomorrow|yesterday|(?:mon|tues?|wed(?:s|nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:days?)?),?\s+"
    r"(?:at\s+)?(?P<at>.+)$",
    re.IGNORECASE,
)
_BOUND: Final = re.compile(r"^(?:(?:from|after|not before|before|by|until|no later than|till|starting at|starts at|at)\s+)+")
_EXACTLY: Final = re.compile(r"^(?:exactly |sharp at )|,? (?:sharp|on the dot|exactly|local time|local|precisely)$")
_PARTS: Final = {"half": 30, "quarter": 15, "twenty five": 25, "twenty": 20, "ten": 10, "five": 5}
_ZONES: Final = {  # minutes ahead of UTC; those that are said for winter and summer alike have both
    "z": (0,), "utc": (0,), "gmt": (0,), "wet": (0,), "bst": (60,), "cet": (60,), "cest": (120,), "eet": (120,),
    "eest": (180,), "ist": (330,), "jst": (540,), "est": (-300,), "edt": (-240,), "cst": (-360,), "cdt": (-300,),
    "mst": (-420,), "mdt": (-360,), "pst": (-480,), "pdt": (-420,), "et": (-300, -240), "ct": (-360, -300),
    "mt": (-420, -360), "pt": (-480, -420), "aest": (600,), "aedt": (660,),
}  # fmt: skip
_ZONE: Final = re.compile(
    rf"(?<=[\dmn.])\s*\(?(?:(?P<name>{'|'.join(sorted(_ZONES, key=len, reverse=True))})|"
    r"(?:(?:utc|gmt)\s*|(?<=\d\d:\d\d:\d\d)|(?<=T\d\d:\d\d))(?P<sign>[+-])(?P<hours>\d{1,2}):?(?P<minutes>\d\d)?)\)?$",
    re.IGNORECASE,
)
_TOWNS: Final = {
    "london": (0, 60), "lisbon": (0, 60), "dublin": (0, 60), "paris": (60, 120), "berlin": (60, 120), "madrid": (60, 120),
    "rome": (60, 120), "zurich": (60, 120), "amsterdam": (60, 120), "athens": (120, 180), "dubai": (240,), "moscow": (180,),
    "mumbai": (330,), "delhi": (330,), "singapore": (480,), "beijing": (480,), "shanghai": (480,), "hong kong": (480,),
    "tokyo": (540,), "seoul": (540,), "sydney": (600, 660), "new york": (-300, -240), "toronto": (-300, -240),
    "chicago": (-360, -300), "los angeles": (-480, -420), "san francisco": (-480, -420), "eastern": (-300, -240),
    "central": (-360, -300), "pacific": (-480, -420), "mountain": (-420, -360),
}  # fmt: skip
_LOCAL: Final = re.compile(
    r",?\s+(?:(?:in )?(?P<town>[a-z]+(?: [a-z]+)?) time|in (?P<place>(?!the\b)[a-z]+(?: [a-z]+)?))$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Clock:
    """The minutes of the day that a text can mean, and by how many minutes its zone can be ahead of UTC; no zone, none."""

    minutes: frozenset[int]
    ahead: tuple[int, ...] = ()

    def meets(self, other: Clock) -> bool:
        """Return whether two texts can mean the same time; a text without a zone is taken to be in the other's."""
        if self.ahead and other.ahead:
            return bool(self._in_utc() & other._in_utc())
        return bool(self.minutes & other.minutes)

    def _in_utc(self) -> set[int]:
        return {(at - ahead) % DAY for at in self.minutes for ahead in self.ahead}


def zone(text: str) -> tuple[str, tuple[int, ...]]:
    """Return a text without the time zone at its end, and by how many minutes that zone can be ahead of UTC."""
    if local := _LOCAL.search(text):
        return text[: local.start()], _TOWNS.get((local["town"] or local["place"]).lower(), ())
    found = _ZONE.search(text)
    if found is None:
        return text, ()
    if found["name"]:
        return text[: found.start()], _ZONES[found["name"].lower()]
    ahead = int(found["hours"]) * 60 + int(found["minutes"] or 0)
    return text[: found.start()], (ahead if found["sign"] == "+" else -ahead,)


def clock(value: Any) -> Clock | None:
    """Return the time of day that a text says: "half past eight" has two readings; None if it is no time."""
    text, ahead = zone(value.strip().lower().removeprefix("at ")) if isinstance(value, str) and len(value) <= 40 else ("", ())
    text = _BOUND.sub("", _EXACTLY.sub("", text))
    found = _OF_DAY.search(text)
    minutes = _minutes(text[: found.start()] if found else text, is_part_said=found is not None)
    if found and minutes:  # eight in the morning, eight in the evening
        minutes = frozenset(at for at in minutes if (at < DAY // 2) == (found["part"] == "morning"))
    return Clock(minutes, ahead) if minutes else None


def _minutes(text: str, *, is_part_said: bool) -> frozenset[int]:
    """Return the minutes of the day that a text without its zone can mean; a bare hour needs the part of the day."""
    if named := _NAMED_HOUR.match(text):
        text = f"{_NUMERALS.index(named[1]) + 1}{text[named.end() :]}"
    if text in _HOURS:
        return frozenset({_HOURS[text]})
    if spoken := _SPOKEN.match(text):
        hour = int(spoken["hour"]) if spoken["hour"].isdigit() else _NUMERALS.index(spoken["hour"]) + 1
        part = (spoken["part"] or "0").replace("-", " ")
        shift = int(part) if part.isdigit() else _PARTS[part]
        said = hour * 60 + (shift if spoken["way"] in {None, "past", "after"} else -shift)
        both = {said % DAY, (said + DAY // 2) % DAY}
        half = spoken["half"]
        return frozenset(both if half is None else {at for at in both if (at >= DAY // 2) == half.startswith("p")})
    found = _CLOCK.match(text)
    if found is None or (found["minute"] is None and found["half"] is None and not is_part_said):
        return frozenset()
    hour, minute = int(found["hour"]), int(found["minute"] or 0)
    if hour > 24 or minute > 59:
        return frozenset()
    if found["half"]:
        hour = hour % 12 + (12 if found["half"].startswith("p") else 0)
    said = (hour * 60 + minute) % DAY
    return (
        frozenset({said, (said + DAY // 2) % DAY}) if is_part_said and not found["half"] and hour <= 12 else frozenset({said})
    )


def opening(value: Any) -> tuple[int, int] | None:
    """Return from which hour to which "9-17" and "9 to 5" are; None for any other text."""
    found = _OPENING.match(value.strip()) if isinstance(value, str) and len(value) <= 20 else None
    if found is None:
        return None
    first, last = int(found[1]), int(found[2])
    return first, last + 12 if last < first and last <= 12 else last


def on_a_day(value: Any) -> tuple[str, Clock] | None:
    """Return the day and the time of a text such as "tomorrow at 5 pm"; None for any other text."""
    found = _ON_A_DAY.match(value.strip()) if isinstance(value, str) and len(value) <= 40 else None
    at = clock(found["at"]) if found else None
    return (found["day"].lower()[:3], at) if found and at else None


def clock_beside(value: Any, other: Clock | None) -> Clock | None:
    """Return the time of day of a text; four bare digits are one, 1530, where the other text is a time of day."""
    is_bare = (
        other is not None and isinstance(value, str) and re.fullmatch(r"[0-2]\d[0-5]\d(?: ?h(?:rs|ours)?)?", value.strip())
    )
    return clock(f"{value.strip()[:2]}:{value.strip()[2:4]}" if is_bare else value)
