"""Long work on the loop: one slice of one piece of work in every few turns of the loop, so that everything else goes on.

While calls wait for the store, long work stands back: the thread that writes needs the interpreter, and so do the calls whose
records it has just written. A slice waits so only for a moment, so long work goes on beside a store that is always busy.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from comity.core.document.slices import Sliced, T
from comity.runtime.call.pace import Pace

# Work on fewer bytes than this is done at once; the densest text takes about 3 µs a byte.
LONG_BYTES: Final = 4_096
# Of the loop, from one slice to the next: a short call passes through several turns, and waits for one slice, not for each.
TURNS: Final = 4
# So long a slice stands back while calls wait for the store, and how often it looks whether they still do.
STAND_BACK_S: Final = 0.006
LOOK_S: Final = 0.0005


class Slices:
    """The pieces of long work of one node. They take turns, so ten of them delay a timer no more than one does."""

    __slots__ = ("_is_awaited", "_is_due", "_waiting", "count", "pace")

    def __init__(self, is_awaited: Callable[[], bool] | None = None) -> None:
        """Make one; `is_awaited` tells whether calls wait for the store."""
        self._is_awaited = is_awaited
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_due = False
        self.pace = Pace()  # also of what else can wait
        self.count = 0  # of slices after which others had a turn

    async def run(self, work: Sliced[T]) -> T:
        """Return the result of sliced work. Cancelled between two slices, the work stops there."""
        time = asyncio.get_running_loop().time
        try:
            while True:
                begun_s = time()
                try:
                    next(work)
                except StopIteration as end:
                    result: T = end.value
                    return result
                now_s = time()
                self.pace.spend(now_s - begun_s, now_s)
                await self._turn()
        finally:
            work.close()

    async def pause(self) -> None:
        """Let everything else have a turn between two long steps."""
        await self._turn()

    def _turn(self) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiting.append(waiter)
        if not self._is_due:
            self._is_due = True
            loop.call_soon(self._next, loop, TURNS - 2)  # two pass anyway: this one, and that which wakes the work
        return waiter

    def _next(self, loop: asyncio.AbstractEventLoop, turns: int, stood_s: float = 0.0) -> None:
        """Wake the next piece of work after `turns` turns of the loop; `stood_s` is how long it has stood back already."""
        if turns:
            loop.call_soon(self._next, loop, turns - 1)
            return
        if stood_s < STAND_BACK_S and self._is_awaited is not None and self._is_awaited():
            loop.call_later(LOOK_S, self._next, loop, 0, stood_s + LOOK_S)
            return
        if rest_s := self.pace.rest_s(loop.time()):
            loop.call_later(rest_s, self._next, loop, 0, stood_s)
            return
        self.count += 1
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                break
        self._is_due = bool(self._waiting)
        if self._is_due:
            loop.call_soon(self._next, loop, TURNS - 1)
