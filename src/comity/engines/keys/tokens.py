"""Tokens: signed with the node's key, verified once and remembered by their hash, checked for revocation at every use."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any, Final

from msgspec import Struct

from comity.core.access.claims import (
    AGENT_LIFE_S_MAX,
    TOKEN_CHARS_MAX,
    USER_LIFE_S_MAX,
    Claims,
    Kind,
    Standing,
    check_audience,
    check_header,
    check_time,
    encode,
    read,
    refused,
)
from comity.core.access.rights import Role
from comity.core.access.scope import Scope
from comity.core.call.limits import CITED_CHARS_MAX
from comity.core.units import MS_PER_S
from comity.engines.keys.extra import load_cryptography, load_jwt
from comity.engines.keys.ring import ALGORITHM, Key, KeyRing, decode_bytes

VERIFIED_MAX: Final = 10_000
USER_SCOPE: Final = ""  # whatever the roles allow


class Verified(Struct, frozen=True):
    """A token whose signature was found good, and the key it was signed with."""

    claims: Claims
    kid: str


class Tokens:
    """Signs and verifies the tokens of one node."""

    def __init__(self, ring: KeyRing) -> None:
        self.ring = ring
        self._verified: dict[bytes, Verified] = {}
        self._generation = ring.generation
        self._jws: Any = None

    # --- signing ---

    def for_agent(
        self,
        agent: str,
        *,
        audience: str,
        user_id: str,
        standing: Standing,
        scope: str,
        now_ms: int,
        tenant_id: str = "default",
        session_id: str = "",
        act: dict[str, Any] | None = None,
        digest: str = "",
    ) -> str:
        """Return a token with which an agent calls on behalf of a user, good until its call's deadline, 5 minutes at most."""
        now_s = now_ms // MS_PER_S
        end_s = min(-(-standing.left.deadline // MS_PER_S), now_s + AGENT_LIFE_S_MAX)
        return self.sign(
            Claims(
                iss=self.ring.issuer, aud=audience, sub=f"agent:{agent}", jti=secrets.token_hex(16), iat=now_s, nbf=now_s,
                exp=max(end_s, now_s), scope=str(Scope.of(scope)), tid=tenant_id, uid=user_id, sid=session_id, act=act,
                dig=digest, cty=standing,
            )
        )  # fmt: skip

    def for_user(
        self,
        user_id: str,
        *,
        roles: tuple[Role, ...],
        now_ms: int,
        tenant_id: str = "default",
        scope: str = USER_SCOPE,
        life_s: int = USER_LIFE_S_MAX,
        audience: str = "",
    ) -> str:
        """Return a token with which a user acts in one tenant."""
        now_s = now_ms // MS_PER_S
        return self.sign(
            Claims(
                iss=self.ring.issuer, aud=audience or self.ring.issuer, sub=f"user:{user_id}", jti=secrets.token_hex(16),
                iat=now_s, nbf=now_s, exp=now_s + min(life_s, USER_LIFE_S_MAX), scope=str(Scope.of(scope)), tid=tenant_id,
                roles=roles,
            )
        )  # fmt: skip

    def sign(self, claims: Claims) -> str:
        """Return the token that says `claims`, signed with the key that signs now."""
        key = self.ring.signer
        private = load_cryptography().Ed25519PrivateKey.from_private_bytes(decode_bytes(key.d))
        header = {"typ": str(claims.kind), "kid": key.kid}
        signed: str = self._library().encode(encode(claims), private, algorithm=ALGORITHM, headers=header)
        if len(signed) > TOKEN_CHARS_MAX:
            raise refused("RIGHTS_SCOPE_EXCEEDED", f"the token would be longer than {TOKEN_CHARS_MAX:,} characters")
        return signed

    # --- verifying ---

    def verify(self, token: str, *, now_ms: int) -> Claims:
        """Return what a token says. Raises `RefusedError` unless it is genuine, in time, for this node and not revoked."""
        ring = self.ring
        ring.look(now_ms)
        if ring.generation != self._generation:  # a key may be trusted no longer
            self._verified.clear()
            self._generation = ring.generation
        if type(token) is not str or len(token) > TOKEN_CHARS_MAX or not token.isascii():
            raise refused("IDENTITY_FORGED", f"a token has at most {TOKEN_CHARS_MAX:,} ASCII characters")
        digest = hashlib.sha256(token.encode()).digest()
        found = self._verified.get(digest)
        if found is None:
            found = self._examine(token, now_ms)
            if len(self._verified) >= VERIFIED_MAX:
                self._verified.clear()
            self._verified[digest] = found
        claims = found.claims
        if ring.is_revoked(claims.jti, found.kid):
            raise refused("IDENTITY_REVOKED", "the token was revoked", claims)
        check_time(claims, now_s=now_ms / MS_PER_S)
        check_audience(claims, ring.issuer)
        return claims

    def _examine(self, token: str, now_ms: int) -> Verified:
        """Verify a signature and what may be claimed under its key."""
        library = self._library()
        try:
            header = library.get_unverified_header(token)
        except Exception as error:  # noqa: BLE001  PyJWT raises more than its own errors for hostile input
            raise refused("IDENTITY_FORGED", f"the token is no signed token: {type(error).__name__}") from None
        kind, kid = check_header(header, algorithm=ALGORITHM), header.get("kid")
        body = _body(token)
        claims = read(body, kind)  # believed only once the signature fits: it names whose key to try
        found = self.ring.find(claims.iss, kid, now_ms) if isinstance(kid, str) else None
        if found is None:
            raise refused("IDENTITY_FORGED", f"no key of {claims.iss[:CITED_CHARS_MAX]} that this node trusts signed the token")
        key, peer = found
        self._check_signature(token, key)
        if peer is not None:
            if kind is not Kind.AGENT:
                raise refused("IDENTITY_FORGED", f"{peer.issuer} may vouch for its agents, not for users of this node")
            if claims.tid not in peer.tenants:
                raise refused(
                    "IDENTITY_MISMATCH", f"{peer.issuer} may not speak for tenant {claims.tid[:CITED_CHARS_MAX]}", claims
                )
            if not Scope.of(peer.scope).includes(Scope.of(claims.scope)):
                raise refused("RIGHTS_SCOPE_EXCEEDED", f"{peer.issuer} may not grant the scope of the token")
        return Verified(claims, key.kid)

    def _check_signature(self, token: str, key: Key) -> None:
        public = load_cryptography().Ed25519PublicKey.from_public_bytes(decode_bytes(key.x))
        try:
            self._library().decode(token, public, algorithms=[ALGORITHM])
        except Exception:  # noqa: BLE001  as above
            raise refused("IDENTITY_FORGED", "the token's signature does not fit") from None

    def _library(self) -> Any:
        if self._jws is None:
            self._jws = load_jwt().PyJWS(algorithms=[ALGORITHM])
        return self._jws


def _body(token: str) -> bytes:
    parts = token.split(".")
    body = decode_bytes(parts[1]) if len(parts) == 3 else b""
    if not body:
        raise refused("IDENTITY_FORGED", "the token is not three parts of base64url text")
    return body
