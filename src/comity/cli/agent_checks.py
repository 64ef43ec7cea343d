"""What `comity doctor` checks of agents: whether a node of them starts, and each can be called."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator

from comity import Agent as ThinkingAgent
from comity import Node
from comity.cli import app
from comity.cli.doctor import Check
from comity.cli.exits import Exit
from comity.cli.output import counted
from comity.core.agent import Agent
from comity.core.declaration import DeclarationError
from comity.core.registry import Registry
from comity.core.schema import SchemaError
from comity.errors import ComityError, TargetError


def check_agents(args: argparse.Namespace) -> Iterator[Check]:
    """Yield what was found about the agents that --app names."""
    try:
        node = app.load(args)
        asyncio.run(_opened(node))
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
    registry = Registry(agents)
    for agent in agents:
        unknown = sorted(name for name in agent.can_call or () if name != "*" and registry.resolve(name) is None)
        if unknown:
            yield Check("agents", "warning", f"{agent.id} may call {', '.join(unknown)}, which {args.app} does not have")
        if unknown := sorted(agent.tools_allowed - {"*"} - {tool.name for tool in node.tools}):
            yield Check("agents", "warning", f"{agent.id} may use {', '.join(unknown)}, a tool {args.app} does not have")


async def _opened(node: Node) -> None:
    """Start the node in memory and end it: what every call here would fail of, fails this."""
    async with node.elsewhere(None):
        pass


def _broken(agents: list[Agent]) -> Iterator[Check]:
    for agent in agents:
        for capability in agent.capabilities.values():
            try:
                capability.prepare()
            except SchemaError as error:
                yield Check("agents", "failed", f"{agent.id} {capability.code} cannot be called: {error}", Exit.USAGE)
        if isinstance(agent, ThinkingAgent) and agent.mind is not None:
            try:
                _ = agent.mind.model
            except TargetError as error:  # not a fault of the declaration: the key may be where the node will run
                yield Check("agents", "warning", f"{agent.id} cannot think here: {error.message}")
