"""Where a function runs: in the event loop, in a thread beside it, or in a process of its own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final

from comity.core.agent.declaration import DeclarationError, shown


class RunIn(StrEnum):
    """Where a function runs. A thread cannot be stopped, only left behind; a process is killed when its call ends."""

    LOOP = "loop"
    THREAD = "thread"
    PROCESS = "process"


LOOP: Final = RunIn.LOOP  # bare names for the path of a call; see `core/call/machine.py`
THREAD: Final = RunIn.THREAD


def name_of(function: Callable[..., Any]) -> str:
    """Return a function's name for people, also of an object that can be called."""
    return getattr(function, "__qualname__", type(function).__name__)


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether calling it gives a coroutine: an `async def`, also inside a partial, an object or a wrapper."""
    while isinstance(function, functools.partial):
        function = function.func
    return any(
        map(inspect.iscoroutinefunction, (function, inspect.unwrap(function), getattr(type(function), "__call__", None)))  # noqa: B004
    )


def place_of(function: Callable[..., Any], given: RunIn | str | None) -> RunIn:
    """Return where a function runs: what its declaration says, else the loop if it is async and a thread if it is not.

    Raises `DeclarationError` for a word that is no place, and for an `async def` in a thread, where no loop would run it.
    """
    if given is None:
        return LOOP if is_async(function) else THREAD
    try:
        place = RunIn(given)
    except ValueError:
        raise DeclarationError(f"run_in must be one of {', '.join(RunIn)}, not {shown(given)}") from None
    if place is THREAD and inspect.iscoroutinefunction(function):
        raise DeclarationError(f"{name_of(function)} is async and runs in the loop; only a plain function can run in a thread")
    return place
