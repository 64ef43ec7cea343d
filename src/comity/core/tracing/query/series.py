"""Operations between whole time series: arithmetic, thresholds and rankings. A gap is NaN."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import cmp_to_key
from itertools import zip_longest
from typing import Any

from comity.core.tracing.query.errors import Fault, QueryError
from comity.core.tracing.query.operators import COMPARE
from comity.core.tracing.query.values import type_of

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


class _Moved(tuple[tuple[str, Any], ...]):  # noqa: SLOT001  a tuple has no room for slots
    """Labels of series that met, in the order to show them; other series meet them in the order they were asked for."""

    asked: Labels = ()


SeriesSet = dict[Labels, list[float]]

_NAME = "__name__"
_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda left, right: left / right if right else math.nan,
}
_NUMBER_ORDER: dict[type, int] = {int: 1, float: 2, bool: 3}
_DELETE, _BACKSLASH = 0x7F, "\\"
NIL = "nil"


def check_size(series: int, steps: int) -> None:
    """Raise `QueryError` if this number of series with this number of steps would fill the memory."""
    if series * steps > SAMPLES_MAX:
        problem = f"the query makes {series:,} series of {steps:,} steps"
        raise QueryError(
            problem, fault=Fault.INVALID, expected=f"at most {SAMPLES_MAX:,} samples: fewer labels or longer steps"
        )


def combine(op: str, left: SeriesSet | float, right: SeriesSet | float) -> SeriesSet:
    """Return `left op right`. Series meet by equal labels in equal order; one without labels meets every other one."""
    calculate = _ARITHMETIC[op]
    if not isinstance(left, dict):
        assert isinstance(right, dict)
        constant = float(left)
        return {labels: [calculate(constant, value) for value in values] for labels, values in right.items()}
    if not isinstance(right, dict):
        constant = float(right)
        return {labels: [calculate(value, constant) for value in values] for labels, values in left.items()}
    lefts, rights = {_key(labels): labels for labels in left}, {_key(labels): labels for labels in right}
    found: SeriesSet = {}
    for key in dict.fromkeys([*lefts, *rights]):
        mine, theirs = lefts.get(key, lefts.get(())), rights.get(key, rights.get(()))
        if mine is None or theirs is None:
            continue
        found[_merged(op, mine, theirs, key)] = [calculate(a, b) for a, b in zip(left[mine], right[theirs], strict=True)]
    return found


def _key(labels: Labels) -> Labels:
    return labels.asked if isinstance(labels, _Moved) else tuple(pair for pair in labels if pair[0] != _NAME)


def _merged(op: str, mine: Labels, theirs: Labels, key: Labels) -> Labels:
    """Return the labels of two series that met: one name if both have one, else the last label takes its place."""
    known = {name for name, _ in mine}
    merged = [*mine, *(pair for pair in theirs if pair[0] != _NAME and pair[0] not in known)]
    names = [value for labels in (mine, theirs) for name, value in labels if name == _NAME]
    if mine[0][0] == _NAME:
        merged[0] = (_NAME, f"({names[0]} {op} {names[1]})") if len(names) > 1 else merged.pop()
    moved = _Moved(merged)
    moved.asked = key
    return moved


def order_of(labels: Labels) -> tuple[int, list[tuple[str, str]]]:
    """Return the place of a series among others: by the number of its labels, then as protobuf prints them."""
    return len(labels), [(key, _printed(value)) for key, value in labels]


def _printed(value: Any) -> str:
    if isinstance(value, bool):
        return f"bool_value:{str(value).lower()}"
    if type(value) is int:
        return f"int_value:{value}"
    if isinstance(value, float):
        return f"double_value:{value:g}"
    octets = str(value).encode()
    return f'string_value:"{"".join(chr(o) if o < _DELETE else f"{_BACKSLASH}{o:03o}" for o in octets)}"'


def threshold(found: SeriesSet, op: str, bound: float) -> SeriesSet:
    """Return the samples that compare so with the bound."""
    compare = COMPARE[op]
    return {labels: [v if compare(v, bound) else math.nan for v in values] for labels, values in found.items()}


def rank(found: SeriesSet, limit: int, *, highest: bool) -> SeriesSet:
    """Return, of each step, the `limit` highest or lowest samples.

    Of equal ones the highest are those whose labels come first if they are texts, and last if they are numbers; the lowest
    are those the other way round.
    """
    ordered = sorted(found, key=cmp_to_key(_compare_labels), reverse=highest)
    kept: SeriesSet = {labels: [math.nan] * len(values) for labels, values in found.items()}
    steps = len(next(iter(found.values()), ()))
    for at in range(steps):
        present = [labels for labels in ordered if not math.isnan(found[labels][at])]
        for labels in sorted(present, key=lambda labels: found[labels][at], reverse=highest)[:limit]:
            kept[labels][at] = found[labels][at]
    return kept


def _compare_labels(one: Labels, other: Labels) -> int:
    for mine, theirs in zip_longest(_key(one), _key(other), fillvalue=("", None)):
        (text, name, number), (other_text, other_name, other_number) = _parts(mine), _parts(theirs)
        if (text, name) != (other_text, other_name):
            return -1 if (text, name) > (other_text, other_name) else 1
        if number != other_number:
            return 1 if number > other_number else -1
    return 0


def _parts(pair: tuple[str, Any]) -> tuple[str, str, tuple[int, float]]:
    """Return the text of a label, empty for a number, its name, and the number with its type before it."""
    key, value = pair
    order = _NUMBER_ORDER.get(type(value))
    if order is not None:
        return "", key, (order, float(value))
    return "" if value is None else str(value), key, (0, 0.0)
