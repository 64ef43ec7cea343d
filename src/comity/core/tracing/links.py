"""The ids of traces and spans as callers give them, checked where they are made.

An id of the wrong form would be stored, never found again, and spoil the export request that it stands in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from comity.core.tracing import trace_context
from comity.core.tracing.span import Link, Span
from comity.errors import CallerError

_TRACE_ID: Final = re.compile("(?!0{32})[0-9a-f]{32}")
_SPAN_ID: Final = re.compile("(?!0{16})[0-9a-f]{16}")
_FORMS: Final = (
    "a link names a span: an OpenTelemetry SpanContext or Link, a traceparent, "
    "or trace_id (32 hex digits) with span_id (16 hex digits)"
)
_NAMES: Final = frozenset({"trace_id", "span_id", "relationship"})


def read_trace_id(given: Any, field: str = "trace_id") -> str:
    """Return the id of a trace in lower case, from hex digits or OpenTelemetry's number. Raises `CallerError`."""
    return _read(given, field, 32, _TRACE_ID)


def read_span_id(given: Any, field: str = "span_id") -> str:
    """Return the id of a span in lower case, from hex digits or OpenTelemetry's number. Raises `CallerError`."""
    return _read(given, field, 16, _SPAN_ID)


def _read(given: Any, field: str, digits: int, form: re.Pattern[str]) -> str:
    text = given
    if isinstance(given, int) and not isinstance(given, bool) and 0 < given < 16**digits:
        text = f"{given:0{digits}x}"
    if isinstance(text, str) and form.fullmatch(text.lower()):
        return text.lower()
    raise CallerError(f"{field} is {given!r}; it must be {digits} hex digits, not all of them 0", field=field)


def read_link(given: Any) -> Link:
    """Return a link to the span that was given, in any of the forms it may have. Raises `CallerError`.

    An OpenTelemetry object is known by its attributes, so that its library need not be installed.
    """
    if isinstance(given, str):
        found = trace_context.read(given)
        if found is None:
            raise CallerError(f"links has {given!r}; {_FORMS}", field="links")
        given = found
    if isinstance(given, Mapping):
        if unknown := [str(name) for name in given if name not in _NAMES]:
            raise CallerError(f"links has {', '.join(unknown)}; {_FORMS}", field="links")
        attributes = {"link.relationship": given["relationship"]} if "relationship" in given else {}
        return _link(given.get("trace_id"), given.get("span_id"), attributes)
    context = getattr(given, "context", given)  # of an OpenTelemetry link
    if not hasattr(context, "trace_id") or not hasattr(context, "span_id"):
        raise CallerError(f"links has a {type(given).__name__}; {_FORMS}", field="links")
    attributes = getattr(given, "attributes", None) or {}
    if isinstance(relationship := getattr(given, "relationship", None), str):
        attributes = {"link.relationship": relationship}
    return _link(context.trace_id, context.span_id, attributes)


def _link(trace_id: Any, span_id: Any, attributes: Mapping[str, Any]) -> Link:
    return Link(
        trace_id=read_trace_id(trace_id, "links: trace_id"),
        span_id=read_span_id(span_id, "links: span_id"),
        attributes=dict(attributes),
    )


def id_problem(span: Span) -> str:
    """Return which id of a span has the wrong form, or empty text."""
    ids = [("trace_id", span.trace_id, _TRACE_ID), ("span_id", span.span_id, _SPAN_ID)]
    if span.parent_id:
        ids.append(("parent_id", span.parent_id, _SPAN_ID))
    for link in span.links:
        ids += [("a link's trace_id", link.trace_id, _TRACE_ID), ("a link's span_id", link.span_id, _SPAN_ID)]
    return next((f"{name} is {value!r}" for name, value, form in ids if not form.fullmatch(value)), "")
