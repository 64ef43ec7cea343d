"""Who sends an HTTP request: reads the Authorization header, verifies its token, and says which tenant is meant."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from comity.core.access import Claims, Principal, Role
from comity.core.access.claims import refused
from comity.engines.keys import KeyRing, Tokens, UsedTokens

TENANT_HEADER = "X-Scope-OrgID"
PRINCIPALS_MAX = 10_000  # that are remembered


class Auth:
    """Authenticates the requests of one served node."""

    def __init__(self, tokens: Tokens, used: UsedTokens) -> None:
        self.tokens = tokens
        self._used = used
        self._principals: dict[str, Principal] = {}  # by token id: reading a scope costs as much as verifying from memory

    @classmethod
    def open(cls, folder: str | Path | None, *, name: str = "", now_ms: int) -> Self:
        """Return the authentication of a node whose keys are in `folder`; without one they live as long as the process."""
        return cls(Tokens(KeyRing(folder, issuer=name, now_ms=now_ms)), UsedTokens(folder))

    @property
    def node_name(self) -> str:
        """The node's name: the issuer of its tokens and the audience of those it accepts."""
        return self.tokens.ring.issuer

    def authenticate(self, authorization: str | None, *, now_ms: int) -> Principal:
        """Return who shows a bearer token. Raises `RefusedError` for a missing or unacceptable one."""
        if not authorization:
            raise refused("IDENTITY_REQUIRED", "the request has no Authorization header")
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise refused("IDENTITY_REQUIRED", "the Authorization header holds no bearer token")
        claims = self.tokens.verify(token.strip(), now_ms=now_ms)
        known = self._principals.get(claims.jti)
        if known is None or known.claims is not claims:
            if len(self._principals) >= PRINCIPALS_MAX:
                self._principals.clear()
            known = self._principals[claims.jti] = Principal.of(claims)
        return known

    def bind(self, principal: Principal, request_id: str, *, now_ms: int) -> None:
        """Bind an agent's token to the request it is used for. Raises `RefusedError` if it was used for another one."""
        if isinstance(principal.claims, Claims) and principal.is_agent:
            self._used.bind(principal.claims, request_id, now_ms=now_ms)

    def sign_in(self, user_id: str, *, roles: tuple[Role, ...], now_ms: int, tenant_id: str = "default") -> str:
        """Return a token for a user whom a provider or a one-time code has vouched for."""
        return self.tokens.for_user(user_id, roles=roles, now_ms=now_ms, tenant_id=tenant_id)


def tenant_of(principal: Principal, header: str | None) -> str:
    """Return the tenant a request is about. Raises `RefusedError` if its header names another than the token does."""
    if header and header != principal.tenant_id:
        raise refused("IDENTITY_MISMATCH", f"the header {TENANT_HEADER} names another tenant than the token")
    return principal.tenant_id
