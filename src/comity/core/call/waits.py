"""The wait-for graph: would this call close a loop of agents that wait for each other for ever?

A call is stuck if something it waits for is stuck; a call that waits for a seat is stuck if every call that holds a seat there
is stuck. A chain check alone does not see this, because two roots have two chains. Nothing is kept up to date for it: the graph
is read off the calls in progress, and only when a call finds its target's seats all taken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import Protocol


class Seat(Protocol):
    """An activation: calls hold its places while they run."""

    @property
    def address(self) -> str:
        """The agent, with its key if it has one."""
        ...

    @property
    def holders(self) -> Collection[Waiter]:
        """The calls that run here now."""
        ...

    @property
    def is_full(self) -> bool:
        """Whether a further call would have to wait."""
        ...


class Waiter(Protocol):
    """A call in progress."""

    @property
    def seat(self) -> Seat:
        """Where it runs, or waits to run."""
        ...

    @property
    def is_queued(self) -> bool:
        """Whether it still waits for its place."""
        ...

    @property
    def waits_for(self) -> Collection[Waiter]:
        """The calls it made that have not ended."""
        ...


def loop_closed_by(caller: Waiter | None, target: Seat) -> tuple[str, ...]:
    """Return the addresses of the loop that a call from `caller` to `target` would close, or nothing."""
    if caller is None or not target.is_full:
        return ()
    stuck = {caller}  # if the call is to be refused, it is because its caller would wait for ever
    free: set[Waiter] = set()
    for holder in target.holders:
        _decide(holder, stuck, free)
        if holder in free:
            return ()
    return (caller.seat.address, *_way_back(caller, target, free))


def _decide(call: Waiter, stuck: set[Waiter], free: set[Waiter]) -> None:
    """Put the call, and every call its fate depends on, among the stuck or the free.

    Free is what can be shown to end; the rest wait for each other. No recursion: a chain of waiting roots may be long.
    """
    undecided: dict[Waiter, None] = {}
    ahead = [call]
    while ahead:
        one = ahead.pop()
        if one not in undecided and one not in stuck and one not in free:
            undecided[one] = None
            for child in one.waits_for:
                ahead.extend(_awaited(child))
    waiting = list(reversed(undecided))  # found last, decided first: what a call depends on was mostly found after it
    count = 0
    while count != len(waiting):
        count = len(waiting)
        still = []
        for one in waiting:
            if any(_is_stuck(child, free) for child in one.waits_for):
                still.append(one)
            else:
                free.add(one)
        waiting = still
    stuck.update(waiting)


def _awaited(call: Waiter) -> Collection[Waiter]:
    """Return the running calls that decide when this one ends: itself, or those that hold the places it waits for."""
    return call.seat.holders if call.is_queued else (call,)


def _is_stuck(call: Waiter, free: set[Waiter]) -> bool:
    if not call.is_queued:
        return call not in free
    return call.seat.is_full and not any(holder in free for holder in call.seat.holders)


def _way_back(caller: Waiter, target: Seat, free: set[Waiter]) -> tuple[str, ...]:
    """Return the shortest way from the target back to the caller, over calls that are stuck."""
    ways: deque[tuple[Waiter, tuple[str, ...]]] = deque((holder, (target.address,)) for holder in target.holders)
    seen = set(target.holders)
    while ways:
        call, way = ways.popleft()
        if call is caller:
            return way
        for child in call.waits_for:
            if _is_stuck(child, free):
                steps = [one for one in _awaited(child) if one not in seen]
                seen.update(steps)
                ways.extend((one, (*way, child.seat.address)) for one in steps)
    return (target.address,)  # stuck already, whichever call asks
