"""A linear model per intent, learnt by passive-aggressive steps (PA-I) with averaged weights: plain Python, deterministic.

A text is compared only with the intents whose centre lies nearest to it, and rests for the following passes once it is
right by a wide margin: that makes 15,000 texts of 150 intents a matter of seconds.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Final

from comity.core.orchestration.intent.words import Features

RIVALS: Final = 8  # intents that a text is compared with in training
STEP_MAX: Final = 0.5
WEIGHT_MIN: Final = 0.01  # smaller weights are dropped: half of them, and no answer changes
MARGIN_AT_REST: Final = 3.5  # a text with a margin this wide is left out of the passes that follow
_STRIDE: Final = 7_919  # a prime: reading every 7,919th text mixes the intents, the same way each time

Table = dict[str, dict[int, float]]  # feature → intent → weight


class Sample:
    """One text of the training set: its features and its intent."""

    __slots__ = ("features", "intent", "length", "rivals")

    def __init__(self, features: Features, intent: int) -> None:
        self.features = features
        self.intent = intent
        self.length = sum(value * value for _, value in features) or 1.0
        self.rivals: tuple[int, ...] = ()


def centres(samples: Sequence[Sample]) -> Table:
    """Return the mean of the features of each intent's texts."""
    sizes: dict[int, int] = {}
    table: Table = {}
    for sample in samples:
        sizes[sample.intent] = sizes.get(sample.intent, 0) + 1
        for name, value in sample.features:
            row = table.setdefault(name, {})
            row[sample.intent] = row.get(sample.intent, 0.0) + value
    for row in table.values():
        for intent in row:
            row[intent] /= sizes[intent]
    return table


def scores(table: Table, features: Features, count: int) -> list[float]:
    """Return the score of each intent for a text."""
    totals = [0.0] * count
    for name, value in features:
        for intent, weight in table.get(name, {}).items():
            totals[intent] += weight * value
    return totals


def train(samples: Sequence[Sample], count: int, passes: int) -> Table:
    """Return the averaged weights after `passes` over the samples, in an order that depends on nothing but their number."""
    middle = centres(samples)
    for sample in samples:
        near = scores(middle, sample.features, count)
        near[sample.intent] = float("-inf")
        sample.rivals = tuple(heapq.nlargest(min(RIVALS, count - 1), range(count), near.__getitem__))
    weights: Table = {name: {} for name in middle}
    drift: Table = {name: {} for name in middle}
    clock = 1
    resting: set[int] = set()
    stride = _STRIDE if len(samples) % _STRIDE else _STRIDE + 2
    for _ in range(passes):
        for turn in range(len(samples)):
            at = turn * stride % len(samples)
            if at in resting:
                continue
            sample = samples[at]
            margin, rival = _margin(weights, sample)
            if margin > MARGIN_AT_REST:
                resting.add(at)
            elif margin < 1.0 and rival >= 0:
                step = min(STEP_MAX, (1.0 - margin) / (2 * sample.length))
                _move(weights, drift, sample, rival, step, clock)
            clock += 1
    return {name: _averaged(row, drift[name], clock) for name, row in weights.items()}


def _averaged(row: dict[int, float], late: dict[int, float], clock: int) -> dict[int, float]:
    means = {intent: weight - late[intent] / clock for intent, weight in row.items()}
    return {intent: mean for intent, mean in means.items() if abs(mean) >= WEIGHT_MIN}


def _margin(weights: Table, sample: Sample) -> tuple[float, int]:
    rows = [(weights[name], value) for name, value in sample.features]
    own_intent = sample.intent
    own = 0.0
    for row, value in rows:
        if own_intent in row:
            own += row[own_intent] * value
    best, rival = float("-inf"), -1
    for intent in sample.rivals:
        total = 0.0
        for row, value in rows:
            if intent in row:
                total += row[intent] * value
        if total > best:
            best, rival = total, intent
    return own - best, rival


def _move(weights: Table, drift: Table, sample: Sample, rival: int, step: float, clock: int) -> None:
    own = sample.intent
    for name, value in sample.features:
        moved = step * value
        row, late = weights[name], drift[name]
        row[own] = row.get(own, 0.0) + moved
        row[rival] = row.get(rival, 0.0) - moved
        late[own] = late.get(own, 0.0) + moved * clock
        late[rival] = late.get(rival, 0.0) - moved * clock
