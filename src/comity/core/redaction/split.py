"""Values that are split over the fields of an object: a date of birth, `{"birth": {"day": 3, "month": 5, "year": 1984}}`, and
a street beside the number of the house, `{"strasse": "Lindenweg", "hausnummer": "14"}`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
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
_KEY_CHARS_MAX = 24
_MONTH_NAME = re.compile(r"[^\W\d_]{3,12}")


_HOUSE_PART, _STREET_PART = "house", "street"
_STREET = re.compile(
    "street(?: ?name)?|stra(?:ß|ss)e(?:nname)?|rue|voie|calle|via|indirizzo|rua|logradouro|straat(?:naam)?|gat(?:a|e"
    "|unamn)|vej(?:navn)?"
    "|veinavn|katu(?:osoite)?|ulica|ulice|utca|strada|sokak|cadde|улица|вулиця|οδός|通り|街道",
    re.IGNORECASE,
)
_HOUSE = re.compile(
    "(?:house|street|building) ?(?:number|no|nr|num)|haus ?(?:nummer|nr)|num[eé]ro(?: de (?:rue|voie))?|número"
    "|numero(?: civico)?|civico"
    "|huis ?nummer|hus ?(?:nummer|nr)|nr domu|numer domu|nr budynku|číslo (?:domu|popisné)|házszám|kapı no|дом"
    "|номер дома|будинок|номер будинку|αριθμός",
    re.IGNORECASE,
)
_HOUSE_NUMBER = re.compile("[0-9]{1,5} ?[A-Za-z]?(?:[-/][0-9]{1,4}[A-Za-z]?)?")
_STREET_NAME = re.compile(r"[^\W\d_][^\d\n\0@/\\{}\[\]<>=]{2,60}")


def split_parts(value: Mapping[Any, Any], keys: tuple[str, ...]) -> Sliced[dict[str, str]]:
    """Return the keys under which parts of one value stand, and its type; mostly none."""
    if len(value) < 2:
        return {}
    births = yield from birth_parts(value, keys)
    if births or len(value) > _KEYS_IN_SLICE:
        return dict.fromkeys(births, "DOB")
    houses: list[str] = []
    streets: list[str] = []
    for key, item in value.items():
        if not isinstance(key, str) or len(key) > _KEY_CHARS_MAX or not isinstance(item, str | int):
            continue
        part = _address_part(key)
        if part == _HOUSE_PART and _HOUSE_NUMBER.fullmatch(str(item)):
            houses.append(key)
        elif part == _STREET_PART and isinstance(item, str) and _STREET_NAME.fullmatch(item):
            streets.append(key)
    return (
        dict.fromkeys((key for key in (*streets, *houses) if isinstance(value[key], str)), "ADDRESS")
        if streets and houses
        else {}
    )


@lru_cache(maxsize=1024)
def _address_part(key: str) -> str:
    words = plain_words(key)
    return _HOUSE_PART if _HOUSE.fullmatch(words) else _STREET_PART if _STREET.fullmatch(words) else ""


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
