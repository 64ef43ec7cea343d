"""Calibration: how often an answer with these signals is right, and whether its text is in scope at all.

Both come from answers to texts that the model had not seen. Each fold leaves out some of the examples of every intent, and
every example of some intents, whose texts then play the part of requests that no intent serves. Where there are few such
answers, the curves stay near those measured over public sets (`ANSWER_PRIOR`, `SCOPE_PRIOR`).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import Final

PULL: Final = 2.0  # how strongly few answers are drawn to the priors; one answer weighs at most 0.25
_STEPS_MAX: Final = 30
_STEP_END: Final = 1e-6

Signals = tuple[float, ...]  # 1, best score, gap to the second, share of known stems, soft maximum
Curve = tuple[float, ...]

# Fitted on five examples per intent of CLINC150, BANKING77 and HWU64 together.
ANSWER_PRIOR: Final[Curve] = (-1.1, 1.6, 3.8, 0.5, -0.2)
SCOPE_PRIOR: Final[Curve] = (-1.75, 1.55, 1.45, 1.2, 0.0)


def signals(scores: Sequence[float], known: float) -> Signals:
    """Return what the scores of one text tell about its answer; `known` is the share of its stems that the examples have."""
    best, second = (*heapq.nlargest(2, scores), 0.0)[:2]
    soft = math.log(sum(math.exp(3 * (score - best)) for score in scores))
    return (1.0, best, best - second, known, soft)


def chance(curve: Curve, found: Signals) -> float:
    """Return the probability that a curve gives to signals."""
    height = sum(weight * value for weight, value in zip(curve, found, strict=True))
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, height))))


def fit(rows: Sequence[Signals], labels: Sequence[bool], prior: Curve) -> Curve:
    """Return the logistic curve that fits the labels best, drawn towards `prior` (Newton's method)."""
    curve = list(prior)
    size = len(prior)
    for _ in range(_STEPS_MAX):
        slope = [PULL * (prior[at] - curve[at]) for at in range(size)]
        bend = [[PULL if at == to else 0.0 for to in range(size)] for at in range(size)]
        for row, label in zip(rows, labels, strict=True):
            share = chance(tuple(curve), row)
            for at in range(size):
                slope[at] += (label - share) * row[at]
                for to in range(at, size):
                    bend[at][to] += share * (1 - share) * row[at] * row[to]
        for at in range(size):
            for to in range(at):
                bend[at][to] = bend[to][at]
        moved = _shortened(curve, _solved(bend, slope), rows, labels, prior)
        curve = [one + step for one, step in zip(curve, moved, strict=True)]
        if max(map(abs, moved)) < _STEP_END:
            break
    return tuple(curve)


def _shortened(
    curve: list[float], step: list[float], rows: Sequence[Signals], labels: Sequence[bool], prior: Curve
) -> list[float]:
    """Return the step, halved until it leads downwards: a full step of Newton's method can overshoot."""
    before = _cost(curve, rows, labels, prior)
    while max(map(abs, step)) >= _STEP_END:
        if _cost([one + part for one, part in zip(curve, step, strict=True)], rows, labels, prior) <= before:
            return step
        step = [part / 2 for part in step]
    return [0.0] * len(step)


def _cost(curve: Sequence[float], rows: Sequence[Signals], labels: Sequence[bool], prior: Curve) -> float:
    apart = PULL / 2 * sum((one - held) ** 2 for one, held in zip(curve, prior, strict=True))
    shares = (chance(tuple(curve), row) for row in rows)
    return apart - sum(math.log(share if label else 1 - share) for share, label in zip(shares, labels, strict=True))


def _solved(matrix: list[list[float]], vector: list[float]) -> list[float]:
    """Return x with matrix · x = vector, by Gauss's elimination; the matrix is positive definite."""
    size = len(vector)
    rows = [[*matrix[at], vector[at]] for at in range(size)]
    for at in range(size):
        for below in range(at + 1, size):
            factor = rows[below][at] / rows[at][at]
            for to in range(at, size + 1):
                rows[below][to] -= factor * rows[at][to]
    found = [0.0] * size
    for at in reversed(range(size)):
        rest = sum(rows[at][to] * found[to] for to in range(at + 1, size))
        found[at] = (rows[at][size] - rest) / rows[at][at]
    return found


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
