"""`comity workflow`: check, draw and run workflows; see their runs, answer, cancel, replay, fork and move them."""

from __future__ import annotations

import argparse
import asyncio
import getpass
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from comity import Node, Reply
from comity.cli.commands.call import read_inputs, read_value
from comity.cli.commands.calls import when
from comity.cli.reader import is_file
from comity.cli.ui import app
from comity.cli.ui.arguments import at_least_one
from comity.cli.ui.exits import CliError, Exit
from comity.cli.ui.hints import USER
from comity.cli.ui.ids import find, short
from comity.cli.ui.listing import Listing
from comity.cli.ui.output import Output, clean
from comity.cli.ui.reply import document, exit_of, show
from comity.cli.ui.runs import follow, line, plain, show_questions, show_record, states
from comity.cli.ui.tree import ABANDONED
from comity.core.workflow.draw import lines, mermaid
from comity.core.workflow.replay import in_words, told
from comity.errors import CallerError
from comity.runtime.workflow.store import Status

_LOOK_S: Final = 0.05
_CANCEL_LOOKS: Final = 200  # for ten seconds; a run with much to take back goes on with that
_QUESTION = ("question_id", "QUESTION", "its id, as `comity workflow show` gives it")
_ANSWER = ("answer", "ANSWER", "JSON, or else text")
_FILE = ("file", "FILE", "YAML or JSON")
_RUN = ("run_id", "RUN", "the end or the beginning of its id")
# Each verb, what it does, and its arguments beside those of every command.
VERBS: Final[dict[str, tuple[str, tuple[tuple[str, str, str], ...]]]] = {
    "check": ("find every mistake in a definition; with --app also against its agents", (("file", "FILE", "YAML or JSON"),)),
    "draw": ("draw a definition, or a run with what became of each node", (("what", "FILE|RUN", "a file, or a run"),)),
    "run": ("run a workflow and watch it; --app names its agents", (("file", "FILE", "YAML or JSON, or a template"),)),
    "list": ("list the runs in the store, or the templates", ()),
    "show": ("show a run: its state, its graph, its open questions", (_RUN,)),
    "watch": ("show what happened to a run, and what happens, until it ends", (_RUN,)),
    "answer": ("answer a question of a run; with --app it goes on at once", (_RUN, _QUESTION, _ANSWER)),
    "resume": ("go on with the runs that a node left open, and watch one", (_RUN,)),
    "cancel": ("cancel a run: what runs is stopped, what was done is taken back", (_RUN,)),
    "replay": ("step through the history of a run; nothing is called", (_RUN,)),
    "fork": ("run again from an event on, with another input", (_RUN,)),
    "why": ("say which edges were taken, on what values, and what would have had to differ", (_RUN,)),
    "migrate": ("move a waiting run to another version, if its history proves that it may", (_RUN, _FILE)),
    "new": ("write a definition to begin with", (("name", "NAME", "of the workflow"),)),
}  # fmt: skip


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    made: dict[str, argparse.ArgumentParser] = {}
    for name, (purpose, arguments) in VERBS.items():
        made[name] = one = verbs.add_parser(name, help=purpose, description=purpose)
        for dest, metavar, about in arguments:
            one.add_argument(dest, metavar=metavar, help=about)
    made["draw"].add_argument("--mermaid", action="store_true", help="as Mermaid, for documents")
    for name in ("run", "fork"):
        made[name].add_argument("inputs", metavar="key=value", nargs="*", default=[], help="the input of the workflow")
    made["run"].add_argument(
        "--run-id", metavar="ID", default=None, help="an id of your own: the same one starts nothing twice"
    )
    made["run"].add_argument("--session", metavar="ID", default=None, help="the session its calls belong to")
    made["fork"].add_argument("--at", metavar="EVENT", type=int, default=None, help="the event from which on it differs")
    made["why"].add_argument("node", metavar="NODE", nargs="?", default=None, help="one node; else all")
    made["cancel"].add_argument("--reason", metavar="TEXT", default="", help="why")
    made["list"].add_argument("--templates", action="store_true", help="the definitions that come with Comity")
    statuses = [one.value for one in Status]
    made["list"].add_argument("--status", metavar="STATUS", choices=statuses, default=None, help=" · ".join(statuses))
    made["list"].add_argument("--limit", metavar="N", type=at_least_one, default=20, help="list at most N (20)")
    made["new"].add_argument("--template", metavar="NAME", default="", help="one of `comity workflow list --templates`")
    made["new"].add_argument("--out", metavar="FILE", default="", help="where to (NAME.yaml)")


def run(args: argparse.Namespace, out: Output) -> Exit:
    """Run one verb."""
    verb: Callable[[argparse.Namespace, Output], Exit] = globals()[f"_{args.verb}"]
    try:
        return verb(args, out)
    except KeyboardInterrupt:
        hint = "The run goes on when a node opens the store: `comity workflow resume RUN`."
        raise CliError(Exit.INTERRUPTED, "interrupted", hint=hint) from None


# --- definitions ---


def _read(name: str) -> str:
    from comity.agents.orchestrator import templates

    path = Path(name)
    if path.is_file():
        return path.read_text(encoding="utf-8")
    if name in templates.names():
        return templates.text(name)
    raise CliError(Exit.NOT_FOUND, f"there is no file {name!r}", hint="`comity workflow new NAME` writes one to begin with.")


def read_definition(name: str) -> Any:
    """Return the definition in a file or of a template. Raises `CliError`."""
    from comity.workflow import DefinitionError, load

    try:
        return load(_read(name))
    except DefinitionError as error:
        raise CliError(Exit.USAGE, f"{name} is no workflow", hint="\n".join(map(str, error.mistakes))) from None


def _check(args: argparse.Namespace, out: Output) -> Exit:
    from comity.core.orchestration.aggregate import STRATEGIES, SYNTHESISE
    from comity.workflow import check_text

    text = _read(args.file)
    catalog = asyncio.run(_catalog(args)) if args.app else None
    mistakes = check_text(text, catalog, strategies=[*STRATEGIES, SYNTHESISE])
    if out.is_json:
        out.document({"file": args.file, "mistakes": plain(mistakes)})
    elif mistakes:
        for one in mistakes:
            out.text(clean(f"{args.file}:{one}"), is_copied=True)
    else:
        against = f" against the agents of {args.app}" if args.app else "; --app checks it against agents too"
        out.text(f"{args.file} is sound{against}.")
    return Exit.USAGE if mistakes else Exit.OK


async def _catalog(args: argparse.Namespace) -> Any:
    async with app.load(args).elsewhere(None) as node:
        return node.workflows.catalog()


def _draw(args: argparse.Namespace, out: Output) -> Exit:
    if Path(args.what).is_file() or "." in args.what:
        definition, marked = read_definition(args.what), dict[str, str]()
    else:
        definition, marked = asyncio.run(_drawn(args))
    if out.is_json or args.mermaid:
        picture = mermaid(definition, marked)
        if out.is_json:
            out.document({"mermaid": picture, "states": marked})
        else:
            out.text(picture.rstrip(), is_copied=True)
    else:
        out.text("\n".join(clean(one) for one in lines(definition, marked)), is_copied=True)
    return Exit.OK


async def _drawn(args: argparse.Namespace) -> tuple[Any, dict[str, str]]:
    from comity.agents.orchestrator import templates

    if args.what in templates.names():
        return read_definition(args.what), {}
    async with _reader(args) as node:
        run_id = _found(node, args.what)
        record = node.workflows.get(run_id)
        return _pinned(node, record), states(record, await _events(node, run_id))


def _new(args: argparse.Namespace, out: Output) -> Exit:
    from comity.agents.orchestrator import templates

    if args.template and args.template not in templates.names():
        raise CliError(Exit.NOT_FOUND, f"there is no template {args.template!r}", hint="`comity workflow list --templates`")
    path = Path(args.out or f"{args.name}.yaml")
    if path.exists():
        raise CliError(Exit.USAGE, f"{path} is there already", hint="--out names another file.")
    text = templates.text(args.template, name=args.name) if args.template else templates.BEGINNING.format(name=args.name)
    path.write_text(text, encoding="utf-8")
    if out.is_json:
        out.document({"file": str(path)})
    else:
        out.text(f"Wrote {path}.")
        out.hint(f"\ncomity workflow check {path}", is_copied=True)
    return Exit.OK


# --- runs ---


def _reader(args: argparse.Namespace) -> Node:
    """Return a node to look at runs with: it hosts no agents and goes on with nothing."""
    from comity.cli.reader import Store

    with Store(Path(args.store)):
        pass  # a store that is not there, or is none, is told here
    return app.open_node(Node(), args.store)


def _worker(args: argparse.Namespace, *, adopts: bool) -> Node:
    """Return a node with the agents and an orchestrator, which the runs of `comity ask` call.

    With `adopts` the node goes on with runs that a node left open which is gone.
    """
    is_file(Path(args.store))
    team = app.load(args)
    app.host_orchestrator(team)
    return team.elsewhere(args.store) if adopts else app.open_node(team, args.store)


def _found(node: Node, part: str) -> str:
    known = [one.run_id for one in node.workflows.list(limit=100_000)]
    run_id = part if part in known else find(part, known, what="run")
    if run_id is None:
        raise CliError(Exit.NOT_FOUND, f"no run {part!r}", hint="`comity workflow list` lists them.")
    return run_id


def _pinned(node: Node, record: Any) -> Any:
    return node.workflows.store.program(record.definition).graph.definition


async def _events(node: Node, run_id: str) -> list[Any]:
    return [one async for one in node.workflows.past(run_id)]


def _ended(reply: Reply[Any] | None, record: Any, out: Output) -> Exit:
    """Show how a run ended, or what it waits for."""
    if reply is None:
        if out.is_json:
            out.document({"run": plain(record), "reply": None})
        else:
            out.text(clean(f"run {record.run_id} waits"))
            show_questions(record, out)
        return Exit.NO_RESULT
    if out.is_json:
        out.document({"run": plain(record), "reply": document(reply)})
    else:
        show(reply, out)
        out.hint(f"\ncomity workflow show {short(record.run_id)}", is_copied=True)
    return exit_of(reply)


def _run(args: argparse.Namespace, out: Output) -> Exit:
    return asyncio.run(_started(args, out))


async def _started(args: argparse.Namespace, out: Output) -> Exit:
    from comity.agents.orchestrator import templates

    definition = read_definition(args.file)
    given = read_inputs(args.inputs, None)
    async with _worker(args, adopts=_is_open(args)) as node:
        if args.file in templates.names():
            definition = templates.fitted(definition, node.workflows.catalog())
        handle = await node.workflows.start(definition, given, user_id=args.user, session_id=args.session, run_id=args.run_id)
        return await _to_its_end(node, handle, args, out)


def _is_open(args: argparse.Namespace) -> bool:
    """Return whether the store has the run of --run-id and the run has not ended: its process may be gone."""
    from comity.cli.reader import Store

    if args.run_id is None or not is_file(Path(args.store)):
        return False
    with Store(Path(args.store)) as store:
        stored = store.call(args.run_id)
    return stored is not None and stored.settled_at is None


def _person(args: argparse.Namespace) -> str:
    """Return the person who answers, cancels or forks: the user of --user, or else of the operating system."""
    user: str = args.user
    return getpass.getuser() if user == USER else user


async def _to_its_end(node: Node, handle: Any, args: argparse.Namespace, out: Output) -> Exit:
    """Follow a run; on a terminal its questions are asked there."""
    while True:
        reply = await follow(handle, out, stays=False)
        record = node.workflows.get(handle.run_id)
        if reply is not None or out.is_json or not out.err.is_terminal or not record.questions:
            return _ended(reply, record, out)
        question = record.questions[0]
        offered = f" ({', '.join(map(str, question.options))})" if question.options else ""
        said = await asyncio.to_thread(out.err.input, clean(f"{question.text}{offered} "))
        await handle.answer(question.question_id, read_value(said), by=_person(args))


def _list(args: argparse.Namespace, out: Output) -> Exit:
    if args.templates:
        return _list_templates(out)
    records, gone = asyncio.run(_listed(args)), _abandoned(args)
    if out.is_json:
        out.document({"runs": plain(records)})
    elif not records and args.status:
        out.text(f"No run in the store {args.store} is {args.status}. `comity workflow list` lists all.")
    elif not records:
        out.text(f"The store {args.store} has no runs. `comity workflow run FILE` starts one.")
    else:
        table = Listing("run", "workflow", "status", "steps", "started", "waits for", whole=("run",), right=("steps",))
        for one in records:
            waits = "; ".join([*(question.text for question in one.questions), *one.waits_for])
            table.add(
                short(one.run_id),
                f"{one.workflow} {one.version}".strip(),
                f"{one.status}, {ABANDONED}" if one.run_id in gone and one.status == "running" else str(one.status),
                str(one.steps),
                when(one.created_at),
                waits,
            )
        table.show(out)
    return Exit.OK


def _list_templates(out: Output) -> Exit:
    from comity.agents.orchestrator import templates

    found = {name: read_definition(name) for name in templates.names()}
    if out.is_json:
        told = [{"name": name, "description": one.description, "triggers": list(one.triggers)} for name, one in found.items()]
        out.document({"templates": told})
        return Exit.OK
    table = Listing("template", "calls", "what for", whole=("template",))
    for name, one in found.items():
        calls = " → ".join(node.call.capability for node in one.nodes.values() if node.call is not None)
        table.add(name, calls, one.description)
    table.show(out)
    return Exit.OK


async def _listed(args: argparse.Namespace) -> list[Any]:
    async with _reader(args) as node:
        flows = node.workflows
        found = flows.list(status=args.status, limit=args.limit)
        return [flows.counted(one) if one.status == "running" else one for one in found]


def _abandoned(args: argparse.Namespace) -> set[str]:
    """Return the ids of open calls, of runs too, whose node is gone."""
    from comity.cli.reader import Store

    with Store(Path(args.store)) as store:
        return store.abandoned()


def _looked(args: argparse.Namespace, look: Callable[[Node, str], Awaitable[Any]]) -> Any:
    async def looked() -> Any:
        async with _reader(args) as node:
            return await look(node, _found(node, args.run_id))

    return asyncio.run(looked())


def _show(args: argparse.Namespace, out: Output) -> Exit:
    async def look(node: Node, run_id: str) -> Any:
        record = node.workflows.get(run_id)
        if record.status == "running":
            record = node.workflows.counted(record)
        return record, _pinned(node, record), await _events(node, run_id)

    record, definition, events = _looked(args, look)
    is_abandoned = record.status == "running" and record.run_id in _abandoned(args)
    if out.is_json:
        out.document({"run": plain(record), "states": states(record, events), "abandoned": is_abandoned})
    else:
        if is_abandoned:
            resume = f"`comity workflow resume {shlex.quote(short(record.run_id))}`"
            out.text(clean(f"{ABANDONED}; the run goes on when a node with its agents opens the store: {resume}"))
        show_record(record, definition, events, out)
    return Exit.OK


def _watch(args: argparse.Namespace, out: Output) -> Exit:
    async def look(node: Node, run_id: str) -> Any:
        seen = 0
        while True:  # another process drives it: the store is where this one hears of it
            events = await _events(node, run_id)
            begin = events[0].at_ms if events else 0
            for event in events[seen:]:
                out.document(plain(event)) if out.is_json else out.text(line(event, begin), is_copied=True)
            seen = len(events)
            record = node.workflows.get(run_id)
            if record.status.has_ended or record.questions:
                return record
            await asyncio.sleep(0.25)

    out.is_by_line = out.is_json
    record = _looked(args, look)
    if not out.is_json:
        show_questions(record, out)
    return Exit.OK


def _answer(args: argparse.Namespace, out: Output) -> Exit:
    async def answered() -> Exit:
        async with _worker(args, adopts=True) if args.app else _reader(args) as node:
            run_id = _found(node, args.run_id)
            await node.workflows.answer(run_id, args.question_id, read_value(args.answer), by=_person(args))
            if args.app:
                return await _to_its_end(node, node.workflows.handle(run_id), args, out)
            return _noted("The answer is noted; the run goes on where a node with its agents has the store open.", out)

    return asyncio.run(answered())


def _noted(text: str, out: Output) -> Exit:
    if out.is_json:
        out.document({"noted": True})
    else:
        out.text(text)
    return Exit.OK


def _resume(args: argparse.Namespace, out: Output) -> Exit:
    async def resumed() -> Exit:
        async with _worker(args, adopts=True) as node:
            run_id = _found(node, args.run_id)
            return await _to_its_end(node, node.workflows.handle(run_id), args, out)

    return asyncio.run(resumed())


def _cancel(args: argparse.Namespace, out: Output) -> Exit:
    async def cancelled() -> Exit:
        async with _worker(args, adopts=True) if args.app else _reader(args) as node:
            run_id = _found(node, args.run_id)
            await node.workflows.cancel(run_id, reason=args.reason, by=_person(args))
            for _ in range(_CANCEL_LOOKS if args.app else 0):
                if (record := node.workflows.get(run_id)).status.has_ended:
                    return _noted(f"run {run_id}: {record.status}", out)
                await asyncio.sleep(_LOOK_S)
            return _noted("The wish is noted; the node that holds the run cancels it.", out)

    return asyncio.run(cancelled())


def _replay(args: argparse.Namespace, out: Output) -> Exit:
    async def look(node: Node, run_id: str) -> Any:
        found = node.workflows.replay(run_id)
        return [(one.number, in_words(one.event), [told(command) for command in one.commands]) for one in found]

    moments = _looked(args, look)
    if out.is_json:
        out.document({"events": [{"number": number, "event": event, "then": then} for number, event, then in moments]})
        return Exit.OK
    for number, event, then in moments:
        out.text(clean(f"{number:>5}  {event}"))
        for one in then:
            out.text(clean(f"         → {one}"))
    return Exit.OK


def _fork(args: argparse.Namespace, out: Output) -> Exit:
    async def forked() -> Exit:
        async with _worker(args, adopts=False) as node:
            run_id = _found(node, args.run_id)
            given = read_inputs(args.inputs, None)
            handle = await node.workflows.fork(run_id, at=args.at, input=given or ..., by=_person(args))
            return await _to_its_end(node, handle, args, out)

    return asyncio.run(forked())


def _why(args: argparse.Namespace, out: Output) -> Exit:
    async def look(node: Node, run_id: str) -> Any:
        try:
            return node.workflows.why(run_id, args.node)
        except CallerError as error:  # the run is there: the node is not
            raise CliError(Exit.NOT_FOUND, error.message, error_code=error.code) from None

    decisions = _looked(args, look)
    if out.is_json:
        out.document({"decisions": plain(decisions)})
    elif not decisions:
        out.text("No edge was decided there yet.")
    else:
        for one in decisions:
            out.text(clean(str(one)))
    return Exit.OK


def _migrate(args: argparse.Namespace, out: Output) -> Exit:
    async def moved() -> Any:
        definition = read_definition(args.file)
        async with _worker(args, adopts=True) as node:
            return await node.workflows.migrate(_found(node, args.run_id), definition)

    record = asyncio.run(moved())
    if out.is_json:
        out.document({"run": plain(record)})
    else:
        out.text(clean(f"run {record.run_id} goes on with {record.workflow} {record.version} ({record.definition[:12]})"))
    return Exit.OK
