"""The words of a text as features: stems, pairs of stems, pieces of words, and the ideas of the thesaurus."""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from typing import Final

from comity.core.orchestration.intent.stems import stem, words
from comity.core.orchestration.intent.thesaurus import IDEAS

_EDGE: Final = "|"

Features = list[tuple[str, float]]


@lru_cache(maxsize=65_536)
def _pieces(word: str) -> tuple[str, ...]:
    marked = f"<{word}>"
    return tuple(f".{marked[at : at + size]}" for size in (3, 4) for at in range(len(marked) - size + 1))


def _ideas(found: list[str]) -> set[str]:
    ideas = {idea for one in found for idea in IDEAS.get(one, ())}
    for left, right in pairwise(found):
        ideas.update(IDEAS.get(f"{left} {right}", ()))
    return ideas


def blocks(text: str) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Return the raw counts of the three blocks: stems with their pairs, pieces of words, ideas."""
    said = words(text)
    found = [stem(word) for word in said]
    edged = [_EDGE, *found, _EDGE]
    lexical = Counter(found)
    lexical.update(f"{left} {right}" for left, right in pairwise(edged))
    pieces = Counter(piece for word in said for piece in _pieces(word))
    return lexical, pieces, Counter(f"~{idea}" for idea in _ideas(found))


class Vocabulary:
    """How rare each feature is among the texts it was built from; a feature not seen there weighs as the rarest."""

    def __init__(self, texts: list[str]) -> None:
        self._seen: Counter[str] = Counter()
        for text in texts:
            for block in blocks(text):
                self._seen.update(block.keys())
        self.size = len(texts)
        self._rarity = {feature: math.log((1 + self.size) / (1 + count)) + 1 for feature, count in self._seen.items()}

    def rarity(self, feature: str) -> float:
        """Return the smoothed inverse document frequency of a feature, from 1 upwards."""
        return self._rarity.get(feature) or math.log(1 + self.size) + 1

    def knows(self, feature: str) -> bool:
        """Say whether a feature occurs in the texts."""
        return feature in self._rarity

    def features(self, text: str, weights: tuple[float, float, float]) -> Features:
        """Return the known features of a text, each block scaled to its weight in length."""
        found: Features = []
        for block, weight in zip(blocks(text), weights, strict=True):
            if not weight:
                continue
            raw = [(name, (1 + math.log(count)) * self.rarity(name)) for name, count in block.items()]
            length = math.sqrt(sum(value * value for _, value in raw)) or 1.0
            found += [(name, weight * value / length) for name, value in raw if name in self._rarity]
        return found
