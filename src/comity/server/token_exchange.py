"""Token exchange (RFC 8693): an agent gives its token of this node for one with less, for another node or a smaller task.

A token can be exchanged once, in place of being used for a request: otherwise it would be as many tokens as its holder likes.
"""

from __future__ import annotations

import hashlib
from typing import Final
from urllib.parse import parse_qsl

from msgspec.structs import replace
from starlette.routing import BaseRoute, Route

from comity.core.access import Left, Principal, Scope, Standing
from comity.core.access.claims import refused
from comity.core.units import MS_PER_S
from comity.errors import CallerError
from comity.server.state import State
from comity.server.web import JSON_TYPE, Heads, Receive, Send, encode, read_body, respond
from comity.server.web import Scope as Connection

PATH: Final = "/v1/token"
GRANT: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
JWT: Final = "urn:ietf:params:oauth:token-type:jwt"
FORM_TYPE: Final = b"application/x-www-form-urlencoded"
FORM_BYTES_MAX: Final = 16 * 1024
_NUMBERS: Final = ("calls", "depth", "fan_out", "tokens")


def routes(state: State) -> list[BaseRoute]:
    """Return the route, for `Door`."""
    return [Route(PATH, endpoint=_Exchange(state), methods=None)]


class _Exchange:
    """Gives narrower tokens."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        """Answer with a token whose audience, scope and limits are within those of the token shown."""
        scope["comity.route"] = PATH
        if scope["method"] != "POST":
            raise CallerError(f"{scope['method']} is not allowed here", code="HTTP_METHOD_UNKNOWN", allow="POST")
        principal: Principal = scope["comity.principal"]
        principal.check_agent()
        heads: Heads = scope["comity.heads"]
        if heads.content_type.partition(b";")[0].strip().lower() != FORM_TYPE:
            raise CallerError("the body must be declared as application/x-www-form-urlencoded", code="HTTP_MEDIA_TYPE")
        raw = await read_body(receive, heads, FORM_BYTES_MAX)
        form = dict(parse_qsl(raw.decode("latin-1"), keep_blank_values=True))
        if form.get("grant_type") != GRANT:
            raise CallerError(f"grant_type must be {GRANT}", code="ENVELOPE_MALFORMED")
        token, granted, seconds = self._exchanged(principal, form, hashlib.sha256(raw).hexdigest())
        told = {
            "access_token": token, "issued_token_type": JWT, "token_type": "Bearer", "expires_in": seconds, "scope": granted,
        }  # fmt: skip
        await respond(send, 200, encode(told), JSON_TYPE)

    def _exchanged(self, principal: Principal, form: dict[str, str], digest: str) -> tuple[str, str, int]:
        state = self._state
        signed, now_ms = state.auth.signed, state.now_ms()
        claims = principal.claims
        if claims is None or claims.cty is None or claims.iss != signed.node_name:
            raise refused("IDENTITY_WRONG_KIND", "only tokens that this node signed for its agents can be exchanged here")
        asked = Scope.of(form["scope"]) if form.get("scope") else principal.scope
        if not principal.scope.includes(asked):
            raise refused("RIGHTS_SCOPE_EXCEEDED", "the scope asked for is wider than that of the token")
        signed.bind(principal, f"exchange-{digest[:40]}", now_ms=now_ms)
        standing = Standing(
            chain=claims.cty.chain, left=_narrowed(claims.cty.left, claims.exp, form), req=form.get("request_id", "")
        )
        token = signed.tokens.for_agent(
            claims.name, audience=form.get("audience") or signed.node_name, user_id=claims.uid, standing=standing,
            scope=str(asked), now_ms=now_ms, tenant_id=claims.tid, session_id=claims.sid, act=claims.act,
        )  # fmt: skip
        return token, str(asked), max(standing.left.deadline - now_ms, 0) // MS_PER_S


def _narrowed(left: Left, expires_s: int, form: dict[str, str]) -> Left:
    """Return what is left with what the form asks for, where that is less; never beyond the token's own end."""
    wanted = {}
    for name in _NUMBERS:
        if (text := form.get(name)) is not None:
            if not text.isdigit() or len(text) > 12:
                raise CallerError(f"{name} must be a whole number", code="ENVELOPE_MALFORMED")
            wanted[name] = int(text)
    other = replace(left, deadline=min(left.deadline, expires_s * MS_PER_S), **wanted)
    return left.narrow(other)
