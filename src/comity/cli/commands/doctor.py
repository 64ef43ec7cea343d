"""`comity doctor`: whether this machine, this store and these agents are fit to work."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

from comity import __version__
from comity.cli.commands.calls import when
from comity.cli.reader import Store, spans_beside
from comity.cli.ui.checks import Check
from comity.cli.ui.exits import CliError, Exit
from comity.cli.ui.hints import NO_APP
from comity.cli.ui.output import Output, clean, counted
from comity.core.units import MS_PER_S
from comity.engines.sqlite.connecting import connect
from comity.engines.sqlite.file import unwritable
from comity.errors import CallerError, ComityError, UnavailableError

# The store uses RETURNING, which SQLite has since this version.
SQLITE_LEAST: Final = (3, 35, 0)
DISK_BYTES_LEAST: Final = 500 * 1024 * 1024
FSYNC_MS_MOST: Final = 50.0
_FSYNC_TRIES: Final = 5
_PACKAGES: Final = ("msgspec", "pydantic", "pydantic-core", "jsonschema-rs", "PyYAML", "rich")
_NAMED_MAX: Final = 5
GUIDANCE_FOLDER: Final = ".comity"  # as `engines.files.guidance` has it, which takes long to load
# How many of the newest audit rows are checked; `comity audit verify` checks them all.
CHECKED_ROWS: Final = 2_000
COUNTED_SPANS: Final = 100_000  # at most
_FULL: Final = 2  # what `PRAGMA synchronous` says for FULL


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare no arguments but those of every command."""


def run(args: argparse.Namespace, out: Output) -> Exit:
    """Run every check and show what was found."""
    with out.busy("checking"):
        store = Path(args.store)
        checks = [*_machine(), *_disk(_directory(store)), *_store(store), *_spans(args.store), *_app(args), *_guidance()]
    code = max((check.code for check in checks), default=Exit.OK)
    if out.is_json:
        found = [{"name": check.name, "level": check.level, "detail": check.detail} for check in checks]
        out.document({"ok": code is Exit.OK, "checks": found, "exit_code": int(code)})
        return code
    _show(checks, out)
    return code


def _show(checks: list[Check], out: Output) -> None:
    from rich.table import Table
    from rich.text import Text

    styles = {"ok": "green", "warning": "yellow", "failed": "bold red"}
    table = Table(box=None, pad_edge=False, show_header=False)
    for title in ("level", "name", "detail"):
        table.add_column(title, overflow="fold")
    for check in checks:
        table.add_row(Text(check.level, styles[check.level]), check.name, Text(clean(check.detail)))
    out.text(table)
    failed = sum(check.level == "failed" for check in checks)
    warned = sum(check.level == "warning" for check in checks)
    if failed:
        out.text(f"\n{failed} failed: repair that first.", style="bold red")
    elif warned:
        out.text(f"\nFit to work, with {counted(warned, 'warning')}.", style="yellow")
    else:
        out.text("\nEverything is fit to work.", style="green")


# --- the machine --------------------------------------------------------------------------------------------------------


def _machine() -> Iterator[Check]:
    yield Check("python", "ok", f"{sys.version.split()[0]} ({sys.executable})")
    level = "ok" if sqlite3.sqlite_version_info >= SQLITE_LEAST else "failed"
    wanted = "" if level == "ok" else f"; at least {'.'.join(map(str, SQLITE_LEAST))} is needed"
    yield Check("sqlite", level, sqlite3.sqlite_version + wanted, Exit.OK if level == "ok" else Exit.DAMAGED)
    versions = ", ".join(f"{name} {_version(name)}" for name in _PACKAGES)
    is_complete = "missing" not in versions
    yield Check(
        "packages", "ok" if is_complete else "failed", f"comity {__version__}, {versions}", _code(is_complete, Exit.USAGE)
    )


def _version(package: str) -> str:
    folder = package.lower().replace("-", "_")
    if (version := _installed().get(folder)) is not None:
        return version
    from importlib import metadata  # slow to load, and only needed where something is installed in an uncommon way

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "missing"


@cache
def _installed() -> dict[str, str]:
    """Return the versions of what is installed in the common way, by the names of folders."""
    found: dict[str, str] = {}
    for place in filter(None, sys.path):
        for folder in Path(place).glob("*.dist-info"):
            package, _, version = folder.name.removesuffix(".dist-info").partition("-")
            found.setdefault(package.lower().replace(".", "_"), version)
    return found


def _code(is_ok: bool, code: Exit) -> Exit:
    return Exit.OK if is_ok else code


def _directory(store: Path) -> Path:
    """Return the nearest directory that exists: where the store is, or where it would be made."""
    directory = store.absolute().parent
    while not os.access(directory, os.X_OK):
        directory = directory.parent
    return directory


def _disk(directory: Path) -> Iterator[Check]:
    free = shutil.disk_usage(directory).free
    level = "ok" if free >= DISK_BYTES_LEAST else "warning"
    yield Check("disk space", level, f"{free / 1024**3:,.1f} GiB free at {directory}")
    for name, check in (("durable writes", _wal), ("fsync", _fsync)):
        yield _try(name, check, directory)


def _try(name: str, check: Callable[[Path], Check], directory: Path) -> Check:
    try:
        with tempfile.TemporaryDirectory(prefix=".comity-doctor-", dir=directory) as scratch:
            return check(Path(scratch))
    except (OSError, sqlite3.Error) as error:
        return Check(name, "failed", f"{directory} cannot hold a store: {error}", Exit.DAMAGED)


def _wal(scratch: Path) -> Check:
    """Open a store-like file where the store is: some file systems cannot do what durability needs."""
    with contextlib.closing(connect(scratch / "check.db")) as connection:
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
        (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
        connection.execute("CREATE TABLE one (value INTEGER)")
    is_durable = mode == "wal" and synchronous == _FULL
    detail = "WAL with synchronous=FULL works here" if is_durable else f"journal {mode}, synchronous {synchronous}: not durable"
    return Check("durable writes", "ok" if is_durable else "failed", detail, _code(is_durable, Exit.DAMAGED))


def _fsync(scratch: Path) -> Check:
    times = []
    with (scratch / "fsync").open("wb") as file:
        for _ in range(_FSYNC_TRIES):
            file.write(b"\0" * 4096)
            file.flush()
            begin = time.perf_counter()
            os.fsync(file.fileno())
            times.append((time.perf_counter() - begin) * MS_PER_S)
    median = sorted(times)[_FSYNC_TRIES // 2]
    slow = "" if median <= FSYNC_MS_MOST else "; every durable reply waits this long"
    return Check("fsync", "warning" if slow else "ok", f"{median:,.2f} ms{slow}")


# --- the store and the agents -------------------------------------------------------------------------------------------


def _store(path: Path) -> Iterator[Check]:
    try:
        with Store(path) as store:
            verdict = store.verify(newest=CHECKED_ROWS)
            rows = store.row_count()
            vaults, remembered = store.vaults(), store.remembered()
            abandoned = len(store.abandoned())
            unreadable = store.unreadable_handoffs()
            ran_on = store.ran_on(CHECKED_ROWS)
    except CliError as error:
        if error.code is Exit.NOT_FOUND:
            yield Check("store", "ok", f"{path} does not exist yet; the first call makes it")
        else:
            yield Check("store", "failed", error.message, error.code)
        return
    if why := unwritable(path):
        yield Check("store", "failed", why, Exit.DAMAGED)
    if verdict.ok:
        whole = (
            "chain whole" if verdict.rows == rows else f"the newest {verdict.rows:,} whole; `comity audit verify` checks all"
        )
        unchecked = f"; {verdict.reason}" if verdict.reason else ""
        yield Check("store", "warning" if unchecked else "ok", f"{path}: {rows:,} audit rows, {whole}{unchecked}")
    else:
        yield Check("store", "failed", f"the audit of {path} is damaged: {verdict.reason}", Exit.DAMAGED)
    if abandoned:
        detail = (
            f"{counted(abandoned, 'open call')} without a living node; the next node that stays on this store takes them up"
        )
        yield Check("calls", "warning", f"{detail}. `comity call` and other commands do not.")
    if unreadable:
        detail = f"{counted(len(unreadable), 'handoff')} that cannot be read: {', '.join(unreadable[:_NAMED_MAX])}"
        yield Check("handoffs", "warning", detail)
    if ran_on:
        names = dict.fromkeys(f"{row.target} {row.capability}" for row in reversed(ran_on))
        named = ", ".join([*names][:_NAMED_MAX])
        detail = (
            f"{named} ran on after the end of its call, {counted(len(ran_on), 'time')}, last at {when(ran_on[-1].created_at)}"
        )
        yield Check("calls", "warning", f"{detail}. Let it heed CancelledError, or look at ctx.left_ms")
    yield from _key(path, vaults, remembered)


def _key(store: Path, vaults: list[tuple[str, bytes]], remembered: list[tuple[str, bytes]]) -> Iterator[Check]:
    """Say whether the key opens what the store hides; of one that hides nothing yet, what is wrong with the key it has."""
    from comity.engines.cipher import key_file
    from comity.node.store_key import store_key

    file, hides = key_file(store), bool(vaults or remembered)
    if not hides and (file is None or not file.exists()):  # a key would be made
        return
    try:
        store_key(store, vaults, remembered)
    except UnavailableError as error:
        yield Check("key", "failed", error.message, Exit.DAMAGED)
    else:
        if hides:
            yield Check("key", "ok", "it opens what the store hides")


def _spans(store: str) -> Iterator[Check]:
    """Say how many spans are kept, which were lost, and what the environment asks of recording."""
    from comity.core.tracing.telemetry import settings_from
    from comity.engines.sqlite.spans.inbox import overview

    path: Path | None = None
    with contextlib.suppress(CliError):  # what is not a store has been told already
        path = spans_beside(store)
    if path is not None and path.is_file():
        try:
            kept, waiting, losses = overview(path, COUNTED_SPANS)
        except sqlite3.Error as error:
            yield Check("spans", "failed", f"{path} cannot be read: {error}", Exit.DAMAGED)
        else:
            later = f" ({waiting:,} not indexed yet)" if waiting else ""
            more = " or more" if kept == COUNTED_SPANS else ""
            yield Check("spans", "ok", f"{path}: {kept + waiting:,}{more} spans{later}")
            for why, lost, last_at in losses:
                yield Check("spans", "warning", f"{lost:,} were lost, last at {when(last_at)}: {why}")
    try:
        settings = settings_from(os.environ)
    except CallerError as error:
        yield Check("tracing", "failed", error.message, Exit.USAGE)
        return
    if settings.is_disabled:
        yield Check("tracing", "warning", "OTEL_SDK_DISABLED is set: only insights are recorded")
    elif settings.endpoint:
        yield Check("tracing", "ok", f"spans are exported to {settings.endpoint} by {settings.protocol}")
    for problem in settings.problems:
        yield Check("tracing", "warning", problem)


def _app(args: argparse.Namespace) -> Iterator[Check]:
    if not args.app:
        yield Check("agents", "warning", f"none are configured. {NO_APP}")
        return
    from comity.cli.commands.agent_checks import check_agents

    yield from check_agents(args)


# --- guidance -----------------------------------------------------------------------------------------------------------


def _guidance() -> Iterator[Check]:
    """Check the guidance that is there; a node would not start on what is broken."""
    named = os.environ.get("COMITY_GUIDANCE")
    if not named and not Path(GUIDANCE_FOLDER).is_dir():
        return
    from comity.engines.guidance import source_at

    for place in [named] if named else sorted(map(str, Path(GUIDANCE_FOLDER).glob("*.yaml"))):
        try:
            _, guidance, problems = source_at(place).read()
        except ComityError as error:
            yield Check("guidance", "failed", error.message, Exit.USAGE)
            continue
        told = "; ".join(f"{problem.path} {problem.message}" for problem in problems)
        good = f"{counted(len(guidance.constraints), 'constraint')}, {counted(len(guidance.questions), 'question')}"
        yield Check("guidance", "failed" if problems else "ok", f"{place}: {told or good}", _code(not problems, Exit.USAGE))
