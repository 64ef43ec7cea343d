"""The inbox of the span store: spans written down in the quickest form, and made searchable later.

Writing a span with its index entries costs as much as half a durable call. A busy node only puts batches here, a few
microseconds a span; they are sorted in when the node has nothing else to do, or by whoever asks first.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from comity.core.span import Span
from comity.core.telemetry import Ended, Origin, call_span, is_of_session
from comity.engines import span_rows
from comity.engines.tables import connect_anywhere

PUT: Final = "INSERT INTO span_inbox (spans, body) VALUES (?, ?)"
LOSSES: Final = "SELECT why, spans, last_at FROM span_losses ORDER BY why"
LOST: Final = (
    "INSERT INTO span_losses VALUES (?, ?, ?) ON CONFLICT (why) DO UPDATE SET "
    "spans = spans + excluded.spans, last_at = excluded.last_at"
)
_OF_SESSION: Final = (
    "SELECT s.id, s.body FROM span_keys AS k JOIN span_spans AS s ON s.id = k.span WHERE k.key IN (?, ?) AND k.value = ?"
)

_Row = tuple[str, str, int, int, str, int, bytes]


class _Batch(msgspec.Struct, array_like=True):
    """Ended calls of one origin, and other spans as rows; `resources` are the encoded attributes the rows point to."""

    origin: Origin
    ended: list[Ended]
    resources: list[bytes]
    rows: list[_Row]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Batch).decode


def encode(origin: Origin, ended: Sequence[Ended], spans: Sequence[Span]) -> bytes:
    """Return a batch as bytes."""
    resources: dict[int, int] = {}
    encoded: list[bytes] = []
    rows: list[_Row] = []
    for span in spans:
        at = resources.setdefault(id(span.resource), len(encoded))
        if at == len(encoded):
            encoded.append(span_rows.encode_resource(span.resource))
        span_id, kind, status, *_ = span_rows.columns(span)
        rows.append((span.trace_id, span_id, kind, status, span.name, at, span_rows.encode_body(span)))
    return _encode(_Batch(origin, list(ended), encoded, rows))


def decode(body: bytes) -> list[Span]:
    """Return the spans of a batch."""
    batch = _decode(body)
    resources = [span_rows.decode_resource(raw) for raw in batch.resources]
    others = [
        span_rows.decode_span(trace_id, span_id, kind, status, name, resources[at], raw)
        for trace_id, span_id, kind, status, name, at, raw in batch.rows
    ]
    return [*(call_span(ended, batch.origin) for ended in batch.ended), *others]


def overview(path: Path) -> tuple[int, int, list[tuple[str, int, int]]]:
    """Return how many spans a file holds, how many wait in its inbox, and its losses, without changing it."""
    with contextlib.closing(connect_anywhere(path, span_rows.connect)) as connection:
        kept = connection.execute("SELECT count(*) FROM span_spans").fetchone()[0]
        waiting = connection.execute("SELECT coalesce(sum(spans), 0) FROM span_inbox").fetchone()[0]
        return kept, waiting, connection.execute(LOSSES).fetchall()


def take(connection: sqlite3.Connection, spans_max: int) -> list[Span]:
    """Remove the oldest batches within a transaction, about so many spans, and return what they hold."""
    found: list[Span] = []
    rows = connection.execute("SELECT id, body FROM span_inbox ORDER BY id")
    taken = 0
    for number, body in rows:
        found += decode(body)
        taken = number
        if len(found) >= spans_max:
            break
    rows.close()
    connection.execute("DELETE FROM span_inbox WHERE id <= ?", (taken,))
    return found


def erase(connection: sqlite3.Connection, session_id: str, tenant_id: str) -> int:
    """Remove the spans of a session within a transaction and return how many."""
    named, unnamed = span_rows.INDEXED["gen_ai.conversation.id"], span_rows.KEY_OF_SESSION
    found: set[int] = set()
    for number, body in connection.execute(_OF_SESSION, (named, unnamed, span_rows.indexed_value(session_id))).fetchall():
        attributes = span_rows.decode_span("", "", 0, 0, "", {}, body).attributes
        if is_of_session(attributes, session_id, tenant_id):
            found.add(number)
    gone = msgspec.json.encode(sorted(found)).decode()
    connection.execute("DELETE FROM span_keys WHERE span IN (SELECT value FROM json_each(?))", (gone,))
    connection.execute("DELETE FROM span_spans WHERE id IN (SELECT value FROM json_each(?))", (gone,))
    return len(found)
