"""`comity approvals`: what tools of high risk have asked, and a person's answer, which lets the call go on."""

from __future__ import annotations

import argparse
import asyncio
import getpass
from pathlib import Path

import msgspec

from comity.cli.commands.calls import when
from comity.cli.reader import Store
from comity.cli.ui import app
from comity.cli.ui.exits import CliError, Exit
from comity.cli.ui.ids import find, short
from comity.cli.ui.output import Output, clean
from comity.cli.ui.reply import document, exit_of, show
from comity.errors import CallerError, RefusedError
from comity.runtime.call.tools import Approval

NOT_HERE = "--app must name the node with the agents and tools of the call, such as module:node."
EMPTY = "has no approvals. A tool declared with high risk asks for one before it is used."


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    listing = verbs.add_parser("list", help="open questions, or all of them")
    listing.add_argument("--all", action="store_true", help="answered ones too")
    listing.add_argument("--by", metavar="NAME", default=None, help="as this person may see them; needs --app")
    for verb, what in (
        ("grant", "allow it, and go on with the call; --app names the agents and tools"),
        ("deny", "forbid it, and go on with the call; --app names the agents and tools"),
    ):
        one = verbs.add_parser(verb, help=what, description=what)
        one.add_argument("approval_id", metavar="APPROVAL_ID")
        one.add_argument("--by", metavar="NAME", default=None, help="who answers (you)")
        one.add_argument("--reason", metavar="TEXT", default="", help="why; the agent that asked reads the reason")


def run(args: argparse.Namespace, out: Output) -> Exit:
    """Run one verb."""
    with Store(Path(args.store)) as store, out.busy("reading the store"):
        approvals = store.approvals()
    if args.verb == "list":
        if args.by:
            approvals = asyncio.run(_shown_to(args))
        _list(approvals if args.all else [one for one in approvals if one.granted is None], args, out)
        store.check_whole()
        return Exit.OK
    asked, known = args.approval_id, [one.id for one in approvals]
    args.approval_id = args.approval_id if args.approval_id in known else find(args.approval_id, known, what="approval")
    if args.approval_id is None:
        store.check_whole()
        raise CliError(Exit.NOT_FOUND, f"no approval {asked!r}", hint="`comity approvals list` lists them.")
    return asyncio.run(_decide(args, out))


async def _shown_to(args: argparse.Namespace) -> list[Approval]:
    async with app.open_node(app.load(args), args.store) as node:
        return sorted(node.approvals(by=args.by), key=lambda one: one.asked_at)


async def _decide(args: argparse.Namespace, out: Output) -> Exit:
    async with app.open_node(app.load(args), args.store) as node:
        try:
            by = args.by or getpass.getuser()
            reply = await node.decide(args.approval_id, granted=args.verb == "grant", by=by, reason=args.reason)
        except RefusedError as error:
            raise CliError(Exit.REFUSED, error.message, hint="`comity approvals list --all` shows every answer.") from None
        except CallerError as error:
            raise CliError(Exit.USAGE, f"{error.message}; the answer was not noted", hint=NOT_HERE) from None
    if reply is None:
        raise CliError(Exit.NO_RESULT, "the answer is noted; the call is under way on another node", hint="`comity calls`")
    if out.is_json:
        out.document(document(reply))
    else:
        show(reply, out)
    return exit_of(reply)


def _list(approvals: list[Approval], args: argparse.Namespace, out: Output) -> None:
    if out.is_json:
        out.document({"approvals": [msgspec.to_builtins(one) for one in approvals]})
    elif not approvals:
        out.text(f"The store {args.store} {EMPTY}" if args.all else "Nothing waits for approval. --all shows answered ones.")
    else:
        for one in approvals:
            answer = "open" if one.granted is None else f"{'granted' if one.granted else 'denied'} by {one.decided_by}"
            out.text(clean(f"{short(one.id)}  {answer}  asked {when(one.asked_at)} by {one.target} for user {one.user_id}"))
            out.text(clean(f"  {one.tool} {msgspec.json.encode(one.inputs).decode()}"))
        out.hint("\n`comity approvals grant APPROVAL_ID` allows one and goes on with its call.")
