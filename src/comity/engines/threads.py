"""Real threads for plain functions. The program does not wait for them when it ends: none of them can be made to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

Work = Callable[[], None]


class SystemThreads:
    """Threads that are kept for the next function once the one they ran has returned."""

    def __init__(self) -> None:
        self._idle: list[SimpleQueue[Work | None]] = []
        self._is_closed = False

    def start(self, work: Work, *, waits: bool) -> None:  # noqa: ARG002  a real thread may always wait
        """Run `work` in a thread, a new one if none is idle."""
        try:
            jobs = self._idle.pop()
        except IndexError:
            jobs = SimpleQueue()
            threading.Thread(target=self._serve, args=(jobs,), name="comity-function", daemon=True).start()
        jobs.put(work)

    def wait(self, gate: threading.Lock) -> None:
        """Wait, in a thread, until the loop has opened the gate."""
        gate.acquire()

    def go_on(self, gate: threading.Lock) -> None:
        """Open the gate, in the loop."""
        gate.release()

    def close(self) -> None:
        """End the idle threads, and the others as soon as their functions return."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().put(None)

    def _serve(self, jobs: SimpleQueue[Work | None]) -> None:
        while (work := jobs.get()) is not None:
            work()
            del work  # it may hold on to a whole call while the thread is idle
            if self._is_closed:
                return
            self._idle.append(jobs)
