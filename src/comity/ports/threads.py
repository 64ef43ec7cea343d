"""Threads beside the event loop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol


class Threads(Protocol):
    """Threads beside the event loop. A loop with virtual time has its own implementation as its attribute `threads`."""

    def start(self, work: Callable[[], None], *, waits: bool) -> None:
        """Run `work`, which never raises, beside the loop; `waits` if it may call `wait`. Called in the loop."""
        ...

    def wait(self, gate: threading.Lock) -> None:
        """Block a started thread until the loop calls `go_on`; `gate` is a held lock."""
        ...

    def go_on(self, gate: threading.Lock) -> None:
        """Release the gate. Called in the loop."""
        ...

    def close(self) -> None:
        """End the idle threads."""
        ...
