"""What an orchestrator can route to: the capabilities of the other agents of its node, as intents to learn."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from comity.core.agent.agent import Agent, Capability, Status
from comity.core.document.schema import SchemaError
from comity.core.orchestration.intent import Intent, Route

MESSAGE = "message"  # the capability of an agent with a model


@dataclass(frozen=True, slots=True)
class Offer:
    """A capability that a request can be routed to."""

    key: str  # agent and capability: the name that the classifier learns
    intent: str  # the word for it in a classification
    route: Route
    label: str  # what it does, in the words that a user reads
    inputs: dict[str, Any]  # the JSON Schema of its inputs
    examples: tuple[str, ...]
    description: str
    has_effects: bool
    doing: str


def offers(agents: Iterable[Agent], own_id: str, may_call: frozenset[str] | None) -> dict[str, Offer]:
    """Return what the agents offer by key, without the orchestrator's own and without agents it may not call."""
    found: dict[str, Offer] = {}
    for agent in agents:
        is_open = may_call is None or "*" in may_call or bool({agent.id, *agent.aliases} & may_call)
        if agent.id == own_id or agent.status is not Status.ACTIVE or not is_open:
            continue
        for capability in agent.capabilities.values():
            if capability.active:
                offer = _offer(agent, capability)
                found[offer.key] = offer
    return found


def _offer(agent: Agent, capability: Capability) -> Offer:
    description = capability.description or _docstring(capability)
    if capability.code == MESSAGE and agent.description:
        description = agent.description
    named = capability.name if capability.name != capability.code else capability.code.removeprefix(f"{agent.id}_")
    label = description.partition(". ")[0].rstrip(".") or named.replace("_", " ").lower()
    return Offer(
        key=f"{agent.id}/{capability.code}",
        intent=re.sub(r"[^a-z0-9]+", "_", named.lower()).strip("_") or capability.code.lower(),
        route=Route(agent.id, capability.code),
        label=label[:1].lower() + label[1:] if label[1:2].islower() else label,
        inputs=_schema(capability),
        examples=capability.utterances,
        description=" ".join(filter(None, (named.replace("_", " "), description))),
        has_effects=capability.effects,
        doing=capability.doing,
    )


def _docstring(capability: Capability) -> str:
    function = capability.implementations[0].function if capability.implementations else None
    return (getattr(function, "__doc__", None) or "").strip().partition("\n")[0]


def _schema(capability: Capability) -> dict[str, Any]:
    try:
        return capability.inputs.json_schema()
    except SchemaError:
        return {}


def intents(found: dict[str, Offer]) -> list[Intent]:
    """Return the offers as intents to learn, in one order."""
    return [Intent(key, found[key].description, found[key].examples) for key in sorted(found)]
