"""Characters that a person does not see and a model reads: hidden text, direction marks, tags, fillers, control characters.

Whole Unicode classes go (format, private use, surrogates, unassigned, controls) but for line breaks and tabs, and those letters
and marks that are drawn as nothing.
"""

from __future__ import annotations

import re
from typing import Final
from unicodedata import category

_CLASSES: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs"})
_KEPT: Final = frozenset("\n\t")
_BREAKS: Final = frozenset("\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")
# Letters and marks without a shape: joiners, fillers, vowels that are not written, variation selectors.
_SHAPELESS: Final = frozenset(
    map(chr, (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, *range(0x180B, 0x1810), *range(0xFE00, 0xFE10)))
)
_SELECTORS: Final = ("\U000e0100", "\U000e01ef")
# What stands between the parts of one emoji is part of how it is written, and no attempt at anything.
_EMOJI: Final = re.compile(
    "(?<=[\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff])[\ufe0e\ufe0f\u200d]+|(?<=[0-9#*])\ufe0f\u20e3"
)


def without_unseen(text: str) -> tuple[str, bool]:
    """Return a text without characters that no reader sees, and whether it held any that ordinary writing does not need."""
    if text.isprintable() and text.isascii():
        return text, False
    text = text.replace("\r\n", "\n")
    table = {ord(char): "\n" if char in _BREAKS else "" for char in set(text) if _is_unseen(char)}
    if not table:
        return text, False
    plain = _EMOJI.sub("", text)
    is_odd = any(ord(char) in table and char not in _BREAKS for char in set(plain))
    return plain.translate(table), is_odd


def _is_unseen(char: str) -> bool:
    if char in _KEPT:
        return False
    if char in _BREAKS or category(char) in _CLASSES:
        return True
    return char in _SHAPELESS or _SELECTORS[0] <= char <= _SELECTORS[1]
