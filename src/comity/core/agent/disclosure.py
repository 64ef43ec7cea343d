"""What a user reads about the agents at work: the work, never the architecture.

While they work, the text comes from the capability. It is checked against every name the node knows, so that no agent or
capability code reaches a user. When they fail, the message of a reply is for its user; which agent, which rule and which
exception it was is in `error.message`, which programs, the log, the audit and `comity show` have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from comity.core.agent.agent import Agent
from comity.core.envelope.envelope import Error
from comity.core.envelope.reserved import PASSED_ON_BY

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LATER: Final = "This is not available at the moment. Please try again later."
_ELSEWHERE: Final = "This cannot be done here."
_TOO_MUCH: Final = "This needs more than is allowed for one request."
_FAILED: Final = "Something went wrong while this was being done. What it was has been recorded."
# The codes whose messages name agents, capabilities, tools and rules between them; a name that the caller gave may be repeated.
_SPOKEN: Final = {
    "ROUTING_AGENT_IN_MAINTENANCE": _LATER,
    "ROUTING_AGENT_RETIRED": _ELSEWHERE,
    "ROUTING_CAPABILITY_INACTIVE": _ELSEWHERE,
    "ROUTING_NOT_PERMITTED": _ELSEWHERE,
    "ROUTING_CYCLE_DETECTED": _ELSEWHERE,
    "ROUTING_OBJECTIVE_IN_PROGRESS": _ELSEWHERE,
    "ROUTING_DEADLOCK_PREVENTED": _LATER,
    "TOOL_UNKNOWN": _ELSEWHERE,
    "TOOL_NOT_PERMITTED": _ELSEWHERE,
    "LIMIT_DEPTH_EXCEEDED": _TOO_MUCH,
    "LIMIT_FAN_OUT_EXCEEDED": _TOO_MUCH,
    "BUDGET_CALLS_EXHAUSTED": _TOO_MUCH,
    "BUDGET_TOKENS_EXHAUSTED": _TOO_MUCH,
    "AGENT_BUSY": _LATER,
    "CAPABILITY_UNAVAILABLE": _LATER,
    "NODE_CLOSED": _LATER,
    "NODE_UNREACHABLE": _LATER,
    "LEASE_STALE": _LATER,
    "CALL_CHANGED": _LATER,
    "TARGET_CRASHED": _FAILED,
    "TARGET_MISCONFIGURED": _FAILED,
    "MODEL_MISCONFIGURED": _FAILED,
}


# The codes whose messages repeat what the caller gave. Below a call that caller is an agent, and its names are not the user's.
_SPOKEN_BELOW: Final = {
    "ROUTING_UNKNOWN_AGENT": _ELSEWHERE,
    "ROUTING_UNKNOWN_CAPABILITY": _ELSEWHERE,
    "INPUT_VALIDATION_FAILED": _FAILED,
}


def spoken(error: Error, otherwise: str, *, is_below: bool = False) -> str:
    """Return what a user reads about an error: a sentence of ours if its message is about agents, else what is given.

    is_below: an agent got the error and passes it on; an error whose facts name the agent that passed it on counts as well.
    """
    if is_below or PASSED_ON_BY in error.facts:
        otherwise = _SPOKEN_BELOW.get(error.code, otherwise)
    return _SPOKEN.get(error.code, otherwise)


def spoken_of_code(error: Error) -> str:
    """Return what a user reads where foreign code raised: that it failed, never what the exception says."""
    return _LATER if error.retryable else _SPOKEN.get(error.code, _FAILED)


def spoken_of_part(error: Error, message: str, *, is_verdict: bool) -> str:
    """Return what a user reads about a call that failed and was one part of the user's request.

    message: that of the reply. is_verdict: the platform ended or refused the call, so the message is for the calling agent.
    """
    return spoken(error, message, is_below=is_verdict) if message else spoken_of_code(error)


_WHAT_THEY_ARE: Final = ("agent", "capability")


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
    written = [word.rstrip("._-") for word in _WORD.findall(text)]
    words, folded = set(written), [word.casefold() for word in written]
    pairs = {frozenset(pair) for pair in pairwise(folded)}
    for name in names:
        if name.isalpha():
            # "orders" is also just a word, and so is "case" where the code is CASE; "the case agent" is neither.
            is_called_so = any(frozenset({name.casefold(), what}) in pairs for what in _WHAT_THEY_ARE)
            if is_called_so or (not name.islower() and name in words):
                return name
        elif name.casefold() in folded:  # no word of a language: tag-ai is the agent however it is written
            return name
    return None
