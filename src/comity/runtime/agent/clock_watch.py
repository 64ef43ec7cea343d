"""Noticing that the clock and the timers of the event loop went apart.

Deadlines are points of the system's time, which is the same in every process; timers of the loop count the seconds in which the
machine was awake. A suspend, or a clock that is set or runs fast, makes timers ring late. So while something waits for a
point in time, both are compared once in `TICK_S`, and after a difference every timer is set anew.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from comity.ports import Clock

TICK_S: Final = 1.0
APART_S: Final = 0.01  # what is nearer is no later than a slot of deadlines


class Timers(Protocol):
    """Timers that were set for points in time."""

    @property
    def is_armed(self) -> bool:
        """Whether one of them is to ring."""
        ...

    def set_anew(self) -> None:
        """Set them again: the clock went apart from the loop."""
        ...


class ClockWatch:
    """Compares a clock with the timers of a loop while anything waits for a point in time."""

    def __init__(self, clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        self._clock = clock
        self._loop = loop
        self._timers: list[Timers] = []
        self._apart_s = 0.0  # the clock's time less the loop's, when timers were last set
        self._tick: asyncio.TimerHandle | None = None
        self.is_parked = True

    def join(self, timers: Timers) -> None:
        """Let timers be set anew when need be. They call `wake` when one of them is armed while the watch is parked."""
        self._timers.append(timers)

    def leave(self, timers: Timers) -> None:
        """Leave timers alone from now on."""
        self._timers.remove(timers)

    def wake(self) -> None:
        """Begin to compare: something waits for a point in time."""
        self.is_parked = False
        self._apart_s = self._now_apart_s()
        self._tick = self._loop.call_later(TICK_S, self._compare)

    def close(self) -> None:
        """Compare no more."""
        if self._tick is not None:
            self._tick.cancel()

    def _compare(self) -> None:
        armed = [timers for timers in self._timers if timers.is_armed]
        if not armed:
            self.is_parked = True
            return
        self._tick = self._loop.call_later(TICK_S, self._compare)  # first: what fails here fails once
        apart_s = self._now_apart_s()
        if abs(apart_s - self._apart_s) > APART_S:
            self._apart_s = apart_s
            for timers in armed:
                timers.set_anew()

    def _now_apart_s(self) -> float:
        return self._clock.now_ns() / 1e9 - self._loop.time()
