"""Server-sent events: frames, heartbeats, and streams that end when the server drains or their client is gone.

A stream keeps its place in a log and nothing else, so the producer never waits for a slow client: events that were dropped
before the client took them are named by one `gap` event. A client that takes nothing is cut off by its connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, Protocol

from comity.server.guard import SAFE_HEADERS
from comity.server.web import Scope, Send, encode

MEDIA_TYPE: Final = b"text/event-stream"
_RETRY: Final = b"retry: 2000\n\n"
_HEARTBEAT: Final = b": alive\n\n"
_HEADERS: Final = [
    (b"content-type", MEDIA_TYPE),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    *SAFE_HEADERS,
]


def frame(event: str, data: Any, number: int | None = None) -> bytes:
    """Return one event: its name, one line of JSON, and the number from which a client resumes."""
    begin = b"" if number is None else b"id: %d\n" % number
    return b"%sevent: %s\ndata: %s\n\n" % (begin, event.encode(), encode(data))


class Source(Protocol):
    """Where the events of a stream come from."""

    @property
    def is_closed(self) -> bool:
        """Whether no further event comes."""
        ...

    def since(self, after: int) -> Iterable[Any]:
        """Return the events after a number, in order; each has a `seq`."""
        ...

    def notify(self, waiter: asyncio.Future[None]) -> None:
        """Resolve `waiter` with the next event, or when the source is closed."""
        ...


class Streams:
    """The open streams of a server: woken together for heartbeats, and once more for the end."""

    def __init__(self, heartbeat_s: float) -> None:
        self._heartbeat_s = heartbeat_s
        self._waiters: set[asyncio.Future[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self.open = 0
        self.is_draining = False

    def drain(self) -> None:
        """End every stream."""
        self.is_draining = True
        if self._timer is not None:
            self._timer.cancel()
        self._wake()

    async def serve(
        self,
        scope: Scope,
        send: Send,
        source: Source,
        after: int,
        show: Callable[[Any], bytes | None],
        last: Callable[[], Awaitable[bytes]] | None = None,
    ) -> None:
        """Write the events of a source after a number until it is closed; `show` returns the frame of one, `last` the end."""
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        await send({"type": "http.response.body", "body": _RETRY, "more_body": True})
        connection = scope.get("comity.connection")
        self.open += 1
        self._beat()
        waiter: asyncio.Future[None] | None = None
        try:
            while not (self.is_draining or (connection is not None and connection.is_lost)):
                is_closed = source.is_closed
                parts: list[bytes] = []
                for event in source.since(after):
                    if event.seq > after + 1 and after:
                        parts.append(frame("gap", {"from": after + 1, "to": event.seq - 1}))
                    after = event.seq
                    if shown := show(event):
                        parts.append(shown)
                if is_closed:
                    parts += [] if last is None else [await last()]
                    break
                if parts or (waiter is not None):
                    await send({"type": "http.response.body", "body": b"".join(parts) or _HEARTBEAT, "more_body": True})
                    parts = []
                if connection is not None and connection.is_lost:
                    break
                if self.is_draining or source.is_closed or source.since(after):
                    continue
                waiter = asyncio.get_running_loop().create_future()
                self._waiters.add(waiter)
                source.notify(waiter)
                if connection is not None:
                    connection.waiter = waiter
                await waiter
                self._waiters.discard(waiter)
            else:
                parts = [frame("drain", {})] if self.is_draining else []
            await send({"type": "http.response.body", "body": b"".join(parts)})
        finally:
            self.open -= 1
            if waiter is not None:
                self._waiters.discard(waiter)

    def _beat(self) -> None:
        if self._timer is None and not self.is_draining:
            self._timer = asyncio.get_running_loop().call_later(self._heartbeat_s, self._again)

    def _again(self) -> None:
        self._timer = None
        self._wake()
        if self.open:
            self._beat()

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, set()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
