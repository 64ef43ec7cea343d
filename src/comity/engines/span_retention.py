"""Removing spans that are kept no longer, a slice at a time.

By age a trace goes as a whole, once its last span is too old. By count the spans go that came first, wherever they are: first
those that are sorted in, then whole batches of the inbox.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from comity.core.retention import Keep, Pruned, Sweep
from comity.core.span import Span
from comity.engines import span_inbox, span_rows
from comity.engines.span_rows import KEY_OF_NAME, KEY_OF_SESSION, clamp
from comity.engines.tables import connect_anywhere

SLICE_SPANS: Final = 500
_READ: Final = (
    "SELECT s.id, s.trace, s.start_ns, s.span_id, s.kind, s.status, s.name, s.resource, s.body, t.end_ns "
    "FROM span_spans AS s JOIN span_traces AS t ON t.no = s.trace WHERE s.id > ? ORDER BY s.id LIMIT ?"
)
_DELETE_KEY: Final = "DELETE FROM span_keys WHERE key = ? AND value = ? AND trace = ? AND span = ?"
_FORGET_TRACE: Final = (
    "DELETE FROM span_traces WHERE no = ? AND NOT EXISTS (SELECT 1 FROM span_spans WHERE span_spans.trace = span_traces.no)"
)
_Row = tuple[Any, ...]


class SpanSweep:
    """One pass over the spans of a file."""

    def __init__(self, keep: Keep, now_ms: int, *, is_dry: bool = False) -> None:
        before = keep.before_ms(now_ms)
        self._before_ns = None if before is None else clamp(before * 1_000_000)
        self._count = keep.count
        self._is_dry = is_dry
        self._seen = 0  # the id up to which spans were looked at
        self._batch = 0  # and batches of the inbox
        self._surplus: int | None = None  # how many are to go by number

    def step(self, connection: sqlite3.Connection) -> int | None:
        """Remove a slice within a transaction and return how many spans; None once there is nothing more to look at."""
        if self._surplus is None:
            kept, waiting = extent(connection)
            self._surplus = 0 if self._count is None else max(kept + waiting - self._count, 0)
        rows = connection.execute(_READ, (self._seen, SLICE_SPANS)).fetchall()
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
        """Remove whole batches of what was not sorted in, if all of one goes."""
        query = "SELECT id, spans, body FROM span_inbox WHERE id > ? ORDER BY id LIMIT 1"
        found = connection.execute(query, (self._batch,)).fetchone()
        if found is None:
            return None
        self._batch, spans, body = found
        assert self._surplus is not None
        if self._is_dry and self._surplus > 0:
            spans = min(self._surplus, spans)  # who removes them sorts them in first
            self._surplus -= spans
        elif self._surplus >= spans:
            self._surplus -= spans
        elif self._before_ns is None or not _is_older(body, self._before_ns):
            return None
        if not self._is_dry:
            connection.execute("DELETE FROM span_inbox WHERE id = ?", (self._batch,))
        return int(spans)


def oldest_ns(connection: sqlite3.Connection) -> int | None:
    """Return when the oldest span began, as far as can be told without looking at all."""
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
    (waiting,) = connection.execute("SELECT coalesce(sum(spans), 0) FROM span_inbox").fetchone()
    return (0 if first is None else last - first + 1), waiting


def _is_older(body: bytes, before_ns: int) -> bool:
    spans = _spans_of(body)
    return bool(spans) and all(span.end_ns < before_ns for span in spans)


def _remove(connection: sqlite3.Connection, rows: list[_Row]) -> None:
    if not rows:
        return
    resources: dict[int, dict[str, Any]] = {}
    keys: list[tuple[Any, ...]] = []
    for span_no, trace, _, span_id, kind, status, name, resource, body, _ in rows:
        try:
            if resource not in resources:
                (raw,) = connection.execute("SELECT body FROM span_resources WHERE id = ?", (resource,)).fetchone()
                resources[resource] = span_rows.decode_resource(raw)
            span = span_rows.decode_span("", span_id, kind, status, name, resources[resource], body)
        except span_inbox.UNREADABLE:  # what the index holds of it can only be found by looking at all of the index
            connection.execute("DELETE FROM span_keys WHERE span = ?", (span_no,))
        else:
            keys += [(key, value, trace, span_no) for key, value in keys_of(span)]
    keys.sort(key=lambda row: (row[0], str(row[1])))  # in the index's own order, so that a page is touched once
    connection.executemany(_DELETE_KEY, keys)
    connection.executemany("DELETE FROM span_spans WHERE id = ?", [(row[0],) for row in rows])
    connection.executemany(_FORGET_TRACE, [(trace,) for trace in {row[1] for row in rows}])


def keys_of(span: Span) -> Iterator[tuple[int, str | int | float | None]]:
    """Yield what the index holds of a span."""
    yield KEY_OF_NAME, span_rows.indexed_value(span.name)
    yield from span_rows.keys_of(span.resource)
    yield from span_rows.keys_of(span.attributes)
    if (root := span_rows.unnamed_session(span.attributes)) is not None:
        yield KEY_OF_SESSION, root
