"""What a user is told while agents work: the work, never the architecture.

The text comes from the capability that does the work. It is checked against every name the node knows, so that no agent or
capability code reaches a user.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from comity.core.agent import Agent

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Leak(NamedTuple):
    """A capability whose words to users name an agent or a capability."""

    agent: str
    capability: str
    doing: str
    name: str

    def __str__(self) -> str:
        return f"{self.agent} {self.capability}: {self.told}"

    @property
    def told(self) -> str:
        """What is wrong, where the capability is known."""
        return f"users would be told {self.doing!r}, which names {self.name}; describe the work instead"


def leaks(agents: Iterable[Agent]) -> Iterator[Leak]:
    """Yield every capability that would tell users a name the agents have."""
    agents = list(agents)
    names = [name for agent in agents for name in (agent.id, *agent.aliases, *agent.capabilities)]
    for agent in agents:
        for capability in agent.capabilities.values():
            if capability.doing and (name := leak(capability.doing, names)) is not None:
                yield Leak(agent.id, capability.code, capability.doing, name)


def leak(text: str, names: Iterable[str]) -> str | None:
    """Return a name that stands in the text as a word of its own, if any does; names that are plain words may stand."""
    words = {word.rstrip("._-") for word in _WORD.findall(text)}
    folded = {word.casefold() for word in words}
    for name in names:
        if name.isalpha():
            # "orders" is also just a word, and so is "case" where the code is CASE.
            if not name.islower() and name in words:
                return name
        elif name.casefold() in folded:  # no word of a language: tag-ai is the agent however it is written
            return name
    return None
