"""Where the planner of one run works: on the event loop, or in a thread once the events of the run have long data (ADR 240)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from msgspec.structs import asdict

from comity.core.document.slices import ONE_GO_BYTES, Sliced, T
from comity.core.workflow.history import Event
from comity.core.workflow.mapping import size_of
from comity.core.workflow.replay import SLICE_EVENTS
from comity.runtime.call.pace import User
from comity.runtime.call.slices import Slices
from comity.runtime.workflow.store import OUTLINE_BYTES

EVENTS_BYTES_LONG: Final = 1024 * 1024  # of all events together


class Planning:
    """Tells from the sizes of a run's events whether its data are long."""

    __slots__ = ("_events_bytes", "_slices", "is_in_thread", "is_long")

    def __init__(self, slices: Slices) -> None:
        self._slices = slices
        self._events_bytes = 0
        self.is_long = False  # one event, or all of them together
        self.is_in_thread = False  # now, so that no other code may look at the planner

    def note(self, event_bytes: int) -> None:
        """Count the bytes of an event."""
        self._events_bytes += event_bytes
        self.is_long = self.is_long or event_bytes >= ONE_GO_BYTES or self._events_bytes >= EVENTS_BYTES_LONG

    async def read(self, history: Iterable[Event], user: User) -> list[Event]:
        """Return the events of a stored history, which is read in slices, and count their bytes."""
        return await self._slices.run(self._read(history), user)

    def _read(self, history: Iterable[Event]) -> Sliced[list[Event]]:
        events: list[Event] = []
        for event in history:
            events.append(event)
            size = 0 if self.is_long else size_of(asdict(event), ONE_GO_BYTES)
            self.note(size)
            if len(events) % SLICE_EVENTS == 0 or size > OUTLINE_BYTES:
                yield
        return events

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Return the result of pure work of the planner, done in a thread."""
        self.is_in_thread = True
        try:
            return await self._slices.aside.run(work)
        finally:
            self.is_in_thread = False
