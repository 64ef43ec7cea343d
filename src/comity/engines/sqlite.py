"""The embedded store: SQLite in WAL mode with `synchronous=FULL`, one writer thread, group commit.

The event loop gathers records and goes on; the writer is handed what has been gathered, writes it in one transaction and
reports back once. So a durable write costs a share of an fsync, and the loop never waits for the disk. What is gathered and who
waits for it belongs to the loop alone; only whole batches and reports cross to the other thread.

Several processes may use one store: the head of the audit chain is read inside the write transaction. Any failure to write is
the end of this journal: after a lost write nothing later may be acknowledged.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

import msgspec

from comity.core.audit import ENTRY_FIELDS, GENESIS, Row, Stored, Verdict, row, seal, verify
from comity.core.journal import (
    PAUSED_AT,
    Accepted,
    Document,
    Paused,
    Record,
    Refused,
    Saved,
    Settled,
    StoredCall,
    entry,
    stored,
)
from comity.engines import presence
from comity.errors import UnavailableError
from comity.ports import Then

log = logging.getLogger("comity")

SCHEMA_VERSION: Final = 1
BUSY_TIMEOUT_MS: Final = 10_000
# How long records are gathered before they are written: while somebody waits for them, and while nobody does.
GATHER_S: Final = 0.002
FLUSH_S: Final = 0.02
WAL_BYTES_KEPT: Final = 32 * 1024 * 1024
PRAGMAS: Final = (
    # A batch fills several pages; larger ones cost fewer system calls. Beyond this, pages that are not full cost more.
    "page_size = 8192",
    "journal_mode = WAL",
    # NORMAL loses acknowledged commits when the power fails; FULL does not, where fsync does what it says.
    "synchronous = FULL",
    "fullfsync = ON",
    # The write-ahead log is copied into the main file when it has this many pages.
    "wal_autocheckpoint = 2000",
    # One that a long reader let grow shrinks to this when the reader has gone.
    f"journal_size_limit = {WAL_BYTES_KEPT}",
)

# What a row says is stored once, as the very bytes its hash covers; the view shows it field by field.
_FIELDS = ", ".join(f"json_extract(CAST(body AS TEXT), '$[{index}]') AS {name}" for index, name in enumerate(ENTRY_FIELDS))
_PREVIOUS = f"coalesce((SELECT before.hash FROM audit AS before WHERE before.id = audit.id - 1), '{GENESIS}')"  # noqa: S608
_SCHEMA = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('schema_version', '{SCHEMA_VERSION}');
CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), id INTEGER NOT NULL, hash TEXT NOT NULL);
INSERT INTO head VALUES (1, 0, '{GENESIS}');
CREATE TABLE audit (id INTEGER PRIMARY KEY, body BLOB NOT NULL, hash TEXT NOT NULL);
CREATE VIEW audit_rows AS SELECT id, {_FIELDS}, {_PREVIOUS} AS previous_hash, hash FROM audit;
CREATE TABLE calls (request_id TEXT NOT NULL, is_root INTEGER NOT NULL, open_at TEXT, body BLOB NOT NULL);
CREATE UNIQUE INDEX calls_id ON calls (request_id);
CREATE INDEX calls_open ON calls (open_at) WHERE open_at IS NOT NULL;
CREATE TABLE documents (
  kind TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (kind, key)
) WITHOUT ROWID;
"""  # noqa: S608
_READ_HEAD = "SELECT id, hash FROM head"
_MOVE_HEAD = "UPDATE head SET id = ?, hash = ?"
_INSERT_ROWS = "INSERT INTO audit VALUES "
_INSERT_CALLS = "INSERT INTO calls VALUES "
# `open_at` names the node a call is open at. What has settled never changes.
_ON_KNOWN_CALL = (
    " ON CONFLICT (request_id) DO UPDATE SET open_at = excluded.open_at, body = excluded.body WHERE calls.open_at IS NOT NULL"
)
_UPSERT_DOCUMENT = (
    "INSERT INTO documents VALUES (?, ?, ?, ?) ON CONFLICT (kind, key) DO UPDATE SET "
    "version = excluded.version, data = excluded.data WHERE excluded.version > documents.version"
)
_READ_ROWS = f"SELECT id, CAST(body AS BLOB), {_PREVIOUS}, hash FROM audit"  # noqa: S608
_ROOT = f"json_extract(CAST(body AS TEXT), '$[{ENTRY_FIELDS.index('root_id')}]')"
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(StoredCall).decode
_CHUNKS: Final = (128, 64, 32, 16, 8, 4, 2, 1)
_Batch = tuple[list[Record], list[Then]]


class SqliteJournal:
    """A journal in one file."""

    def __init__(self, path: str | Path, node_id: str, *, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> None:
        self.path = Path(path)
        self.node_id = node_id
        self.failure: Exception | None = None  # why nothing is accepted any more
        self._busy_timeout_ms = busy_timeout_ms
        self._lock_path = presence.lock_path(self.path, node_id)
        self._lock_file: int | None = None
        self._files: dict[Path, tuple[int, int]] = {}  # what must stay in its place while this journal is open
        self._reader: sqlite3.Connection | None = None
        self._thread: threading.Thread | None = None
        self._batches: SimpleQueue[_Batch | None] = SimpleQueue()
        # The rest belongs to the event loop.
        self._records: list[Record] = []
        self._thens: list[Then] = []
        self._open = 0  # calls that may settle any moment, as far as this journal saw them accepted
        self._is_writing = False  # the writer has a batch and will report
        self._reported_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    # --- opening and closing ---

    def open(self) -> None:
        """Create or check the file and start the writer."""
        with contextlib.ExitStack() as undo:
            try:
                _make_file(self.path)
                writer = undo.enter_context(contextlib.closing(connect(self.path, busy_timeout_ms=self._busy_timeout_ms)))
                _prepare(writer)
                reader = connect(self.path, read_only=True, busy_timeout_ms=self._busy_timeout_ms)
                undo.callback(reader.close)
                lock_file = presence.enter(self._lock_path)
                undo.callback(presence.leave, self._lock_path, lock_file)
                presence.clear(self.path)
                wal = self.path.with_name(f"{self.path.name}-wal")
                self._files = {path: _identity(path) for path in (self.path, wal, self._lock_path)}
            except (sqlite3.Error, OSError) as error:
                raise _unavailable(f"cannot open the store {self.path}: {error}") from error
            undo.pop_all()
        self._reader, self._lock_file = reader, lock_file
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._write, args=(writer,), name="comity-store", daemon=True)
        self._thread.start()

    async def close(self) -> None:
        """Write what is left, stop the writer, release the file."""
        if self._thread is None or self._reader is None:
            return
        if self._records or self._thens:
            self._hand_over()
        self._batches.put(None)
        if self.failure is None:
            self.failure = _unavailable(f"the store {self.path} is closed")
        try:
            await self._ended.wait()
        finally:
            self._thread.join()
            self._thread = None
            self._reader.close()
            self._reader = None
            if self._lock_file is not None:
                presence.leave(self._lock_path, self._lock_file)
                self._lock_file = None

    # --- gathering, in the event loop ---

    def append(self, records: Sequence[Record], then: Then | None = None) -> None:
        """Gather records for the writer; they stay together in one transaction."""
        if self.failure is not None:
            if then is not None:
                then(self.failure)
            return
        self._records += records
        for record in records:
            kind = type(record)
            if kind is Accepted:
                self._open += 1
            elif kind is Settled and self._open:  # calls taken over from another life were never counted
                self._open -= 1
        if then is not None:
            self._thens.append(then)
        if self._is_writing:
            return
        if not self._thens:
            if self._timer is None:
                self._arm(FLUSH_S)
        elif not self._open:
            self._hand_over()
        elif then is not None and len(self._thens) == 1:
            self._arm_gathering()

    def _arm_gathering(self) -> None:
        """Wait a little for calls that may settle any moment: a commit costs as much as dozens of calls.

        Commits keep a distance from each other, so a call that comes alone does not wait and calls that come thick share one.
        """
        self._arm(max(self._reported_at + GATHER_S - self._loop.time(), 0))

    def _arm(self, delay_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(delay_s, self._hand_over)

    def _hand_over(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch = self._records, self._thens
        self._records, self._thens = [], []
        self._is_writing = True
        self._batches.put(batch)

    def _reported(self, thens: list[Then], error: Exception | None) -> None:
        """Tell everybody who waited for a batch, in order; what came meanwhile is the next one."""
        self._is_writing = False
        self._reported_at = self._loop.time()
        if error is not None and error is not self.failure:
            log.error("%s; nothing more is accepted", error)
            self.failure = error
            thens += self._thens
            self._records, self._thens = [], []
        for then in thens:
            try:
                then(error)
            except Exception:  # the task boundary: one listener's fault is not another's
                log.exception("a listener to the store failed")
        if self._is_writing:  # a listener wrote, and handed over
            return
        if self._thens:
            self._arm_gathering() if self._open else self._hand_over()
        elif self._records:
            self._arm(FLUSH_S)

    # --- writing, in the writer's thread ---

    def _write(self, connection: sqlite3.Connection) -> None:
        error: Exception | None = None
        try:
            with contextlib.closing(connection):
                while (batch := self._batches.get()) is not None:
                    records, thens = batch
                    error = error or self._commit(connection, records)
                    self._post(self._reported, thens, error)
        finally:
            self._post(self._ended.set)

    def _commit(self, connection: sqlite3.Connection, records: list[Record]) -> Exception | None:
        try:
            write_batch(connection, records, self.node_id, self._check_files)
        except Exception as error:  # noqa: BLE001  the task boundary: a writer that died silently would leave all waiting
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            return _unavailable(f"the store {self.path} could not be written: {error}")
        return None

    def _check_files(self) -> None:
        """Refuse to commit to a file nobody will find again, or after the lock that keeps other nodes off was removed."""
        for path, identity in self._files.items():
            if _identity(path) != identity:
                raise OSError(f"{path} was replaced")

    def _post(self, callback: Callable[..., None], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody is left to be told
            self._loop.call_soon_threadsafe(callback, *arguments)

    # --- reading ---

    def call(self, request_id: str) -> StoredCall | None:
        """Return a call by id, as of the last commit."""
        with self._reading() as connection:
            found = connection.execute("SELECT open_at, body FROM calls WHERE request_id = ?", (request_id,)).fetchone()
            return _revive(*found) if found else None

    def calls(self, *, limit: int) -> list[StoredCall]:
        """Return calls by users, newest first."""
        with self._reading() as connection:
            query = "SELECT open_at, body FROM calls WHERE is_root ORDER BY rowid DESC LIMIT ?"
            return [_revive(*found) for found in connection.execute(query, (limit,))]

    def abandoned(self) -> list[StoredCall]:
        """Return open calls whose node is gone, and make them this node's own."""
        with self._reading() as connection:
            owners = connection.execute("SELECT DISTINCT open_at FROM calls WHERE open_at IS NOT NULL").fetchall()
            gone = [one for (one,) in owners if one not in {self.node_id, PAUSED_AT} and not self._is_alive(one)]
            if not gone:
                return []
            query = "UPDATE calls SET open_at = ? WHERE open_at = ? RETURNING open_at, body"
            with contextlib.closing(connect(self.path, busy_timeout_ms=self._busy_timeout_ms)) as writer:
                writer.execute("BEGIN IMMEDIATE")  # of two nodes that start together, one gets the calls
                taken = [_revive(*found) for one in gone for found in writer.execute(query, (self.node_id, one)).fetchall()]
                writer.execute("COMMIT")
        return sorted(taken, key=lambda call: call.created_at)

    def take_paused(self, root_id: str) -> list[StoredCall]:
        """Return the open calls of a paused tree and make them this node's own; nothing if another node was first."""
        with contextlib.closing(connect(self.path, busy_timeout_ms=self._busy_timeout_ms)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            found = connection.execute("SELECT open_at, body FROM calls WHERE open_at = ?", (PAUSED_AT,)).fetchall()
            calls = [call for open_at, body in found if (call := _revive(open_at, body)).root_id == root_id]
            connection.executemany(
                "UPDATE calls SET open_at = ? WHERE request_id = ?", [(self.node_id, call.request_id) for call in calls]
            )
            connection.execute("COMMIT")
        return calls

    def load(self, kind: Document, key: str) -> tuple[int, bytes] | None:
        """Return version and data of a document."""
        with self._reading() as connection:
            query = "SELECT version, data FROM documents WHERE kind = ? AND key = ?"
            found = connection.execute(query, (kind.value, key)).fetchone()
        return (found[0], bytes(found[1])) if found else None

    def list_documents(self, kind: Document) -> list[tuple[str, bytes]]:
        """Return every document of a kind with its key, in order of keys."""
        with self._reading() as connection:
            found = connection.execute("SELECT key, data FROM documents WHERE kind = ? ORDER BY key", (kind.value,))
            return [(key, bytes(data)) for key, data in found]

    def erase(self, tenant_id: str, session_id: str) -> int:
        """Remove a session's documents, calls and replies for good; the audit, which holds nothing personal, stays whole."""
        with contextlib.closing(connect(self.path, busy_timeout_ms=self._busy_timeout_ms)) as connection:
            return erase_session(connection, tenant_id, session_id)

    def rows(self, *, after_id: int = 0, limit: int | None = None, root_id: str | None = None) -> list[Row]:
        """Return audit rows in order."""
        with self._reading() as connection:
            return read_rows(connection, after_id=after_id, limit=limit, root_id=root_id)

    def verify(self) -> Verdict:
        """Check the whole chain against its stored head."""
        with self._reading() as connection:
            return verify_chain(connection)

    def _is_alive(self, node_id: str) -> bool:
        return presence.is_held(presence.lock_path(self.path, node_id))

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        if self._reader is None:
            raise _unavailable(f"the store {self.path} is closed")
        try:
            yield self._reader
        except (sqlite3.Error, OSError, msgspec.DecodeError) as error:
            raise _unavailable(f"cannot read the store {self.path}: {error}") from error


def connect(path: Path, *, read_only: bool = False, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> sqlite3.Connection:
    """Open the file; a reader cannot change it."""
    mode = "ro" if read_only else "rwc"
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute(f"PRAGMA busy_timeout = {busy_timeout_ms}")
        if not read_only:
            for pragma in PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


def write_batch(
    connection: sqlite3.Connection, records: list[Record], node_id: str, check: Callable[[], None] | None = None
) -> None:
    """Write records in one transaction, sealing audit entries onto the chain. `check` may still call it off."""
    execute = connection.execute
    execute("BEGIN IMMEDIATE")
    row_id, head_hash = execute(_READ_HEAD).fetchone()
    rows: list[Any] = []  # id, body and hash of each row, one after the other
    calls: dict[
        str, Accepted | Settled | Paused
    ] = {}  # most calls settle within the batch that accepts them: one write for both
    documents: list[tuple[str, str, int, bytes]] = []
    for record in records:
        if type(record) is Saved:
            documents.append((record.kind.value, record.key, record.version, record.data))
            continue
        row_id += 1
        _, body, _, head_hash = seal(row_id, entry(record), head_hash)  # type: ignore[arg-type]
        rows += (row_id, body, head_hash)
        if (call := _outcome(record)) is not None:
            request_id = call.request.request_id
            if type(calls.get(request_id)) is not Settled:
                calls[request_id] = call
    columns = [value for call in calls.values() for value in _columns(call, node_id)]
    _insert(connection, _INSERT_ROWS, "", 3, rows)
    _insert(connection, _INSERT_CALLS, _ON_KNOWN_CALL, 4, columns)
    if documents:
        connection.executemany(_UPSERT_DOCUMENT, documents)
    if rows:
        execute(_MOVE_HEAD, (row_id, head_hash))
    if check is not None:
        check()
    execute("COMMIT")


def _outcome(record: Record) -> Accepted | Settled | Paused | None:
    """Return what a record says about where a call stands, if that is to be found again under its id.

    A refusal of a call that an agent made is: an agent that is resumed must be told what it was told the first time. A user who
    was refused may ask again under the same id.
    """
    if type(record) is Settled or type(record) is Accepted or type(record) is Paused:
        return record
    if type(record) is Refused and record.request.parent_id is not None:
        return Settled(record.request, record.reply, record.at_ms)
    return None


def erase_session(connection: sqlite3.Connection, tenant_id: str, session_id: str) -> int:
    """Remove what a store knows of a session, and overwrite the places where it stood."""
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("BEGIN IMMEDIATE")
    key = f"{tenant_id}\x1f{session_id}"
    gone = connection.execute("DELETE FROM documents WHERE key = ? AND kind IN ('session', 'vault')", (key,)).rowcount
    for request_id, body in connection.execute("SELECT request_id, body FROM calls").fetchall():
        call = _decode(body)
        if (call.tenant_id, call.session_id) == (tenant_id, session_id):
            gone += connection.execute("DELETE FROM calls WHERE request_id = ?", (request_id,)).rowcount
    for approval_id, data in connection.execute("SELECT key, data FROM documents WHERE kind = 'approval'").fetchall():
        asked = msgspec.json.decode(data)
        if (asked["tenant_id"], asked["session_id"]) == (tenant_id, session_id):
            gone += connection.execute("DELETE FROM documents WHERE kind = 'approval' AND key = ?", (approval_id,)).rowcount
    connection.execute("COMMIT")
    # What was deleted still stands in the write-ahead log until it is emptied.
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return gone


def _columns(record: Accepted | Settled | Paused, node_id: str) -> tuple[str, bool, str | None, bytes]:
    request = record.request
    open_at = node_id if type(record) is Accepted else PAUSED_AT if type(record) is Paused else None
    return request.request_id, request.parent_id is None, open_at, _encode(stored(record, node_id))


def _insert(connection: sqlite3.Connection, head: str, tail: str, width: int, values: list[Any]) -> None:
    """Insert rows, many to a statement: each run of a statement hands the interpreter lock over and back."""
    begin = 0
    for size in _CHUNKS:
        while len(values) - begin >= size * width:
            end = begin + size * width
            connection.execute(_insertion(head, tail, width, size), values[begin:end])
            begin = end


@cache
def _insertion(head: str, tail: str, width: int, size: int) -> str:
    marks = f"({','.join('?' * width)})"
    return f"{head}{','.join((marks,) * size)}{tail}"


def _revive(open_at: str | None, body: bytes) -> StoredCall:
    """Return a stored call as it is now: who holds it is in its column, the body says who first did."""
    call = _decode(body)
    return call if open_at is None or open_at == call.node_id else msgspec.structs.replace(call, node_id=open_at)


def read_rows(
    connection: sqlite3.Connection, *, after_id: int = 0, limit: int | None = None, root_id: str | None = None
) -> list[Row]:
    """Return audit rows in order."""
    most = -1 if limit is None else limit
    if root_id is None:
        found = connection.execute(f"{_READ_ROWS} WHERE id > ? ORDER BY id LIMIT ?", (after_id, most))
    else:
        # Most rows are passed over by their bytes alone, which is many times cheaper than parsing them.
        query = f"{_READ_ROWS} WHERE id > ? AND instr(body, ?) AND {_ROOT} = ? ORDER BY id LIMIT ?"
        found = connection.execute(query, (after_id, _encode(root_id), root_id, most))
    return [row(one) for one in found]


def verify_chain(connection: sqlite3.Connection) -> Verdict:
    """Check every row and that the chain ends where its head says, reading one consistent snapshot."""
    connection.execute("BEGIN")
    try:
        head_id, head_hash = connection.execute("SELECT id, CAST(hash AS BLOB) FROM head").fetchone() or (None, b"")
        verdict = verify(_links(connection), head=None if head_id is None else str(head_hash, errors="replace"))
    finally:
        connection.execute("ROLLBACK")
    if verdict.ok and head_id != verdict.rows:
        what = "was removed" if head_id is None else f"is not row {verdict.rows}"
        return Verdict(False, verdict.rows, verdict.rows, f"the recorded end of the chain {what}")
    return verdict


def _links(connection: sqlite3.Connection) -> Iterator[Stored]:
    """Yield the rows as they are, whatever somebody made of them."""
    previous = GENESIS
    query = "SELECT id, CASE typeof(body) WHEN 'blob' THEN body END, CAST(hash AS BLOB) FROM audit ORDER BY id"
    for row_id, body, raw in connection.execute(query):
        sealed = str(raw, errors="replace")
        yield row_id, body, previous, sealed
        previous = sealed


def _make_file(path: Path) -> None:
    """Create the file and its folders if they are missing, such that they survive a loss of power.

    Calls carry what users wrote, so the file is its owner's alone; SQLite gives the files it adds the same mode. A file that
    exists is not touched: closing it here would drop the locks of another journal of this process.
    """
    missing = [folder for folder in path.absolute().parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    for folder in missing:
        file = os.open(folder.parent, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def _prepare(connection: sqlite3.Connection) -> None:
    """Make the tables of a new file, or check that an old one has them."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if not tables:
            for statement in filter(str.strip, _SCHEMA.split(";")):
                connection.execute(statement)
        else:
            _check_schema(connection, tables)
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _check_schema(connection: sqlite3.Connection, tables: set[str]) -> None:
    if not {"meta", "audit", "calls", "documents"} <= tables:
        raise sqlite3.DatabaseError("it is the database of another program")
    (version,) = connection.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone() or (None,)
    if version != str(SCHEMA_VERSION):
        raise sqlite3.DatabaseError(f"its schema is version {version}, this program needs version {SCHEMA_VERSION}")


def _unavailable(message: str) -> UnavailableError:
    return UnavailableError(message, code="STORE_UNAVAILABLE")
