"""The routes of Tempo's read API and of OTLP over HTTP, which Grafana and OpenTelemetry exporters ask for by these paths.

Errors are one line of plain text, as Grafana shows them to people. Reading runs in a thread: a search may read many traces.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

import msgspec
from starlette.routing import BaseRoute, Route

from comity.core.access import Principal, Right
from comity.core.tracing.query import QueryError, encode_search, encode_series
from comity.core.tracing.span import Span
from comity.core.tracing.telemetry import TENANT
from comity.core.units import NS_PER_MS
from comity.engines.otlp.receive import BODY_BYTES_MAX, RETRY_AFTER_S, ingest
from comity.errors import ComityError, RefusedError, UnavailableError
from comity.server.auth import tenant_of
from comity.server.state import State
from comity.server.status import status_of
from comity.server.tempo import answers, tags
from comity.server.tempo.parameters import (
    BadRequest,
    NotFound,
    metrics_request,
    search_request,
    tags_max,
    time_range,
    trace_id,
)
from comity.server.web import JSON_TYPE, Heads, Receive, Scope, Send, encode, read_body, respond
from comity.version import VERSION

log = logging.getLogger("comity.server")

TEXT: Final = b"text/plain; charset=utf-8"
PROTOBUF: Final = b"application/protobuf"
TENANT_HEADER: Final = b"x-scope-orgid"
# Of how many of the newest traces the names and values of tags are gathered.
TAGS_TRACES_MAX: Final = 1_000

Content = tuple[bytes, bytes]  # media type and body
Work = Callable[["Asked"], Content]


class Asked:
    """One request of the read API: its parameters, and the spans of the tenant it may read."""

    __slots__ = ("accepts_protobuf", "given", "now_ns", "path", "spans")

    def __init__(self, scope: Scope, spans: Any, now_ns: int) -> None:
        self.spans = spans
        self.now_ns = now_ns
        self.path: dict[str, str] = scope.get("path_params", {})
        # Of a parameter that stands twice the first counts, as in Go.
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        self.given = dict(reversed([(name, value) for name, value in pairs]))
        self.accepts_protobuf = any(b"application/protobuf" in value for name, value in scope["headers"] if name == b"accept")


def routes(state: State) -> list[BaseRoute]:
    """Return the routes, for `Door`."""
    read = [
        ("/api/search", _search),
        ("/api/search/tags", _tags_v1),
        ("/api/v2/search/tags", _tags_v2),
        ("/api/search/tag/{tag:path}/values", _values_v1),
        ("/api/v2/search/tag/{tag:path}/values", _values_v2),
        ("/api/traces/{trace_id}", _trace_v1),
        ("/api/v2/traces/{trace_id}", _trace_v2),
        ("/api/metrics/query_range", _query_range),
        ("/api/metrics/query", _query_instant),
        ("/api/status/buildinfo", _buildinfo),
        ("/api/echo", _echo),
    ]
    reading = [Route(path, endpoint=_Read(state, path, work), methods=None) for path, work in read]
    return [*reading, Route("/v1/traces", endpoint=_Take(state), methods=None)]


class _Read:
    """Answers one path of the read API."""

    def __init__(self, state: State, path: str, work: Work) -> None:
        self._state, self._path, self._work = state, path, work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  ASGI
        scope["comity.route"] = self._path

        async def answer() -> None:
            if scope["method"] not in ("GET", "HEAD"):
                await respond(send, 405, b"method not allowed", TEXT, ((b"allow", b"GET, HEAD"),))
                return
            tenant_id = _tenant(scope, Right.TRACES_READ)
            await self._state.node.flush_spans()
            asked = Asked(scope, self._state.node.spans.of_tenant(tenant_id), self._state.now_ms() * NS_PER_MS)
            media_type, body = await asyncio.to_thread(self._work, asked)
            await respond(send, 200, body, media_type)

        await _plainly(self._state, scope, send, answer)


class _Take:
    """Takes spans that OpenTelemetry exporters send, into the tenant of the token."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["comity.route"] = "/v1/traces"

        async def answer() -> None:
            if scope["method"] != "POST":
                await respond(send, 405, b"method not allowed", TEXT, ((b"allow", b"POST"),))
                return
            tenant_id = _tenant(scope, Right.TRACES_WRITE)
            heads: Heads = scope["comity.heads"]
            body = await read_body(receive, heads, BODY_BYTES_MAX)
            encoding = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"content-encoding"), "")
            sink = _OfTenant(self._state.node.spans, tenant_id)
            told = await asyncio.to_thread(ingest, sink, body, heads.content_type.decode("latin-1"), encoding=encoding)
            more = ((b"retry-after", b"%d" % RETRY_AFTER_S),) if told.status == 503 else ()
            await respond(send, told.status, told.body, told.content_type.encode(), more)

        await _plainly(self._state, scope, send, answer)


class _OfTenant:
    """Stores spans as those of one tenant, whatever they say themselves."""

    def __init__(self, spans: Any, tenant_id: str) -> None:
        self._spans, self._tenant_id = spans, tenant_id

    def ingest(self, spans: Iterable[Span]) -> int:
        """Store spans and return how many were new."""
        stored: int = self._spans.ingest([self._owned(span) for span in spans])
        return stored

    def _owned(self, span: Span) -> Span:
        attributes = {name: value for name, value in span.attributes.items() if name != TENANT}
        if self._tenant_id != "default":
            attributes[TENANT] = self._tenant_id
        return span if attributes == span.attributes else msgspec.structs.replace(span, attributes=attributes)


async def _plainly(state: State, scope: Scope, send: Send, answer: Callable[[], Awaitable[None]]) -> None:
    """Answer; what cannot be answered is one line of text."""
    try:
        await answer()
    except BadRequest as error:
        await respond(send, 400, str(error).encode(), TEXT)
    except NotFound:
        await respond(send, 404, b"", TEXT)
    except QueryError as error:
        await respond(send, 400, answers.problem(error).encode(), TEXT)
    except RefusedError as error:
        state.refusals.note(scope, error, state.now_ms())
        await respond(send, status_of(error.code), error.message.encode(), TEXT)
    except UnavailableError as error:
        await respond(send, 503, error.message.encode(), TEXT, ((b"retry-after", b"%d" % RETRY_AFTER_S),))
    except ComityError as error:
        await respond(send, status_of(error.code), error.message.encode(), TEXT)


def _tenant(scope: Scope, right: Right) -> str:
    """Return the tenant of a request. Raises `RefusedError` without the right, or if its header names another tenant."""
    principal: Principal = scope["comity.principal"]
    principal.check(right)
    named = [value.decode("latin-1") for name, value in scope["headers"] if name == TENANT_HEADER]
    for one in named:
        tenant_of(principal, one)
    return tenant_of(principal, named[0] if named else None)


# --- what each path answers ---


def _search(asked: Asked) -> Content:
    request = search_request(asked.given)
    found = asked.spans.search(
        request.query,
        start_ns=request.range.start_ns,
        end_ns=request.range.end_ns,
        limit=request.limit,
        spss=request.spss,
        strict=True,
    )
    return JSON_TYPE, encode(encode_search(found))


def _tags_v1(asked: Asked) -> Content:
    return JSON_TYPE, encode({"tagNames": tags.names(_newest(asked), limit=tags_max(asked.given)), "metrics": {}})


def _tags_v2(asked: Asked) -> Content:
    found = tags.scopes(_newest(asked), scope=asked.given.get("scope", ""), limit=tags_max(asked.given))
    return JSON_TYPE, encode({"scopes": [{"name": name, "tags": names} for name, names in found.items()], "metrics": {}})


def _values_v1(asked: Asked) -> Content:
    found = tags.values(_newest(asked), _tag(asked), limit=tags_max(asked.given))
    return JSON_TYPE, encode({"tagValues": sorted({one["value"] for one in found}), "metrics": {}})


def _values_v2(asked: Asked) -> Content:
    found = tags.values(_newest(asked), _tag(asked), limit=tags_max(asked.given))
    return JSON_TYPE, encode({"tagValues": found, "metrics": {}})


def _trace_v1(asked: Asked) -> Content:
    spans = asked.spans.trace(trace_id(asked.path["trace_id"]))
    if not spans:
        raise NotFound
    if asked.accepts_protobuf:
        return PROTOBUF, answers.trace_v1_bytes(spans)
    return JSON_TYPE, encode(answers.trace_v1(spans))


def _trace_v2(asked: Asked) -> Content:
    spans = asked.spans.trace(trace_id(asked.path["trace_id"]))
    if asked.accepts_protobuf:
        return PROTOBUF, answers.trace_v2_bytes(spans)
    return JSON_TYPE, encode(answers.trace_v2(spans))


def _query_range(asked: Asked) -> Content:
    request = metrics_request(asked.given, now_ns=asked.now_ns)
    found = asked.spans.query_range(
        request.query, start_ns=request.start_ns, end_ns=request.end_ns, step_ns=request.step_ns, strict=True
    )
    return JSON_TYPE, encode(encode_series(found))


def _query_instant(asked: Asked) -> Content:
    request = metrics_request(asked.given, now_ns=asked.now_ns)
    found = asked.spans.query_instant(request.query, start_ns=request.start_ns, end_ns=request.end_ns, strict=True)
    return JSON_TYPE, encode(answers.instant(found))


def _buildinfo(_asked: Asked) -> Content:
    told = {"version": VERSION, "revision": "", "branch": "", "buildUser": "", "buildDate": "", "goVersion": ""}
    return JSON_TYPE, encode(told)


def _echo(_asked: Asked) -> Content:
    return TEXT, b"echo"


def _newest(asked: Asked) -> list[Span]:
    """Return the spans whose tags are listed: those a query finds in the newest traces; all, if the query is half-written."""
    during = time_range(asked.given)
    for query in (asked.given.get("q") or "{}", "{}"):
        try:
            found: list[Span] = asked.spans.find(query, start_ns=during.start_ns, end_ns=during.end_ns, limit=TAGS_TRACES_MAX)
        except QueryError:
            continue
        return found
    return []


def _tag(asked: Asked) -> str:
    return unquote(asked.path["tag"])
