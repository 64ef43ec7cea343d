"""Threads that take turns with the event loop, so that plain functions stay deterministic in virtual time.

While a function runs, the loop stands still; while it waits for the loop, the function stands still. So a function is a step of
the loop like any other, and the seed alone decides which comes first.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Final

TURN_S_MAX: Final = 60  # of real time


class StuckFunctionError(AssertionError):
    """A plain function does not return: what it waits for may be another one's, which waits for its turn."""

    def __str__(self) -> str:
        return f"a plain function has held up virtual time for {TURN_S_MAX} s; does it wait for a lock that another one holds?"


class TurnThreads:
    """The threads of a loop that keeps its own time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._turn = threading.Semaphore(0)  # released by the thread that gives the turn back to the loop

    def start(self, work: Callable[[], None], *, waits: bool) -> None:
        """Run `work` as a step of its own; in a thread if it may wait for the loop."""
        self._loop.call_soon(self._run if waits else work, *((work,) if waits else ()))

    def wait(self, gate: threading.Lock) -> None:
        """Give the turn to the loop until it has opened the gate."""
        self._turn.release()
        gate.acquire()

    def go_on(self, gate: threading.Lock) -> None:
        """Open the gate, and wait until the thread behind it waits again or has ended."""
        gate.release()
        self._await_turn()

    def close(self) -> None:
        """Nothing is kept."""

    def _run(self, work: Callable[[], None]) -> None:
        def body() -> None:
            try:
                work()
            finally:
                self._turn.release()

        threading.Thread(target=body, name="comity-function", daemon=True).start()
        self._await_turn()

    def _await_turn(self) -> None:
        if not self._turn.acquire(timeout=TURN_S_MAX):
            raise StuckFunctionError


def as_a_step(loop: asyncio.AbstractEventLoop, function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
    """Run a function as a step of the loop, in place of an executor: its threads live in real time."""
    future = loop.create_future()

    def run() -> None:
        if future.cancelled():
            return
        try:
            result = function(*arguments)
        except Exception as error:  # noqa: BLE001  the task boundary
            future.set_exception(error)
        else:
            future.set_result(result)

    loop.call_soon(run)
    return future
