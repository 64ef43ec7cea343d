"""One connection to the server, as uvicorn serves it, with the bounds that uvicorn has not.

A client that sends its head or its body too slowly, or takes nothing of what it asked for, is cut off. One sweep a second looks
at all connections, so that a request costs no timer of its own.

The rest of a request that is answered before its body has arrived, such as one that is too large, is read and thrown away,
within bounds: a socket that is closed with bytes unread resets the connection, and the client never sees its answer.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from comity.server.settings import Settings
from comity.server.web import BrokenOffError, Send

SWEEP_S: Final = 1.0
# Requests that a connection may send before the first is answered: what comes in one piece is parsed in one go, and 230 of
# them held every other client up for 130 ms.
PIPELINED_MAX: Final = 32
# Of a body that no handler wants: so many bytes are thrown away, in pieces as far apart as this, for so long at most.
LINGER_BYTES_MAX: Final = 16 * 1024 * 1024
LINGER_PAUSE_S: Final = 0.005
LINGER_S: Final = 10.0


_PLAIN: Final = (
    b"content-type: application/json\r\ncache-control: no-store\r\nx-content-type-options: nosniff\r\ncontent-length: "
)


def write_at_once(send: Send, status: int, body: bytes, headers: tuple[tuple[bytes, bytes], ...]) -> bool:
    """Write a whole JSON answer to the connection behind `send`; return False where it is to be sent in the usual way.

    uvicorn checks each header by two patterns and knows the answer only in two parts, which is a tenth of a call's cost. What
    is written here is known to be sound. The fields are those that its own `send` sets.
    """
    cycle = getattr(send, "__self__", None)
    if type(cycle) is not RequestResponseCycle or cycle.response_started or not cycle.keep_alive:
        return False
    if cycle.disconnected or cycle.transport.is_closing():
        raise BrokenOffError
    if cycle.flow.write_paused:
        return False
    parts = [STATUS_LINE[status]]
    for name, value in (*cycle.default_headers, *headers):
        parts += (name, b": ", value, b"\r\n")
    cycle.response_started = cycle.response_complete = True
    cycle.waiting_for_100_continue = False
    cycle.transport.write(b"%s%s%d\r\n\r\n%s" % (b"".join(parts), _PLAIN, len(body), body))
    cycle.message_event.set()
    cycle.on_response()
    return True


def give_up(send: Send) -> None:
    """Expect no answer behind `send` any more: its client is gone, which uvicorn tells the newest of its requests alone."""
    cycle = getattr(send, "__self__", None)
    if type(cycle) is RequestResponseCycle:
        cycle.disconnected = True


class PipelineError(Exception):
    """A client sent more requests than may wait on one connection."""


class Connections:
    """All connections of a server, and the sweep that ends those that stall."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.open: set[Connection] = set()
        self.by_address: dict[str, int] = {}
        self.cut = 0  # for being too slow
        self._timer: asyncio.TimerHandle | None = None

    def add(self, connection: Connection) -> bool:
        """Take a new connection; return whether there is room for it."""
        address = connection.address
        mine = self.by_address.get(address, 0)
        if len(self.open) >= self.settings.connections_max or mine >= self.settings.connections_per_address_max:
            return False
        self.by_address[address] = mine + 1
        self.open.add(connection)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SWEEP_S, self._sweep)
        return True

    def remove(self, connection: Connection) -> None:
        """Forget a connection that is gone."""
        if connection in self.open:
            self.open.discard(connection)
            left = self.by_address[connection.address] - 1
            if left:
                self.by_address[connection.address] = left
            else:
                del self.by_address[connection.address]

    def close(self) -> None:
        """Sweep no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _sweep(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(SWEEP_S, self._sweep) if self.open else None
        now = time.monotonic()
        for connection in [one for one in self.open if one.is_stalled(now, self.settings)]:
            self.cut += 1
            connection.abort()


class Channel:
    """The transport of a connection, which is closed only once the request that was answered has arrived, or was given up."""

    __slots__ = ("_connection", "_transport", "is_closing", "write")

    def __init__(self, transport: Any, connection: Connection) -> None:
        self._transport, self._connection = transport, connection
        self.write, self.is_closing = transport.write, transport.is_closing  # with every answer: not looked up by name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def close(self) -> None:
        """Close the connection, or let the rest of its request arrive first."""
        if not self._connection.linger():
            self._transport.close()


class Connection(HttpToolsProtocol):
    """One connection. `reading_since` is when the request that is arriving began, 0 while none is."""

    def __init__(self, *given: Any, connections: Connections, **more: Any) -> None:
        super().__init__(*given, **more)
        self._connections = connections
        self.address = ""
        self.reading_since = 0.0
        self.body_bytes = -1  # of the request that is arriving; -1 until its head is complete
        self.stalled_since = 0.0
        self.is_lost = False
        self.lingers_until = 0.0  # then the rest of its request is thrown away; 0 for a connection that is served
        self.waiter: asyncio.Future[None] | None = None  # of the stream that it carries

    def connection_made(self, transport: Any) -> None:
        """Begin; a connection too many is closed at once."""
        super().connection_made(Channel(transport, self))  # type: ignore[arg-type]
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if isinstance(peer, tuple) else ""
        self.reading_since = time.monotonic()
        if not self._connections.add(self):
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """End, and wake the stream that this connection carries."""
        self._connections.remove(self)
        self.is_lost = True
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Note when a request began to arrive."""
        if self.lingers_until:
            self._throw_away(len(data))
            return
        if not self.reading_since and (self.cycle is None or self.cycle.response_complete):
            self.reading_since = time.monotonic()
        super().data_received(data)

    def linger(self) -> bool:
        """Say that no more is sent, and wait for the rest of the request; return False where there is no rest."""
        if self.lingers_until or not self.reading_since or self.body_bytes < 0 or self.transport.is_closing():
            return False
        self.lingers_until = time.monotonic() + LINGER_S
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()
        return True

    def _throw_away(self, size: int) -> None:
        self.body_bytes += size
        if self.body_bytes > LINGER_BYTES_MAX:
            self.abort()
            return
        self.transport.pause_reading()
        self.loop.call_later(LINGER_PAUSE_S, self._go_on_reading)

    def _go_on_reading(self) -> None:
        if not self.is_lost and not self.transport.is_closing():
            self.transport.resume_reading()

    def on_message_begin(self) -> None:
        """A head begins. Raises where too many requests wait for an answer, which ends the connection with status 400."""
        if len(self.pipeline) >= PIPELINED_MAX:
            raise PipelineError
        self.body_bytes = -1
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is there: the body has its own pace."""
        self.body_bytes = 0
        super().on_headers_complete()
        self.scope["comity.connection"] = self  # type: ignore[typeddict-unknown-key]

    def on_body(self, body: bytes) -> None:
        """Count a part of the body; a body without end is cut off once its request has been answered."""
        self.body_bytes += len(body)
        if self.body_bytes > LINGER_BYTES_MAX and self.cycle.response_complete:
            self.abort()
            return
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is complete."""
        self.reading_since = 0.0
        super().on_message_complete()

    def pause_writing(self) -> None:
        """The client does not take what it is sent."""
        self.stalled_since = time.monotonic()
        super().pause_writing()

    def resume_writing(self) -> None:
        """The client takes it again."""
        self.stalled_since = 0.0
        super().resume_writing()

    def is_stalled(self, now: float, settings: Settings) -> bool:
        """Return whether the client is too slow to send its head or its body, or to take its answer."""
        if self.lingers_until:
            return now > self.lingers_until
        if self.stalled_since and now - self.stalled_since > settings.stall_s:
            return True
        if not self.reading_since:
            return False
        waited_s = now - self.reading_since
        if self.body_bytes < 0:
            return waited_s > settings.head_s
        is_reading = self.flow is None or not self.flow.read_paused  # while paused the server lets the client wait
        return is_reading and waited_s > settings.head_s + self.body_bytes / settings.body_bytes_per_s_min

    def abort(self) -> None:
        """Cut the client off."""
        if self.transport is not None:
            self.transport.abort()
