"""Labels as they are spelt without the marks on their letters: in keys of JSON, in chats, and in Greek capitals."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from comity.core.redaction.shapes import alternatives_of

_MARKED: Final = re.compile("[\u00c0-\u024f\u0370-\u03ff\u1e00-\u1fff]")  # a Cyrillic letter with a mark is another letter
_UNMARKED: Final = str.maketrans({"đ": "d", "ł": "l", "ø": "o", "æ": "ae", "ß": "ss", "ı": "i", "ð": "d", "þ": "th"})
_UMLAUTS: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa", "ß": "ss"})
_OPTIONAL: Final = re.compile(r"\(\?:[^()]*\)\?|\[[^\]]*\]\?|\\?.\?")
_SET: Final = re.compile(r"\[[^\]]*\]|\\.")
_LETTERS_MIN, _NEEDED_MIN = 5, 3  # of a label without its marks, and of its parts that are always there: "ne" is any word


def with_plain_letters(labels: str) -> str:
    """Return labels, and again those of some length that have marks on their letters, without the marks."""
    plain: dict[str, None] = {}
    for label in alternatives_of(labels):
        if _letters_of(label) < _LETTERS_MIN or _letters_of(_OPTIONAL.sub("", label)) < _NEEDED_MIN:
            continue
        if r"\." in label:
            plain[without_marks(_undotted(label))] = None
        if _MARKED.search(label):
            plain[without_marks(label)] = None
            if not _SET.search(label):
                plain[without_marks(label.translate(_UMLAUTS))] = None
    return "|".join((*alternatives_of(labels), *plain))


def _letters_of(label: str) -> int:
    return sum(char.isalpha() for char in _SET.sub("x", label))  # a set of letters is one


def _undotted(label: str) -> str:
    """Return a label without its dots, as the words of a key are: "č. ?účtu" as "č ?účtu"."""
    return label.replace(r"\.?", "").replace(r"\.", "")


def without_marks(label: str) -> str:
    """Return a word without the marks on its letters."""
    return "".join(
        char if not _MARKED.match(char) else unicodedata.normalize("NFD", char)[0] for char in label.translate(_UNMARKED)
    )
