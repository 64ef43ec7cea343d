"""Calls of agents of other nodes: `POST /v1/agent-calls`, in our own envelope, with the caller's token.

A call belongs to its request id, not to its connection: a caller that lost the connection posts the same request again and gets
the call that runs, or its reply. Only `DELETE` cancels it.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct
from starlette.routing import BaseRoute, Route

from comity.core.access import Principal
from comity.core.call.limits import TIMEOUT_MS_CEILING
from comity.core.call.outside import Outside
from comity.core.envelope.envelope import Background, Priority
from comity.errors import CallerError, UnavailableError
from comity.runtime.call.draft import Draft, Identity
from comity.server.problem import unknown
from comity.server.starting import checked_start
from comity.server.state import State
from comity.server.status import status_of_reply
from comity.server.stream import frame
from comity.server.web import (
    JSON_TYPE,
    Heads,
    Reader,
    Receive,
    Scope,
    Send,
    check_json_type,
    encode,
    read_body,
    respond,
)

PATH: Final = "/v1/agent-calls"
STREAM: Final = b"text/event-stream"


class AgentCall(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What an agent of another node asks for. User, tenant, session, chain and limits are in its token."""

    target: str
    capability: str
    request_id: str
    inputs: dict[str, Any] = {}
    objective: str = ""
    message: str = ""
    timeout_ms: int | None = None
    priority: Priority = Priority.NORMAL
    context: Background | None = None
    correlation_id: str = ""


class NodeFacts(Struct, frozen=True):
    """What every node may know of this one: the name that tokens for it must have as their audience.

    `signin` is the host of the provider by which users sign in; nothing where there is none.
    """

    node: str
    agent_calls: str
    jwks: str
    signin: str = ""


def routes(state: State) -> list[BaseRoute]:
    """Return the routes, for `Door`."""

    async def about(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001  ASGI
        scope["comity.route"] = "/.well-known/comity.json"
        provider = urlsplit(state.settings.oidc.get("issuer", "")).hostname or ""
        facts = NodeFacts(state.auth.signed.node_name, PATH, "/.well-known/jwks.json", provider)
        await respond(send, 200, encode(facts), JSON_TYPE)

    async def jwks(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001  ASGI
        scope["comity.route"] = "/.well-known/jwks.json"
        await respond(send, 200, encode(state.auth.signed.tokens.ring.jwks()), JSON_TYPE)

    return [
        Route(PATH, endpoint=_Calls(state), methods=None),
        Route(f"{PATH}/{{request_id}}", endpoint=_Cancel(state), methods=None),
        Route("/.well-known/comity.json", endpoint=_App(about), methods=None),
        Route("/.well-known/jwks.json", endpoint=_App(jwks), methods=None),
    ]


class _App:
    """A function as an ASGI application; Starlette would take a bare function for a handler that gets a request."""

    def __init__(self, serve: Any) -> None:
        self._serve = serve

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._serve(scope, receive, send)


class _Calls:
    """Makes calls for agents of other nodes."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._reader = Reader(AgentCall)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Begin or join a call, and answer with its events and reply, or with its reply alone."""
        scope["comity.route"] = PATH
        if scope["method"] != "POST":
            raise CallerError(f"{scope['method']} is not allowed here", code="HTTP_METHOD_UNKNOWN", allow="POST")
        state, heads = self._state, scope["comity.heads"]
        principal: Principal = scope["comity.principal"]
        principal.check_agent()
        raw = await read_body(receive, heads, state.settings.body_bytes_max)
        check_json_type(heads)
        asked: AgentCall = await self._reader.read_long(raw)
        if state.is_draining:
            raise UnavailableError("the server is about to stop", code="NODE_CLOSED")
        start = checked_start(state, principal, asked.target, asked.capability, asked.request_id)
        handle = state.node.start_outside(
            _draft(asked, start.outside),
            Identity(principal.user_id, principal.tenant_id, principal.session_id or None),
            asked.request_id,
            **trace_of(heads),
        )
        accepts = next((value for name, value in scope["headers"] if name == b"accept"), b"")
        if STREAM not in accepts:
            reply = await handle.reply()
            await respond(send, status_of_reply(reply), encode(reply), JSON_TYPE)
            return

        async def end() -> bytes:
            return frame("reply", await handle.reply())

        await state.streams.serve(scope, send, handle.log, 0, lambda event: frame(event.kind, event, event.seq), end)


def _draft(asked: AgentCall, outside: Outside | None) -> Draft:
    timeout_ms = None if asked.timeout_ms is None else min(max(asked.timeout_ms, 0), TIMEOUT_MS_CEILING)
    return Draft(
        asked.target, asked.capability, asked.inputs, asked.objective, asked.message, timeout_ms, asked.priority,
        asked.context, None, "none", correlation_id=asked.correlation_id, outside=outside,
    )  # fmt: skip


class _Cancel:
    """Cancels a call of an agent of another node."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  ASGI
        """Cancel the call that the path names and everything below it, if the token was made for it."""
        scope["comity.route"] = f"{PATH}/{{request_id}}"
        if scope["method"] != "DELETE":
            raise CallerError(f"{scope['method']} is not allowed here", code="HTTP_METHOD_UNKNOWN", allow="DELETE")
        state, request_id = self._state, scope["path_params"]["request_id"]
        principal: Principal = scope["comity.principal"]
        principal.check_agent()
        state.auth.signed.bind(principal, request_id, now_ms=state.now_ms())
        handle = state.node.find_call(request_id, tenant_id=principal.tenant_id, user_id=principal.user_id)
        if handle is None:
            raise unknown("call", request_id)
        await respond(send, 200, encode({"request_id": request_id, "cancelled": handle.cancel()}), JSON_TYPE)


def trace_of(heads: Heads) -> dict[str, Any]:
    """Return the W3C headers of a request as a node takes them."""
    return {
        "traceparent": [one.decode("latin-1") for one in heads.traceparent] or None,
        "tracestate": [one.decode("latin-1") for one in heads.tracestate] or None,
    }
