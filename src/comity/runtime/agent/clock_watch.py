"""Detects drift between the wall clock and the event loop's monotonic clock.

Deadlines are wall-clock times, equal in every process; timers of the loop count the seconds in which the machine was awake.
After a suspend, or if the wall clock is set or runs fast, timers fire late. So while a timer waits for a wall-clock time, both
clocks are compared every `TICK_S`, and after a drift every timer is set again.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from comity.ports import Clock

TICK_S: Final = 1.0
APART_S: Final = 0.01  # a smaller drift delays a timer by less than a slot of deadlines


class Timers(Protocol):
    """Timers for wall-clock times."""

    @property
    def is_armed(self) -> bool:
        """Whether a timer is set."""
        ...

    def set_anew(self) -> None:
        """Set all timers again after a drift."""
        ...


class ClockWatch:
    """Compares the wall clock with the loop's clock while a timer is set."""

    def __init__(self, clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        self._clock = clock
        self._loop = loop
        self._timers: list[Timers] = []
        self._apart_s = 0.0  # wall clock minus loop clock when the timers were last set
        self._tick: asyncio.TimerHandle | None = None
        self.is_parked = True

    def join(self, timers: Timers) -> None:
        """Add timers to watch. They must call `wake` when one of them is set while the watch is parked."""
        self._timers.append(timers)

    def leave(self, timers: Timers) -> None:
        """Stop watching these timers."""
        self._timers.remove(timers)

    def wake(self) -> None:
        """Start comparing: a timer is set."""
        self.is_parked = False
        self._apart_s = self._now_apart_s()
        self._tick = self._loop.call_later(TICK_S, self._compare)

    def close(self) -> None:
        """Stop comparing."""
        if self._tick is not None:
            self._tick.cancel()

    def _compare(self) -> None:
        armed = [timers for timers in self._timers if timers.is_armed]
        if not armed:
            self.is_parked = True
            return
        self._tick = self._loop.call_later(TICK_S, self._compare)  # first, so that an exception below does not stop the watch
        apart_s = self._now_apart_s()
        if abs(apart_s - self._apart_s) > APART_S:
            self._apart_s = apart_s
            for timers in armed:
                timers.set_anew()

    def _now_apart_s(self) -> float:
        return self._clock.now_ns() / 1e9 - self._loop.time()
