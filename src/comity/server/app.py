"""The server as one ASGI application: the guard first, then who asks, then the door.

    guard → authenticate → rate → the call route, or the table of routes, or further doors

The route that makes a call is bare ASGI, since that costs half of what a routed one does. Everything else is a row of a table.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable
from typing import Final

from msgspec import Struct
from starlette.routing import BaseRoute, Router
from starlette.routing import Route as Path

from comity import Node
from comity.errors import CallerError, ComityError, UnavailableError
from comity.server import console, table
from comity.server.auth import STRANGER, Gate
from comity.server.calls import CallDoor
from comity.server.guard import Guard
from comity.server.logs import note_request
from comity.server.openapi import document
from comity.server.rate import Rates
from comity.server.routes import OPEN_PATHS, Endpoint, Route
from comity.server.settings import Settings
from comity.server.state import State
from comity.server.web import BrokenOffError, Receive, Scope, Send, encode, read_heads, respond, respond_problem

log = logging.getLogger("comity.server")

CALLS: Final = "/v1/calls"
OPEN_PREFIXES: Final = ("/console", "/.well-known/")


class Door(Struct, frozen=True):
    """Further routes, made from the server's state; paths that begin with `open_prefixes` need no token."""

    routes: Callable[[State], Iterable[BaseRoute]]
    open_prefixes: Collection[str] = ()


class App:
    """The HTTP doors of a running node."""

    def __init__(self, node: Node, settings: Settings, auth: Gate, doors: Iterable[Door] = ()) -> None:
        self.state = State(node, settings, auth)
        self._guard = Guard(settings, settings.port)
        self._rates = Rates(settings)
        self._calls = CallDoor(self.state)
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

        async def counted(message: dict[str, object]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]  # type: ignore[assignment]
            await send(message)

        try:
            await self._serve(scope, receive, counted)  # type: ignore[arg-type]
        except BrokenOffError:
            pass
        except ComityError as error:
            self.state.refusals.note(scope, error, self.state.now_ms())
            if not status:
                await respond_problem(counted, error, instance=scope["path"])  # type: ignore[arg-type]
        except Exception:  # the task boundary: whatever a handler raises is one failed request
            log.exception("%s %s failed", scope["method"], scope["path"])
            if not status:
                failed = UnavailableError("the server failed to answer", code="HTTP_SERVER_FAILED")
                await respond_problem(counted, failed, instance=scope["path"])  # type: ignore[arg-type]
        finally:
            metrics.in_flight -= 1
            took_ms = (time.perf_counter() - begun) * 1000
            route = scope.get("comity.route", "(none)")
            metrics.answered(route, status, took_ms)
            if self.state.settings.log_requests:
                note_request(scope, route, status, took_ms)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        heads = scope["comity.heads"] = read_heads(scope)
        path, method = scope["path"], scope["method"]
        self._guard.check_host(heads.host)
        if heads.origin is not None or heads.site is not None:
            is_page = method == "GET" and (path == "/" or path.startswith("/console"))
            self._guard.check_origin(heads.origin, heads.site, is_page=is_page)
            if cors := self._guard.cors(heads.origin):
                send = _with_headers(send, cors)
                if method == "OPTIONS":
                    await respond(send, 204, b"", headers=_PREFLIGHT)
                    return
        if path not in OPEN_PATHS and not path.startswith(self._open_prefixes):
            principal = self.state.auth.authenticate(heads.authorization.decode("latin-1"), self.state.now_ms())
            scope["comity.principal"] = principal
            self._rates.take(principal.token_id or principal.name)
        else:
            scope["comity.principal"] = STRANGER
            client = scope.get("client")
            self._rates.take(client[0] if client else "")
        if path == CALLS and method == "POST":
            scope["comity.route"] = CALLS
            await self._calls(scope, receive, send)
        else:
            await self._router(scope, receive, send)


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
    raise CallerError(f"there is nothing at {ascii(scope['path'])[:80]}", code="HTTP_PATH_UNKNOWN")


def paths_of(state: State, routes: Iterable[Route]) -> list[BaseRoute]:
    """Return the paths of a table of routes, each with all its methods."""
    by_path: dict[str, list[Route]] = {}
    for route in routes:
        by_path.setdefault(route.path, []).append(route)
    return [Path(path, endpoint=Endpoint(state, rows)) for path, rows in by_path.items()]
