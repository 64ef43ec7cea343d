"""A read-only view of a store that nodes may be writing.

Lists and filters of calls use an index in a file beside the store, built from the audit; see `call_index`.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from comity.core.handoff.machine import Handoff, State
from comity.core.journal.audit import Row
from comity.core.journal.records import PAUSED_AT, RUNS_ON, Document, StoredCall, StoredSession
from comity.core.reading import AuditFilter, Bucket, CallFilter, CallRow, Page, Traffic, read_cursor, write_cursor
from comity.core.reading.page import ROWS_DEFAULT
from comity.core.session import parts
from comity.core.session.session import Session
from comity.engines.cipher import TRIED_MAX
from comity.engines.sqlite import audit_rows
from comity.engines.sqlite import handoff_rows as handoff_tables
from comity.engines.sqlite import liveness as presence
from comity.engines.sqlite.audit_rows import read_root_rows, read_rows
from comity.engines.sqlite.call_index import CallIndex
from comity.engines.sqlite.call_parts import AuditParts
from comity.engines.sqlite.connecting import connect_anywhere
from comity.engines.sqlite.files import database_files
from comity.engines.sqlite.judging import read_call
from comity.engines.sqlite.spans.path import spans_path
from comity.engines.sqlite.tables import calls_of_session, read_session
from comity.engines.sqlite.turns import sync_log
from comity.errors import UnavailableError

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

SEPARATOR: Final = "\x1f"  # between tenant and session in the key of a document
# Short ids are resolved among this many of the newest audit rows.
RECENT_ROWS: Final = 20_000
_SCANNED_ROWS: Final = 2_000  # audit rows read at a time
_SCANNED_MAX: Final = 200_000  # audit rows scanned for one page
CATCH_UP_CHUNKS: Final = 2  # chunks of the audit indexed by one `catch_up`
_One = TypeVar("_One")
_Raw = TypeVar("_Raw")


def index_path(store: Path) -> Path:
    """Return the path of a store's call index."""
    return store.with_name(f"{store.name}.index")


def _with_use(stored: tuple[int, StoredSession]) -> Session:
    """Return a session with its last use, as the store knows it."""
    used_at, (_, head, rows) = stored
    session, _ = parts.read(head, rows)
    return msgspec.structs.replace(session, used_at=max(session.used_at, used_at))


class StoreReader:
    """A read-only view of one store file. Used from one thread at a time."""

    is_aside = True  # reading waits for a disk, so it is done in another thread than the event loop's

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unreadable: dict[str, str] = {}  # unreadable items that were skipped, and why
        self._connection: sqlite3.Connection
        self._index: CallIndex | None = None
        with self._reading():
            self._connection = connect_anywhere(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the files."""
        self._connection.close()
        if self._index is not None:
            self._index.close()

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection, for code that needs other queries."""
        return self._connection

    def measured(self, measure: Callable[..., _One], now_ms: int) -> _One:
        """Return the result of `measure` for this store and its spans."""
        with self._reading():
            return measure(self.path, self._connection, spans_path(self.path), now_ms)

    def head_id(self) -> int:
        """Return the id of the newest audit row; 0 if there is none."""
        with self._reading():
            (found,) = self._connection.execute("SELECT max(id) FROM audit").fetchone()
        return int(found or 0)

    def row_count(self) -> int:
        """Return how many audit rows there are; none is missing between the first and the last."""
        with self._reading():
            (first,) = self._connection.execute("SELECT min(id) FROM audit").fetchone()
        return 0 if first is None else self.head_id() - int(first) + 1

    def rows(self, *, root_id: str, request_id: str | None = None, kind: str | None = None) -> list[Row]:
        """Return the audit rows of one call tree, in order; only those of one call, or of one kind, if it is given."""
        with self._reading():
            return read_rows(self._connection, root_id=root_id, request_id=request_id, kind=kind)

    def newest_rows(self, limit: int) -> list[Row]:
        """Return the newest audit rows, oldest of them first."""
        with self._reading():
            return read_rows(self._connection, after_id=max(self.head_id() - limit, 0), limit=limit)

    def ran_on(self, newest: int) -> list[Row]:
        """Return the newest audit rows about code that kept running after its call had ended."""
        note = RUNS_ON.encode()
        with self._reading():
            query = "SELECT id FROM audit WHERE id > ? AND instr(body, ?)"
            found = self._connection.execute(query, (self.head_id() - newest, note)).fetchall()
            rows = [read_rows(self._connection, after_id=number - 1, limit=1) for (number,) in found]
        return [row for one in rows for row in one if row.note == RUNS_ON]

    def call(self, request_id: str) -> StoredCall | None:
        """Return an accepted call, or None."""
        with self._reading():
            found = read_call(self._connection, request_id)
            if found is not None and found.settled_at is not None:
                sync_log(database_files(self.path)[1])  # a node may have committed this reply without syncing it yet
            return found

    def abandoned(self) -> set[str]:
        """Return the ids of open calls of dead nodes; the next long-running node resumes them."""
        with self._reading():
            owners = [
                name for (name,) in self._connection.execute("SELECT DISTINCT open_at FROM calls WHERE open_at IS NOT NULL")
            ]
            gone = [one for one in owners if one != PAUSED_AT and not presence.looks_held(presence.lock_path(self.path, one))]
            query = f"SELECT request_id FROM calls WHERE open_at IN ({','.join('?' * len(gone))})"  # noqa: S608
            return {str(request_id) for (request_id,) in self._connection.execute(query, gone)}

    def calls_of(self, tenant_id: str, session_id: str) -> list[StoredCall]:
        """Return the calls of a session, without handoffs."""
        with self._reading():
            return calls_of_session(self._connection, tenant_id, session_id)

    def recent_ids(self) -> set[str]:
        """Return the ids of calls in the newest audit rows, as many as short ids are looked for in."""
        with self._reading():
            query = "SELECT DISTINCT request_id FROM audit_rows WHERE id > ?"
            return {str(one) for (one,) in self._connection.execute(query, (self.head_id() - RECENT_ROWS,))}

    def root_of(self, request_id: str) -> str | None:
        """Return the id of the root of the tree a call belongs to; None if the store does not know the call."""
        call = self.call(request_id)
        if call is not None:
            return call.root_id
        with self._reading():  # a refused call is in the audit only, and so is one whose call was removed as too old
            return audit_rows.root_of(self._connection, request_id)

    def handoffs(self, *, states: Collection[State], target: str | None, limit: int) -> list[Handoff]:
        """Return handoffs, newest first."""
        marks = ",".join("?" * len(states))
        lane = ("", ()) if target is None else (" AND lane LIKE '%' || char(31) || ?", (target,))
        return self._handoffs(f"WHERE state IN ({marks}){lane[0]} ORDER BY seq DESC LIMIT ?", *states, *lane[1], limit)

    def handoff(self, handoff_id: str) -> Handoff | None:
        """Return a handoff."""
        with self._reading():
            return handoff_tables.get(self._connection, handoff_id) if handoff_tables.exists(self._connection) else None

    def recent_handoff_ids(self) -> list[str]:
        """Return the ids of the newest handoffs, as many as short ids are looked for in."""
        with self._reading():
            if not handoff_tables.exists(self._connection):
                return []
            query = "SELECT id FROM handoffs ORDER BY seq DESC LIMIT ?"
            return [str(one) for (one,) in self._connection.execute(query, (RECENT_ROWS,))]

    def unreadable_handoffs(self) -> list[str]:
        """Return the ids of handoffs that were set aside because they cannot be read."""
        with self._reading():
            return handoff_tables.set_aside(self._connection) if handoff_tables.exists(self._connection) else []

    def handoffs_of(self, tenant_id: str, session_id: str) -> list[Handoff]:
        """Return the handoffs of a session."""
        return self._handoffs("WHERE tenant_id = ? AND session_id = ? ORDER BY seq", tenant_id, session_id)

    def _handoffs(self, rest: str, *values: object) -> list[Handoff]:
        with self._reading():
            return handoff_tables.read(self._connection, rest, values) if handoff_tables.exists(self._connection) else []

    def sessions(self, limit: int | None = None) -> list[Session]:
        """Return users' own sessions, latest use first, without those for results of handoffs."""
        found: list[Session] = []
        page, skipped = -1 if limit is None else limit, 0
        while True:
            rest = "INDEXED BY documents_used WHERE kind = 'session' ORDER BY used_at DESC LIMIT ? OFFSET ?"
            some, seen = self._sessions(rest, page, skipped)
            found += [one for one in some if one.id.isprintable()]
            skipped += seen
            if limit is None or seen < page or len(found) >= limit:
                return found[:limit]

    def session_count(self) -> int:
        """Return the number of stored sessions of every kind."""
        with self._reading():
            (count,) = self._connection.execute(
                "SELECT count(*) FROM documents INDEXED BY documents_used WHERE kind = 'session'"
            ).fetchone()
        return int(count)

    def session(self, tenant_id: str, session_id: str) -> Session | None:
        """Return a session with its last use."""
        return next(iter(self._sessions("WHERE kind = 'session' AND key = ?", f"{tenant_id}{SEPARATOR}{session_id}")[0]), None)

    def vaults(self) -> list[tuple[str, bytes]]:
        """Return the first stored vaults, encrypted, to test a key on."""
        return self._documents(Document.VAULT, "ORDER BY key LIMIT ?", TRIED_MAX)

    def _sessions(self, rest: str, *values: object) -> tuple[list[Session], int]:
        """Return the sessions that a query finds and can be read, and how many it found."""
        query = f"SELECT key, used_at FROM documents {rest}"  # noqa: S608
        with self._reading():
            found = self._connection.execute(query, values).fetchall()
        return self._whole([(key, used_at or 0) for key, used_at in found]), len(found)

    def _whole(self, found: list[tuple[str, int]]) -> list[Session]:
        """Return the sessions under some keys that can be read, each with its last use."""
        stored = []
        with self._reading():
            for key, used_at in found:
                if (one := read_session(self._connection, key)) is not None:
                    stored.append((key, (used_at, one)))
        read = self._readable("session", _with_use, stored)
        return [one for _, one in read]

    def remembered(self) -> list[tuple[str, bytes]]:
        """Return the first stored memories, encrypted, to test a key on."""
        return self._documents(Document.MEMORY, "ORDER BY key LIMIT ?", TRIED_MAX)

    def _readable(self, what: str, decode: Callable[[_Raw], _One], found: list[tuple[str, _Raw]]) -> list[tuple[str, _One]]:
        read = []
        for key, data in found:
            try:
                read.append((key, decode(data)))
            except (msgspec.MsgspecError, ValueError) as error:
                self.unreadable[f"{what} {key.rpartition(SEPARATOR)[2]}"] = str(error)
        return read

    def _documents(self, kind: Document, rest: str = "", *values: object) -> list[tuple[str, bytes]]:
        query = f"SELECT key, data FROM documents WHERE kind = ? {rest}"  # noqa: S608
        with self._reading():
            found = self._connection.execute(query, (kind.value, *values)).fetchall()
        return [(str(key), bytes(data)) for key, data in found]

    # --- pages ---

    def calls_page(self, wanted: CallFilter, cursor: str | None = None, limit: int = ROWS_DEFAULT) -> Page[CallRow]:
        """Return the calls that a filter lets pass, newest first. While the index is made a page may hold less."""
        index = self._near()
        return self._parts().page(wanted, cursor, limit) if index is None else index.calls(wanted, cursor, limit)

    def call_row(self, request_id: str) -> CallRow | None:
        """Return one call as it is listed."""
        return next(iter(self.call_rows([request_id])), None)

    def call_rows(self, request_ids: Iterable[str]) -> list[CallRow]:
        """Return calls as they are listed, in the order of their ids; an unknown call is left out."""
        request_ids = list(request_ids)
        if not request_ids:  # a live page asks ten times a second
            return []
        index = self._near()
        if index is None:
            return self._parts().calls(request_ids)
        return [found for one in request_ids if (found := index.call(one)) is not None]

    def tree(self, root_id: str, limit: int) -> list[CallRow]:
        """Return a call and everything below it, in the order in which they began."""
        index = self._near()
        return self._parts().tree(root_id, limit) if index is None else index.tree(root_id, limit)

    def histogram(self, wanted: CallFilter, since: int | None, until: int, buckets: int) -> list[Bucket]:
        """Return how many calls of each status began in each span; of the newest calls while the index is made."""
        index = self._near()
        with self._parts().newest() if index is None else contextlib.nullcontext(index) as calls:
            return calls.histogram(wanted, since, until, buckets)

    def traffic(self, since: int, tenant_id: str | None) -> Traffic:
        """Return which agent called which since a time, and how often calls were refused, of the newest calls."""
        index = self._near()
        with self._parts().newest() if index is None else contextlib.nullcontext(index) as calls:
            return calls.traffic(since, tenant_id)

    def catch_up(self) -> bool:
        """Index a bounded part of the audit; return whether the index is complete."""
        with self._reading():
            index, first_id = self._opened_index(), self._first_id()
            if index.is_near(self.head_id()):
                return index.catch_up(self.rows_after, first_id)
            return index.catch_up(self.rows_after, first_id, CATCH_UP_CHUNKS)

    @property
    def is_whole(self) -> bool:
        """Whether lists and counts cover all calls; while the index is built, only the newest."""
        return self._near() is not None

    def _near(self) -> CallIndex | None:
        """Return the call index with all commits; None while too much of the audit is missing in it."""
        with self._reading():
            index = self._opened_index()
            if not index.is_near(self.head_id()):
                return None
            index.catch_up(self.rows_after, self._first_id())
            return index

    def _opened_index(self) -> CallIndex:
        """Return the call index, which may lag; in memory if its file cannot be created."""
        if self._index is None:
            try:
                self._index = CallIndex(index_path(self.path))
            except (OSError, sqlite3.OperationalError):
                self._index = CallIndex(None)
        return self._index

    def _first_id(self) -> int:
        (first,) = self._connection.execute("SELECT min(id) FROM audit").fetchone()
        return int(first or 1)

    def _parts(self) -> AuditParts:
        return AuditParts(self, self._first_id())

    def rows_after(self, after_id: int, limit: int) -> list[Row]:
        """Return audit rows after an id, in order."""
        with self._reading():
            return read_rows(self._connection, after_id=after_id, limit=limit)

    def root_rows(self, after_id: int, until_id: int) -> list[Row]:
        """Return the audit rows of roots alone, after an id and up to another, in order."""
        with self._reading():
            return read_root_rows(self._connection, after_id, until_id)

    def audit_page(self, wanted: AuditFilter, cursor: str | None = None, limit: int = ROWS_DEFAULT) -> Page[Row]:
        """Return audit rows that a filter lets pass, newest first; of rare ones a page may hold less than it could."""
        high = self.head_id() if cursor is None else int(read_cursor(cursor, int)[0]) - 1
        if wanted.root_id is not None:
            told = self.rows(root_id=wanted.root_id, request_id=wanted.request_id, kind=wanted.kind)
            rows = [row for row in reversed(told) if row.id <= high and wanted.passes(row)]
            return Page(rows[:limit], write_cursor(rows[limit - 1].id) if len(rows) > limit else None)
        found: list[Row] = []
        floor = max(high - _SCANNED_MAX, 0)
        while high > floor and len(found) < limit:
            low = max(high - _SCANNED_ROWS, 0)
            rows = self.rows_after(low, high - low)
            for row in reversed(rows):
                if row.id <= high and wanted.passes(row):
                    found.append(row)
                    if len(found) == limit:
                        low = row.id - 1
                        break
            high = low if rows else 0
        return Page(found, write_cursor(high + 1) if high > 0 else None)

    def sessions_page(
        self, *, tenant_id: str | None = None, user_id: str | None = None, cursor: str | None = None, limit: int = ROWS_DEFAULT
    ) -> Page[Session]:
        """Return sessions, the latest used first."""
        where, values = ["kind = 'session'"], list[Any]()
        if cursor is not None:
            used_at, key = read_cursor(cursor, int, str)
            where.append("(used_at < ? OR (used_at = ? AND key < ?))")
            values += (used_at, used_at, key)
        for value in (tenant_id, user_id):
            if value is not None:
                where.append("instr(data, ?)")
                values.append(msgspec.json.encode(value))
        query = (
            "SELECT key, coalesce(used_at, 0) FROM documents INDEXED BY documents_used "  # noqa: S608
            f"WHERE {' AND '.join(where)} ORDER BY used_at DESC, key DESC LIMIT ?"
        )
        with self._reading():
            rows = self._connection.execute(query, (*values, limit + 1)).fetchall()
        found = [one for one in self._whole(rows[:limit]) if one.id.isprintable()]
        found = [one for one in found if tenant_id in {None, one.tenant_id} and user_id in {None, one.user_id}]
        return Page(found, write_cursor(rows[limit - 1][1], rows[limit - 1][0]) if len(rows) > limit else None)

    def handoffs_page(
        self,
        *,
        states: Collection[State] = tuple(State),
        target: str | None = None,
        tenant_id: str | None = None,
        cursor: str | None = None,
        limit: int = ROWS_DEFAULT,
    ) -> Page[Handoff]:
        """Return handoffs, newest first."""
        where, values = [f"state IN ({','.join('?' * len(states))})"], list[Any](states)
        if target is not None:
            where.append("lane LIKE '%' || char(31) || ?")
            values.append(target)
        if tenant_id is not None:
            where.append("tenant_id = ?")
            values.append(tenant_id)
        if cursor is not None:
            where.append("seq < (SELECT seq FROM handoffs WHERE id = ?)")
            values.append(read_cursor(cursor, str)[0])
        found = self._handoffs(f"WHERE {' AND '.join(where)} ORDER BY seq DESC LIMIT ?", *values, limit + 1)
        return Page(found[:limit], write_cursor(found[limit - 1].id) if len(found) > limit else None)

    # --- inside ---

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, msgspec.MsgspecError, ValueError) as error:
            raise UnavailableError(f"the store {self.path} cannot be read: {error}", code="STORE_UNAVAILABLE") from error
