"""Errors in dialects that have one text for them: `CODE: sentence`, or the sentence alone where the code is the usual one.

Dialects have words of their own for some codes; those stand before the colon instead. A text that says what we would say in
other words is given back as it came: the word before its colon is kept apart, see `Fault.prefix`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from comity.core.call.limits import NAME_CHARS_MAX, WARNINGS_MAX
from comity.core.envelope.envelope import Error

_CODED = re.compile(rf"(?=.{{1,{NAME_CHARS_MAX}}}: )([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+): (.*)", re.DOTALL)
_WORDED = re.compile(r"([A-Z][A-Za-z0-9]*): (.*)", re.DOTALL)
_NO_WORDS: Final[Mapping[str, str]] = MappingProxyType({})

# What an agent asks instead of answering, in dialects that can only say that it failed.
NEEDS_INPUT: Final = "CALL_NEEDS_INPUT"


class Fault(NamedTuple):
    """An error read from a text; `prefix` is set where the text named its code in another way than we would."""

    error: Error
    prefix: str | None


def read_fault(text: str, *, usual: str, words: Mapping[str, str] = _NO_WORDS) -> Fault:
    """Return the error a text tells of. `words` are the dialect's own names of codes."""
    code, message, prefix = usual, text, None
    if (worded := _WORDED.fullmatch(text)) and worded[1] in words:
        code, message, prefix = words[worded[1]], worded[2], worded[1]
    elif coded := _CODED.fullmatch(text):
        code, message, prefix = coded[1], coded[2], coded[1]
    error = Error.of(code, message)
    return Fault(error, prefix if text_of(error, usual=usual, words=words) != text else None)


def text_of(error: Error, *, usual: str, words: Mapping[str, str] = _NO_WORDS, prefix: str | None = None) -> str:
    """Return the text that tells of an error; `read_fault` gives back its code and message."""
    if prefix is not None and words.get(prefix, prefix) == error.code:
        return f"{prefix}: {error.message}"
    if error.code == usual and not _names_a_code(error.message, words):
        return error.message
    word = next((word for word, code in words.items() if code == error.code), error.code)
    return f"{word}: {error.message}"


def _names_a_code(message: str, words: Mapping[str, str]) -> bool:
    worded = _WORDED.fullmatch(message)
    return _CODED.fullmatch(message) is not None or (worded is not None and worded[1] in words)


def lines_of(text: str) -> tuple[str, ...]:
    """Return the warnings in a text, one a line; more lines than an envelope has room for are one warning."""
    lines = tuple(text.split("\n"))
    return lines if len(lines) <= WARNINGS_MAX else (text,)
