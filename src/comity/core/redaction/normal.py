"""A text as patterns read it: one character for each, whatever script, width or escape it was written in.

Characters that show nothing (zero-width, soft hyphen, direction marks) are dropped; digits of every script, full-width and
mathematical letters become ASCII; `\\u0040`, `%40` and `&#64;` become the character they stand for. Words with a space after
each letter and labels with a sign after each are closed up ("a n n @ …", "p.e.s.e.l."), and raised or circled digits are read
where at least three stand together. Each character becomes one or none, so that a place in the copy is a place in the original,
and the beginning of a text has the beginning of its copy.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cache

from comity.core.document.slices import Sliced
from comity.core.redaction.shapes import compile_test

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
    (0x2000, 0x200A), (0x2010, 0x2011), (0x2024, 0x2024), (0x205F, 0x205F), (0x2212, 0x2212), (0x3000, 0x3000),
    (0xFE50, 0xFE6B), (0xFF01, 0xFF5E), (0xFF61, 0xFF61), (0x1D400, 0x1D7FF),
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
_RAISED = (
    (0xB2, 0xB3), (0xB9, 0xB9), (0x2070, 0x2070), (0x2074, 0x207E), (0x2080, 0x208E), (0x2460, 0x2468), (0x24B6, 0x24EA),
    (0x2776, 0x277E), (0x2780, 0x2788), (0x278A, 0x2792), (0x1F130, 0x1F149),
)  # fmt: skip
_RAISED_CLASS = _class(*_RAISED)
_SINGLE = r"[^\s|=*,;()\[\]{}<>\"'\\]"
_SPREAD = (  # a run of single characters, or the letters of a label
    rf"(?<!\S){_SINGLE}(?:[ ]{_SINGLE}){{5,80}}(?!\S)"
    r"|(?<![\w.@/\\-])[A-Za-z](?:[._][A-Za-z]){2,7}\.?(?!\.?[\w@/\\-])|(?<!\S)[A-Za-z](?:[ ][A-Za-z]){2,7}(?=[ ]{0,2}[:#])"
)
_LONG_VOWEL = r"[0-9\uff10-\uff19]\u30fc[0-9\uff10-\uff19]"  # which Japanese keyboards write for a hyphen
_ODD_IN_SLICE = 512
_SLICE_CHARS, _RUN_CHARS_MAX = 16_384, 256
_ODD = re.compile(
    rf"[{_ODD_CLASS}]|(?<=[0-9\uff10-\uff19])\u30fc(?=[0-9\uff10-\uff19])|{_ESCAPE}|(?P<raised>[{_RAISED_CLASS}]{{3,64}})|(?P<spread>{_SPREAD})"
)
_ESCAPED = re.compile(_ESCAPE)
_JOINTS_MIN = 2  # between the letters of the shortest label
_LETTERS_MIN = 3  # in a run: numbers with a space between them are a list
_DIGITS_MIN = 7
_GROUPED = re.compile("[0-9](?: [0-9]){0,9}(?: - [0-9](?: [0-9]){0,9}){1,4}")
# In the syntax of Rust's engine.
_SPREAD_HINT = (
    r"[ ](?:[^\s|=*,;()\[\]{}<>\"'\\][ ]){4}|(?:^|[^A-Za-z0-9_.])(?:[A-Za-z][._]){2,7}[A-Za-z](?:[^A-Za-z0-9_]|$)"
    r"|(?:^|[^A-Za-z0-9])(?:[A-Za-z][ ]){2,7}[A-Za-z][ ]{0,2}[:#\"]"
)
ODD_HINT = (
    rf"{_SPREAD_HINT}|[{_RAISED_CLASS}]{{3}}|[{_ODD_CLASS}]|{_LONG_VOWEL}|&#[0-9xX]|&(?:{'|'.join(_NAMED)});"
    r"|%[2-7][0-9A-Fa-f]|\\x[2-7]|\\u00[2-7]"
)


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
        end = size = number = 0
        for start, stop in _slices(len(text)):
            for match in _ODD.finditer(text, max(start, end), min(stop + _RUN_CHARS_MAX, len(text))):
                if match.start() >= stop:
                    break
                number += 1
                if number % _ODD_IN_SLICE == 0:
                    yield
                for first, last, plain in _parts(match):
                    pieces += (text[end:first], plain)
                    size += first - end + len(plain)
                    end = last
                    if len(plain) != last - first:
                        self._at.append(size)
                        self._from.append(last)
            yield
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


def _slices(size: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + _SLICE_CHARS, size)) for start in range(0, size, _SLICE_CHARS))


def _parts(match: re.Match[str]) -> Iterator[tuple[int, int, str]]:
    """Yield where each odd character of a match stands, and what it stands for."""
    run = match.group()
    if match.lastgroup is None:
        yield match.start(), match.end(), _plain(run)
    elif match.lastgroup == "raised" or sum(map(str.isalpha, run)) >= _LETTERS_MIN or _is_grouped(run):
        for place, char in enumerate(run, match.start()):
            is_joint = match.lastgroup == "spread" and (place - match.start()) % 2 == 1
            plain = "" if is_joint else _plain(char)
            if plain != char:
                yield place, place + 1, plain


def _is_grouped(run: str) -> bool:
    """Return whether digits with spaces between them have the hyphen of a number among them: "4 7 - 2 9 1 8 3 6 5"."""
    return sum(map(str.isdigit, run)) >= _DIGITS_MIN and _GROUPED.fullmatch(run) is not None


def is_odd(text: str) -> bool:
    """Return whether a text may differ from its normalised copy."""
    if not text.isascii():
        return not is_readable(text) or _is_odd()(text)
    if text.count(" ") + text.count(".") + text.count("_") >= _JOINTS_MIN and _is_spread()(text):
        return True
    return ("\\" in text or "%" in text or "&" in text) and _ESCAPED.search(text) is not None


@cache
def _is_odd() -> Callable[[str], bool]:
    return compile_test(ODD_HINT)


@cache
def _is_spread() -> Callable[[str], bool]:
    return compile_test(_SPREAD_HINT)


def is_readable(text: str) -> bool:
    """Return whether the engine of the tests can read a text; it has no answer for one with a lone surrogate."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# Signs that NFKC leaves as they are, or makes signs of another script.
_SIGNS = {"\u2010": "-", "\u2011": "-", "\u2212": "-", "\u30fc": "-", "\uff61": "."}


@cache
def _plain(odd: str) -> str:
    """Return the character that an odd character or an escape stands for; empty for a character that shows nothing.

    The results are cached: there are a few thousand odd characters.
    """
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
