"""`comity convert`: a request or reply of one protocol as a document of another, and what is lost on the way."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from comity.cli.ui.arguments import a_name
from comity.cli.ui.exits import CliError, Exit
from comity.cli.ui.output import Output
from comity.core.call.limits import REQUEST_BYTES_MAX
from comity.core.units import NS_PER_MS
from comity.errors import CallerError


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--from", metavar="DIALECT", dest="source", type=a_name, required=True, help="kdap, delegation, call_agent, …"
    )
    parser.add_argument("--to", metavar="DIALECT", dest="target", type=a_name, required=True)
    parser.add_argument("file", metavar="FILE", help="the document: JSON, or for kdap also its text form; - reads stdin")


def run(args: argparse.Namespace, out: Output) -> Exit:
    """Convert and report."""
    from comity.dialects import convert
    from comity.engines.clock import SystemClock

    text = _read(args.file)
    try:
        outcome = convert(text, args.source, args.target, now_ms=SystemClock().now_ns() // NS_PER_MS, user_id=args.user)
    except CallerError as error:
        raise CliError(Exit.USAGE, error.message, problems=error.facts.get("problems", ())) from None
    lost = [{"path": problem.path, "message": problem.message} for problem in outcome.lost]
    if out.is_json:
        out.document(
            {
                "kind": str(outcome.kind),
                "document": outcome.document,
                "mapped": list(outcome.mapped),
                "lost": lost,
                "assumed": list(outcome.assumed),
            }
        )
        return Exit.OK
    out.document(outcome.document)
    out.err.print(f"mapped   {', '.join(outcome.mapped) or 'nothing'}", soft_wrap=True)
    for one in lost:
        out.err.print(f"lost     {one['path']}: {one['message']}", soft_wrap=True)
    if outcome.assumed:
        out.err.print(f"assumed  {', '.join(outcome.assumed)}", soft_wrap=True)
    return Exit.OK


def _read(name: str) -> bytes:
    try:
        raw = sys.stdin.buffer.read(REQUEST_BYTES_MAX + 1) if name == "-" else Path(name).read_bytes()
    except FileNotFoundError:
        raise CliError(Exit.NOT_FOUND, f"there is no file {name}") from None
    except OSError as error:
        raise CliError(Exit.USAGE, f"{name} cannot be read: {error.strerror}") from None
    return raw
