"""Helpers for asyncio tasks: waiting for many in a deterministic order, yielding to the loop, running in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from comity.core.document.foreign_errors import ENDINGS
from comity.core.envelope.envelope import Reply

T = TypeVar("T")
_Ending = TypeVar("_Ending", bound=asyncio.Future[Any])
log = logging.getLogger("comity")

# Exceptions that unwind an agent's code without being its failure: cancellation, a discarded coroutine, the program's end.
PASSES: Final = (asyncio.CancelledError, GeneratorExit, *ENDINGS)
CLOSE_S: Final = 5.0  # how long a closing node waits for cancelled tasks


def is_own(raised: BaseException, task: asyncio.Task[Any] | None) -> bool:
    """Return whether the task's own code raised `GeneratorExit` or `KeyboardInterrupt`.

    Python raises the first only in a coroutine that no task runs, and delivers Ctrl-C only to the main thread.
    """
    if isinstance(raised, ENDINGS):
        return threading.current_thread() is not threading.main_thread()
    try:
        return isinstance(raised, GeneratorExit) and asyncio.current_task() is task
    except RuntimeError:  # no loop runs
        return False


async def all_ended(named: Mapping[_Ending, str]) -> None:
    """Wait until all tasks have ended, at most `CLOSE_S`; the log names the tasks that ignored their cancellation.

    The current task is not waited for. `asyncio.wait` would depend on hash order.
    """
    tasks = [task for task in named if task is not asyncio.current_task()]
    left = sum(not task.done() for task in tasks)
    every: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def one(_: asyncio.Future[Any]) -> None:
        nonlocal left
        left -= 1
        if not left and not every.done():
            every.set_result(None)

    for task in tasks:
        if not task.done():
            task.add_done_callback(one)
    if left:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await every
    if names := ", ".join(named[task] for task in tasks if not task.done()):
        log.warning("left running, %.0f s after they were cancelled: %s", CLOSE_S, names)


async def after_a_turn(reply: Reply) -> Reply:
    """Return an immediate reply after one turn of the event loop.

    Otherwise an agent that retries whenever it is refused would block the loop for ever: no other agent would run, and its own
    deadline would never fire.
    """
    await asyncio.sleep(0)
    return reply


def release(waiter: asyncio.Future[None], error: Exception | None) -> None:
    """Resolve the waiter, or fail it with `error`."""
    if not waiter.done():
        waiter.set_result(None) if error is None else waiter.set_exception(error)


async def aside(function: Callable[..., T], *arguments: Any) -> T:
    """Run a function in another thread. A cancelled caller still waits for its end: the store may be closed next."""
    step = asyncio.get_running_loop().run_in_executor(None, function, *arguments)
    try:
        return await asyncio.shield(step)
    except asyncio.CancelledError:
        await asyncio.wait([step])
        raise
