"""What a user is told while agents work: the work, never the architecture.

The text comes from the capability that does the work. It is checked against every name the node knows, so that no agent or
capability code reaches a user.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def leak(text: str, names: Iterable[str]) -> str | None:
    """Return a name that stands in the text as a word of its own, if any does; names that are plain words may stand."""
    words = {word.casefold().rstrip("._-") for word in _WORD.findall(text)}
    for name in names:
        # A lower-case name such as "orders" is also just a word; a code such as ANL or tag-ai is not.
        is_plain_word = name.isalpha() and name.islower()
        if not is_plain_word and name.casefold() in words:
            return name
    return None
