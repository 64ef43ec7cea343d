"""Hiding personal data before it leaves a session, and putting it back for that session's user.

Strings are redacted wherever they stand: in text, in nested lists and objects, and in keys. A JSON key is read as the words
before its value, so `{"passport": "X1234567"}` counts like "passport: X1234567". Numbers are left alone, unless the key names
their kind and the number has its shape and checksum: `{"ssn": 219099999}` is hidden, `{"total": 219099999}` is not. Floats,
booleans and null never are.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from comity.core.redaction.detector import Detector
from comity.core.redaction.policy import DEFAULT_POLICY, Action, Policy
from comity.core.redaction.scan import DEFAULT_SCANNER, Scanner, Span, Wall
from comity.core.redaction.shapes import WALL, plain_words
from comity.core.redaction.vault import TOKEN, Value, Vault

# "****1234" and "****@example.com": what a mask leaves is not looked into again.
_MASK = re.compile(r"\*{4}(?:[A-Za-z0-9]{4}(?![A-Za-z0-9])|@[A-Za-z0-9.\u00c0-\u024f-]{1,320})?")
_TOKEN_OR_MASK = re.compile(f"{TOKEN.pattern}|{_MASK.pattern}")
_MASK_SHOWS_LAST_FROM = 8  # letters and digits; of a shorter value four would be too much
_KEYS_KEPT = 3  # how many keys of the path name a value
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class Finding(msgspec.Struct, frozen=True):
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


def blocked_types(found: tuple[Finding, ...]) -> frozenset[str]:
    """Return the types for which the policy says that the call must be refused."""
    return frozenset(finding.type for finding in found if finding.action is Action.BLOCK)


def may_hold_personal_data(raw: bytes, scanner: Scanner = DEFAULT_SCANNER) -> bool:
    """Return False only if `redact_json` would return the document unchanged; about 2 µs per kilobyte."""
    return scanner.may_find_in_json(raw)


def redact_text(text: str, vault: Vault, policy: Policy = DEFAULT_POLICY, scanner: Scanner = DEFAULT_SCANNER) -> Redaction:
    """Return `text` with every value found replaced as the policy says."""
    spans = scanner.find(text, walls_in(text))
    if not spans:
        return Redaction(text)
    redacted, found = replace(text, spans, vault, policy)
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
    walk = _Walk(vault, policy, scanner)
    return ValueRedaction(walk.value(value, (), ""), tuple(walk.found))


def redact_json(raw: bytes, vault: Vault, policy: Policy = DEFAULT_POLICY, scanner: Scanner = DEFAULT_SCANNER) -> JsonRedaction:
    """Return a JSON document redacted; one that cannot hold personal data is not even decoded."""
    if not scanner.may_find_in_json(raw):
        return JsonRedaction(raw)
    redaction = redact_value(_decode(raw), vault, policy, scanner)
    if not redaction.found:
        return JsonRedaction(raw)
    return JsonRedaction(_encode(redaction.value), redaction.found)


def restore_text(text: str, vault: Vault, types: frozenset[str] | None = None) -> str:
    """Return `text` with this vault's tokens turned back, all of them or those of `types`; other tokens stay."""
    if "[[" not in text:
        return text
    return TOKEN.sub(lambda match: str(_restored(match, vault, types)), text)


def restore_value(value: Any, vault: Vault, types: frozenset[str] | None = None) -> Any:
    """Return a copy of a JSON-like value with this vault's tokens turned back, in keys too."""
    match value:
        case str():
            whole = TOKEN.fullmatch(value)
            return _restored(whole, vault, types) if whole else restore_text(value, vault, types)
        case dict():
            return {restore_text(key, vault, types): restore_value(item, vault, types) for key, item in value.items()}
        case list():
            return [restore_value(item, vault, types) for item in value]
        case tuple():
            return tuple(restore_value(item, vault, types) for item in value)
        case _:
            return value


def restore_json(raw: bytes, vault: Vault, types: frozenset[str] | None = None) -> bytes:
    """Return a JSON document with this vault's tokens turned back."""
    if not any(tag.encode() in raw for tag in vault.tags):
        return raw
    return _encode(restore_value(_decode(raw), vault, types))


def walls_in(text: str) -> list[Wall]:
    """Return the tokens, of whichever vault, and the masks in `text`, from left to right."""
    if "[[" not in text and "****" not in text:
        return []
    return [Wall(*match.span()) for match in _TOKEN_OR_MASK.finditer(text)]


def replace(text: str, spans: list[Span], vault: Vault, policy: Policy) -> tuple[str, list[Finding]]:
    """Return `text` with the values at `spans` replaced, and what was done."""
    pieces: list[str] = []
    found: list[Finding] = []
    end = 0
    for span in spans:
        kind = span.detector.type
        action = policy.action(kind)
        value = text[span.start : span.end]
        pieces += (text[end : span.start], _replacement(kind, value, action, vault))
        found.append(Finding(kind, action))
        end = span.end
    pieces.append(text[end:])
    return "".join(pieces), found


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


class _Walk:
    """One pass over a nested value."""

    __slots__ = ("_named", "_policy", "_scanner", "_vault", "found")

    def __init__(self, vault: Vault, policy: Policy, scanner: Scanner) -> None:
        self._vault, self._policy, self._scanner = vault, policy, scanner
        self._named: dict[str, tuple[Detector, ...]] = {}  # by key, so that a long list asks once
        self.found: list[Finding] = []

    def value(self, value: Any, keys: tuple[str, ...], path: str) -> Any:
        match value:
            case str():
                return self._text(value, keys, path)
            case bool():
                return value
            case int():
                return self._number(value, keys, path)
            case dict():
                return self._object(value, keys, path)
            case list():
                return [self.value(item, keys, f"{path}[{index}]") for index, item in enumerate(value)]
            case tuple():
                return tuple(self.value(item, keys, f"{path}[{index}]") for index, item in enumerate(value))
            case _:
                return value

    def _object(self, value: dict[Any, Any], keys: tuple[str, ...], path: str) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        numbers: dict[str, int] = {}
        for key, item in value.items():
            if not isinstance(key, str):
                result[key] = self.value(item, keys, path)
                continue
            hidden = self._text(key, (), path)
            if hidden in result:  # two values may end in the same mask
                numbers[hidden] = number = numbers.get(hidden, 1) + 1
                hidden = f"{hidden} ({number})"
            # As words, the key is what a second redaction will see: the type in a token is no context.
            words = plain_words(_TOKEN_OR_MASK.sub(WALL, hidden))
            result[hidden] = self.value(item, (*keys, words)[-_KEYS_KEPT:], f"{path}.{hidden}" if path else hidden)
        return result

    def _text(self, text: str, keys: tuple[str, ...], path: str) -> str:
        left = f"{' '.join(keys)}: " if keys else ""
        spans = self._scanner.find(text, walls_in(text), left=left)
        if not spans:
            return text
        redacted, found = replace(text, spans, self._vault, self._policy)
        self.found.extend(Finding(finding.type, finding.action, path) for finding in found)
        return redacted

    def _number(self, number: int, keys: tuple[str, ...], path: str) -> Value:
        text, key = str(number), " ".join(keys)
        if len(text) < 5 or not keys:
            return number
        if key not in self._named:
            self._named[key] = tuple(detector for detector in self._scanner.detectors if detector.names(key))
        for detector in self._named[key]:
            if (0, len(text)) not in detector.spans(text):
                continue
            action = self._policy.action(detector.type)
            self.found.append(Finding(detector.type, action, path))
            match action:
                case Action.TOKENISE:
                    return self._vault.token(detector.type, number)
                case Action.ALLOW:
                    return number
                case _:
                    return _replacement(detector.type, text, action, self._vault)
        return number
