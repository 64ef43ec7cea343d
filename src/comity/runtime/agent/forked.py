"""Ends a forked child process before it can act as a node.

A fork copies the event loop without its threads and shares file descriptors with the parent: a child that continued the loop
would run the parent's agents a second time and consume its events. So a child may do its own work and exit, or `exec`; if it
returns to the node's code (by returning, raising, awaiting or `sys.exit`), it exits at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections import deque
from typing import Final, NoReturn, Protocol
from weakref import WeakSet

_CAME_BACK: Final = "a forked child came back to the event loop of its parent's node; it is no node, and ends here"


class Forkable(Protocol):
    """A running node."""

    def disown(self) -> asyncio.AbstractEventLoop:
        """Make the node refuse and record nothing in this forked child; return the parent's event loop."""
        ...


_running: WeakSet[Forkable] = WeakSet()
_is_child = False


def begin(node: Forkable) -> None:
    """Register a node that runs in this process."""
    _running.add(node)


def end(node: Forkable) -> None:
    """Unregister a node."""
    _running.discard(node)


def is_child() -> bool:
    """Return whether this process was forked from one in which a node ran."""
    return _is_child


def leave(raised: BaseException | None = None) -> NoReturn:
    """Exit this child with the code of `sys.exit`, but without running the parent's `atexit` handlers."""
    raised = raised or sys.exc_info()[1]  # while the program unwinds through `asyncio.run`
    code = (raised.code or 0) if isinstance(raised, SystemExit) else _CAME_BACK
    with contextlib.suppress(Exception):  # exit even if a stream is broken
        if not isinstance(code, int):
            sys.stderr.write(f"{code}\n")
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code & 0xFF if isinstance(code, int) else 1)


def _in_child() -> None:
    global _is_child  # noqa: PLW0603  of the process
    loops = {node.disown() for node in _running}
    _is_child = _is_child or bool(loops)
    _running.clear()
    for loop in loops:
        ready = getattr(loop, "_ready", None)
        if isinstance(ready, deque):  # before every other callback of the loop
            ready.appendleft(asyncio.Handle(leave, (), loop))
        else:
            loop.call_soon(leave)


os.register_at_fork(after_in_child=_in_child)
