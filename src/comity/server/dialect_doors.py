"""Dialects over HTTP: a document of one of the five protocols is posted, and answered in the protocol's own fields.

An agent's token says who calls, for whom, from where and with how much; headers and body may repeat that. Where they say
something else, the document is refused in its dialect and the refusal is audited under the identity of the token.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from starlette.routing import BaseRoute, Route

from comity.core.access import Principal, Right
from comity.core.call.admission import Refused
from comity.core.call.limits import CITED_CHARS_MAX
from comity.core.call.outside import outside_of
from comity.core.envelope.envelope import Request, is_id
from comity.core.tracing.query.ast import quote
from comity.dialects import DIALECTS, contextcore
from comity.errors import CallerError, RefusedError
from comity.runtime.call.draft import Identity
from comity.server.agent_calls import trace_of
from comity.server.auth import tenant_of, user_of
from comity.server.problem import unknown
from comity.server.starting import checked_start
from comity.server.state import State
from comity.server.status import status_of_reply
from comity.server.web import JSON_TYPE, Heads, Receive, Scope, Send, encode, read_body, respond

PATH: Final = "/v1/dialects/{name}"
TEXT_TYPE: Final = b"text/plain"
# Of a call under way on this node that the sender works for: what `ctx.token` gave it.
CALL_TOKEN: Final = b"comity-call-token"
USER: Final = b"comity-user"  # for whom the server's own operator asks
SESSION: Final = b"comity-session"  # in which a document belongs that names none; a token's own comes first


def routes(state: State) -> list[BaseRoute]:
    """Return the routes, for `Door`."""
    delegation = _Dialect(state, "delegation", is_for_agents=True)
    return [
        Route(state.settings.delegation_path, endpoint=delegation, methods=None),
        Route(PATH, endpoint=_Dialect(state, None), methods=None),
    ]


class _Dialect:
    """Takes documents of one dialect, or of the dialect that the path names."""

    def __init__(self, state: State, name: str | None, *, is_for_agents: bool = False) -> None:
        self._state, self._name, self._is_for_agents = state, name, is_for_agents

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one document."""
        scope["comity.route"] = self._state.settings.delegation_path if self._is_for_agents else PATH
        if scope["method"] != "POST":
            raise CallerError(f"{scope['method']} is not allowed here", code="HTTP_METHOD_UNKNOWN", allow="POST")
        name = self._name or scope["path_params"]["name"]
        if name not in DIALECTS:
            raise unknown("dialect", name)
        principal: Principal = scope["comity.principal"]
        heads: Heads = scope["comity.heads"]
        headers = {key: value.decode("latin-1") for key, value in scope["headers"]}
        if self._is_for_agents:
            principal.check_agent()
        elif not principal.is_agent:
            principal.check(Right.CALLS_CREATE)
        raw = await read_body(receive, heads, self._state.settings.body_bytes_max)
        document = _document(raw, heads)
        reply, answer = await self._state.node.answer_document(
            document,
            dialect=name,
            identity=_identity(principal, headers),
            token=headers.get(CALL_TOKEN),
            **trace_of(heads),
            **self._standing(principal, headers),
        )
        if name == contextcore.NAME and reply.ok and "result_trace_id" not in answer:
            answer |= await self._result_trace(reply.request_id)
        await respond(send, status_of_reply(reply), encode(answer), JSON_TYPE)

    async def _result_trace(self, request_id: str) -> dict[str, str]:
        """Return where the result of a handoff can be found, as its protocol asks; nothing where spans are not kept."""
        node = self._state.node
        await node.flush_spans()
        query = f"{{ span.comity.request.id = {quote(request_id)} }}"
        found = await asyncio.to_thread(node.spans.find, query, limit=1)
        return {"result_trace_id": found[0].trace_id} if found else {}

    def _standing(self, principal: Principal, headers: Mapping[bytes, str]) -> dict[str, Any]:
        """Return what is known of the sender of a document, beside the document."""
        state, claims = self._state, principal.claims

        def check(claimed: Request) -> Refused | None:
            try:
                checked_start(state, principal, claimed.target, claimed.capability, claimed.request_id)
            except RefusedError as error:
                return Refused(error.code, error.message)
            return _disagreement(claimed, principal, headers) if principal.is_agent else None

        if not principal.is_agent or claims is None:
            return {"check": check}
        outside = outside_of(claims, state.auth.signed.node_name, now_ms=state.now_ms())
        # A document without an id of its own is known by its token: sent again, it is a retry.
        return {"outside": outside, "check": check, "request_id": f"token-{claims.jti}"}


def _identity(principal: Principal, headers: Mapping[bytes, str]) -> Identity:
    user_id = user_of(principal, headers.get(USER))
    return Identity(user_id, tenant_of(principal, None), principal.session_id or headers.get(SESSION))


def _document(raw: bytes, heads: Heads) -> bytes | str:
    """Return the document as its decoder takes it: JSON as bytes, a block as text."""
    kind = heads.content_type.partition(b";")[0].strip().lower()
    if kind == JSON_TYPE:
        return raw
    if kind != TEXT_TYPE:
        raise CallerError("the body must be declared as application/json, or text/plain for a block", code="HTTP_MEDIA_TYPE")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise CallerError("the body is no UTF-8 text", code="ENVELOPE_MALFORMED") from None


def _disagreement(claimed: Request, principal: Principal, headers: Mapping[bytes, str]) -> Refused | None:
    """Return the refusal of `X-Agent-*` headers that say something else than the token or the body."""
    claims = principal.claims
    if claims is None or claims.cty is None:
        return Refused("IDENTITY_WRONG_KIND", "the headers of an agent need an agent's token")
    session = claimed.parent_session_id or claimed.session_id
    told = {
        b"x-agent-request-id": claimed.request_id,
        b"x-agent-origin": claims.name,
        b"x-agent-depth": str(claims.cty.depth),
        b"x-agent-parent-session": claims.sid or session,
    }
    for name, true in told.items():
        said = headers.get(name)
        if said is not None and said.strip() != true:
            shown = said if is_id(said) else "something unprintable"
            said = f"the header {name.decode().title()} says {shown[:CITED_CHARS_MAX]}"
            message = f"{said}; the token and the body say {true[:CITED_CHARS_MAX]}"
            return Refused("IDENTITY_MISMATCH", message)
    if claims.sid and session and session != claims.sid:
        return Refused("IDENTITY_MISMATCH", "the document names another session than its token")
    return None
