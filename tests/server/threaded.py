"""A served node in a thread of its own, for tests that are plain functions and share it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
from served import TOKEN, Served, serving

from comity import Node


class Threaded:
    """A server that runs in another thread, and a client with its token."""

    def __init__(self, loop: asyncio.AbstractEventLoop, served: Served, client: httpx.Client, thread: threading.Thread) -> None:
        self.loop, self.served, self.client, self._thread = loop, served, client, thread
        self.url, self.node = served.url, served.server.node
        self.state = served.server.app.state

    def run(self, work: Any) -> Any:
        """Run a coroutine in the server's loop and return what it returns."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def cpu_s(self) -> float:
        """Return how long the server's thread has computed so far, in seconds."""
        assert self._thread.ident is not None
        return time.clock_gettime(time.pthread_getcpuclockid(self._thread.ident))

    def rows(self) -> list[Any]:
        """Return the audit rows of the node."""

        async def read() -> Any:
            return self.node.audit.rows()

        return self.run(read())


@contextlib.contextmanager
def served_in_thread(make: Callable[[], Node], **options: Any) -> Iterator[Threaded]:
    """Serve a node until the block ends; the node is made in the server's thread."""
    ready, done = threading.Event(), []
    told: dict[str, Any] = {}

    async def live() -> None:
        end = asyncio.Event()
        try:
            async with serving(make(), **options) as served:
                told.update(loop=asyncio.get_running_loop(), served=served, end=end)
                ready.set()
                await end.wait()
        except BaseException as error:
            done.append(error)
            raise
        finally:
            ready.set()

    thread = threading.Thread(target=lambda: asyncio.run(live()), daemon=True)
    thread.start()
    ready.wait(60)
    if done:
        raise done[0]
    try:
        with httpx.Client(base_url=told["served"].url, headers={"authorization": f"Bearer {TOKEN}"}, timeout=30) as client:
            yield Threaded(told["loop"], told["served"], client, thread)
    finally:
        told["loop"].call_soon_threadsafe(told["end"].set)
        thread.join(60)
