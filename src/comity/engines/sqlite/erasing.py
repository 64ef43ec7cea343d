"""Erases sessions and workflow runs from a store, and from its write-ahead log, which still holds deleted rows."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Sequence
from typing import Final

import msgspec

from comity.core.handoff.holder import result_session
from comity.engines.sqlite import bulk
from comity.engines.sqlite import handoff_rows as handoff_tables
from comity.engines.sqlite.call_rows import UNREADABLE, is_of_session

# How long an erasure waits for readers that keep the WAL from being emptied.
ERASE_WAIT_MS: Final = 250
# The key range of `records.part_range`.
_DELETE_PARTS = (
    "DELETE FROM documents WHERE kind = 'part' AND key IN (SELECT part.key FROM json_each(?) AS t CROSS JOIN documents AS part "
    "ON part.kind = 'part' AND part.key >= t.value || char(30) AND part.key < t.value || char(31))"
)
_encode = msgspec.json.Encoder().encode


def erase_session(connection: sqlite3.Connection, tenant_id: str, session_id: str) -> int:
    """Erase a session from the store and the WAL; return the number of records."""
    # In a large store the search is slow, so it runs before the transaction; only rows added since are searched in it.
    (last,) = connection.execute("SELECT coalesce(max(rowid), 0) FROM calls").fetchone()
    calls = _ids_of_session(connection, tenant_id, session_id)
    connection.execute("BEGIN IMMEDIATE")
    calls |= _ids_of_session(connection, tenant_id, session_id, after=last)
    handed_off = handoff_tables.erase(connection, tenant_id, session_id)  # results of handoffs have vaults of their own
    names = [f"{tenant_id}\x1f{one}" for one in (session_id, *map(result_session, handed_off))]
    documents = [(kind, name) for kind in ("session", "use", "vault") for name in names]
    for key, data in connection.execute("SELECT key, data FROM documents WHERE kind = 'approval'"):
        with contextlib.suppress(*UNREADABLE, LookupError, TypeError):  # an unreadable approval belongs to no session
            asked = msgspec.json.decode(data)
            if (asked["tenant_id"], asked["session_id"]) == (tenant_id, session_id):
                documents.append(("approval", key))
    connection.executemany("DELETE FROM calls WHERE request_id = ?", [(one,) for one in sorted(calls)])
    gone = len(calls.union(handed_off))  # a handoff and its call count once
    gone += delete_runs(connection, sorted(calls))
    delete_parts(connection, names)
    gone += connection.executemany("DELETE FROM documents WHERE kind = ? AND key = ?", documents).rowcount
    connection.execute("COMMIT")
    empty_log(connection)
    return gone


def delete_parts(connection: sqlite3.Connection, session_keys: Sequence[str]) -> None:
    """Delete the part rows of sessions."""
    connection.execute(_DELETE_PARTS, (bulk.array(session_keys),))


def delete_runs(connection: sqlite3.Connection, run_ids: Sequence[str]) -> int:
    """Delete workflow runs with their events and signals; return the number of documents."""
    gone = connection.executemany("DELETE FROM documents WHERE kind = 'run' AND key = ?", [(one,) for one in run_ids]).rowcount
    query = "DELETE FROM documents WHERE kind = ? AND key >= ? AND key < ?"  # between \x1f and the character after it
    kinds = ("run_event", "run_signal")
    return gone + connection.executemany(query, [(kind, f"{one}\x1f", f"{one} ") for one in run_ids for kind in kinds]).rowcount


def empty_log(connection: sqlite3.Connection) -> None:
    """Empty the WAL, which still holds deleted rows. Writers wait while this waits for readers."""
    connection.execute(f"PRAGMA busy_timeout = {ERASE_WAIT_MS}")
    (is_busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if is_busy:
        raise sqlite3.OperationalError("it was erased, but a reader keeps a copy in the log: erase it once more")


def _ids_of_session(connection: sqlite3.Connection, tenant_id: str, session_id: str, *, after: int = 0) -> set[str]:
    query = "SELECT request_id, body FROM calls WHERE rowid > ? AND instr(body, ?)"
    found = connection.execute(query, (after, _encode(session_id)))
    return {request_id for request_id, body in found if is_of_session(body, tenant_id, session_id)}
