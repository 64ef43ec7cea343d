"""Circuit breakers over HTTP: how each stands, and closing one by hand."""

from __future__ import annotations

from msgspec import Struct

from comity.server.problem import unknown
from comity.server.routes import Ask


class BreakerView(Struct, frozen=True):
    """The breaker of a capability that ever failed; `state` is closed, open or half_open."""

    agent: str
    capability: str
    state: str


class Breakers(Struct, frozen=True):
    """Breakers, by agent and capability."""

    items: list[BreakerView]
    next: str | None = None


class ResetBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which breaker is to be closed."""

    agent: str
    capability: str


async def find(ask: Ask) -> Breakers:
    """Return the breakers of this node."""
    return Breakers([BreakerView(*key, state) for key, state in sorted(ask.state.node.breakers().items())])


async def reset(ask: Ask) -> BreakerView:
    """Close a breaker at once."""
    if not ask.state.node.reset_breaker(ask.body.agent, ask.body.capability):
        raise unknown("breaker of", f"{ask.body.agent} {ask.body.capability}")
    return BreakerView(ask.body.agent, ask.body.capability, "closed")
