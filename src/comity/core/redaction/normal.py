"""A text as patterns read it: one character for each, whatever script, width or escape it was written in.

Characters that show nothing (zero-width, soft hyphen, direction marks) are dropped; digits of every script, full-width and
mathematical letters become ASCII; `\\u0040`, `%40` and `&#64;` become the character they stand for. Each of them becomes one
character or none, so that a place in the copy is a place in the original, and the beginning of a text has
the beginning of its copy.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import cache

from comity.core.document.slices import Sliced

# The zeros of the decimal digits of other scripts; the other nine follow each.
_ZEROS = (
    0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xDE6, 0xE50, 0xED0, 0xF20, 0x1040,
    0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0,
    0xA9F0, 0xAA50, 0xABF0, 0x104A0, 0x10D30, 0x11066, 0x110F0, 0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0, 0x11650, 0x116C0,
    0x11730, 0x118E0, 0x11950, 0x11C50, 0x11D50, 0x11DA0, 0x16A60, 0x16AC0, 0x16B50, 0x1E140, 0x1E2F0, 0x1E950, 0x1FBF0,
)  # fmt: skip
_UNSEEN = (
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x180B, 0x180E), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F),
    (0x20E3, 0x20E3), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xE0000, 0xE01EF),
)  # fmt: skip
_OTHER_FORMS = (
    (0x2000, 0x200A), (0x2024, 0x2024), (0x205F, 0x205F), (0x2212, 0x2212), (0x3000, 0x3000), (0xFE50, 0xFE6B),
    (0xFF01, 0xFF5E), (0xFF61, 0xFF61), (0x1D400, 0x1D7FF),
)  # fmt: skip


def _class(*ranges: tuple[int, int]) -> str:
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


_UNSEEN_CLASS = _class(*_UNSEEN)
_ODD_CLASS = _class(*_UNSEEN, *_OTHER_FORMS, *((zero, zero + 9) for zero in _ZEROS))
_NAMED = {"commat": "@", "period": ".", "lowbar": "_", "plus": "+", "hyphen": "-", "dash": "-", "nbsp": " ", "colon": ":",
          "amp": "&", "num": "#", "sol": "/", "quot": '"', "equals": "="}  # fmt: skip
_ESCAPE = (
    rf"\\u00[2-7][0-9A-Fa-f]|\\x[2-7][0-9A-Fa-f]|%[2-7][0-9A-Fa-f]|&#(?:[0-9]{{2,3}}|[xX][2-7][0-9A-Fa-f]);"
    rf"|&(?:{'|'.join(_NAMED)});"
)
_ODD_IN_SLICE = 512
_ODD = re.compile(rf"[{_ODD_CLASS}]|{_ESCAPE}")
_ESCAPED = re.compile(_ESCAPE)
# In the syntax of Rust's engine.
ODD_HINT = rf"[{_ODD_CLASS}]|&#[0-9xX]|&(?:{'|'.join(_NAMED)});|%[2-7][0-9A-Fa-f]|\\x[2-7]|\\u00[2-7]"


class Copy:
    """A normalised copy and where its characters stand in the original."""

    __slots__ = ("_at", "_from", "text")

    def __init__(self) -> None:
        self.text = ""
        self._at, self._from = [0], [0]

    @classmethod
    def of(cls, text: str) -> Sliced[Copy]:
        """Return the copy of a text."""
        copy = cls()
        yield from copy._read(text)
        return copy

    def _read(self, text: str) -> Sliced[None]:
        pieces: list[str] = []
        end = size = 0
        for number, match in enumerate(_ODD.finditer(text)):
            if number % _ODD_IN_SLICE == _ODD_IN_SLICE - 1:
                yield
            start = match.start()
            plain = _plain(match.group())
            pieces += (text[end:start], plain)
            size += start - end + len(plain)
            end = match.end()
            if len(plain) != end - start:
                self._at.append(size)
                self._from.append(end)
        pieces.append(text[end:])
        self.text = "".join(pieces)

    def original(self, place: int) -> int:
        """Return where a place of the copy is in the original."""
        index = bisect_right(self._at, place) - 1
        return self._from[index] + place - self._at[index]

    def place(self, original: int) -> int:
        """Return where a place of the original is in the copy."""
        index = bisect_right(self._from, original) - 1
        place = self._at[index] + original - self._from[index]
        return min(place, self._at[index + 1]) if index + 1 < len(self._at) else place


def is_odd(text: str) -> bool:
    """Return whether a text differs from its normalised copy."""
    if text.isascii():
        return ("\\" in text or "%" in text or "&" in text) and _ESCAPED.search(text) is not None
    return _ODD.search(text) is not None


_SIGNS = {"\u2212": "-", "\uff61": "."}  # which NFKC leaves, or makes a sign of another script


@cache
def _plain(odd: str) -> str:
    """Return the character that an odd one or an escape stands for; empty for what shows nothing. The"
    " keys are a few thousand."""
    if len(odd) > 1:
        return _unescaped(odd)
    if odd in _UNSEEN_SET:
        return ""
    digit = unicodedata.digit(odd, -1)
    if digit >= 0:
        return str(digit)
    form = _SIGNS.get(odd) or unicodedata.normalize("NFKC", odd)
    return form if len(form) == 1 else odd


def _unescaped(escape: str) -> str:
    if escape[0] != "&":
        return chr(int(escape[-2:], 16))
    if escape[1] != "#":
        return _NAMED[escape[1:-1]]
    code = int(escape[3:-1], 16) if escape[2] in "xX" else int(escape[2:-1])
    return chr(code) if 0x20 <= code < 0x7F else " "


_UNSEEN_SET = frozenset(chr(code) for first, last in _UNSEEN for code in range(first, last + 1))
