"""An index of calls for lists and filters, built from the audit in a file beside the store.

The audit has everything that a list shows. The index reads new audit rows in the background and can be rebuilt at any time, so
calls pay nothing for it and a lost file loses nothing. It holds only names that the audit holds.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final

import msgspec

from comity.core.call.limits import WHOLE_MAX
from comity.core.envelope.usage import Cost
from comity.core.journal.audit import Kind, Row
from comity.core.reading import Bucket, CallFilter, CallRow, Edge, Page, Traffic, read_cursor, write_cursor
from comity.core.reading.calls import PAUSED, RUNNING
from comity.engines.sqlite import bulk

VERSION: Final = 2  # 2: cost
CHUNK_ROWS: Final = 2_000  # audit rows indexed per step
NEAR_ROWS: Final = 10_000  # up to this many rows are indexed while a list waits; 15 µs each
_EDGE_ROWS_MAX: Final = 20_000
_REFUSALS_MAX: Final = 1_000
_NEWEST_CALLS: Final = 1_000  # the default time range of a histogram
_SPAN_MS: Final = 60_000  # the range if there are no calls
# Clocks of nodes differ: rows this far from a time's position may still belong to it.
_SLACK_ROWS: Final = 1_000
_TABLES: Final = """
CREATE TABLE meta (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER, last_id INTEGER, last_hash TEXT, first_id INTEGER);
CREATE TABLE calls (
  n INTEGER PRIMARY KEY, request_id TEXT NOT NULL, root_id TEXT NOT NULL, parent_id TEXT, source TEXT, target TEXT NOT NULL,
  agent TEXT NOT NULL, capability TEXT NOT NULL, tenant_id TEXT NOT NULL, user_id TEXT NOT NULL, session_id TEXT NOT NULL,
  status TEXT NOT NULL, code TEXT, created_at INTEGER NOT NULL, settled_at INTEGER, duration_ms REAL, tokens INTEGER, cost TEXT,
  depth INTEGER NOT NULL, is_late INTEGER NOT NULL, note TEXT NOT NULL, is_refusal INTEGER NOT NULL
);
CREATE INDEX by_id ON calls (request_id);
"""
# Indexes for filters. Created after the first fill, which takes half as long then.
_INDEXES: Final = {
    "by_root": "(root_id, n)",
    "by_time": "(created_at, status) WHERE parent_id IS NULL",
    "by_tenant": "(tenant_id, n) WHERE parent_id IS NULL",
    "by_status": "(status, n)",
    "by_agent": "(agent, n)",
    "by_capability": "(capability, n)",
    "by_user": "(user_id, n)",
    "by_session": "(session_id, n)",
    "by_code": "(code, n) WHERE code IS NOT NULL",
}
_COLUMNS: Final = (
    "n, request_id, root_id, parent_id, source, target, agent, capability, tenant_id, user_id, session_id, status, code, "
    "created_at, settled_at, duration_ms, tokens, cost, depth, is_late, note, is_refusal"
)
_INSERT: Final = f"INSERT OR IGNORE INTO calls ({_COLUMNS}) VALUES "  # noqa: S608
_MARKS: Final = f"({','.join('?' * 22)})"
_KNOWN: Final = "SELECT request_id FROM calls WHERE request_id IN (SELECT value FROM json_each(?)) AND NOT is_refusal"
_END: Final = (
    "UPDATE calls SET status = ?, code = ?, settled_at = ?, duration_ms = ?, tokens = ?, cost = ?, "
    "note = CASE WHEN ? <> '' THEN ? ELSE note END WHERE request_id = ? AND NOT is_refusal"
)
_SHOWN: Final = (
    "n, request_id, root_id, parent_id, source, target, capability, tenant_id, user_id, session_id, status, code, created_at, "
    "settled_at, duration_ms, tokens, cost, depth, is_late, note"
)
_STATUS, _CODE, _SETTLED, _TOOK, _TOKENS, _COST, _LATE, _NOTE, _REFUSAL = 11, 12, 14, 15, 16, 17, 19, 20, 21

# Counted by SQLite, without the GIL: reading twenty thousand rows would reacquire it for each, see `bulk`.
_EDGES: Final = (
    "SELECT caller, agent, count(*), sum(status IN ('error', 'timeout')), sum(status = 'refused'), "
    "json_group_array(duration_ms) FROM (SELECT substr(source, 1, instr(source || '/', '/') - 1) AS caller, agent, status, "
    "duration_ms FROM calls{} ORDER BY n DESC LIMIT ?) GROUP BY caller, agent ORDER BY coalesce(caller, ''), agent"
)
_BEGIN: Final = "SELECT min(created_at) FROM (SELECT created_at FROM calls{} ORDER BY n DESC LIMIT ?)"
_REFUSALS: Final = (
    "SELECT coalesce(code, ''), count(*) FROM (SELECT code FROM calls{} ORDER BY n DESC LIMIT ?) GROUP BY code ORDER BY code"
)

_decode_cost = msgspec.json.Decoder(Cost).decode
_decode_times = msgspec.json.Decoder(list[float | None]).decode

# Returns audit rows after an id, in order, at most a given number of them.
Source = Callable[[int, int], list[Row]]


class CallIndex:
    """The calls of one audit, for lists, filters and counts. Used from one thread at a time."""

    def __init__(self, path: Path | None) -> None:
        self._connection = _opened(path)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @property
    def last_id(self) -> int:
        """The id of the newest indexed audit row."""
        (found,) = self._connection.execute("SELECT last_id FROM meta").fetchone()
        return int(found)

    def catch_up(self, source: Source, first_id: int = 1, chunks_max: int | None = None) -> bool:
        """Index new audit rows and drop calls whose rows were removed; return whether the index is complete.

        With `chunks_max`, stop after that many chunks, or after creating one SQL index.
        """
        self._check_same(source)
        if self.last_id == 0:
            for name in _INDEXES:
                self._connection.execute(f"DROP INDEX IF EXISTS {name}")
        chunks = 0
        while True:
            last_id = self.last_id
            rows = source(last_id, CHUNK_ROWS)
            if rows:
                self._take(last_id, rows)
            if len(rows) < CHUNK_ROWS:
                break
            chunks += 1
            if chunks == chunks_max:
                return False
        for name in self._missing():
            self._connection.execute(f"CREATE INDEX IF NOT EXISTS {name} ON calls {_INDEXES[name]}")
            if chunks_max is not None:
                return False
        self._forget(first_id)
        return True

    def is_near(self, head_id: int) -> bool:
        """Return whether so few rows up to `head_id` are missing that a list may wait for them."""
        return head_id - self.last_id <= NEAR_ROWS and (head_id <= NEAR_ROWS or not self._missing())

    def _missing(self) -> list[str]:
        made = {name for (name,) in self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'index'")}
        return [name for name in _INDEXES if name not in made]

    def take_part(self, rows: list[Row]) -> None:
        """Index a part of an audit that need not begin with its first row; for an in-memory index of one query."""
        if rows:
            self._take(self.last_id, rows)

    def _check_same(self, source: Source) -> None:
        """Start over if the audit is another one than was indexed, as after restoring a backup."""
        last_id, last_hash = self._connection.execute("SELECT last_id, last_hash FROM meta").fetchone()
        if last_id == 0:
            return
        found = source(last_id - 1, 1)
        if not found or found[0].id != last_id or found[0].hash != last_hash:
            with self._writing():
                self._connection.execute("DELETE FROM calls")
                self._connection.execute("UPDATE meta SET last_id = 0, last_hash = '', first_id = 1")

    def _take(self, last_id: int, rows: list[Row]) -> None:
        begun: dict[str, list[Any]] = {}
        refused: list[list[Any]] = []
        ends: list[tuple[Any, ...]] = []
        for row in rows:
            if row.kind == Kind.REFUSED:
                refused.append(_entry(row, row.status or "refused", is_refusal=1))
            elif row.kind == Kind.ADMITTED:
                begun.setdefault(row.request_id, _entry(row, RUNNING))
            elif row.kind in {Kind.SETTLED, Kind.PAUSED}:
                _end(row, begun, ends)
            elif row.kind == Kind.LATE and (known := begun.get(row.request_id)) is not None:
                known[_LATE] = 1
        late = [(row.request_id,) for row in rows if row.kind == Kind.LATE and row.request_id not in begun]
        noted = [(row.note, row.request_id) for row in rows if row.kind == Kind.NOTED and row.note]
        with self._writing():
            if self.last_id != last_id:  # another process indexed them meanwhile
                return
            many = self._connection.executemany
            many(_END, ends)  # calls already in the table first: other rows of the chunk are later
            known_ids = self._known(begun)
            made = [*(one for request_id, one in begun.items() if request_id not in known_ids), *refused]
            bulk.run(self._connection, _INSERT, _MARKS, "", list(chain.from_iterable(made)))
            many(_END, [_end_of(begun[one]) for one in known_ids if begun[one][_STATUS] != RUNNING])
            many("UPDATE calls SET is_late = 1 WHERE request_id = ? AND NOT is_refusal", late)
            many("UPDATE calls SET note = ? WHERE request_id = ? AND NOT is_refusal", noted)
            self._connection.execute("UPDATE meta SET last_id = ?, last_hash = ?", (rows[-1].id, rows[-1].hash))

    def _known(self, request_ids: Iterable[str]) -> set[str]:
        """Return the ids already in the index: a resumed call is admitted a second time."""
        return {one for (one,) in self._connection.execute(_KNOWN, (bulk.array(list(request_ids)),))}

    def _forget(self, first_id: int) -> None:
        (known,) = self._connection.execute("SELECT first_id FROM meta").fetchone()
        if first_id > known:
            with self._writing():
                self._connection.execute("DELETE FROM calls WHERE n < ? AND status <> ?", (first_id, RUNNING))
                self._connection.execute("UPDATE meta SET first_id = ?", (first_id,))

    # --- reading ---

    def calls(self, wanted: CallFilter, cursor: str | None, limit: int) -> Page[CallRow]:
        """Return the calls that a filter lets pass, newest first."""
        where, values = self._where(wanted)
        if cursor is not None:
            where.append("n < ?")
            values.append(read_cursor(cursor, int)[0])
        query = f"SELECT {_SHOWN} FROM calls{_clause(where)} ORDER BY n DESC LIMIT ?"  # noqa: S608
        rows = [_row(one) for one in self._connection.execute(query, (*values, limit + 1))]
        more = write_cursor(rows[limit - 1].seq) if len(rows) > limit else None
        return Page(rows[:limit], more)

    def call(self, request_id: str) -> CallRow | None:
        """Return one call; if the id was also refused, the call and not the refusal."""
        query = f"SELECT {_SHOWN} FROM calls WHERE request_id = ? ORDER BY is_refusal, n DESC LIMIT 1"  # noqa: S608
        found = self._connection.execute(query, (request_id,)).fetchone()
        return None if found is None else _row(found)

    def tree(self, root_id: str, limit: int) -> list[CallRow]:
        """Return a call and everything below it, in the order in which they began."""
        query = f"SELECT {_SHOWN} FROM calls WHERE root_id = ? ORDER BY n LIMIT ?"  # noqa: S608
        return [_row(one) for one in self._connection.execute(query, (root_id, limit))]

    def histogram(self, wanted: CallFilter, since: int | None, until: int, buckets: int) -> list[Bucket]:
        """Return the number of calls per status in each of `buckets` equal time ranges."""
        if since is None:
            ((oldest,),) = self._counted(_BEGIN, wanted, _NEWEST_CALLS)
            since = until - _SPAN_MS if oldest is None else oldest
        since, until = _kept(since), max(_kept(until), _kept(since) + 1)
        width = max(1, -(-(until - since) // buckets))
        where, values = self._where(wanted)
        where += ["created_at >= ?", "created_at < ?", "n >= ?", "n <= ?"]
        near = (self._place(since) - _SLACK_ROWS, self._place(until) + _SLACK_ROWS)
        query = f"SELECT (created_at - ?) / ? AS place, status, count(*) FROM calls{_clause(where)} GROUP BY place, status"  # noqa: S608
        found: list[dict[str, int]] = [{} for _ in range(buckets)]
        for place, status, count in self._connection.execute(query, (since, width, *values, since, until, *near)):
            if 0 <= place < buckets:
                found[place][status] = count
        return [Bucket(since + index * width, since + (index + 1) * width, counts) for index, counts in enumerate(found)]

    def traffic(self, since: int, tenant_id: str | None) -> Traffic:
        """Return which agent called which since a time, and how often calls were refused, among the newest calls."""
        edges = self._counted(_EDGES, CallFilter(tenant_id=tenant_id, since=since, roots_only=False), _EDGE_ROWS_MAX)
        refused = CallFilter(tenant_id=tenant_id, since=since, roots_only=False, status="refused")
        return Traffic([_edge(*one) for one in edges], dict(self._counted(_REFUSALS, refused, _REFUSALS_MAX)))

    def _counted(self, query: str, wanted: CallFilter, rows_max: int) -> list[tuple[Any, ...]]:
        where, values = self._where(wanted)
        return self._connection.execute(query.format(_clause(where)), (*values, rows_max)).fetchall()

    def _where(self, wanted: CallFilter) -> tuple[list[str], list[Any]]:
        where: list[str] = []
        values: list[Any] = []

        def add(condition: str, *given: Any) -> None:
            where.append(condition)
            values.extend(_kept(one) for one in given)

        if wanted.roots_only:
            add("parent_id IS NULL")
        if wanted.status is not None:
            statuses = wanted.status.split(",")
            add(f"status IN ({','.join('?' * len(statuses))})", *statuses)
        for column, value in (
            ("agent", wanted.agent),
            ("capability", wanted.capability),
            ("user_id", wanted.user_id),
            ("tenant_id", wanted.tenant_id),
            ("session_id", wanted.session_id),
        ):
            if value is not None:
                # Most filters name the tenant, which selects little: the `+` makes SQLite prefer another index.
                is_aside = column == "tenant_id" and any((wanted.status, wanted.agent, wanted.user_id, wanted.session_id))
                add(f"{'+' if is_aside else ''}{column} = ?", value)
        if wanted.code is not None:
            begin = wanted.code.removesuffix("*")
            if begin != wanted.code:
                add("code >= ? AND code < ?", begin, f"{begin}\U0010ffff")
            else:
                add("code = ?", begin)
        if wanted.since is not None:
            add("created_at >= ? AND n >= ?", wanted.since, self._place(wanted.since) - _SLACK_ROWS)
        if wanted.until is not None:
            add("created_at <= ? AND n <= ?", wanted.until, self._place(wanted.until) + _SLACK_ROWS)
        if wanted.duration_ms_min is not None:
            add("duration_ms >= ?", wanted.duration_ms_min)
        if wanted.tokens_min is not None:
            add("tokens >= ?", wanted.tokens_min)
        if wanted.cost_min is not None:
            add("json_extract(cost, '$.amount') >= ?", wanted.cost_min)
        if wanted.text:
            add("(instr(request_id, ?) OR instr(target, ?) OR instr(capability, ?))", *[wanted.text] * 3)
        return where, values

    def _place(self, at_ms: int) -> int:
        """Return the approximate audit id of a time."""
        query = "SELECT n FROM calls WHERE parent_id IS NULL AND created_at >= ? ORDER BY created_at LIMIT 1"
        found = self._connection.execute(query, (_kept(at_ms),)).fetchone()
        return self.last_id + 1 if found is None else int(found[0])

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")


def _opened(path: Path | None) -> sqlite3.Connection:
    """Return a connection to the index; recreate it if its version differs or it is damaged."""
    try:
        return _connected(path)
    except (sqlite3.DatabaseError, TypeError) as error:
        is_locked = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY  # another process is making it
        if path is None or is_locked:
            raise
        for end in ("", "-wal", "-shm"):
            path.with_name(path.name + end).unlink(missing_ok=True)
        return _connected(path)


def _connected(path: Path | None) -> sqlite3.Connection:
    place = ":memory:" if path is None else str(path)
    connection = sqlite3.connect(place, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA busy_timeout = 10000")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")  # it can be rebuilt
        if not _has_tables(connection):  # else opening would wait for the indexing thread
            connection.execute("BEGIN IMMEDIATE")
            if not _has_tables(connection):
                for statement in _TABLES.split(";"):
                    connection.execute(statement)
                connection.execute("INSERT INTO meta VALUES (1, ?, 0, '', 1)", (VERSION,))
            connection.execute("COMMIT")
        (version,) = connection.execute("SELECT version FROM meta").fetchone()
        if version != VERSION:
            raise sqlite3.DatabaseError("the index is of another version")  # noqa: TRY301  handled as a damaged index
    except BaseException:
        connection.close()
        raise
    if path is not None:
        path.chmod(0o600)
    return connection


def _has_tables(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone() is not None


def _entry(row: Row, status: str, is_refusal: int = 0) -> list[Any]:
    is_over = status != RUNNING
    depth = row.chain.count(" ") + 1 if row.chain else 0
    return [
        row.id, row.request_id, row.root_id, row.parent_id, row.origin, row.target, row.target.partition("/")[0],
        row.capability, row.tenant_id, row.user_id, row.session_id, status, row.error_code, row.created_at,
        row.created_at if is_over else None, row.duration_ms, row.tokens, _cost(row), depth, 0, row.note,
        is_refusal,
    ]  # fmt: skip


def _end(row: Row, begun: dict[str, list[Any]], ends: list[tuple[Any, ...]]) -> None:
    """Note the end or pause of a call: in its entry if that is in the same chunk, else as an update of the table."""
    status = PAUSED if row.kind == Kind.PAUSED else row.status or "error"
    settled_at = None if row.kind == Kind.PAUSED else row.created_at
    entry = begun.get(row.request_id)
    if entry is None:
        how = (status, row.error_code, settled_at, row.duration_ms, row.tokens, _cost(row))
        ends.append((*how, row.note, row.note, row.request_id))
        return
    entry[_STATUS], entry[_CODE], entry[_SETTLED] = status, row.error_code, settled_at
    entry[_TOOK], entry[_TOKENS], entry[_COST], entry[_NOTE] = row.duration_ms, row.tokens, _cost(row), row.note or entry[_NOTE]


def _cost(row: Row) -> str | None:
    return None if row.cost is None else msgspec.json.encode(row.cost).decode()


def _end_of(entry: list[Any]) -> tuple[Any, ...]:
    note = entry[_NOTE]
    return entry[_STATUS], entry[_CODE], entry[_SETTLED], entry[_TOOK], entry[_TOKENS], entry[_COST], note, note, entry[1]


def _row(found: tuple[Any, ...]) -> CallRow:
    return CallRow(
        seq=found[0], request_id=found[1], root_id=found[2], parent_id=found[3], source=found[4], target=found[5],
        capability=found[6], tenant_id=found[7], user_id=found[8], session_id=found[9], status=found[10], error_code=found[11],
        created_at=found[12], settled_at=found[13], duration_ms=found[14], tokens=found[15],
        cost=None if found[16] is None else _decode_cost(found[16]), depth=found[17], is_late=bool(found[18]), note=found[19],
    )  # fmt: skip


def _edge(source: str | None, target: str, calls: int, failed: int, refused: int, times: str) -> Edge:
    took = sorted(one for one in _decode_times(times) if one is not None)
    p95 = took[min(len(took) - 1, int(len(took) * 0.95))] if took else 0.0
    return Edge(source, target, calls, failed, refused, p95)


def _kept(value: Any) -> Any:
    """Return the value; clamp an integer to SQLite's range."""
    return max(-WHOLE_MAX, min(WHOLE_MAX, value)) if type(value) is int else value


def _clause(where: list[str]) -> str:
    return f" WHERE {' AND '.join(where)}" if where else ""
