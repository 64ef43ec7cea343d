"""What a caller can watch while a call runs: its own steps and those of every call below it, in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from enum import StrEnum
from typing import Any

from msgspec import Struct

from comity.core.call.limits import EVENTS_KEPT_MAX
from comity.core.envelope.envelope import Request

Step = tuple[str, str | None, str, str]  # the call of an event: request id, parent id, target and capability


class Kind(StrEnum):
    """What happened."""

    QUEUED = "queued"
    STARTED = "started"
    PROGRESS = "progress"
    TEXT = "text"  # the next piece of an answer that is being written
    REFUSED = "refused"
    SETTLED = "settled"


class Event(Struct, frozen=True, kw_only=True):
    """One event. `seq` counts from 1 within the root call without gaps, so a watcher can continue after the last it saw."""

    seq: int
    kind: Kind
    at_ms: int
    request_id: str
    parent_id: str | None
    target: str
    capability: str
    data: Any = None
    text: str = ""  # a description that may be shown to the user


class EventLog:
    """The events of one root call; kept up to a bound, oldest dropped first."""

    __slots__ = ("_aside", "_events", "_is_closed", "_seq", "_watchers")

    def __init__(self) -> None:
        self._aside: deque[tuple[Kind, int, Request, Any]] = deque(maxlen=EVENTS_KEPT_MAX)
        self._events: deque[Event] = deque(maxlen=EVENTS_KEPT_MAX)
        self._seq = 0
        self._watchers: list[asyncio.Future[None]] = []
        self._is_closed = False

    def add(self, kind: Kind, at_ms: int, request: Request, data: Any = None, text: str = "") -> None:
        """Append an event and wake the watchers."""
        of = (request.request_id, request.parent_id, request.target, request.capability)
        self.add_step(kind, at_ms, of, data, text)

    def add_step(self, kind: Kind, at_ms: int, of: Step, data: Any = None, text: str = "") -> None:
        """Append an event of the call `of`, which may run on another node, and wake the watchers."""
        self._seq += 1
        request_id, parent_id, target, capability = of
        self._events.append(
            Event(
                seq=self._seq,
                kind=kind,
                at_ms=at_ms,
                request_id=request_id,
                parent_id=parent_id,
                target=target,
                capability=capability,
                data=data,
                text=text,
            )
        )
        self._wake()

    def put_aside(self, kind: Kind, at_ms: int, request: Request, data: Any) -> None:
        """Hold an event back until the guardrails have judged the reply: `show_aside` appends it, `drop_aside` discards it."""
        self._aside.append((kind, at_ms, request, data))

    def show_aside(self) -> None:
        """Append the events that were held back."""
        while self._aside:
            self.add(*self._aside.popleft())

    def drop_aside(self) -> None:
        """Discard the events that were held back."""
        self._aside.clear()

    def close(self) -> None:
        """Close the log once the root's reply is delivered; watchers stop after the last event."""
        self._is_closed = True
        self._wake()

    @property
    def is_closed(self) -> bool:
        """Whether the log is complete."""
        return self._is_closed

    def since(self, after: int) -> list[Event]:
        """Return the events after sequence number `after` that are still kept."""
        if self._seq <= after:
            return []
        return [event for event in self._events if event.seq > after]

    def notify(self, waiter: asyncio.Future[None]) -> None:
        """Resolve `waiter` with the next event, or when the log is closed."""
        self._watchers.append(waiter)

    async def watch(self, after: int = 0) -> AsyncIterator[Event]:
        """Yield the events after sequence number `after`, then new ones as they come, until the call has settled."""
        while True:
            for event in self.since(after):
                after = event.seq
                yield event
            if self._seq > after:
                continue
            if self._is_closed:
                return
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.notify(waiter)
            await waiter

    def _wake(self) -> None:
        watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            if not watcher.done():
                watcher.set_result(None)
