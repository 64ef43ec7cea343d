"""Removes what is past its retention, a slice at a time.

A slice is one short transaction on a separate connection, so the writer never waits long; both take turns by a lock of the
process, since SQLite lets the loser of a race sleep for up to 100 ms at a time. What must stay is looked up once, before the
first slice: a tree that has ended by then gets no further call. The number of statements of a slice does not depend on its
number of rows, see `bulk.py`: a sweep must be faster than a busy node makes calls.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from comity.core.handoff.holder import result_session
from comity.core.journal.records import StoredCall
from comity.core.journal.retention import Keep, Pruned, Retention, Sweep, is_doomed, without_content
from comity.engines.sqlite import audit_rows, bulk, erasing
from comity.engines.sqlite import handoff_rows as handoff_tables
from comity.engines.sqlite.call_rows import UNREADABLE, revive

log = logging.getLogger("comity")

# Rows that one slice reads; fewer where it reads whole bodies.
READ_ROWS: Final = 512
READ_BODIES: Final = 64
# About what one transaction removes, by rows and by bytes. Bytes that are removed are overwritten: 4 MiB of them, or 2,000
# rows, took 20 to 50 ms of work, during which every call waited for its record.
SLICE_ROWS: Final = 128
SLICE_BYTES: Final = 256 * 1024
# An audit is cut by at least this many rows, or once in this time: each cut adds a row of its own.
CUT_ROWS_LEAST: Final = 1_000
CUT_EVERY_MS: Final = 60 * 60 * 1000
CUT_ROWS: Final = 1_000
_BELOW: Final = (("#", "$"), (".", "/"))  # what a call's tools and calls have in their ids, and the character after it
_MARKS: Final = "(SELECT column1 AS first, column2 AS last FROM (VALUES ('#', '$'), ('.', '/')))"
_COUNT_BELOW: Final = (
    "json((SELECT json_array(count(*), coalesce(sum(length(body)), 0)) "  # noqa: S608
    f"FROM {_MARKS} CROSS JOIN calls ON request_id > value || first AND request_id < value || last))"
)
_DELETE_TREES: Final = (
    "DELETE FROM calls WHERE open_at IS NULL AND rowid IN ("  # noqa: S608
    "SELECT calls.rowid FROM json_each(:ids) CROSS JOIN calls ON request_id = value UNION ALL "
    f"SELECT calls.rowid FROM json_each(:ids) CROSS JOIN {_MARKS} CROSS JOIN calls "
    "ON request_id > value || first AND request_id < value || last)"
)
_DELETE_QUESTIONS: Final = (
    "DELETE FROM documents WHERE kind = 'approval' AND key IN ("  # noqa: S608
    f"SELECT asked.key FROM json_each(?) AS t CROSS JOIN {_MARKS} CROSS JOIN documents AS asked "
    "ON asked.kind = 'approval' AND asked.key > t.value || first AND asked.key < t.value || last)"
)
_DELETE_SESSIONS: Final = (
    "DELETE FROM documents WHERE kind IN ('session', 'use', 'vault') AND key IN (SELECT value FROM json_each(?))"
)
_REPLACE_BODIES: Final = (
    "UPDATE calls SET body = CAST(json_extract(t.value, '$[1]') AS BLOB) FROM json_each(?) AS t "
    "WHERE calls.rowid = json_extract(t.value, '$[0]') AND calls.open_at IS NULL"
)


def _said(body: str, *places: str | int) -> str:
    """Return how a statement reads fields of what a column holds, as an array; null if it cannot be read."""
    paths = ", ".join(f"'$.{place}'" if isinstance(place, str) else f"'$[{place}]'" for place in places)
    text = f"CAST({body} AS TEXT)"
    return f"json(CASE WHEN json_valid({text}) THEN json_extract({text}, {paths}) END)"


_PLACES: Final = {name: index for index, name in enumerate(StoredCall.__struct_fields__)}
_NEEDED: Final = ("root_id", "tenant_id", "session_id", "request_id")
_OPEN: Final = _said("body", *(_PLACES[name] for name in _NEEDED))
_HANDED: Final = _said("request", *_NEEDED)


class _Ended(msgspec.Struct, array_like=True):
    """What a sweep reads of a root call."""

    request_id: str
    tenant_id: str
    session_id: str
    created_at: int
    settled_at: int | None


_ENDED: Final = _said("body", *(_PLACES[name] for name in _Ended.__struct_fields__))
_encode = msgspec.json.Encoder().encode
Turn = contextlib.AbstractContextManager[Any]
_Root = tuple[str, str]  # of a tree: the key of the session that only it had, if there was one, and the id
_Measured = tuple[_Root, int]  # and how many bytes its root has


class Needed:
    """What must stay: the roots of open trees and the sessions in use. A pending approval keeps its call open.

    Calls after `newest` came later and are left to the next sweep.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.roots: set[str] = set()
        self.sessions: set[str] = set()
        (self.newest,) = connection.execute("SELECT coalesce(max(rowid), 0) FROM calls").fetchone()
        self._need(bulk.read(connection, _OPEN, "SELECT body FROM calls WHERE open_at IS NOT NULL"))
        # Whether there were approvals and runs: later ones belong to calls that are open now, so no doomed tree has any.
        self.has_questions, self.has_runs = (_has(connection, kind) for kind in ("approval", "run"))
        if handoff_tables.exists(connection):
            self._need(bulk.read(connection, _HANDED, "SELECT request FROM handoffs WHERE due_at IS NOT NULL"))

    def surplus(self, keep: Keep) -> int:
        """Return the rowid up to which there are more calls than are kept: rowids are given in order, so none is counted."""
        return 0 if keep.count is None else int(self.newest) - keep.count

    def _need(self, found: list[Any]) -> None:
        for (told,) in found:
            if told is None:
                continue  # it cannot be read
            root_id, tenant_id, session_id, request_id = told
            self.roots.add(str(root_id or request_id))
            self.sessions.add(f"{tenant_id or 'default'}\x1f{session_id or ''}")


class Pruner:
    """Removes what is past its retention. Between sweeps it remembers up to which row replies were checked."""

    def __init__(self, key: bytes | None, *, turn: Turn | None = None, is_dry: bool = False) -> None:
        self._key = key  # which seals the audit; without it the audit is not cut
        self._turn: Turn = turn or contextlib.nullcontext()  # held during a transaction
        self._is_dry = is_dry
        self._going: set[str] = set()  # of a dry sweep: the roots of trees that would be gone when replies are looked at
        self._bare_to = 0  # the rowid up to which no reply has content
        self._cut_at: int | None = None
        self.problem = ""  # why the audit is not cut

    def sweep(self, connection: sqlite3.Connection, retention: Retention, now_ms: int) -> Sweep:
        """Remove one slice per step; one more step after the last slice ends the sweep."""
        needed = Needed(connection)
        if retention.calls.is_bounded:
            yield from self._calls(connection, retention.calls, needed, now_ms)
        if retention.replies.is_bounded:
            yield from self._replies(connection, retention.replies, needed, now_ms)
        if retention.handoffs.is_bounded and handoff_tables.exists(connection):
            yield from self._handoffs(connection, retention.handoffs, needed, now_ms)
        if retention.sessions.is_bounded:
            yield from self._sessions(connection, retention.sessions, needed, now_ms)
        if retention.audit.is_bounded:
            yield from self._audit(connection, retention.audit, needed, now_ms)

    # --- replies and calls ---

    def _replies(self, connection: sqlite3.Connection, keep: Keep, needed: Needed, now_ms: int) -> Sweep:
        query = "SELECT rowid, open_at, body FROM calls WHERE rowid > ? AND rowid <= ? ORDER BY rowid LIMIT ?"
        columns = "rowid, CAST(open_at AS TEXT), CAST(body AS TEXT)"
        surplus, before, seen = needed.surplus(keep), keep.before_ms(now_ms), self._bare_to
        stays = False  # whether something was passed over that may go later
        while rows := bulk.read(connection, columns, query, (seen, needed.newest, READ_BODIES)):
            bare: list[tuple[int, str]] = []
            for rowid, open_at, body in rows:
                seen = rowid
                with contextlib.suppress(*UNREADABLE):
                    call = revive(open_at, bulk.as_bytes(body))
                    if call.root_id in self._going:
                        continue
                    if is_doomed(keep, call.settled_at, rowid <= surplus, now_ms) and call.root_id not in needed.roots:
                        if call.reply is not None and (left := without_content(call.reply)) is not None:
                            bare.append((rowid, _encode(replace(call, reply=left)).decode()))
                        continue
                    if rowid > surplus and (before is None or call.created_at >= before):
                        rows = []  # all that follow are younger
                        break
                    stays = True
                if not stays:
                    self._bare_to = rowid
            if bare and not self._is_dry:
                with self._writing(connection):
                    connection.execute(_REPLACE_BODIES, (bulk.array(bare),))
            yield Pruned(replies=len(bare))
            if not rows:
                return

    def _calls(self, connection: sqlite3.Connection, keep: Keep, needed: Needed, now_ms: int) -> Sweep:
        query = (
            "SELECT rowid, body FROM calls WHERE rowid > ? AND rowid <= ? "
            "AND is_root AND open_at IS NULL ORDER BY rowid LIMIT ?"
        )
        surplus, before, seen = needed.surplus(keep), keep.before_ms(now_ms), 0
        while rows := bulk.read(connection, f"rowid, length(body), {_ENDED}", query, (seen, needed.newest, READ_ROWS)):
            trees: list[_Measured] = []
            for rowid, size, told in rows:
                seen = rowid
                with contextlib.suppress(*UNREADABLE):
                    call = msgspec.convert(told, _Ended)
                    if is_doomed(keep, call.settled_at, rowid <= surplus, now_ms):
                        if call.request_id not in needed.roots:
                            own = f"{call.tenant_id}\x1f{call.session_id}" if call.session_id == call.request_id else ""
                            trees.append(((own, call.request_id), size))
                    elif rowid > surplus and (before is None or call.created_at >= before):
                        rows = []
                        break
            if self._is_dry:
                self._going.update(root_id for (_, root_id), _ in trees)
            yield from self._remove_trees(connection, trees, needed)
            if not rows:
                return

    def _remove_trees(self, connection: sqlite3.Connection, trees: Sequence[_Measured], needed: Needed) -> Sweep:
        batch: list[_Root] = []
        rows = size = 0
        ids = _ids([root for root, _ in trees])
        counted = bulk.read(connection, _COUNT_BELOW, "SELECT value FROM json_each(?)", (ids,)) if trees else ()
        for (root, root_bytes), ((count, bytes_below),) in zip(trees, counted, strict=True):
            below = count
            while not self._is_dry and below > SLICE_ROWS:  # a tree that is larger than a slice goes from its leaves
                gone = self._remove_below(connection, root[1], SLICE_ROWS)
                below -= gone
                yield Pruned(calls=gone)
                if not gone:
                    break
            batch.append(root)
            rows += 1 + below
            size += root_bytes + bytes_below
            if rows >= SLICE_ROWS or size >= SLICE_BYTES:
                yield self._remove_batch(connection, batch, rows, needed)
                batch, rows, size = [], 0, 0
        if batch:
            yield self._remove_batch(connection, batch, rows, needed)

    def _remove_batch(self, connection: sqlite3.Connection, batch: list[_Root], size: int, needed: Needed) -> Pruned:
        if not self._is_dry:
            with self._writing(connection):
                _remove_trees(connection, batch, needed)
        return Pruned(calls=size)

    def _remove_below(self, connection: sqlite3.Connection, root_id: str, most: int) -> int:
        """Remove some calls below a call, the last first, and return how many."""
        rows = "SELECT rowid FROM calls WHERE request_id > ? AND request_id < ? ORDER BY request_id DESC LIMIT ?"
        query = f"DELETE FROM calls WHERE rowid IN ({rows})"  # noqa: S608
        with self._writing(connection):
            return sum(connection.execute(query, (root_id + first, root_id + last, most)).rowcount for first, last in _BELOW)

    # --- handoffs ---

    def _handoffs(self, connection: sqlite3.Connection, keep: Keep, needed: Needed, now_ms: int) -> Sweep:
        (newest,) = connection.execute("SELECT coalesce(max(seq), 0) FROM handoffs").fetchone()
        surplus = 0 if keep.count is None else newest - keep.count
        before, seen = keep.before_ms(now_ms), 0
        while found := handoff_tables.read_from(connection, seen, READ_BODIES):
            doomed: list[_Root] = []
            for seq, one in found:
                seen = seq
                if one is None:
                    continue
                request = one.request
                if is_doomed(keep, one.changed_at if one.has_ended else None, seq <= surplus, now_ms):
                    if request.root_id not in needed.roots:
                        own = f"{request.tenant_id}\x1f{result_session(request.request_id)}"
                        doomed.append((own, request.request_id))
                elif seq > surplus and (before is None or request.created_at >= before):
                    found = []
                    break
            if doomed and not self._is_dry:
                with self._writing(connection):
                    query = "DELETE FROM handoffs WHERE due_at IS NULL AND id IN (SELECT value FROM json_each(?))"
                    connection.execute(query, (_ids(doomed),))
                    _remove_trees(connection, doomed, needed)
            yield Pruned(handoffs=len(doomed))
            if not found:
                return

    # --- sessions ---

    def _sessions(self, connection: sqlite3.Connection, keep: Keep, needed: Needed, now_ms: int) -> Sweep:
        surplus = 0 if keep.count is None else _count_sessions(connection) - keep.count
        query = (
            "SELECT key, used_at FROM documents INDEXED BY documents_used "
            "WHERE kind = 'session' ORDER BY used_at LIMIT ? OFFSET ?"
        )
        passed = 0
        while rows := bulk.read(connection, "CAST(key AS TEXT), CAST(used_at AS INTEGER)", query, (SLICE_ROWS, passed)):
            mine = [(key, used_at) for key, used_at in rows if _is_persons(key) and key not in needed.sessions]
            doomed = [
                (key, used_at)
                for number, (key, used_at) in enumerate(mine)
                if is_doomed(keep, used_at or 0, number < surplus, now_ms)
            ]
            gone = [key for key, _ in doomed]
            if doomed and not self._is_dry:
                with self._writing(connection):
                    gone = _remove_sessions(connection, doomed)
            surplus -= len(gone)
            passed += len(rows) - (0 if self._is_dry else len(gone))
            yield Pruned(sessions=len(gone), session_keys=tuple(gone))
            if len(doomed) < len(mine):  # they stand in the order of their last use
                return

    # --- the audit ---

    def _audit(self, connection: sqlite3.Connection, keep: Keep, needed: Needed, now_ms: int) -> Sweep:
        before = keep.before_ms(now_ms)
        begin, head = audit_rows.extent(connection)
        surplus = 0 if keep.count is None else head - keep.count
        end = (audit_rows.first_row(connection, needed.roots) or head + 1) - 1  # not a row of what is under way
        begin, last = begin - 1, begin - 1
        while last < end:
            until = min(last + CUT_ROWS, end)
            found = min(max(surplus, last), until)  # that many go by number; the times of the others are looked at
            if before is not None:
                for row_id, at_ms in audit_rows.times(connection, found, until):
                    if at_ms >= before:
                        break
                    found = row_id
            is_far = found == until and until < end
            is_due = found - begin >= CUT_ROWS_LEAST or self._cut_at is None or now_ms - self._cut_at >= CUT_EVERY_MS
            if found > begin and is_due:
                if not self._is_dry and not self._cut(connection, found, now_ms):
                    return
                yield Pruned(audit=found - begin)
                begin = found
            last = found
            if not is_far:
                return

    def _cut(self, connection: sqlite3.Connection, last_id: int, now_ms: int) -> bool:
        if self._key is None:
            self.problem = "the audit is not cut: the key of the store, which seals where it begins, is not here"
            return False
        try:
            sealed = audit_rows.check_cut(connection, last_id, self._key)
            with self._writing(connection):
                audit_rows.cut(connection, sealed, self._key, now_ms)
        except ValueError as error:
            if self.problem != str(error):
                log.error("%s", error)  # noqa: TRY400
            self.problem = str(error)
            return False
        self._cut_at = now_ms
        return True

    @contextlib.contextmanager
    def _writing(self, connection: sqlite3.Connection) -> Iterator[None]:
        with self._turn:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise


def _ids(trees: Sequence[_Root]) -> str:
    return bulk.array([root_id for _, root_id in trees])


def _remove_trees(connection: sqlite3.Connection, trees: Sequence[_Root], needed: Needed) -> None:
    """Remove calls, the calls below them, their approvals, and their implicit sessions.

    All calls of the node wait meanwhile, and for each statement the thread waits for the interpreter: only what is needed runs.
    """
    connection.execute(_DELETE_TREES, {"ids": _ids(trees)})
    if needed.has_questions:
        connection.execute(_DELETE_QUESTIONS, (_ids(trees),))
    if needed.has_runs:
        erasing.delete_runs(connection, [root_id for _, root_id in trees])
    if own := [key for key, _ in trees if key]:
        _delete_sessions(connection, own)


def _has(connection: sqlite3.Connection, kind: str) -> bool:
    return connection.execute("SELECT 1 FROM documents WHERE kind = ? LIMIT 1", (kind,)).fetchone() is not None


def _is_persons(key: str) -> bool:
    """Return whether a session is a user's own; sessions for results of handoffs are removed with those."""
    return key.partition("\x1f")[2].isprintable()


def _count_sessions(connection: sqlite3.Connection) -> int:
    """Return the number of users' own sessions."""
    of_person = "instr(substr(key, instr(key, char(31)) + 1), char(31)) = 0"  # as `_is_persons` says it
    query = f"SELECT count(*) FROM documents INDEXED BY documents_used WHERE kind = 'session' AND {of_person}"  # noqa: S608
    return int(connection.execute(query).fetchone()[0])


def _remove_sessions(connection: sqlite3.Connection, doomed: list[tuple[str, int | None]]) -> list[str]:
    """Remove the sessions that were not used since a time, and return their keys."""
    unused = (
        "SELECT documents.key AS key FROM json_each(?) AS t CROSS JOIN documents ON kind = 'session' "
        "AND documents.key = json_extract(t.value, '$[0]') AND used_at IS json_extract(t.value, '$[1]')"
    )
    gone = [key for (key,) in bulk.read(connection, "key", unused, (bulk.array(doomed),))]
    _delete_sessions(connection, gone)
    return gone


def _delete_sessions(connection: sqlite3.Connection, keys: list[str]) -> None:
    """Remove sessions with all that is kept of them."""
    erasing.delete_parts(connection, keys)
    connection.execute(_DELETE_SESSIONS, (bulk.array(keys),))
