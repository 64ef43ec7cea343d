"""Runs work in Python that cannot be cut into slices in a thread, one piece at a time, so that the loop has its turn meanwhile.

The work must be pure: it reads what no other code changes until it has ended, and touches nothing of the node. Two threads
that compute would make the loop wait for both, so a piece waits until the one before it has ended. See ADR 216.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Final, TypeVar

from comity.runtime.call.tasks import aside

T = TypeVar("T")
SWITCH_S: Final = 0.0005  # a thread that computes gives the loop its turn this soon; Python's own interval is ten times as long


class Aside:
    """The one thread of a node for work that is long."""

    __slots__ = ("_turn", "count")

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self.count = 0  # pieces so far

    async def run(self, work: Callable[[], T]) -> T:
        """Return what `work` returns. A cancelled caller waits for the end of work that has begun."""
        async with self._turn:
            sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_S))
            self.count += 1
            return await aside(work)
