"""The structural operators: which spans of one set stand in a relation to spans of another.

The answer is the spans of the right side that have a partner on the left; a `!` asks for those that have none, a `&` adds
the partners themselves. A side without spans makes the whole empty, also under `!`. A span without a position in the tree
is left out on both sides: nobody can say of it that it is unrelated.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable

from comity.core.query.trace import NOWHERE, Trace
from comity.core.span import Span

_Related = Callable[[Trace, list[Span], list[Span]], list[Span]]


def relate(op: str, trace: Trace, left: Iterable[Span], right: Iterable[Span]) -> list[Span]:
    """Return the spans that `left op right` selects, in the order of their sides."""
    lefts = [span for span in left if trace.position(span) is not NOWHERE]
    rights = [span for span in right if trace.position(span) is not NOWHERE]
    if not lefts or not rights:
        return []
    if op[0] == "!":
        related = set(map(id, _RELATIONS[op[1:]](trace, lefts, rights)))
        return [span for span in rights if id(span) not in related]
    if op[0] == "&":
        partners = _RELATIONS[_INVERSE[op[1:]]](trace, rights, lefts)
        return unique(partners, _RELATIONS[op[1:]](trace, lefts, rights))
    return _RELATIONS[op](trace, lefts, rights)


def unique(*groups: Iterable[Span]) -> list[Span]:
    """Return the spans of all groups, each once."""
    found = {id(span): span for group in groups for span in group}
    return list(found.values())


def _children(trace: Trace, lefts: list[Span], rights: list[Span]) -> list[Span]:
    numbers = {trace.position(span).left for span in lefts}
    return [span for span in rights if trace.position(span).parent in numbers]


def _parents(trace: Trace, lefts: list[Span], rights: list[Span]) -> list[Span]:
    numbers = {trace.position(span).parent for span in lefts}
    return [span for span in rights if trace.position(span).left in numbers]


def _descendants(trace: Trace, lefts: list[Span], rights: list[Span]) -> list[Span]:
    # Intervals of a nested set never cross, so those inside another add nothing and the rest are disjoint.
    outermost: list[tuple[int, int]] = []
    for low, high, _ in sorted(trace.position(span) for span in lefts):
        if not outermost or low > outermost[-1][1]:
            outermost.append((low, high))
    found = []
    for span in rights:
        number = trace.position(span).left
        nearest = bisect_left(outermost, (number, 0)) - 1
        if nearest >= 0 and number < outermost[nearest][1]:
            found.append(span)
    return found


def _ancestors(trace: Trace, lefts: list[Span], rights: list[Span]) -> list[Span]:
    numbers = sorted(trace.position(span).left for span in lefts)
    found = []
    for span in rights:
        low, high, _ = trace.position(span)
        if bisect_right(numbers, low) < bisect_left(numbers, high):
            found.append(span)
    return found


def _siblings(trace: Trace, lefts: list[Span], rights: list[Span]) -> list[Span]:
    by_parent: dict[int, set[int]] = {}
    for span in lefts:
        by_parent.setdefault(trace.position(span).parent, set()).add(id(span))
    return [span for span in rights if by_parent.get(trace.position(span).parent, set()) - {id(span)}]


_RELATIONS: dict[str, _Related] = {
    ">": _children,
    "<": _parents,
    ">>": _descendants,
    "<<": _ancestors,
    "~": _siblings,
}
_INVERSE = {">": "<", "<": ">", ">>": "<<", "<<": ">>", "~": "~"}
