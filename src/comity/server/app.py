"""The server as one ASGI application: the guard first, then authentication, then the door.

    guard → authenticate → rate → the call route, or the table of routes, or further doors

The route that makes a call is bare ASGI, since that costs half of what a routed one does. Everything else is a row of a table.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, MutableMapping
from typing import Any, Final

from msgspec import Struct
from starlette.routing import BaseRoute, Router
from starlette.routing import Route as Path

from comity import Node
from comity.core.call.limits import CITED_CHARS_MAX
from comity.core.units import MS_PER_S
from comity.errors import CallerError, ComityError, RefusedError, UnavailableError
from comity.server import console, table
from comity.server.auth import STRANGER, Gate
from comity.server.calls import CallDoor, Sender
from comity.server.connection import give_up
from comity.server.guard import Guard
from comity.server.logs import note_request
from comity.server.openapi import document
from comity.server.rate import Rates, sender_of
from comity.server.routes import OPEN_PATHS, Endpoint, Route
from comity.server.settings import Settings
from comity.server.state import State
from comity.server.web import BrokenOffError, Heads, Receive, Scope, Send, encode, read_heads, respond, respond_problem

log = logging.getLogger("comity.server")

CALLS: Final = "/v1/calls"
BROKEN_OFF: Final = 499  # how a request that its client gave up is counted
# How long and for how many clients it is remembered who sends the same headers.
SENDER_S: Final = 0.25
SENDERS_MAX: Final = 1_024
SENDER_BYTES_MAX: Final = 2_048
# What a link on another site may lead to: the console, and where a provider sends users back to.
PAGES: Final = frozenset({"/", "/v1/signin/callback"})
OPEN_PREFIXES: Final = ("/console", "/.well-known/")


class Door(Struct, frozen=True):
    """Further routes, made from the server's state; paths that begin with `open_prefixes` need no token."""

    routes: Callable[[State], Iterable[BaseRoute]]
    open_prefixes: Collection[str] = ()


class StartedError(Exception):
    """A handler failed after its answer had begun."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class App:
    """The HTTP doors of a running node."""

    def __init__(self, node: Node, settings: Settings, auth: Gate, doors: Iterable[Door] = ()) -> None:
        self.state = State(node, settings, auth)
        self._guard = Guard(settings, settings.port)
        self._rates = Rates(settings)
        self._calls = CallDoor(self.state)
        self._senders: dict[tuple[tuple[bytes, bytes], ...], Sender] = {}
        self.state.description = encode(document(table.ROUTES))
        doors = (Door(console.routes), *doors)
        self._open_prefixes = (*OPEN_PREFIXES, *(one for door in doors for one in door.open_prefixes))
        routes = [route for door in doors for route in door.routes(self.state)]
        self._router = Router([*paths_of(self.state, table.ROUTES), *routes], redirect_slashes=False, default=_unknown)

    def bind(self, port: int) -> None:
        """Take note of the port that the server listens on, where the system chose it."""
        self._guard = Guard(self.state.settings, port)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. No request makes it raise."""
        if scope["type"] != "http":
            return
        metrics, begun = self.state.metrics, time.perf_counter()
        metrics.in_flight += 1
        status = 0
        try:
            if scope["path"] == CALLS and scope["method"] == "POST":
                scope["comity.route"] = CALLS
                sender = self._admitted(scope)
                if sender.heads.origin is None:
                    status = await self._calls.answer(scope, receive, send, sender)
                else:
                    status = await self._calls.answer(scope, receive, self._with_cors(send, sender.heads), sender)
            else:
                status = await self._serve(scope, receive, send)
        except BrokenOffError:
            status = BROKEN_OFF
            give_up(send)
        except StartedError as error:  # the answer had begun: its connection tells the client that it is not whole
            status = error.status
        except ComityError as error:
            self.state.refusals.note(scope, error, self.state.now_ms())
            status = await respond_problem(send, error, instance=scope["path"])
        except Exception:  # the task boundary: whatever a handler raises is one failed request
            if getattr(scope.get("comity.connection"), "is_lost", False):  # no client is left to answer
                status = BROKEN_OFF
                give_up(send)
                return
            log.exception("%s %s failed", scope["method"], scope["path"])
            failed = UnavailableError("the server failed to answer", code="HTTP_SERVER_FAILED")
            status = await respond_problem(send, failed, instance=scope["path"])
        finally:
            metrics.in_flight -= 1
            took_ms = (time.perf_counter() - begun) * MS_PER_S
            route = scope.get("comity.route", "(none)")
            metrics.answered(route, status, took_ms)
            if self.state.settings.log_requests:
                note_request(scope, route, status, took_ms)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> int:
        """Serve a request by the table or a further door; return the status of its answer."""
        sender, status = self._admitted(scope), 0
        if sender.heads.origin is not None and self._guard.cors(sender.heads.origin):
            send = self._with_cors(send, sender.heads)
            if scope["method"] == "OPTIONS":
                await respond(send, 204, b"", headers=_PREFLIGHT)
                return 204

        async def counted(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._router(scope, receive, counted)
        except Exception as error:
            if not status:
                raise
            if not isinstance(error, BrokenOffError):
                log.exception("%s %s broke off", scope["method"], scope["path"])
            raise StartedError(status) from error
        return status

    def _admitted(self, scope: Scope) -> Sender:
        """Return who sends a request, once its Host, Origin, token and rate are good. Raises `ComityError` where one is not.

        A connection sends the same headers again and again: what was found of them holds for a quarter of a second.
        """
        key, now = tuple(scope["headers"]), time.monotonic()
        path = scope["path"]
        is_open = path in OPEN_PATHS or path.startswith(self._open_prefixes)
        sender = None if is_open else self._senders.get(key)
        if sender is None or sender.until < now:
            sender = self._found(scope, now, is_open=is_open)
            if not is_open and sum(len(name) + len(value) for name, value in key) <= SENDER_BYTES_MAX:
                if len(self._senders) >= SENDERS_MAX:
                    self._senders.clear()
                self._senders[key] = sender
        else:
            scope["comity.heads"], scope["comity.principal"] = sender.heads, sender.principal
        self._rates.take(sender.who)
        return sender

    def _found(self, scope: Scope, now: float, *, is_open: bool) -> Sender:
        heads = scope["comity.heads"] = read_heads(scope)
        client = scope.get("client")
        address = client[0] if client else ""
        self._guard.check_host(heads.host)
        if heads.origin is not None or heads.site is not None:
            path = scope["path"]
            is_page = scope["method"] == "GET" and (path in PAGES or path.startswith("/console"))
            self._guard.check_origin(heads.origin, heads.site, is_page=is_page)
        if is_open or (scope["method"] == "OPTIONS" and self._guard.cors(heads.origin)):
            scope["comity.principal"] = STRANGER
            return Sender(heads, STRANGER, address, 0.0)
        try:
            principal = self.state.auth.authenticate(heads.authorization.decode("latin-1"), self.state.now_ms())
        except RefusedError:
            self._rates.take(f"{address} without a good token")
            raise
        scope["comity.principal"] = principal
        return Sender(heads, principal, sender_of(principal), now + SENDER_S)

    def _with_cors(self, send: Send, heads: Heads) -> Send:
        return _with_headers(send, self._guard.cors(heads.origin))


_PREFLIGHT: Final = (
    (b"access-control-allow-methods", b"GET, POST, PUT, DELETE"),
    (b"access-control-allow-headers", b"authorization, content-type, idempotency-key, last-event-id, traceparent, tracestate"),
    (b"access-control-max-age", b"600"),
)


def _with_headers(send: Send, headers: tuple[tuple[bytes, bytes], ...]) -> Send:
    async def sending(message: dict[str, object]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *headers]  # type: ignore[misc]
        await send(message)

    return sending  # type: ignore[return-value]


async def _unknown(scope: Scope, _receive: Receive, _send: Send) -> None:
    raise CallerError(f"there is nothing at {ascii(scope['path'])[:CITED_CHARS_MAX]}", code="HTTP_PATH_UNKNOWN")


def paths_of(state: State, routes: Iterable[Route]) -> list[BaseRoute]:
    """Return the paths of a table of routes, each with all its methods."""
    by_path: dict[str, list[Route]] = {}
    for route in routes:
        by_path.setdefault(route.path, []).append(route)
    return [Path(path, endpoint=Endpoint(state, rows)) for path, rows in by_path.items()]
