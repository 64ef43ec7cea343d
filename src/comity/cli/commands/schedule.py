"""`comity schedule`: start runs of a workflow by the clock; list, pause, resume and remove what does."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import Any

from comity import Node
from comity.cli.commands.call import read_inputs
from comity.cli.commands.calls import when
from comity.cli.commands.workflow import read_definition
from comity.cli.reader import Store, is_file
from comity.cli.ui import app
from comity.cli.ui.exits import CliError, Exit
from comity.cli.ui.listing import Listing
from comity.cli.ui.output import Output, clean
from comity.cli.ui.runs import plain
from comity.core.workflow.duration import duration_text
from comity.core.workflow.schedule import Missed, Overlap, Schedule
from comity.errors import CallerError
from comity.workflow import DefinitionError

_CHANGES = {
    "pause": "start no more runs; those that have begun go on",
    "resume": "start runs again, from the next time on",
    "remove": "forget a schedule; runs that have begun go on",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    what = "start runs of a workflow at the times of a cron line, or every so often; --app names its agents"
    add = verbs.add_parser("add", help=what, description=what)
    add.add_argument("name", metavar="NAME", help="of the schedule; one of that name is replaced")
    add.add_argument("file", metavar="FILE", help="YAML or JSON, or a template")
    add.add_argument("inputs", metavar="key=value", nargs="*", default=[], help="the input of every run")
    add.add_argument(
        "--cron", metavar="LINE", default="", help="minute hour day-of-month month day-of-week, such as '0 9 * * mon-fri'"
    )
    add.add_argument("--every", metavar="DURATION", default="", help="15m, 1h30m, 1d; counted from now")
    add.add_argument("--zone", metavar="ZONE", default="UTC", help="the time zone of --cron, such as Europe/Berlin (UTC)")
    add.add_argument(
        "--overlap", choices=[one.value for one in Overlap], default="skip", help="if the run before has not ended (skip)"
    )
    add.add_argument(
        "--missed", choices=[one.value for one in Missed], default="one", help="times while no node was there (one run for all)"
    )
    verbs.add_parser("list", help="list the schedules in the store", description="list the schedules in the store")
    for verb, purpose in _CHANGES.items():
        verbs.add_parser(verb, help=purpose, description=purpose).add_argument("name", metavar="NAME", help="of the schedule")


def run(args: argparse.Namespace, out: Output) -> Exit:
    """Run one verb."""
    try:
        if args.verb == "add":
            return _told(asyncio.run(_added(args)), out)
        if args.verb == "list":
            return _list(asyncio.run(_listed(args)), args, out)
        return _told(asyncio.run(_changed(args)), out, f"The schedule {args.name} is removed.")
    except DefinitionError as error:
        hint = "\n".join(map(str, error.mistakes))
        raise CliError(Exit.USAGE, f"{args.file} has mistakes", hint=hint) from None
    except CallerError as error:
        is_unknown = error.code == "WORKFLOW_UNKNOWN"
        hint = "`comity schedule list` lists them." if is_unknown else "`comity schedule add --help` shows how to write one."
        raise CliError(Exit.NOT_FOUND if is_unknown else Exit.USAGE, error.message, hint=hint) from None


async def _added(args: argparse.Namespace) -> Schedule:
    definition, inputs = read_definition(args.file), read_inputs(args.inputs, None)
    is_file(Path(args.store))
    async with app.open_node(app.load(args), args.store) as node:
        return await node.workflows.schedules.add(
            args.name, definition, inputs, user_id=args.user, cron=args.cron, every=args.every,
            zone=args.zone, overlap=args.overlap, missed=args.missed,
        )  # fmt: skip


def _reader(args: argparse.Namespace) -> Node:
    """Return a node without agents, which starts nothing."""
    with Store(Path(args.store)):
        pass  # a store that is not there, or is none, is told here
    return app.open_node(Node(), args.store)


async def _listed(args: argparse.Namespace) -> list[Schedule]:
    async with _reader(args) as node:
        return node.workflows.schedules.list()


async def _changed(args: argparse.Namespace) -> Schedule | None:
    async with _reader(args) as node:
        schedules = node.workflows.schedules
        change: Any = {"pause": schedules.pause, "resume": schedules.resume, "remove": schedules.remove}[args.verb]
        found: Schedule | None = await change(args.name)
        return found


def _told(schedule: Schedule | None, out: Output, otherwise: str = "") -> Exit:
    if out.is_json:
        out.document({"schedule": None if schedule is None else plain(schedule)})
    elif schedule is None:
        out.text(otherwise)
    elif schedule.is_paused:
        out.text(f"The schedule {schedule.name} is paused.")
    else:
        out.text(clean(f"{schedule.name} runs {schedule.workflow} next at {_at(schedule.next_at)}."))
        out.hint("A node with its agents must have the store open then, such as `comity serve`.")
    return Exit.OK


def _list(schedules: list[Schedule], args: argparse.Namespace, out: Output) -> Exit:
    if out.is_json:
        out.document({"schedules": plain(schedules)})
    elif not schedules:
        out.text(f"The store {args.store} has no schedules. `comity schedule add` makes one.")
    else:
        table = Listing(
            "schedule",
            "workflow",
            "when",
            "next",
            "runs",
            "skipped",
            "last run",
            whole=("schedule", "last run"),
            right=("runs", "skipped"),
        )
        for one in schedules:
            times = f"{one.cron} {one.zone}" if one.cron else f"every {duration_text(one.every_ms)}"
            following = "paused" if one.is_paused else _at(one.next_at)
            table.add(one.name, one.workflow, times, following, str(one.runs), str(one.skipped), one.last_run)
        table.show(out)
        for one in schedules:
            if one.problem:
                out.text(clean(f"{one.name}: its newest run could not be started: {one.problem}"))
    return Exit.OK


def _at(at_ms: int | None) -> str:
    return "never" if at_ms is None else when(at_ms)
