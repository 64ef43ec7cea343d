"""The strategies that every node has for `aggregate` nodes: those of `core.orchestration.aggregate`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from comity.core.envelope.envelope import Reply
from comity.core.orchestration.aggregate import STRATEGIES, SYNTHESISE, aggregate, synthesis_request
from comity.runtime.workflow.host import Ask, Strategy

MESSAGE = "message"  # the capability of an agent with a model


def strategies() -> dict[str, Strategy]:
    """Return the strategies by name."""
    return {**{name: partial(_aggregated, name) for name in STRATEGIES}, SYNTHESISE: _synthesised}


def _aggregated(name: str, parts: Sequence[tuple[str, dict[str, Any]]], options: dict[str, Any], ask: Ask) -> Reply[Any]:
    del ask
    return aggregate(name, parts, options)


async def _synthesised(parts: Sequence[tuple[str, dict[str, Any]]], options: dict[str, Any], ask: Ask) -> Reply[Any]:
    """Merge the results, and let the agent that `options.agent` names write the narrative."""
    reply = aggregate(SYNTHESISE, parts, options)
    writer = options.get("agent")
    if not reply.ok or not isinstance(writer, str):
        return reply
    written = await ask(writer, MESSAGE, None, message=synthesis_request(reply))
    return replace(reply, message=written.message) if written.ok and written.message else reply
