"""Routes as data: what each takes, answers and may refuse. Requests are served from them and OpenAPI is made from them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct

from comity.core.access import Principal, Right
from comity.core.call.limits import CITED_CHARS_MAX
from comity.core.document.payload import Problem
from comity.core.envelope.envelope import is_id
from comity.errors import CallerError
from comity.server.auth import seen_tenant
from comity.server.problem import unknown
from comity.server.state import State
from comity.server.web import Answer, Heads, Reader, Receive, Scope, Send, check_json_type, encode, read_body, respond

QUERY_BYTES_MAX: Final = 8 * 1024
# Answered without a token: nothing in them is a secret.
OPEN_PATHS: Final = frozenset({"/", "/healthz", "/readyz", "/v1/session", "/openapi.json"})


class Ask:
    """One request as a handler sees it: the caller's identity, and the parts of the request, read and checked."""

    __slots__ = ("body", "heads", "params", "principal", "query", "scope", "send", "state")

    def __init__(self, state: State, scope: Scope, heads: Heads, send: Send) -> None:
        self.state = state
        self.scope = scope
        self.heads = heads
        self.send = send
        self.principal: Principal = scope["comity.principal"]
        self.params: dict[str, str] = scope.get("path_params", {})
        self.query: Any = None
        self.body: Any = None

    def tenant(self) -> str | None:
        """Return the tenant that this request may see; None for all of them."""
        return seen_tenant(self.principal)


Handler = Callable[[Ask], Awaitable[Any]]


class Route(Struct, frozen=True, kw_only=True):
    """One operation. A handler returns a value, an `Answer`, or None after it has written the answer itself."""

    method: str
    path: str
    name: str  # the operation id
    right: Right | None
    handler: Handler
    summary: str
    tag: str
    query: type[Struct] | None = None
    body: type | None = None
    answer: Any = None
    status: int = 200
    others: dict[int, Any] = {}  # further answers by status: a type, several, or None for none
    codes: tuple[str, ...] = ()  # error codes it may give beside those that every route may
    media_type: str = "application/json"
    is_body_optional: bool = False


class Endpoint:
    """The routes of one path, as an ASGI application."""

    def __init__(self, state: State, routes: list[Route]) -> None:
        self._state = state
        self._routes = {route.method: (route, None if route.body is None else Reader(route.body)) for route in routes}
        self._allow = ", ".join(sorted({*self._routes, *({"HEAD"} if "GET" in self._routes else set())}))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request: check the right, read query and body, ask the handler, write what it answers."""
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        found = self._routes.get(method)
        if found is None:
            message = f"{scope['method']} is not allowed here"
            raise CallerError(message, code="HTTP_METHOD_UNKNOWN", allow=self._allow)
        route, reader = found
        scope["comity.route"] = route.path
        heads: Heads = scope["comity.heads"]
        ask = Ask(self._state, scope, heads, send)
        if route.right is not None:
            ask.principal.check(route.right)
        for name, value in ask.params.items():
            if not is_id(value):  # no store has such a name
                raise unknown(name.removesuffix("_id"), value)
        ask.query = read_query(scope["query_string"], route.query)
        if reader is not None:
            raw = await read_body(receive, heads, self._state.settings.body_bytes_max)
            if raw or not route.is_body_optional:
                check_json_type(heads)
                ask.body = await reader.read_long(raw)
        answer = await route.handler(ask)
        if answer is None:
            return
        if not isinstance(answer, Answer):
            answer = Answer(answer, route.status)
        scope["comity.status"] = answer.status
        body = answer.value if isinstance(answer.value, bytes) else encode(answer.value)
        await respond(send, answer.status, body, answer.media_type, answer.headers)


def read_query(raw: bytes, kind: type[Struct] | None) -> Any:
    """Return the query parameters as a value of their type. Raises `CallerError` HTTP_QUERY_INVALID."""
    if not raw and kind is None:
        return None
    if len(raw) > QUERY_BYTES_MAX:
        raise CallerError(f"the query may have at most {QUERY_BYTES_MAX:,} bytes", code="HTTP_QUERY_INVALID")
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, strict_parsing=bool(raw), errors="strict")
    except ValueError:
        raise CallerError("the query cannot be read", code="HTTP_QUERY_INVALID") from None
    names = [] if kind is None else [field.encode_name for field in msgspec.structs.fields(kind)]
    told: dict[str, Any] = {}
    for name, value in pairs:
        if name not in names:
            raise _wrong_query(name, f"is not one of {', '.join(names) or 'none that this path takes'}")
        if name in told:
            raise _wrong_query(name, "stands twice")
        if not value.isprintable():
            raise _wrong_query(name, "holds a control character")
        told[name] = value
    if kind is None:
        return None
    try:
        return msgspec.convert(told, kind, strict=False)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$.")
        raise _wrong_query(place.rstrip("`"), message) from None


def _wrong_query(name: str, message: str) -> CallerError:
    shown = ascii(name)[1:-1][:CITED_CHARS_MAX]
    problem = Problem(shown, message)
    return CallerError(f"{shown or 'query'}: {message}", code="HTTP_QUERY_INVALID", problems=(problem,))
