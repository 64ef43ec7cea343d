"""The embedded span store: spans in SQLite, found by TraceQL.

A query runs in two steps. SQLite names the traces that may match, newest arrival first, from an index where the query allows
and by a scan otherwise; the query engine then decides on those traces alone. So the answer is the engine's, and equal to
running it over everything. Readers see one state of the file for the whole of a query and never wait for a writer, which may
be another process.
"""

from __future__ import annotations

import contextlib
import copy
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from comity.core.journal.retention import Keep, Pruned, Sweep
from comity.core.tracing.query import (
    Fault,
    Prefilter,
    Query,
    QueryError,
    SearchResult,
    Series,
    lenient,
    matched_spans,
    prefilter,
)
from comity.core.tracing.query import query_instant as run_instant
from comity.core.tracing.query import query_range as run_range
from comity.core.tracing.query import search as run_search
from comity.core.tracing.query.conditions import Condition
from comity.core.tracing.query.rewrite import newest_first
from comity.core.tracing.query.search import LIMIT_DEFAULT, SPANS_PER_SPANSET_DEFAULT, searchable
from comity.core.tracing.span import Attributes, Span, SpanError
from comity.core.tracing.telemetry import Ended, Origin, tenant_of
from comity.engines.sqlite import file as store_file
from comity.engines.sqlite.files import StoreFiles, database_files
from comity.engines.sqlite.spans import inbox as span_inbox
from comity.engines.sqlite.spans import rows as span_rows
from comity.engines.sqlite.spans.plan import Lookup, Pair, RowCondition, choose, lookups, row_condition
from comity.engines.sqlite.spans.rows import KEY_OF_NAME, KEY_OF_SESSION, KEY_OF_TRACE, clamp
from comity.errors import UnavailableError

log = logging.getLogger("comity")

# How far an index entry is counted when the shortest list is chosen.
ESTIMATE_MAX: Final = 2_000
# A time range with fewer traces than this is read trace by trace instead of scanning the whole table.
RANGE_TRACES_MAX: Final = 5_000
RANGE_SPANS_MAX: Final = 50_000
# How many of the newest traces are tried first, since most searches without an index are full after a few.
PROBED_TRACES: Final = 500
RESOURCES_CACHED_MAX: Final = 10_000
# How many spans of the inbox are indexed at a time.
SORTED_IN_SPANS: Final = 4_096
_NOWHERE: Final = float("inf")

_UPSERT_TRACE = (
    "INSERT INTO span_traces (trace_id, start_ns, end_ns) VALUES (?, ?, ?) ON CONFLICT (trace_id) DO UPDATE SET "
    "start_ns = min(start_ns, excluded.start_ns), end_ns = max(end_ns, excluded.end_ns) RETURNING no"
)
_INSERT_RESOURCE = "INSERT INTO span_resources (body) VALUES (?) ON CONFLICT (body) DO UPDATE SET body = body RETURNING id"
_INSERT_SPAN = "INSERT INTO span_spans VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_KEY = "INSERT OR IGNORE INTO span_keys VALUES (?, ?, ?, ?)"
_KNOWN_SPAN = "SELECT 1 FROM span_spans WHERE trace = ? AND span_id = ? AND kind = ?"
_ALSO_UNDER = "EXISTS (SELECT 1 FROM span_keys AS x WHERE x.key = ? AND x.value = ? AND x.trace = k.trace AND x.span = k.span)"
_SPAN_COLUMNS = "s.span_id, s.kind, s.status, s.name, s.resource, s.body"
_BY_TRACE = f"SELECT {_SPAN_COLUMNS} FROM span_spans AS s WHERE s.trace = ? ORDER BY s.id"  # noqa: S608


class SpanStore:
    """Spans in one file, which may also hold other tables: all names here begin with `span_`.

    An archived file cannot be written, and is read by one thread.
    """

    is_far = False

    def __init__(self, path: str | Path, *, is_archived: bool = False) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._local = threading.local()
        self._readers: list[sqlite3.Connection] = []
        self._resources: dict[int, Attributes] = {}
        self._files = StoreFiles()  # none of an archived one
        self._writer: sqlite3.Connection | None = None
        self._keep: Callable[[Span], bool] | None = None
        try:
            if is_archived:
                self._writer = self._local.connection = span_rows.connect_archived(self.path)
            else:
                store_file.make_file(self.path)
                self._writer = span_rows.connect(self.path)
                span_rows.prepare(self._writer)
                self._files = StoreFiles(*database_files(self.path))
        except (sqlite3.Error, OSError) as error:
            self.close()
            raise _unavailable(f"cannot open the span store {self.path}: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Release the file."""
        with self._lock:
            for connection in self._readers:
                connection.close()
            if self._writer is not None:
                self._files.close(self._writer, self.path)
            self._readers, self._writer = [], None

    def check(self) -> None:
        """Raise `UnavailableError` if one of its files was removed or replaced: what is in it would be found by no reader."""
        try:
            self._files.check()
        except OSError as error:
            raise _unavailable(f"the span store {self.path} is gone: {error}", retryable=False) from error

    # --- writing ---

    def ingest(self, spans: Iterable[Span]) -> int:
        """Store spans durably, all or none, and return how many were new. A span sent again is stored once.

        A span is known by its trace, id and kind: the two halves of a remote call may share an id.
        """
        with self._writing() as connection:
            return self._store(connection, list(spans))

    def post(self, origin: Origin, ended: Sequence[Ended], spans: Sequence[Span] = ()) -> None:
        """Store ended calls and other spans durably in the inbox: quick, and indexed by the first query."""
        body = span_inbox.encode(origin, ended, spans)
        with self._writing() as connection:
            connection.execute(span_inbox.PUT, (len(ended) + len(spans), body))

    def sort_in(self, spans_max: int = SORTED_IN_SPANS) -> bool:
        """Make some of what is in the inbox searchable; return whether anything was left to do."""
        with self._writing() as connection:
            batch = span_inbox.take(connection, spans_max)
            self._store(connection, batch)
        return bool(batch)

    def waiting(self) -> int:
        """Return how many spans are in the inbox."""
        with self._writing() as connection:
            return span_inbox.count(connection)

    def note_loss(self, why: str, spans: int, *, at_ms: int) -> None:
        """Remember that spans were lost, so that it can be seen."""
        with self._writing() as connection:
            connection.execute(span_inbox.LOST, (why, spans, at_ms))

    def erase(self, session_id: str, *, tenant_id: str = "default") -> int:
        """Remove every span of a session for good and return how many. Their traces are still counted as having been."""
        while self.sort_in():
            pass
        with self._writing() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            erased = span_inbox.erase(connection, session_id, tenant_id)
        self._checkpoint("TRUNCATE")
        return erased

    def _checkpoint(self, how: str) -> None:
        """Copy the log into the file."""
        with self._lock, contextlib.suppress(sqlite3.Error):  # readers may hold the log open a little longer
            if self._writer is not None:
                self._writer.execute(f"PRAGMA wal_checkpoint({how})")

    def prune(self, keep: Keep, now_ms: int) -> Sweep:
        """Remove spans that are kept no longer, a slice with each step."""
        from comity.engines.sqlite.spans.retention import SpanSweep  # noqa: PLC0415  few nodes remove anything

        sweep = SpanSweep(keep, now_ms)
        while True:
            with self._writing() as connection:
                gone = sweep.step(connection)
            if gone is None:
                break
            yield Pruned(spans=gone)
        self._checkpoint("PASSIVE")  # else the log grows until it has some 128 MB, of spans that are gone

    def _store(self, connection: sqlite3.Connection, batch: list[Span]) -> int:
        bodies = [span_rows.encode_body(span) for span in batch]
        resources = {id(span.resource): span.resource for span in batch}
        encoded = {key: span_rows.encode_resource(attributes) for key, attributes in resources.items()}
        resource_ids = self._store_resources(connection, encoded)
        return _write(connection, batch, bodies, resource_ids)

    def _store_resources(self, connection: sqlite3.Connection, encoded: dict[int, bytes]) -> dict[int, int]:
        found: dict[int, int] = {}
        for key, body in encoded.items():
            found[key] = connection.execute(_INSERT_RESOURCE, (body,)).fetchone()[0]
        return found

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if self._writer is None:
                raise _unavailable(f"the span store {self.path} is closed")
            self.check()
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                try:
                    yield self._writer
                    self.check()
                    self._writer.execute("COMMIT")
                except BaseException:
                    with contextlib.suppress(sqlite3.Error):
                        self._writer.execute("ROLLBACK")
                    raise
            except UnicodeEncodeError as error:
                raise SpanError("span", f"holds what cannot be stored: {error}") from None
            except sqlite3.Error as error:
                raise _unavailable(f"the span store {self.path} could not be written: {error}") from error

    # --- reading ---

    def losses(self) -> list[tuple[str, int, int]]:
        """Return why spans were lost, how many, and when last (epoch milliseconds)."""
        with self._reading() as connection:
            return connection.execute(span_inbox.LOSSES).fetchall()

    def count(self) -> int:
        """Return how many spans are stored."""
        with self._reading() as connection:
            found: int = connection.execute("SELECT count(*) FROM span_spans").fetchone()[0]
            return found

    def of_tenant(self, tenant_id: str) -> SpanStore:
        """Return this store as one tenant sees it: reading finds spans of that tenant alone."""
        seen = copy.copy(self)
        seen._keep = lambda span: tenant_of(span.attributes) == tenant_id  # noqa: SLF001  its own kind
        return seen

    def trace(self, trace_id: str) -> list[Span]:
        """Return the spans of a trace in the order they arrived; none if it is unknown. Leading zeros may be missing."""
        with self._reading() as connection:
            found = connection.execute("SELECT no FROM span_traces WHERE trace_id = ?", (trace_id.rjust(32, "0"),)).fetchone()
            return self._load(connection, found[0], None, None) if found else []

    def search(
        self,
        query: str | Query,
        *,
        start_ns: int | None = None,
        end_ns: int | None = None,
        limit: int = LIMIT_DEFAULT,
        spss: int = SPANS_PER_SPANSET_DEFAULT,
        strict: bool = False,
    ) -> SearchResult:
        """Return the traces a query finds, those that arrived last first until the limit; 0 means no limit.

        Unless `strict`, a text may leave out scopes and use old attribute names; see `core.tracing.query.rewrite`.
        """
        prepared = searchable(lenient(query, strict=strict))
        with self._reading() as connection:
            wanted = prefilter(prepared)
            numbers = self._candidates(connection, wanted.trace, start_ns, end_ns)
            traces = (self._load(connection, number, start_ns, end_ns) for number in numbers)
            return run_search(prepared, traces, start_ns=start_ns, end_ns=end_ns, limit=limit, spans_per_spanset=spss)

    def find(self, query: str | Query, *, start_ns: int | None = None, end_ns: int | None = None, limit: int = 0) -> list[Span]:
        """Return every span a query finds, whole; with a `limit`, only the spans of the newest `limit` traces."""
        asked = newest_first(lenient(query)) if limit else query
        return matched_spans(self.search(asked, start_ns=start_ns, end_ns=end_ns, limit=limit, spss=0))

    def query_range(
        self, query: str | Query, *, start_ns: int, end_ns: int, step_ns: int, strict: bool = False
    ) -> tuple[Series, ...]:
        """Return the time series of a metrics query."""
        prepared = lenient(query, strict=strict)
        with self._reading() as connection:
            # The range is widened to whole steps and by one before, so as much more on each side is looked at.
            traces = self._measured(connection, prefilter(prepared), start_ns - 2 * abs(step_ns), end_ns + abs(step_ns))
            return run_range(prepared, traces, start_ns=start_ns, end_ns=end_ns, step_ns=step_ns)

    def query_instant(self, query: str | Query, *, start_ns: int, end_ns: int, strict: bool = False) -> tuple[Series, ...]:
        """Return one sample for each series of a metrics query, over the whole range."""
        prepared = lenient(query, strict=strict)
        with self._reading() as connection:
            traces = self._measured(connection, prefilter(prepared), start_ns, end_ns)
            return run_instant(prepared, traces, start_ns=start_ns, end_ns=end_ns)

    def _measured(
        self, connection: sqlite3.Connection, wanted: Prefilter, start_ns: int, end_ns: int
    ) -> Iterator[Sequence[Span]]:
        if wanted.span is None:
            for number in self._candidates(connection, wanted.trace, start_ns, end_ns):
                yield self._load(connection, number, start_ns, end_ns)
            return
        # Nothing but these spans is looked at, so their traces are not read.
        start = _start_of_scan(connection, self._best(connection, wanted.span)[0], clamp(start_ns), clamp(end_ns))
        test = row_condition(wanted.span)
        sql = f"SELECT t.trace_id, {_SPAN_COLUMNS} FROM {start.sql} AND {test.sql or '1'}"  # noqa: S608
        for trace_id, *row in connection.execute(sql, (*start.parameters, *test.parameters)):
            yield self._spans(connection, trace_id, (row,))

    def _load(self, connection: sqlite3.Connection, number: int, start_ns: int | None, end_ns: int | None) -> list[Span]:
        """Return the spans of a trace, or none if it lies outside the time range."""
        trace_id, first_ns, last_ns = connection.execute(
            "SELECT trace_id, start_ns, end_ns FROM span_traces WHERE no = ?", (number,)
        ).fetchone()
        if (end_ns is not None and first_ns > clamp(end_ns)) or (start_ns is not None and last_ns < clamp(start_ns)):
            return []
        return self._spans(connection, trace_id, connection.execute(_BY_TRACE, (number,)).fetchall())

    def _spans(self, connection: sqlite3.Connection, trace_id: str, rows: Iterable[Sequence[Any]]) -> list[Span]:
        """Return the spans of rows of a trace; a span that cannot be read is named and passed over."""
        found, keep = [], self._keep
        for row in rows:
            try:
                span = self._span(connection, trace_id, row)
                if keep is None or keep(span):
                    found.append(span)
            except span_inbox.UNREADABLE as error:
                log.error("span %s of trace %s cannot be read and is passed over: %s", row[0], trace_id, error)  # noqa: TRY400
        return found

    def _span(self, connection: sqlite3.Connection, trace_id: str, row: Sequence[Any]) -> Span:
        span_id, kind, status, name, resource, body = row
        if (attributes := self._resources.get(resource)) is None:
            found = connection.execute("SELECT body FROM span_resources WHERE id = ?", (resource,)).fetchone()[0]
            if len(self._resources) >= RESOURCES_CACHED_MAX:
                self._resources.clear()
            attributes = self._resources.setdefault(resource, span_rows.decode_resource(found))
        return span_rows.decode_span(trace_id, span_id, kind, status, name, attributes, body)

    # --- which traces may match ---

    def _candidates(
        self, connection: sqlite3.Connection, condition: Condition, start_ns: int | None, end_ns: int | None
    ) -> Iterator[int]:
        """Yield the numbers of traces that may match, highest first: numbers are given on arrival."""
        chosen = choose(condition, lambda span: self._best(connection, span)[1])
        lists: list[Iterable[int]] = []
        for span in chosen:
            lookup, _ = self._best(connection, span)
            test = row_condition(span)
            if lookup is not None:
                others = [other for other in lookups(span) if other != lookup]
                lists += [_from_index(connection, pair, others, test) for pair in lookup]
            elif (few := _from_range(connection, test, start_ns, end_ns)) is not None:
                lists.append(few)
            else:
                lists.append(_from_scan(connection, test))
        last = None
        for number in merge(*lists, reverse=True):
            if number != last:
                yield number
            last = number

    def _best(self, connection: sqlite3.Connection, condition: Condition) -> tuple[Lookup | None, float]:
        """Return the lookup with the shortest lists, and their length as far as it was counted."""
        best: tuple[Lookup | None, float] = (None, _NOWHERE)
        for lookup in lookups(condition):
            length = sum(_length(connection, pair) for pair in lookup)
            if length < best[1]:
                best = (lookup, length)
        return best

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = self._reader()
            while connection.execute("SELECT 1 FROM span_inbox").fetchone() and self.sort_in():
                pass
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")
        except UnicodeEncodeError:
            raise QueryError(
                "the query holds half of a surrogate pair", fault=Fault.INVALID, expected="valid Unicode"
            ) from None
        except (sqlite3.Error, msgspec.DecodeError) as error:
            raise _unavailable(f"cannot read the span store {self.path}: {error}") from error

    def _reader(self) -> sqlite3.Connection:
        if self._writer is None:
            raise _unavailable(f"the span store {self.path} is closed")
        self.check()
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None:
            found = self._local.connection = span_rows.connect(self.path, read_only=True)
            with self._lock:
                self._readers.append(found)
        return found


def _write(connection: sqlite3.Connection, batch: list[Span], bodies: list[bytes], resource_ids: dict[int, int]) -> int:
    newest, span_no = (
        connection.execute(f"SELECT coalesce(max({column}), 0) FROM {table}").fetchone()[0]  # noqa: S608
        for column, table in (("no", "span_traces"), ("id", "span_spans"))
    )
    numbers = {
        trace_id: connection.execute(_UPSERT_TRACE, (trace_id, *bounds)).fetchone()[0]
        for trace_id, bounds in _bounds(batch).items()
    }
    resources = {id(span.resource): span.resource for span in batch}
    resource_keys = {key: tuple(span_rows.keys_of(attributes)) for key, attributes in resources.items()}
    seen: set[tuple[int, str, int]] = set()
    rows: list[tuple[Any, ...]] = []
    keys: list[tuple[Any, ...]] = []
    for span, body in zip(batch, bodies, strict=True):
        number = numbers[span.trace_id]
        columns = span_rows.columns(span)
        identity = (number, columns[0], columns[1])
        if identity in seen or (number <= newest and connection.execute(_KNOWN_SPAN, identity).fetchone()):
            continue
        seen.add(identity)
        span_no += 1
        rows.append((span_no, number, *columns, resource_ids[id(span.resource)], body))
        keys.append((KEY_OF_NAME, span_rows.indexed_value(span.name), number, span_no))
        keys += [(key, value, number, span_no) for key, value in resource_keys[id(span.resource)]]
        keys += [(key, value, number, span_no) for key, value in span_rows.keys_of(span.attributes)]
        if (root := span_rows.unnamed_session(span.attributes)) is not None:
            keys.append((KEY_OF_SESSION, root, number, span_no))
    connection.executemany(_INSERT_SPAN, rows)
    # In the index's own order, so that a page is touched once per batch.
    keys.sort(key=lambda row: (row[0], str(row[1])))
    connection.executemany(_INSERT_KEY, keys)
    return len(rows)


def _bounds(batch: list[Span]) -> dict[str, tuple[int, int]]:
    """Return when each trace of a batch starts and ends, traces in order of appearance."""
    found: dict[str, tuple[int, int]] = {}
    for span in batch:
        first, last = clamp(span.start_ns), clamp(max(span.start_ns, span.end_ns))
        known = found.get(span.trace_id)
        found[span.trace_id] = (first, last) if known is None else (min(known[0], first), max(known[1], last))
    return found


# --- lists of trace numbers, highest first ---


def _length(connection: sqlite3.Connection, pair: Pair) -> int:
    if pair[0] == KEY_OF_TRACE:
        return 1
    sql = "SELECT count(*) FROM (SELECT 1 FROM span_keys WHERE key = ? AND value = ? LIMIT ?)"
    found: int = connection.execute(sql, (*pair, ESTIMATE_MAX)).fetchone()[0]
    return found


def _from_index(connection: sqlite3.Connection, pair: Pair, others: list[Lookup], test: RowCondition) -> Iterator[int]:
    """Return the traces of one index entry. The row is only read once the span is found under the other entries too."""
    if pair[0] == KEY_OF_TRACE:
        return _numbers(connection, "SELECT no FROM span_traces WHERE trace_id = ?", (pair[1],))
    probes = [lookup for lookup in others if all(key != KEY_OF_TRACE for key, _ in lookup)]
    where = "".join(f" AND ({' OR '.join([_ALSO_UNDER] * len(lookup)) or '0'})" for lookup in probes)
    parameters = [*pair, *(one for lookup in probes for place in lookup for one in place), *test.parameters]
    source = "span_keys AS k"
    if test.sql is not None:
        source, where = f"{source} CROSS JOIN span_spans AS s ON s.id = k.span", f"{where} AND {test.sql}"
    sql = f"SELECT k.trace FROM {source} WHERE k.key = ? AND k.value = ?{where} ORDER BY k.trace DESC"  # noqa: S608
    return _numbers(connection, sql, parameters)


def _from_range(
    connection: sqlite3.Connection, test: RowCondition, start_ns: int | None, end_ns: int | None
) -> Iterator[int] | None:
    """Return the traces of a time range that has few, or None."""
    if start_ns is None:
        return None
    counted = "SELECT count(*) FROM (SELECT 1 FROM span_traces WHERE end_ns >= ? LIMIT ?)"
    if connection.execute(counted, (clamp(start_ns), RANGE_TRACES_MAX)).fetchone()[0] >= RANGE_TRACES_MAX:
        return None
    sql = f"SELECT t.no FROM span_traces AS t INDEXED BY span_traces_end WHERE t.end_ns >= ?{_having(test)}"  # noqa: S608
    bounds: tuple[int, ...] = (clamp(start_ns),)
    if end_ns is not None:
        sql, bounds = f"{sql} AND t.start_ns <= ?", (*bounds, clamp(end_ns))
    return iter(sorted(_numbers(connection, sql, (bounds[0], *test.parameters, *bounds[1:])), reverse=True))


def _from_scan(connection: sqlite3.Connection, test: RowCondition) -> Iterator[int]:
    if test.sql is None:
        yield from _numbers(connection, "SELECT no FROM span_traces ORDER BY no DESC", ())
        return
    newest = connection.execute("SELECT coalesce(max(no), 0) FROM span_traces").fetchone()[0]
    probe = f"SELECT t.no FROM span_traces AS t WHERE t.no > ?{_having(test)} ORDER BY t.no DESC"  # noqa: S608
    yield from _numbers(connection, probe, (newest - PROBED_TRACES, *test.parameters))
    # Rows as they lie in the file: following an index would visit them in no order.
    sql = f"SELECT s.trace FROM span_spans AS s NOT INDEXED WHERE s.trace <= ? AND {test.sql}"  # noqa: S608
    yield from sorted(set(_numbers(connection, sql, (newest - PROBED_TRACES, *test.parameters))), reverse=True)


def _having(test: RowCondition) -> str:
    if test.sql is None:
        return ""
    return f" AND EXISTS (SELECT 1 FROM span_spans AS s WHERE s.trace = t.no AND {test.sql})"  # noqa: S608


def _numbers(connection: sqlite3.Connection, sql: str, parameters: Iterable[Any]) -> Iterator[int]:
    return (number for (number,) in connection.execute(sql, tuple(parameters)))


def _start_of_scan(connection: sqlite3.Connection, lookup: Lookup | None, start_ns: int, end_ns: int) -> RowCondition:
    """Return from where and how the spans of a time range are read one by one."""
    traced = "JOIN span_traces AS t ON t.no = s.trace WHERE"
    if lookup is not None:
        traces = [(value,) for key, value in lookup if key == KEY_OF_TRACE]
        keys = [pair for pair in lookup if pair[0] != KEY_OF_TRACE]
        places = [
            f"{column} IN (SELECT {found} WHERE {name} IN (VALUES {', '.join([marks] * len(values))}))"
            for column, found, name, marks, values in (
                ("s.trace", "no FROM span_traces", "(trace_id)", "(?)", traces),
                ("s.id", "span FROM span_keys", "(key, value)", "(?, ?)", keys),
            )
            if values
        ]
        where = f"({' OR '.join(places) or '0'}) AND +s.start_ns BETWEEN ? AND ?"
        parameters = [one for values in (*traces, *keys) for one in values]
        return RowCondition(f"span_spans AS s {traced} {where}", [*parameters, start_ns, end_ns])
    counted = "SELECT count(*) FROM (SELECT 1 FROM span_spans WHERE start_ns BETWEEN ? AND ? LIMIT ?)"
    few = connection.execute(counted, (start_ns, end_ns, RANGE_SPANS_MAX)).fetchone()[0] < RANGE_SPANS_MAX
    way = "INDEXED BY span_start" if few else "NOT INDEXED"
    return RowCondition(f"span_spans AS s {way} {traced} s.start_ns BETWEEN ? AND ?", [start_ns, end_ns])


def _unavailable(message: str, *, retryable: bool | None = None) -> UnavailableError:
    return UnavailableError(message, code="STORE_UNAVAILABLE", retryable=retryable)
