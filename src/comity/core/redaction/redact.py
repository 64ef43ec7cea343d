"""Hiding personal data before it leaves a session, and putting it back for that session's user.

Strings are redacted wherever they stand: in text, in nested lists and objects, and in keys. A JSON key is read as the words
before its value, so `{"passport": "X1234567"}` counts like "passport: X1234567". Numbers are left alone, unless the key names
their kind and the number has its shape and checksum: `{"ssn": 219099999}` is hidden, `{"total": 219099999}` is not. Booleans
and null never are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum, auto
from functools import lru_cache
from typing import Any

import msgspec

from comity.core.document.slices import Sliced, in_one_go, whole
from comity.core.redaction.ahead import AHEAD_TEXTS, Ahead
from comity.core.redaction.births import ANIMAL, ANIMAL_KEYS, are_of_animal
from comity.core.redaction.candidates import Span
from comity.core.redaction.detector import Detector, PatternDetector
from comity.core.redaction.labelled import LabelledDetector
from comity.core.redaction.policy import DEFAULT_POLICY, Action, Policy
from comity.core.redaction.scan import DEFAULT_SCANNER, Scanner
from comity.core.redaction.search import SHORT_CHARS, Memory, Wall
from comity.core.redaction.shapes import WALL, plain_words
from comity.core.redaction.siblings import words_beside
from comity.core.redaction.split import kind_of_groups, split_parts
from comity.core.redaction.users import USERS, is_login, named_user
from comity.core.redaction.vault import TOKEN, Value, Vault

# "****1234" and "****@example.com": what a mask leaves is not looked into again.
_MASK = re.compile(r"\*{4}(?:[A-Za-z0-9]{4}(?![A-Za-z0-9])|@[A-Za-z0-9.\u00c0-\u024f-]{1,320})?")
HIDDEN = re.compile(f"{TOKEN.pattern}|{_MASK.pattern}")
_MASK_SHOWS_LAST_FROM = 8  # letters and digits; of a shorter value four would be too much
_GROUPS_MAX = 9
_FLOAT_MIN, _FLOAT_END = 10**9, 2**63
_CARD_CODE_CHARS, _NUMBER_CHARS_MIN = 3, 5  # shorter numbers, but for the security code of a card, count or name a state
_SLICE_ITEMS = 128  # values replaced, or parts of a document walked, in a slice of work
_PARTS_IN_SLICE = 16
_TEXTS_KEPT = 4096  # of a document, whose judgement is kept in case they come again
# `{"name": "phone", "value": …}` and `["phone", …]` name a value as `{"phone": …}` does.
_KINDS = frozenset(re.findall(r"\w+", "type kind tipo typ art soort тип rodzaj druh slag laji 类型 種類"))
_NAMING = frozenset(
    re.findall(
        r"\w+",
        "name key label field attribute property question id title param column meaning description desc "
        "system scheme"
        " nombre"
        " nome nom naam namn navn nazwa campo champ feld etiqueta libellé clave chave chiave titre titolo título"
        " название 名称",
    )
)
_NAMED = frozenset(
    re.findall(
        r"\w+",
        "value val text content answer data digits valor valeur wert valore waarde värde verdi værdi wartość hodnota érték"
        " valoare vrijednost"
        " значение значення 值 値 값",
    )
)
_NUMBERED = frozenset(
    re.findall(r"\w+", "number no nr num nro numero número numéro nummer numer číslo cislo номер 号码 番号 번호")
)  # `{"type": "PESEL", "number": …}`, but `{"account": {"number": …}}`
_DOCUMENTS = (
    "documento?|doc|dokument[u]?|identification|identificaci[oó]n|identificação|identity|identidad|ausweis"
    "|do[ck]lad[u]?|документа?"
)
# `{"tipo_doc": "CUIT", "numero_de_documento": …}`; "type_id" is the number of a type.
_OF_DOCUMENT = re.compile(
    rf"(?:id ?|(?:{_DOCUMENTS}) ?)(?:(?P<kind>{'|'.join(_KINDS)})|(?P<number>{'|'.join(_NUMBERED)}))"
    rf"|(?:(?P<kind_of>{'|'.join(_KINDS)})|(?P<number_of>{'|'.join(_NUMBERED)}))(?: d[eiou])? (?:{_DOCUMENTS})"
)
_KIND_TEXTS = ("text", "display", "name", "label", "coding")  # of a kind that is an object
_MAY_NAME = re.compile(r"[^\W\d][^\d@.:/]{0,31}").fullmatch  # most keys with a digit in them are values
_RECORD_KEYS_MAX = 128
_KIND_DEPTH_MAX = 3
_DEVICES = frozenset({"desktop", "tablet"})  # beside which "mobile" is a figure
_HEADS = frozenset({"columns", "cols", "header", "headers", "heads", "fields", "keys", "names"})
_ROWS = frozenset({"rows", "data", "values", "records", "items", "table"})
_LAST_PART = re.compile("[/#:]")
_HEAD = re.compile(r"[^\W\d_][^\d\n\0]{0,36}")
_NAME = re.compile(r"[^\W\d_][^\d\0\[\]*@]{1,31}")
_OPTION = re.compile("--[a-z][a-z-]{1,40}")
_NAME_CHARS_MAX = 48
_HEADS_MAX = 64
_SCALARS = (int, float, type(None))
_KEYS_KEPT = 3  # how many keys of the path name a value
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class Finding(msgspec.Struct, frozen=True, gc=False):
    """One value found and what was done with it; never the value itself, so that it can be audited."""

    type: str
    action: Action
    path: str = ""  # where in a document, such as `person.emails[0]`; empty for a plain text


class Redaction(msgspec.Struct, frozen=True):
    """A text without the personal data that was found in it."""

    text: str
    found: tuple[Finding, ...] = ()


class ValueRedaction(msgspec.Struct, frozen=True):
    """A nested value without the personal data that was found in it."""

    value: Any
    found: tuple[Finding, ...] = ()


class JsonRedaction(msgspec.Struct, frozen=True):
    """A JSON document without the personal data that was found in it; the same bytes where nothing was."""

    raw: bytes
    found: tuple[Finding, ...] = ()
    value: Any = None  # the document as `msgspec` reads it, where something was found


def blocked_types(found: tuple[Finding, ...]) -> frozenset[str]:
    """Return the types for which the policy says that the call must be refused."""
    return frozenset(finding.type for finding in found if finding.action is Action.BLOCK)


def may_hold_personal_data(raw: bytes, scanner: Scanner = DEFAULT_SCANNER) -> bool:
    """Return False only if `redact_json` would return the document unchanged; some 6 µs per kilobyte."""
    return scanner.may_find_in_json(raw)


def redact_text(text: str, vault: Vault, policy: Policy = DEFAULT_POLICY, scanner: Scanner = DEFAULT_SCANNER) -> Redaction:
    """Return `text` with every value found replaced as the policy says."""
    if not scanner.may_find(text):
        return Redaction(text)
    return whole(redact_text_sliced(text, vault, policy, scanner))


def redact_text_sliced(
    text: str, vault: Vault, policy: Policy = DEFAULT_POLICY, scanner: Scanner = DEFAULT_SCANNER
) -> Sliced[Redaction]:
    """Return what `redact_text` does, with pauses."""
    if not scanner.may_find(text):
        return Redaction(text)
    walls = yield from _walls_sliced(text)
    spans = yield from scanner.find_sliced(text, walls)
    redacted, found = yield from _replaced(text, spans, vault, policy, "")
    return Redaction(redacted, tuple(found))


def scrub(text: str, scanner: Scanner = DEFAULT_SCANNER) -> str:
    """Return `text` with stars in place of every value found, for good: for records that no session can turn back."""
    spans = scanner.find(text, walls_in(text))
    for span in reversed(spans):
        text = f"{text[: span.start]}****{text[span.end :]}"
    return text


def redact_value(
    value: Any, vault: Vault, policy: Policy = DEFAULT_POLICY, scanner: Scanner = DEFAULT_SCANNER
) -> ValueRedaction:
    """Return a copy of a value made of dicts, lists, tuples and scalars, its strings, keys and named numbers redacted."""
    return whole(_redact_value(value, vault, policy, scanner))


def _redact_value(value: Any, vault: Vault, policy: Policy, scanner: Scanner) -> Sliced[ValueRedaction]:
    walk = _Walk(vault, policy, scanner)
    redacted = yield from walk.value(value, (), "")
    return ValueRedaction(redacted, tuple(walk.found))


def redact_json(raw: bytes, vault: Vault, policy: Policy = DEFAULT_POLICY, scanner: Scanner = DEFAULT_SCANNER) -> JsonRedaction:
    """Return a JSON document redacted; a document that cannot hold personal data is not even decoded."""
    return whole(redact_json_sliced(raw, vault, policy, scanner))


def redact_json_sliced(
    raw: bytes, vault: Vault, policy: Policy = DEFAULT_POLICY, scanner: Scanner = DEFAULT_SCANNER
) -> Sliced[JsonRedaction]:
    """Return what `redact_json` does, with pauses."""
    if not (yield from scanner.may_find_in_json_sliced(raw)):
        return JsonRedaction(raw)
    yield
    value = in_one_go(_decode, raw)
    yield
    redaction = yield from _redact_value(value, vault, policy, scanner)
    if not redaction.found:
        return JsonRedaction(raw)
    yield
    return JsonRedaction(_encode(redaction.value), redaction.found, redaction.value)


def restore_text(text: str, vault: Vault, types: frozenset[str] | None = None) -> str:
    """Return `text` with this vault's tokens turned back, all of them or those of `types`; other tokens stay."""
    if "[[" not in text:
        return text
    return TOKEN.sub(lambda match: str(_restored(match, vault, types)), text)


def _restored_text(text: str, vault: Vault, types: frozenset[str] | None) -> Sliced[str]:
    pieces: list[str] = []
    end = 0
    for number, match in enumerate(TOKEN.finditer(text), 1):
        pieces += (text[end : match.start()], str(_restored(match, vault, types)))
        end = match.end()
        if number % _SLICE_ITEMS == 0:
            yield
    pieces.append(text[end:])
    return "".join(pieces)


def restore_value(value: Any, vault: Vault, types: frozenset[str] | None = None) -> Any:
    """Return a copy of a JSON-like value with this vault's tokens turned back, in keys too."""
    return whole(restore_value_sliced(value, vault, types))


def restore_value_sliced(value: Any, vault: Vault, types: frozenset[str] | None = None) -> Sliced[Any]:
    """Return what `restore_value` does, with pauses."""
    match value:
        case str() if len(value) <= SHORT_CHARS:
            return _restored_short(value, vault, types)
        case str():
            return (yield from _restored_text(value, vault, types))
        case dict():
            result: dict[Any, Any] = {}
            for number, (key, item) in enumerate(value.items(), 1):
                is_short = isinstance(item, str) and len(item) <= SHORT_CHARS
                result[restore_text(key, vault, types)] = (
                    _restored_short(item, vault, types) if is_short else (yield from restore_value_sliced(item, vault, types))
                )
                if number % _SLICE_ITEMS == 0:
                    yield
            return result
        case list() | tuple():
            items: list[Any] = []
            for number, item in enumerate(value, 1):
                is_short = isinstance(item, str) and len(item) <= SHORT_CHARS
                items.append(
                    _restored_short(item, vault, types) if is_short else (yield from restore_value_sliced(item, vault, types))
                )
                if number % _SLICE_ITEMS == 0:
                    yield
            return items if isinstance(value, list) else tuple(items)
        case _:
            return value


def _restored_short(text: str, vault: Vault, types: frozenset[str] | None) -> Value:
    whole_token = TOKEN.fullmatch(text)
    return _restored(whole_token, vault, types) if whole_token else restore_text(text, vault, types)


def restore_json(raw: bytes, vault: Vault, types: frozenset[str] | None = None) -> bytes:
    """Return a JSON document with this vault's tokens turned back."""
    return whole(restore_json_sliced(raw, vault, types))


def restore_json_sliced(raw: bytes, vault: Vault, types: frozenset[str] | None = None) -> Sliced[bytes]:
    """Return what `restore_json` does, with pauses."""
    if not any(tag.encode() in raw for tag in vault.tags):
        return raw
    yield
    value = in_one_go(_decode, raw)
    yield
    value = yield from restore_value_sliced(value, vault, types)
    yield
    return _encode(value)


def walls_in(text: str) -> list[Wall]:
    """Return the tokens, of whichever vault, and the masks in `text`, from left to right."""
    if "[[" not in text and "****" not in text:
        return []
    return [Wall(*match.span()) for match in HIDDEN.finditer(text)]


def _walls_sliced(text: str) -> Sliced[list[Wall]]:
    if "[[" not in text and "****" not in text:
        return []
    walls: list[Wall] = []
    for number, match in enumerate(HIDDEN.finditer(text), 1):
        walls.append(Wall(*match.span()))
        if number % _SLICE_ITEMS == 0:
            yield
    return walls


def replace(text: str, spans: Sequence[Span], vault: Vault, policy: Policy, path: str = "") -> tuple[str, list[Finding]]:
    """Return `text` with the values at `spans` replaced, and what was done."""
    pieces: list[str] = []
    found: list[Finding] = []
    of_kind: dict[str, Finding] = {}  # a text of many values has few kinds
    end = 0
    for span in spans:
        kind, start = span.detector.type, span.start
        finding = of_kind.get(kind)
        if finding is None:
            finding = of_kind[kind] = Finding(kind, policy.action(kind), path)
        pieces += (text[end:start], _replacement(kind, text[start : span.end], finding.action, vault))
        found.append(finding)
        end = span.end
    pieces.append(text[end:])
    return "".join(pieces), found


def _replaced(text: str, spans: list[Span], vault: Vault, policy: Policy, path: str) -> Sliced[tuple[str, list[Finding]]]:
    """Return what `replace` does, with pauses. It joins as it goes: to join all pieces of a long text at its end takes long."""
    parts: list[str] = []
    found: list[Finding] = []
    end = 0
    for first in range(0, len(spans), _SLICE_ITEMS):
        some = [Span(span.start - end, span.end - end, span.detector) for span in spans[first : first + _SLICE_ITEMS]]
        chars = some[-1].end
        part, more = replace(text[end : end + chars], some, vault, policy, path)
        parts.append(part)
        found += more
        end += chars
        if len(some) == _SLICE_ITEMS:
            yield
    return "".join((*parts, text[end:])), found


def _replacement(kind: str, value: str, action: Action, vault: Vault) -> str:
    match action:
        case Action.TOKENISE:
            return vault.token(kind, value)
        case Action.ALLOW:
            return value
        case Action.BLOCK:
            return "****"
        case Action.MASK:
            return _mask(kind, value)


def _mask(kind: str, value: str) -> str:
    if kind == "EMAIL" and "@" in value:
        return f"****{value[value.rindex('@') :]}"
    plain = "".join(char for char in value if char.isascii() and char.isalnum())
    if kind == "CREDENTIAL" or len(plain) < _MASK_SHOWS_LAST_FROM:
        return "****"
    return f"****{plain[-4:]}"


def _restored(match: re.Match[str], vault: Vault, types: frozenset[str] | None) -> Value:
    token = match.group()
    if types is not None and match[1] not in types:
        return token
    value = vault.value(token)
    return token if value is None else value


def _is_group(item: Any) -> bool:
    """Return whether an item of a list may be a part of a number or a date: up to six digits and capitals."""
    text = item if isinstance(item, str) else str(item) if isinstance(item, int) and not isinstance(item, bool) else ""
    return 1 <= len(text) <= 6 and text.isascii() and text.isalnum() and text.isupper() is not text.isdigit()


def _is_whole(detector: Detector, number: str, key: str) -> bool:
    """Return whether a number under a key that names it is a valid value of the detector from its first digit to its last."""
    if isinstance(detector, LabelledDetector):
        return detector.holds(key, number)
    if isinstance(detector, PatternDetector) and not detector.group:
        return detector.span_at(number, 0, len(number)) == (0, len(number))
    return (0, len(number)) in detector.spans(number)


def _heads(row: Any) -> tuple[str, ...]:
    """Return the words of the heads of a table's columns, or nothing if the row is not one of heads."""
    if not isinstance(row, list) or not 2 <= len(row) <= _HEADS_MAX:
        return ()
    if not all(isinstance(head, str) and _HEAD.fullmatch(head) for head in row):
        return ()
    return tuple(plain_words(head) for head in row)


def _of_one(words: str) -> str:
    """Return the words over a list as the words over one of its items: "passport numbers" becomes "passport number"."""
    if words.endswith("sses"):
        return words[:-2]
    return words[:-1] if words.endswith("s") and not words.lower().endswith(("ss", "dns")) else words


def _names_in(value: dict[Any, Any], roles: tuple[_Role, ...]) -> tuple[str, str]:
    """Return the words of the first item of an object that names another, and of the first that says what kind it is.

    Return nothing if there is no item to be named.
    """
    if _Role.NAMED not in roles and _Role.NUMBERED not in roles:
        return "", ""
    naming = [
        (role, name)
        for role, item in zip(roles, value.values(), strict=True)
        if role in _NAMES_OTHERS and (name := _name_of(role, item))
    ]
    kind = next((name for role, name in naming if role is _Role.KIND), "")
    if kind == "P" and not _TRAVEL_KEYS.isdisjoint(value):  # as the machine-readable zone of a passport has it
        return "passport", "passport"
    return _words_of(naming[0][1] if naming else ""), _words_of(kind)


def _name_of(role: _Role, item: Any) -> str:
    """Return the name that an item is, or that a kind has in it: `{"type": {"text": "MRN"}}`, `{"type": {"coding": [{…}]}}`."""
    for _ in range(_KIND_DEPTH_MAX if role is _Role.KIND else 0):
        if isinstance(item, list) and item:
            item = item[0]
        elif isinstance(item, dict):
            item = next((item[key] for key in _KIND_TEXTS if key in item), "")
    return item if isinstance(item, str) and len(item) <= _NAME_CHARS_MAX else ""


class _Role(Enum):
    """What a key says of the values beside it, or of its own."""

    KIND = auto()  # its value says what kind of thing another is: `type`, `documentType`, `tipo_doc`
    NAMING = auto()  # its value names another: `name`, `label`
    NAMED = auto()  # it says nothing of its value: `value`, `text`
    NUMBERED = auto()  # it says no more than that its value is a number: `number`, `numero_documento`
    OTHER = auto()


_NAMES_OTHERS = (_Role.KIND, _Role.NAMING)
_TRAVEL_KEYS = frozenset(
    {"issuer", "issued_by", "issuing_country", "issuingCountry", "issuing_state", "nationality", "expires", "expiry"}
    | {"expiry_date", "expiryDate", "country"}
)


@lru_cache(maxsize=1024)
def _roles(keys: tuple[Any, ...]) -> tuple[_Role, ...]:
    """Return the roles of the keys of an object; records mostly have the keys of records before."""
    return tuple(map(_role, keys))


def _role(key: Any) -> _Role:
    return _role_of_words(key) if isinstance(key, str) and _MAY_NAME(key) else _Role.OTHER


@lru_cache(maxsize=2048)
def _role_of_words(key: str) -> _Role:
    words = plain_words(key).lower()
    of_document = _OF_DOCUMENT.fullmatch(words)
    if words in _KINDS or (of_document and (of_document["kind"] or of_document["kind_of"])):
        return _Role.KIND
    if words in _NUMBERED or of_document:
        return _Role.NUMBERED
    return _Role.NAMING if words in _NAMING else _Role.NAMED if words in _NAMED else _Role.OTHER


def _words_of(name: str) -> str:
    """Return the words of a name; of an address, as a system of identifiers has it, those of its last part."""
    if "://" in name:
        name = _LAST_PART.split(name.rstrip("/"))[-1]
    return plain_words(HIDDEN.sub(WALL, name))


def _has_login(value: dict[Any, Any], keys: tuple[str, ...] = ()) -> bool:
    """Return whether an object has a user and a password; of an object that is a user the name is enough."""
    if value.keys().isdisjoint(USERS) and not ("name" in value and keys and keys[-1].lower() in USERS):
        return False
    return is_login(plain_words(key) for key in value if isinstance(key, str))


def _left(keys: tuple[str, ...]) -> str:
    """Return the keys of a path as the words before a value."""
    return f"{' '.join(keys)}: " if keys else ""


class _Walk:
    """One pass over a nested value."""

    __slots__ = ("_ahead", "_clean", "_memory", "_parts", "_plain_keys", "_policy", "_scanner", "_vault", "found")

    def __init__(self, vault: Vault, policy: Policy, scanner: Scanner) -> None:
        self._vault, self._policy, self._scanner = vault, policy, scanner
        self._plain_keys: dict[str, str] = {}  # keys without anything personal, and their words: records have the same ones
        self._clean: set[tuple[str, str]] = set()  # short texts in which nothing was found, each with the words before it
        self._ahead = Ahead(scanner)
        self._memory = Memory()
        self._parts = 0  # walked so far
        self.found: list[Finding] = []

    def value(self, value: Any, keys: tuple[str, ...], path: str) -> Sliced[Any]:
        """Redact a value and everything in it."""
        match value:
            case dict():
                return (yield from self._object(value, keys, path))
            case list():
                return (yield from self._items(value, keys, path))
            case tuple():
                return tuple((yield from self._items(value, keys, path)))
            case str() if len(value) > SHORT_CHARS:
                return (yield from self._text_sliced(value, keys, path))
            case _:
                return self._scalar(value, keys, path)

    def _scalar(self, value: Any, keys: tuple[str, ...], path: str) -> Any:
        match value:
            case str():
                return self._short(value, keys, path)
            case bool():
                return value
            case int():
                return self._number(value, keys, path)
            case float():
                return self._float(value, keys, path)
            case _:
                return value

    def _items(self, items: Sequence[Any], keys: tuple[str, ...], path: str) -> Sliced[list[Any]]:
        """Redact the items of a list; groups of digits that are one value together are hidden each."""
        is_split = keys and 2 <= len(items) <= _GROUPS_MAX and all(map(_is_group, items))
        if is_split and (kind := kind_of_groups(items, " ".join(keys), self._kind_of)):
            return [self._hide(kind, item, f"{path}[{index}]") for index, item in enumerate(items)]
        if len(items) == 2 and isinstance(items[0], str) and _NAME.fullmatch(items[0]):
            keys = (*keys, plain_words(items[0]))[-_KEYS_KEPT:]  # a pair of a name and a value
        if len(items) > 1 and isinstance(items[0], list) and isinstance(items[1], list) and (heads := _heads(items[0])):
            return (yield from self._rows(items, heads, keys, path))
        result: list[Any] = []
        option = ""  # of a command, whose value is the next item
        for index, item in enumerate(items):
            if index % AHEAD_TEXTS == 0 and len(items) > AHEAD_TEXTS:
                self._ahead.look(self._windows(items[index : index + AHEAD_TEXTS], keys), len(self.found))
            if self._is_slice_done():
                yield
            named = (*keys, option)[-_KEYS_KEPT:] if option else keys
            option = ""
            if isinstance(item, str) and len(item) <= SHORT_CHARS:
                result.append(self._short(item, named, f"{path}[{index}]"))
                option = plain_words(item[2:]) if item.startswith("--") and _OPTION.fullmatch(item) else ""
            else:
                result.append((yield from self.value(item, named, f"{path}[{index}]")))
        return result

    def _windows(self, items: Sequence[Any], keys: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        """Yield the items of a list, or the fields of the records in it, each with the words that probably stand before it."""
        lefts: dict[str, str] = {}
        has_login = isinstance(items[0], dict) and _has_login(items[0])
        for item in items:
            if not isinstance(item, dict):
                yield _left(keys), item
                continue
            for key, field in item.items():
                if key not in lefts and key in self._plain_keys:
                    words = self._plain_keys[key]
                    lefts[key] = _left((*keys, named_user(words) if has_login else words)[-_KEYS_KEPT:])
                if key in lefts:
                    yield lefts[key], field

    def _rows(self, rows: Sequence[Any], heads: tuple[str, ...], keys: tuple[str, ...], path: str) -> Sliced[list[Any]]:
        """Redact the rows of a table; the heads of its columns name what stands under them."""
        result: list[Any] = []
        for index, row in enumerate(rows):
            if not isinstance(row, list) or len(row) != len(heads):
                result.append((yield from self.value(row, keys, f"{path}[{index}]")))
                continue
            cells: list[Any] = []
            for column, (head, cell) in enumerate(zip(heads, row, strict=True)):
                if self._is_slice_done():
                    yield
                named = (*keys, head)[-_KEYS_KEPT:]
                cells.append((yield from self.value(cell, named, f"{path}[{index}][{column}]")))
            result.append(cells)
        return result

    def _object(self, value: dict[Any, Any], keys: tuple[str, ...], path: str) -> Sliced[dict[Any, Any]]:
        result: dict[Any, Any] = {}
        numbers: dict[str, int] = {}
        parts = split_parts(value, keys, self._kind_of)
        heads = () if value.keys().isdisjoint(_HEADS) else next(_heads(value[key]) for key in value if key in _HEADS)
        if not value.keys().isdisjoint(ANIMAL_KEYS) and are_of_animal(value):
            keys = (*keys, ANIMAL)[-_KEYS_KEPT:]
        if not value.keys().isdisjoint(_DEVICES):
            keys = (*keys, "devices")[-_KEYS_KEPT:]
        roles = _roles(tuple(value)) if len(value) <= _RECORD_KEYS_MAX else ()
        name, kind = _names_in(value, roles)
        has_login = _has_login(value, keys)
        meant = words_beside(tuple(value)) if roles else {}
        every_key = list(value) if len(value) > AHEAD_TEXTS else ()
        for index, (key, item) in enumerate(value.items()):
            if index % AHEAD_TEXTS == 0 and every_key:
                self._ahead.look((("", one) for one in every_key[index : index + AHEAD_TEXTS]), len(self.found))
            if self._is_slice_done():
                yield
            if not isinstance(key, str):
                result[key] = yield from self.value(item, keys, path)
                continue
            hidden, words, found_before = key, self._plain_keys.get(key), len(self.found)
            if words is None:
                is_short = len(key) <= SHORT_CHARS
                hidden = self._short(key, (), path) if is_short else (yield from self._text_sliced(key, (), path))
            if hidden in result:  # two values may end in the same mask
                numbers[hidden] = number = numbers.get(hidden, 1) + 1
                hidden, words, found_before = f"{hidden} ({number})", None, -1
            if words is None:
                # As words, the key is what a second redaction will see: the type in a token is no context.
                words = plain_words(HIDDEN.sub(WALL, hidden))
                if len(self.found) == found_before and len(key) <= SHORT_CHARS and len(self._plain_keys) < _TEXTS_KEPT:
                    self._plain_keys[key] = words
            if has_login:
                words = named_user(words, keys[-1] if keys else "")
            if key in meant:
                words = meant[key]
            place = f"{path}.{hidden}" if path else hidden
            role = roles[index] if roles else _role(key)
            if role in _NAMES_OTHERS and (said := _name_of(role, item)):
                name = _words_of(said)
            if role is _Role.NUMBERED and kind and self._scanner.named_by(kind):
                named = (*keys, kind)[-_KEYS_KEPT:]
            elif role is _Role.NAMED or (role is _Role.NUMBERED and name):  # the name beside it counts, or the keys above
                named = (*keys, name)[-_KEYS_KEPT:] if name else keys or (words,)
            else:
                named = (*keys, words)[-_KEYS_KEPT:]
            if heads and key in _ROWS and isinstance(item, list):
                result[hidden] = yield from self._rows(item, heads, named, place)
            elif key in parts:
                result[hidden] = self._hide(parts[key], item, place)
            elif isinstance(item, str) and len(item) <= SHORT_CHARS:
                result[hidden] = self._short(item, named, place)
            elif isinstance(item, _SCALARS):
                result[hidden] = self._scalar(item, named, place)
            else:
                if named and isinstance(item, list) and item and isinstance(item[0], str | int):
                    named = (*named[:-1], _of_one(named[-1]))
                result[hidden] = yield from self.value(item, named, place)
        return result

    def _kind_of(self, text: str, words: str) -> str:
        """Return the type of which a text is one value from end to end, if words name it; else nothing."""
        spans = self._scanner.find(text, left=f"{words}: ")
        is_whole = len(spans) == 1 and (spans[0].start, spans[0].end) == (0, len(text))
        return spans[0].detector.type if is_whole else ""

    def _is_slice_done(self) -> bool:
        """Count one part more; return whether it is time for a pause."""
        self._parts += 1
        return self._parts % _PARTS_IN_SLICE == 0

    def _short(self, text: str, keys: tuple[str, ...], path: str) -> str:
        """Redact a text that is short enough to be looked through at once."""
        left = _left(keys)
        if (left, text) in self._clean:
            return text
        detectors = self._ahead.relevant(left, text)
        if detectors is None:
            return text
        memory = self._memory
        memory.latest = left + text, memory.plan(detectors)
        spans = self._scanner.find_short(text, walls_in(text), left, memory)
        if not spans:
            if len(self._clean) < _TEXTS_KEPT:
                self._clean.add((left, text))
            return text
        redacted, found = replace(text, spans, self._vault, self._policy, path)
        self.found += found
        return redacted

    def _text_sliced(self, text: str, keys: tuple[str, ...], path: str) -> Sliced[str]:
        left = _left(keys)
        if not self._scanner.may_find(left + text):
            return text
        walls = yield from _walls_sliced(text)
        spans = yield from self._scanner.find_sliced(text, walls, left=left, memory=self._memory)
        if not spans:
            return text
        redacted, found = yield from _replaced(text, spans, self._vault, self._policy, path)
        self.found += found
        return redacted

    def _number(self, number: int, keys: tuple[str, ...], path: str) -> Value:
        text, key = str(number), " ".join(keys)
        if len(text) < _CARD_CODE_CHARS or not keys:
            return number
        for detector in self._scanner.named_by(key):
            if len(text) < _NUMBER_CHARS_MIN and detector.type != "CARD":
                continue
            if not _is_whole(detector, text, key):
                continue
            return self._hide(detector.type, number, path)
        return number

    def _float(self, number: float, keys: tuple[str, ...], path: str) -> Value | float:
        """A whole float may be a number that a table program has read: it is judged as one and comes back as one."""
        if not number.is_integer() or abs(number) < _FLOAT_MIN or abs(number) >= _FLOAT_END:
            return number
        whole = self._number(int(number), keys, path)
        return number if whole == int(number) else whole

    def _hide(self, kind: str, value: Value, path: str) -> Value:
        action = self._policy.action(kind)
        self.found.append(Finding(kind, action, path))
        match action:
            case Action.TOKENISE:
                return self._vault.token(kind, value)
            case Action.ALLOW:
                return value
            case _:
                return _replacement(kind, str(value), action, self._vault)
