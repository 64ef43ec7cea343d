"""`comity audit`: the rows of the audit trail, and whether their chain is whole."""

from __future__ import annotations

import argparse
from pathlib import Path

from comity.cli.commands.calls import EMPTY, when
from comity.cli.reader import Store
from comity.cli.ui.arguments import at_least_one
from comity.cli.ui.exits import CliError, Exit
from comity.cli.ui.ids import find, short
from comity.cli.ui.listing import Listing
from comity.cli.ui.output import Output, clean
from comity.cli.ui.tree import STYLES, called
from comity.core.journal.audit import Row, Verdict


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    listing = actions.add_parser("list", help="show the newest rows", description="Show the newest audit rows, oldest first.")
    listing.add_argument("--limit", metavar="N", type=at_least_one, default=50, help="how many of the newest (50)")
    listing.add_argument("--root", metavar="REQUEST_ID", help="only rows of this call tree")
    actions.add_parser("verify", help="check the whole chain", description="Check the whole chain and name the first bad row.")


def run(args: argparse.Namespace, out: Output) -> Exit:
    """List or verify."""
    with Store(Path(args.store)) as store:
        return _verify(store, out) if args.action == "verify" else _list(store, args, out)


def _list(store: Store, args: argparse.Namespace, out: Output) -> Exit:
    with out.busy("reading the audit"):
        rows = store.newest_rows(args.limit) if args.root is None else _tree_rows(store, args.root)[-args.limit :]
    if args.root is not None and not rows:
        hint = "`comity calls` lists the calls."
        raise CliError(Exit.NOT_FOUND, f"the store {store.path} has no call tree {args.root!r}", hint=hint)
    if out.is_json:
        out.document({"store": str(store.path), "rows": [row._asdict() for row in rows]})
    elif not rows:
        out.hint(f"The store {store.path} {EMPTY}", style="")
    else:
        _show(rows, out)
    return Exit.OK


def _tree_rows(store: Store, root_id: str) -> list[Row]:
    rows = store.rows(root_id=root_id)
    if not rows and (whole := find(root_id, store.recent_ids(), what="call")) is not None:
        rows = store.rows(root_id=whole)
    return rows


def _verify(store: Store, out: Output) -> Exit:
    with out.busy(f"checking {store.head_id():,} rows"):
        verdict = store.verify()
    if out.is_json:
        out.document({"store": str(store.path), **verdict._asdict()})
    elif verdict.ok:
        out.text(f"The audit of {store.path} is whole: {verdict.rows:,} rows, each bound to the one before.", style="green")
        if verdict.reason:
            out.text(f"Not checked: {verdict.reason}.", style="yellow")
    else:
        _show_damage(store, verdict, out)
    return Exit.OK if verdict.ok else Exit.DAMAGED


def _show_damage(store: Store, verdict: Verdict, out: Output) -> None:
    out.text(f"The audit of {store.path} is damaged: {verdict.reason}.", style="bold red")
    out.text(f"The first {verdict.rows:,} rows fit together. Keep the file as it is, and compare it with a backup.")


def _show(rows: list[Row], out: Output) -> None:
    from rich.text import Text

    table = Listing("row", "when", "kind", "id", "call", whole={"row", "when", "kind", "id"}, right={"row"})
    for row in rows:
        call = Text(clean(f"{row.origin or 'user'} → {called(row.target, row.capability)}"))
        # A refused row says so in its kind; the other outcomes are worth a word.
        words = (row.error_code,) if row.kind == "refused" else (row.status, row.error_code)
        call.append("".join(f" {clean(word)}" for word in words if word), STYLES.get(row.status or "", ""))
        table.add(str(row.id), when(row.created_at), row.kind, short(row.request_id), call)
    table.show(out)
