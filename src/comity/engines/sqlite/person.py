"""What a store file holds of one user, across sessions."""

from __future__ import annotations

import sqlite3

import msgspec

from comity.core.journal.records import Document
from comity.engines.sqlite import handoff_rows as handoff_tables
from comity.engines.sqlite.call_rows import readable
from comity.engines.sqlite.erasing import empty_log

_encode = msgspec.json.Encoder().encode


def sessions_of(connection: sqlite3.Connection, tenant_id: str, user_id: str) -> set[str]:
    """Return the session ids of a user's calls and handoffs, implicit sessions included."""
    query = "SELECT open_at, body FROM calls WHERE instr(body, ?)"
    calls = readable(connection.execute(query, (_encode(user_id),)))
    found = {one.session_id for one in calls if (one.tenant_id, one.user_id) == (tenant_id, user_id)}
    if handoff_tables.exists(connection):
        handed = (one.request for one in handoff_tables.read(connection, "WHERE tenant_id = ?", (tenant_id,)))
        found |= {one.session_id for one in handed if one.user_id == user_id}
    return found


def remove(connection: sqlite3.Connection, kind: Document, key: str) -> bool:
    """Erase a document, from the WAL too; return whether there was one."""
    gone = connection.execute("DELETE FROM documents WHERE kind = ? AND key = ?", (kind.value, key)).rowcount
    empty_log(connection)
    return gone > 0
