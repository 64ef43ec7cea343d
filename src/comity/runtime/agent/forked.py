"""A forked child is no node.

A fork copies the event loop, but none of the threads behind it, and shares descriptors with its parent: a child that went on
with the loop would run the parent's agents a second time and take its events away. So a child may do what it was forked for and
end, or become another program; where it comes back to its node, by returning, raising, waiting or `sys.exit`, it ends.
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
    """A node that runs."""

    def disown(self) -> asyncio.AbstractEventLoop:
        """Accept and record nothing in this process, which is a forked child; return the loop that the parent runs in."""
        ...


_running: WeakSet[Forkable] = WeakSet()
_is_child = False


def begin(node: Forkable) -> None:
    """Note that a node runs in this process."""
    _running.add(node)


def end(node: Forkable) -> None:
    """Note that it runs no longer."""
    _running.discard(node)


def is_child() -> bool:
    """Return whether this process was forked from one in which a node ran."""
    return _is_child


def leave(raised: BaseException | None = None) -> NoReturn:
    """End this child as `sys.exit` would have, but without what its parent left to be done at the end of the program."""
    raised = raised or sys.exc_info()[1]  # of a program that unwinds through `asyncio.run`
    code = (raised.code or 0) if isinstance(raised, SystemExit) else _CAME_BACK
    with contextlib.suppress(Exception):  # it ends, whatever its streams are
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
        if isinstance(ready, deque):  # before every other step that waits there
            ready.appendleft(asyncio.Handle(leave, (), loop))
        else:
            loop.call_soon(leave)


os.register_at_fork(after_in_child=_in_child)
