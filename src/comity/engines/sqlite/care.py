"""Measures the size and growth of a store's files, and compacts them.

Nothing here reads a whole table: counts come from indexes or row ids, sizes from a sample, times from the first row and a
binary search, since row ids grow with time.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from comity.core.journal.audit import ENTRY_FIELDS
from comity.core.journal.records import StoredCall
from comity.core.units import NS_PER_MS
from comity.engines.sqlite import handoff_rows as handoff_tables
from comity.engines.sqlite import liveness as presence
from comity.engines.sqlite.connecting import connect, connect_anywhere
from comity.engines.sqlite.spans import inbox as span_inbox
from comity.engines.sqlite.spans import rows as span_rows
from comity.engines.sqlite.spans.retention import oldest_ns

DAY_MS: Final = 24 * 60 * 60 * 1000
_SAMPLED: Final = 500
_PAGES_A_TIME: Final = 2_000
_INCREMENTAL: Final = 2  # `PRAGMA auto_vacuum` of a file that can be compacted while in use
_UNREADABLE: Final = (msgspec.DecodeError, ValueError, IndexError, KeyError, TypeError)
_decode = msgspec.json.Decoder().decode
_CREATED: Final = StoredCall.__struct_fields__.index("created_at")
_TIME: Final = ENTRY_FIELDS.index("created_at")


class Kind(Struct, frozen=True):
    """One kind of content: its count, approximate bytes, count of the last day, and the time of the oldest."""

    name: str
    rows: int
    bytes: int
    last_day: int
    oldest_at: int | None  # epoch milliseconds


class File(Struct, frozen=True):
    """One file of a store: its size with its write-ahead log, and how much of that is free."""

    path: str
    bytes: int
    free_bytes: int


def measure(store: Path, connection: sqlite3.Connection, spans: Path, now_ms: int) -> tuple[list[Kind], list[File]]:
    """Return the amount of each kind of content, and the size of each file."""
    kinds = [
        _numbered(connection, "calls", "calls", "rowid", "body", lambda body: _decode(body)[_CREATED], now_ms),
        _sessions(connection, now_ms),
        _numbered(connection, "audit", "audit", "id", "body", lambda body: _decode(body)[_TIME], now_ms),
    ]
    if handoff_tables.exists(connection):
        made = _numbered(connection, "handoffs", "handoffs", "seq", "request", lambda body: _decode(body)["created_at"], now_ms)
        kinds.insert(2, made)
    files = [_file(store, connection)]
    if spans.is_file():
        with contextlib.closing(connect_anywhere(spans, span_rows.connect)) as opened:
            kinds.append(_spans(opened, now_ms))
            files.append(_file(spans, opened))
    return kinds, files


def _numbered(
    connection: sqlite3.Connection, name: str, table: str, number: str, body: str, time: Callable[[bytes], int], now_ms: int
) -> Kind:
    (rows,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608
    first, last = (
        connection.execute(f"SELECT {which}({number}) FROM {table}").fetchone()[0] or 0  # noqa: S608
        for which in ("min", "max")
    )

    def at(place: int) -> int:
        """Return the time of the first readable row from an id on."""
        query = f"SELECT CAST({body} AS BLOB) FROM {table} WHERE {number} >= ? ORDER BY {number} LIMIT 10"  # noqa: S608
        for (raw,) in connection.execute(query, (place,)):
            with contextlib.suppress(*_UNREADABLE):
                return int(time(raw))
        return now_ms

    low, high = first, last + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if at(middle) >= now_ms - DAY_MS else (middle + 1, high)
    query = f"SELECT count(*) FROM {table} WHERE {number} >= ?"  # noqa: S608
    (last_day,) = connection.execute(query, (low,)).fetchone() if rows else (0,)
    size = _sampled(connection, f"SELECT length({body}) FROM {table} ORDER BY {number} DESC LIMIT {_SAMPLED}", rows)  # noqa: S608
    return Kind(name, rows, size, last_day, at(first) if rows else None)


def _sessions(connection: sqlite3.Connection, now_ms: int) -> Kind:
    of_sessions = "FROM documents INDEXED BY documents_used WHERE kind = 'session'"
    (rows,) = connection.execute(f"SELECT count(*) {of_sessions}").fetchone()
    (oldest,) = connection.execute(f"SELECT min(used_at) {of_sessions}").fetchone()
    (last_day,) = connection.execute(f"SELECT count(*) {of_sessions} AND used_at >= ?", (now_ms - DAY_MS,)).fetchone()
    of_parts = (  # between \x1e and the character after it
        "(SELECT coalesce(sum(length(data)), 0) FROM documents AS part WHERE part.kind = 'part' "
        "AND part.key >= documents.key || char(30) AND part.key < documents.key || char(31))"
    )
    lengths = f"SELECT length(data) + {of_parts} {of_sessions} ORDER BY used_at DESC LIMIT {_SAMPLED}"
    size = _sampled(connection, lengths, rows)
    return Kind("sessions", rows, size, last_day, oldest)


def _spans(connection: sqlite3.Connection, now_ms: int) -> Kind:
    (kept,) = connection.execute("SELECT count(*) FROM span_spans").fetchone()
    waiting = span_inbox.count(connection)
    oldest = oldest_ns(connection)
    query = "SELECT count(*) FROM span_spans WHERE start_ns >= ?"
    (last_day,) = connection.execute(query, ((now_ms - DAY_MS) * NS_PER_MS,)).fetchone()
    size = _sampled(connection, f"SELECT length(body) FROM span_spans ORDER BY id DESC LIMIT {_SAMPLED}", kept)  # noqa: S608
    (inbox,) = connection.execute("SELECT coalesce(sum(length(body)), 0) FROM span_inbox").fetchone()
    return Kind("spans", kept + waiting, size + inbox, last_day + waiting, None if oldest is None else oldest // NS_PER_MS)


def _sampled(connection: sqlite3.Connection, lengths: str, rows: int) -> int:
    """Estimate the bytes of this number of rows from a sample of lengths."""
    found = [size or 0 for (size,) in connection.execute(lengths)]
    return round(sum(found) / len(found) * rows) if found else 0


def _file(path: Path, connection: sqlite3.Connection) -> File:
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (page,) = connection.execute("PRAGMA page_size").fetchone()
    return File(str(path), _size(path), free * page)


def _size(path: Path) -> int:
    """Return the size of a file and its write-ahead log."""
    return sum(one.stat().st_size for one in (path, path.with_name(f"{path.name}-wal")) if one.exists())


def compact(path: Path, store: Path) -> Iterator[tuple[int, int]]:
    """Compact a file step by step; yield its bytes before and now, until nothing is free.

    A file made by this version is compacted while other processes use it. An older file must be rewritten once, which needs
    exclusive use: raises `DatabaseError` while a node of the `store` is alive.
    """
    before = _size(path)
    with contextlib.closing(connect(path) if path == store else span_rows.connect(path)) as connection:
        (mode,) = connection.execute("PRAGMA auto_vacuum").fetchone()
        if mode != _INCREMENTAL:
            if any(presence.looks_held(lock) for lock in presence.locks(store)):
                raise sqlite3.DatabaseError("it has to be written anew, and a node has it open: stop the node first")
            connection.execute(f"PRAGMA auto_vacuum = {_INCREMENTAL}")
            connection.execute("VACUUM")
        while connection.execute("PRAGMA freelist_count").fetchone()[0]:
            connection.execute(f"PRAGMA incremental_vacuum({_PAGES_A_TIME})").fetchall()
            yield before, _size(path)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    yield before, _size(path)
