"""The queue of calls an agent has not started: most urgent first, no call starved.

Each round gives every priority a number of turns; the most urgent call with turns left goes first, and a new round begins when
none of the waiting priorities has any. So the next call of any priority waits for fewer than two rounds of others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import Final, Generic, TypeVar

from comity.core.envelope.envelope import Priority

TURNS: Final[dict[Priority, int]] = {Priority.CRITICAL: 8, Priority.HIGH: 4, Priority.NORMAL: 2, Priority.LOW: 1}

Item = TypeVar("Item")


class Mailbox(Generic[Item]):
    """Waiting calls of one agent."""

    __slots__ = ("_lanes", "_turns", "waiting")

    def __init__(self, turns: dict[Priority, int] = TURNS) -> None:
        self._lanes: dict[Priority, deque[Item]] = {priority: deque() for priority in TURNS}
        self._turns = dict(turns)
        self.waiting = 0  # how many; read with every call, where `len` would cost as much as three rules

    def __len__(self) -> int:
        return self.waiting

    def __iter__(self) -> Iterator[Item]:
        return chain.from_iterable(self._lanes.values())

    @property
    def turns(self) -> dict[Priority, int]:
        """What is left of this round."""
        return dict(self._turns)

    def offer(self, item: Item, priority: Priority) -> None:
        """Put a call at the end of its lane. The bound is admission's business."""
        self._lanes[priority].append(item)
        self.waiting += 1

    def take(self) -> Item | None:
        """Return the next call, or None if there is none."""
        if not self.waiting:
            return None
        self.waiting -= 1
        for _ in range(2):
            for priority, lane in self._lanes.items():
                if lane and self._turns[priority]:
                    self._turns[priority] -= 1
                    return lane.popleft()
            self._turns = dict(TURNS)
        raise AssertionError("a waiting call had no turn in a new round")

    def remove(self, item: Item, priority: Priority) -> bool:
        """Take a call out before its turn; return whether it was waiting."""
        try:
            self._lanes[priority].remove(item)
        except ValueError:
            return False
        self.waiting -= 1
        return True
