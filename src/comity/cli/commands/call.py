"""`comity call`: one call to one agent, watched while it runs."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import sys
from typing import Any

import msgspec

from comity import Node, Reply, Status
from comity.cli.ui import app
from comity.cli.ui.exits import CliError, Exit
from comity.cli.ui.hints import ask_for
from comity.cli.ui.ids import short
from comity.cli.ui.live import follow
from comity.cli.ui.output import Output
from comity.cli.ui.reply import document, exit_of, show
from comity.core.call.limits import INPUTS_BYTES_MAX
from comity.core.document.payload import PayloadError, check_keys


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("agent", metavar="AGENT", help="id or alias, or id/key")
    parser.add_argument("capability", metavar="CAPABILITY")
    parser.add_argument(
        "inputs", metavar="key=value", nargs="*", default=[], help="inputs; a value that is JSON is read as JSON, else as text"
    )
    parser.add_argument(
        "--inputs",
        metavar="DOCUMENT",
        dest="inputs_document",
        help="all inputs as one JSON object; - reads stdin. `--json DOCUMENT` is short for `--json --inputs DOCUMENT`",
    )
    parser.add_argument("--message", metavar="TEXT", default="", help="what to say, in words; agents with a model read this")
    parser.add_argument("--session", metavar="ID", default=None, help="the session the call belongs to; else one of its own")
    parser.add_argument("--correlation-id", metavar="ID", default="", help="of the workflow the call is part of")
    parser.add_argument("--request-id", metavar="ID", help="an id of your own: calling again with it returns the first outcome")


def run(args: argparse.Namespace, out: Output) -> Exit:
    """Make the call and show its reply."""
    inputs = read_inputs(args.inputs, args.inputs_document)
    team = app.load(args)
    made: list[str] = []
    try:
        reply = asyncio.run(_call(team, args, inputs, out, made))
    except KeyboardInterrupt:
        hint = f"comity show {shlex.quote(made[0])}" if made else ""
        raise CliError(Exit.INTERRUPTED, "interrupted; the call was cancelled", hint=hint) from None
    code = exit_of(reply)
    if out.is_json:
        out.document(document(reply))
        return code
    show(reply, out)
    if code is Exit.NOT_FOUND:
        out.hint("`comity agents` lists the agents, `comity agents AGENT` what one can do.", style="")
    elif code is Exit.USAGE:
        if reply.error is not None and any(one.path.startswith("inputs") for one in reply.error.problems):
            out.hint(f"`comity agents {args.agent}` shows what {args.capability} takes.", style="")
    else:
        if reply.status is Status.NEEDS_INPUT and isinstance(reply.data, dict) and "approval_id" in reply.data:
            out.hint(f"\n{ask_for(reply.data['approval_id'])}", style="", is_copied=True)
        if reply.error is not None and reply.error.code == "TARGET_CRASHED" and not args.verbose:
            out.hint("Run it again with --verbose to see the traceback.", style="")
        out.hint(f"\ncomity show {shlex.quote(short(reply.request_id))}", is_copied=True)
    return code


async def _call(team: Node, args: argparse.Namespace, inputs: dict[str, Any], out: Output, made: list[str]) -> Reply:
    async with app.open_node(team, args.store) as node:
        handle = node.start_call(
            args.agent,
            args.capability,
            inputs,
            user_id=args.user,
            session_id=args.session,
            message=args.message,
            request_id=args.request_id,
            correlation_id=args.correlation_id,
            timeout_ms=args.timeout_ms,
        )
        made.append(handle.request_id)
        try:
            return await follow(handle, out.err, stays=False)
        except asyncio.CancelledError:
            handle.cancel()
            raise


def read_inputs(pairs: list[str], document: str | None) -> dict[str, Any]:
    """Return the inputs from key=value pairs, or from one JSON document."""
    if document is not None:
        if pairs:
            raise CliError(Exit.USAGE, "give the inputs as key=value or as one JSON document, not both")
        return _read_document(document)
    inputs: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise CliError(
                Exit.USAGE, f"{pair!r} is not of the form key=value", hint="Example: rate=0.12 name=Ada 'list=[1, 2]'"
            )
        if key in inputs:
            raise CliError(Exit.USAGE, f"{key} is given twice")
        inputs[key] = read_value(text)
    return inputs


def read_value(text: str) -> Any:
    """Return what a word on the command line says: JSON, or else a text."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return text
    _check_keys(text)
    return value


def _read_document(text: str) -> dict[str, Any]:
    if text == "-":
        if sys.stdin.isatty():
            sys.stderr.write("Reading the inputs as JSON from the terminal; end with Ctrl-D.\n")
        raw = sys.stdin.buffer.read(INPUTS_BYTES_MAX + 1)
        if len(raw) > INPUTS_BYTES_MAX:
            raise CliError(Exit.USAGE, f"the inputs are larger than {INPUTS_BYTES_MAX:,} bytes")
    else:
        raw = text.encode(errors="surrogateescape")
    try:
        value = msgspec.json.decode(raw)
    except RecursionError:
        raise CliError(Exit.USAGE, "the inputs are nested too deeply") from None
    except (msgspec.MsgspecError, ValueError) as error:
        why = f"are not JSON: {error}" if raw.strip() else "are empty; no inputs are {}"
        raise CliError(Exit.USAGE, f"the inputs {why}") from None
    if not isinstance(value, dict):
        raise CliError(Exit.USAGE, "the inputs must be a JSON object with named fields")
    _check_keys(raw)
    return value


def _check_keys(raw: bytes | str) -> None:
    try:
        check_keys(raw)
    except PayloadError as error:
        message = f"the inputs mean nothing for certain: {error}"
        raise CliError(Exit.USAGE, message, problems=error.problems, error_code=error.code) from None
