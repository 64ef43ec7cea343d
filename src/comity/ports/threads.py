"""Threads beside the event loop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol


class Threads(Protocol):
    """Threads beside the event loop. A loop that keeps its own time brings its own as its attribute `threads`."""

    def start(self, work: Callable[[], None], *, waits: bool) -> None:
        """Run `work`, which never raises, beside the loop; `waits` if it may call `wait`. Called in the loop."""
        ...

    def wait(self, gate: threading.Lock) -> None:
        """Wait, in a thread that was started, until the loop has opened the gate, which is a lock that is held."""
        ...

    def go_on(self, gate: threading.Lock) -> None:
        """Open the gate. Called in the loop."""
        ...

    def close(self) -> None:
        """Let go of the threads that are idle."""
        ...
