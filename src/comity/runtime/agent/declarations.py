"""Checks all declarations of agents when a node starts, and reports all problems at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection

from comity.core.agent.cross_check import idle_grants, missing_grants, unknown_names, unknown_types
from comity.core.agent.declaration import DeclarationError
from comity.core.agent.disclosure import leaks
from comity.core.agent.registry import Registry
from comity.core.agent.tool import Tool
from comity.runtime.session.privacy import Privacy

log = logging.getLogger("comity")


async def check_declarations(
    registry: Registry, tools: Collection[Tool], privacy: Privacy | None, *, has_all: bool
) -> tuple[str, ...]:
    """Log and return warnings; raise `DeclarationError` with all errors.

    Agents are prepared here: a missing API key or package of a model is among the warnings.
    """
    grants = {} if privacy is None else privacy.grants
    wrong = [str(one) for one in leaks(registry)]
    if privacy is not None:
        wrong += unknown_types(registry, tools, {**grants, **privacy.approvers}, privacy.types)
    if wrong:
        raise DeclarationError("\n".join(wrong))
    names = frozenset(tool.name for tool in tools)
    # In a cluster, names may belong to agents of other nodes.
    found = [one for agent in registry for one in unknown_names(agent, registry, names)] if has_all else []
    found += idle_grants(registry, grants)
    found += missing_grants(registry, grants) if privacy is not None else ()
    for agent in registry:
        if agent.on_open is not None and (told := await asyncio.to_thread(agent.on_open)):
            found.append(told)
    for one in found:
        log.warning("%s", one)
    return tuple(found)
