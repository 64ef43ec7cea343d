"""Dates and periods as they are spoken, said again as they are written: "4Q24", "the last day of May 2026"."""

from __future__ import annotations

import calendar
import re
from typing import Final

MONTHS: Final = {
    name: at + 1
    for at, names in enumerate(
        ("jan january", "feb february", "mar march", "apr april", "may", "jun june", "jul july", "aug august",
         "sep sept september", "oct october", "nov november", "dec december")
    )
    for name in names.split()
}  # fmt: skip
MONTH: Final = "|".join(sorted(MONTHS, key=len, reverse=True))
_ORDINALS: Final = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth",
    "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth", "twentieth",
    *(f"twenty-{one}" for one in ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")),
    "thirtieth", "thirty-first",
)  # fmt: skip
_DAYS: Final = {name: at for at, name in enumerate(_ORDINALS, 1)}
_DAY: Final = "|".join(sorted((name.replace("-", "[ -]") for name in _DAYS), key=len, reverse=True))
_DAY_OF: Final = re.compile(rf"\b(?:the )?(?P<day>{_DAY})(?= (?:of )?(?:{MONTH})\b)", re.IGNORECASE)
_OF_DAY: Final = re.compile(rf"(?<=\s)(?:the )?(?P<day>{_DAY})(?=,? (?:19|20|21)\d\d)", re.IGNORECASE)
_FEASTS: Final = {
    "christmas": "25 december", "christmas day": "25 december", "xmas": "25 december", "christmas eve": "24 december",
    "boxing day": "26 december", "new year's eve": "31 december", "new years eve": "31 december",
    "new year's day": "1 january", "new years day": "1 january", "valentine's day": "14 february", "halloween": "31 october",
    "independence day": "4 july", "bastille day": "14 july", "labour day": "1 may", "may day": "1 may",
}  # fmt: skip
_FEAST: Final = re.compile(
    rf"^(?P<feast>{'|'.join(sorted(_FEASTS, key=len, reverse=True))})(?=,? (?:19|20|21)\d\d$)", re.IGNORECASE
)
_COUNT_FIRST: Final = re.compile(r"^(?P<number>[1-4])(?P<part>[qh])[ /'’-]*(?P<year>(?:20)?\d\d)$", re.IGNORECASE)  # 4Q24
_EDGE: Final = re.compile(
    rf"^(?:the )?(?:very )?(?P<edge>first|last|final|1st) (?:calendar )?day (?:of|in) (?:the )?(?:month of |year )?"
    rf"(?:(?P<word>{MONTH})\.?,? |Q(?P<quarter>[1-4])[ -/]*)?(?P<year>(?:19|20|21)\d\d)$",
    re.IGNORECASE,
)
_FISCAL: Final = re.compile(r"(?<=\s)FY ?['’]?(\d\d)$", re.IGNORECASE)  # Q1 FY25
_OPEN: Final = re.compile(r"[a-z]{3}", re.IGNORECASE)


def written(text: str) -> str:
    """Return a spoken date or period as it is written, any other text as it is."""
    if found := _COUNT_FIRST.match(text):
        return f"{found['part'].upper()}{found['number']} 20{found['year'][-2:]}"
    text = _FISCAL.sub(r"20\1", text)
    if not _OPEN.search(text):
        return text
    if edge := _EDGE.match(text):
        return _day_at(edge)
    text = _FEAST.sub(lambda found: _FEASTS[found["feast"].lower().replace("’", "'")], text.replace("’", "'"))
    return _OF_DAY.sub(_numbered, _DAY_OF.sub(_numbered, text))


def _day_at(edge: re.Match[str]) -> str:
    """Return the first or the last day of a month, a quarter or a year."""
    is_first, year = edge["edge"].lower() in {"first", "1st"}, int(edge["year"])
    if edge["word"]:
        month = MONTHS[edge["word"].lower()]
    elif edge["quarter"]:
        month = 3 * int(edge["quarter"]) - (2 if is_first else 0)
    else:
        month = 1 if is_first else 12
    return f"{year}-{month:02}-{1 if is_first else calendar.monthrange(year, month)[1]:02}"


def _numbered(found: re.Match[str]) -> str:
    return str(_DAYS[found["day"].lower().replace(" ", "-")])
