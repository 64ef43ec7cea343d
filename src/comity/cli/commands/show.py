"""`comity show`: one call tree with its timing and refusals, drawn."""

from __future__ import annotations

import argparse
from pathlib import Path

from comity.cli.commands.calls import EMPTY, when
from comity.cli.reader import Store
from comity.cli.ui.exits import CliError, Exit
from comity.cli.ui.hints import ask_for
from comity.cli.ui.ids import find, short
from comity.cli.ui.output import Output
from comity.cli.ui.tree import CallTree


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("request_id", metavar="REQUEST_ID", help="of any call in the tree; `last` is the newest call by a user")


def run(args: argparse.Namespace, out: Output) -> Exit:
    """Draw the tree."""
    with Store(Path(args.store)) as store, out.busy("reading the store"):
        root_id = _find(store, args.request_id)
        rows = store.rows(root_id=root_id)
        tree = CallTree.of_rows(rows)
        abandoned = store.abandoned()
        approvals = store.approvals() if any(row.kind == "paused" for row in rows) else []
        for root in tree.roots:
            for _, branch in root.walk():
                branch.is_abandoned = branch.status == "open" and branch.request_id in abandoned
                stored = store.call(branch.request_id)
                if stored is not None and stored.reply is not None and branch.status == stored.reply.status:
                    reply = stored.reply
                    branch.degraded, branch.thought = reply.degraded, reply.thought
                    told = reply.warnings if reply.error is None else (reply.error.message,)
                    notes = [note for note in (*told, branch.noted) if note]
                    branch.note = "; ".join([*(note.removesuffix(".") for note in notes[:-1]), *notes[-1:]])
    first = rows[0]
    if out.is_json:
        calls = [root.document() for root in tree.roots]
        out.document({"store": str(store.path), "root_id": root_id, "user_id": first.user_id, "calls": calls})
        return Exit.OK
    out.text(f"{when(first.created_at)}  {root_id}  user {first.user_id}", style="dim")
    waiting = [one.id for one in approvals if one.root_id == root_id and one.granted is None]
    out.text(tree.draw(marked=None if args.request_id == "last" else args.request_id))
    for approval_id in waiting:
        out.hint(f"\n{ask_for(approval_id)}", style="", is_copied=True)
    return Exit.OK


def _find(store: Store, request_id: str) -> str:
    if request_id == "last" and store.call(request_id) is None:
        newest = store.calls(1)
        if not newest:
            raise CliError(Exit.NOT_FOUND, f"the store {store.path} {EMPTY}")
        return newest[0].root_id
    root_id = store.root_of(request_id)
    if root_id is None and (whole := find(request_id, store.recent_ids(), what="call")) is not None:
        root_id = store.root_of(whole)
    if root_id is not None:
        return root_id
    newest = store.calls(3)
    if not newest:
        raise CliError(Exit.NOT_FOUND, f"the store {store.path} {EMPTY}")
    known = ", ".join(short(row.request_id) for row in newest)
    raise CliError(
        Exit.NOT_FOUND,
        f"the store {store.path} has no call {request_id!r}",
        hint=f"The newest are {known}. `comity calls` lists more.",
    )
