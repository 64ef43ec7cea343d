"""WAL checkpoints in a thread of their own, so that the writer, for which calls wait, never waits for a checkpoint.

A checkpoint writes everything since the last one to the main file, which large requests make slow. The writer continues
meanwhile: SQLite copies what was committed when the checkpoint began, and the next checkpoint copies the rest.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from pathlib import Path
from queue import SimpleQueue

from comity.engines.sqlite.connecting import SYNCED


class Checkpoints:
    """The checkpoint thread with its own connection, started by the first checkpoint."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._asked: SimpleQueue[bool] = SimpleQueue()  # False ends the thread
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Request a checkpoint; if one is running, another follows it."""
        if self._asked.empty():
            self._asked.put(True)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="comity-checkpoints", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Wait for the requested checkpoint, if any, and close the file."""
        self._asked.put(False)
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        # After an error the data stays in the WAL until the next checkpoint; the writer reports an unusable file.
        with contextlib.suppress(sqlite3.Error), contextlib.closing(self._connect()) as connection:
            while self._asked.get():
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _connect(self) -> sqlite3.Connection:
        """Open the file if it exists: a removed file must not be created again."""
        connection = sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None)
        for pragma in SYNCED:
            connection.execute(f"PRAGMA {pragma}")
        return connection
