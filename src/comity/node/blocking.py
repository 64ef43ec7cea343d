"""Blocking twins of async objects, whose methods run in the event loop of a thread of its own."""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from comity.runtime.agent.workers import check_guarded

log = logging.getLogger("comity")

Given = ParamSpec("Given")
Result = TypeVar("Result")
Target = TypeVar("Target")
_END: Any = object()


class LoopThread:
    """An event loop in a thread of its own, for blocking code."""

    def __init__(self) -> None:
        check_guarded()  # here: an exit in another thread ends only that thread, not the program
        self._loop = asyncio.new_event_loop()
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name="comity-node", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_stopped:
            try:
                self._loop.run_forever()
            except (KeyboardInterrupt, SystemExit):  # of some code in this thread: Ctrl-C reaches the main thread alone
                log.exception("code in the event loop tried to end the program; the loop goes on")

    def submit(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Start a coroutine in the loop and return its future."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine in the loop and return its result."""
        return self.submit(work).result()

    def stop(self) -> None:
        """Stop the loop and its thread."""
        self._is_stopped = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Blocking(Generic[Target]):
    """The blocking twin of an async object."""

    _target: Target
    _thread: LoopThread | None = None  # in which the object lives, from its first use

    def _running(self) -> LoopThread:
        if self._thread is None:
            self._thread = LoopThread()
        return self._thread

    def _stop(self) -> None:
        if self._thread is not None:
            self._thread.stop()
            self._thread = None

    def _run(self, work: Callable[[Target], Awaitable[Result]]) -> Result:
        """Do something with the object in its thread and wait for it."""

        async def there() -> Result:
            return await work(self._target)

        return self._running().run(there())

    def _each(self, items: AsyncIterator[Result]) -> Iterator[Result]:
        """Yield what an async iterator of the object yields."""
        while (item := self._running().run(_next(items))) is not _END:
            yield item


async def _next(items: AsyncIterator[Result]) -> Result:
    return await anext(items, _END)


def awaited(
    method: Callable[Concatenate[Any, Given], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[Blocking[Any], Given], Result]:
    """Return the blocking twin of an async method, with the same parameters."""

    @functools.wraps(method)
    def twin(self: Blocking[Any], /, *given: Given.args, **more: Given.kwargs) -> Result:
        return self._run(lambda target: method(target, *given, **more))

    return twin
