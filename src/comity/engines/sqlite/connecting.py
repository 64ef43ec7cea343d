"""Opens a store's file: as its writer, as a concurrent reader, or on a read-only file system."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from comity.core.units import MS_PER_S

BUSY_TIMEOUT_MS: Final = 10_000
WAL_BYTES_KEPT: Final = 32 * 1024 * 1024
# NORMAL loses acknowledged commits when the power fails; FULL does not, where fsync does what it says.
SYNCED: Final = ("synchronous = FULL", "fullfsync = ON")
PRAGMAS: Final = (
    "page_size = 8192",  # a batch is some twenty pages: half as many writes as with the default page size
    "journal_mode = WAL",
    *SYNCED,
    # Requests are overwritten by replies, documents by newer versions: without this, old bytes would survive an erasure.
    "secure_delete = ON",
    # Pages in the WAL at which SQLite checkpoints by itself, if `Checkpoints` has not done so before.
    "wal_autocheckpoint = 4000",
    # The rollback data of a statement with many rows: in memory, not in a temporary file.
    "temp_store = MEMORY",
    # A WAL that grew because of a long reader shrinks to this size afterwards.
    f"journal_size_limit = {WAL_BYTES_KEPT}",
)


class Connect(Protocol):
    """Opens a file."""

    def __call__(self, path: Path, *, read_only: bool, is_archived: bool) -> sqlite3.Connection: ...


def connect(
    path: Path, *, read_only: bool = False, is_archived: bool = False, busy_timeout_ms: int = BUSY_TIMEOUT_MS
) -> sqlite3.Connection:
    """Open the file; a reader cannot change it."""
    place = uri(path, read_only=read_only, is_archived=is_archived)
    connection = sqlite3.connect(place, uri=True, isolation_level=None, check_same_thread=False)
    try:
        connection.execute(f"PRAGMA busy_timeout = {busy_timeout_ms}")
        if not read_only:
            patiently(lambda: _check_owner(connection), busy_timeout_ms)
            patiently(lambda: make_compactable(connection), busy_timeout_ms)
            for pragma in PRAGMAS:
                patiently(lambda pragma=pragma: connection.execute(f"PRAGMA {pragma}"), busy_timeout_ms)  # type: ignore[misc]
    except BaseException:
        connection.close()
        raise
    return connection


def make_compactable(connection: sqlite3.Connection) -> None:
    """Enable compaction while the file is in use (`auto_vacuum`), which is possible only for an empty file."""
    if not connection.execute("PRAGMA page_count").fetchone()[0]:
        connection.execute(f"PRAGMA {PRAGMAS[0]}")  # the page size is fixed by the first page
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")


def uri(path: Path, *, read_only: bool, is_archived: bool) -> str:
    """Return the SQLite URI of a file; an archived file is opened as immutable."""
    return f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}{'&immutable=1' * is_archived}"


def connect_anywhere(path: Path, connect: Connect = connect) -> sqlite3.Connection:
    """Open a file for reading, whether it is in use or on a read-only file system."""
    try:
        connection = connect(path, read_only=True, is_archived=False)
        try:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except sqlite3.DatabaseError:
            connection.close()
            raise
    except sqlite3.OperationalError:
        log = path.with_name(f"{path.name}-wal")
        if log.exists() and log.stat().st_size:
            raise
        # Readers of a live file need its shared-memory file. If that cannot be created, as in an archive, no process writes.
        return connect(path, read_only=True, is_archived=True)
    return connection


def patiently(step: Callable[[], object], patience_ms: int) -> None:
    """Retry a step while another process creates the file: `busy_timeout` does not apply to a change of journal mode."""
    give_up = time.monotonic() + patience_ms / MS_PER_S
    while True:
        try:
            step()
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > give_up:
                raise
        time.sleep(0.01)


def _check_owner(connection: sqlite3.Connection) -> None:
    """Raise `DatabaseError` for another program's database, before anything in it is changed."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if tables and not tables >= {"meta", "audit", "calls"}:
        raise sqlite3.DatabaseError("it is the database of another program")
