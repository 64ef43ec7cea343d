"""The strategies that every node has for `aggregate` nodes: those of `core.orchestration.aggregate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from comity.core.envelope.envelope import Reply
from comity.core.orchestration.aggregate import STRATEGIES, SYNTHESISE, aggregate, synthesis_request
from comity.core.orchestration.aggregate.component import Part
from comity.core.orchestration.aggregate.strategies import Strategy as CustomStrategy
from comity.runtime.call.tasks import aside
from comity.runtime.workflow.host import Ask, Strategy

MESSAGE: Final = "message"  # the capability of an agent with a model
INLINE_MAX: Final = 12  # values of all parts whose comparison takes less than 20 ms
TEXT_CHARS: Final = 100  # characters of a text that count as one value


def strategies() -> dict[str, Strategy]:
    """Return the strategies by name."""
    return {**{name: partial(_aggregated, name) for name in STRATEGIES}, SYNTHESISE: _synthesised}


async def aggregated(
    strategy: str,
    parts: Sequence[Part],
    options: Mapping[str, Any],
    custom: Mapping[str, CustomStrategy] | None = None,
) -> Reply[Any]:
    """Make one reply of several: of a few values at once, of more in a thread, as comparing long results takes seconds."""
    if _is_short(parts) or strategy in (custom or {}):
        return aggregate(strategy, parts, options, custom)
    return await aside(aggregate, strategy, parts, options)


async def _aggregated(name: str, parts: Sequence[Part], options: dict[str, Any], ask: Ask) -> Reply[Any]:
    del ask
    return await aggregated(name, parts, options)


def _is_short(parts: Sequence[Part]) -> bool:
    """Return whether the results of all parts have few values; an item of a list is compared with each of another."""
    left, values = INLINE_MAX, [(reply.get("data"), len(parts) - 1) for _, reply in parts]
    while values and left > 0:
        value, times = values.pop()
        left -= 1
        if isinstance(value, dict):
            values += [(one, times) for one in list(value.values())[: left + 1]]
        elif isinstance(value, list | tuple):
            values += [(one, times * len(value)) for one in value[: left + 1]]
        else:
            left -= times * (1 + (len(value) // TEXT_CHARS if isinstance(value, str) else 0)) - 1
    return left > 0


async def _synthesised(parts: Sequence[Part], options: dict[str, Any], ask: Ask) -> Reply[Any]:
    """Merge the results, and let the agent that `options.agent` names write the narrative."""
    reply = await aggregated(SYNTHESISE, parts, options)
    writer = options.get("agent")
    if not reply.ok or not isinstance(writer, str):
        return reply
    written = await ask(writer, MESSAGE, None, message=synthesis_request(reply))
    return replace(reply, message=written.message) if written.ok and written.message else reply
