"""The values hidden in one session, and the tokens that stand for them.

A token reads `[[EMAIL_1_kqzmtwbf]]`: the type, so that a model can write a sentence around it; a number that is the same
for the same value; and a tag of the vault. The tag comes from outside and must be unpredictable: it is what keeps text written
elsewhere from naming a value of this vault. Each node that reads a stored vault hides under a tag of its own, so that two of
them never give one token to two values, whatever they know of each other. The form is plain ASCII, needs no escaping in JSON,
and holds too few digits in a row for any detector.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

VALUES_MAX: Final = 100_000
VAULT_BYTES_MAX: Final = 8 * 1024 * 1024  # of values, as text
_SEARCHED_MAX: Final = 2_000
_SEARCHED_CHARS_MIN: Final = 5
_encode = msgspec.json.Encoder().encode
_TAG = re.compile(r"[a-z]{8,32}")
_NO_SIGN = re.compile(r"[\W_]+")
_TYPE = re.compile(r"[A-Z][A-Z_]{0,22}[A-Z]")
TOKEN_CHARS_MAX: Final = 2 + 24 + 1 + 6 + 1 + 6 + 1 + 32 + 2
TOKEN: Final = re.compile(r"\[\[([A-Z][A-Z_]{0,22}[A-Z])_([1-9][0-9]{0,5})(?:v([1-9][0-9]{0,5}))?_([a-z]{8,32})\]\]")

# Types of fixed length, whose separators are only for reading.
_COMPACT_TYPES = frozenset(
    {
        "BANK_ACCOUNT",
        "CARD",
        "EIN",
        "IBAN",
        "ITIN",
        "MAC",
        "NHS",
        "NINO",
        "PHONE",
        "POSTAL_CODE",
        "ROUTING",
        "SIN",
        "SSN",
    }
)

Value = str | int  # a number in JSON may be hidden too, and comes back as a number


class VaultFullError(Exception):
    """The session holds as many hidden values as it may; nothing more can be hidden reversibly."""


class Vault:
    """Values to tokens and back, for one session. Not for concurrent use; the session serialises its calls."""

    __slots__ = ("_counts", "_entries", "_numbers", "_spellings", "_tokens", "_values", "size", "tag", "tags")

    def __init__(self, tag: str) -> None:
        if not _TAG.fullmatch(tag):
            raise ValueError(f"a vault's tag is 8 to 32 letters a-z, not {tag!r}")
        self.tag = tag  # of the tokens made here
        self.tags = {tag}  # of all it knows
        self.size = 0  # of its values, in characters
        self._values: dict[str, Value] = {}
        self._entries: list[tuple[str, int, int, Value, str]] = []  # kind, number, spelling, value and tag, as they came
        self._tokens: dict[tuple[str, Value], str] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        self._counts: dict[str, int] = {}
        self._spellings: dict[tuple[str, int], int] = {}  # of values with more than one

    @classmethod
    def from_entropy(cls, entropy: bytes) -> Vault:
        """Return an empty vault whose tag is made of random bytes; eight give it sixteen letters."""
        return cls(_letters(entropy))

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, token: str) -> bool:
        return token in self._values

    def token(self, kind: str, value: Value) -> str:
        """Return the token of a value, the same one each time.

        Two spellings of one value (`4111 1111…` and `4111-1111…`) share a number and differ in a `v2`, so that a model can
        tell they are the same and each comes back as it was written.
        """
        known = self._tokens.get((kind, value))
        if known is not None:
            return known
        if len(self._values) >= VALUES_MAX or self.size >= VAULT_BYTES_MAX:
            raise VaultFullError(f"a vault holds at most {VALUES_MAX:,} values and {VAULT_BYTES_MAX:,} bytes")
        if kind not in self._counts and not _TYPE.fullmatch(kind):
            raise ValueError(f"the type of a hidden value is 2 to 24 capitals or underscores, not {kind!r}")
        identity = _identity(kind, value)
        number = self._numbers.get((kind, identity))
        if number is None:
            return self._add(kind, self._counts.get(kind, 0) + 1, 1, value, self.tag, identity)
        return self._add(kind, number, self._spellings.get((kind, number), 1) + 1, value, self.tag, identity)

    def counts(self) -> dict[str, int]:
        """Return how many different values of each kind are hidden."""
        return dict(self._counts)

    def value(self, token: str) -> Value | None:
        """Return what a token stands for, or None if it is not of this vault."""
        return self._values.get(token)

    def hide_known(self, text: str) -> str:
        """Return a text with every value that this vault knows as its token, also where no detector would find the value.

        Short values stay, since they may stand for anything, and so do those of a vault that is too large to be gone through.
        """
        if len(self._values) > _SEARCHED_MAX:
            return text
        for token, value in sorted(self._values.items(), key=lambda one: -len(str(one[1]))):
            if len(plain := str(value)) >= _SEARCHED_CHARS_MIN:
                text = text.replace(plain, token)
        return text

    def parts(self, size: int) -> Iterator[bytes]:
        """Yield what is to be stored of the vault, as JSON in parts of `size` values; it holds the values in clear."""
        own, entries = self.tag, self._entries[:]
        yield b'{"tag":' + _encode(own) + b',"values":['
        for first in range(0, len(entries), size):
            part = [entry[:4] if entry[4] == own else entry for entry in entries[first : first + size]]
            yield (b"," if first else b"") + _encode(part)[1:-1]
        yield b"]}"

    def to_data(self) -> dict[str, Any]:
        """Return plain data to store; it holds the values in clear, so the caller that stores it encrypts it."""
        return msgspec.json.decode(b"".join(self.parts(VALUES_MAX)), type=dict[str, Any])

    @classmethod
    def from_data(cls, data: Mapping[str, Any], issuer: str = "") -> Vault:
        """Return the vault that `to_data` described; with an issuer, a vault that hides new values under a tag of its own."""
        vault = cls(data["tag"])
        for kind, number, spelling, value, *other in data["values"]:
            vault._add(kind, number, spelling, value, other[0] if other else vault.tag, _identity(kind, value))
        if issuer:
            vault.tag = _letters(hashlib.sha256(f"{vault.tag} {issuer}".encode()).digest()[:8])
        return vault

    def learn(self, other: Vault) -> None:
        """Know the tokens of another copy of this vault too."""
        for token, entry in zip(other._values, other._entries, strict=True):
            if token not in self._values:
                self._add(*entry, _identity(entry[0], entry[3]))

    def _add(self, kind: str, number: int, spelling: int, value: Value, tag: str, identity: str) -> str:
        token = f"[[{kind}_{number}{f'v{spelling}' if spelling > 1 else ''}_{tag}]]"
        self.tags.add(tag)
        self._numbers[kind, identity] = number
        if number > self._counts.get(kind, 0):
            self._counts[kind] = number
        if spelling > 1:  # of most values there is one
            self._spellings[kind, number] = max(spelling, self._spellings.get((kind, number), spelling))
        if token not in self._values:
            self._entries.append((kind, number, spelling, value, tag))
            self.size += len(value) if isinstance(value, str) else 8
        self._values[token] = value
        self._tokens[kind, value] = token
        return token


def _letters(entropy: bytes) -> str:
    return "".join(chr(97 + (byte >> 4)) + chr(97 + (byte & 15)) for byte in entropy)[:32]


def _identity(kind: str, value: Value) -> str:
    """Return what makes two spellings the same value. Dots and slashes part numbers in dates and IP addresses: they stay."""
    text = str(value)
    if kind in _COMPACT_TYPES:
        return text.upper() if text.isalnum() else _NO_SIGN.sub("", text.upper())
    return text.lower() if kind == "EMAIL" else text
