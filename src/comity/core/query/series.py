"""Operations between whole time series: arithmetic, thresholds and rankings. A gap is NaN."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from comity.core.query.errors import Fault, QueryError
from comity.core.query.operators import COMPARE
from comity.core.query.values import divide, type_of

SAMPLES_MAX = 2_000_000


class Label(tuple[str, Any]):
    """A label whose value Python would take for another: 1, 1.0 and true are three labels, not one."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, other) is True and _kind(self[1]) == _kind(other[1])  # type: ignore[index]

    __hash__ = tuple.__hash__


def label(key: str, value: Any) -> tuple[str, Any]:
    """Return a label. Texts and integers need no more than a pair, and most labels are one of these."""
    return (key, value) if isinstance(value, str) or type(value) is int else Label((key, value))


def _kind(value: Any) -> Any:
    return tuple(map(_kind, value)) if isinstance(value, tuple) else type_of(value)


Labels = tuple[tuple[str, Any], ...]
SeriesSet = dict[Labels, list[float]]

_NAME = "__name__"
_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": divide,
}


def check_size(series: int, steps: int) -> None:
    """Raise `QueryError` before so many series of so many steps would fill the memory."""
    if series * steps > SAMPLES_MAX:
        problem = f"the query makes {series:,} series of {steps:,} steps"
        raise QueryError(
            problem, fault=Fault.INVALID, expected=f"at most {SAMPLES_MAX:,} samples: fewer labels or longer steps"
        )


def combine(op: str, left: SeriesSet | float, right: SeriesSet | float) -> SeriesSet:
    """Return `left op right`. Series meet by equal labels; one without labels meets every series of the other side."""
    calculate = _ARITHMETIC[op]
    if not isinstance(left, dict):
        assert isinstance(right, dict)
        constant = float(left)
        return {
            _renamed(labels, f"({left} {op} {_name(labels)})"): [calculate(constant, value) for value in values]
            for labels, values in right.items()
        }
    if not isinstance(right, dict):
        constant = float(right)
        return {
            _renamed(labels, f"({_name(labels)} {op} {right})"): [calculate(value, constant) for value in values]
            for labels, values in left.items()
        }
    lefts, rights = {_key(labels): labels for labels in left}, {_key(labels): labels for labels in right}
    found: SeriesSet = {}
    for key in dict.fromkeys([*lefts, *rights]):
        mine, theirs = lefts.get(key, lefts.get(())), rights.get(key, rights.get(()))
        if mine is None or theirs is None:
            continue
        labels = _renamed(key or mine, f"({_name(mine)} {op} {_name(theirs)})")
        found[labels] = [calculate(a, b) for a, b in zip(left[mine], right[theirs], strict=True)]
    return found


def _key(labels: Labels) -> Labels:
    return tuple(sorted((pair for pair in labels if pair[0] != _NAME), key=lambda pair: (pair[0], str(pair[1]))))


def _name(labels: Labels) -> str:
    return next((str(value) for key, value in labels if key == _NAME), "")


def _renamed(labels: Labels, name: str) -> Labels:
    return tuple((_NAME, name) if pair[0] == _NAME else pair for pair in labels)


def threshold(found: SeriesSet, op: str, bound: float) -> SeriesSet:
    """Return the samples that compare so with the bound."""
    compare = COMPARE[op]
    return {labels: [v if compare(v, bound) else math.nan for v in values] for labels, values in found.items()}


def rank(found: SeriesSet, limit: int, *, highest: bool) -> SeriesSet:
    """Return, of each step, the `limit` highest or lowest samples; of equal ones those first by label."""
    ordered = sorted(found, key=lambda labels: [(key, str(value)) for key, value in labels])
    kept: SeriesSet = {labels: [math.nan] * len(values) for labels, values in found.items()}
    steps = len(next(iter(found.values()), ()))
    for at in range(steps):
        present = [labels for labels in ordered if not math.isnan(found[labels][at])]
        for labels in sorted(present, key=lambda labels: found[labels][at], reverse=highest)[:limit]:
            kept[labels][at] = found[labels][at]
    return kept
