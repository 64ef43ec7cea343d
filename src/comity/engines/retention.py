"""Removing what a store keeps no longer, a slice at a time.

A slice is one short transaction of a connection of its own, so that the writer of calls never waits long. What is still needed
is looked up once, before the first slice: a tree that has ended by then can get no further call.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from comity.core.handoff_holder import result_session
from comity.core.journal import Document
from comity.core.retention import Keep, Pruned, Retention, Sweep, is_doomed, without_content
from comity.engines import audit_rows, handoff_tables
from comity.engines.call_rows import UNREADABLE, revive

log = logging.getLogger("comity")

# Rows that one slice reads, and about as many it removes.
SLICE_ROWS: Final = 500
# An audit is cut by at least so many rows, or once in this time: each cut adds a row of its own.
CUT_ROWS_LEAST: Final = 1_000
CUT_EVERY_MS: Final = 60 * 60 * 1000
CUT_ROWS: Final = 2_000
_BELOW: Final = (("#", "$"), (".", "/"))  # what a call's tools and calls have in their ids, and the character after it
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_Root = tuple[str, str]  # of a tree: the key of the session that only it had, if there was one, and the id


class Needed:
    """What must stay: the roots of trees under way and the sessions in use. A question that waits keeps its call open."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.roots: set[str] = set()
        self.sessions: set[str] = set()
        open_ = connection.execute("SELECT open_at, body FROM calls WHERE open_at IS NOT NULL")
        for open_at, body in open_:
            with contextlib.suppress(*UNREADABLE):
                call = revive(open_at, body)
                self._need(call.root_id, call.tenant_id, call.session_id)
        if handoff_tables.exists(connection):
            for (body,) in connection.execute("SELECT request FROM handoffs WHERE due_at IS NOT NULL"):
                with contextlib.suppress(*UNREADABLE, KeyError, TypeError):
                    request = _decode(body)
                    root_id = request.get("root_id") or request["request_id"]
                    self._need(root_id, request.get("tenant_id", "default"), request.get("session_id", ""))

    def _need(self, root_id: str, tenant_id: str, session_id: str) -> None:
        self.roots.add(root_id)
        self.sessions.add(f"{tenant_id}\x1f{session_id}")


class Pruner:
    """Removes what a store keeps no longer. It remembers from one sweep to the next how far replies were looked at."""

    def __init__(self, key: bytes | None, *, is_dry: bool = False) -> None:
        self._key = key  # which seals the audit; without it the audit is not cut
        self._is_dry = is_dry
        self._going: set[str] = set()  # of a dry sweep: the roots of trees that would be gone when replies are looked at
        self._bare_to = 0  # the rowid up to which no reply has content
        self._cut_at: int | None = None
        self.problem = ""  # why the audit is not cut

    def sweep(self, connection: sqlite3.Connection, retention: Retention, now_ms: int) -> Sweep:
        """Remove a slice of what is kept no longer with each step; one more step after the last slice ends it."""
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
        query = "SELECT rowid, open_at, body FROM calls WHERE rowid > ? ORDER BY rowid LIMIT ?"
        surplus, before, seen = _surplus(connection, keep), keep.before_ms(now_ms), self._bare_to
        stays = False  # whether something was passed over that may go later
        while rows := connection.execute(query, (seen, SLICE_ROWS)).fetchall():
            bare: list[tuple[bytes, int]] = []
            for rowid, open_at, body in rows:
                seen = rowid
                with contextlib.suppress(*UNREADABLE):
                    call = revive(open_at, body)
                    if call.root_id in self._going:
                        continue
                    if is_doomed(keep, call.settled_at, rowid <= surplus, now_ms) and call.root_id not in needed.roots:
                        if call.reply is not None and (left := without_content(call.reply)) is not None:
                            bare.append((_encode(replace(call, reply=left)), rowid))
                        continue
                    if rowid > surplus and (before is None or call.created_at >= before):
                        rows = []  # all that follow are younger
                        break
                    stays = True
                if not stays:
                    self._bare_to = rowid
            self._write(connection, "UPDATE calls SET body = ? WHERE rowid = ? AND open_at IS NULL", bare)
            yield Pruned(replies=len(bare))
            if not rows:
                return

    def _calls(self, connection: sqlite3.Connection, keep: Keep, needed: Needed, now_ms: int) -> Sweep:
        query = "SELECT rowid, body FROM calls WHERE rowid > ? AND is_root AND open_at IS NULL ORDER BY rowid LIMIT ?"
        surplus, before, seen = _surplus(connection, keep), keep.before_ms(now_ms), 0
        while rows := connection.execute(query, (seen, SLICE_ROWS)).fetchall():
            trees: list[_Root] = []
            for rowid, body in rows:
                seen = rowid
                with contextlib.suppress(*UNREADABLE):
                    call = revive(None, body)
                    if is_doomed(keep, call.settled_at, rowid <= surplus, now_ms):
                        if call.request_id not in needed.roots:
                            own = f"{call.tenant_id}\x1f{call.session_id}" if call.session_id == call.request_id else ""
                            trees.append((own, call.request_id))
                    elif rowid > surplus and (before is None or call.created_at >= before):
                        rows = []
                        break
            if self._is_dry:
                self._going.update(root_id for _, root_id in trees)
            yield from self._remove_trees(connection, trees)
            if not rows:
                return

    def _remove_trees(self, connection: sqlite3.Connection, trees: Sequence[_Root]) -> Sweep:
        batch: list[_Root] = []
        size = 0
        for own_session, root_id in trees:
            below = _count_below(connection, root_id)
            while not self._is_dry and below > SLICE_ROWS:  # a tree that is larger than a slice goes from its leaves
                gone = _remove_below(connection, root_id, SLICE_ROWS)
                below -= gone
                yield Pruned(calls=gone)
                if not gone:
                    break
            batch.append((own_session, root_id))
            size += 1 + below
            if size >= SLICE_ROWS:
                yield self._remove_batch(connection, batch, size)
                batch, size = [], 0
        if batch:
            yield self._remove_batch(connection, batch, size)

    def _remove_batch(self, connection: sqlite3.Connection, batch: list[_Root], size: int) -> Pruned:
        if not self._is_dry:
            with _writing(connection):
                _remove_trees(connection, batch)
        return Pruned(calls=size)

    # --- handoffs ---

    def _handoffs(self, connection: sqlite3.Connection, keep: Keep, needed: Needed, now_ms: int) -> Sweep:
        (newest,) = connection.execute("SELECT coalesce(max(seq), 0) FROM handoffs").fetchone()
        surplus = 0 if keep.count is None else newest - keep.count
        before, seen = keep.before_ms(now_ms), 0
        while found := handoff_tables.read_from(connection, seen, SLICE_ROWS):
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
            if not self._is_dry:
                with _writing(connection):
                    ids = [(handoff_id,) for _, handoff_id in doomed]
                    connection.executemany("DELETE FROM handoffs WHERE id = ? AND due_at IS NULL", ids)
                    _remove_trees(connection, doomed)
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
        while rows := connection.execute(query, (SLICE_ROWS, passed)).fetchall():
            mine = [(key, used_at) for key, used_at in rows if _is_persons(key) and key not in needed.sessions]
            doomed = [
                (key, used_at)
                for number, (key, used_at) in enumerate(mine)
                if is_doomed(keep, used_at or 0, number < surplus, now_ms)
            ]
            gone = [key for key, _ in doomed]
            if not self._is_dry:
                with _writing(connection):
                    gone = [key for key, used_at in doomed if _remove_session(connection, key, used_at)]
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
        end = min(audit_rows.first_rows(connection, needed.roots), default=head + 1) - 1  # not a row of what is under way
        begin, last = begin - 1, begin - 1
        while last < end:
            until = min(last + CUT_ROWS, end)
            found = last
            for row_id, at_ms in audit_rows.times(connection, last, until):
                if not (row_id <= surplus or (before is not None and at_ms < before)):
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
            with _writing(connection):
                audit_rows.cut(connection, last_id, self._key, now_ms)
        except ValueError as error:
            if self.problem != str(error):
                log.error("%s", error)  # noqa: TRY400
            self.problem = str(error)
            return False
        self._cut_at = now_ms
        return True

    def _write(self, connection: sqlite3.Connection, statement: str, values: list[tuple[Any, ...]]) -> None:
        if values and not self._is_dry:
            with _writing(connection):
                connection.executemany(statement, values)


@contextlib.contextmanager
def _writing(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _surplus(connection: sqlite3.Connection, keep: Keep) -> int:
    """Return the rowid up to which there are more calls than are kept. Rowids are given in order, so no row need be counted."""
    if keep.count is None:
        return 0
    (newest,) = connection.execute("SELECT coalesce(max(rowid), 0) FROM calls").fetchone()
    return int(newest) - keep.count


def _count_below(connection: sqlite3.Connection, root_id: str) -> int:
    query = "SELECT count(*) FROM calls WHERE (request_id > ? AND request_id < ?) OR (request_id > ? AND request_id < ?)"
    bounds = [root_id + mark for pair in _BELOW for mark in pair]
    return int(connection.execute(query, bounds).fetchone()[0])


def _remove_below(connection: sqlite3.Connection, root_id: str, most: int) -> int:
    """Remove some calls below one, the last first, and return how many."""
    rows = "SELECT rowid FROM calls WHERE request_id > ? AND request_id < ? ORDER BY request_id DESC LIMIT ?"
    with _writing(connection):
        return sum(
            connection.execute(f"DELETE FROM calls WHERE rowid IN ({rows})", (root_id + first, root_id + last, most)).rowcount  # noqa: S608
            for first, last in _BELOW
        )


def _remove_trees(connection: sqlite3.Connection, trees: Sequence[_Root]) -> None:
    """Remove calls, what is below them, the questions asked in them, and the sessions that only they had."""
    connection.executemany("DELETE FROM calls WHERE request_id = ? AND open_at IS NULL", [(root_id,) for _, root_id in trees])
    below = [(root_id + first, root_id + last) for _, root_id in trees for first, last in _BELOW]
    connection.executemany("DELETE FROM calls WHERE request_id > ? AND request_id < ? AND open_at IS NULL", below)
    if connection.execute("SELECT 1 FROM documents WHERE kind = 'approval'").fetchone() is not None:
        connection.executemany("DELETE FROM documents WHERE kind = 'approval' AND key > ? AND key < ?", below)
    sessions = [(kind.value, own) for own, _ in trees if own for kind in (Document.SESSION, Document.USE, Document.VAULT)]
    connection.executemany("DELETE FROM documents WHERE kind = ? AND key = ?", sessions)


def _is_persons(key: str) -> bool:
    """Return whether a session is one of a user; those that hide results of handoffs go with these."""
    return key.partition("\x1f")[2].isprintable()


def _count_sessions(connection: sqlite3.Connection) -> int:
    found = connection.execute("SELECT key FROM documents INDEXED BY documents_used WHERE kind = 'session'")
    return sum(_is_persons(key) for (key,) in found)


def _remove_session(connection: sqlite3.Connection, key: str, used_at: int | None) -> bool:
    """Remove a session unless it was used since, and return whether it was removed."""
    query = "DELETE FROM documents WHERE kind = 'session' AND key = ? AND used_at IS ?"
    if not connection.execute(query, (key, used_at)).rowcount:
        return False
    connection.execute("DELETE FROM documents WHERE kind IN ('use', 'vault') AND key = ?", (key,))
    return True
