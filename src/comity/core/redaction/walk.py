"""One pass over a nested value: each string, key and number in it is redacted with the keys above it as its words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from comity.core.document.slices import Sliced
from comity.core.redaction.ahead import AHEAD_TEXTS, Ahead
from comity.core.redaction.births import ANIMAL, ANIMAL_KEYS, are_of_animal
from comity.core.redaction.detector import Detector, PatternDetector
from comity.core.redaction.hiding import HIDDEN, Finding, replace, replaced_sliced, replacement, walls_in, walls_sliced
from comity.core.redaction.labelled import LabelledDetector
from comity.core.redaction.policy import Action, Policy
from comity.core.redaction.roles import NAMES_OTHERS, Role, name_of, names_in, role_of, roles_of, words_of
from comity.core.redaction.scan import Scanner
from comity.core.redaction.search import SHORT_CHARS, Memory
from comity.core.redaction.shapes import WALL, ends_of, plain_words
from comity.core.redaction.siblings import words_beside
from comity.core.redaction.split import kind_of_groups, split_parts
from comity.core.redaction.users import USERS, is_login, named_user
from comity.core.redaction.vault import Value, Vault

_GROUPS_MAX = 9
_FLOAT_MIN, _FLOAT_END = 10**9, 2**63
_CARD_CODE_CHARS, _NUMBER_CHARS_MIN = 3, 5  # shorter numbers, but for the security code of a card, count or name a state
_PARTS_IN_SLICE = 16
_TEXTS_KEPT = 4096  # of a document, whose judgement is kept in case they come again
RECORD_KEYS_MAX = 128
_KEYS_READ_MAX = 1024  # of an object, to find out what it is
_DEVICES = frozenset({"desktop", "tablet"})  # beside which "mobile" is a figure
_HEADS = frozenset({"columns", "cols", "header", "headers", "heads", "fields", "keys", "names"})
_ROWS = frozenset({"rows", "data", "values", "records", "items", "table"})
_HEAD = re.compile(r"[^\W\d_][^\d\n\0]{0,36}")
_NAME = re.compile(r"[^\W\d_][^\d\0\[\]*@]{1,31}")
_OPTION = re.compile("--[a-z][a-z-]{1,40}")
_HEADS_MAX = 64
_SCALARS = (int, float, type(None))
_KEYS_KEPT = 3  # how many keys of the path name a value


class Walk:
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
        if not value.keys().isdisjoint(ANIMAL_KEYS) and len(value) <= _KEYS_READ_MAX and are_of_animal(value):
            keys = (*keys, ANIMAL)[-_KEYS_KEPT:]
        if not value.keys().isdisjoint(_DEVICES):
            keys = (*keys, "devices")[-_KEYS_KEPT:]
        roles = roles_of(tuple(value)) if len(value) <= RECORD_KEYS_MAX else ()
        name, kind = names_in(value, roles)
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
                words = plain_words(HIDDEN.sub(WALL, ends_of(hidden)))
                if len(self.found) == found_before and len(key) <= SHORT_CHARS and len(self._plain_keys) < _TEXTS_KEPT:
                    self._plain_keys[key] = words
            if has_login:
                words = named_user(words, keys[-1] if keys else "")
            if key in meant:
                words = meant[key]
            place = f"{path}.{ends_of(hidden)}" if path else ends_of(hidden)
            role = roles[index] if roles else role_of(key)
            if role in NAMES_OTHERS and (said := name_of(role, item)):
                name = words_of(said)
            if role is Role.NUMBERED and kind and self._scanner.named_by(kind):
                named = (*keys, kind)[-_KEYS_KEPT:]
            elif role is Role.NAMED or (role is Role.NUMBERED and name):  # the name beside it counts, or the keys above
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
        walls = yield from walls_sliced(text)
        spans = yield from self._scanner.find_sliced(text, walls, left=left, memory=self._memory)
        if not spans:
            return text
        redacted, found = yield from replaced_sliced(text, spans, self._vault, self._policy, path)
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
                return replacement(kind, str(value), action, self._vault)


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


def _has_login(value: dict[Any, Any], keys: tuple[str, ...] = ()) -> bool:
    """Return whether an object has a user and a password; of an object that is a user the name is enough."""
    if value.keys().isdisjoint(USERS) and not ("name" in value and keys and keys[-1].lower() in USERS):
        return False
    return is_login(plain_words(key) for key in islice(value, _KEYS_READ_MAX) if isinstance(key, str))


def _left(keys: tuple[str, ...]) -> str:
    """Return the keys of a path as the words before a value."""
    return f"{' '.join(keys)}: " if keys else ""
