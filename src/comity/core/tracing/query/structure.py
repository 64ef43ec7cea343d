"""The structural operators: which spans of one set stand in a relation to spans of another.

The answer is the spans of the right side that have a partner on the left; a `!` asks for those that have none, a `&` adds
the partners themselves. A span without a position in the tree is related to nothing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence

from comity.core.tracing.query.trace import NOWHERE, Position, Trace
from comity.core.tracing.span import Span

_Related = Callable[[Trace, list[Span], list[Span]], list[Span]]


def relate(op: str, trace: Trace, left: Sequence[Span], right: Sequence[Span]) -> list[Span]:
    """Return the spans that `left op right` selects, in the order of their sides."""
    lefts, rights = ([span for span in side if trace.position(span) is not NOWHERE] for side in (left, right))
    if op[0] == "!":
        related = set(map(id, _RELATIONS[op[1:]](trace, lefts, rights)))
        return [span for span in right if id(span) not in related]
    if op == "&>>":
        return _branches(trace, left, right)
    if op == "&<<":
        return _branches(trace, right, left)
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


def _branches(trace: Trace, uppers: Sequence[Span], lowers: Sequence[Span]) -> list[Span]:
    """Return ancestors and descendants together, as one pass along both sides in the order of the tree finds them.

    The pass is Tempo's, and so is what it passes over: it goes down one branch of the lower side, compares every span of it
    with one upper span only, then moves along the upper side while that reaches to the last span it saw below. An upper span
    whose descendants it has gone by already is not found. A search without that would not answer as Tempo does.
    """
    above, below = (sorted(side, key=trace.position) for side in (uppers, lowers))
    found: list[Span] = []
    up = down = 0
    while up < len(above) and down < len(below):
        upper = trace.position(above[up])
        lowest = below[down]
        while down < len(below):
            lowest = below[down]
            down += 1
            if _is_inside(trace.position(lowest), upper):
                found.append(lowest)
            if down < len(below) and trace.position(below[down]).left > trace.position(lowest).right:
                break
        while up < len(above) and trace.position(above[up]).left <= trace.position(lowest).right:
            upper = trace.position(above[up])
            if _is_inside(trace.position(lowest), upper):
                found.append(above[up])
                if down < len(below) and _is_inside(trace.position(below[down]), upper):
                    break
            up += 1
    return unique(found)


def _is_inside(inner: Position, outer: Position) -> bool:
    return 0 < outer.left < inner.left and inner.right < outer.right


_RELATIONS: dict[str, _Related] = {
    ">": _children,
    "<": _parents,
    ">>": _descendants,
    "<<": _ancestors,
    "~": _siblings,
}
_INVERSE = {">": "<", "<": ">", ">>": "<<", "<<": ">>", "~": "~"}
