"""The inbox of the span store: spans written down in the quickest form, and made searchable later.

Writing a span with its index entries costs as much as half a durable call. A busy node only puts batches here, a few
microseconds a span; they are sorted in when the node has nothing else to do, or by the first reader.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from comity.core.tracing.call_spans import call_span
from comity.core.tracing.span import Span
from comity.core.tracing.telemetry import Ended, Origin, is_of_session
from comity.core.units import NS_PER_MS
from comity.engines.sqlite.connecting import connect_anywhere
from comity.engines.sqlite.spans import losses as span_losses
from comity.engines.sqlite.spans import rows as span_rows

log = logging.getLogger("comity")

PUT: Final = "INSERT INTO span_inbox (spans, body) VALUES (?, ?)"
LOSSES: Final = "SELECT why, spans, last_at FROM span_losses ORDER BY why"
LOST: Final = (
    "INSERT INTO span_losses VALUES (?, ?, ?) ON CONFLICT (why) DO UPDATE SET "
    "spans = spans + excluded.spans, last_at = excluded.last_at"
)
_OF_SESSION: Final = (
    "SELECT s.id, s.body FROM span_keys AS k JOIN span_spans AS s ON s.id = k.span WHERE k.key IN (?, ?) AND k.value = ?"
)

# What reading something raises that was written by a program that did not check it, or that was damaged since.
UNREADABLE: Final = (msgspec.DecodeError, ValueError, TypeError, IndexError, KeyError)
UNSOUND: Final = (*UNREADABLE, OverflowError)  # and what writing raises
_NOT_READ: Final = "they could not be read"

_Row = tuple[str, str, int, int, str, int, bytes]
_One = TypeVar("_One")


class _Batch(msgspec.Struct, array_like=True):
    """Ended calls of one origin, and other spans as rows; `resources` are the encoded attributes the rows point to."""

    origin: Origin
    ended: list[Ended]
    resources: list[bytes]
    rows: list[_Row]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Batch).decode


def encode(origin: Origin, ended: Sequence[Ended], spans: Sequence[Span]) -> bytes:
    """Return a batch as bytes. Raises one of `UNSOUND` if something in it could not be read again."""
    resources: dict[int, int] = {}
    encoded: list[bytes] = []
    rows: list[_Row] = []
    for span in spans:
        at = resources.setdefault(id(span.resource), len(encoded))
        if at == len(encoded):
            encoded.append(span_rows.encode_resource(span.resource))
        span_id, kind, status, *_ = span_rows.columns(span)
        rows.append((span.trace_id, span_id, kind, status, span.name, at, span_rows.encode_body(span)))
    body = _encode(_Batch(origin, list(ended), encoded, rows))
    if rows:  # what ends a call was checked when the call came; what else is recorded may hold anything
        for row in _decode(body).rows:
            span_rows.check_body(row[-1])
    return body


def sound(origin: Origin, ended: Sequence[Ended], spans: Sequence[Span]) -> tuple[list[Ended], list[Span], list[Exception]]:
    """Return those of a batch that can be written and read again, and why the others cannot."""
    bad: list[Exception] = []

    def keeps(ended: Sequence[Ended], spans: Sequence[Span]) -> bool:
        try:
            decode(encode(origin, ended, spans))
        except UNSOUND as error:
            bad.append(error)
            return False
        return True

    return [one for one in ended if keeps((one,), ())], [one for one in spans if keeps((), (one,))], bad


def decode(body: bytes) -> list[Span]:
    """Return the spans of a batch."""
    batch = _decode(body)
    resources = [span_rows.decode_resource(raw) for raw in batch.resources]
    return [*(call_span(ended, batch.origin) for ended in batch.ended), *(_revive(row, resources) for row in batch.rows)]


def newest_ns(body: bytes) -> int | None:
    """Return when the last span of a batch ended; None if it has none."""
    batch = _decode(body)
    others = (_revive(row, [{}] * len(batch.resources)).end_ns for row in batch.rows)
    return max(chain((one.end_ns for one in batch.ended), others), default=None)


def _revive(row: _Row, resources: Sequence[dict[str, Any]]) -> Span:
    trace_id, span_id, kind, status, name, at, raw = row
    return span_rows.decode_span(trace_id, span_id, kind, status, name, resources[at], raw)


def _salvage(body: bytes) -> list[Span]:
    """Return those spans of a batch that can be read, where not all can."""
    try:
        raw_origin, ended, raw_resources, rows = msgspec.msgpack.decode(body)
        origin, resources = msgspec.convert(raw_origin, Origin), [span_rows.decode_resource(raw) for raw in raw_resources]
    except UNREADABLE:
        return []
    calls = _readable(ended, lambda raw: call_span(msgspec.convert(raw, Ended), origin))
    return [*calls, *_readable(rows, lambda raw: _revive(msgspec.convert(raw, _Row), resources))]


def _readable(raws: Sequence[Any], read: Callable[[Any], _One]) -> Iterator[_One]:
    for raw in raws:
        with contextlib.suppress(*UNREADABLE):
            yield read(raw)


def overview(path: Path, most: int = -1) -> tuple[int, int, list[tuple[str, int, int]]]:
    """Return how many spans a file holds, how many wait in its inbox, and its losses, without changing it.

    At most `most` spans are counted, if it is given: counting a million takes 40 ms.
    """
    with contextlib.closing(connect_anywhere(path, span_rows.connect)) as connection:
        kept = connection.execute("SELECT count(*) FROM (SELECT 1 FROM span_spans LIMIT ?)", (most,)).fetchone()[0]
        waiting = count(connection)
        losses = connection.execute(LOSSES).fetchall()
    aside, last_at = span_losses.read(path)
    return kept, waiting, [*losses, (span_losses.WHY, aside, last_at)] if aside else losses


def count(connection: sqlite3.Connection) -> int:
    """Return how many spans wait."""
    found: int = connection.execute("SELECT coalesce(sum(spans), 0) FROM span_inbox").fetchone()[0]
    return found


def take(connection: sqlite3.Connection, spans_max: int) -> list[Span]:
    """Remove the oldest batches within a transaction, about `spans_max` spans, and return what they hold."""
    found: list[Span] = []
    rows = connection.execute("SELECT id, spans, body FROM span_inbox ORDER BY id")
    taken = lost = 0
    for number, count, body in rows:
        try:
            found += decode(body)
        except UNREADABLE as error:  # an unreadable batch must not keep the others from readers
            left = _salvage(body)
            found += left
            lost += count - len(left)
            log.error("%d of %d spans cannot be read and are lost: %s", count - len(left), count, error)  # noqa: TRY400
        taken = number
        if len(found) >= spans_max:
            break
    rows.close()
    connection.execute("DELETE FROM span_inbox WHERE id <= ?", (taken,))
    if lost:
        connection.execute(LOST, (_NOT_READ, lost, time.time_ns() // NS_PER_MS))
    return found


def erase(connection: sqlite3.Connection, session_id: str, tenant_id: str) -> int:
    """Remove the spans of a session within a transaction and return how many."""
    named, unnamed = span_rows.INDEXED["gen_ai.conversation.id"], span_rows.KEY_OF_SESSION
    found: set[int] = set()
    for number, body in connection.execute(_OF_SESSION, (named, unnamed, span_rows.indexed_value(session_id))).fetchall():
        try:
            attributes = span_rows.decode_span("", "", 0, 0, "", {}, body).attributes
        except UNREADABLE:  # no reader can tell whose it is, nor show it
            found.add(number)
            continue
        if is_of_session(attributes, session_id, tenant_id):
            found.add(number)
    gone = msgspec.json.encode(sorted(found)).decode()
    connection.execute("DELETE FROM span_keys WHERE span IN (SELECT value FROM json_each(?))", (gone,))
    connection.execute("DELETE FROM span_spans WHERE id IN (SELECT value FROM json_each(?))", (gone,))
    return len(found)
