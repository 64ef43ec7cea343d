"""One span as a value, and its OTLP/JSON form.

A span is decoded once, at the edge, into `Span`; nothing inside parses OTLP again. The decoder takes what senders really
write: ids in hex or base64, 64-bit numbers as text or numbers, enums as numbers or names, and every kind of attribute
value. The attributes of one resource are one dict object shared by its spans: a thousand spans of a process cost one.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct

VALUE_NESTING_MAX = 32
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
_TRACE_ID_BYTES, _SPAN_ID_BYTES = 16, 8

Attributes = Mapping[str, Any]
"""Values are str, bool, int, float, bytes, tuple (array), dict (key-value list) or None (an empty value)."""

_NO_ATTRIBUTES: Attributes = {}


class Kind(StrEnum):
    """The span kinds in the order of their OTLP numbers; the words are TraceQL's."""

    UNSPECIFIED = "unspecified"
    INTERNAL = "internal"
    SERVER = "server"
    CLIENT = "client"
    PRODUCER = "producer"
    CONSUMER = "consumer"


class Status(StrEnum):
    """The span statuses in the order of their OTLP numbers; the words are TraceQL's."""

    UNSET = "unset"
    OK = "ok"
    ERROR = "error"


_KINDS, _STATUSES = tuple(Kind), tuple(Status)
_KIND_PREFIX, _STATUS_PREFIX = "SPAN_KIND_", "STATUS_CODE_"


class SpanError(ValueError):
    """The document is not OTLP; `path` names the part that is wrong."""

    def __init__(self, path: str, message: str) -> None:
        self.path = path
        super().__init__(f"{path}: {message}")


class Event(Struct, frozen=True, kw_only=True):
    """Something that happened at one moment within a span."""

    name: str
    time_ns: int
    attributes: Attributes = _NO_ATTRIBUTES
    dropped_attributes_count: int = 0


class Link(Struct, frozen=True, kw_only=True):
    """A pointer from one span to another, usually in another trace."""

    trace_id: str
    span_id: str
    trace_state: str = ""
    flags: int = 0
    attributes: Attributes = _NO_ATTRIBUTES
    dropped_attributes_count: int = 0


class Span(Struct, frozen=True, kw_only=True):
    """One unit of work. Ids are lower-case hex, 32 and 16 digits; a root has no `parent_id`."""

    trace_id: str
    span_id: str
    parent_id: str | None = None
    name: str = ""
    kind: Kind = Kind.UNSPECIFIED
    start_ns: int = 0
    end_ns: int = 0
    status: Status = Status.UNSET
    status_message: str = ""
    attributes: Attributes = _NO_ATTRIBUTES
    resource: Attributes = _NO_ATTRIBUTES
    scope_name: str = ""
    scope_version: str = ""
    scope_attributes: Attributes = _NO_ATTRIBUTES
    events: tuple[Event, ...] = ()
    links: tuple[Link, ...] = ()
    trace_state: str = ""
    flags: int = 0
    dropped_attributes_count: int = 0
    dropped_events_count: int = 0
    dropped_links_count: int = 0

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns if self.end_ns > self.start_ns else 0


def group_by_trace(spans: Iterable[Span]) -> list[list[Span]]:
    """Return the spans of each trace together, traces in the order of their first span."""
    traces: dict[str, list[Span]] = {}
    for span in spans:
        traces.setdefault(span.trace_id, []).append(span)
    return list(traces.values())


def group_by_origin(spans: Iterable[Span]) -> list[tuple[Attributes, list[list[Span]]]]:
    """Return the spans of each resource together, and within it those of each scope, in order of appearance."""
    groups: dict[int, tuple[Attributes, dict[tuple[str, str, int], list[Span]]]] = {}
    for span in spans:
        _, scopes = groups.setdefault(id(span.resource) if span.resource else 0, (span.resource, {}))
        key = (span.scope_name, span.scope_version, id(span.scope_attributes) if span.scope_attributes else 0)
        scopes.setdefault(key, []).append(span)
    return [(resource, list(scopes.values())) for resource, scopes in groups.values()]


# decoding


def decode_spans(document: Any) -> list[Span]:
    """Return the spans of an OTLP/JSON trace document, in its order, or raise `SpanError`.

    Takes an export request (`resourceSpans`) and what Tempo returns for a trace (`batches`, or either inside `trace`).
    """
    root = _mapping(document, "document")
    if "trace" in root:
        root = _mapping(root["trace"], "trace")
    key = "batches" if "batches" in root else "resourceSpans"
    spans: list[Span] = []
    for at, group in _items(root, key, "document"):
        resource = decode_attributes(_mapping(group.get("resource"), f"{at}.resource").get("attributes"), f"{at}.resource")
        for inner, scoped in _items(group, "scopeSpans", at):
            scope = _mapping(scoped.get("scope"), f"{inner}.scope")
            name, version = _text(scope, "name", inner), _text(scope, "version", inner)
            scope_attributes = decode_attributes(scope.get("attributes"), f"{inner}.scope")
            spans.extend(
                _span(raw, path, resource, (name, version, scope_attributes)) for path, raw in _items(scoped, "spans", inner)
            )
    return spans


def _span(raw: Mapping[str, Any], path: str, resource: Attributes, scope: tuple[str, str, Attributes]) -> Span:
    status = _mapping(raw.get("status"), f"{path}.status")
    return Span(
        trace_id=_id(raw.get("traceId"), _TRACE_ID_BYTES, f"{path}.traceId"),
        span_id=_id(raw.get("spanId"), _SPAN_ID_BYTES, f"{path}.spanId"),
        parent_id=_parent_id(raw.get("parentSpanId"), f"{path}.parentSpanId"),
        name=_text(raw, "name", path),
        kind=_KINDS[_enum(raw.get("kind"), _KINDS, _KIND_PREFIX, f"{path}.kind")],
        start_ns=_integer(raw.get("startTimeUnixNano"), f"{path}.startTimeUnixNano"),
        end_ns=_integer(raw.get("endTimeUnixNano"), f"{path}.endTimeUnixNano"),
        status=_STATUSES[_enum(status.get("code"), _STATUSES, _STATUS_PREFIX, f"{path}.status.code")],
        status_message=_text(status, "message", f"{path}.status"),
        attributes=decode_attributes(raw.get("attributes"), path),
        resource=resource,
        scope_name=scope[0],
        scope_version=scope[1],
        scope_attributes=scope[2],
        events=tuple(_event(event, at) for at, event in _items(raw, "events", path)),
        links=tuple(_link(link, at) for at, link in _items(raw, "links", path)),
        trace_state=_text(raw, "traceState", path),
        flags=_integer(raw.get("flags"), f"{path}.flags"),
        dropped_attributes_count=_integer(raw.get("droppedAttributesCount"), path),
        dropped_events_count=_integer(raw.get("droppedEventsCount"), path),
        dropped_links_count=_integer(raw.get("droppedLinksCount"), path),
    )


def _event(raw: Mapping[str, Any], path: str) -> Event:
    return Event(
        name=_text(raw, "name", path),
        time_ns=_integer(raw.get("timeUnixNano"), f"{path}.timeUnixNano"),
        attributes=decode_attributes(raw.get("attributes"), path),
        dropped_attributes_count=_integer(raw.get("droppedAttributesCount"), path),
    )


def _link(raw: Mapping[str, Any], path: str) -> Link:
    return Link(
        trace_id=_id(raw.get("traceId"), _TRACE_ID_BYTES, f"{path}.traceId"),
        span_id=_id(raw.get("spanId"), _SPAN_ID_BYTES, f"{path}.spanId"),
        trace_state=_text(raw, "traceState", path),
        flags=_integer(raw.get("flags"), f"{path}.flags"),
        attributes=decode_attributes(raw.get("attributes"), path),
        dropped_attributes_count=_integer(raw.get("droppedAttributesCount"), path),
    )


def decode_attributes(raw: Any, path: str = "attributes", *, depth: int = 0) -> dict[str, Any]:
    """Return OTLP key-value pairs as a dict; of a repeated key the first one counts, as receivers do."""
    if raw is None:
        return {}
    if not isinstance(raw, list):
        raise SpanError(path, "attributes must be a list")
    found: dict[str, Any] = {}
    for pair in raw:
        if not isinstance(pair, dict) or not isinstance(key := pair.get("key"), str):
            raise SpanError(path, "an attribute needs a text key")
        found.setdefault(key, decode_value(pair.get("value"), f"{path}.{key}", depth=depth))
    return found


def decode_value(raw: Any, path: str = "value", *, depth: int = 0) -> Any:
    """Return an OTLP AnyValue as a Python value."""
    if depth > VALUE_NESTING_MAX:
        raise SpanError(path, f"values nest deeper than {VALUE_NESTING_MAX}")
    if raw is None or raw == {}:
        return None
    if not isinstance(raw, dict) or len(raw) != 1:
        raise SpanError(path, "a value holds exactly one kind")
    ((kind, inner),) = raw.items()
    if kind == "stringValue" and isinstance(inner, str):
        return inner
    if kind == "boolValue" and isinstance(inner, bool):
        return inner
    if kind == "intValue":
        return _integer(inner, path)
    if kind == "doubleValue":
        return _double(inner, path)
    if kind == "bytesValue" and isinstance(inner, str):
        return _from_base64(inner, path)
    if kind == "arrayValue":
        return tuple(decode_value(item, path, depth=depth + 1) for item in _list(inner, "values", path))
    if kind == "kvlistValue":
        return decode_attributes(_list(inner, "values", path), path, depth=depth + 1)
    raise SpanError(path, f"{kind} is not a kind of value, or does not fit its content")


def _items(raw: Mapping[str, Any], key: str, path: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
    for index, item in enumerate(_list(raw, key, path)):
        at = f"{path}.{key}[{index}]"
        yield at, _mapping(item, at)


def _list(raw: Any, key: str, path: str) -> list[Any]:
    found = _mapping(raw, path).get(key)
    if found is None:
        return []
    if not isinstance(found, list):
        raise SpanError(f"{path}.{key}", "must be a list")
    return found


def _mapping(raw: Any, path: str) -> Mapping[str, Any]:
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise SpanError(path, "must be an object")
    return raw


def _text(raw: Mapping[str, Any], key: str, path: str) -> str:
    found = raw.get(key)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise SpanError(f"{path}.{key}", "must be text")
    return found


def _integer(raw: Any, path: str) -> int:
    if raw is None:
        return 0
    if isinstance(raw, str) and raw.lstrip("-").isdecimal() and len(raw) <= 21:
        raw = int(raw)
    if not isinstance(raw, int) or isinstance(raw, bool) or not INT64_MIN <= raw <= 2**64 - 1:
        raise SpanError(path, "must be a 64-bit integer")
    return raw


def _double(raw: Any, path: str) -> float:
    if raw in ("NaN", "Infinity", "-Infinity") or (isinstance(raw, int | float) and not isinstance(raw, bool)):
        return float(raw)
    raise SpanError(path, "must be a number")


def _enum(raw: Any, members: Sequence[StrEnum], prefix: str, path: str) -> int:
    if raw is None:
        return 0
    if isinstance(raw, str) and raw.startswith(prefix):
        word = raw.removeprefix(prefix).lower()
        if word in members:
            return members.index(word)
    if isinstance(raw, int) and 0 <= raw < len(members):
        return raw
    raise SpanError(path, f"{raw!r} is not a known value")


def _parent_id(raw: Any, path: str) -> str | None:
    if not raw:
        return None
    found = _id(raw, _SPAN_ID_BYTES, path)
    return None if set(found) == {"0"} else found


def _id(raw: Any, size_bytes: int, path: str) -> str:
    """Return an id as hex. The length alone tells hex from base64: no base64 of these sizes is as long as the hex."""
    if not isinstance(raw, str):
        raise SpanError(path, "must be an id")
    if len(raw) == size_bytes * 2:
        try:
            return bytes.fromhex(raw).hex()
        except ValueError:
            raise SpanError(path, "is not hex") from None
    decoded = _from_base64(raw, path)
    if len(decoded) != size_bytes:
        raise SpanError(path, f"must be {size_bytes} bytes")
    return decoded.hex()


def _from_base64(raw: str, path: str) -> bytes:
    try:
        return base64.b64decode(raw + "=" * (-len(raw) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise SpanError(path, "is not base64") from None


# encoding


def encode_spans(spans: Iterable[Span], *, base64_ids: bool = False) -> dict[str, Any]:
    """Return an OTLP/JSON export request; spans that share a resource and scope are grouped, in order of appearance.

    `base64_ids` writes ids as the protobuf JSON mapping does, which is what Tempo returns; OTLP itself says hex.
    """
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": encode_attributes(resource)},
                "scopeSpans": [
                    {"scope": _encode_scope(scoped[0]), "spans": [_encode_span(span, base64_ids=base64_ids) for span in scoped]}
                    for scoped in scopes
                ],
            }
            for resource, scopes in group_by_origin(spans)
        ]
    }


def _encode_scope(span: Span) -> dict[str, Any]:
    scope: dict[str, Any] = {"name": span.scope_name, "version": span.scope_version}
    if span.scope_attributes:
        scope["attributes"] = encode_attributes(span.scope_attributes)
    return scope


def _encode_span(span: Span, *, base64_ids: bool) -> dict[str, Any]:
    encode_id = _base64_id if base64_ids else str
    status: dict[str, Any] = {}
    if span.status_message:
        status["message"] = span.status_message
    if span.status is not Status.UNSET:
        status["code"] = _STATUSES.index(span.status)
    encoded: dict[str, Any] = {
        "traceId": encode_id(span.trace_id),
        "spanId": encode_id(span.span_id),
        "name": span.name,
        "kind": _KINDS.index(span.kind),
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.end_ns),
        "attributes": encode_attributes(span.attributes),
        "events": [_encode_event(event) for event in span.events],
        "links": [_encode_link(link, encode_id) for link in span.links],
        "status": status,
    }
    optional = {
        "parentSpanId": encode_id(span.parent_id) if span.parent_id else None,
        "traceState": span.trace_state,
        "flags": span.flags,
        "droppedAttributesCount": span.dropped_attributes_count,
        "droppedEventsCount": span.dropped_events_count,
        "droppedLinksCount": span.dropped_links_count,
    }
    return encoded | _present(optional)


def _encode_event(event: Event) -> dict[str, Any]:
    encoded = {
        "timeUnixNano": str(event.time_ns),
        "name": event.name,
        "attributes": encode_attributes(event.attributes),
    }
    return encoded | _present({"droppedAttributesCount": event.dropped_attributes_count})


def _encode_link(link: Link, encode_id: Any) -> dict[str, Any]:
    encoded = {
        "traceId": encode_id(link.trace_id),
        "spanId": encode_id(link.span_id),
        "attributes": encode_attributes(link.attributes),
    }
    optional = {
        "traceState": link.trace_state,
        "flags": link.flags,
        "droppedAttributesCount": link.dropped_attributes_count,
    }
    return encoded | _present(optional)


def _present(optional: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in optional.items() if value}


def encode_attributes(attributes: Attributes) -> list[dict[str, Any]]:
    """Return a dict as OTLP key-value pairs."""
    return [{"key": key, "value": encode_value(value)} for key, value in attributes.items()]


def encode_value(value: Any) -> dict[str, Any]:
    """Return a Python value as an OTLP AnyValue; integers travel as text, as protobuf's JSON mapping says."""
    if value is None:
        return {}
    if isinstance(value, str):
        return {"stringValue": str(value)}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(int(value))}
    if isinstance(value, float):
        return {"doubleValue": _encode_double(value)}
    if isinstance(value, bytes):
        return {"bytesValue": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {"kvlistValue": {"values": encode_attributes(value)}}
    assert isinstance(value, tuple | list), f"{type(value).__name__} is not an attribute value"
    return {"arrayValue": {"values": [encode_value(item) for item in value]}}


def _encode_double(value: float) -> float | str:
    if value != value:  # noqa: PLR0124  NaN is the one value unequal to itself
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _base64_id(hex_id: str) -> str:
    return base64.b64encode(bytes.fromhex(hex_id)).decode()
