"""Copying the write-ahead log into the main file, beside the writer: calls wait for the writer, and never for a copy.

A copy takes as long as the disk takes for all that was written since the last one, which large requests make much. The writer
goes on meanwhile: SQLite copies what was committed when the copy began, and the next copy takes the rest.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from pathlib import Path
from queue import SimpleQueue

from comity.engines.sqlite.connecting import SYNCED


class Checkpoints:
    """A thread with a connection of its own, from the first copy on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._asked: SimpleQueue[bool] = SimpleQueue()  # False ends the thread
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Copy what is in the log by now; a copy under way is followed by one more."""
        if self._asked.empty():
            self._asked.put(True)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="comity-checkpoints", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Wait for the copy that was asked for, if there is one, and let go of the file."""
        self._asked.put(False)
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        # What cannot be copied stays in the log until the next copy; the writer tells of a file that cannot be used.
        with contextlib.suppress(sqlite3.Error), contextlib.closing(self._connect()) as connection:
            while self._asked.get():
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _connect(self) -> sqlite3.Connection:
        """Open the file if it is there: where it was removed, no new one may take its place."""
        connection = sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None)
        for pragma in SYNCED:
            connection.execute(f"PRAGMA {pragma}")
        return connection
