"""OTLP trace requests in protobuf, written and read without a protobuf library.

Only the messages of a trace export are known. What a later version of OTLP adds is skipped, as protobuf asks; what breaks
the encoding is refused whole, with the place. See `core.tracing.span` for the JSON form.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from comity.core.tracing.span import VALUE_NESTING_MAX, Attributes, Event, Kind, Link, Span, SpanError, Status, group_by_origin

CONTENT_TYPE: Final = "application/x-protobuf"

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_VARINT_BYTES_MAX = 10
_KINDS, _STATUSES = tuple(Kind), tuple(Status)
_KIND_NUMBERS = {kind: number for number, kind in enumerate(_KINDS)}
_STATUS_NUMBERS = {status: number for number, status in enumerate(_STATUSES)}
_pack_double, _pack_fixed64, _pack_fixed32 = struct.Struct("<d").pack, struct.Struct("<Q").pack, struct.Struct("<I").pack
_unpack_fixed64, _unpack_fixed32 = struct.Struct("<Q").unpack_from, struct.Struct("<I").unpack_from
_SMALL = [bytes((number,)) for number in range(128)]


# --- writing ------------------------------------------------------------------------------------------------------------


def encode_request(spans: Iterable[Span]) -> bytes:
    """Return an export request; spans that share a resource and a scope are grouped, in order of appearance."""
    return b"".join(
        b"\x0a" + sized(b"\x0a" + sized(_attributes(b"\x0a", resource)) + b"".join(map(_scope_spans, scopes)))
        for resource, scopes in group_by_origin(spans)
    )


def _scope_spans(spans: list[Span]) -> bytes:
    encoded = b"".join([b"\x12" + sized(_span(span)) for span in spans])
    return b"\x12" + sized(b"\x0a" + sized(_scope(spans[0])) + encoded)


def encode_partial(rejected: int, why: str) -> bytes:
    """Return the answer to an export of which some spans could not be taken."""
    return b"\x0a" + sized(b"\x08" + _varint(rejected) + b"\x12" + sized(why.encode()))


def encode_status(message: str) -> bytes:
    """Return the answer to an export that could not be read: a `google.rpc.Status` with code 3, invalid argument."""
    return b"\x08\x03\x12" + sized(message.encode(errors="replace"))


def _varint(number: int) -> bytes:
    if 0 <= number < 128:
        return _SMALL[number]
    number &= 0xFFFF_FFFF_FFFF_FFFF
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


def sized(content: bytes) -> bytes:
    """Return a field's content with its length before it."""
    return _varint(len(content)) + content


def _text(tag: bytes, text: str) -> bytes:
    return tag + sized(_utf8(text)) if text else b""


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise SpanError("text", f"is not valid Unicode: {error}") from None


def _count(tag: bytes, number: int) -> bytes:
    return tag + _varint(number) if number else b""


def _scope(span: Span) -> bytes:
    texts = _text(b"\x0a", span.scope_name) + _text(b"\x12", span.scope_version)
    return texts + _attributes(b"\x1a", span.scope_attributes)


def _span(span: Span) -> bytes:
    parts = [
        b"\x0a\x10" + bytes.fromhex(span.trace_id),
        b"\x12\x08" + bytes.fromhex(span.span_id),
        _text(b"\x1a", span.trace_state),
        b"\x22\x08" + bytes.fromhex(span.parent_id) if span.parent_id else b"",
        _text(b"\x2a", span.name),
        _count(b"\x30", _KIND_NUMBERS[span.kind]),
        b"\x39" + _pack_fixed64(span.start_ns),
        b"\x41" + _pack_fixed64(span.end_ns),
        _attributes(b"\x4a", span.attributes),
        _count(b"\x50", span.dropped_attributes_count),
        *(b"\x5a" + sized(_event(event)) for event in span.events),
        _count(b"\x60", span.dropped_events_count),
        *(b"\x6a" + sized(_link(link)) for link in span.links),
        _count(b"\x70", span.dropped_links_count),
        b"\x7a" + sized(_text(b"\x12", span.status_message) + _count(b"\x18", _STATUS_NUMBERS[span.status])),
        b"\x85\x01" + _pack_fixed32(span.flags) if span.flags else b"",
    ]
    return b"".join(parts)


def _event(event: Event) -> bytes:
    time = b"\x09" + _pack_fixed64(event.time_ns)
    return (
        time
        + _text(b"\x12", event.name)
        + _attributes(b"\x1a", event.attributes)
        + _count(b"\x20", event.dropped_attributes_count)
    )


def _link(link: Link) -> bytes:
    return b"".join(
        (
            b"\x0a\x10" + bytes.fromhex(link.trace_id),
            b"\x12\x08" + bytes.fromhex(link.span_id),
            _text(b"\x1a", link.trace_state),
            _attributes(b"\x22", link.attributes),
            _count(b"\x28", link.dropped_attributes_count),
            b"\x35" + _pack_fixed32(link.flags) if link.flags else b"",
        )
    )


def _attributes(tag: bytes, attributes: Attributes) -> bytes:
    return b"".join([tag + sized(_pair(key, value)) for key, value in attributes.items()])


def _pair(key: str, value: Any) -> bytes:
    return b"\x0a" + sized(_utf8(key)) + b"\x12" + sized(_value(value))


def _value(value: Any) -> bytes:
    if isinstance(value, str):
        return b"\x0a" + sized(_utf8(value))
    if isinstance(value, bool):
        return b"\x10\x01" if value else b"\x10\x00"
    if isinstance(value, int):
        return b"\x18" + _varint(value)
    if isinstance(value, float):
        return b"\x21" + _pack_double(value)
    if value is None:
        return b""
    if isinstance(value, bytes):
        return b"\x3a" + sized(value)
    if isinstance(value, Mapping):
        return b"\x32" + sized(_attributes(b"\x0a", value))
    assert isinstance(value, tuple | list), f"{type(value).__name__} is not an attribute value"
    return b"\x2a" + sized(b"".join(b"\x0a" + sized(_value(item)) for item in value))


# --- reading ------------------------------------------------------------------------------------------------------------

_Fields = Iterator[tuple[int, Any]]


def decode_request(body: bytes) -> list[Span]:
    """Return the spans of an export request, in its order, or raise `SpanError`."""
    spans: list[Span] = []
    for number, group in _fields(body, "request", {1: _BYTES}):
        assert number == 1
        resource: dict[str, Any] = {}
        scoped: list[bytes] = []
        for inner, content in _fields(group, "resource_spans", {1: _BYTES, 2: _BYTES}):
            if inner == 1:
                resource = _read_pairs(content, "resource", 1)
            else:
                scoped.append(content)
        for content in scoped:
            spans += _read_scope_spans(content, resource)
    return spans


def decode_partial(body: bytes) -> int:
    """Return how many spans the answer to an export says were rejected."""
    rejected = 0
    for _, partial in _fields(body, "response", {1: _BYTES}):
        rejected = dict(_fields(partial, "partial_success", {1: _VARINT})).get(1, 0)
    return rejected


def _read_scope_spans(content: bytes, resource: Attributes) -> list[Span]:
    name, version, attributes = "", "", {}
    raw: list[bytes] = []
    for number, inner in _fields(content, "scope_spans", {1: _BYTES, 2: _BYTES}):
        if number == 2:
            raw.append(inner)
            continue
        attributes = _read_pairs(inner, "scope", 3)
        for field, text in _fields(inner, "scope", {1: _BYTES, 2: _BYTES}):
            name, version = (_read_text(text, "scope"), version) if field == 1 else (name, _read_text(text, "scope"))
    return [_read_span(one, resource, (name, version, attributes)) for one in raw]


_SPAN_FIELDS: Final = {
    1: _BYTES, 2: _BYTES, 3: _BYTES, 4: _BYTES, 5: _BYTES, 6: _VARINT, 7: _FIXED64, 8: _FIXED64, 9: _BYTES, 10: _VARINT,
    11: _BYTES, 12: _VARINT, 13: _BYTES, 14: _VARINT, 15: _BYTES, 16: _FIXED32,
}  # fmt: skip


def _read_span(content: bytes, resource: Attributes, scope: tuple[str, str, Attributes]) -> Span:
    found: dict[int, Any] = {}
    attributes: dict[str, Any] = {}
    events: list[Event] = []
    links: list[Link] = []
    for number, value in _fields(content, "span", _SPAN_FIELDS):
        if number == 9:
            _add_pair(attributes, value, "span", 0)
        elif number == 11:
            events.append(_read_event(value))
        elif number == 13:
            links.append(_read_link(value))
        else:
            found[number] = value
    status = dict(_fields(found.get(15, b""), "status", {2: _BYTES, 3: _VARINT}))
    parent_id = found.get(4, b"")
    return Span(
        trace_id=_read_id(found.get(1), 16, "span.trace_id"),
        span_id=_read_id(found.get(2), 8, "span.span_id"),
        parent_id=_read_id(parent_id, 8, "span.parent_span_id") if parent_id.strip(b"\0") else None,
        name=_read_text(found.get(5, b""), "span.name"),
        kind=_read_enum(found.get(6, 0), _KINDS, "span.kind"),
        start_ns=found.get(7, 0),
        end_ns=found.get(8, 0),
        status=_read_enum(status.get(3, 0), _STATUSES, "span.status"),
        status_message=_read_text(status.get(2, b""), "span.status"),
        attributes=attributes,
        resource=resource,
        scope_name=scope[0],
        scope_version=scope[1],
        scope_attributes=scope[2],
        events=tuple(events),
        links=tuple(links),
        trace_state=_read_text(found.get(3, b""), "span.trace_state"),
        flags=found.get(16, 0),
        dropped_attributes_count=found.get(10, 0) & 0xFFFF_FFFF,
        dropped_events_count=found.get(12, 0) & 0xFFFF_FFFF,
        dropped_links_count=found.get(14, 0) & 0xFFFF_FFFF,
    )


def _read_event(content: bytes) -> Event:
    found = dict(_fields(content, "event", {1: _FIXED64, 2: _BYTES, 4: _VARINT}))
    return Event(
        name=_read_text(found.get(2, b""), "event.name"),
        time_ns=found.get(1, 0),
        attributes=_read_pairs(content, "event", 3),
        dropped_attributes_count=found.get(4, 0) & 0xFFFF_FFFF,
    )


def _read_link(content: bytes) -> Link:
    found = dict(_fields(content, "link", {1: _BYTES, 2: _BYTES, 3: _BYTES, 5: _VARINT, 6: _FIXED32}))
    return Link(
        trace_id=_read_id(found.get(1), 16, "link.trace_id"),
        span_id=_read_id(found.get(2), 8, "link.span_id"),
        trace_state=_read_text(found.get(3, b""), "link.trace_state"),
        flags=found.get(6, 0),
        attributes=_read_pairs(content, "link", 4),
        dropped_attributes_count=found.get(5, 0) & 0xFFFF_FFFF,
    )


def _read_pairs(content: bytes, path: str, field: int, *, depth: int = 0) -> dict[str, Any]:
    """Return the key-value pairs a message holds under a field; of a repeated key the first one counts."""
    found: dict[str, Any] = {}
    for _, pair in _fields(content, path, {field: _BYTES}):
        _add_pair(found, pair, path, depth)
    return found


_PAIR_FIELDS: Final = {1: _BYTES, 2: _BYTES}


def _add_pair(found: dict[str, Any], content: bytes, path: str, depth: int) -> None:
    pair = dict(_fields(content, path, _PAIR_FIELDS))
    key = _read_text(pair.get(1, b""), path)
    if key not in found:
        found[key] = _read_value(pair.get(2, b""), path if depth else key, depth)


_VALUE_FIELDS: Final = {1: _BYTES, 2: _VARINT, 3: _VARINT, 4: _FIXED64, 5: _BYTES, 6: _BYTES, 7: _BYTES}


def _read_value(content: bytes, path: str, depth: int) -> Any:
    if depth > VALUE_NESTING_MAX:
        raise SpanError(path, f"values nest deeper than {VALUE_NESTING_MAX}")
    if content[:1] == b"\x0a" and len(content) > 1 and content[1] == len(content) - 2 < 128:
        return _read_text(content[2:], path)  # a short text, as most are
    value: Any = None
    for number, raw in _fields(content, path, _VALUE_FIELDS):  # of several kinds the last one counts
        match number:
            case 1:
                value = _read_text(raw, path)
            case 2:
                value = bool(raw)
            case 3:
                value = raw - 2**64 if raw >= 2**63 else raw
            case 4:
                (value,) = struct.unpack("<d", _pack_fixed64(raw))
            case 5:
                items = _fields(raw, path, {1: _BYTES})
                value = tuple(_read_value(item, path, depth + 1) for _, item in items)
            case 6:
                value = _read_pairs(raw, path, 1, depth=depth + 1)
            case _:
                value = raw
    return value


def _read_id(raw: Any, size_bytes: int, path: str) -> str:
    found: bytes = b"" if raw is None else raw
    if len(found) != size_bytes or not found.strip(b"\0"):
        raise SpanError(path, f"must be {size_bytes} bytes, not all zero")
    return found.hex()


def _read_enum(number: int, members: tuple[Any, ...], path: str) -> Any:
    if number >= len(members):
        raise SpanError(path, f"{number} is not a known value")
    return members[number]


def _read_text(raw: bytes, path: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise SpanError(path, "is not UTF-8") from None


def _fields(content: bytes, path: str, wanted: Mapping[int, int]) -> _Fields:
    """Yield the wanted fields of a message with their values; a known field of another wire type is an error."""
    at, end = 0, len(content)
    value: Any
    while at < end:
        tag = content[at]
        at += 1
        if tag > 127:
            tag, at = _read_varint(content, at - 1, path)
        number, wire = tag >> 3, tag & 7
        if wire == _BYTES:
            size, at = _read_varint(content, at, path)
            if at + size > end:
                raise SpanError(path, f"says {size} bytes follow at byte {at}, but only {end - at} do")
            value, at = content[at : at + size], at + size
        elif wire == _VARINT:
            value, at = _read_varint(content, at, path)
        elif wire == _FIXED64 and at + 8 <= end:
            value, at = _unpack_fixed64(content, at)[0], at + 8
        elif wire == _FIXED32 and at + 4 <= end:
            value, at = _unpack_fixed32(content, at)[0], at + 4
        else:
            raise SpanError(path, f"is not protobuf: tag {tag} at byte {at}")
        expected = wanted.get(number)
        if expected is None:
            if number == 0:
                raise SpanError(path, f"is not protobuf: field 0 at byte {at}")
            continue
        if expected != wire:
            raise SpanError(path, f"field {number} has wire type {wire}, not {expected}")
        yield number, value


def _read_varint(content: bytes, at: int, path: str) -> tuple[int, int]:
    if at < len(content) and (first := content[at]) < 128:
        return first, at + 1
    number = shift = 0
    for byte in content[at : at + _VARINT_BYTES_MAX]:
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
    raise SpanError(path, f"ends within a number at byte {at}")
