"""`comity serve`: agents behind HTTP, with a token, a console, metrics and a drain."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import secrets
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from comity.cli.commands.agents import example_inputs
from comity.cli.reader import is_file
from comity.cli.ui import app
from comity.cli.ui.arguments import a_name
from comity.cli.ui.exits import CliError, Exit
from comity.cli.ui.output import Output
from comity.core.units import NS_PER_MS

if TYPE_CHECKING:
    from comity import Node
    from comity.core.workflow.model import Definition
    from comity.server.auth import Gate
    from comity.server.serve import Server
    from comity.server.settings import Settings

DEMO: Final = "comity.demo:agents"
_FLAGS: Final = (
    "host", "port", "public_hosts", "allow_origins", "certfile", "keyfile", "insecure_http", "drain_s", "log_requests",
)  # fmt: skip


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("served", metavar="APP", nargs="?", help=f"module:attribute or a .yaml file, as --app ({DEMO})")
    parser.add_argument("--host", metavar="ADDRESS", help="the address to listen on (127.0.0.1)")
    parser.add_argument("--port", metavar="N", type=int, help="the port to listen on, 0 for any (7654)")
    parser.add_argument(
        "--workflow", metavar="FILE", dest="workflows", action="append", default=[], help="a workflow to serve, as YAML or JSON"
    )
    parser.add_argument("--memory", action="store_true", help="keep nothing: no store, and a new token at each start")
    parser.add_argument("--config", metavar="FILE", type=a_name, help="settings as YAML; COMITY_SERVE_… and flags override it")
    parser.add_argument("--check", action="store_true", help="print the settings and what would be served, then leave")
    parser.add_argument(
        "--public-host", metavar="NAME", dest="public_hosts", action="append", help="a further name the server is asked under"
    )
    parser.add_argument(
        "--allow-origin", metavar="URL", dest="allow_origins", action="append", help="an origin whose pages may ask"
    )
    parser.add_argument("--certfile", metavar="FILE", help="a TLS certificate, with --keyfile")
    parser.add_argument("--keyfile", metavar="FILE", help="its key")
    parser.add_argument(
        "--insecure-http", action="store_true", default=None, help="listen beyond this machine without TLS: tokens go in clear"
    )
    parser.add_argument("--drain-s", metavar="S", type=float, help="how long calls may finish after SIGTERM (20)")
    parser.add_argument("--log-requests", action="store_true", default=None, help="log every request, not failures alone")


def run(args: argparse.Namespace, out: Output) -> Exit:
    """Serve until a signal comes."""
    from comity.server.missing import check_installed
    from comity.server.settings import read_settings

    check_installed()
    flags = {name: getattr(args, name) for name in _FLAGS}
    settings = read_settings(Path(args.config) if args.config else None, **flags)
    args.app = args.served or args.app or DEMO
    if args.app == DEMO:
        app.record_content()
    node = served_node(args)
    workflows = _definitions(args.workflows)
    node.add_workflows(*workflows)
    if args.check:
        return _check(args, settings, node, [one.name for one in workflows], out)
    import uvloop

    _begin_logging()
    auth, shown = _gate(node)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(node, settings, auth, shown, out))
    return Exit.OK


async def _serve(node: Node, settings: Settings, auth: Gate, shown: str, out: Output) -> None:
    from comity.server.doors import standard_doors
    from comity.server.serve import Server

    server = Server(node, settings, auth, standard_doors(settings))
    try:
        await server.run(lambda running: _greet(running, auth, shown, out))
    except OSError as error:
        raise CliError(Exit.NO_RESULT, f"cannot listen on {settings.host}:{settings.port}: {error.strerror}") from None


def served_node(args: argparse.Namespace) -> Node:
    """Return the node to serve: as the app made it if it has a store, else on the store that the arguments name.

    It has the orchestrator, as the node of `comity ask` does: a server goes on with what that command left in the store.
    """
    node = app.load(args)
    app.host_orchestrator(node)
    if node.store is not None:
        args.store = str(node.store)
        return node
    store = None if args.memory else args.store
    if store is not None:
        is_file(Path(store))  # a directory is told before anything is made beside it
    return node.elsewhere(store, takes_handoffs=True)


def _definitions(names: list[str]) -> list[Definition]:
    """Return the workflows in files. Raises `CliError`."""
    from comity.cli.commands.workflow import read_definition

    return [read_definition(one) for one in names]


def _gate(node: Node) -> tuple[Gate, str]:
    """Return who may ask, and how the token is named to the person who starts the server."""
    from comity.engines.keys import keys_folder
    from comity.server.auth import Gate, stored_token, token_file
    from comity.server.token_auth import Auth

    now_ms = time.time_ns() // NS_PER_MS
    if node.store is None:
        token = secrets.token_urlsafe(32)
        return Gate(token, Auth.open(None, now_ms=now_ms)), token
    path = token_file(node.store)
    signed = Auth.open(keys_folder(node.store), now_ms=now_ms)
    return Gate(stored_token(path), signed), f"$(cat {shlex.quote(str(path))})"


def _greet(server: Server, auth: Gate, shown: str, out: Output) -> None:
    """Say where the server is, and how to use it."""
    node, url = server.node, server.url
    code = auth.code(server.app.state.now_ms())
    if out.is_json:
        out.is_by_line = True  # written at once: the program that started the server waits for it
        out.document({"url": url, "console": f"{url}/console/#code={code}", "pid": os.getpid(), "agents": len(node.registry)})
        return
    where = "in memory" if node.store is None else f"on {node.store}"
    out.text(f"Serving {len(node.registry)} agents {where} at {url} (Ctrl-C stops it)\n", style="bold")
    out.text(f"console  {url}/console/#code={code}", is_copied=True)
    out.text("         the link signs one browser in, once, within a minute", style="dim")
    if (line := _curl(node, url, shown)) is not None:
        out.text(f"call     {line}", is_copied=True)
    out.text(f'metrics  curl -s -H "Authorization: Bearer {shown}" {url}/metrics', is_copied=True)
    out.text(f"health   curl -s {url}/readyz\n", is_copied=True)
    sys.stdout.flush()
    out.out.file.flush()


def _curl(node: Node, url: str, shown: str) -> str | None:
    """Return a command that makes a call which works, or None where no capability can be tried by itself."""
    for agent in node.registry:
        for capability in agent.capabilities.values():
            if (inputs := example_inputs(capability)) is not None and capability.active:
                body = json.dumps({"target": agent.id, "capability": capability.code, "inputs": inputs, "user_id": "u1"})
                return (
                    f'curl -s -H "Authorization: Bearer {shown}" -H "Content-Type: application/json" '
                    f"-d {shlex.quote(body)} {url}/v1/calls"
                )
    return None


def _check(args: argparse.Namespace, settings: Settings, node: Node, workflows: list[str], out: Output) -> Exit:
    """Print the settings, checked, and what would be served."""
    from comity.engines.sqlite.file import unwritable

    if node.store is not None and (why := unwritable(node.store)):
        raise CliError(Exit.DAMAGED, why)
    told: dict[str, Any] = {
        "app": args.app,
        "store": None if node.store is None else str(node.store),
        "agents": sorted(agent.id for agent in node.registry),
        "workflows": sorted(workflows),
        "settings": msgspec.to_builtins(settings),
    }
    if out.is_json:
        out.document(told)
        return Exit.OK
    out.text(f"app      {told['app']} ({len(told['agents'])} agents: {', '.join(told['agents'])})")
    if workflows:
        out.text(f"runs     {', '.join(told['workflows'])}")
    out.text(f"store    {told['store'] or 'none: everything is in memory'}")
    for name, value in told["settings"].items():
        out.text(f"{name:<28} {', '.join(value) or 'none' if isinstance(value, list) else value}")
    return Exit.OK


def _begin_logging() -> None:
    """Log as JSON lines to stderr: what the server does, and what agents and the store warn of."""
    from comity.server.logs import JsonLines

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    log = logging.getLogger("comity")
    log.handlers[:], log.propagate = [handler], False
    log.setLevel(logging.INFO)
