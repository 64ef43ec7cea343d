"""Evidence that a part of a list is the next step, not a task beside the one before it: weights learnt from labelled requests.

`scripts/fit_split.py` learns the weights from the labelled sets and prints how well they judge a set they were not learnt from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from comity.core.orchestration.split.reference import refers_back
from comity.core.orchestration.split.verbs import DETERMINERS, tokens, without_politeness
from comity.core.orchestration.split.weights import WEIGHTS
from comity.core.orchestration.split.work import OTHER_MATTER, is_about_its_topic, is_alike, stage_of

_COMPLEMENT: Final = re.compile(r"\b(?:for|about|on|of|at|in|from)\s", re.IGNORECASE)
_LONG: Final = 6  # words
_LIST: Final = 3  # parts


def is_likely_next(texts: Sequence[str], at: int, *, is_told: bool) -> bool:
    """Return whether the part at a place of a list follows the one before it more likely than not."""
    return sum(WEIGHTS.get(name, 0.0) for name in signs(texts, at, is_told=is_told)) > 0


def signs(texts: Sequence[str], at: int, *, is_told: bool) -> list[str]:
    """Return the names of the signs that a part and the one before it show; `is_told`: an order is said further on."""
    text, last = texts[at], texts[at - 1]
    words, before = tokens(without_politeness(text)), tokens(without_politeness(last))
    told = {
        "always": True,
        "list": len(texts) >= _LIST,
        "order said later": is_told,
        "another part refers back": any(refers_back(one, "") for one in texts[1:]),
        "name or number": bool(OTHER_MATTER.search(text)),
        "name or number before": bool(OTHER_MATTER.search(last)),
        "complement": bool(_COMPLEMENT.search(text)),
        "complement before": bool(_COMPLEMENT.search(last)),
        "long": len(words) > _LONG,
        "same topic": is_about_its_topic(text, last),
        "same verb": is_alike(text, last),
    }
    article = words[1] if words[1:] and words[1] in DETERMINERS else "none"
    return [*(name for name, is_so in told.items() if is_so), f"object: {article}", *_verbs(before, words)]


def _verbs(before: list[str], words: list[str]) -> list[str]:
    first, then = before[:1], words[:1]
    stages = [f"stages: {stage_of(one)} {stage_of(other)}" for one, other in zip(first, then, strict=False)]
    return [f"first: {one}" for one in first] + [f"then: {one}" for one in then] + stages
