"""`comity sessions`: what the store remembers of people's sessions; show, wake, export or erase one."""

from __future__ import annotations

import argparse
import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from comity.cli.commands.calls import when
from comity.cli.reader import Store
from comity.cli.ui.arguments import a_name, at_least_one
from comity.cli.ui.exits import CliError, Exit, awaited
from comity.cli.ui.ids import find
from comity.cli.ui.listing import Listing
from comity.cli.ui.output import Output, cut
from comity.core.handoff.holder import result_session
from comity.core.journal.records import StoredCall
from comity.core.session import session as core
from comity.core.session.session import Session
from comity.core.units import NS_PER_MS

if TYPE_CHECKING:  # what takes long to load is loaded by the verbs that need it
    from comity import Reply, Request

LISTED: Final = 20
EMPTY = "remembers no session yet. A call that names a session_id makes one."


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    listing = verbs.add_parser("list", help="the sessions, latest used first", description="List sessions, latest used first.")
    listing.add_argument(
        "--limit", metavar="N", type=at_least_one, default=LISTED, help=f"how many, latest used first ({LISTED})"
    )
    for verb, what in (
        ("show", "what is known in a session"),
        ("resume", "wake a session that has expired"),
        ("export", "everything the store has of a session, as JSON, personal data in clear"),
        ("erase", "remove everything a person said or was told; the audit stays whole"),
    ):
        one = verbs.add_parser(verb, help=what, description=what)
        one.add_argument("session_id", metavar="SESSION_ID")
        one.add_argument("--tenant", metavar="ID", type=a_name, default="default", help="the tenant of the session (default)")
        if verb == "erase":
            one.add_argument("--yes", action="store_true", help="do not ask")


def run(args: argparse.Namespace, out: Output) -> Exit:
    """Run one verb."""
    if args.verb == "list":
        return _list(args, out)
    with Store(Path(args.store)) as store:  # there is a store, and it is one of ours; nothing is made by looking
        found = store.session(args.tenant, args.session_id)
        if found is None and args.verb != "erase":  # what is erased is named whole
            whole = find(args.session_id, (one.id for one in store.sessions() if one.tenant_id == args.tenant), what="session")
            found = None if whole is None else store.session(args.tenant, whole)
            args.session_id = whole or args.session_id
        owner = found.user_id if found is not None else _caller(store, args.session_id) if args.verb == "erase" else ""
    if args.verb == "erase":
        if not args.yes:
            hint = f"`comity sessions erase {args.session_id} --yes` does it."
            raise CliError(Exit.USAGE, "erasing cannot be undone", hint=hint)
        return awaited(_erase(args, out, owner))
    if found is None:
        store.check_whole()
        raise CliError(Exit.NOT_FOUND, f"no session {args.session_id!r}", hint="`comity sessions list` lists them.")
    if args.verb == "show":
        return _show(out, found)
    return _export(args, out, found) if args.verb == "export" else awaited(_resume(args, out))


def _caller(store: Store, session_id: str) -> str:
    """Return whose call a session is that no call named; empty if the store does not say."""
    with contextlib.suppress(CliError):  # it cannot be read, and is erased all the same
        call = store.call(session_id)
        return "" if call is None else call.user_id
    return ""


def _list(args: argparse.Namespace, out: Output) -> Exit:
    with Store(Path(args.store)) as store, out.busy("reading the store"):
        sessions = store.sessions(args.limit)
        has_more = len(sessions) == args.limit and store.session_count() > args.limit
    now_ms = _now_ms()
    if out.is_json:
        lines = [_line(one, now_ms) for one in sessions]
        out.document({"store": str(store.path), "sessions": lines, "has_more": has_more})
    elif not sessions:
        out.hint(f"The store {store.path} {EMPTY}", style="")
    else:
        titles = ("session", "tenant", "user", "status", "last used", "facts", "turns")
        table = Listing(*titles, whole={"session", "last used"}, right={"facts", "turns"})
        for one in sessions:
            line = _line(one, now_ms)
            table.add(
                *(str(line[key]) for key in ("id", "tenant_id", "user_id", "status")),
                when(one.used_at),
                str(line["facts"]),
                str(line["turns"]),
            )
        table.show(out)
        if has_more:
            out.hint(f"\nThe {len(sessions)} latest used. `comity sessions list --limit {10 * args.limit}` shows more.")
    store.check_whole()
    return Exit.OK


def _show(out: Output, session: Session) -> Exit:
    known = _content(session)
    if out.is_json:
        out.document(_line(session, _now_ms()) | known)
        return Exit.OK
    line = _line(session, _now_ms())
    out.text(f"{session.id}  {line['status']}  user {session.user_id}  used {when(session.used_at)}  version {session.version}")
    for name, value in known.items():
        if value:
            out.text(f"\n{name.replace('_', ' ')}", style="bold")
            for item in _items(value):
                out.text(cut(f"  {item}"))
    if not any(known.values()):
        out.hint("\nNothing is known in it yet: an agent notes facts with `ctx.session.learn`.", style="")
    return Exit.OK


def _items(value: Any) -> list[str]:
    """Return the lines of one part of a session: an entry of an object, an item of a list, or the one text."""
    if isinstance(value, dict):
        return [f"{key}: {one}" for key, one in value.items()]
    return [str(one) for one in value] if isinstance(value, (list, tuple)) else [str(value)]


async def _resume(args: argparse.Namespace, out: Output) -> Exit:
    from comity import Node
    from comity.cli.ui import app

    async with app.open_node(Node(), args.store) as node:
        node.resume_session(args.session_id, tenant_id=args.tenant)
        session = node.session(args.session_id, tenant_id=args.tenant)
    assert session is not None
    if out.is_json:
        out.document(_line(session, _now_ms()))
    else:
        out.text(f"Session {session.id} is active again.")
    return Exit.OK


def _export(args: argparse.Namespace, out: Output, session: Session) -> Exit:
    from comity.runtime.session.clear import in_clear

    of_whom = (args.tenant, args.session_id)
    with Store(Path(args.store)) as store, out.busy("reading the store"):
        vault = store.vault(*of_whom)
        handed_off = []
        for one in store.handoffs_of(*of_whom):
            plain = _call(one.request, one.request, one.reply) | {"state": str(one.state)}
            # What came back has a vault of its own.
            handed_off.append(in_clear(plain, store.vault(args.tenant, result_session(one.id))))
        more = {
            "calls": [_call(one, one.request, one.reply) for one in store.calls_of(*of_whom)],
            "handoffs": handed_off,
            "approvals": [msgspec.to_builtins(one) for one in store.approvals() if (one.tenant_id, one.session_id) == of_whom],
        }
    out.document(in_clear(msgspec.to_builtins(session) | more, vault))
    store.check_whole()
    return Exit.OK


def _call(what: StoredCall | Request, request: Request | None, reply: Reply | None) -> dict[str, Any]:
    """Return what is kept of a call: the inputs until it has ended, for a handoff longer; the reply from then on."""
    from comity.cli.ui.reply import document

    return {
        "request_id": what.request_id,
        "parent_id": what.parent_id,
        "target": what.target,
        "capability": what.capability,
        "objective": what.objective,
        "created_at": what.created_at,
        "inputs": None if request is None else request.inputs,
        "message": None if request is None else request.message,
        "reply": None if reply is None else document(reply),
    }


async def _erase(args: argparse.Namespace, out: Output, user_id: str) -> Exit:
    """Erase without a node, which would need the key: what is hidden under a lost key can be erased too."""
    from comity.cli.erasing import erase

    gone, verdict = await erase(args.store, args.tenant, user_id=user_id, session_id=args.session_id)
    if out.is_json:
        out.document({"session_id": args.session_id, "erased": gone, "audit_ok": verdict.ok})
    elif not verdict.ok:
        out.text(f"Erased {gone} records of session {args.session_id}. The audit is damaged: {verdict.reason}.")
    elif gone:
        out.text(f"Erased {gone} records of session {args.session_id}. The audit of {verdict.rows} rows is whole.")
    else:
        out.text(f"The store has nothing of session {args.session_id}.")
    if not verdict.ok:
        return Exit.DAMAGED
    return Exit.OK if gone else Exit.NOT_FOUND


def _line(session: Session, now_ms: int) -> dict[str, Any]:
    return {
        "id": session.id,
        "tenant_id": session.tenant_id,
        "user_id": session.user_id,
        "status": str(core.status(session, now_ms)),
        "used_at": session.used_at,
        "version": session.version,
        "facts": len(session.facts),
        "turns": len(session.turns),
    }


def _content(session: Session) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(session)
    return {
        "original_request": plain["original_request"],
        "facts": {key: fact["value"] for key, fact in plain["facts"].items()},
        "decisions": plain["decisions"],
        "constraints": plain["constraints"],
        "assumptions": plain["assumptions"],
        "workflow_position": plain["workflow_position"],
        "prior_agents": plain["prior_agents"],
        "prior_outputs": plain["prior_outputs"],
        "conversation": [f"{turn['role']}: {turn['text']}" for turn in plain["turns"]],
    }


def _now_ms() -> int:
    return time.time_ns() // NS_PER_MS
