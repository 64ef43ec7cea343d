"""`comity ask`: a request in words, to the orchestrator, which finds the agents that serve it."""

from __future__ import annotations

import argparse
import asyncio
import shlex
from pathlib import Path
from typing import Any, Final

from comity import Node, Reply, Status
from comity.cli.commands.call import read_inputs
from comity.cli.reader import is_file
from comity.cli.ui import app
from comity.cli.ui.exits import CliError, Exit
from comity.cli.ui.ids import short
from comity.cli.ui.live import follow
from comity.cli.ui.output import Output
from comity.cli.ui.reply import document, exit_of, show

RUNS_MAX: Final = 100_000  # waiting runs of a store among which those of the session are looked for


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("text", metavar="REQUEST", help="what you want, in your own words")
    parser.add_argument("inputs", metavar="key=value", nargs="*", default=[], help="what the request needs beside its words")
    parser.add_argument("--session", metavar="ID", default="ask", help="the conversation it belongs to (ask)")
    parser.add_argument("--again", action="store_true", help="run what was presented before anew")
    parser.add_argument("--classify", action="store_true", help="say which capability it asks for, and call none")
    parser.add_argument("--correct", metavar="AGENT/CAPABILITY", default="", help="teach that this request asks for that")
    parser.add_argument("--undo", metavar="LESSON_ID", default="", help="forget a lesson; REQUEST is not used")


def run(args: argparse.Namespace, out: Output) -> Exit:
    """Ask, and show the reply."""
    inputs = read_inputs(args.inputs, None)
    team = app.load(args)
    try:
        reply = asyncio.run(_ask(team, args, inputs, out))
    except KeyboardInterrupt:
        raise CliError(Exit.INTERRUPTED, "interrupted; the request was cancelled") from None
    if out.is_json:
        out.document(document(reply))
        return exit_of(reply)
    _show(reply, args, out)
    return exit_of(reply)


def _show(reply: Reply[Any], args: argparse.Namespace, out: Output) -> None:
    if reply.status is Status.NEEDS_INPUT:
        out.text(reply.message)
        if isinstance(reply.data, dict) and "missing" in reply.data:
            given = " ".join(f"{name}=…" for name in reply.data["missing"])
            out.hint(f"\ncomity ask {shlex.quote(args.text)} {given}", is_copied=True)
        elif not args.text.strip():
            out.hint(f"\ncomity ask {shlex.quote('what can you do')}", is_copied=True)
        else:
            out.hint(f"\ncomity ask 1 --session {shlex.quote(args.session)}", is_copied=True)
        return
    show(reply, out)
    out.hint(f"\ncomity show {shlex.quote(short(reply.request_id))}", is_copied=True)


async def _ask(team: Node, args: argparse.Namespace, inputs: dict[str, Any], out: Output) -> Reply[Any]:
    from comity.agents.orchestrator import templates

    orchestrator = app.host_orchestrator(team)
    if orchestrator is None:
        raise CliError(Exit.USAGE, "the agents have an agent 'ORC' that is no orchestrator", hint="Give it another name.")
    capability, given = _wanted(args, inputs)
    adopts = await _has_waiting_run(args)
    async with team.elsewhere(args.store) if adopts else app.open_node(team, args.store) as node:
        known = node.workflows.definitions
        node.workflows.add(*(one for one in templates.fitting(node.workflows.catalog()) if one.name not in known))
        handle = node.start_call(
            orchestrator.id, capability, given, user_id=args.user, session_id=args.session, timeout_ms=args.timeout_ms
        )
        try:
            return await follow(handle, out.err, stays=False)
        except asyncio.CancelledError:
            handle.cancel()
            raise


async def _has_waiting_run(args: argparse.Namespace) -> bool:
    """Return whether a run of this user and session waits: the request may answer it, and only a node that adopts can go on."""
    if not is_file(Path(args.store)):
        return False
    async with app.open_node(Node(), args.store) as reader:
        waiting = reader.workflows.list(status="waiting", limit=RUNS_MAX)
        return any((one.user_id, one.session_id) == (args.user, args.session) for one in waiting)


def _wanted(args: argparse.Namespace, inputs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the capability of the orchestrator that the options mean, and its inputs."""
    if args.undo:
        return "ORC_UNDO", {"lesson_id": args.undo}
    if args.correct:
        target, slash, code = args.correct.partition("/")
        if not slash:
            raise CliError(Exit.USAGE, f"--correct {args.correct!r} is not of the form AGENT/CAPABILITY")
        return "ORC_CORRECT", {"target": target, "capability": code, "text": args.text}
    if args.classify:
        return "ORC_CLASSIFY", {"text": args.text}
    return "ORC_ROUTE", {"text": args.text, "inputs": inputs, "again": args.again}
