"""Runs long CPU work on the event loop in slices, one every few turns of the loop, so that other calls are not blocked.

While calls wait for the store, slices of users with much work are delayed: the writer thread needs the GIL, and so do the
calls whose records it has just written. The delay is bounded (`STAND_BACK_S`), so long work progresses even if the store is
always busy.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from comity.core.document.slices import Sliced, T
from comity.runtime.call.aside import Aside
from comity.runtime.call.pace import Pace, User

# Work on fewer bytes than this is done at once; the densest text takes about 3 µs a byte.
LONG_BYTES: Final = 4_096
# Turns of the loop from one slice to the next: a short call takes several turns, and should wait for one slice at most.
TURNS: Final = 4
# How long a slice is delayed while calls wait for the store, and how often it checks whether they still do.
STAND_BACK_S: Final = 0.006
LOOK_S: Final = 0.0005


class Slices:
    """Schedules the long work of one node. Pieces take turns, so ten of them delay a timer no more than one does.

    Work of users with much of it waits in a line of its own and is throttled; see `Pace`.
    """

    __slots__ = ("_is_awaited", "_line", "_throttled", "aside", "count", "pace")

    def __init__(self, is_awaited: Callable[[], bool] | None = None) -> None:
        """`is_awaited` returns whether calls wait for the store."""
        self._is_awaited = is_awaited
        self.pace = Pace()  # shared with other background work
        self._line, self._throttled = Line(self._advance), Line(self._advance_throttled)
        self.count = 0  # slices so far
        self.aside = Aside()  # for work that has no slices

    async def run(self, work: Sliced[T], user: User) -> T:
        """Run a user's sliced work and return its result. A cancellation stops it between two slices."""
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
                self.pace.note_work(user, now_s - begun_s, now_s)
                await self.pause(user)
        finally:
            work.close()

    def pause(self, user: User) -> asyncio.Future[None]:
        """Return a future that lets other tasks run between two long steps of a user's work."""
        loop = asyncio.get_running_loop()
        line = self._line if self.pace.has_little(user) else self._throttled
        return line.join(loop)

    def _advance(self, loop: asyncio.AbstractEventLoop, turns: int) -> None:
        """Wake the next piece of work after `turns` turns of the loop."""
        if turns:
            loop.call_soon(self._advance, loop, turns - 1)
            return
        self.count += 1
        self._line.wake(loop)

    def _advance_throttled(self, loop: asyncio.AbstractEventLoop, turns: int, stood_s: float = 0.0) -> None:
        """Wake the next piece of work after `turns` turns of the loop and a rest; `stood_s` is its delay so far."""
        if turns:
            loop.call_soon(self._advance_throttled, loop, turns - 1)
            return
        if stood_s < STAND_BACK_S and self._is_awaited is not None and self._is_awaited():
            loop.call_later(LOOK_S, self._advance_throttled, loop, 0, stood_s + LOOK_S)
            return
        if rest_s := self.pace.rest_s(loop.time()):
            loop.call_later(rest_s, self._advance_throttled, loop, 0, stood_s)
            return
        self.count += 1
        self._throttled.wake(loop)


class Line:
    """Pieces of work that wait for their next slice, first come, first served."""

    __slots__ = ("_advance", "_is_due", "_waiting")

    def __init__(self, advance: Callable[[asyncio.AbstractEventLoop, int], None]) -> None:
        """`advance` calls `wake` after a number of turns of the loop."""
        self._advance = advance
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_due = False

    def join(self, loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
        """Return a future that is resolved when it is this piece's turn."""
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiting.append(waiter)
        if not self._is_due:
            self._is_due = True
            # Two turns pass anyway: this one, and the one that wakes the work.
            loop.call_soon(self._advance, loop, TURNS - 2)
        return waiter

    def wake(self, loop: asyncio.AbstractEventLoop) -> None:
        """Resolve the first waiter, and go on with the others."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                break
        self._is_due = bool(self._waiting)
        if self._is_due:
            loop.call_soon(self._advance, loop, TURNS - 1)
