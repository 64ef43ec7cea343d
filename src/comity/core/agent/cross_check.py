"""What agents, tools and grants say of each other: names that nothing here has, found when a node starts.

An agent may live on another node or come later, so a name that is not known here is a warning. Which types of personal data
there are is decided on the node itself, so a type that is not known is an error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from comity.core.agent.agent import Agent, Capability
from comity.core.agent.registry import Registry, nearest
from comity.core.agent.tool import Tool

Grants = Mapping[str, Collection[str]]  # capability code, or "agent/capability", to the types it may see


def unknown_types(registry: Registry, tools: Collection[Tool], grants: Grants, types: Collection[str]) -> Iterator[str]:
    """Yield every place that names a type of personal data which no detector of the node finds."""
    asked: list[tuple[str, Collection[str]]] = [(f"{agent.id} {one.code}", one.clear) for agent, one in _asking(registry)]
    asked += [(f"the tool {tool.name}", tool.clear) for tool in tools]
    asked += [(f"the grant to {name}", granted) for name, granted in grants.items()]
    for where, named in asked:
        for kind in sorted(frozenset(named) - frozenset(types)):
            yield f"{where} names {kind!r}, a type of personal data that no detector here finds{_hint(kind, types)}"


def unknown_names(agent: Agent, registry: Registry, tools: Collection[str]) -> Iterator[str]:
    """Yield every agent and tool that an agent names and this node does not have."""
    named = [("may call", agent.can_call or ()), ("may transfer to", agent.can_transfer_to - (agent.can_call or frozenset()))]
    for what, names in named:
        for name in sorted(names):
            if name != "*" and registry.resolve(name) is None:
                hint = _hint(name, registry.names)
                yield f"{agent.id} {what} {name}, which this node does not have{hint}"
    for name in sorted(agent.tools_allowed - {"*"} - frozenset(tools)):
        yield f"{agent.id} may use {name}, a tool that this node does not have{_hint(name, tools)}"


def idle_grants(registry: Registry, grants: Grants) -> Iterator[str]:
    """Yield every grant that gives nothing to any capability here, and why."""
    codes = {code: capability for agent in registry for code, capability in agent.capabilities.items()}
    for name, types in grants.items():
        where, slash, code = name.partition("/")
        if not slash:
            where, code = "", name
        address = registry.resolve(where) if where else None
        known = codes if not where else {} if address is None else address.agent.capabilities
        if where and address is None:
            yield f"personal data is granted to {name}, and there is no agent {where} here{_hint(where, registry.names)}"
        elif code not in known:
            yield f"personal data is granted to {name}, which no agent here has{_hint(code, known)}"
        elif unasked := sorted(frozenset(types) - known[code].clear):
            told = ", ".join(unasked)
            yield f"{name} is granted {told} and does not ask for it: declare clear=[…] in its capability"


def missing_grants(registry: Registry, grants: Grants) -> Iterator[str]:
    """Yield every capability that asks for personal data in clear and is not granted it."""
    for agent, one in _asking(registry):
        place = f"{agent.id}/{one.code}"
        if missing := sorted(one.clear - frozenset(grants.get(place, grants.get(one.code, ())))):
            told = ", ".join(missing)
            grant = f"Privacy(grants={{{place!r}: {{{', '.join(map(repr, missing))}}}}})"
            yield f"{agent.id} {one.code} asks for {told} in clear and sees tokens; {grant} grants it"


def _asking(registry: Registry) -> list[tuple[Agent, Capability]]:
    return [(agent, one) for agent in registry for one in agent.capabilities.values() if one.clear]


def _hint(name: str, known: Collection[str]) -> str:
    close = nearest(name, known)
    return f"; did you mean {' or '.join(close)}?" if close else ""
