"""The default intent classifier: learns from names, descriptions and example utterances, offline and without a dependency."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from comity.core.orchestration.intent.calibration import (
    ANSWER_PRIOR,
    SCOPE_PRIOR,
    Curve,
    Signals,
    chance,
    fit,
    quantile,
    signals,
)
from comity.core.orchestration.intent.linear import Sample, Table, centres, scores, train
from comity.core.orchestration.intent.stems import FUNCTION_WORDS, stem, stems, words
from comity.core.orchestration.intent.thesaurus import IDEAS
from comity.core.orchestration.intent.words import Vocabulary

WEIGHTS_FEW: Final = (1.0, 1.0, 0.6)  # of stems, pieces of words, ideas
WEIGHTS_MANY: Final = (1.0, 1.0, 0.0)  # many examples say more than the thesaurus
CENTRE_SHARE: Final = 0.5  # of the centres in the weights, where examples are few
FEW: Final = 3_000  # texts in all; with more one fold is enough and the centres add nothing
PASSES_FEW: Final = 10
PASSES_MANY: Final = 5
FOLDS: Final = 5
LEFT_OUT_EVERY: Final = 10  # one intent in ten plays the part of what is out of scope
EVIDENCE_BELOW: Final = 300  # texts learnt from: with fewer, a text in scope must have a word that counts
REJECTED_FEW: Final = 0.065  # of the texts in scope that the threshold may reject
REJECTED_MANY: Final = 0.04
HELD_OUT_MIN: Final = 20  # with fewer held-out answers the curve and threshold of the public sets hold
SCOPE_FEW: Final = 0.3  # then only what is far from every example is rejected
BEST: Final = 3
VERBATIM: Final = 0.95  # the least confidence in the intent of an example that a user says word for word


@dataclass(frozen=True, slots=True)
class Intent:
    """An intent to learn: its name, what it is about, and what users say who have it."""

    name: str
    description: str = ""
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ranking:
    """The answer to one text: the best intents in order, the chance that the first is right, and whether any fits."""

    best: tuple[str, ...]
    confidence: float
    is_in_scope: bool
    scores: tuple[float, ...]  # of `best`


@dataclass(frozen=True, slots=True)
class _Model:
    """Weights of all intents, and the vocabulary they were learnt with."""

    vocabulary: Vocabulary
    table: Table
    count: int
    weights: tuple[float, float, float]

    def scores(self, text: str) -> list[float]:
        return scores(self.table, self.vocabulary.features(text, self.weights), self.count)

    def signals(self, text: str, found: list[float]) -> Signals:
        return signals(found, self._known(text))

    def has_evidence(self, text: str) -> bool:
        """Return whether the examples know any word of a text that carries meaning, or an idea of it."""
        said = [one for one in stems(text) if one not in FUNCTION_WORDS]
        ideas = [f"~{idea}" for one in said for idea in IDEAS.get(one, ())]
        return any(self.vocabulary.knows(one) for one in (*said, *ideas))

    def _known(self, text: str) -> float:
        weights = [(self.vocabulary.rarity(one), self.vocabulary.knows(one)) for one in {stem(word) for word in words(text)}]
        return sum(weight for weight, known in weights if known) / (sum(weight for weight, _ in weights) or 1.0)


def _learnt(samples: Sequence[tuple[str, int]], count: int) -> _Model:
    is_few = len(samples) < FEW
    vocabulary = Vocabulary([text for text, _ in samples])
    weights = WEIGHTS_FEW if is_few else WEIGHTS_MANY
    read = [Sample(vocabulary.features(text, weights), intent) for text, intent in samples]
    table = train(read, count, PASSES_FEW if is_few else PASSES_MANY)
    if is_few:
        for name, row in centres(read).items():
            for intent, weight in row.items():
                table[name][intent] = table[name].get(intent, 0.0) + CENTRE_SHARE * weight
    return _Model(vocabulary, table, count, weights)


class Classifier:
    """Intents learnt from examples. It never changes: learn another one from more examples."""

    def __init__(self, intents: Sequence[Intent]) -> None:
        """Learn the intents; the same intents in the same order give the same classifier."""
        self.names = tuple(intent.name for intent in intents)
        self._samples = [(text, at) for at, intent in enumerate(intents) for text in _texts(intent)]
        self._model = _learnt(self._samples, len(intents))
        self._answer, self._scope, self._threshold = self._calibrated(intents)
        self._verbatim = _verbatim(intents)

    def rank(self, text: str) -> Ranking:
        """Return the best intents for a text with the calibrated confidence in the first."""
        if not self.names or not words(text):
            return Ranking((), 0.0, False, ())
        found = self._model.scores(text)
        told = self._model.signals(text, found)
        said = self._verbatim.get(stems(text))
        if said is not None:
            found[said] = max(*found, 0.0) + 1.0
        order = heapq.nlargest(min(BEST, len(found)), range(len(found)), found.__getitem__)
        confidence = chance(self._answer, told)
        return Ranking(
            best=tuple(self.names[at] for at in order),
            confidence=confidence if said is None else max(confidence, VERBATIM),
            is_in_scope=said is not None or (chance(self._scope, told) >= self._threshold and self._has_evidence(text)),
            scores=tuple(found[at] for at in order),
        )

    def _has_evidence(self, text: str) -> bool:
        """Return whether a text has a word that counts; asked only where few held-out answers tell what is out of scope."""
        return len(self._samples) >= EVIDENCE_BELOW or self._model.has_evidence(text)

    def _calibrated(self, intents: Sequence[Intent]) -> tuple[Curve, Curve, float]:
        right: list[bool] = []
        inside: list[Signals] = []
        outside: list[Signals] = []
        for fold in range(FOLDS if len(self._samples) < FEW else 1):
            left_out = {at for at in range(len(intents)) if at % LEFT_OUT_EVERY == fold}
            held, kept = _fold(intents, fold, left_out)
            if not held or not kept:
                continue
            model = _learnt(kept, len(intents))
            for text, intent in held:
                found = model.scores(text)
                if intent in left_out:
                    outside.append(model.signals(text, found))
                else:
                    inside.append(model.signals(text, found))
                    right.append(found.index(max(found)) == intent)
        answer = fit(inside, right, ANSWER_PRIOR)
        scope = fit([*inside, *outside], [True] * len(inside) + [False] * len(outside), SCOPE_PRIOR)
        if len(inside) < HELD_OUT_MIN or not outside:
            return answer, SCOPE_PRIOR, SCOPE_FEW
        share = REJECTED_FEW if len(self._samples) < FEW else REJECTED_MANY
        return answer, scope, quantile([chance(scope, told) for told in inside], share)


def _texts(intent: Intent) -> list[str]:
    named = " ".join(words(intent.name.replace("_", " ")))
    return [*intent.examples, *filter(None, (named, intent.description))]


def _verbatim(intents: Sequence[Intent]) -> dict[tuple[str, ...], int]:
    """Return the intent of each example by its stems, without those that several intents have."""
    found: dict[tuple[str, ...], set[int]] = {}
    for at, intent in enumerate(intents):
        for text in intent.examples:
            found.setdefault(stems(text), set()).add(at)
    return {said: min(owners) for said, owners in found.items() if len(owners) == 1 and said}


def _fold(intents: Sequence[Intent], fold: int, left_out: set[int]) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """Return the texts that a fold holds out and those it learns from; names and descriptions are always learnt from."""
    held: list[tuple[str, int]] = []
    kept: list[tuple[str, int]] = []
    for at, intent in enumerate(intents):
        for turn, text in enumerate(_texts(intent)):
            is_example = turn < len(intent.examples)
            is_held = at in left_out or (is_example and turn % FOLDS == fold and len(intent.examples) > 1)
            if is_held and not is_example:
                continue
            (held if is_held else kept).append((text, at))
    return held, kept
