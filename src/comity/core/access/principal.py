"""Who sent a request, once a token or a sign-in has proved it, and what that sender may do."""

from __future__ import annotations

from msgspec import Struct

from comity.core.access.claims import Claims, Kind
from comity.core.access.rights import AGENT_RIGHTS, NODE_RIGHTS, RIGHTS_OF, Right, Role
from comity.core.access.scope import Scope
from comity.core.call.limits import CITED_CHARS_MAX
from comity.errors import RefusedError


class Principal(Struct, frozen=True):
    """A user or an agent that has proved its name. `user_id` is the user for whom it acts: itself, if it is one."""

    kind: Kind
    name: str
    user_id: str
    tenant_id: str
    rights: frozenset[Right] = frozenset()
    scope: Scope = Scope()
    session_id: str = ""
    token_id: str = ""
    claims: Claims | None = None

    @classmethod
    def of(cls, claims: Claims) -> Principal:
        """Return who a good token names, with the rights of its roles or of its scope."""
        scope = Scope.of(claims.scope)
        rights = rights_of(claims.roles) if claims.kind is Kind.USER else _rights_of_scope(scope)
        if claims.kind is Kind.USER and claims.scope:  # a scope narrows what the roles give
            rights &= {right for right in Right if scope.allows(right)}
        return cls(
            claims.kind, claims.name, claims.user_id, claims.tid, frozenset(rights), scope, claims.sid, claims.jti, claims
        )

    @property
    def is_agent(self) -> bool:
        """Whether it is an agent that works for a user."""
        return self.kind is Kind.AGENT

    def check(self, right: Right) -> None:
        """Raise `RefusedError` unless it has a right."""
        if right in NODE_RIGHTS and right not in self.rights:
            message = f"{right} changes the node for all its tenants: it is the right of the server's operator alone"
            raise RefusedError(message, code="RIGHTS_MISSING")
        if right not in self.rights:
            who = "agent" if self.is_agent else "user"
            raise RefusedError(f"the {who} {self.name} has no right {right} in tenant {self.tenant_id}", code="RIGHTS_MISSING")

    def check_user(self) -> None:
        """Raise `RefusedError` for an agent at a door that is for users."""
        if self.is_agent:
            raise RefusedError("an agent's token cannot act as a user", code="IDENTITY_WRONG_KIND")

    def check_agent(self) -> None:
        """Raise `RefusedError` for a user at a door that is for agents."""
        if not self.is_agent:
            raise RefusedError("a user's token cannot act as an agent", code="IDENTITY_WRONG_KIND")

    def check_call(self, agent: str, capability: str) -> None:
        """Raise `RefusedError` unless the scope of its token allows a call; `agent` may have a key.

        A user's token without a scope is narrowed by its roles alone.
        """
        if not (self.is_agent or self.scope.words):
            return
        if not self.scope.allows_call(agent.partition("/")[0], capability):
            message = f"the token's scope does not allow {agent[:CITED_CHARS_MAX]} {capability[:CITED_CHARS_MAX]}"
            raise RefusedError(message, code="RIGHTS_SCOPE_EXCEEDED")


def rights_of(roles: tuple[Role, ...]) -> frozenset[Right]:
    """Return what users with these roles may do."""
    return frozenset[Right]().union(*(RIGHTS_OF[role] for role in roles))


def _rights_of_scope(scope: Scope) -> frozenset[Right]:
    return frozenset(right for right, word in AGENT_RIGHTS.items() if scope.allows(word))
