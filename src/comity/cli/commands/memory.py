"""`comity memory`: what is remembered of people across sessions; show, correct, forget or erase it."""

from __future__ import annotations

import argparse
import getpass
from pathlib import Path
from typing import Any

import msgspec

from comity.cli.commands.calls import when
from comity.cli.reader import Store
from comity.cli.ui.arguments import a_name
from comity.cli.ui.exits import CliError, Exit, awaited
from comity.cli.ui.listing import Listing
from comity.cli.ui.output import Output, counted, cut
from comity.core.session.memory import Memory

EMPTY = "remembers nothing of any user yet. `new_facts` of an agent's reply, and `ctx.memory.learn`, are remembered."


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    what = "the people of whom something is remembered"
    verbs.add_parser("list", help=what, description=what)
    for verb, what in (
        ("show", "what is remembered of a person, personal data hidden"),
        ("correct", "put a fact right; no agent changes it any more"),
        ("forget", "forget one fact"),
        ("erase", "forget everything about a person, for good"),
    ):
        one = verbs.add_parser(verb, help=what, description=what)
        one.add_argument("user_id", metavar="USER_ID")
        one.add_argument("--tenant", metavar="ID", type=a_name, default="default", help="the tenant of the person (default)")
        if verb in {"correct", "forget"}:
            one.add_argument("fact_id", metavar="FACT_ID", help="as `comity memory show` prints it, such as m3")
        if verb == "show":
            one.add_argument("--clear", action="store_true", help="personal data in clear")
        if verb == "correct":
            one.add_argument("text", metavar="TEXT", help="what is true instead, best as 'key: value'")
            one.add_argument("--by", metavar="NAME", default=None, help="who says so (you)")
        if verb == "erase":
            one.add_argument("--everything", action="store_true", help="every session, call, reply and span of the person too")
            one.add_argument("--yes", action="store_true", help="do not ask")


def run(args: argparse.Namespace, out: Output) -> Exit:
    """Run one verb."""
    if args.verb == "list":
        return _list(args, out)
    with Store(Path(args.store)) as store:  # there is a store, and it is one of ours; nothing is made by looking
        is_known = any((tenant, user) == (args.tenant, args.user_id) for tenant, user, _ in store.memories())
        memory = store.memory(args.tenant, args.user_id) if args.verb == "show" else Memory()
    if args.verb == "erase":
        if not args.yes:
            raise CliError(Exit.USAGE, "erasing cannot be undone", hint="The same command with --yes does it.")
        return awaited(_erase(args, out))
    if not is_known:
        store.check_whole()
        hint = "`comity memory list` lists the people of whom something is remembered."
        raise CliError(Exit.NOT_FOUND, f"nothing is remembered of {args.user_id!r}", hint=hint)
    return _show(args, out, memory) if args.verb == "show" else awaited(_change(args, out))


def _list(args: argparse.Namespace, out: Output) -> Exit:
    with Store(Path(args.store)) as store, out.busy("reading the store"):
        people: list[dict[str, Any]] = [
            {
                "user_id": user,
                "tenant_id": tenant,
                "facts": len(one.facts),
                "dropped": one.dropped,
                "learnt_at": max((fact.at_ms for fact in one.facts), default=0),
            }
            for tenant, user, one in store.memories()
        ]
    if out.is_json:
        out.document({"store": str(store.path), "people": people})
    elif not people:
        out.hint(f"The store {store.path} {EMPTY}", style="")
    else:
        table = Listing("user", "tenant", "facts", "dropped", "latest", whole={"user", "latest"}, right={"facts", "dropped"})
        for one in people:
            latest = when(one["learnt_at"]) if one["learnt_at"] else "-"
            table.add(*(str(one[key]) for key in ("user_id", "tenant_id", "facts", "dropped")), latest)
        table.show(out)
    store.check_whole()
    return Exit.OK


def _show(args: argparse.Namespace, out: Output, memory: Memory) -> Exit:
    from comity.core.redaction import Vault, redact_text

    vault = Vault("shownhere")  # the values of these tokens are not kept
    facts: list[dict[str, Any]] = []
    for one in memory.facts:
        text = one.text if args.clear else redact_text(one.text, vault).text
        facts.append(msgspec.to_builtins(one) | {"text": text, "is_corrected": one.is_corrected})
    if out.is_json:
        out.document({"user_id": args.user_id, "tenant_id": args.tenant, "facts": facts, "dropped": memory.dropped})
        return Exit.OK
    for fact in facts:
        who = f"corrected by {fact['source']}" if fact["is_corrected"] else f"source {fact['source']}"
        out.text(cut(f"{fact['id']:<5} {fact['text']}"))
        out.text(f"      {who}, confidence {fact['confidence']:g}, {when(fact['at_ms'])}", style="dim")
    if memory.dropped:
        out.hint(f"{counted(memory.dropped, 'fact')} had to go for want of room.", style="")
    return Exit.OK


async def _change(args: argparse.Namespace, out: Output) -> Exit:
    from comity import Node
    from comity.cli.ui import app

    async with app.open_node(Node(), args.store) as node:
        memory = node.memory(args.user_id, tenant_id=args.tenant)
        if args.verb == "correct":
            is_done = await memory.correct(args.fact_id, args.text, by=args.by or getpass.getuser()) is not None
        else:
            is_done = await memory.forget(args.fact_id)
    if not is_done:
        hint = "`comity memory show USER_ID` lists the facts with their ids."
        raise CliError(Exit.NOT_FOUND, f"no fact {args.fact_id!r} of {args.user_id!r}", hint=hint)
    if out.is_json:
        out.document({"user_id": args.user_id, "fact_id": args.fact_id, args.verb: True})
    else:
        out.text(f"Fact {args.fact_id} of {args.user_id} is {'corrected' if args.verb == 'correct' else 'forgotten'}.")
    return Exit.OK


async def _erase(args: argparse.Namespace, out: Output) -> Exit:
    """Erase without a node, which would need the key: what is hidden under a lost key can be erased too."""
    from comity.cli.erasing import erase

    gone, verdict = await erase(args.store, args.tenant, user_id=args.user_id, has_sessions=args.everything)
    if out.is_json:
        out.document({"user_id": args.user_id, "erased": gone, "audit_ok": verdict.ok})
    elif gone:
        what = "everything of" if args.everything else "what was remembered of"
        whole = f"The audit of {verdict.rows} rows is whole." if verdict.ok else f"The audit is damaged: {verdict.reason}."
        out.text(f"Erased {what} {args.user_id}, {counted(gone, 'record')}. {whole}")
    else:
        out.text(f"The store has nothing of {args.user_id}.")
    if not verdict.ok:
        return Exit.DAMAGED
    return Exit.OK if gone else Exit.NOT_FOUND
