"""Who exists: agents by id and alias, and the nearest names to an unknown name.

The list of agents is data. An address is `agent` or `agent/key`; each key is its own virtual actor.
"""

from __future__ import annotations

import difflib
import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from msgspec import Struct

from comity.core.agent.agent import Agent, Capability, DeclarationError, Status
from comity.core.agent.declaration import shown
from comity.core.call.limits import NAME_CHARS_MAX
from comity.core.envelope.envelope import is_id

# Names compared letter by letter, which takes as long as thousands of glances.
_NEAREST_POOL_MAX = 30


class Address(Struct, frozen=True, gc=False):
    """Where a call goes: the agent's own id, and the key if the address has one."""

    agent: Agent
    text: str


class Registry:
    """All agents a node knows."""

    __slots__ = ("_agents", "_functions", "_names", "addresses")

    def __init__(self, agents: Iterable[Agent] = ()) -> None:
        self._agents: dict[str, Agent] = {}
        self._names: dict[str, Agent] = {}  # ids and aliases
        self.addresses: dict[str, Address] = {}  # names without a key, ready made
        self._functions: dict[Any, list[tuple[Agent, Capability]]] | None = None  # made when first asked for
        if isinstance(agents, str | Agent | Mapping) or not isinstance(agents, Iterable):
            raise DeclarationError(f"agents must be a list of agents, not {shown(agents)}")
        for agent in agents:
            self.add(agent)

    def add(self, agent: Agent) -> None:
        """Register an agent; its id and aliases must be free, and aliases differ from every id."""
        if not isinstance(agent, Agent):
            raise DeclarationError(f"an agent must be an Agent, not {shown(agent)}")
        for name in (agent.id, *agent.aliases):
            if name in self._names:
                raise DeclarationError(f"{name!r} is taken by agent {self._names[name].id}; ids and aliases are unique")
        self._agents[agent.id] = agent
        self._functions = None
        for name in (agent.id, *agent.aliases):
            self._names[name] = agent
            self.addresses[name] = Address(agent, agent.id)

    def __iter__(self) -> Iterator[Agent]:
        return iter(self._agents.values())

    @property
    def names(self) -> Collection[str]:
        """Every id and alias."""
        return self._names

    def __len__(self) -> int:
        return len(self._agents)

    def resolve(self, target: str) -> Address | None:
        """Return where an address leads, aliases replaced by ids; None if there is no such agent."""
        known = self.addresses.get(target)
        if known is not None:
            return known
        name, slash, key = target.partition("/")
        agent = self._names.get(name)
        if agent is None or not slash or not key:
            return None
        text = f"{agent.id}/{key}"
        return Address(agent, text) if is_id(text) else None

    def permits(self, source: Agent, target: Agent) -> bool:
        """Return whether the source's `can_call` names the target by id or alias."""
        allowed = source.can_call
        return allowed is None or "*" in allowed or target.id in allowed or any(name in allowed for name in target.aliases)

    def reachable(self, source: Agent, waiting: Collection[str], limit: int) -> list[Agent]:
        """Return the agents that `source` may call and that can answer, at most `limit`; those `waiting` cannot."""
        allowed = source.can_call
        agents: Iterable[Agent] = self
        if allowed is not None and "*" not in allowed:
            agents = dict.fromkeys(self._names[name] for name in sorted(allowed) if name in self._names)
        able = (one for one in agents if one.id not in waiting and one.status is Status.ACTIVE and one.capabilities)
        return list(islice(able, limit))

    def implements(self, function: Callable[..., Any]) -> list[tuple[Agent, Capability]]:
        """Return the capabilities that a function implements, each with its agent."""
        if self._functions is None or function not in self._functions:
            self._functions = self._by_function()  # agents may have declared more since
        return self._functions.get(function, [])

    def _by_function(self) -> dict[Any, list[tuple[Agent, Capability]]]:
        found: dict[Any, list[tuple[Agent, Capability]]] = {}
        for agent in self:
            for capability in agent.capabilities.values():
                for function in dict.fromkeys(one.function for one in capability.implementations):
                    found.setdefault(function, []).append((agent, capability))
        return found

    def nearest_agents(self, name: str) -> list[str]:
        """Return the known names closest to `name`, best first."""
        return nearest(name.partition("/")[0], self._names)

    @staticmethod
    def nearest_capabilities(agent: Agent, code: str) -> list[str]:
        """Return the agent's capability codes closest to `code`, best first; all of them if it has few."""
        return nearest(code, agent.capabilities) or sorted(agent.capabilities)[:5]

    def capability(self, agent: Agent, code: str) -> Capability | None:
        """Return the agent's capability, if it has it."""
        return agent.capabilities.get(code)


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Return up to three names that look like `name`. Of many, few are looked at closely: the answer comes at once."""
    folded: dict[str, str] = {}
    for candidate in known:
        folded.setdefault(candidate.casefold(), candidate)
    wanted = name[:NAME_CHARS_MAX].casefold()
    pool = list(folded)
    if len(pool) > _NEAREST_POOL_MAX:
        pairs = {wanted[at : at + 2] for at in range(len(wanted) - 1)}

        def likeness(candidate: str) -> int:
            return sum(map(candidate.__contains__, pairs)) - abs(len(candidate) - len(wanted))

        pool = heapq.nlargest(_NEAREST_POOL_MAX, pool, key=likeness)
    return [folded[match] for match in difflib.get_close_matches(wanted, pool, n=3, cutoff=0.5)]
