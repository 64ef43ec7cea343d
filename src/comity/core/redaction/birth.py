"""A date of birth that is split over the fields of an object: `{"birth": {"day": 3, "month": 5, "year": 1984}}`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from comity.core.document.slices import Sliced
from comity.core.redaction.shapes import plain_words

_BIRTH = re.compile(
    r"birth|born|(?<![a-z])dob(?![a-z])|geburt|geboren|naissance|nacimiento|nascita|nascimento|рожден|出生", re.IGNORECASE
)
_DAY, _MONTH, _YEAR = "day", "month", "year"
_PARTS = {
    **dict.fromkeys(("day", "d", "dd", "tag", "jour", "dia", "día", "giorno", "dayofmonth"), _DAY),
    **dict.fromkeys(("month", "m", "mm", "monat", "mois", "mes", "mês", "mese"), _MONTH),
    **dict.fromkeys(("year", "y", "yy", "yyyy", "jahr", "année", "annee", "año", "ano", "anno"), _YEAR),
}
_RANGES = {_DAY: (1, 31), _MONTH: (1, 12), _YEAR: (1900, 2099)}
_KEYS_IN_SLICE = 256
_MONTH_NAME = re.compile(r"[^\W\d_]{3,12}")


def birth_parts(value: Mapping[Any, Any], keys: tuple[str, ...]) -> Sliced[frozenset[str]]:
    """Return the keys under which the year and at least one other part of a date of birth stand; mostly none."""
    if len(value) < 2:
        return frozenset()
    is_named = bool(keys) and _BIRTH.search(keys[-1]) is not None
    parts: dict[str, str] = {}
    for number, (key, item) in enumerate(value.items(), 1):
        if number % _KEYS_IN_SLICE == 0:
            yield
        if isinstance(key, str) and (is_named or _BIRTH.search(key)):
            part = _PARTS.get(plain_words(key).lower().rpartition(" ")[2])
            if part is not None and _is_part(part, item):
                parts[part] = key
    return frozenset(parts.values()) if _YEAR in parts and len(parts) > 1 else frozenset()


def _is_part(part: str, item: Any) -> bool:
    if isinstance(item, str) and part == _MONTH and _MONTH_NAME.fullmatch(item):
        return True
    low, high = _RANGES[part]
    text = str(item) if isinstance(item, str | int) and not isinstance(item, bool) else ""
    return text.isascii() and text.isdigit() and len(text) <= 4 and low <= int(text) <= high
