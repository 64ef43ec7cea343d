"""Points in time that runs wait for, seconds or weeks away: one heap, one timer of the event loop for the nearest."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from typing import Final

from comity.core.units import MS_PER_S, NS_PER_MS
from comity.ports import Clock

# The loop's own timers count the time in which the machine was awake, so that a far one is looked at now and then.
LOOK_S_MAX: Final = 300.0
_HEAP_KEPT: Final = 64  # entries that stay although more than half of them are no longer waited for
_Entry = tuple[int, int, str, int]  # when, in which order it was set, the run, the number of its timer


class Timers:
    """Calls `fire(run_id, number)` once a point in time has come, never early."""

    def __init__(self, clock: Clock, loop: asyncio.AbstractEventLoop, fire: Callable[[str, int], None]) -> None:
        self._clock = clock
        self._loop = loop
        self._fire = fire
        self._heap: list[_Entry] = []
        self._runs: dict[str, dict[int, _Entry]] = {}
        self._count = 0
        self._order = 0
        self._handle: asyncio.TimerHandle | None = None
        self._armed_for = 0

    def __len__(self) -> int:
        return self._count

    def add(self, run_id: str, number: int, due_at: int) -> None:
        """Wait for a point in time; a timer that was set before under the same number is replaced."""
        self._order += 1
        entry = (due_at, self._order, run_id, number)
        numbers = self._runs.setdefault(run_id, {})
        self._count += number not in numbers
        numbers[number] = entry
        heapq.heappush(self._heap, entry)
        if self._handle is None or due_at < self._armed_for:
            self._arm()

    def discard(self, run_id: str, number: int) -> None:
        """Wait no more."""
        numbers = self._runs.get(run_id)
        if numbers is not None and numbers.pop(number, None) is not None:
            self._count -= 1
            if not numbers:
                del self._runs[run_id]
            if len(self._heap) > max(_HEAP_KEPT, 2 * self._count):
                self._heap = [entry for each in self._runs.values() for entry in each.values()]
                heapq.heapify(self._heap)

    def forget(self, run_id: str) -> None:
        """Wait for nothing of a run any more."""
        for number in list(self._runs.get(run_id, ())):
            self.discard(run_id, number)

    def next_of(self, run_id: str) -> int | None:
        """Return when a run goes on by itself, or None if it does not."""
        numbers = self._runs.get(run_id)
        return min(entry[0] for entry in numbers.values()) if numbers else None

    def look(self) -> None:
        """Fire what is due: the clock may have been set, or the machine may have slept."""
        now_ms = self._clock.now_ns() // NS_PER_MS
        due: list[_Entry] = []
        while self._heap and self._heap[0][0] <= now_ms:
            entry = heapq.heappop(self._heap)
            if self._is_set(entry):
                due.append(entry)
                self.discard(entry[2], entry[3])
        for _, _, run_id, number in due:
            self._fire(run_id, number)

    def close(self) -> None:
        """Wait for nothing any more."""
        if self._handle is not None:
            self._handle.cancel()
        self._handle = None
        self._heap.clear()
        self._runs.clear()
        self._count = 0

    def _arm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        while self._heap and not self._is_set(self._heap[0]):
            heapq.heappop(self._heap)
        if self._heap:
            self._armed_for = self._heap[0][0]
            delay_s = max(self._armed_for - self._clock.now_ns() // NS_PER_MS, 0) / MS_PER_S
            self._handle = self._loop.call_later(min(delay_s, LOOK_S_MAX), self._ring)

    def _ring(self) -> None:
        self._handle = None
        try:
            self.look()
        finally:
            self._arm()

    def _is_set(self, entry: _Entry) -> bool:
        return self._runs.get(entry[2], {}).get(entry[3]) is entry
