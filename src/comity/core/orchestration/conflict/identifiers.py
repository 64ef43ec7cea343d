"""Identifiers, telephone numbers and versions: which spellings are the same one."""

from __future__ import annotations

import re
from typing import Any, Final

_IDENTIFIER: Final = re.compile(
    r"(?:^|_)(?:id|ids|code|sku|isbn|iban|phone|telephone|mobile|fax|zip|postcode|version|serial|uuid|hash|account|reference|ref|vin)$"
    r"|(?:^|_)(?!phone)[a-z]+_(?:no|nr|num|number)$|(?:^|_)serial_"
)
_COUNTED: Final = re.compile(r"(?:^|_)(?:total|average|mean|max|min|exact|estimated)_(?:no|nr|num|number)$")
_PHONE: Final = re.compile(r"(?:^|_)(?:phone|telephone|tel|mobile|fax|cell|helpline|hotline|whatsapp)(?:_(?:no|number))?$")
_VERSION: Final = re.compile(r"(?:^|_)version(?:_(?:no|number))?$")
_DIALLED: Final = re.compile(r"(?:\+|00)?(?=(?:\D*\d){9,15}\D*$)(?:\(?\d{1,5}\)?[ ./-]?){2,8}")
_LABEL: Final = re.compile(
    r"^(?:(?:no|nr|num|number|id|ref|reference|invoice|order|ticket|case|contract|account|policy)\b[.:]?\s*|#\s*)+(?=\S*\d)"
)


def is_identifier(name: str) -> bool:
    """Return whether a field of this name holds an identifier."""
    return bool(_IDENTIFIER.search(name) and not _COUNTED.search(name)) or bool(_PHONE.search(name))


def same_identifier(left: Any, right: Any, name: str) -> bool:
    """Return whether two values of the field `name` are the same identifier."""
    if isinstance(left, list | dict) or isinstance(right, list | dict):
        return bool(left == right)
    one, other = (str(value).strip().casefold() for value in (left, right))
    if _PHONE.search(name):
        return same_phone(one, other)
    if _VERSION.search(name):
        return _release(one) == _release(other)
    return _bare(one) == _bare(other)


def _bare(text: str) -> str:
    return re.sub(r"[\s./()#:_-]+", "", _LABEL.sub("", text))


def _release(text: str) -> str:
    """Return a version without its "v" and the zeros that end it: v2.1.0 is 2.1, not 2.10."""
    return re.sub(r"(?:\.0)+$", "", re.sub(r"^(?:version|release|ver\.?|v)\s*(?=\d)", "", text))


def are_phones(left: str, right: str) -> bool:
    """Return whether two texts are telephone numbers by how they are written, one of them with its country or in groups."""
    found = [_DIALLED.fullmatch(text.strip()) for text in (left, right)]
    return all(found) and any(text.strip()[:1] in "+(" for text in (left, right))


def same_phone(left: str, right: str) -> bool:
    """Return whether two telephone numbers are one: +44 20 … is 020 … and 0044 20 …"""
    one, other = (re.sub(r"\D", "", text.replace("(0)", "").replace("+", "00", 1)) for text in (left, right))
    one, other = sorted((one.removeprefix("00"), other.removeprefix("00")), key=len)
    if one == other:
        return True
    national = one.removeprefix("0")
    return len(national) >= _NATIONAL_MIN and other.endswith(national) and len(other) - len(national) <= _COUNTRY_MAX


_NATIONAL_MIN: Final = 7  # digits of a number without its country
_COUNTRY_MAX: Final = 3  # digits of a country's code
