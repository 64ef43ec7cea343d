"""The targets of handoffs: known agents, and names whose receiver may start later."""

from __future__ import annotations

from typing import Any, Final

from comity.core.agent.agent import Agent, Capability, DeclarationError
from comity.core.agent.registry import Address, Registry
from comity.core.call.limits import HANDOFF_PENDING_MAX, NAME_CHARS_MAX
from comity.core.envelope.envelope import is_id

_OTHERS_MAX: Final = 1_000  # names remembered

ANYBODY = Agent("anybody")


@ANYBODY.capability("anything")
async def _anything(**inputs: Any) -> Any:  # noqa: ARG001
    raise AssertionError("work for another agent is not done here")


_ANYTHING: Final = ANYBODY.capabilities["anything"]


class _Whatever(dict[str, Capability]):
    """The capabilities of an unknown agent: any code, with any inputs."""

    def get(self, code: str, default: Any = None) -> Capability | None:  # type: ignore[override]
        """Return a capability that takes any inputs."""
        return _ANYTHING if is_id(code, NAME_CHARS_MAX) else default


class Directory(Registry):
    """The registry of handoff targets: the node's agents, and any other name, since its receiver may start later."""

    __slots__ = ("_known", "_others")

    def __init__(self, known: Registry) -> None:
        super().__init__()
        self._known = known
        self._others: dict[str, Address] = {}

    def resolve(self, target: str) -> Address | None:
        """Return a known agent, an agent with a capability of this name, or a placeholder for an unknown receiver."""
        known = self._known.resolve(target) or self._others.get(target)
        if known is not None:
            return known
        able = next((agent for agent in self._known if target in agent.capabilities), None)
        if able is not None:
            return Address(able, target)
        try:
            other = Agent(target.partition("/")[0], pending_max=HANDOFF_PENDING_MAX)
            other.capabilities = _Whatever()
        except DeclarationError:
            return None
        if len(self._others) >= _OTHERS_MAX:
            self._others.clear()
        self._others[target] = Address(other, target)
        return self._others[target]
