"""Identifiers, telephone numbers and versions: which spellings are the same one."""

from __future__ import annotations

import re
from typing import Any, Final

_IDENTIFIER: Final = re.compile(
    r"(?:^|_)(?:id|ids|code|sku|isbn|iban|phone|telephone|mobile|fax|zip|postcode|version|serial|uuid|hash|account|reference|ref|vin|"
    r"imo|mmsi|ean|upc|gtin|barcode|bic|swift|vat|tin|ein|ssn|passport|imei|mac|lei|isin|cusip|wkn|ticker|doi|issn|orcid|tracking|batch|"
    r"lot|awb|asin|plate|registration|patent|cas|siret|siren|kvk|npi|commit|sha|checksum|pin|token|po|postal|zipcode|locator|pnr)$"
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
    bare = [_bare(text) for text in (one, other)]
    return bare[0] == bare[1] or (all(map(str.isdigit, bare)) and bare[0].lstrip("0") == bare[1].lstrip("0"))


def unlabelled(value: Any, beside: Any, name: str) -> Any:
    """Return a text without the name of its field before a number or a code, which the other value has not.

    "Room 12B" in `room`, "IMO 9321" in `vessel_imo`.
    """
    found = _LABELLED.match(value) if isinstance(value, str) and len(value) <= LABELLED_MAX else None
    if found is None or (label := found["label"].casefold()) not in name.split("_") or label in str(beside).casefold():
        return value
    return found["code"]


def same_code(left: str, right: str) -> bool:
    """Return whether two texts are one code of letters and digits, with other separators or zeros: "LH 0441" and "lh441"."""
    one, other = (_CODE.fullmatch(text.strip().casefold()) for text in (left, right))
    return one is not None and other is not None and one.groups() == other.groups()


def are_codes(left: Any, right: Any) -> bool:
    """Return whether two texts are long numbers of as many digits, neither of them round: no amount is said like that."""
    texts = [value.strip() if isinstance(value, str) else "" for value in (left, right)]
    return (
        len(texts[0]) == len(texts[1]) >= CODE_MIN
        and all(text.isascii() and text.isdigit() and not text.endswith("00") for text in texts)
        and not all(_DAY.match(text) for text in texts)
    )


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


LABELLED_MAX: Final = 60  # characters
_LABELLED: Final = re.compile(
    r"^\s*(?P<label>[a-z]{2,20})(?:\s+(?:no|nr|number)\b)?[\s.:#-]+(?P<code>(?=\S*\d)\S+(?:\s\S+)?)\s*$", re.IGNORECASE
)
_CODE: Final = re.compile(r"([a-z]{1,5})[ ./-]?0*(\d{1,8})[ -]?([a-z]?)")
CODE_MIN: Final = 6  # digits
_DAY: Final = re.compile(r"^(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])$")
_NATIONAL_MIN: Final = 7  # digits of a number without its country
_COUNTRY_MAX: Final = 3  # digits of a country's code
