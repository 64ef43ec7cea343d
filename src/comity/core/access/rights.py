"""What each role may read and do: the one table that every door asks."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Role(StrEnum):
    """What a user is for a tenant."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    APPROVER = "approver"
    ADMIN = "admin"


class Right(StrEnum):
    """One thing that a door lets a user do."""

    READ = "records:read"  # agents, calls, sessions, handoffs, workflows, insights, guidance, breakers, metrics
    TRACES_READ = "traces:read"
    TRACES_WRITE = "traces:write"
    AUDIT_READ = "audit:read"
    CALLS_CREATE = "calls:create"
    CALLS_CANCEL = "calls:cancel"
    HANDOFFS_WRITE = "handoffs:write"
    WORKFLOWS_RUN = "workflows:run"
    INSIGHTS_WRITE = "insights:write"
    APPROVALS_DECIDE = "approvals:decide"
    GUIDANCE_WRITE = "guidance:write"
    BREAKERS_RESET = "breakers:reset"
    DATA_REVEAL = "data:reveal"
    DATA_ERASE = "data:erase"
    STORE_MANAGE = "store:manage"
    TOKENS_MANAGE = "tokens:manage"


_READS: Final = frozenset({Right.READ, Right.TRACES_READ})
_WORKS: Final = _READS | {
    Right.CALLS_CREATE, Right.CALLS_CANCEL, Right.HANDOFFS_WRITE, Right.WORKFLOWS_RUN, Right.INSIGHTS_WRITE,
    Right.TRACES_WRITE,
}  # fmt: skip

# What changes the node for all its tenants: the right of the server's operator, and of no role, since roles are a tenant's.
NODE_RIGHTS: Final = frozenset({Right.GUIDANCE_WRITE, Right.BREAKERS_RESET})

# A role holds exactly what stands beside it; a user with several roles has them all.
RIGHTS_OF: Final[dict[Role, frozenset[Right]]] = {
    Role.VIEWER: _READS,
    Role.OPERATOR: _WORKS,
    Role.APPROVER: _READS | {Right.APPROVALS_DECIDE, Right.AUDIT_READ},
    Role.ADMIN: frozenset(Right) - NODE_RIGHTS,
}

# What an agent may do beside calling, if the scope of its token names it. Deciding for people is not among them.
AGENT_RIGHTS: Final[dict[Right, str]] = {
    Right.READ: "records:read",
    Right.TRACES_READ: "traces:read",
    Right.TRACES_WRITE: "traces:write",
    Right.HANDOFFS_WRITE: "handoff:write",
    Right.INSIGHTS_WRITE: "insight:write",
}
