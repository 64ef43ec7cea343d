"""Hidden values in a request: a privacy token or a mask stands for a value and is no word of the request."""

from __future__ import annotations

import re
from typing import Final

from comity.core.redaction import HIDDEN

# A number between letters that no living language writes: the splitter reads it as the name of something.
_NAME: Final = "Ꙭ{}ꙭ"
_NAMED: Final = re.compile(r"Ꙭ(\d{1,6})ꙭ")


def without(text: str) -> str:
    """Return a text with a space in the place of each hidden value."""
    return HIDDEN.sub(" ", text) if _may_hide(text) else text


def named(text: str) -> tuple[str, list[str]]:
    """Return a text with a made-up name in the place of each hidden value, and the values; `restored` undoes it."""
    if not _may_hide(text):
        return text, []
    values: list[str] = []

    def name(found: re.Match[str]) -> str:
        values.append(found.group())
        return _NAME.format(len(values) - 1)

    return HIDDEN.sub(name, text), values


def restored(text: str, values: list[str]) -> str:
    """Return a text of `named` with its hidden values."""
    if not values:
        return text
    return _NAMED.sub(lambda found: values[int(found[1])] if int(found[1]) < len(values) else found.group(), text)


def _may_hide(text: str) -> bool:
    return "[[" in text or "****" in text
