"""Being told to end: SIGTERM does what Ctrl-C does, and has an exit code of its own."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

from comity.cli.ui.exits import Exit


class Ending:
    """The length of one command: while it lasts, `code` is the exit code that an interruption means."""

    def __init__(self) -> None:
        self.code = Exit.INTERRUPTED
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # the only one that may handle signals
            self._before = signal.signal(signal.SIGTERM, self._terminate)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)

    def _terminate(self, _number: int, frame: FrameType | None) -> None:
        self.code = Exit.TERMINATED
        interrupt = signal.getsignal(signal.SIGINT)  # an event loop's own while it runs: it cancels the command's task
        if callable(interrupt):
            interrupt(signal.SIGINT, frame)
        else:  # shells start what runs in the background deaf to SIGINT
            raise KeyboardInterrupt
