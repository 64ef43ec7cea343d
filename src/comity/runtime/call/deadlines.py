"""Deadlines of calls under way. Calls whose deadlines fall into one slot share a timer, so a call costs no timer of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from comity.ports import Clock
from comity.runtime.agent.clock_watch import ClockWatch
from comity.runtime.call.call import Call

SLOT_MS: Final = 10
NEVER_MS: Final = 253_370_764_800_000  # the year 9999


class Deadlines:
    """Tells which calls ran out of time, at most a slot late and never early; after a suspend or a step, a second late."""

    def __init__(self, clock: Clock, loop: asyncio.AbstractEventLoop, expire: Callable[[Call], None]) -> None:
        self._clock = clock
        self._loop = loop
        self._expire = expire
        self._slots: dict[int, dict[Call, None]] = {}
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self.watch = ClockWatch(clock, loop)  # also for others that wait for points in time
        self.watch.join(self)

    def add(self, call: Call) -> None:
        """Watch a call's deadline; the root of a run has none, since its planner watches the time."""
        if call.request.deadline_at >= NEVER_MS:
            return
        slot = call.request.deadline_at // SLOT_MS + 1
        calls = self._slots.get(slot)
        if calls is None:
            calls = self._slots[slot] = {}
            self._arm(slot)
            if self.watch.is_parked:
                self.watch.wake()
        calls[call] = None
        call.slot = slot

    def discard(self, call: Call) -> None:
        """Stop watching."""
        calls = self._slots.get(call.slot)
        if calls is not None:
            calls.pop(call, None)

    @property
    def is_armed(self) -> bool:
        """Whether a slot is still to come."""
        return bool(self._timers)

    def set_anew(self) -> None:
        """Set the timer of every slot again: the clock went apart from the loop."""
        for slot, timer in self._timers.items():
            timer.cancel()
            self._arm(slot)

    def close(self) -> None:
        """Drop all timers."""
        self.watch.close()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._slots.clear()

    def _arm(self, slot: int) -> None:
        # Time is read here: building a validator may have taken a while since the call arrived.
        now_ms = self._clock.now_ns() // 1_000_000
        self._timers[slot] = self._loop.call_later(max(slot * SLOT_MS - now_ms, 0) / 1000, self._fire, slot)

    def _fire(self, slot: int) -> None:
        now_ms = self._clock.now_ns() // 1_000_000
        if now_ms < slot * SLOT_MS:  # the two clocks differ a little; early is never right
            self._arm(slot)
            return
        del self._timers[slot]
        for call in list(self._slots.pop(slot)):
            self._expire(call)
