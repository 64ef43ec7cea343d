"""The agents a command works with, and a node for the length of one command."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from comity import Node
from comity.cli.reader import is_file
from comity.cli.ui.exits import CliError, Exit
from comity.cli.ui.hints import NO_APP
from comity.engines.clock import SystemIds
from comity.engines.sqlite.engine import SqliteEngine

if TYPE_CHECKING:
    from comity.agents.orchestrator import Orchestrator


def record_content() -> None:
    """Have the spans of the demo's agents hold what was said, unless the environment decides: it is made up."""
    os.environ.setdefault("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")


def load(args: argparse.Namespace) -> Node:
    """Return a node, not running, with the agents that --app names."""
    if not args.app:
        raise CliError(Exit.USAGE, "no agents are configured", hint=NO_APP)
    from comity import Agent
    from comity.loading.registry_file import load_node

    look_here()
    return load_node(args.app, Agent)


def look_here() -> None:
    """Let --app name modules of the working directory, which comes last: no file there ever stands in for a package."""
    if (here := os.getcwd()) not in sys.path:  # noqa: PTH109
        sys.path.append(here)


def host_orchestrator(node: Node) -> Orchestrator | None:
    """Return the orchestrator of a node that is not running, added if there is none; None if another agent has its name."""
    from comity.agents.orchestrator import Orchestrator

    known = next((agent for agent in node.registry if isinstance(agent, Orchestrator)), None)
    if known is not None:
        return known
    made = Orchestrator()
    if node.registry.resolve(made.id) is not None:
        return None
    node.add(made)
    return made


def open_node(node: Node, store: str) -> Node:
    """Return the node on the store, to be used with `async with`."""
    is_file(Path(store))  # a directory is told before anything is made beside it
    return node.elsewhere(None, SqliteEngine(store, SystemIds().span_id(), takes_over=False))
