"""What `comity doctor` checks of agents: whether a node of them starts, and each can be called."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator

from comity import Node
from comity.cli.ui import app
from comity.cli.ui.checks import Check
from comity.cli.ui.exits import Exit
from comity.cli.ui.output import counted
from comity.core.agent.agent import Agent
from comity.core.agent.declaration import DeclarationError
from comity.core.document.schema import SchemaError
from comity.errors import ComityError


def check_agents(args: argparse.Namespace) -> Iterator[Check]:
    """Yield what was found about the agents that --app names."""
    problems: tuple[str, ...] = ()
    try:
        node = app.load(args)
        problems = asyncio.run(_opened(node))
    except DeclarationError as error:
        yield Check("agents", "failed", str(error), Exit.USAGE)
        return
    except ComityError as error:
        code = Exit.DAMAGED if error.code == "STORE_UNAVAILABLE" else Exit.USAGE
        yield Check("agents", "failed", f"no node of {args.app} can start: {error.message}", code)
    agents = list(node.registry)
    broken = list(_broken(agents))
    count = sum(len(agent.capabilities) for agent in agents)
    detail = f"{args.app}: {counted(len(agents), 'agent')}, {count} {'capability' if count == 1 else 'capabilities'}"
    yield Check("agents", "ok" if agents else "warning", detail if agents else f"{args.app} has no agents")
    yield from broken
    for one in problems:
        yield Check("agents", "warning", one)


async def _opened(node: Node) -> tuple[str, ...]:
    """Start the node in memory and end it, and return what it warns of: what every call here would fail of, fails this."""
    async with node.elsewhere(None) as other:
        return other.problems


def _broken(agents: list[Agent]) -> Iterator[Check]:
    for agent in agents:
        for capability in agent.capabilities.values():
            try:
                capability.prepare()
            except SchemaError as error:
                yield Check("agents", "failed", f"{agent.id} {capability.code} cannot be called: {error}", Exit.USAGE)
