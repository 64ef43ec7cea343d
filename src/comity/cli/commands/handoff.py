"""`comity handoff`: hand work off, look at the queue, take work and end it, from a terminal or a script."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from comity import Node
from comity.cli.commands.call import read_inputs, read_value
from comity.cli.commands.calls import when
from comity.cli.reader import Store, is_file
from comity.cli.ui import app
from comity.cli.ui.arguments import a_name, at_least_one
from comity.cli.ui.exits import CliError, Exit
from comity.cli.ui.ids import find, short
from comity.cli.ui.listing import Listing
from comity.cli.ui.output import Output, clean
from comity.core.envelope.envelope import Priority
from comity.core.handoff.machine import DEAD, ENDED, Handoff, State
from comity.errors import ComityError, RefusedError

if TYPE_CHECKING:
    from comity.contextcore.handoffs.receiver import AsyncHandoffReceiver

EMPTY = "has no such handoffs. `comity handoff create CAPABILITY --to AGENT` makes one."
STYLES: Final = {
    State.PENDING: "cyan",
    State.ACCEPTED: "blue",
    State.IN_PROGRESS: "blue",
    State.INPUT_REQUIRED: "yellow",
    State.COMPLETED: "green",
    State.CANCELLED: "dim",
} | dict.fromkeys(DEAD, "red")
_NOT_FOUND: Final = {"HANDOFF_UNKNOWN", "ROUTING_UNKNOWN_AGENT", "ROUTING_UNKNOWN_CAPABILITY"}
_TOO_LATE: Final = {"HANDOFF_ENDED", "HANDOFF_STATE_CONFLICT"}
_USAGE: Final = {
    "INPUT_VALIDATION_FAILED",
    "ENVELOPE_TOO_LARGE",
    "IDENTITY_INVALID",
    "IDENTITY_REQUEST_ID_REUSED",
    "OUTPUT_VALIDATION_FAILED",
    "OUTPUT_TOO_LARGE",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    create = _verb(verbs, "create", "hand work off, to an agent or to any that has the capability")
    create.add_argument("capability", metavar="CAPABILITY", type=a_name)
    _add_inputs(create, "inputs")
    create.add_argument("--to", metavar="AGENT", type=a_name, help="whom it is for; else any receiver with the capability")
    create.add_argument("--task", metavar="TEXT", default="", help="what is to be done, in words")
    create.add_argument("--from", metavar="AGENT", dest="source", type=a_name, help="the agent that hands it off")
    create.add_argument("--priority", choices=[str(one) for one in Priority], default="normal")
    create.add_argument(
        "--expect", metavar="FIELD", action="append", default=[], help="a field the result must have; repeatable"
    )
    create.add_argument("--expect-type", metavar="TYPE", default="", help="the type the result must have")
    create.add_argument(
        "--id", metavar="ID", dest="handoff_id", type=a_name, help="an id of your own: the same again hands nothing off twice"
    )
    create.add_argument("--wait", action="store_true", help="wait for its end and show the result")
    listing = _verb(verbs, "list", "handoffs, newest first")
    listing.add_argument("--state", metavar="STATE", action="append", choices=[str(one) for one in State], help="repeatable")
    listing.add_argument("--dead", action="store_true", help="dead letters: failed, rejected or timed out, and why")
    listing.add_argument("--to", metavar="AGENT", type=a_name, help="for this agent or capability only")
    listing.add_argument("--limit", metavar="N", type=at_least_one, default=20, help="how many (20)")
    watch = _verb(verbs, "watch", "show handoffs for an agent as they come, without taking them")
    watch.add_argument("agent", metavar="AGENT", type=a_name)
    watch.add_argument("--capability", metavar="CAPABILITY", action="append", default=[], help="what it can do; repeatable")
    watch.add_argument("--limit", metavar="N", type=at_least_one, default=None, help="end after N handoffs")
    accept = _verb(verbs, "accept", "take a handoff; it stays yours until you end it or its deadline passes")
    complete = _verb(verbs, "complete", "end a handoff with a result")
    fail = _verb(verbs, "fail", "mark a handoff as failed")
    reject = _verb(verbs, "reject", "reject a handoff that has not been accepted")
    for one in (accept, complete, fail, reject):
        one.add_argument("handoff_id", metavar="HANDOFF_ID")
        one.add_argument("--agent", metavar="AGENT", type=a_name, help="on whose behalf (the agent it is for)")
    _add_inputs(complete, "the result")
    complete.add_argument("--trace-id", metavar="ID", help="the trace that holds the result")
    for one in (fail, reject):
        one.add_argument("reason", metavar="REASON")
    answer = _verb(verbs, "answer", "answer what the receiver of a handoff of yours asked")
    answer.add_argument("handoff_id", metavar="HANDOFF_ID")
    answer.add_argument("answer", metavar="ANSWER", help="read as JSON where it is JSON")
    cancel = _verb(verbs, "cancel", "cancel a handoff of yours, also after it was accepted")
    cancel.add_argument("handoff_id", metavar="HANDOFF_ID")
    cancel.add_argument("--reason", metavar="TEXT", default="it is no longer needed")
    show = _verb(verbs, "show", "one handoff: what was asked, what happened, what came of it")
    show.add_argument("handoff_id", metavar="HANDOFF_ID")


def _verb(verbs: Any, name: str, what: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = verbs.add_parser(name, help=what, description=what)
    return made


def _add_inputs(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "inputs", metavar="key=value", nargs="*", default=[], help=f"{what}; a value that is JSON is read as JSON"
    )
    parser.add_argument(
        "--inputs", metavar="DOCUMENT", dest="inputs_document", help=f"{what} as one JSON object; - reads stdin"
    )


def run(args: argparse.Namespace, out: Output) -> Exit:
    """Run one verb."""
    if args.verb == "list":
        return _list(args, out)
    if args.verb == "show":
        return _show(args, out)
    if args.verb == "create":
        is_file(Path(args.store))  # it is made where there is none
    elif args.verb == "watch":
        out.is_by_line = True
        with Store(Path(args.store)):
            pass  # a store that is not there is not made
    else:
        _found(args)
    verbs: dict[str, Callable[[argparse.Namespace, Output], Awaitable[Exit]]] = {
        "create": _create,
        "watch": _watch,
        "accept": _accept,
        "complete": _complete,
        "fail": _fail,
        "reject": _reject,
        "answer": _answer,
        "cancel": _cancel,
    }
    try:
        return asyncio.run(_awaited(verbs[args.verb](args, out)))
    except KeyboardInterrupt:
        if args.verb != "watch":  # it has no other end
            raise
        return Exit.INTERRUPTED
    except ComityError as error:
        raise _told(error) from None


async def _awaited(work: Awaitable[Exit]) -> Exit:
    return await work


def _told(error: ComityError) -> CliError:
    """Return an error as the command line says it."""
    code = Exit.REFUSED if isinstance(error, RefusedError) or error.code in _TOO_LATE else Exit.NO_RESULT
    if error.code in _NOT_FOUND:
        code = Exit.NOT_FOUND
    elif error.code in _USAGE:
        code = Exit.USAGE
    elif error.code == "STORE_UNAVAILABLE":
        code = Exit.DAMAGED
    hint = "`comity handoff list` shows how handoffs stand." if error.code.startswith("HANDOFF_") else ""
    if error.code == "HANDOFF_LEASE_LOST":
        hint = "`comity handoff accept HANDOFF_ID` takes a handoff that is free."
    problems = error.facts.get("problems", ())
    if not isinstance(problems, tuple):
        problems = ()
    return CliError(code, error.message, hint=hint, problems=problems, error_code=error.code)


@contextlib.asynccontextmanager
async def _node(args: argparse.Namespace) -> AsyncIterator[Node]:
    """A node for the length of the command; with the agents of --app, so that what they declare holds."""
    node = app.open_node(app.load(args), args.store) if args.app else Node(store=args.store, lag_ms=None)
    async with node:
        yield node


# --- verbs that change something ---


async def _create(args: argparse.Namespace, out: Output) -> Exit:
    from comity.contextcore.handoffs.manager import AsyncHandoffManager
    from comity.runtime.handoff.desk import TIMEOUT_MS

    inputs = read_inputs(args.inputs, args.inputs_document)
    expected = {"type": args.expect_type, "fields": args.expect} if args.expect or args.expect_type else None
    async with _node(args) as node:
        manager = AsyncHandoffManager(agent_id=args.source, user_id=args.user, node=node)
        handoff_id = await manager.create_handoff(
            args.to,
            args.capability,
            args.task,
            inputs,
            expected,
            args.priority,
            TIMEOUT_MS if args.timeout_ms is None else args.timeout_ms,
            handoff_id=args.handoff_id,
        )
        handoff = await (manager.await_result if args.wait else manager.get_handoff_status)(handoff_id)
        meant = [] if args.to is None or node.registry.resolve(args.to) else node.registry.nearest_agents(args.to)
    code = _ended(handoff, out)
    if meant and not out.is_json:  # it may well be for an agent elsewhere
        wrong = f"{args.app} has no agent '{args.to}'; if {' or '.join(meant)} was meant,"
        out.hint(f"{wrong} `comity handoff cancel {handoff.id}` withdraws this.", style="yellow")
    return code


async def _watch(args: argparse.Namespace, out: Output) -> Exit:
    from comity.contextcore.handoffs.receiver import AsyncHandoffReceiver

    seen = 0
    async with _node(args) as node:
        async for handoff in AsyncHandoffReceiver(args.agent, args.capability, node=node).peek_handoffs():
            if out.is_json:
                out.document(document(handoff))
            else:
                out.text(_line(handoff))
            seen += 1
            if seen == args.limit:
                break
    return Exit.OK


async def _accept(args: argparse.Namespace, out: Output) -> Exit:
    async with _receiver(args) as receiver:
        handoff = await receiver.accept(args.handoff_id)
    if not out.is_json:
        out.text(f"{short(clean(handoff.id))} is yours until {when(handoff.request.deadline_at)}.")
        out.text(clean(handoff.task))
        out.text(json.dumps(handoff.inputs, indent=2, ensure_ascii=False), is_copied=True)
        out.hint(f"\n`comity handoff complete {short(clean(handoff.id))} key=value` ends it.")
    else:
        out.document(document(handoff))
    return Exit.OK


async def _complete(args: argparse.Namespace, out: Output) -> Exit:
    result = read_inputs(args.inputs, args.inputs_document)
    async with _receiver(args) as receiver:
        return _ended(await receiver.complete(args.handoff_id, result, args.trace_id), out)


async def _fail(args: argparse.Namespace, out: Output) -> Exit:
    async with _receiver(args) as receiver:
        handoff = await receiver.fail(args.handoff_id, args.reason)
    _tell(handoff, out)
    return Exit.OK


async def _reject(args: argparse.Namespace, out: Output) -> Exit:
    async with _receiver(args) as receiver:
        handoff = await receiver.reject(args.handoff_id, args.reason)
    _tell(handoff, out)
    return Exit.OK


async def _answer(args: argparse.Namespace, out: Output) -> Exit:
    from comity.contextcore.handoffs.manager import AsyncHandoffManager

    async with _node(args) as node:
        manager = AsyncHandoffManager(user_id=args.user, node=node)
        handoff = await manager.provide_input(args.handoff_id, read_value(args.answer))
    _tell(handoff, out)
    return Exit.OK


async def _cancel(args: argparse.Namespace, out: Output) -> Exit:
    from comity.contextcore.handoffs.manager import AsyncHandoffManager

    async with _node(args) as node:
        handoff = await AsyncHandoffManager(user_id=args.user, node=node).cancel(args.handoff_id, args.reason)
    _tell(handoff, out)
    return Exit.OK


@contextlib.asynccontextmanager
async def _receiver(args: argparse.Namespace) -> AsyncIterator[AsyncHandoffReceiver]:
    """A receiver that keeps what it accepts when the command ends."""
    from comity.contextcore.handoffs.receiver import AsyncHandoffReceiver

    handoff = _found(args)
    if handoff.has_ended:
        raise CliError(Exit.REFUSED, f"{handoff.id} has ended: {handoff.state}", hint=f"`comity handoff show {handoff.id}`")
    agent = args.agent or handoff.to_agent.partition("/")[0]
    capabilities = [handoff.capability_id] if _is_for_anybody(handoff) else []
    async with _node(args) as node:
        receiver = AsyncHandoffReceiver(agent, capabilities, node=node, tenant_id=handoff.request.tenant_id, keeps=True)
        await receiver.desk()
        yield receiver


# --- verbs that look ---


def _found(args: argparse.Namespace) -> Handoff:
    with Store(Path(args.store)) as store:
        handoff = store.handoff(args.handoff_id)
        if handoff is None and (whole := find(args.handoff_id, store.recent_handoff_ids(), what="handoff")) is not None:
            args.handoff_id, handoff = whole, store.handoff(whole)
    if handoff is None:
        raise CliError(Exit.NOT_FOUND, f"no handoff {args.handoff_id!r}", hint="`comity handoff list` lists them.")
    return handoff


def _list(args: argparse.Namespace, out: Output) -> Exit:
    states = sorted(DEAD) if args.dead else [State(one) for one in args.state or State]
    with Store(Path(args.store)) as store, out.busy("reading the store"):
        handoffs = store.handoffs(states=states, target=args.to, limit=args.limit)
    if out.is_json:
        out.document({"store": args.store, "handoffs": [document(one) for one in handoffs]})
    elif not handoffs:
        out.hint(f"The store {args.store} {EMPTY}", style="")
    else:
        from rich.text import Text

        titles = ("when", "handoff", "state", "priority", "to", "what, or why it ended")
        table = Listing(*titles, whole={"when", "handoff", "state"})
        for one in handoffs:
            what = one.reason or f"{one.capability_id} {one.task}"
            state = Text(str(one.state), STYLES[one.state])
            table.add(when(one.request.created_at), short(one.id), state, str(one.request.priority), _whom(one), what)
        table.show(out)
    return Exit.OK


def _show(args: argparse.Namespace, out: Output) -> Exit:
    handoff = _found(args)
    if out.is_json:
        out.document(document(handoff))
        return Exit.OK
    from rich.text import Text

    out.text(Text(str(handoff.state), f"bold {STYLES[handoff.state]}"), clean(handoff.reason))
    facts = {
        "id": handoff.id,
        "task": handoff.task,
        "capability": handoff.capability_id,
        "to": _whom(handoff),
        "from": handoff.from_agent or f"user {handoff.request.user_id}",
        "priority": str(handoff.request.priority),
        "created": when(handoff.request.created_at),
        "deadline": when(handoff.request.deadline_at),
        "receiver": handoff.receiver,
        "taken": f"{handoff.attempts} of at most {handoff.attempts_max} times" if handoff.attempts else "",
        "result trace": handoff.result_trace_id if handoff.has_ended else "",
    }
    for name, value in facts.items():
        if value:
            out.text(Text(f"{name:<13}", "dim") + Text(clean(value)))
    for title, data in (("inputs", handoff.inputs), ("result", handoff.result)):
        if data is not None and data != {}:
            out.text(title, style="dim")
            out.text(json.dumps(data, indent=2, ensure_ascii=False), is_copied=True)
    out.text("history", style="dim")
    for entry in handoff.history:
        more = "" if entry.data is None else json.dumps(entry.data, ensure_ascii=False)
        out.text(clean(f"  {when(entry.at_ms)}  {entry.kind}  {more}"))
    return Exit.OK


def document(handoff: Handoff) -> dict[str, Any]:
    """Return a handoff as plain data, every field always there."""
    request, reply = handoff.request, handoff.reply
    return {
        "id": handoff.id,
        "state": str(handoff.state),
        "from_agent": handoff.from_agent,
        "to_agent": handoff.to_agent,
        "capability_id": handoff.capability_id,
        "task": handoff.task,
        "inputs": handoff.inputs,
        "expected_output": msgspec.to_builtins(request.expected_output),
        "priority": str(request.priority),
        "user_id": request.user_id,
        "tenant_id": request.tenant_id,
        "created_at": request.created_at,
        "deadline_at": request.deadline_at,
        "receiver": handoff.receiver or None,
        "attempts": handoff.attempts,
        "result": handoff.result,
        "result_trace_id": handoff.result_trace_id if handoff.has_ended else None,
        "reason": handoff.reason or None,
        "error_code": None if reply is None or reply.error is None else reply.error.code,
        "history": [{"n": one.n, "at_ms": one.at_ms, "kind": one.kind, "data": one.data} for one in handoff.history],
    }


def _ended(handoff: Handoff, out: Output) -> Exit:
    """Show a handoff; without a result, though it has ended, the command has none either."""
    _tell(handoff, out)
    return Exit.NO_RESULT if handoff.state in ENDED - {State.COMPLETED} else Exit.OK


def _tell(handoff: Handoff, out: Output) -> None:
    if out.is_json:
        out.document(document(handoff))
        return
    out.text(_line(handoff))
    if handoff.result is not None:
        out.text(json.dumps(handoff.result, indent=2, ensure_ascii=False), is_copied=True)
    out.hint(f"\ncomity handoff show {short(handoff.id)}", is_copied=True)


def _line(handoff: Handoff) -> Any:
    from rich.text import Text

    line = Text(str(handoff.state), STYLES[handoff.state])
    what = handoff.reason or handoff.task
    return line.append(clean(f"  {short(handoff.id)}  {_whom(handoff)} {handoff.capability_id}  {what}"))


def _whom(handoff: Handoff) -> str:
    """Say whom a handoff is for."""
    return "any agent" if _is_for_anybody(handoff) else handoff.to_agent


def _is_for_anybody(handoff: Handoff) -> bool:
    return handoff.to_agent == handoff.capability_id
