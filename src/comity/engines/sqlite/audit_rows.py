"""The audit of a store file: reading its rows, finding the rows of a call tree, verifying the chain, and truncating its start.

A chain is truncated only if the removed rows verify. The rest begins at a checkpoint with the id and hash of the last removed
row; a row at the end of the chain records the same; and the checkpoint has an HMAC with the store's key, which is not in the
file. So an attacker who can change only the file can neither remove further rows nor move the checkpoint. An attacker who also
has the key can.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from comity.core.journal.audit import (
    ENTRY_FIELDS,
    GENESIS,
    START,
    Checkpoint,
    Row,
    Stored,
    Tell,
    Verdict,
    checkpoint_seal,
    cut_entry,
    link,
    row,
    verify,
    walk,
)
from comity.engines.sqlite import bulk

# A row's content is stored once, as the exact bytes that its hash covers; the view shows it field by field.
_SAID: Final = {name: f"json_extract(CAST(audit.body AS TEXT), '$[{index}]')" for index, name in enumerate(ENTRY_FIELDS)}
_ROOT: Final = _SAID["root_id"]
_FIELDS: Final = ", ".join(
    f"{said} AS {name}" for name, said in (_SAID | {"correlation_id": f"coalesce({_SAID['correlation_id']}, {_ROOT})"}).items()
)
_PREVIOUS: Final = (
    "coalesce((SELECT before.hash FROM audit AS before WHERE before.id = audit.id - 1), "  # noqa: S608
    f"(SELECT json_extract(CAST(checkpoint.body AS TEXT), '$[1]') FROM checkpoint), '{GENESIS}')"
)
VIEW: Final = (
    "audit_rows",
    f"CREATE VIEW audit_rows AS SELECT id, {_FIELDS}, {_PREVIOUS} AS previous_hash, hash FROM audit",  # noqa: S608
)
CHECKPOINT: Final = "CREATE TABLE checkpoint (one INTEGER PRIMARY KEY CHECK (one = 1), body BLOB NOT NULL, seal TEXT NOT NULL)"
# Index of the rows of a tree: one entry per transaction that wrote some of them, since one per row would double the cost of
# each call. The entry of the transaction that accepts the root is in the root's row of `calls`.
_TREES: Final = (
    "CREATE TABLE audit_trees (root_id TEXT NOT NULL, first_id INTEGER NOT NULL, last_id INTEGER NOT NULL, "
    "PRIMARY KEY (root_id, first_id)) WITHOUT ROWID"
)
# The entry of a removed call stays as long as its rows do.
_CALLS_GONE: Final = (
    "CREATE TRIGGER calls_gone AFTER DELETE ON calls WHEN old.last_id >= (SELECT min(id) FROM audit) "
    "BEGIN INSERT OR REPLACE INTO audit_trees VALUES (old.request_id, old.first_id, old.last_id); END"
)
TREES_OF_CALLS: Final = (
    "ALTER TABLE calls ADD COLUMN first_id INTEGER",
    "ALTER TABLE calls ADD COLUMN last_id INTEGER",
    _CALLS_GONE,
)
_PARTS: Final = (
    "SELECT root_id, first_id, last_id FROM audit_trees UNION ALL "
    "SELECT request_id, first_id, last_id FROM calls WHERE first_id IS NOT NULL"
)
_FIRST_ROW: Final = (
    "SELECT min(first_id) FROM (SELECT first_id, last_id FROM json_each(:roots) CROSS JOIN audit_trees ON root_id = value "
    "UNION ALL SELECT first_id, last_id FROM json_each(:roots) CROSS JOIN calls ON request_id = value) "
    "WHERE last_id >= (SELECT min(id) FROM audit)"
)
_DELETE_TREES: Final = (
    "DELETE FROM audit_trees WHERE last_id <= :last AND root_id IN "  # noqa: S608
    f"(SELECT {_ROOT} FROM audit WHERE id <= :last AND json_valid(CAST(audit.body AS TEXT)))"
)
_INSERT_TREES: Final = "INSERT INTO audit_trees VALUES "
_ROOT_AT: Final = ENTRY_FIELDS.index("root_id")
_TIME_AT: Final = ENTRY_FIELDS.index("created_at")
_COLUMNS: Final = f"audit.id, CAST(audit.body AS BLOB), {_PREVIOUS}, audit.hash"
_READ_ROWS: Final = f"SELECT {_COLUMNS} FROM audit WHERE id > ? ORDER BY id"  # noqa: S608
_TEXTS: Final = (
    f"audit.id, CAST(audit.body AS TEXT) AS body, CAST({_PREVIOUS} AS TEXT) AS previous, CAST(audit.hash AS TEXT) AS hash"
)
_READ_PART: Final = f"SELECT {_TEXTS} FROM audit WHERE id > ? ORDER BY id LIMIT ?"  # noqa: S608
_READ_ROOTS: Final = f"SELECT {_TEXTS} FROM audit WHERE id > ? AND id <= ? AND {_SAID['parent_id']} IS NULL ORDER BY id"  # noqa: S608
# Rows of other trees in the range are mostly skipped by comparing bytes, which is cheaper than parsing them.
_READ_TREE: Final = (
    f"SELECT {_COLUMNS} FROM ({_PARTS}) AS t CROSS JOIN audit ON audit.id BETWEEN t.first_id AND t.last_id "  # noqa: S608
    f"WHERE t.root_id = ? AND audit.id > ? AND substr(audit.body, 1, ?) = ? AND instr(audit.body, ?) AND {_ROOT} = ? "
    "ORDER BY audit.id LIMIT ?"
)
READ_LINKS: Final = (
    "SELECT id, CASE typeof(body) WHEN 'blob' THEN body END AS body, CAST(hash AS BLOB) AS hash "
    "FROM audit WHERE id > ? ORDER BY id"
)
_FILLED_ROWS: Final = 1_000
_ROWS_A_PART: Final = 5_000  # rows read at once: some megabytes
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[Any]).decode
_decode_checkpoint = msgspec.json.Decoder(Checkpoint).decode
_UNREADABLE: Final = (msgspec.DecodeError, ValueError, IndexError, TypeError)


# Walks a chain from the row after an id and its hash to a last id; returns how far it is valid, as `core.journal.audit.walk`.
Walker = Callable[[int, bytes, int], tuple[int, bytes]]


# --- the rows of a tree ---


def add_trees(connection: sqlite3.Connection) -> None:
    """Create the index of trees, and fill it from the existing rows."""
    connection.execute(_TREES)
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for row_id, body in connection.execute("SELECT id, CAST(body AS BLOB) FROM audit ORDER BY id"):
        with contextlib.suppress(*_UNREADABLE):  # `verify` names it
            root_id = _decode(body)[_ROOT_AT]
            first.setdefault(root_id, row_id)
            last[root_id] = row_id
        if row_id % _FILLED_ROWS == 0:
            insert_trees(connection, first, last)
            first.clear()
    insert_trees(connection, first, last)


def insert_trees(connection: sqlite3.Connection, first: dict[str, int], last: dict[str, int]) -> None:
    """Add the range of audit rows that this transaction wrote for each tree."""
    places: list[Any] = []
    for root_id, begin in first.items():
        places += (root_id, begin, last[root_id])
    bulk.run(connection, _INSERT_TREES, "(?,?,?)", "", places)


def read_rows(
    connection: sqlite3.Connection,
    *,
    after_id: int = 0,
    limit: int | None = None,
    root_id: str | None = None,
    request_id: str | None = None,
    kind: str | None = None,
) -> list[Row]:
    """Return audit rows in order, optionally only those of one tree, call or kind."""
    if root_id is None and limit is not None:
        return _read_part(connection, _READ_PART, after_id, limit)
    if root_id is None:
        found = connection.execute(_READ_ROWS, (after_id,))
    else:
        most = -1 if limit is None else limit
        said = _encode(root_id)
        # A row begins with kind, call, root and parent; rows without these bytes are not parsed.
        mark = said if request_id is None else b"%b,%b" % (_encode(request_id), said)
        mark += b",null" if request_id == root_id else b""
        begin = b"" if kind is None else b"[%b," % _encode(kind)
        found = connection.execute(_READ_TREE, (root_id, after_id, len(begin), begin, mark, root_id, most))
    return [row(one) for one in found]


def read_root_rows(connection: sqlite3.Connection, after_id: int, until_id: int) -> list[Row]:
    """Return the audit rows of root calls with ids in (`after_id`, `until_id`], in order."""
    return _read_part(connection, _READ_ROOTS, after_id, until_id)


def _read_part(connection: sqlite3.Connection, query: str, *values: int) -> list[Row]:
    part = bulk.read(connection, "id, body, previous, hash", query, values)
    return [row((row_id, bulk.as_bytes(body), previous, sealed)) for row_id, body, previous, sealed in part]


def root_of(connection: sqlite3.Connection, request_id: str) -> str | None:
    """Return the root id of a call's tree from the audit, or None."""
    above = min((request_id.partition(mark)[0] for mark in ".#"), key=len)  # a child's id extends its parent's
    for root_id in (request_id, above):
        if any(one.request_id == request_id for one in read_rows(connection, root_id=root_id, request_id=request_id)):
            return root_id
    return None


# --- the chain ---


def verify_chain(
    connection: sqlite3.Connection,
    key: bytes | None = None,
    newest: int | None = None,
    walker: Walker | None = None,
    tell: Tell | None = None,
) -> Verdict:
    """Check every row and that the chain begins and ends where it should, reading one consistent snapshot.

    Without the `key` the seal of a checkpoint cannot be checked; the verdict's reason says so. With `newest`, only that many
    rows are checked and the row before them is trusted. A `walker` may be quicker for many rows; a fault that it finds is
    checked again. `tell` is called after each part of the chain.
    """
    connection.execute("BEGIN")
    try:
        begin, wrong, note = _read_checkpoint(connection, key)
        own = partial(_walk, connection, tell)
        if wrong is not None:
            return wrong
        if newest is not None and (part := _begin_of_newest(connection, newest)) is not None and part.row_id > begin.row_id:
            return _verify_rows(connection, part, note, own, is_part=True)
        return _verify_rows(connection, begin, note, walker or own)
    finally:
        connection.execute("ROLLBACK")


def _begin_of_newest(connection: sqlite3.Connection, newest: int) -> Checkpoint | None:
    query = "SELECT id, hash FROM audit WHERE id = (SELECT max(id) FROM audit) - ? AND typeof(hash) = 'text'"
    found = connection.execute(query, (newest,)).fetchone()
    return None if found is None else Checkpoint(found[0], found[1], 0, 0)


def _verify_rows(
    connection: sqlite3.Connection, begin: Checkpoint, note: str, walker: Walker, *, is_part: bool = False
) -> Verdict:
    head_id, head_hash = connection.execute("SELECT id, CAST(hash AS BLOB) FROM head").fetchone() or (None, b"")
    (lowest,) = connection.execute("SELECT min(id) FROM audit").fetchone()
    (highest,) = connection.execute("SELECT max(id) FROM audit").fetchone()
    if (lowest is None or lowest > begin.row_id or is_part) and (highest or begin.row_id) == head_id:
        next_id, sealed = walker(begin.row_id, begin.hash.encode(), head_id)
        if (next_id - 1, sealed) == (head_id, head_hash) and (is_part or _is_noted(connection, begin)):
            return Verdict(True, next_id - 1 - begin.row_id, None, note)
    head = None if head_id is None else str(head_hash, errors="replace")
    verdict = verify(_links(connection, begin, is_part), first_id=begin.row_id + 1, previous_hash=begin.hash, head=head)
    last = begin.row_id + verdict.rows
    if not verdict.ok:
        return verdict
    if head_id != last:
        what = "was removed" if head_id is None else f"is not row {last}"
        return Verdict(False, verdict.rows, last, f"the recorded end of the chain {what}")
    return Verdict(False, verdict.rows, begin.row_id + 1, f"no row says that the rows up to {begin.row_id} were removed")


def _walk(connection: sqlite3.Connection, tell: Tell | None, after_id: int, sealed: bytes, head_id: int) -> tuple[int, bytes]:
    rows, next_id = connection.execute(READ_LINKS, (after_id,)), after_id + 1
    while part := rows.fetchmany(_ROWS_A_PART):
        first_id = next_id
        next_id, sealed = walk(part, first_id, sealed)
        if tell is not None:
            tell(next_id - 1 - after_id, head_id - after_id)
        if next_id != first_id + len(part):
            break
    return next_id, sealed


def _read_checkpoint(connection: sqlite3.Connection, key: bytes | None) -> tuple[Checkpoint, Verdict | None, str]:
    """Return the checkpoint at which the chain begins, a verdict if it is invalid, and what could not be checked."""
    found = connection.execute("SELECT CAST(body AS BLOB), CAST(seal AS BLOB) FROM checkpoint").fetchone()
    if found is None:
        return START, None, ""
    try:
        begin = _decode_checkpoint(found[0])
    except _UNREADABLE:
        return START, Verdict(False, 0, 1, "the checkpoint at which the audit begins cannot be read"), ""
    if key is None:
        return begin, None, f"it begins after row {begin.row_id}; the seal of that was not checked, since the key is not here"
    if checkpoint_seal(found[0], key).encode() != found[1]:
        wrong = f"the checkpoint at row {begin.row_id} was changed, or sealed under another key"
        return begin, Verdict(False, 0, begin.row_id + 1, wrong), ""
    return begin, None, ""


def _is_noted(connection: sqlite3.Connection, begin: Checkpoint) -> bool:
    """Return whether a row of the chain records the same as the checkpoint."""
    if begin == START:
        return True
    found = connection.execute("SELECT CAST(body AS BLOB) FROM audit WHERE id = ?", (begin.noted_in,)).fetchone()
    if found is None:
        return False
    told, expected = (dict(zip(ENTRY_FIELDS, _decode(one), strict=False)) for one in (found[0], _entry_of(begin)))
    return all(told[name] == expected[name] for name in ("kind", "created_at", "note"))


def _entry_of(begin: Checkpoint) -> bytes:
    return cut_entry(begin.row_id, begin.hash, begin.at_ms)


def _links(connection: sqlite3.Connection, begin: Checkpoint, is_part: bool) -> Iterator[Stored]:
    """Yield the rows unchecked; for the whole chain, rows before its beginning too."""
    previous = begin.hash
    for row_id, body, raw in connection.execute(READ_LINKS, (begin.row_id if is_part else -1 << 63,)):
        sealed = str(raw, errors="replace")
        yield row_id, body, previous, sealed
        previous = sealed


# --- cutting ---


class Cut(NamedTuple):
    """A checked truncation: where the audit begins now, the last row to remove, and that row's hash."""

    begin: Checkpoint
    last_id: int
    hash: str


def extent(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return the ids of the first and the last row; without rows, the first is the next id."""
    (first,) = connection.execute("SELECT min(id) FROM audit").fetchone()
    (last,) = connection.execute("SELECT id FROM head").fetchone()
    return (last + 1 if first is None else first), last


def first_row(connection: sqlite3.Connection, roots: Iterable[str]) -> int | None:
    """Return the id of the first row of these trees, or None."""
    found: int | None = connection.execute(_FIRST_ROW, {"roots": bulk.array(list(roots))}).fetchone()[0]
    return found


def times(connection: sqlite3.Connection, after_id: int, until_id: int) -> Iterator[tuple[int, int]]:
    """Yield id and time of the rows in a range, in order; an unreadable row gets a time that stops a truncation."""
    query = "SELECT id, CAST(body AS TEXT) AS said FROM audit WHERE id > ? AND id <= ? ORDER BY id"
    said = f"CASE WHEN json_valid(said) THEN json_extract(said, '$[{_TIME_AT}]') END"
    for row_id, at_ms in bulk.read(connection, f"id, {said}", query, (after_id, until_id)):
        yield row_id, at_ms if type(at_ms) is int else -1


def check_cut(connection: sqlite3.Connection, last_id: int, key: bytes) -> Cut:
    """Return the truncation after `last_id` if the rows up to it verify, else raise `ValueError`; needs no transaction."""
    begin, wrong, _ = _read_checkpoint(connection, key)
    if wrong is None:
        columns = "id, CAST(body AS TEXT), CAST(hash AS TEXT)"
        going = bulk.read(connection, columns, f"{READ_LINKS} LIMIT ?", (begin.row_id, last_id - begin.row_id))
        links = ((one, None if said is None else bulk.as_bytes(said), bulk.as_bytes(hash_)) for one, said, hash_ in going)
        next_id, sealed = walk(links, begin.row_id + 1, begin.hash.encode())
        if next_id == last_id + 1:
            return Cut(begin, last_id, sealed.decode())
        wrong = Verdict(False, 0, next_id, f"row {next_id} does not fit")
    raise ValueError(f"the audit is not cut, so that what is wrong with it can still be seen: {wrong.reason}")


def cut(connection: sqlite3.Connection, after: Cut, key: bytes, at_ms: int) -> None:
    """Remove the rows of a truncation, within a transaction; none if another process has removed them."""
    begin, wrong, _ = _read_checkpoint(connection, key)
    if wrong is not None or begin != after.begin:
        return
    head_id, head_hash = connection.execute("SELECT id, hash FROM head").fetchone()
    entry = cut_entry(after.last_id, after.hash, at_ms)
    noted_in = head_id + 1
    noted = link(noted_in, entry, head_hash)
    connection.execute("INSERT INTO audit VALUES (?, ?, ?)", (noted_in, entry, noted))
    connection.execute("UPDATE head SET id = ?, hash = ?", (noted_in, noted))
    body = _encode(Checkpoint(after.last_id, after.hash, noted_in, at_ms))
    connection.execute("INSERT OR REPLACE INTO checkpoint VALUES (1, ?, ?)", (body, checkpoint_seal(body, key)))
    connection.execute(_DELETE_TREES, {"last": after.last_id})
    connection.execute("DELETE FROM audit WHERE id <= ?", (after.last_id,))
