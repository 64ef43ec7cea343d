"""Tasks beside each other: waiting for many in an order that does not depend on hashes, and letting others have a turn."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from comity.core.document.foreign_errors import ENDINGS
from comity.core.envelope.envelope import Reply

T = TypeVar("T")
_Ending = TypeVar("_Ending", bound=asyncio.Future[Any])
log = logging.getLogger("comity")

# What unwinds foreign code without being its failure: it is cancelled, it is thrown away, the program is to end.
PASSES: Final = (asyncio.CancelledError, GeneratorExit, *ENDINGS)
CLOSE_S: Final = 5.0  # how long a node that closes waits for what it cancelled


def is_own(raised: BaseException, task: asyncio.Task[Any] | None) -> bool:
    """Return whether the code of a task raised `GeneratorExit` itself: what is thrown away is not at work any more."""
    try:
        return isinstance(raised, GeneratorExit) and asyncio.current_task() is task
    except RuntimeError:  # no loop runs
        return False


async def all_ended(named: Mapping[_Ending, str]) -> None:
    """Wait until all have ended, but not for ever: one may not heed being cancelled, and is named in the log.

    The task that waits here is not waited for. `asyncio.wait` would go by hash order.
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
    """Return a reply that was there at once after everybody else had a turn.

    An agent that asks again whenever it is refused would otherwise hold the loop for ever: no other agent would run, and its
    own deadline would never come.
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
