"""The tables of the handoff queue in a store file, and the shelf they make within one transaction.

They are added to a store when it first has a handoff. The request of a handoff is written once; how it stands is small and is
written with every change. `due_at` is when somebody has to look at it, and is null once it has ended.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import Struct

from comity.core.envelope import Priority, Reply, Request
from comity.core.handoff import Entry, Handoff, Question, State
from comity.core.handoff_queue import Step, Want, perform
from comity.core.mailbox import TURNS
from comity.engines.bells import Rings, rings_of

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
CREATE INDEX IF NOT EXISTS handoffs_held ON handoffs (holder) WHERE holder != '';
CREATE INDEX IF NOT EXISTS handoffs_trace ON handoffs (result_trace_id);
CREATE INDEX IF NOT EXISTS handoffs_session ON handoffs (tenant_id, session_id);
CREATE TABLE IF NOT EXISTS handoff_bells (node_id TEXT PRIMARY KEY, lanes BLOB NOT NULL) WITHOUT ROWID
"""
_READ: Final = "SELECT lane, request, state, holder, fence, lease_until, result_trace_id, standing, reply FROM handoffs"
_FREE: Final = "state = 'pending' AND holder = ''"
_NUMBERS: Final = {priority: number for number, priority in enumerate(TURNS)}


class _Standing(Struct, frozen=True, array_like=True):
    """What is written with every change and never searched for."""

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


class SqliteShelf:
    """The queue within one transaction."""

    def __init__(self, connection: sqlite3.Connection, gone: Iterable[str] = ()) -> None:
        self._connection = connection
        self._gone = tuple(gone)  # nodes that were found dead

    def get(self, handoff_id: str) -> Handoff | None:
        """Return one."""
        return next(iter(read(self._connection, "WHERE id = ?", (handoff_id,))), None)

    def put(self, before: Handoff | None, after: Handoff) -> None:
        """Keep one as it is now."""
        standing = _encode(
            _Standing(
                after.made_by,
                after.settles,
                after.attempts_max,
                after.receiver,
                after.attempts,
                after.changed_at,
                after.question,
                after.history,
            )
        )
        now: tuple[Any, ...] = (
            after.state.value,
            after.holder,
            after.fence,
            after.lease_until,
            after.due_at,
            after.result_trace_id,
            standing,
            None if after.reply is None else _encode(after.reply),
        )
        if before is not None:
            self._connection.execute(_UPDATE, (*now, after.id))
            return
        request = after.request
        self._connection.execute(
            _INSERT,
            (
                request.request_id,
                after.lane,
                request.capability,
                _NUMBERS[request.priority],
                request.tenant_id,
                request.user_id,
                request.session_id,
                request.trace_id,
                _encode(request),
                *now,
            ),
        )

    def due(self, now_ms: int) -> list[Handoff]:
        """Return those whose time has come, and those of nodes that are gone."""
        found = read(self._connection, "WHERE due_at <= ? ORDER BY due_at", (now_ms,))
        for node_id in self._gone:
            found += read(self._connection, "WHERE holder >= ? AND holder < ?", (f"{node_id}#", f"{node_id}$"))
        return list({handoff.id: handoff for handoff in found}.values())

    def free(self, want: Want, priority: Priority, limit: int) -> list[Handoff]:
        """Return those that wait for such a receiver, oldest first."""
        number = _NUMBERS[priority]
        marks = ",".join("?" * len(want.capabilities))
        mine = f"{_FREE} AND lane = ? AND priority = ?" + (f" AND capability IN ({marks})" if marks else "")
        queries = [(mine, (want.own_lane, number, *want.capabilities))]
        queries += [(f"{_FREE} AND lane = ? AND priority = ?", (lane, number)) for lane in want.lanes]
        execute = self._connection.execute
        found = [
            row
            for condition, values in queries
            for row in execute(f"SELECT seq FROM handoffs WHERE {condition} ORDER BY seq LIMIT ?", (*values, limit))  # noqa: S608
        ]
        return [one for row in sorted(set(found))[:limit] for one in read(self._connection, "WHERE seq = ?", row)]

    def listen(self, node_id: str, lanes: tuple[str, ...]) -> None:
        """Note what a node wants to hear; nothing is the end of listening."""
        if lanes:
            self._connection.execute("INSERT OR REPLACE INTO handoff_bells VALUES (?, ?)", (node_id, _encode(lanes)))
        else:
            self._connection.execute("DELETE FROM handoff_bells WHERE node_id = ?", (node_id,))

    def listeners(self) -> dict[str, tuple[str, ...]]:
        """Return the nodes that want to hear of something."""
        found = self._connection.execute("SELECT node_id, lanes FROM handoff_bells")
        return {node_id: _decode_lanes(lanes) for node_id, lanes in found}


_UPDATE: Final = (
    "UPDATE handoffs SET state = ?, holder = ?, fence = ?, lease_until = ?, due_at = ?, result_trace_id = ?, standing = ?, "
    "reply = ? WHERE id = ?"
)
_INSERT: Final = (
    "INSERT INTO handoffs (id, lane, capability, priority, tenant_id, user_id, session_id, trace_id, request, state, holder, "
    "fence, lease_until, due_at, result_trace_id, standing, reply) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
)


def perform_steps(connection: sqlite3.Connection, records: Iterable[Any], gone: Iterable[str]) -> tuple[list[Any], Rings]:
    """Do the steps among the records; return the records with what the steps add in their place, and who is to hear of it."""
    shelf = SqliteShelf(connection, gone)
    written: list[Any] = []
    touched: list[tuple[Handoff | None, Handoff]] = []
    for record in records:
        if isinstance(record, Step):
            written += perform(shelf, record)
            touched += record.touched
        else:
            written.append(record)
    for node_id in gone:
        shelf.listen(node_id, ())
    return written, rings_of(touched, shelf.listeners()) if touched else {}


def read(connection: sqlite3.Connection, rest: str, values: tuple[Any, ...]) -> list[Handoff]:
    """Return the handoffs that a query finds."""
    return [_revive(*row) for row in connection.execute(f"{_READ} {rest}", values).fetchall()]


def _revive(
    lane: str,
    request: bytes,
    state: str,
    holder: str,
    fence: int,
    lease_until: int,
    result_trace_id: str,
    standing: bytes,
    reply: bytes | None,
) -> Handoff:
    rest = _decode_standing(standing)
    return Handoff(
        request=_decode_request(request),
        lane=lane,
        made_by=rest.made_by,
        settles=rest.settles,
        attempts_max=rest.attempts_max,
        state=State(state),
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


def erase(connection: sqlite3.Connection, tenant_id: str, session_id: str) -> list[str]:
    """Remove the handoffs of a session and return their ids."""
    with contextlib.suppress(sqlite3.OperationalError):
        query = "DELETE FROM handoffs WHERE tenant_id = ? AND session_id = ? RETURNING id"
        return [one for (one,) in connection.execute(query, (tenant_id, session_id)).fetchall()]
    return []
