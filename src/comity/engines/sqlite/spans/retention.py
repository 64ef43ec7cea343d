"""Removing spans that are kept no longer, a slice at a time.

By age a trace goes as a whole, once its last span is too old. By count the spans go that came first, wherever they are: first
those that are sorted in, then whole batches of the inbox.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

from comity.core.journal.retention import Keep, Pruned, Sweep
from comity.core.tracing.span import Span
from comity.core.units import NS_PER_MS
from comity.engines.sqlite import bulk
from comity.engines.sqlite.connecting import connect_anywhere
from comity.engines.sqlite.spans import inbox as span_inbox
from comity.engines.sqlite.spans import rows as span_rows
from comity.engines.sqlite.spans.rows import KEY_OF_NAME, KEY_OF_SESSION, clamp

SLICE_SPANS: Final = 500
# Of the inbox, whole batches and about this many spans: they need no look into the index.
SLICE_WAITING: Final = 20_000
_COLUMNS: Final = "id, trace, start_ns, CAST(span_id AS TEXT), kind, status, CAST(name AS TEXT), resource, hex(body), end_ns"
_READ: Final = (
    "SELECT s.id, s.trace, s.start_ns, s.span_id, s.kind, s.status, s.name, s.resource, s.body, t.end_ns "
    "FROM span_spans AS s JOIN span_traces AS t ON t.no = s.trace WHERE s.id > ? ORDER BY s.id LIMIT ?"
)
# The batches after one whose spans, all in all, are not more than a number.
_SURPLUS: Final = (
    "SELECT max(id), max(so_far) FROM (SELECT id, sum(spans) OVER (ORDER BY id) AS so_far FROM span_inbox WHERE id > ?) "
    "WHERE so_far <= ?"
)
_FORGET_TRACES: Final = (
    "DELETE FROM span_traces WHERE no IN (SELECT value FROM json_each(?)) "
    "AND NOT EXISTS (SELECT 1 FROM span_spans WHERE span_spans.trace = span_traces.no)"
)
_Row = Sequence[Any]


class SpanSweep:
    """One pass over the spans of a file."""

    def __init__(self, keep: Keep, now_ms: int, *, is_dry: bool = False) -> None:
        before = keep.before_ms(now_ms)
        self._before_ns = None if before is None else clamp(before * NS_PER_MS)
        self._count = keep.count
        self._is_dry = is_dry
        self._seen = 0  # the id up to which spans were looked at
        self._batch = 0  # and batches of the inbox
        self._surplus: int | None = None  # how many are to go by number

    def step(self, connection: sqlite3.Connection) -> int | None:
        """Remove a slice within a transaction and return the number of spans; None once the sweep is complete."""
        if self._surplus is None:
            kept, waiting = extent(connection)
            self._surplus = 0 if self._count is None else max(kept + waiting - self._count, 0)
        rows = bulk.read(connection, _COLUMNS, _READ, (self._seen, SLICE_SPANS))
        if not rows:
            return self._step_inbox(connection)
        doomed: list[_Row] = []
        for row in rows:
            if self._surplus > 0:
                self._surplus -= 1
            elif self._before_ns is None or row[-1] >= self._before_ns:
                if self._before_ns is None or row[2] >= self._before_ns:
                    self._seen = _END
                    break
                self._seen = row[0]
                continue
            self._seen = row[0]
            doomed.append(row)
        if not self._is_dry:
            _remove(connection, doomed)
        return len(doomed)

    def _step_inbox(self, connection: sqlite3.Connection) -> int | None:
        """Remove batches of the inbox that expire as a whole."""
        assert self._surplus is not None
        last, gone = connection.execute(_SURPLUS, (self._batch, min(self._surplus, SLICE_WAITING))).fetchone()
        if last is None:
            last, gone = self._next_batches(connection)
            if last is None:
                return None
        self._batch = last
        self._surplus = max(self._surplus - gone, 0)
        if not self._is_dry:
            connection.execute("DELETE FROM span_inbox WHERE id <= ?", (last,))
        return int(gone)

    def _next_batches(self, connection: sqlite3.Connection) -> tuple[int | None, int]:
        """Return the last batch to remove and the number of spans: by age, or a single large batch."""
        assert self._surplus is not None
        last, gone = None, 0
        query = "SELECT id, spans, body FROM span_inbox WHERE id > ? ORDER BY id"
        with contextlib.closing(connection.execute(query, (self._batch,))) as batches:
            for number, spans, body in batches:
                if self._is_dry and self._surplus > gone:
                    return number, gone + min(self._surplus - gone, spans)  # who removes them sorts them in first
                is_older = self._before_ns is not None and (newest := _newest_ns(body)) is not None and newest < self._before_ns
                if not is_older and self._surplus - gone < spans:
                    break
                last, gone = number, gone + spans
                if gone >= SLICE_WAITING:
                    break
        return last, gone


def oldest_ns(connection: sqlite3.Connection) -> int | None:
    """Estimate when the oldest span began, without reading all spans."""
    (first,) = connection.execute("SELECT min(start_ns) FROM span_spans").fetchone()
    found = connection.execute("SELECT body FROM span_inbox ORDER BY id LIMIT 1").fetchone()
    waiting = [] if found is None else _spans_of(found[0])
    return min((one for one in (first, *(span.start_ns for span in waiting)) if one is not None), default=None)


def _spans_of(body: bytes) -> list[Span]:
    try:
        return span_inbox.decode(body)
    except span_inbox.UNREADABLE:
        return []  # sorting it in finds out what can be read


_END: Final = 1 << 62  # after every span


def dry_sweep(path: Path, keep: Keep, now_ms: int) -> Sweep:
    """Count what would go, and remove nothing."""
    sweep = SpanSweep(keep, now_ms, is_dry=True)
    with contextlib.closing(connect_anywhere(path, span_rows.connect)) as connection:
        while (gone := sweep.step(connection)) is not None:
            yield Pruned(spans=gone)


def extent(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return about how many spans are sorted in, which is no less than there are, and how many wait in the inbox."""
    (first,) = connection.execute("SELECT min(id) FROM span_spans").fetchone()
    (last,) = connection.execute("SELECT max(id) FROM span_spans").fetchone()
    return (0 if first is None else last - first + 1), span_inbox.count(connection)


def _newest_ns(body: bytes) -> int | None:
    """Return when the last span of a batch ended; None if it cannot be read."""
    try:
        return span_inbox.newest_ns(body)
    except span_inbox.UNREADABLE:
        return None


def _remove(connection: sqlite3.Connection, rows: list[_Row]) -> None:
    if not rows:
        return
    resources: dict[int, dict[str, Any]] = {}
    keys: list[tuple[Any, ...]] = []
    for span_no, trace, _, span_id, kind, status, name, resource, hexed, _ in rows:
        try:
            if resource not in resources:
                (raw,) = connection.execute("SELECT body FROM span_resources WHERE id = ?", (resource,)).fetchone()
                resources[resource] = span_rows.decode_resource(raw)
            span = span_rows.decode_span("", span_id, kind, status, name, resources[resource], bytes.fromhex(hexed))
        except span_inbox.UNREADABLE:  # what the index holds of it can only be found by looking at all of the index
            connection.execute("DELETE FROM span_keys WHERE span = ?", (span_no,))
        else:
            keys += [(key, value, trace, span_no) for key, value in keys_of(span)]
    keys.sort(key=lambda row: (row[0], str(row[1])))  # in the index's own order, so that a page is touched once
    entry = "(key = ? AND value = ? AND trace = ? AND span = ?)"
    bulk.run(connection, "DELETE FROM span_keys WHERE ", entry, "", list(chain.from_iterable(keys)), between=" OR ")
    gone = bulk.array([row[0] for row in rows])
    connection.execute("DELETE FROM span_spans WHERE id IN (SELECT value FROM json_each(?))", (gone,))
    connection.execute(_FORGET_TRACES, (bulk.array(list({row[1] for row in rows})),))


def keys_of(span: Span) -> Iterator[tuple[int, str | int | float | None]]:
    """Yield the index entries of a span."""
    yield KEY_OF_NAME, span_rows.indexed_value(span.name)
    yield from span_rows.keys_of(span.resource)
    yield from span_rows.keys_of(span.attributes)
    if (root := span_rows.unnamed_session(span.attributes)) is not None:
        yield KEY_OF_SESSION, root
