"""Who waits for whom: would this call close a loop of agents that wait for each other for ever?

A call is stuck if something it waits for is stuck; a call that waits for a seat is stuck if every call that holds a seat there
is stuck. A chain check alone does not see this, because two roots have two chains. Nothing is kept up to date for it: the graph
is read off the calls in progress, and only when a call finds its target's seats all taken.
"""

from __future__ import annotations

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
    path = _all_stuck(target, caller, (target.address,), set())
    return (caller.seat.address, *path) if path else ()


def _all_stuck(seat: Seat, caller: Waiter, path: tuple[str, ...], visited: set[int]) -> tuple[str, ...]:
    """Return a path from the seat back to the caller's if every call that holds it is stuck."""
    found: tuple[str, ...] = ()
    for holder in seat.holders:
        stuck = _stuck(holder, caller, path, visited)
        if not stuck:
            return ()
        found = found or stuck
    return found


def _stuck(call: Waiter, caller: Waiter, path: tuple[str, ...], visited: set[int]) -> tuple[str, ...]:
    """Return a path if the call cannot go on without the caller."""
    if call is caller:
        return path
    if id(call) in visited:  # on the way here already: it waits for itself through others, which is stuck as well
        return path
    visited.add(id(call))
    try:
        for child in call.waits_for:
            step = (*path, child.seat.address)
            stuck = _all_stuck(child.seat, caller, step, visited) if child.is_queued else _stuck(child, caller, step, visited)
            if stuck:
                return stuck
        return ()
    finally:
        visited.discard(id(call))
