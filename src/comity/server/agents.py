"""The agents of a node and their capabilities, as callers need them."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from comity.core.agent.agent import Agent, Capability
from comity.core.document.schema import Checker, SchemaError
from comity.server.problem import unknown
from comity.server.routes import Ask


class AgentQuery(Struct, frozen=True):
    """Words that must all occur in an agent's id, aliases, tags or descriptions, or in those of a capability."""

    q: str = ""


class CapabilityView(Struct, frozen=True, kw_only=True):
    """A capability. The schemas are there where one agent is shown."""

    code: str
    name: str
    description: str
    version: str
    active: bool
    timeout_ms: int | None
    breaker: str = "closed"
    input_schema: dict[str, Any] | None = None
    output_schema: dict[str, Any] | None = None
    examples: list[dict[str, Any]] = []


class AgentView(Struct, frozen=True, kw_only=True):
    """An agent."""

    id: str
    description: str
    aliases: list[str]
    tags: list[str]
    owner: str
    status: str
    concurrency: int
    pending_max: int
    can_call: list[str] | None
    tools_allowed: list[str]
    capabilities: list[CapabilityView]


class Agents(Struct, frozen=True):
    """Agents, by id."""

    items: list[AgentView]
    next: str | None = None


async def find(ask: Ask) -> Agents:
    """Return the agents in which every word of the query occurs."""
    words = ask.query.q.lower().split()
    agents = sorted(ask.state.node.registry, key=lambda agent: agent.id)
    return Agents([view(agent) for agent in agents if all(word in _words(agent) for word in words)])


async def show(ask: Ask) -> AgentView:
    """Return one agent, by its id or an alias, with schemas."""
    address = ask.state.node.registry.resolve(ask.params["agent_id"])
    if address is None:
        raise unknown("agent", ask.params["agent_id"])
    return view(address.agent, with_schemas=True)


def view(agent: Agent, *, with_schemas: bool = False) -> AgentView:
    """Return an agent as it is shown."""
    return AgentView(
        id=agent.id,
        description=agent.description,
        aliases=list(agent.aliases),
        tags=list(agent.tags),
        owner=agent.owner,
        status=str(agent.status),
        concurrency=agent.concurrency,
        pending_max=agent.pending_max,
        can_call=None if agent.can_call is None else sorted(agent.can_call),
        tools_allowed=sorted(agent.tools_allowed),
        capabilities=[_capability(one, with_schemas=with_schemas) for one in agent.capabilities.values()],
    )


def _capability(capability: Capability, *, with_schemas: bool) -> CapabilityView:
    return CapabilityView(
        code=capability.code,
        name=capability.name,
        description=capability.description,
        version=capability.version,
        active=capability.active,
        timeout_ms=capability.timeout_ms,
        input_schema=_schema(capability.inputs) if with_schemas else None,
        output_schema=_schema(capability.outputs) if with_schemas else None,
        examples=[dict(one) for one in capability.examples] if with_schemas else [],
    )


def _schema(checker: Checker | None) -> dict[str, Any] | None:
    try:
        return None if checker is None else checker.json_schema()
    except SchemaError:
        return None  # `comity doctor` says why


def _words(agent: Agent) -> str:
    parts = [agent.id, agent.description, *agent.aliases, *agent.tags]
    for capability in agent.capabilities.values():
        parts += (capability.code, capability.name, capability.description)
    return "\n".join(parts).lower()
