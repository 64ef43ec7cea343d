"""A server's life: it listens, serves, and drains on SIGTERM, with its node inside the same life.

On the first signal the server turns unready, closes its listener and ends its streams. Calls that run may finish for
`drain_s`; then the node closes, which settles the rest as cancelled, and the waiting clients get that reply. A second signal
ends the server at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import logging
import signal
import socket
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final

import uvicorn

from comity import Node
from comity.server.app import App, Door
from comity.server.auth import Gate
from comity.server.connection import Connection, Connections
from comity.server.reading import keep_index
from comity.server.settings import Settings

log = logging.getLogger("comity.server")

LEAVE_S: Final = 5  # after the drain: for answers that are still being written
_TICK_S: Final = 0.02
# When the garbage collector looks at young objects, older ones and all, in a process that serves. By Python's own numbers it
# walks through the requests under way again and again, which takes 6 percent of a busy server; see ADR 154.
COLLECTIONS: Final = (5_000, 4, 20)


class _Uvicorn(uvicorn.Server):
    """uvicorn without signal handlers of its own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        """Leave the signals to the server."""
        yield


class Server:
    """The HTTP server of one node, which it starts and closes."""

    def __init__(self, node: Node, settings: Settings, auth: Gate, doors: Iterable[Door] = ()) -> None:
        self.settings = settings
        self.node = node
        self.app = App(node, settings, auth, doors)
        self.connections = Connections(settings)
        self._stopping = asyncio.Event()
        self._has_drained = False
        self._serving: asyncio.Task[None]
        self._uvicorn = _Uvicorn(
            uvicorn.Config(
                self.app,
                http=functools.partial(Connection, connections=self.connections),  # type: ignore[arg-type]
                ws="none",
                loop="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                date_header=True,
                timeout_keep_alive=settings.keep_alive_s,
                timeout_graceful_shutdown=LEAVE_S,
                h11_max_incomplete_event_size=64 * 1024,
                ssl_certfile=settings.certfile or None,
                ssl_keyfile=settings.keyfile or None,
            )
        )

    @property
    def url(self) -> str:
        """Where the server answers on this machine."""
        host = f"[{self.settings.host}]" if ":" in self.settings.host else self.settings.host
        return f"{'https' if self.settings.certfile else 'http'}://{host}:{self.port}"

    def stop(self) -> None:
        """Begin to drain; called again, end at once."""
        if self._stopping.is_set():
            self._uvicorn.should_exit = self._uvicorn.force_exit = True
        self._stopping.set()

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[Server]:
        """Start the node and listen; drain and close both in the end."""
        listener = bound(self.settings)
        self.port = listener.getsockname()[1]
        self.app.bind(self.port)
        async with self.node:
            self.node.watch_ends(self.app.state.calls.take)
            self._serving = serving = asyncio.create_task(self._uvicorn.serve([listener]), name="serve")
            index = asyncio.create_task(keep_index(self.node, self.app.state.reading), name="index of calls")
            try:
                while not self._uvicorn.started and not serving.done():  # noqa: ASYNC110  uvicorn offers nothing to wait for
                    await asyncio.sleep(_TICK_S)
                yield self
            finally:
                index.cancel()
                await asyncio.gather(index, return_exceptions=True)
                await self.drain()

    async def run(self, told: Any = None) -> None:
        """Serve until a signal comes; `told` is called once the server listens."""
        loop, before = asyncio.get_running_loop(), gc.get_threshold()
        gc.set_threshold(*COLLECTIONS)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        try:
            async with self.listening():
                if told is not None:
                    told(self)
                await self._stopping.wait()
        finally:
            gc.set_threshold(*before)
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    async def drain(self) -> None:
        """Take nothing new, let calls that run finish for a while, settle the rest, write what is owed, and leave."""
        if self._has_drained:
            return
        self._has_drained = True
        loop, state = asyncio.get_running_loop(), self.app.state
        state.drain()
        for server in self._uvicorn.servers:
            server.close()
        give_up = loop.time() + self.settings.drain_s
        while loop.time() < give_up and self._is_busy():  # noqa: ASYNC110  a call's end must not cost a look at the server
            await asyncio.sleep(_TICK_S)
        cancelled = sum(self.node.running().values())
        await self.node.close()
        self._uvicorn.should_exit = True
        await self._serving
        state.reading.close()
        self.connections.close()
        log.info("stopped", extra={"facts": {"cancelled": cancelled}})

    def _is_busy(self) -> bool:
        is_owed = self.node.running() or self.app.state.metrics.in_flight
        return bool(is_owed) and not self._uvicorn.force_exit


def bound(settings: Settings) -> socket.socket:
    """Return the socket the server listens on. Raises `OSError` where the address is taken."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # asyncio turns Nagle's algorithm off only where a socket names its protocol; with it a second write waits 40 ms for an ACK.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError:
        listener.close()
        raise
    listener.listen(2_048)
    listener.setblocking(False)
    return listener
