"""The tables of the handoff queue in a store file, and the `Shelf` over them within one transaction.

They are created with the first handoff. The request of a handoff is written once; its standing (state and history) is small
and written with every change. `due_at` is the next deadline or lease expiry, null once the handoff has ended. Most handoffs
begin a trace with their own id, so only the others are in the index by trace.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from comity.core.agent.mailbox import TURNS
from comity.core.call.refusal import Refused
from comity.core.envelope.envelope import Reply, Request
from comity.core.handoff.machine import ENDED, Entry, Handoff, Outcome, Question, State
from comity.core.handoff.queue import Step, Want, perform_all
from comity.core.journal.records import HANDED_AT, Accepted, Settled, StoredCall, stored
from comity.engines.sqlite import bulk
from comity.engines.sqlite.wakeups import Rings, rings_of

log = logging.getLogger("comity")

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS handoffs (
  seq INTEGER PRIMARY KEY, id TEXT NOT NULL, lane TEXT NOT NULL, capability TEXT NOT NULL, priority INTEGER NOT NULL,
  tenant_id TEXT NOT NULL, user_id TEXT NOT NULL, session_id TEXT NOT NULL, trace_id TEXT NOT NULL, request BLOB NOT NULL,
  state TEXT NOT NULL, holder TEXT NOT NULL, fence INTEGER NOT NULL, lease_until INTEGER NOT NULL, due_at INTEGER,
  result_trace_id TEXT NOT NULL, standing BLOB NOT NULL, reply BLOB
);
CREATE UNIQUE INDEX IF NOT EXISTS handoffs_id ON handoffs (id);
CREATE INDEX IF NOT EXISTS handoffs_free ON handoffs (lane, priority, seq) WHERE state = 'pending' AND holder = '';
CREATE INDEX IF NOT EXISTS handoffs_due ON handoffs (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS handoffs_trace ON handoffs (result_trace_id) WHERE result_trace_id <> id;
CREATE TABLE IF NOT EXISTS handoff_bells (node_id TEXT PRIMARY KEY, lanes BLOB NOT NULL) WITHOUT ROWID
"""
_STATE: Final = "state, holder, fence, lease_until, result_trace_id, standing, reply"
_READ: Final = f"SELECT id, lane, request, {_STATE} FROM handoffs"  # noqa: S608
_READ_AGAIN: Final = f"SELECT id, {_STATE} FROM handoffs"  # noqa: S608
_READ_TEXTS: Final = (
    "seq, CAST(id AS TEXT), CAST(lane AS TEXT), CAST(request AS TEXT), CAST(state AS TEXT), CAST(holder AS TEXT), fence, "
    "lease_until, CAST(result_trace_id AS TEXT), CAST(standing AS TEXT), CAST(reply AS TEXT)"
)
_READ_MAX: Final = 500
# Cache between transactions: at most this many handoffs, none with a larger request or longer history.
_KNOWN_MAX: Final = 1_024
_KNOWN_BYTES_MAX: Final = 4_096
_KNOWN_ENTRIES_MAX: Final = 3
_FREE: Final = "state = 'pending' AND holder = ''"
_WORDS: Final = {state: str(state) for state in State}
_STATES: Final = {word: state for state, word in _WORDS.items()}
_NUMBERS: Final = {priority: number for number, priority in enumerate(TURNS)}
# The state of a row that a node could not read: it is ignored from then on, and its content stays unchanged.
_UNREADABLE: Final = "unreadable"
_CANNOT: Final = "cannot be read"


class _Standing(Struct, frozen=True, array_like=True):
    """Fields that are written with every change and never searched for."""

    made_by: str
    settles: bool
    attempts_max: int
    receiver: str
    attempts: int
    changed_at: int
    question: Question | None
    history: tuple[Entry, ...]


_encode = msgspec.json.Encoder().encode
_decode_request = msgspec.json.Decoder(Request).decode
_decode_reply = msgspec.json.Decoder(Reply).decode
_decode_standing = msgspec.json.Decoder(_Standing).decode
_decode_lanes = msgspec.json.Decoder(tuple[str, ...]).decode


def prepare(connection: sqlite3.Connection) -> None:
    """Add the tables if they are missing."""
    if exists(connection):
        return
    connection.execute("BEGIN IMMEDIATE")
    for statement in filter(str.strip, _SCHEMA.split(";")):
        connection.execute(statement)
    connection.execute("COMMIT")


def exists(connection: sqlite3.Connection) -> bool:
    """Return whether the store has a queue."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'handoff_bells'").fetchone() is not None


class Memory:
    """A cache of handoffs as of this connection's last write, valid until another connection writes.

    Requests never change, so they stay valid even then.
    """

    __slots__ = ("_version", "former", "known", "listeners")

    def __init__(self) -> None:
        self.known: dict[str, Handoff] = {}
        self.former: dict[str, Handoff] = {}  # stale entries, whose requests are still valid
        self.listeners: dict[str, tuple[str, ...]] | None = None  # node to lanes; None until read
        self._version = -1

    def check(self, connection: sqlite3.Connection) -> None:
        """Invalidate the cache if another connection wrote; call it inside a write transaction, which must store later puts."""
        (version,) = connection.execute("PRAGMA data_version").fetchone()  # changes when another connection has written
        if version != self._version or len(self.known) > _KNOWN_MAX:
            self.former, self.known, self.listeners = self.known, {}, None
            self._version = version


class SqliteShelf:
    """The queue within one transaction."""

    def __init__(self, connection: sqlite3.Connection, gone: Iterable[str], memory: Memory) -> None:
        memory.check(connection)
        self._connection = connection
        self._gone = tuple(gone)  # nodes that were found dead
        self._memory = memory
        self._known = memory.known
        self._former = memory.former
        self._unwritten: dict[str, tuple[Handoff | None, Handoff]] = {}  # the stored version and the new one
        self._passing: list[str] = []  # known in this transaction only

    def prefetch(self, handoff_ids: Iterable[str]) -> list[str]:
        """Read these handoffs in one statement, which is cheaper than one each; return the unreadable ids."""
        unknown = [handoff_id for handoff_id in dict.fromkeys(handoff_ids) if handoff_id not in self._known]
        bad: list[str] = []
        if unknown:
            former = [self._former[handoff_id] for handoff_id in unknown if handoff_id in self._former]
            for one in read_again(self._connection, former, bad):
                self._know(one)
            for one in read_many(self._connection, [one for one in unknown if one not in self._former], bad):
                self._know(one)
        return bad

    def _set_aside(self, bad: list[str]) -> None:
        """Mark unreadable rows, so that queries skip them; they have been logged."""
        aside = "UPDATE handoffs SET state = ?, due_at = NULL WHERE id = ?"
        self._connection.executemany(aside, [(_UNREADABLE, handoff_id) for handoff_id in bad])

    def _know(self, handoff: Handoff) -> str:
        request, history = handoff.request, handoff.history
        handoff_id = request.request_id
        self._known[handoff_id] = handoff
        is_large = len(history) > _KNOWN_ENTRIES_MAX or len(request.body) + len(request.message) > _KNOWN_BYTES_MAX
        if is_large or handoff.state in ENDED:
            self._passing.append(handoff_id)
        return handoff_id

    def close(self) -> None:
        """Write pending changes, and drop handoffs that are not to be cached."""
        self.flush()
        for handoff_id in self._passing:
            self._known.pop(handoff_id, None)

    def get(self, handoff_id: str) -> Handoff | None:
        """Return a handoff that was prefetched or put, or None."""
        return self._known.get(handoff_id)

    def put(self, before: Handoff | None, after: Handoff) -> None:
        """Store the new version of a handoff."""
        handoff_id = self._know(after)
        # Only the last of several changes in a transaction is written, and the request only for a new handoff.
        earlier = self._unwritten.get(handoff_id)
        self._unwritten[handoff_id] = (before if earlier is None else earlier[0], after)

    def flush(self) -> None:
        """Write pending changes: new handoffs, changed ones, and changed trace ids of results."""
        made: list[Any] = []
        changed: list[Any] = []
        moved: list[tuple[str, str]] = []
        for handoff_id, (before, after) in self._unwritten.items():
            if before is None:
                made += _asked(after)
                made += _standing(after)
            else:
                changed.append(handoff_id)
                changed += _standing(after)
                if before.result_trace_id != after.result_trace_id:
                    moved.append((after.result_trace_id, handoff_id))
        bulk.run(self._connection, _INSERT, _MARKS, "", made)
        bulk.run(self._connection, _INSERT, _CHANGE_MARKS, _CHANGED, changed)
        if moved:
            self._connection.executemany("UPDATE handoffs SET result_trace_id = ? WHERE id = ?", moved)
        self._unwritten.clear()

    def due(self, now_ms: int) -> list[Handoff]:
        """Return the handoffs with an expired deadline or lease, and those held by dead nodes."""
        self.flush()
        bad: list[str] = []
        found = read(self._connection, "WHERE due_at <= ? ORDER BY due_at", (now_ms,), bad)
        for node_id in self._gone:
            mine = "WHERE due_at IS NOT NULL AND holder >= ? AND holder < ?"  # `due_at` is null for ended handoffs
            found += read(self._connection, mine, (f"{node_id}#", f"{node_id}$"), bad)
        self._set_aside(bad)
        return list({handoff.id: handoff for handoff in found}.values())

    def free(self, want: Want, limit: int) -> list[Handoff]:
        """Return the free handoffs for a receiver, oldest first, at most `limit` per priority."""
        new = [after for before, after in self._unwritten.values() if before is None and after.is_free and want.matches(after)]
        # Pending new handoffs are younger than all in the table, so only changes of free ones must be flushed first.
        if any(before is not None and (before.is_free or after.is_free) for before, after in self._unwritten.values()):
            self.flush()
            new = []
        marks = ",".join("?" * len(want.capabilities))
        mine = f" AND capability IN ({marks})" if marks else ""
        parts, values = [], list[Any]()
        for number in _NUMBERS.values():
            for lane, condition, more in ((want.own_lane, mine, want.capabilities), *((lane, "", ()) for lane in want.lanes)):
                where = f"WHERE {_FREE} AND lane = ? AND priority = ?{condition} ORDER BY seq LIMIT ?"
                parts.append(f"SELECT * FROM (SELECT seq, id FROM handoffs {where})")  # noqa: S608
                values += (lane, number, *more, limit)
        while True:
            found = self._connection.execute(" UNION ALL ".join(parts), values).fetchall()
            handoff_ids = [handoff_id for _, handoff_id in sorted(set(found))]
            bad = self.prefetch(handoff_ids)
            if not bad:
                return [*(self._known[handoff_id] for handoff_id in handoff_ids), *new]
            self._set_aside(bad)  # and query again: they filled the limit

    def listen(self, node_id: str, lanes: tuple[str, ...]) -> None:
        """Store the lanes that a node subscribes to; none unsubscribes it."""
        self._memory.listeners = None
        if lanes:
            self._connection.execute("INSERT OR REPLACE INTO handoff_bells VALUES (?, ?)", (node_id, _encode(lanes)))
        else:
            self._connection.execute("DELETE FROM handoff_bells WHERE node_id = ?", (node_id,))

    def listeners(self) -> dict[str, tuple[str, ...]]:
        """Return the subscribed lanes by node."""
        if self._memory.listeners is None:
            found = self._connection.execute("SELECT node_id, lanes FROM handoff_bells")
            self._memory.listeners = {node_id: _decode_lanes(lanes) for node_id, lanes in found}
        return self._memory.listeners


_ASKED: Final = "id, lane, capability, priority, tenant_id, user_id, session_id, trace_id, request, result_trace_id"
_STANDS: Final = "state, holder, fence, lease_until, due_at, standing, reply"
_INSERT: Final = f"INSERT INTO handoffs ({_ASKED}, {_STANDS}) VALUES "  # noqa: S608
_MARKS: Final = "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,nullif(?,0),?,nullif(?,''))"
# An upsert by id is faster than an UPDATE with many rows. Setting a column rewrites its index even if the value is equal, so
# only columns that may have changed are set.
_CHANGE_MARKS: Final = "(?,'','',0,'','','','','','',?,?,?,?,nullif(?,0),?,nullif(?,''))"
_CHANGED: Final = f" ON CONFLICT (id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _STANDS.split(', '))}"


def _asked(handoff: Handoff) -> tuple[Any, ...]:
    request = handoff.request
    return (
        request.request_id,
        handoff.lane,
        request.capability,
        _NUMBERS[request.priority],
        request.tenant_id,
        request.user_id,
        request.session_id,
        request.trace_id,
        bytearray(_encode(request)),  # for bytes, sqlite3 would search for an adapter
        handoff.result_trace_id,
    )


def _standing(handoff: Handoff) -> tuple[Any, ...]:
    standing = _Standing(
        handoff.made_by,
        handoff.settles,
        handoff.attempts_max,
        handoff.receiver,
        handoff.attempts,
        handoff.changed_at,
        handoff.question,
        handoff.history,
    )
    reply = handoff.reply
    return (
        _WORDS[handoff.state],
        handoff.holder,
        handoff.fence,
        handoff.lease_until,
        handoff.due_at or 0,
        bytearray(_encode(standing)),
        "" if reply is None else bytearray(_encode(reply)),
    )


def perform_steps(
    connection: sqlite3.Connection, records: Sequence[Any], gone: Iterable[str], memory: Memory
) -> tuple[list[Any], Rings]:
    """Apply the steps among the records; return the records with each step replaced by its records, and whom to notify."""
    shelf = SqliteShelf(connection, gone, memory)
    bad = shelf.prefetch(record.handoff_id for record in records if isinstance(record, Step) and record.handoff_id)
    if bad:
        records = list(_without(records, bad))
    written, touched = perform_all(shelf, records)
    shelf.close()
    for node_id in gone:
        shelf.listen(node_id, ())
    return written, rings_of(touched, shelf.listeners()) if touched else {}


def _without(records: Sequence[Any], bad: list[str]) -> Iterator[Any]:
    """Yield the records without steps on unreadable handoffs."""
    for record in records:
        if isinstance(record, Step) and record.handoff_id in bad:
            record.outcomes = (Outcome(None, Refused("STORE_UNAVAILABLE", f"{record.handoff_id} {_CANNOT}")),)
        else:
            yield record


def get(connection: sqlite3.Connection, handoff_id: str) -> Handoff | None:
    """Return a handoff, or None. Raises `ValueError` if it is unreadable."""
    bad: list[str] = []
    found = read(connection, "WHERE id = ?", (handoff_id,), bad)
    if bad:
        raise ValueError(f"the handoff {handoff_id} {_CANNOT}")
    return found[0] if found else None


def read(connection: sqlite3.Connection, rest: str, values: tuple[Any, ...], bad: list[str] | None = None) -> list[Handoff]:
    """Return the handoffs of a query; skip unreadable ones and add their ids to `bad`."""
    return list(_readable(connection.execute(f"{_READ} {rest}", values).fetchall(), _revive, bad))


def read_from(connection: sqlite3.Connection, after_seq: int, limit: int) -> list[tuple[int, Handoff | None]]:
    """Return handoffs with a greater sequence number, in order, each with its number; None for an unreadable one."""
    query = "SELECT * FROM handoffs WHERE seq > ? ORDER BY seq LIMIT ?"
    found = bulk.read(connection, _READ_TEXTS, query, (after_seq, limit))
    return [(seq, next(_readable([row], _revive, []), None)) for seq, *row in found]


def set_aside(connection: sqlite3.Connection) -> list[str]:
    """Return the ids of handoffs that were marked as unreadable."""
    query = "SELECT CAST(id AS TEXT) FROM handoffs WHERE state = ? ORDER BY seq"
    return [one for (one,) in connection.execute(query, (_UNREADABLE,)).fetchall()]


def read_trace(connection: sqlite3.Connection, trace_id: str) -> list[Handoff]:
    """Return the handoffs whose result is in a trace, oldest first."""
    where = "WHERE (id = ? AND result_trace_id = ?) OR (result_trace_id = ? AND result_trace_id <> id) ORDER BY seq"
    return read(connection, where, (trace_id, trace_id, trace_id))


def read_many(connection: sqlite3.Connection, handoff_ids: Sequence[str], bad: list[str] | None = None) -> list[Handoff]:
    """Return the existing handoffs with these ids."""
    return list(_readable(_rows(connection, _READ, handoff_ids), _revive, bad))


def read_again(connection: sqlite3.Connection, handoffs: Iterable[Handoff], bad: list[str] | None = None) -> list[Handoff]:
    """Return the current versions of these handoffs, without those that are gone; requests are not read again."""
    known = {one.request.request_id: one for one in handoffs}

    def stand(handoff_id: str, *row: Any) -> Handoff:
        return _stand(known[handoff_id].request, known[handoff_id].lane, *row)

    return list(_readable(_rows(connection, _READ_AGAIN, tuple(known)), stand, bad))


def _readable(rows: Iterable[tuple[Any, ...]], revive: Callable[..., Handoff], bad: list[str] | None) -> Iterator[Handoff]:
    """Yield the readable handoffs; log and skip the others."""
    for row in rows:
        try:
            yield revive(*row)
        except (msgspec.DecodeError, ValueError, KeyError, TypeError) as error:
            if bad is None or row[0] not in bad:
                log.error("the handoff %r %s and is passed over: %s", row[0], _CANNOT, error)  # noqa: TRY400
            if bad is not None:
                bad.append(row[0])


def _rows(connection: sqlite3.Connection, query: str, handoff_ids: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    for begin in range(0, len(handoff_ids), _READ_MAX):
        some = handoff_ids[begin : begin + _READ_MAX]
        yield from connection.execute(f"{query} WHERE id IN ({','.join('?' * len(some))})", some).fetchall()


def _revive(handoff_id: str, lane: str, request: bytes | str, *standing: Any) -> Handoff:
    asked = _decode_request(request)
    if asked.request_id != handoff_id:
        raise ValueError(f"what was asked for has the id {asked.request_id!r}")
    return _stand(asked, lane, *standing)


def _stand(
    request: Request,
    lane: str,
    state: str,
    holder: str,
    fence: int,
    lease_until: int,
    result_trace_id: str,
    standing: bytes | str,
    reply: bytes | str | None,
) -> Handoff:
    rest = _decode_standing(standing)
    return Handoff(
        request=request,
        lane=lane,
        made_by=rest.made_by,
        settles=rest.settles,
        attempts_max=rest.attempts_max,
        state=_STATES[state],
        holder=holder,
        receiver=rest.receiver,
        fence=fence,
        lease_until=lease_until,
        attempts=rest.attempts,
        changed_at=rest.changed_at,
        result_trace_id=result_trace_id,
        question=rest.question,
        reply=None if reply is None else _decode_reply(reply),
        history=rest.history,
    )


def read_call(connection: sqlite3.Connection, request_id: str) -> StoredCall | None:
    """Return the stored call of a handoff, or None."""
    found = get(connection, request_id) if exists(connection) else None
    return _as_call(found) if found is not None and found.settles else None


def known(connection: sqlite3.Connection, request_ids: Sequence[str]) -> list[str]:
    """Return which of these ids are those of handoffs."""
    if not exists(connection):
        return []
    query = "SELECT id FROM handoffs WHERE id IN (SELECT value FROM json_each(?))"
    return [found for (found,) in connection.execute(query, (bulk.array(request_ids),))]


def read_calls(connection: sqlite3.Connection, limit: int) -> list[StoredCall]:
    """Return the calls that were handed off, newest first."""
    found = read(connection, "ORDER BY seq DESC LIMIT ?", (limit,)) if exists(connection) else []
    return [_as_call(one) for one in found if one.settles]


def _as_call(handoff: Handoff) -> StoredCall:
    request, reply = handoff.request, handoff.reply
    if reply is None:
        return stored(Accepted(request, request.created_at, HANDED_AT), HANDED_AT)
    return stored(Settled(request, reply, handoff.changed_at), handoff.made_by)


def erase(connection: sqlite3.Connection, tenant_id: str, session_id: str) -> list[str]:
    """Remove the handoffs of a session and return their ids."""
    with contextlib.suppress(sqlite3.OperationalError):
        query = "DELETE FROM handoffs WHERE tenant_id = ? AND session_id = ? RETURNING id"
        return [one for (one,) in connection.execute(query, (tenant_id, session_id)).fetchall()]
    return []
