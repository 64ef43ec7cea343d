"""Names and values of attributes for Tempo's tag endpoints, gathered from spans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from comity.core.call.limits import CITED_CHARS_MAX
from comity.core.tracing.span import Span
from comity.server.tempo.parameters import BadRequest

# What autocompletion offers beside attributes, as Tempo 3.1 lists it.
INTRINSICS: Final = (
    "duration", "event:name", "event:timeSinceStart", "instrumentation:name", "instrumentation:version", "kind", "link:spanID",
    "link:traceID", "name", "rootName", "rootServiceName", "span:duration", "span:id", "span:kind", "span:name",
    "span:parentID", "span:status", "span:statusMessage", "status", "statusMessage", "trace:duration", "trace:id",
    "trace:rootName", "trace:rootService", "traceDuration",
)  # fmt: skip
SCOPES: Final = ("resource", "span", "event", "link", "instrumentation", "intrinsic")
_STATUSES: Final = ("ok", "error", "unset")
_KINDS: Final = ("client", "server", "producer", "consumer", "internal", "unspecified")
_KEYWORDS: Final = {"status": _STATUSES, "span:status": _STATUSES, "kind": _KINDS, "span:kind": _KINDS}
# Each is offered in a list, and too varied for one to be chosen from it.
_WITHOUT_VALUES: Final = frozenset(
    {"duration", "span:duration", "traceDuration", "trace:duration", "trace:id", "span:id", "span:parentID", "link:spanID",
     "link:traceID", "event:timeSinceStart"}
)  # fmt: skip


def scopes(spans: Iterable[Span], *, scope: str = "", limit: int) -> dict[str, list[str]]:
    """Return the names of attributes by scope, each list sorted; `scope` asks for one of them alone."""
    wanted: tuple[str, ...] = SCOPES
    if scope in ("none", ""):
        pass
    elif scope in SCOPES:
        wanted = (scope,)
    else:
        raise BadRequest(f"invalid scope: {scope[:CITED_CHARS_MAX]}")
    found: dict[str, set[str]] = {name: set() for name in wanted}
    for span in spans:
        for name, attributes in _attributes(span):
            if name in found:
                found[name].update(attributes)
    if "intrinsic" in found:
        found["intrinsic"].update(INTRINSICS)
    return {name: sorted(names)[:limit] for name, names in found.items() if names}


def names(spans: Iterable[Span], *, limit: int) -> list[str]:
    """Return the names of all attributes, whatever their scope, sorted."""
    by_scope = scopes(spans, limit=limit)
    return sorted({one for scope, listed in by_scope.items() if scope != "intrinsic" for one in listed})[:limit]


def values(spans: Iterable[Span], tag: str, *, limit: int) -> list[dict[str, str]]:
    """Return the values of an attribute or intrinsic as Tempo's second API lists them: a type and a text each."""
    scope, name = split(tag)
    if not scope and name in _KEYWORDS:
        return [{"type": "keyword", "value": value} for value in _KEYWORDS[name]]
    if not scope and name in _WITHOUT_VALUES:
        return []
    found: dict[tuple[str, str], None] = {}
    for span in spans:
        for value in _values_of(span, scope, name):
            found[_typed(value)] = None
            if len(found) >= limit:
                break
    return [{"type": kind, "value": text} for kind, text in found]


def split(tag: str) -> tuple[str, str]:
    """Return scope and name of a tag such as `resource.service.name`, `.service.name` or `duration`."""
    if tag.startswith("."):
        return "any", tag[1:]
    scope, dot, name = tag.partition(".")
    if dot and scope in SCOPES[:-1]:
        return scope, name
    return ("", tag) if tag in INTRINSICS or tag in _KEYWORDS else ("any", tag)


def _attributes(span: Span) -> Iterator[tuple[str, Any]]:
    yield "resource", span.resource
    yield "span", span.attributes
    for event in span.events:
        yield "event", event.attributes
    for link in span.links:
        yield "link", link.attributes
    yield "instrumentation", span.scope_attributes


def _values_of(span: Span, scope: str, name: str) -> Iterator[Any]:
    if not scope:
        yield from _intrinsic(span, name)
        return
    for owner, attributes in _attributes(span):
        if scope in ("any", owner) and name in attributes:
            value = attributes[name]
            yield from value if isinstance(value, list | tuple) else (value,)


def _intrinsic(span: Span, name: str) -> Iterator[Any]:
    if name in ("name", "span:name"):
        yield span.name
    elif name in ("statusMessage", "span:statusMessage"):
        yield from (span.status_message,) if span.status_message else ()
    elif name in ("rootName", "trace:rootName"):
        yield from (span.name,) if span.parent_id is None else ()
    elif name in ("rootServiceName", "trace:rootService"):
        yield from (span.resource.get("service.name", ""),) if span.parent_id is None else ()
    elif name == "event:name":
        yield from (event.name for event in span.events)
    elif name == "instrumentation:name":
        yield from (span.scope_name,) if span.scope_name else ()
    elif name == "instrumentation:version":
        yield from (span.scope_version,) if span.scope_version else ()


def _typed(value: Any) -> tuple[str, str]:
    if isinstance(value, bool):
        return "bool", str(value).lower()
    if isinstance(value, int):
        return "int", str(value)
    if isinstance(value, float):
        return "float", str(int(value)) if value.is_integer() and abs(value) < 1e15 else str(value)
    return "string", str(value)
