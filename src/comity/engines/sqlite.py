"""The embedded store: SQLite in WAL mode with `synchronous=FULL`, one writer thread, group commit.

The event loop hands records over and goes on; the writer takes whatever has come since its last commit, writes it in one
transaction and reports back once. So a durable write costs a share of an fsync, and the loop never waits for the disk.
Several processes may use one store: the head of the audit chain is read inside the write transaction.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from comity.core.audit import ENTRY_FIELDS, GENESIS, Row, Verdict, row, seal, verify
from comity.core.journal import Accepted, Record, Settled, StateSaved, StoredCall, entry, stored
from comity.errors import UnavailableError
from comity.ports import Then

SCHEMA_VERSION: Final = 1
BUSY_TIMEOUT_MS: Final = 10_000
# How long the writer waits for more to write: while somebody waits for it, and while nobody does.
GATHER_S: Final = 0.002
FLUSH_S: Final = 0.02

# What a row says is stored once, as the very bytes its hash covers; the view shows it field by field.
_FIELDS = ", ".join(f"json_extract(CAST(body AS TEXT), '$[{index}]') AS {name}" for index, name in enumerate(ENTRY_FIELDS))
_PREVIOUS = f"coalesce((SELECT before.hash FROM audit AS before WHERE before.id = audit.id - 1), '{GENESIS}')"
_SCHEMA = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('schema_version', '{SCHEMA_VERSION}'), ('head_id', '0'), ('head_hash', '{GENESIS}');
CREATE TABLE audit (id INTEGER PRIMARY KEY, body BLOB NOT NULL, hash TEXT NOT NULL);
CREATE VIEW audit_rows AS SELECT id, {_FIELDS}, {_PREVIOUS} AS previous_hash, hash FROM audit;
CREATE TABLE calls (request_id TEXT NOT NULL, is_root INTEGER NOT NULL, open_at TEXT, body BLOB NOT NULL);
CREATE UNIQUE INDEX calls_id ON calls (request_id);
CREATE INDEX calls_open ON calls (open_at) WHERE open_at IS NOT NULL;
CREATE TABLE agent_state (address TEXT PRIMARY KEY, version INTEGER NOT NULL, data BLOB NOT NULL) WITHOUT ROWID;
"""
_INSERT_ROWS = "INSERT INTO audit VALUES "
_INSERT_CALLS = "INSERT INTO calls VALUES "
# `open_at` names the node a call is open at. What has settled never changes.
_ON_KNOWN_CALL = (
    " ON CONFLICT (request_id) DO UPDATE SET open_at = excluded.open_at, body = excluded.body WHERE calls.open_at IS NOT NULL"
)
_UPSERT_STATE = (
    "INSERT INTO agent_state VALUES (?, ?, ?) ON CONFLICT (address) DO UPDATE SET "
    "version = excluded.version, data = excluded.data WHERE excluded.version > agent_state.version"
)
_READ_ROWS = f"SELECT id, body, {_PREVIOUS}, hash FROM audit"  # noqa: S608
_ROOT = f"json_extract(CAST(body AS TEXT), '$[{ENTRY_FIELDS.index('root_id')}]')"
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(StoredCall).decode
_CHUNKS: Final = (128, 32, 8, 1)
_Batch = list[tuple[Sequence[Record], Then | None]]


class SqliteJournal:
    """A journal in one file."""

    def __init__(self, path: str | Path, node_id: str) -> None:
        self.path = Path(path)
        self.node_id = node_id
        self._batch: _Batch = []
        self._wake = threading.Condition()
        self._open = 0  # calls accepted and not settled since the journal was opened
        self._is_awaited = False  # somebody waits for what is in the batch
        self._is_closing = False
        self._failure: Exception | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reader: sqlite3.Connection | None = None
        self._lock_file: int | None = None

    # --- opening and closing ---

    def open(self) -> None:
        """Create or check the file and start the writer."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            writer = connect(self.path)
            _prepare(writer)
            self._reader = connect(self.path, read_only=True)
            self._lock_file = _hold_lock(self._lock_path(self.node_id))
        except (sqlite3.Error, OSError) as error:
            raise UnavailableError(f"cannot open the store {self.path}: {error}", code="STORE_UNAVAILABLE") from error
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._write, args=(writer,), name="comity-store", daemon=True)
        self._thread.start()

    async def close(self) -> None:
        """Write what is left, stop the writer, release the file."""
        if self._thread is None:
            return
        with self._wake:
            self._is_closing = True
            self._wake.notify()
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join)
        self._thread = None
        # The writer's last reports were posted to the loop before its thread ended; let them run.
        await asyncio.sleep(0)
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        if self._lock_file is not None:
            with contextlib.suppress(OSError):
                self._lock_path(self.node_id).unlink()
            os.close(self._lock_file)
            self._lock_file = None

    # --- writing ---

    def append(self, records: Sequence[Record], then: Then | None = None) -> None:
        """Hand records to the writer; they stay together in one transaction."""
        if self._failure is not None:
            if then is not None:
                then(self._failure)
            return
        for record in records:
            if type(record) is Accepted:
                self._open += 1
            elif type(record) is Settled:
                self._open -= 1
        self._batch.append((records, then))
        is_first_awaited = then is not None and not self._is_awaited
        if is_first_awaited:
            self._is_awaited = True
        # Few wake-ups for a batch: when it begins, when somebody first waits for it, when there is nothing left to gather.
        if len(self._batch) == 1 or is_first_awaited or (self._is_awaited and self._open <= 0):
            with self._wake:
                self._wake.notify()

    def _write(self, connection: sqlite3.Connection) -> None:
        try:
            while batch := self._gather():
                error = self._commit(connection, batch)
                self._report([then for _, then in batch if then is not None], error)
        finally:
            connection.close()

    def _gather(self) -> _Batch:
        """Wait for records and return them; nothing means that the journal is closing.

        An fsync costs as much as dozens of calls. While calls are under way that may settle any moment, it is worth waiting a
        little for them; once every open call has settled, nothing more can come and there is nothing to wait for.
        """
        with self._wake:
            self._wake.wait_for(lambda: self._batch or self._is_closing)
            self._wake.wait_for(lambda: self._is_awaited or self._is_closing, timeout=FLUSH_S)
            self._wake.wait_for(lambda: self._open <= 0 or self._is_closing, timeout=GATHER_S)
            batch, self._batch = self._batch, []
            self._is_awaited = False
            return batch

    def _commit(self, connection: sqlite3.Connection, batch: _Batch) -> Exception | None:
        if self._failure is not None:
            return self._failure
        try:
            write_batch(connection, [record for records, _ in batch for record in records], self.node_id)
        except (sqlite3.Error, OSError) as error:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            # Fail-stop: after a lost write nothing later may be acknowledged.
            message = f"the store {self.path} could not be written: {error}"
            self._failure = UnavailableError(message, code="STORE_UNAVAILABLE")
        return self._failure

    def _report(self, thens: list[Then], error: Exception | None) -> None:
        if thens and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_call_all, thens, error)

    # --- reading ---

    def call(self, request_id: str) -> StoredCall | None:
        """Return a call by id, as of the last commit."""
        found = self._read("SELECT body FROM calls WHERE request_id = ?", request_id).fetchone()
        return _decode(found[0]) if found else None

    def calls(self, *, limit: int) -> list[StoredCall]:
        """Return calls by users, newest first."""
        found = self._read("SELECT body FROM calls WHERE is_root ORDER BY rowid DESC LIMIT ?", limit)
        return [_decode(body) for (body,) in found]

    def abandoned(self) -> list[StoredCall]:
        """Return open calls whose node holds no lock any more: the system drops the lock of a process that dies."""
        owners = [owner for (owner,) in self._read("SELECT DISTINCT open_at FROM calls WHERE open_at IS NOT NULL")]
        gone = [owner for owner in owners if owner != self.node_id and not _is_locked(self._lock_path(owner))]
        if not gone:
            return []
        query = "UPDATE calls SET open_at = ? WHERE open_at = ? RETURNING body"
        with contextlib.closing(connect(self.path)) as connection:
            connection.execute("BEGIN IMMEDIATE")  # of two nodes that start together, one gets the calls
            taken = [_decode(body) for one in gone for (body,) in connection.execute(query, (self.node_id, one)).fetchall()]
            connection.execute("COMMIT")
        return sorted(taken, key=lambda call: call.created_at)

    def state(self, address: str) -> tuple[int, bytes] | None:
        """Return version and data of an agent's state."""
        row = self._read("SELECT version, data FROM agent_state WHERE address = ?", address).fetchone()
        return (row[0], bytes(row[1])) if row else None

    def rows(self, *, after_id: int = 0, limit: int | None = None, root_id: str | None = None) -> list[Row]:
        """Return audit rows in order."""
        return read_rows(self._connection(), after_id=after_id, limit=limit, root_id=root_id)

    def verify(self) -> Verdict:
        """Check the whole chain against its stored head."""
        return verify_chain(self._connection())

    def _connection(self) -> sqlite3.Connection:
        if self._reader is None:
            raise UnavailableError("the store is closed", code="STORE_UNAVAILABLE")
        return self._reader

    def _read(self, query: str, *arguments: Any) -> sqlite3.Cursor:
        return self._connection().execute(query, arguments)

    def _lock_path(self, node_id: str) -> Path:
        return self.path.with_name(f"{self.path.name}.{node_id}.lock")


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open the file; a reader cannot change it."""
    mode = "ro" if read_only else "rwc"
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False
    )
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    if not read_only:
        connection.execute("PRAGMA journal_mode = WAL")
        # NORMAL loses acknowledged commits when the power fails; FULL does not.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
    return connection


def write_batch(connection: sqlite3.Connection, records: list[Record], node_id: str) -> None:
    """Write records in one transaction, sealing audit entries onto the chain."""
    connection.execute("BEGIN IMMEDIATE")
    head = dict(connection.execute("SELECT key, value FROM meta WHERE key IN ('head_id', 'head_hash')"))
    row_id, head_hash = int(head["head_id"]), head["head_hash"]
    rows: list[tuple[int, bytes, str]] = []
    calls: dict[str, Accepted | Settled] = {}  # most calls settle within the batch that accepts them: one write for both
    states: list[StateSaved] = []
    for record in records:
        if type(record) is StateSaved:
            states.append(record)
            continue
        row_id += 1
        _, body, _, head_hash = seal(row_id, entry(record), head_hash)  # type: ignore[arg-type]
        rows.append((row_id, body, head_hash))
        if type(record) is Settled or type(record) is Accepted:
            calls[record.request.request_id] = record
    _insert(connection, _INSERT_ROWS, "", rows)
    _insert(connection, _INSERT_CALLS, _ON_KNOWN_CALL, [_call_columns(record, node_id) for record in calls.values()])
    connection.executemany(_UPSERT_STATE, [(state.address, state.version, state.data) for state in states])
    if rows:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'head_id'", (str(row_id),))
        connection.execute("UPDATE meta SET value = ? WHERE key = 'head_hash'", (head_hash,))
    connection.execute("COMMIT")


def _insert(connection: sqlite3.Connection, head: str, tail: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows, many to a statement: each run of a statement hands the interpreter lock over and back."""
    begin = 0
    marks = f"({','.join('?' * len(rows[0]))})" if rows else ""
    for size in _CHUNKS:
        while len(rows) - begin >= size:
            values = [value for one in rows[begin : begin + size] for value in one]
            connection.execute(f"{head}{','.join((marks,) * size)}{tail}", values)
            begin += size


def _call_columns(record: Accepted | Settled, node_id: str) -> tuple[str, bool, str | None, bytes]:
    request = record.request
    is_open = type(record) is Accepted
    return request.request_id, request.parent_id is None, node_id if is_open else None, _encode(stored(record, node_id))


def read_rows(
    connection: sqlite3.Connection, *, after_id: int = 0, limit: int | None = None, root_id: str | None = None
) -> list[Row]:
    """Return audit rows in order."""
    arguments = (after_id, root_id, root_id, -1 if limit is None else limit)
    found = connection.execute(f"{_READ_ROWS} WHERE id > ? AND (? IS NULL OR {_ROOT} = ?) ORDER BY id LIMIT ?", arguments)
    return [row(one) for one in found]


def verify_chain(connection: sqlite3.Connection) -> Verdict:
    """Check every row and that the end was not cut off, reading one consistent snapshot."""
    connection.execute("BEGIN")
    try:
        (head,) = connection.execute("SELECT value FROM meta WHERE key = 'head_hash'").fetchone()
        return verify(connection.execute(f"{_READ_ROWS} ORDER BY id"), head=head)
    finally:
        connection.execute("ROLLBACK")


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        has_meta = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone()
        if has_meta is None:
            for statement in filter(str.strip, _SCHEMA.split(";")):
                connection.execute(statement)
        found = connection.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
        if found is None or found[0] != str(SCHEMA_VERSION):
            raise sqlite3.DatabaseError(f"schema version {found and found[0]} is not {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        connection.close()
        raise


def _hold_lock(path: Path) -> int:
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return file


def _is_locked(path: Path) -> bool:
    """Return whether a living node holds the lock; a stale lock file is removed."""
    try:
        file = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        path.unlink(missing_ok=True)
        return False
    finally:
        os.close(file)


def _call_all(thens: list[Then], error: Exception | None) -> None:
    for then in thens:
        then(error)
