"""Hiding personal data before it leaves a session, and putting it back for that session's user.

Strings are redacted wherever they stand: in text, in nested lists and objects, and in keys. A JSON key is read as the words
before its value, so `{"passport": "X1234567"}` counts like "passport: X1234567". Numbers are left alone, unless the key names
their kind and the number has its shape and checksum: `{"ssn": 219099999}` is hidden, `{"total": 219099999}` is not. Booleans
and null never are.
"""

from __future__ import annotations

from typing import Any

import msgspec

from comity.core.document.payload import unpack_long
from comity.core.document.slices import Sliced, in_one_go, whole
from comity.core.redaction.hiding import Finding, replaced_sliced, walls_in, walls_sliced
from comity.core.redaction.policy import DEFAULT_POLICY, Action, Policy
from comity.core.redaction.scan import DEFAULT_SCANNER, Scanner
from comity.core.redaction.vault import Vault
from comity.core.redaction.walk import Walk

_encode = msgspec.json.Encoder().encode


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
    walls = yield from walls_sliced(text)
    spans = yield from scanner.find_sliced(text, walls)
    redacted, found = yield from replaced_sliced(text, spans, vault, policy, "")
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
    walk = Walk(vault, policy, scanner)
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
    value = in_one_go(unpack_long, raw)
    yield
    redaction = yield from _redact_value(value, vault, policy, scanner)
    if not redaction.found:
        return JsonRedaction(raw)
    yield
    return JsonRedaction(_encode(redaction.value), redaction.found, redaction.value)
