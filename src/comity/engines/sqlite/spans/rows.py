"""How the span store lays out its tables, and how one span becomes a row and a row a span.

A span's row has as columns what every span has and queries compare: trace, name, kind, status, start, duration. The rest is
its body, one MessagePack array. There a map's key stands directly before its value, so a condition such as
`span.retries = 3` is a search for a few bytes, which SQLite does without decoding anything; see `span_plan`. The attributes
of a resource are stored once. `span_keys` is the index over the attributes that are asked for most.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from comity.core.tracing.span import INT64_MAX, INT64_MIN, Attributes, Event, Kind, Link, Span, SpanError, Status
from comity.core.units import MS_PER_S
from comity.engines.sqlite.connecting import BUSY_TIMEOUT_MS, connect_anywhere, make_compactable, patiently, uri
from comity.engines.sqlite.schema import Schema
from comity.engines.sqlite.spans import compare as span_compare

CACHE_KIB: Final = 65_536
INDEXED_TEXT_CHARS: Final = 128

KEY_OF_TRACE: Final = 0
KEY_OF_NAME: Final = 1
# Two names of one thing share a number: the index only has to find every span that may match, under either name.
INDEXED: Final[Mapping[str, int]] = {
    "service.name": 2,
    "insight.type": 3,
    "insight.id": 4,
    "project.id": 5,
    "agent.id": 6,
    "gen_ai.agent.id": 6,
    "agent.session_id": 7,
    "gen_ai.conversation.id": 7,
    "handoff.id": 8,
    "gen_ai.tool.call.id": 8,
}
KEY_OF_SESSION: Final = 9  # of one without a name, which is known by its root call: only erasing asks for it

_FIRST: Final = """
CREATE TABLE span_meta (version INTEGER NOT NULL);
INSERT INTO span_meta VALUES (0);
CREATE TABLE span_traces (
    no INTEGER PRIMARY KEY, trace_id TEXT NOT NULL UNIQUE, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL
);
CREATE INDEX span_traces_end ON span_traces (end_ns);
CREATE TABLE span_resources (id INTEGER PRIMARY KEY, body BLOB NOT NULL UNIQUE);
CREATE TABLE span_spans (
    id INTEGER PRIMARY KEY, trace INTEGER NOT NULL, span_id TEXT NOT NULL, kind INTEGER NOT NULL, status INTEGER NOT NULL,
    start_ns INTEGER NOT NULL, duration_ns INTEGER NOT NULL, name TEXT NOT NULL, resource INTEGER NOT NULL, body BLOB NOT NULL
);
CREATE UNIQUE INDEX span_identity ON span_spans (trace, span_id, kind);
CREATE INDEX span_start ON span_spans (start_ns);
CREATE TABLE span_keys (
    key INTEGER NOT NULL, value BLOB NOT NULL, trace INTEGER NOT NULL, span INTEGER NOT NULL,
    PRIMARY KEY (key, value, trace, span)
) WITHOUT ROWID;
CREATE TABLE span_inbox (id INTEGER PRIMARY KEY, spans INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE span_losses (why TEXT PRIMARY KEY, spans INTEGER NOT NULL, last_at INTEGER NOT NULL);
"""
# The inbox is what is written down quickly and sorted in later, see `inbox.py`. How to add a version: `schema.py`.
SCHEMA: Final = Schema(
    what="its tables of spans",
    table="span_meta",
    read_version="SELECT version FROM span_meta",
    write_version="UPDATE span_meta SET version = ?",
    steps=(_FIRST,),
)
_PRAGMAS: Final = (
    "page_size = 8192",
    "journal_mode = WAL",
    "synchronous = FULL",
    "fullfsync = ON",
    "wal_autocheckpoint = 16000",  # 128 MB: index pages touched by many batches are then written once, half again the rate
)

KINDS: Final = tuple(Kind)
STATUSES: Final = tuple(Status)
_KIND_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}
_STATUS_NUMBERS = {status: number for number, status in enumerate(STATUSES)}
_COMPOUND = (tuple, list, dict)
_NO_ATTRIBUTES: Attributes = {}

encode = msgspec.msgpack.Encoder().encode

RawEvent = tuple[str, int, dict[str, Any], int]
RawLink = tuple[str, str, str, int, dict[str, Any], int]


class _Body(msgspec.Struct, array_like=True, gc=False):
    """What a row holds beside its columns. `elements` is None if every value is a plain one."""

    attributes: dict[str, Any]
    start_ns: int
    end_ns: int
    parent_id: str | None
    status_message: str
    scope: tuple[str, str, dict[str, Any]]
    events: list[RawEvent]
    links: list[RawLink]
    rest: tuple[str, int, int, int, int]
    elements: list[Any] | None


class _Resource(msgspec.Struct, array_like=True):
    attributes: dict[str, Any]
    elements: list[Any] | None


_decode_body = msgspec.msgpack.Decoder(_Body).decode
_decode_resource = msgspec.msgpack.Decoder(_Resource).decode


def connect(path: Path, *, read_only: bool = False, is_archived: bool = False) -> sqlite3.Connection:
    """Open the file; a reader cannot write and never blocks the writer."""
    return _connect(uri(path, read_only=read_only, is_archived=is_archived))


def connect_archived(path: Path) -> sqlite3.Connection:
    """Open a file that cannot be written. If spans wait in its inbox it is a copy, gone when it is closed, to sort them in."""
    connection = connect_anywhere(path, connect)
    try:
        is_old = SCHEMA.version_of(connection) < SCHEMA.version
        if not is_old and connection.execute("SELECT 1 FROM span_inbox").fetchone() is None:
            return connection
        copy = _connect("")
        connection.backup(copy)
        SCHEMA.prepare(copy)
    except BaseException:
        connection.close()
        raise
    connection.close()
    return copy


def _connect(place: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        place, uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_MS / MS_PER_S, check_same_thread=False,
        cached_statements=256,
    )  # fmt: skip
    try:
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.create_function("span_compares", 4, span_compare.compares, deterministic=True)
    except BaseException:
        connection.close()
        raise
    return connection


def prepare(connection: sqlite3.Connection) -> None:
    """Create the tables in a file that has none yet, or bring those of an earlier program to this one's version."""
    patiently(lambda: make_compactable(connection), BUSY_TIMEOUT_MS)
    for pragma in _PRAGMAS:
        patiently(lambda pragma=pragma: connection.execute(f"PRAGMA {pragma}"), BUSY_TIMEOUT_MS)  # type: ignore[misc]
    SCHEMA.prepare(connection)


# a span as a row


def columns(span: Span) -> tuple[str, int, int, int, int, str]:
    """Return span id, kind, status, start, duration and name as they are stored."""
    return (
        span.span_id,
        _KIND_NUMBERS[span.kind],
        _STATUS_NUMBERS[span.status],
        clamp(span.start_ns),
        clamp(span.duration_ns),
        span.name,
    )


def clamp(number: int) -> int:
    """Return a 64-bit unsigned time as SQLite can hold it; what is compared with it is clamped too."""
    return number if INT64_MIN <= number <= INT64_MAX else max(INT64_MIN, min(number, INT64_MAX))


def encode_body(span: Span) -> bytes:
    """Return the body of a span, or raise `SpanError` if a value cannot be stored."""
    bags = [span.attributes, span.scope_attributes]
    bags += [event.attributes for event in span.events]
    bags += [link.attributes for link in span.links]
    body = (
        plain(span.attributes),
        span.start_ns,
        span.end_ns,
        span.parent_id,
        span.status_message,
        (span.scope_name, span.scope_version, plain(span.scope_attributes)),
        [(event.name, event.time_ns, plain(event.attributes), event.dropped_attributes_count) for event in span.events],
        [
            (link.trace_id, link.span_id, link.trace_state, link.flags, plain(link.attributes), link.dropped_attributes_count)
            for link in span.links
        ],
        (
            span.trace_state,
            span.flags,
            span.dropped_attributes_count,
            span.dropped_events_count,
            span.dropped_links_count,
        ),
        _elements(bags),
    )
    return _encoded(body, f"span {span.span_id}")


def check_body(body: bytes) -> None:
    """Raise `DecodeError` if a body cannot be read again: of what stands in it only the values of attributes are looked at."""
    _decode_body(body)


def encode_resource(attributes: Attributes) -> bytes:
    """Return the body of a resource."""
    return _encoded((plain(attributes), _elements([attributes])), "resource")


def _encoded(body: object, path: str) -> bytes:
    try:
        return encode(body)
    except (UnicodeEncodeError, OverflowError, TypeError) as error:
        raise SpanError(path, f"holds what cannot be stored: {error}") from None


def plain(attributes: Attributes) -> dict[str, Any]:
    return attributes if type(attributes) is dict else dict(attributes)


def _elements(bags: Iterable[Attributes]) -> list[dict[str, Any]] | None:
    """Return each array's elements under the array's name: so the bytes that find a value also find it in an array."""
    found: list[dict[str, Any]] | None = None
    for bag in bags:
        for name, value in bag.items():
            if isinstance(value, _COMPOUND):
                found = [] if found is None else found
                if not isinstance(value, dict):
                    found += [{name: element} for element in value]
    return found


def keys_of(attributes: Attributes) -> Iterator[tuple[int, str | int | float]]:
    """Yield what the index holds of some attributes; the same thing under two names comes twice."""
    for name in INDEXED.keys() & attributes.keys():
        value = attributes[name]
        for one in value if isinstance(value, tuple | list) else (value,):
            if (stored := indexed_value(one)) is not None:
                yield INDEXED[name], stored


def unnamed_session(attributes: Attributes) -> str | None:
    """Return what the index holds of a session without a name: its root call."""
    if "comity.request.id" not in attributes or "gen_ai.conversation.id" in attributes or "agent.session_id" in attributes:
        return None
    root = attributes.get("comity.root.id", attributes["comity.request.id"])
    return root[:INDEXED_TEXT_CHARS] if isinstance(root, str) else None


def indexed_value(value: Any) -> str | int | float | None:
    """Return a value as the index holds it, or None for what no condition can equal."""
    if isinstance(value, str):
        return value[:INDEXED_TEXT_CHARS]
    if isinstance(value, int):
        return clamp(value)
    # SQLite would store a NaN as NULL; nothing equals it.
    if not isinstance(value, float) or math.isnan(value):
        return None
    return value if INT64_MIN <= value <= INT64_MAX else INT64_MAX if value > 0 else INT64_MIN


# a row as a span


def decode_resource(body: bytes) -> dict[str, Any]:
    """Return the attributes of a resource."""
    raw = _decode_resource(body)
    return raw.attributes if raw.elements is None else _with_tuples(raw.attributes)


def decode_span(trace_id: str, span_id: str, kind: int, status: int, name: str, resource: Attributes, body: bytes) -> Span:
    """Return the span of a row."""
    raw = _decode_body(body)
    bag = _same if raw.elements is None else _with_tuples
    scope_name, scope_version, scope_attributes = raw.scope
    trace_state, flags, dropped_attributes, dropped_events, dropped_links = raw.rest
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=raw.parent_id,
        name=name,
        kind=KINDS[kind],
        start_ns=raw.start_ns,
        end_ns=raw.end_ns,
        status=STATUSES[status],
        status_message=raw.status_message,
        attributes=bag(raw.attributes),
        resource=resource,
        scope_name=scope_name,
        scope_version=scope_version,
        scope_attributes=bag(scope_attributes) if scope_attributes else _NO_ATTRIBUTES,
        events=tuple(
            Event(name=name, time_ns=time_ns, attributes=bag(attributes), dropped_attributes_count=dropped)
            for name, time_ns, attributes, dropped in raw.events
        ),
        links=tuple(
            Link(
                trace_id=to_trace,
                span_id=to_span,
                trace_state=state,
                flags=link_flags,
                attributes=bag(attributes),
                dropped_attributes_count=dropped,
            )
            for to_trace, to_span, state, link_flags, attributes, dropped in raw.links
        ),
        trace_state=trace_state,
        flags=flags,
        dropped_attributes_count=dropped_attributes,
        dropped_events_count=dropped_events,
        dropped_links_count=dropped_links,
    )


def _same(attributes: dict[str, Any]) -> dict[str, Any]:
    return attributes


def _with_tuples(attributes: dict[str, Any]) -> dict[str, Any]:
    return {name: _frozen(value) for name, value in attributes.items()}


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    return _with_tuples(value) if isinstance(value, dict) else value
