"""Opening a store's file: as its writer, as a reader beside it, or where nothing can be written."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

BUSY_TIMEOUT_MS: Final = 10_000
WAL_BYTES_KEPT: Final = 32 * 1024 * 1024
# NORMAL loses acknowledged commits when the power fails; FULL does not, where fsync does what it says.
SYNCED: Final = ("synchronous = FULL", "fullfsync = ON")
PRAGMAS: Final = (
    "page_size = 8192",  # a batch is some twenty pages: half as many writes as with the smaller ones that are the default
    "journal_mode = WAL",
    *SYNCED,
    # A request is replaced by its reply, a document by its next version: without this, the old bytes would outlive an erasure.
    "secure_delete = ON",
    # The write-ahead log is copied into the main file when it has this many pages, if the writer did not do it before.
    "wal_autocheckpoint = 4000",
    # A statement of many rows keeps what it may have to undo: in memory, not in a file made for each.
    "temp_store = MEMORY",
    # One that a long reader let grow shrinks to this when the reader has gone.
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
    """Let room be given back to the disk while a file is used. Only a file that is still empty can be made so."""
    if not connection.execute("PRAGMA page_count").fetchone()[0]:
        connection.execute(f"PRAGMA {PRAGMAS[0]}")  # the size of a page, which is settled with the first
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")


def uri(path: Path, *, read_only: bool, is_archived: bool) -> str:
    """Return the URI by which SQLite opens a file; an archived file is opened as a file that no process can change."""
    return f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}{'&immutable=1' * is_archived}"


def connect_anywhere(path: Path, connect: Connect = connect) -> sqlite3.Connection:
    """Open a file to read it, be it in use or where nothing can be written."""
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
        # Readers of a live file share one beside it. Where that cannot be made, as in an archive, no process writes either.
        return connect(path, read_only=True, is_archived=True)
    return connection


def patiently(step: Callable[[], object], patience_ms: int) -> None:
    """Try a step again while another process makes the file: SQLite does not wait by itself when the mode changes."""
    give_up = time.monotonic() + patience_ms / 1000
    while True:
        try:
            step()
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > give_up:
                raise
        time.sleep(0.01)


def _check_owner(connection: sqlite3.Connection) -> None:
    """Leave the database of another program as it is: not even its mode may be changed."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if tables and not tables >= {"meta", "audit", "calls"}:
        raise sqlite3.DatabaseError("it is the database of another program")
