"""A write lock for the threads of a process and the processes of a store.

SQLite allows one writer at a time, but lets the loser of a race sleep, longer each time, for up to 100 ms. With this lock the
kernel wakes the next writer at once. It is for speed alone: SQLite still excludes a program that does not take it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from weakref import WeakSet


class Turns:
    """The write lock of one process. It locks against other processes only if `is_shared` returns True."""

    def __init__(self, is_shared: Callable[[], bool]) -> None:
        self.is_shared = is_shared
        self._thread = threading.Lock()
        self._file = -1
        self._has_file = False  # locked, for the turn that was taken
        _open.add(self)

    def open(self, log: Path) -> None:
        """Use the WAL file as the lock file: all processes have it, and SQLite does not lock it.

        Sync it once: a killed process may have committed without syncing.
        """
        self._file = os.open(log, os.O_RDONLY)
        self.sync()

    def sync(self) -> None:
        """Sync all commits of all processes to the disk. Raises `OSError` if the disk fails."""
        if self._file >= 0:
            _sync(self._file)

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> None:
        self._thread.acquire()
        if self.is_shared() and self._file >= 0:
            fcntl.flock(self._file, fcntl.LOCK_EX)
            self._has_file = True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._has_file:
            self._has_file = False
            fcntl.flock(self._file, fcntl.LOCK_UN)
        self._thread.release()


def sync_log(log: Path) -> None:
    """Sync the WAL of a store to the disk; without a WAL there is nothing to sync."""
    with contextlib.suppress(FileNotFoundError):
        file = os.open(log, os.O_RDONLY)
        try:
            _sync(file)
        finally:
            os.close(file)


def _sync(file: int) -> None:
    if sys.platform == "darwin":
        fcntl.fcntl(file, fcntl.F_FULLFSYNC)  # there `fsync` leaves data in the cache of the drive
    else:
        os.fdatasync(file)


_open: WeakSet[Turns] = WeakSet()


def _let_go() -> None:
    for turns in _open:
        turns.close()


# A forked child would keep its parent's turn after the parent's death.
os.register_at_fork(after_in_child=_let_go)
