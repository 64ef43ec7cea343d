"""`comity store`: what a store holds and how it grows; remove what is old, give room back, make a backup."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from comity.cli.commands.calls import when
from comity.cli.reader import Store, spans_beside
from comity.cli.ui.arguments import a_name
from comity.cli.ui.exits import CliError, Exit
from comity.cli.ui.listing import Listing
from comity.cli.ui.output import Output, counted
from comity.core.units import NS_PER_MS

if TYPE_CHECKING:
    from comity.core.journal.audit import Verdict
    from comity.core.journal.retention import Keep, Pruned, Retention

KINDS: Final = ("calls", "replies", "sessions", "handoffs", "spans", "audit")
_AGE: Final = re.compile(r"(\d+)([dhms])")
_UNITS: Final = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_KEEP: Final = "30d (age in d, h, m or s), 100000 (how many of the newest), or both: 30d,100000"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    what = "what the store holds: rows, bytes, the last day's growth, the oldest"
    verbs.add_parser("stats", help=what, description=what)
    what = "remove what is older or more than is to be kept"
    more = f"{what}. What is still needed stays. KEEP is {_KEEP}."
    prune = verbs.add_parser("prune", help=what, description=more)
    for kind in KINDS:
        prune.add_argument(f"--{kind}", metavar="KEEP", type=_keep, default=None, help=f"how long or how many {_NAMES[kind]}")
    prune.add_argument("--dry-run", action="store_true", help="only say what would go")
    prune.add_argument("--yes", action="store_true", help="remove it")
    what = "give the room of what was removed back to the disk"
    verbs.add_parser("compact", help=what, description=what)
    what = "copy the store and its spans while nodes use them, and check the copy"
    backup = verbs.add_parser("backup", help=what, description=what)
    backup.add_argument("file", metavar="FILE", type=a_name, help="the new file; its spans go to FILE.spans")
    what = "bring a store of an earlier version to this one, keeping a copy"
    verbs.add_parser("upgrade", help=what, description=what)


_NAMES: Final = {
    "calls": "calls, with all below them",
    "replies": "replies, of which only the outcome stays",
    "sessions": "sessions, by their last use",
    "handoffs": "handoffs that have ended",
    "spans": "spans and insights",
    "audit": "audit rows, cut at a sealed checkpoint",
}


def _keep(text: str) -> Keep:
    from comity.core.journal.retention import Keep

    age: timedelta | None = None
    count: int | None = None
    for part in text.split(","):
        found = _AGE.fullmatch(part.strip())
        if found is not None and age is None:
            age = timedelta(**{_UNITS[found[2]]: int(found[1])})
        elif part.strip().isdecimal() and count is None:
            count = int(part)
        else:
            raise argparse.ArgumentTypeError(f"must be {_KEEP}, not {text!r}")
    return Keep(age=age, count=count)


def run(args: argparse.Namespace, out: Output) -> Exit:
    """Run one verb."""
    verbs = {"stats": _stats, "prune": _prune, "compact": _compact, "backup": _backup, "upgrade": _upgrade}
    try:
        return verbs[args.verb](args, out)
    except sqlite3.Error as error:
        raise CliError(Exit.DAMAGED, f"the store {args.store}: {error}") from None


# --- stats ---


def _stats(args: argparse.Namespace, out: Output) -> Exit:
    from comity.engines.sqlite.care import measure

    with Store(Path(args.store)) as store, out.busy("looking at the store"):
        kinds, files = store.measured(measure, time.time_ns() // NS_PER_MS)
    if out.is_json:
        from msgspec import to_builtins

        out.document({"store": str(store.path), "kinds": to_builtins(kinds), "files": to_builtins(files)})
        return Exit.OK
    table = Listing("kind", "rows", "about", "last day", "oldest", whole={"rows", "about"}, right={"rows", "about", "last day"})
    for kind in kinds:
        oldest = "" if kind.oldest_at is None else when(kind.oldest_at)
        table.add(kind.name, f"{kind.rows:,}", size(kind.bytes), f"+{kind.last_day:,}", oldest)
    table.show(out)
    out.text("")
    for file in files:
        out.text(f"{file.path}: {size(file.bytes)}, of which {size(file.free_bytes)} are free for what comes", is_copied=True)
    if any(file.free_bytes > file.bytes // 4 for file in files):
        out.hint("\n`comity store compact` gives free room back to the disk.")
    elif not any(kind.rows for kind in kinds):
        out.hint("\nThe store holds nothing yet. `comity demo` and `comity call` make calls.")
    return Exit.OK


def size(count: int) -> str:
    """Return a number of bytes for people."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:,.0f} {unit}"
        count /= 1024  # type: ignore[assignment]
    return f"{count:,.1f} GiB"


# --- prune ---


def _prune(args: argparse.Namespace, out: Output) -> Exit:
    from comity.core.agent.declaration import DeclarationError
    from comity.core.journal.retention import Retention
    from comity.engines.cipher import audit_key

    given = {kind: getattr(args, kind) for kind in KINDS if getattr(args, kind) is not None}
    if not given:
        hint = "`comity store prune --calls 30d --dry-run` says what would go."
        raise CliError(Exit.USAGE, f"nothing is said to go: name what to keep with {_options()}", hint=hint)
    try:
        retention = Retention(**given)
    except DeclarationError as error:
        raise CliError(Exit.USAGE, str(error).replace("retention.", "--")) from None
    if args.dry_run == args.yes:
        hint = "--dry-run says what would go, --yes removes it."
        raise CliError(Exit.USAGE, "removing cannot be undone", hint=hint)
    with Store(Path(args.store)) as store:
        path, may_make = store.path, not args.dry_run and not store.vaults()
    removed, problem = _swept(args, out, audit_key(path, may_make=may_make), retention)
    if out.is_json:
        counts = {kind: getattr(removed, kind) for kind in KINDS}
        out.document({"store": str(path), "dry_run": args.dry_run, "removed": counts, "problem": problem or None})
    else:
        _show_removed(out, removed, args)
        if problem:
            out.text(problem, style="bold red")
    return Exit.DAMAGED if problem else Exit.OK


def _options() -> str:
    return ", ".join(f"--{kind}" for kind in KINDS[:-1]) + f" or --{KINDS[-1]}"


def _swept(args: argparse.Namespace, out: Output, key: bytes | None, retention: Retention) -> tuple[Pruned, str]:
    """Remove what goes, or only count it; return how much, and why the audit could not be cut."""
    from comity.core.journal.retention import Pruned
    from comity.engines.sqlite.retention import Pruner
    from comity.engines.sqlite.spans.retention import dry_sweep
    from comity.engines.sqlite.spans.store import SpanStore

    now_ms = time.time_ns() // NS_PER_MS
    removed = Pruned()
    pruner = Pruner(key, is_dry=args.dry_run)
    with contextlib.ExitStack() as opened, out.progress("looking for what is kept no longer") as show:
        connection = opened.enter_context(_connection(args, Path(args.store)))
        sweeps = [pruner.sweep(connection, retention, now_ms)]
        spans = spans_beside(args.store)
        if retention.spans.is_bounded and spans.is_file():
            if args.dry_run:
                sweeps.append(dry_sweep(spans, retention.spans, now_ms))
            else:
                store = opened.enter_context(SpanStore(spans))
                while store.sort_in():
                    show("sorting spans in")
                sweeps.append(store.prune(retention.spans, now_ms))
        for sweep in sweeps:
            for slice_ in sweep:
                removed += slice_
                show(f"{removed.total:,} {'would go' if args.dry_run else 'removed'}")
    return removed, pruner.problem


@contextlib.contextmanager
def _connection(args: argparse.Namespace, path: Path) -> Iterator[sqlite3.Connection]:
    """Open the store: to look at it, or to change it as a node would, so that other nodes notice."""
    if args.dry_run:
        with Store(path) as store:
            yield store.connection
        return
    import asyncio

    from comity.engines.sqlite.connecting import connect

    asyncio.run(_call_on(path))
    with contextlib.closing(connect(path)) as connection:
        yield connection


async def _call_on(path: Path) -> None:
    """Let the nodes that have the store open read what they keep in memory again from now on."""
    from comity.engines.clock import SystemIds
    from comity.engines.sqlite.engine import visiting

    async with visiting(path, SystemIds().span_id()):
        pass


def _show_removed(out: Output, removed: Pruned, args: argparse.Namespace) -> None:
    parts = [counted(getattr(removed, kind), _ONE[kind]) for kind in KINDS if getattr(removed, kind)]
    if not parts:
        out.text("Nothing is older or more than is to be kept.")
    elif args.dry_run:
        out.text(f"Would go: {', '.join(parts)}.")
        out.hint("The same with --yes instead of --dry-run removes them.")
    else:
        out.text(f"Removed {', '.join(parts)}.")
        out.hint("The room is used for what comes. `comity store compact` gives it back to the disk.")


_ONE: Final = {
    "calls": "call",
    "replies": "replies' content",
    "sessions": "session",
    "handoffs": "handoff",
    "spans": "span",
    "audit": "audit row",
}


# --- compact, backup, upgrade ---


def _compact(args: argparse.Namespace, out: Output) -> Exit:
    from comity.engines.sqlite.care import compact

    with Store(Path(args.store)) as store:
        path = store.path
    told: list[dict[str, Any]] = []
    for file in (path, spans_beside(args.store)):
        if not file.is_file():
            continue
        with out.progress(f"compacting {file}") as show:
            for before, after in compact(file, path):
                show(f"{file}: {size(before - after)} given back")
        told.append({"path": str(file), "bytes_before": before, "bytes": after})
    if out.is_json:
        out.document({"files": told})
        return Exit.OK
    for one in told:
        back = one["bytes_before"] - one["bytes"]
        what = f"{size(back)} given back to the disk" if back > 0 else "nothing to give back"
        out.text(f"{one['path']}: {what}, {size(one['bytes'])} left", is_copied=True)
    return Exit.OK


def _backup(args: argparse.Namespace, out: Output) -> Exit:
    from comity.engines.cipher import audit_key, key_place
    from comity.engines.sqlite.connecting import connect_anywhere
    from comity.engines.sqlite.schema import copy
    from comity.engines.sqlite.spans.inbox import overview
    from comity.engines.sqlite.spans.path import spans_path

    with Store(Path(args.store)) as store:
        path = store.path
    target = Path(args.file)
    pairs = [(one, new) for one, new in ((path, target), (spans_path(path), spans_path(target))) if one.is_file()]
    for _, new in pairs:
        if new.exists():
            raise CliError(Exit.USAGE, f"{new} exists already, and a backup replaces nothing", hint="Name another file.")
    try:
        for one, new in pairs:
            with contextlib.closing(connect_anywhere(one)) as source, out.progress(f"copying {one}") as show:
                copy(source, new, lambda left, pages, one=one: show(f"copying {one}: {_part(left, pages)}"))  # type: ignore[misc]
        with Store(target) as copied, out.busy("checking the copy"):
            verdict = copied.verify(key=audit_key(path))
        spans = sum(overview(spans_path(target))[:2]) if len(pairs) > 1 else 0
    except OSError as error:
        raise CliError(Exit.NO_RESULT, f"no backup was made: {error}") from None
    key = key_place(path)
    if out.is_json:
        files = [{"path": str(new), "bytes": new.stat().st_size} for _, new in pairs]
        out.document({"files": files, "spans": spans, "audit": verdict._asdict(), "key": key, "has_key": False})
    else:
        _show_backup(out, [new for _, new in pairs], verdict, spans, key)
    return Exit.OK if verdict.ok else Exit.DAMAGED


def _part(left: int, pages: int) -> str:
    return f"{100 * (pages - left) // max(pages, 1)} %"


def _show_backup(out: Output, files: list[Path], verdict: Verdict, spans: int, key: str) -> None:
    for file in files:
        out.text(f"{file}: {size(file.stat().st_size)}", is_copied=True)
    if verdict.ok:
        out.text(
            f"The copy opens: {counted(verdict.rows, 'audit row')}, chain whole, and {counted(spans, 'span')}.", style="green"
        )
    else:
        out.text(f"The copy opens, but its audit is damaged, as that of the store is: {verdict.reason}.", style="bold red")
    name = "" if os.environ.get("COMITY_VAULT_KEY") else f" as {files[0]}.key beside the copy"
    out.text(f"Not in it: {key}. Without it nothing that is hidden can be read; keep it elsewhere, and put it back{name}.")


def _upgrade(args: argparse.Namespace, out: Output) -> Exit:
    from comity.engines.sqlite import tables
    from comity.engines.sqlite.connecting import connect
    from comity.engines.sqlite.spans.store import SpanStore

    with Store(Path(args.store)) as store:
        path, before = store.path, store.version
    with out.busy("bringing the store forward"), contextlib.closing(connect(path)) as connection:
        tables.prepare(connection)
        spans = spans_beside(args.store)
        if spans.is_file():
            SpanStore(spans).close()
    if out.is_json:
        out.document({"store": str(path), "version_before": before, "version": tables.SCHEMA.version})
    elif before == tables.SCHEMA.version:
        out.text(f"The store {path} has version {before} already, the newest that this Comity knows.")
    else:
        out.text(f"The store {path} had version {before} and has version {tables.SCHEMA.version} now.")
    return Exit.OK
