"""The tables of a store file: how it is opened, and what is written to it and read from it, one transaction at a time.

The file is SQLite in WAL mode; `syncing` says when a commit is on the disk. The head of the audit chain is read inside each
write transaction, so any number of processes may write.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

import msgspec

from comity.core.handoff.queue import Step
from comity.core.journal.audit import GENESIS, Pseudonyms, link
from comity.core.journal.records import (
    HANDED_AT,
    PAUSED_AT,
    Accepted,
    Document,
    Record,
    Refused,
    Resumed,
    Saved,
    Settled,
    StoredCall,
    StoredSession,
    entry,
    held_at,
    part_of,
    part_range,
    parties_of,
    stored,
)
from comity.engines.cipher import FRESH_NAMES
from comity.engines.sqlite import audit_rows, bulk
from comity.engines.sqlite.call_rows import readable
from comity.engines.sqlite.judging import STANDINGS, Conditional, Plain, Standing, Written, each, on_terms
from comity.engines.sqlite.schema import Schema
from comity.engines.sqlite.wakeups import Rings

BODY_BYTES_MOST: Final = 512  # initial buffer size, enough for most calls

_FIRST = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), id INTEGER NOT NULL, hash TEXT NOT NULL);
INSERT INTO head VALUES (1, 0, '{GENESIS}');
CREATE TABLE audit (id INTEGER PRIMARY KEY, body BLOB NOT NULL, hash TEXT NOT NULL);
CREATE TABLE calls (request_id TEXT NOT NULL, is_root INTEGER NOT NULL, open_at TEXT, body BLOB NOT NULL);
CREATE UNIQUE INDEX calls_id ON calls (request_id);
CREATE INDEX calls_open ON calls (open_at) WHERE open_at IS NOT NULL;
CREATE TABLE documents (
  kind TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (kind, key)
) WITHOUT ROWID;
"""  # noqa: S608
# When a session was last used, so that the latest can be found and the oldest removed without reading them all.
_SESSION_USE = """
ALTER TABLE documents ADD COLUMN used_at INTEGER;
UPDATE documents SET used_at = max(
  coalesce(CASE WHEN json_valid(CAST(data AS TEXT)) THEN json_extract(CAST(data AS TEXT), '$.used_at') END, 0),
  coalesce((SELECT noted.version FROM documents AS noted WHERE noted.kind = 'use' AND noted.key = documents.key), 0)
) WHERE kind = 'session';
CREATE INDEX documents_used ON documents (used_at) WHERE kind = 'session';
"""
# How to add a version is said in `engines/sqlite/schema.py`.
SCHEMA: Final = Schema(
    what="its schema",
    table="meta",
    read_version="SELECT value FROM meta WHERE key = 'schema_version'",
    write_version="INSERT OR REPLACE INTO meta VALUES ('schema_version', ?)",
    # The third: correlation_id in the audit; the eighth: cost. The sixth: a session is a head and rows; one of before is a
    # head without any. The ninth: turns of a session share rows.
    steps=(_FIRST, audit_rows.CHECKPOINT, (), audit_rows.add_trees, _SESSION_USE, (), audit_rows.TREES_OF_CALLS, (), ()),
    views=(audit_rows.VIEW,),
)
SCHEMA_VERSION: Final = SCHEMA.version
_READ_HEAD = "SELECT id, hash FROM head"
_MOVE_HEAD = "UPDATE head SET id = ?, hash = ?"
_INSERT_ROWS = "INSERT INTO audit VALUES "
_INSERT_CALLS = "INSERT INTO calls VALUES "
# `open_at` names the node a call is open at. What has settled never changes.
_ON_KNOWN_CALL = (
    " ON CONFLICT (request_id) DO UPDATE SET open_at = excluded.open_at, body = excluded.body, "
    "first_id = coalesce(calls.first_id, excluded.first_id), last_id = coalesce(excluded.last_id, calls.last_id) "
    "WHERE calls.open_at IS NOT NULL"
)
_UPSERT_DOCUMENT = (
    "INSERT INTO documents VALUES (?, ?, ?, ?, ?) ON CONFLICT (kind, key) DO UPDATE SET version = excluded.version, "
    "data = excluded.data, used_at = coalesce(max(documents.used_at, excluded.used_at), excluded.used_at) "
    "WHERE excluded.version > documents.version"
)
_READ_SESSION = (
    "SELECT kind, key, version, data FROM documents WHERE kind = 'session' AND key = ? UNION ALL "
    "SELECT kind, key, version, data FROM documents WHERE kind = 'part' AND key >= ? AND key < ?"
)
_READ_DOCUMENT = "SELECT version, data FROM documents WHERE kind = ? AND key = ?"
_REMOVE_PART = "DELETE FROM documents WHERE kind = 'part' AND key = ? AND version < ?"
_NOTE_USE = "UPDATE documents SET used_at = max(coalesce(used_at, 0), ?) WHERE kind = 'session' AND key = ?"
_encoder = msgspec.json.Encoder()
_encode, _encode_into = _encoder.encode, _encoder.encode_into


def prepare(connection: sqlite3.Connection) -> None:
    """Create the tables of a new file, or migrate an old file to the current version."""
    SCHEMA.prepare(connection)


# --- records ---


Perform = Callable[[sqlite3.Connection, Sequence[Written]], tuple[Sequence[Written], Rings]]


def write_batch(
    connection: sqlite3.Connection,
    records: Sequence[Written],
    node_id: str,
    check: Callable[[], None] | None = None,
    perform: Perform | None = None,
    names: Pseudonyms = FRESH_NAMES,
) -> Rings:
    """Write records in one transaction, sealing audit entries onto the chain. `check` may still call it off.

    Steps of the handoff queue are applied first and replaced by their records. Returns the nodes to notify of them.
    """
    execute = connection.execute
    kinds = set(map(type, records))
    is_conditional = Step in kinds or _has_terms(kinds, records)
    ordered = list(each(records)) if is_conditional else records
    # Encoded before the transaction, in which all other processes wait.
    batch = _Batch(node_id, names)
    batch.take(ordered)  # type: ignore[arg-type]
    plain = None
    if is_conditional:
        batch.encode_calls()
        plain = Plain(records)
    execute("BEGIN IMMEDIATE")
    rings: Rings = {}
    if plain is not None and not plain.holds(connection):
        if perform is not None and Step in kinds:
            records, rings = perform(connection, records)
        batch = batch.emptied(ordered)  # type: ignore[arg-type]
        batch.take(on_terms(connection, records, batch.calls, batch.documents))
    places = _insert_rows(connection, batch) if batch.said else ({}, {})
    bulk.run(connection, _INSERT_CALLS, "(?,?,nullif(?,''),?,?,?)", _ON_KNOWN_CALL, batch.columns(*places))
    audit_rows.insert_trees(connection, *places)
    if batch.documents:
        _write_documents(connection, batch.documents.values())
    if check is not None:
        check()
    execute("COMMIT")
    return rings


class _Batch:
    """The content of a transaction: audit entries in order with their trees, calls, and documents."""

    __slots__ = ("_begun", "_bodies", "_encoded", "_names", "_node_id", "calls", "documents", "roots", "said")

    def __init__(self, node_id: str, names: Pseudonyms) -> None:
        self.said: list[bytes] = []
        self.roots: list[str] = []
        # Most calls settle within the batch that accepts them: one write for both.
        self.calls: dict[str, Standing] = {}
        self.documents: dict[tuple[Document, str], Saved] = {}  # of several versions only the last is written
        # Both are keyed by the record's `id()`: terms and the queue may remove records from a batch or add some.
        self._encoded: dict[int, bytes] = {}  # what the audit says
        # How a call is stored, with the call itself: an `id()` belongs to one object only while that object lives.
        self._bodies: dict[int, tuple[Standing, bytearray]] = {}
        self._begun: set[str] = set()  # roots that are accepted in it
        self._node_id = node_id
        self._names = names

    def encode_calls(self) -> None:
        """Encode its calls for the table."""
        self._bodies = {id(call): (call, _body(call, self._node_id)) for call in self.calls.values()}

    def emptied(self, records: Iterable[Record]) -> _Batch:
        """Return an empty batch that reuses the encodings of these records."""
        empty = _Batch(self._node_id, self._names)
        told = (id(one) for one in records if type(one) is not Saved and type(one) is not Resumed)
        empty._encoded = dict(zip(told, self.said, strict=True))
        empty._bodies = self._bodies
        return empty

    def take(self, records: Iterable[Record]) -> None:
        """Add records in their order."""
        names, calls, encoded = self._names, self.calls, self._encoded
        said, roots = self.said.append, self.roots.append
        spoken_of: dict[str, bytes] = {}  # parties by request id, pseudonymized once; a refused request may use another's id
        call: Record | None
        for record in records:
            kind = type(record)
            if kind is Saved:
                keep_newest(self.documents, record)  # type: ignore[arg-type]
                continue
            request = record.request  # type: ignore[union-attr]
            request_id = request.request_id
            if kind is not Resumed:
                line = encoded.get(id(record)) if encoded else None
                if line is None:
                    parties = spoken_of.get(request_id) if kind is not Refused else None
                    if parties is None:
                        parties = parties_of(record, names)  # type: ignore[arg-type]
                        if kind is not Refused:
                            spoken_of[request_id] = parties
                    line = entry(record, names, parties)  # type: ignore[arg-type]
                said(line)
                roots(request.root_id)
            if kind is Accepted or kind is Settled:
                if record.node_id == HANDED_AT:  # type: ignore[union-attr]
                    continue  # the state of a handoff is in the queue
                call = record
                if kind is Accepted and request.parent_id is None:
                    self._begun.add(request_id)
            else:
                call = record if kind in STANDINGS else _told_refusal(record)
            if call is not None and type(calls.get(request_id)) is not Settled:
                calls[request_id] = call  # type: ignore[assignment]

    def columns(self, first: dict[str, int], last: dict[str, int]) -> list[Any]:
        """Return the columns of all calls, one after the other.

        A root that is accepted in this batch takes along where the rows of its tree are: it leaves `first` with that.
        """
        columns: list[Any] = []
        node_id, bodies, begun = self._node_id, self._bodies, self._begun
        for request_id, call in self.calls.items():
            open_at = "" if type(call) is Settled else held_at(call, node_id)
            is_root = 1 if call.request.parent_id is None else 0
            begin = first.pop(request_id, None) if request_id in begun else None
            end = None if begin is None else last[request_id]
            body = bodies[id(call)][1] if id(call) in bodies else _body(call, node_id)
            columns += (request_id, is_root, open_at, body, begin, end)
        return columns


def _insert_rows(connection: sqlite3.Connection, batch: _Batch) -> tuple[dict[str, int], dict[str, int]]:
    """Append the audit entries to the hash chain; return the first and the last row of each tree."""
    row_id, head_hash = connection.execute(_READ_HEAD).fetchone()
    numbers = range(row_id + 1, row_id + 1 + len(batch.roots))
    rows: list[Any] = []  # id, body and hash of each row, one after the other
    for row_id, said in zip(numbers, batch.said, strict=True):
        head_hash = link(row_id, said, head_hash)
        rows += (row_id, bytearray(said), head_hash)  # for bytes, sqlite3 would search for an adapter: slow
    bulk.run(connection, _INSERT_ROWS, "(?,?,?)", "", rows)
    connection.execute(_MOVE_HEAD, (numbers[-1], head_hash))
    return dict(zip(reversed(batch.roots), reversed(numbers), strict=True)), dict(zip(batch.roots, numbers, strict=True))


def _body(call: Standing, node_id: str) -> bytearray:
    body = bytearray(BODY_BYTES_MOST)
    _encode_into(stored(call, node_id), body)
    return body


def _write_documents(connection: sqlite3.Connection, documents: Collection[Saved]) -> None:
    values = [(one.kind.value, one.key, one.version, one.data, one.used_at) for one in documents]
    if gone := [(one.key, one.version) for one in documents if one.kind is Document.PART and not one.data]:
        values = [one for one in values if one[0] != Document.PART.value or one[3]]
        connection.executemany(_REMOVE_PART, gone)
    connection.executemany(_UPSERT_DOCUMENT, values)
    if used := [(one.version, one.key) for one in documents if one.kind is Document.USE]:
        connection.executemany(_NOTE_USE, used)


def _has_terms(kinds: set[type], records: Sequence[Written]) -> bool:
    # Most batches hold neither kind.
    return Conditional in kinds or (Saved in kinds and any(type(one) is Saved and one.token for one in records))


def keep_newest(documents: dict[tuple[Document, str], Saved], saved: Saved) -> None:
    """Keep a document unless a higher version is there."""
    held = documents.get((saved.kind, saved.key))
    if held is None or saved.version > held.version:
        documents[saved.kind, saved.key] = saved


def _told_refusal(record: Record | Step) -> Settled | None:
    """Return a refusal as a stored call: a replayed agent must get the same refusal again.

    A user who was refused may ask again under the same id.
    """
    if type(record) is Refused and record.request.parent_id is not None:
        return Settled(record.request, record.reply, record.at_ms)
    return None


# --- sessions ---


def read_session(connection: sqlite3.Connection, key: str) -> StoredSession | None:
    """Return a consistent session: its head and rows are read in one statement."""
    if connection.execute(_READ_DOCUMENT, (Document.SESSION.value, key)).fetchone() is None:  # as most that are looked for
        return None
    found = connection.execute(_READ_SESSION, (key, *part_range(key))).fetchall()
    heads = [(version, data) for kind, _, version, data in found if kind == Document.SESSION.value]
    rows = sorted((part_of(name)[1], bytes(data)) for kind, name, _, data in found if kind == Document.PART.value)
    return StoredSession(heads[0][0], bytes(heads[0][1]), rows) if heads else None


# --- calls ---


def take_over(connection: sqlite3.Connection, owners: Sequence[str], node_id: str) -> list[StoredCall]:
    """Return the open calls of dead nodes, oldest first, and assign them to another node."""
    query = "UPDATE calls SET open_at = ? WHERE open_at = ? RETURNING open_at, body"
    connection.execute("BEGIN IMMEDIATE")  # of two concurrent processes, one gets the calls
    taken = [call for owner in owners for call in readable(connection.execute(query, (node_id, owner)).fetchall())]
    connection.execute("COMMIT")
    return sorted(taken, key=lambda call: call.created_at)


def take_paused(connection: sqlite3.Connection, root_id: str, node_id: str) -> list[StoredCall]:
    """Return the paused calls of a tree and assign them to a node; nothing if another node was first."""
    connection.execute("BEGIN IMMEDIATE")
    found = connection.execute("SELECT open_at, body FROM calls WHERE open_at = ?", (PAUSED_AT,)).fetchall()
    paused = [call for call in readable(found) if call.root_id == root_id]
    if not any(call.request_id == root_id for call in paused):  # it is still being paused, from its leaves to its root
        paused = []
    for call in paused:
        body = _encode(msgspec.structs.replace(call, node_id=node_id, reply=None))
        connection.execute("UPDATE calls SET open_at = ?, body = ? WHERE request_id = ?", (node_id, body, call.request_id))
    connection.execute("COMMIT")
    return paused


def calls_of_session(connection: sqlite3.Connection, tenant_id: str, session_id: str) -> list[StoredCall]:
    """Return the calls of a session in order of arrival, without handoffs."""
    query = "SELECT open_at, body FROM calls WHERE instr(body, ?) ORDER BY rowid"
    found = readable(connection.execute(query, (_encode(session_id),)))
    return [call for call in found if (call.tenant_id, call.session_id) == (tenant_id, session_id)]
