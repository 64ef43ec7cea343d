"""Virtual time: an event loop that, when nothing is ready, jumps to its next timer instead of waiting for it.

Made for a node without a store. Threads live in real time, so a loop that jumps would run ahead of them; those of plain
functions take turns with it.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from comity.testing.turns import TurnThreads, as_a_step

Result = TypeVar("Result")

EPOCH_NS = 1_700_000_000_000_000_000


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits: tells the loop how far to jump."""

    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            raise RuntimeError("nothing is ready and no timer is set: everything waits for something that never comes")
        self.loop.jump(timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop with its own time."""

    def __init__(self) -> None:
        self._virtual_s = 0.0
        selector = _JumpingSelector()
        selector.loop = self
        super().__init__(selector)
        self.threads = TurnThreads(self)  # of plain functions

    def time(self) -> float:
        """Return virtual seconds since the loop was made."""
        return self._virtual_s

    def run_in_executor(self, _: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Run it as one step of its own, as `asyncio.to_thread` does in a thread."""
        return as_a_step(self, func, *args)

    def jump(self, seconds: float) -> None:
        """Let time pass."""
        self._virtual_s += seconds


class VirtualClock:
    """The clock port on a virtual loop."""

    def now_ns(self) -> int:
        """Return nanoseconds since the epoch, in virtual time."""
        return EPOCH_NS + round(asyncio.get_running_loop().time() * 1e9)


def run_virtual(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine in virtual time, as `asyncio.run` does in real time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
