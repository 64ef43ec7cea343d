"""Keys and tokens over HTTP: which keys sign and are trusted, what was revoked, and revoking. No private half is shown."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from comity.core.access.claims import Claims
from comity.core.units import MS_PER_S
from comity.engines.keys.ring import ALGORITHM, Key, decode_bytes
from comity.errors import CallerError, RefusedError
from comity.server.auth import seen_tenant
from comity.server.routes import Ask

_TOKEN_PARTS: Final = 3


class KeyView(Struct, frozen=True, kw_only=True):
    """A key: `state` is signing, retired (its tokens hold until they end) or revoked."""

    id: str
    state: str
    created_at: int
    retired_at: int | None


class PeerView(Struct, frozen=True, kw_only=True):
    """Another node whose tokens are accepted, and what they allow at most."""

    issuer: str
    keys: int
    scope: str
    tenants: list[str]


class Keys(Struct, frozen=True, kw_only=True):
    """The keys of a node, those it trusts, and the tokens that were revoked with the time at which they would have ended."""

    issuer: str
    algorithm: str
    keys: list[KeyView]
    peers: list[PeerView]
    revoked: dict[str, int]


class RevokeBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The token itself, or its id as `comity token inspect` shows it."""

    token: Annotated[str, Meta(min_length=1, max_length=8_192)]


class RevokedToken(Struct, frozen=True):
    """The id of a token that is refused from now on."""

    id: str


async def show(ask: Ask) -> Keys:
    """Return the keys of the node."""
    ring = ask.state.auth.signed.tokens.ring
    ring.look(ask.state.now_ms())

    def state(key: Key) -> str:
        if key.kid in ring.revoked.keys:
            return "revoked"
        return "signing" if key.kid == ring.signer.kid else "retired"

    keys = [
        KeyView(id=one.kid, state=state(one), created_at=one.created_at, retired_at=one.retired_at) for one in ring.ring.keys
    ]
    peers = [
        PeerView(issuer=one.issuer, keys=len(one.keys), scope=one.scope, tenants=list(one.tenants)) for one in ring.ring.peers
    ]
    ended = ring.revoked.tokens if seen_tenant(ask.principal) is None else {}
    revoked = {one: until_s * MS_PER_S for one, until_s in ended.items()}
    return Keys(issuer=ring.issuer, algorithm=ALGORITHM, keys=keys, peers=peers, revoked=revoked)


async def revoke(ask: Ask) -> RevokedToken:
    """Refuse a token from now on. An admin of one tenant must show the token, which names its tenant."""
    given, tenant_id = ask.body.token.strip(), seen_tenant(ask.principal)
    claims = _claimed(given)
    if tenant_id is not None and (claims is None or claims.tid != tenant_id):
        raise RefusedError("show a token of your own tenant; its id alone says nothing of it", code="IDENTITY_MISMATCH")
    token_id = given if claims is None else claims.jti
    if not token_id.isprintable() or " " in token_id:
        raise CallerError("this is neither a token nor the id of one", code="INPUT_VALIDATION_FAILED")
    expires_s = 0 if claims is None else claims.exp
    ask.state.auth.signed.tokens.ring.revoke(token_id=token_id, expires_s=expires_s, now_ms=ask.state.now_ms())
    return RevokedToken(token_id)


def _claimed(token: str) -> Claims | None:
    """Return what a token claims, whether or not that is true; None for what is no token."""
    parts: list[Any] = token.split(".")
    try:
        return msgspec.json.decode(decode_bytes(parts[1]), type=Claims) if len(parts) == _TOKEN_PARTS else None
    except (msgspec.MsgspecError, ValueError):
        return None
