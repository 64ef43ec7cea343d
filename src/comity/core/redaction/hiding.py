"""Tokens and masks in place of the values that were found in a text, and the stretches that hold one already."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from comity.core.document.slices import Sliced
from comity.core.redaction.candidates import Span
from comity.core.redaction.policy import Action, Policy
from comity.core.redaction.search import Wall
from comity.core.redaction.vault import TOKEN, Vault

# "****1234" and "****@example.com": what a mask leaves is not looked into again.
_MASK = re.compile(r"\*{4}(?:[A-Za-z0-9]{4}(?![A-Za-z0-9])|@[A-Za-z0-9.\u00c0-\u024f-]{1,320})?")
HIDDEN = re.compile(f"{TOKEN.pattern}|{_MASK.pattern}")
_MASK_SHOWS_LAST_FROM = 8  # letters and digits; of a shorter value four would be too much
SLICE_ITEMS = 128  # values replaced, or parts of a document walked, in a slice of work


class Finding(msgspec.Struct, frozen=True, gc=False):
    """One value found and what was done with it; never the value itself, so that it can be audited."""

    type: str
    action: Action
    path: str = ""  # where in a document, such as `person.emails[0]`; empty for a plain text


def walls_in(text: str) -> list[Wall]:
    """Return the tokens, of whichever vault, and the masks in `text`, from left to right."""
    if "[[" not in text and "****" not in text:
        return []
    return [Wall(*match.span()) for match in HIDDEN.finditer(text)]


def walls_sliced(text: str) -> Sliced[list[Wall]]:
    if "[[" not in text and "****" not in text:
        return []
    walls: list[Wall] = []
    for number, match in enumerate(HIDDEN.finditer(text), 1):
        walls.append(Wall(*match.span()))
        if number % SLICE_ITEMS == 0:
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
        pieces += (text[end:start], replacement(kind, text[start : span.end], finding.action, vault))
        found.append(finding)
        end = span.end
    pieces.append(text[end:])
    return "".join(pieces), found


def replaced_sliced(text: str, spans: list[Span], vault: Vault, policy: Policy, path: str) -> Sliced[tuple[str, list[Finding]]]:
    """Return what `replace` does, with pauses. It joins as it goes: to join all pieces of a long text at its end takes long."""
    parts: list[str] = []
    found: list[Finding] = []
    end = 0
    for first in range(0, len(spans), SLICE_ITEMS):
        some = [Span(span.start - end, span.end - end, span.detector) for span in spans[first : first + SLICE_ITEMS]]
        chars = some[-1].end
        part, more = replace(text[end : end + chars], some, vault, policy, path)
        parts.append(part)
        found += more
        end += chars
        if len(some) == SLICE_ITEMS:
            yield
    return "".join((*parts, text[end:])), found


def replacement(kind: str, value: str, action: Action, vault: Vault) -> str:
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
