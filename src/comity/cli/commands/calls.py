"""`comity calls`: the newest calls by users that a store knows."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from comity.cli.reader import Store
from comity.cli.ui.arguments import at_least_one
from comity.cli.ui.exits import Exit
from comity.cli.ui.ids import short
from comity.cli.ui.listing import Listing
from comity.cli.ui.output import Output, clean
from comity.cli.ui.tree import ABANDONED, STYLES, called
from comity.core.journal.audit import Row
from comity.core.units import MS_PER_S

EMPTY = "has no calls yet. `comity demo` makes some, and so does `comity call AGENT CAPABILITY`."


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--limit", metavar="N", type=at_least_one, default=20, help="how many, newest first (20)")


def run(args: argparse.Namespace, out: Output) -> Exit:
    """List the calls."""
    with Store(Path(args.store)) as store, out.busy("reading the store"):
        rows = store.calls(args.limit)
        abandoned = store.abandoned()
    if out.is_json:
        out.document(
            {"store": str(store.path), "calls": [_document(row) | {"abandoned": _is_in(row, abandoned)} for row in rows]}
        )
    elif not rows:
        out.hint(f"The store {store.path} {EMPTY}", style="")
    else:
        _show(rows, abandoned, out)
        out.hint("\n`comity show ID` draws one; `comity show last` the newest.")
    return Exit.OK


def when(at_ms: float) -> str:
    """Return a moment as local time, without the date if that is today."""
    moment = datetime.fromtimestamp(at_ms / MS_PER_S, tz=UTC).astimezone()
    is_today = moment.date() == datetime.now(tz=UTC).astimezone().date()
    return moment.strftime("%H:%M:%S" if is_today else "%Y-%m-%d %H:%M:%S")


def _document(row: Row) -> dict[str, Any]:
    return {
        "request_id": row.request_id,
        "target": row.target,
        "capability": row.capability,
        "user_id": row.user_id,
        "status": row.status or "open",
        "error_code": row.error_code,
        "started_at": _started_at(row),
        "duration_ms": row.duration_ms,
        "tokens": row.tokens,
    }


def _started_at(row: Row) -> int:
    return row.created_at - int(row.duration_ms or 0)


def _is_in(row: Row, abandoned: set[str]) -> bool:
    return row.status is None and row.request_id in abandoned  # a refusal under its id is another call


def _show(rows: list[Row], abandoned: set[str], out: Output) -> None:
    from rich.text import Text

    table = Listing("when", "id", "status", "ms", "call", whole={"when", "id", "status", "ms"}, right={"ms"})
    for row in rows:
        status = row.status or "open"
        style = STYLES.get(status, "")
        if _is_in(row, abandoned):
            status, style = f"{status} ({ABANDONED})", "yellow"
        call = Text(clean(called(row.target, row.capability)))
        if row.error_code is not None:
            call.append(f" {clean(row.error_code)}", "red")
        table.add(
            when(_started_at(row)),
            short(row.request_id),
            Text(status, style),
            "" if row.duration_ms is None or row.kind == "refused" else f"{row.duration_ms:,.1f}",
            call,
        )
    table.show(out)
