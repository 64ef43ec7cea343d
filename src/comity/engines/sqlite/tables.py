"""The tables of a store file: how it is opened, and what is written to it and read from it, one transaction at a time.

The file is SQLite in WAL mode with `synchronous=FULL`. The head of the audit chain is read inside each write transaction, so
any number of processes may write.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from comity.core.envelope.envelope import Request
from comity.core.handoff.queue import Step
from comity.core.journal.audit import GENESIS, Pseudonyms, link
from comity.core.journal.records import (
    HANDED_AT,
    PAUSED_AT,
    Accepted,
    Document,
    Paused,
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
from comity.core.journal.terms import Bound, Terms, breach, counts_below, is_below, taken
from comity.engines.cipher import FRESH_NAMES
from comity.engines.sqlite import audit_rows, bulk
from comity.engines.sqlite import handoff_rows as handoff_tables
from comity.engines.sqlite.call_rows import UNREADABLE, readable, revive
from comity.engines.sqlite.schema import Schema
from comity.engines.sqlite.wakeups import Rings
from comity.ports import Then

BODY_BYTES_MOST: Final = 512  # what most calls need, so that the buffer need not grow while one is encoded

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
    # head without any.
    steps=(_FIRST, audit_rows.CHECKPOINT, (), audit_rows.add_trees, _SESSION_USE, (), audit_rows.TREES_OF_CALLS, ()),
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
_FIND_CALLS = "SELECT request_id FROM calls WHERE request_id IN (SELECT value FROM json_each(?))"
_READ_SESSION = (
    "SELECT kind, key, version, data FROM documents WHERE kind = 'session' AND key = ? UNION ALL "
    "SELECT kind, key, version, data FROM documents WHERE kind = 'part' AND key >= ? AND key < ?"
)
_READ_DOCUMENT = "SELECT version, data FROM documents WHERE kind = ? AND key = ?"
_REMOVE_PART = "DELETE FROM documents WHERE kind = 'part' AND key = ? AND version < ?"
_NOTE_USE = "UPDATE documents SET used_at = max(coalesce(used_at, 0), ?) WHERE kind = 'session' AND key = ?"
_encoder = msgspec.json.Encoder()
_encode, _encode_into = _encoder.encode, _encoder.encode_into
_STANDINGS: Final = frozenset({Accepted, Settled, Paused, Resumed})  # what says where a call stands


def prepare(connection: sqlite3.Connection) -> None:
    """Make the tables of a new file, or bring those of an old one to this program's version."""
    SCHEMA.prepare(connection)


# --- records ---


class Conditional:
    """Records that are written only on terms."""

    __slots__ = ("_refusal", "records", "terms")

    def __init__(self, records: Sequence[Record], terms: Terms) -> None:
        self.records = records
        self.terms = terms
        self._refusal: Exception | None = None

    def refuse(self, why: Exception) -> None:
        """Note why they were not written."""
        self._refusal = why

    def tell(self, then: Then) -> Then:
        """Return a listener that hears of a refusal as of an error."""
        return lambda error: then(error or self._refusal)


Written = Record | Conditional | Step
Standing = Accepted | Settled | Paused | Resumed
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

    Steps of the handoff queue are done first, and what they add stands in their place. Returns who is to hear of them.
    """
    execute = connection.execute
    kinds = set(map(type, records))
    is_conditional = Step in kinds or _has_terms(kinds, records)
    # Encoded before the transaction, in which all other processes wait.
    batch = _Batch(node_id, names)
    if is_conditional:
        batch.encode(records)
    else:
        batch.take(records)  # type: ignore[arg-type]
    execute("BEGIN IMMEDIATE")
    rings: Rings = {}
    if is_conditional:
        if perform is not None and Step in kinds:
            records, rings = perform(connection, records)
        batch.take(_on_terms(connection, records, batch.calls, batch.documents))
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
    """What a transaction writes: what the audit says, in order, with the tree of each row; calls; documents."""

    __slots__ = ("_begun", "_bodies", "_encoded", "_names", "_node_id", "calls", "documents", "roots", "said")

    def __init__(self, node_id: str, names: Pseudonyms) -> None:
        self.said: list[bytes] = []
        self.roots: list[str] = []
        # Most calls settle within the batch that accepts them: one write for both.
        self.calls: dict[str, Standing] = {}
        self.documents: dict[tuple[Document, str], Saved] = {}  # of several versions only the last is written
        # Both by the identity of the record: what the terms or the queue make of a batch may leave records out, or add some.
        self._encoded: dict[int, bytes] = {}  # what the audit says
        self._bodies: dict[int, bytearray] = {}  # how a call is stored
        self._begun: set[str] = set()  # roots that are accepted in it
        self._node_id = node_id
        self._names = names

    def encode(self, records: Sequence[Written]) -> None:
        """Encode records of which those are taken later whose terms hold."""
        ahead = _Batch(self._node_id, self._names)
        each = list(_each(records))
        ahead.take(each)
        told = (id(one) for one in each if type(one) is not Saved and type(one) is not Resumed)
        self._encoded = dict(zip(told, ahead.said, strict=True))
        self._bodies = {id(call): _body(call, self._node_id) for call in ahead.calls.values()}

    def take(self, records: Iterable[Record]) -> None:
        """Add records in their order."""
        names, calls, encoded = self._names, self.calls, self._encoded
        said, roots = self.said.append, self.roots.append
        spoken_of: dict[str, bytes] = {}  # by request id, the parties, named once; a refused request may claim another's id
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
                    continue  # the queue says where it stands
                call = record
                if kind is Accepted and request.parent_id is None:
                    self._begun.add(request_id)
            else:
                call = record if kind in _STANDINGS else _told_refusal(record)
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
            columns += (request_id, is_root, open_at, bodies.get(id(call)) or _body(call, node_id), begin, end)
        return columns


def _insert_rows(connection: sqlite3.Connection, batch: _Batch) -> tuple[dict[str, int], dict[str, int]]:
    """Seal what the audit says onto the chain, and return the first and the last row of each tree."""
    row_id, head_hash = connection.execute(_READ_HEAD).fetchone()
    numbers = range(row_id + 1, row_id + 1 + len(batch.roots))
    rows: list[Any] = []  # id, body and hash of each row, one after the other
    for row_id, said in zip(numbers, batch.said, strict=True):
        head_hash = link(row_id, said, head_hash)
        rows += (row_id, bytearray(said), head_hash)  # an adapter for bytes would be looked for, as slow as the insert
    bulk.run(connection, _INSERT_ROWS, "(?,?,?)", "", rows)
    connection.execute(_MOVE_HEAD, (numbers[-1], head_hash))
    return dict(zip(reversed(batch.roots), reversed(numbers), strict=True)), dict(zip(batch.roots, numbers, strict=True))


def _each(records: Sequence[Written]) -> Iterator[Record]:
    """Yield the records of a batch, also those on terms; steps of the queue have none yet."""
    for one in records:
        if type(one) is Conditional:
            yield from one.records
        elif type(one) is not Step:
            yield one  # type: ignore[misc]


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


def _on_terms(
    connection: sqlite3.Connection,
    records: Sequence[Written],
    calls: dict[str, Standing],
    documents: dict[tuple[Document, str], Saved],
) -> Iterator[Record]:
    """Yield what is to be written. `calls` and `documents` are what this batch has brought so far; the file has the rest."""

    fences: dict[str, tuple[int, bytes] | None] = {}  # as the file has them: each address is named by many calls of a batch

    def document(kind: Document, key: str) -> tuple[int, bytes] | None:
        here = documents.get((kind, key))
        if kind is Document.FENCE and key in fences:
            found = fences[key]
        else:
            found = connection.execute(_READ_DOCUMENT, (kind.value, key)).fetchone()
            if kind is Document.FENCE:
                fences[key] = found
        if here is not None and (found is None or here.version > found[0]):
            return here.version, here.data
        return found

    def token_of(address: str) -> int:
        return (document(Document.FENCE, address) or (0, b""))[0]

    nested: list[str] = []  # ids in this batch that say that they are below another, of its first `nested_of[0]` calls
    nested_of = [0]
    # Of calls as the file has them: each is asked about several times, and most are not there.
    standings: dict[str, bool | None] = _unknown(connection, records)

    def is_open(request_id: str) -> bool | None:
        here = calls.get(request_id)
        if here is not None:
            return type(here) is not Settled
        if request_id in standings:
            return standings[request_id]
        try:
            found = read_call(connection, request_id)
            standing = None if found is None else found.settled_at is None
        except UNREADABLE:  # nothing can be added to it, and the writer must not end with it
            standing = False
        standings[request_id] = standing
        return standing

    def below(above: str) -> Iterator[Request]:
        if not above:
            return
        if standings.get(above, True) is not None:  # else it was accepted in this batch, and so was all that is below it
            query = "SELECT open_at, body FROM calls WHERE open_at IS NOT NULL AND request_id > ? AND request_id < ?"
            for found in readable(connection.execute(query, (f"{above}#", f"{above}/")).fetchall()):  # `/` follows `.`
                if found.request is not None and is_below(found.request_id, above) and found.request_id not in calls:
                    yield found.request
        nested.extend(one for one in islice(calls, nested_of[0], None) if "." in one or "#" in one)
        nested_of[0] = len(calls)
        for request_id in nested:
            one = calls[request_id]
            if type(one) is not Settled and is_below(request_id, above):
                yield one.request

    def begun(above: Bound) -> int:
        here = [one for one in calls.values() if is_below(one.request.request_id, above.request_id)]
        count = "SELECT count(*) FROM calls WHERE request_id > ? AND request_id < ?"
        (most,) = connection.execute(count, _range_below(above)).fetchone()
        if most + len(here) + 2 <= above.calls_max:  # all that have such an id are few enough: no need to look at each
            return int(most) + len(here)
        written = (one for one in _below(connection, above) if one.request_id not in calls)
        return sum(counts_below(one, above) for one in (*written, *(stored(one, "") for one in here)))

    def is_plain(records: Sequence[Record], terms: Terms) -> bool:
        """Return whether the terms hold, for a call that begins and ends in this batch and makes none: as most do."""
        one, request_id = records[0] if records else None, terms.unsettled or terms.ends
        if type(one) is Accepted:
            holds = not terms.open and not terms.ends and request_id not in calls
        elif type(one) is Settled:
            holds = not has_nested and terms.open == (request_id,) and type(calls.get(request_id)) is Accepted
        else:
            return False
        return (
            holds
            and standings.get(request_id, True) is None
            and one.request.request_id == request_id
            and not (terms.unknown or terms.ended or terms.session or terms.documents or terms.within)
            and all(type(other) is Saved for other in records[1:])
            and all(token_of(fence.address) <= fence.token for fence in terms.fences)
        )

    has_nested = any(type(one) in _STANDINGS and one.request.parent_id is not None for one in _each(records))  # type: ignore[union-attr]
    for record in records:
        if type(record) is Conditional:
            if is_plain(record.records, record.terms):
                yield from record.records
            elif refusal := breach(record.terms, is_open, begun, document):
                record.refuse(refusal)
            else:
                yield from taken(record.records, record.terms, is_open, list(below(record.terms.ends)))
        elif type(record) is not Saved or not record.token or token_of(record.address) <= record.token:
            yield record  # type: ignore[misc]


def _unknown(connection: sqlite3.Connection, records: Sequence[Written]) -> dict[str, bool | None]:
    """Return the calls that the terms of a batch name and the file does not have, each as None."""
    named: dict[str, bool | None] = {}
    for one in records:
        if type(one) is Conditional:
            terms = one.terms
            named |= dict.fromkeys((terms.unknown, terms.unsettled, *terms.open, terms.ended, terms.ends))
    named.pop("", None)
    for (request_id,) in connection.execute(_FIND_CALLS, (bulk.array(tuple(named)),)):
        del named[request_id]
    for request_id in handoff_tables.known(connection, tuple(named)):
        del named[request_id]
    return named


def keep_newest(documents: dict[tuple[Document, str], Saved], saved: Saved) -> None:
    """Note a document, unless a higher version of it is there."""
    held = documents.get((saved.kind, saved.key))
    if held is None or saved.version > held.version:
        documents[saved.kind, saved.key] = saved


def _told_refusal(record: Record | Step) -> Settled | None:
    """Return a refusal that is to be found again: an agent that is resumed must get the reply that it got the first time.

    A user who was refused may ask again under the same id.
    """
    if type(record) is Refused and record.request.parent_id is not None:
        return Settled(record.request, record.reply, record.at_ms)
    return None


# --- sessions ---


def read_session(connection: sqlite3.Connection, key: str) -> StoredSession | None:
    """Return a session as of one moment: its head and rows are read in one statement."""
    if connection.execute(_READ_DOCUMENT, (Document.SESSION.value, key)).fetchone() is None:  # as most that are looked for
        return None
    found = connection.execute(_READ_SESSION, (key, *part_range(key))).fetchall()
    heads = [(version, data) for kind, _, version, data in found if kind == Document.SESSION.value]
    rows = sorted((part_of(name)[1], bytes(data)) for kind, name, _, data in found if kind == Document.PART.value)
    return StoredSession(heads[0][0], bytes(heads[0][1]), rows) if heads else None


# --- calls ---


def read_call(connection: sqlite3.Connection, request_id: str) -> StoredCall | None:
    """Return a call by id, also a call that was handed off."""
    found = connection.execute("SELECT open_at, body FROM calls WHERE request_id = ?", (request_id,)).fetchone()
    return revive(*found) if found else handoff_tables.read_call(connection, request_id)


def take_over(connection: sqlite3.Connection, owners: Sequence[str], node_id: str) -> list[StoredCall]:
    """Return the calls open at nodes that are gone and give them to another, oldest first."""
    query = "UPDATE calls SET open_at = ? WHERE open_at = ? RETURNING open_at, body"
    connection.execute("BEGIN IMMEDIATE")  # of two that look at the same moment, one gets the calls
    taken = [call for owner in owners for call in readable(connection.execute(query, (node_id, owner)).fetchall())]
    connection.execute("COMMIT")
    return sorted(taken, key=lambda call: call.created_at)


def count_begun(connection: sqlite3.Connection, request: Request) -> int:
    """Return how many calls below one were accepted."""
    return sum(counts_below(one, request) for one in _below(connection, request))


def _below(connection: sqlite3.Connection, above: Request | Bound) -> Iterator[StoredCall]:
    query = "SELECT open_at, body FROM calls WHERE request_id > ? AND request_id < ?"
    return readable(connection.execute(query, _range_below(above)))


def _range_below(above: Request | Bound) -> tuple[str, str]:
    """Return between which ids the calls below one lie, which the index finds: they begin with its own and `.`."""
    return f"{above.request_id}.", f"{above.request_id}/"  # `/` follows `.`


def take_paused(connection: sqlite3.Connection, root_id: str, node_id: str) -> list[StoredCall]:
    """Return the paused calls of a tree, as they were, and give them to a node; nothing if another was first."""
    connection.execute("BEGIN IMMEDIATE")
    found = connection.execute("SELECT open_at, body FROM calls WHERE open_at = ?", (PAUSED_AT,)).fetchall()
    paused = [call for call in readable(found) if call.root_id == root_id]
    if not any(call.request_id == root_id for call in paused):  # it is still being put aside, from its leaves to its root
        paused = []
    for call in paused:
        body = _encode(msgspec.structs.replace(call, node_id=node_id, reply=None))
        connection.execute("UPDATE calls SET open_at = ?, body = ? WHERE request_id = ?", (node_id, body, call.request_id))
    connection.execute("COMMIT")
    return paused


def calls_of_session(connection: sqlite3.Connection, tenant_id: str, session_id: str) -> list[StoredCall]:
    """Return the calls of a session in the order they came, those that were handed off aside."""
    query = "SELECT open_at, body FROM calls WHERE instr(body, ?) ORDER BY rowid"
    found = readable(connection.execute(query, (_encode(session_id),)))
    return [call for call in found if (call.tenant_id, call.session_id) == (tenant_id, session_id)]
