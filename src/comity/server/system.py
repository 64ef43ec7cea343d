"""How a node and its store stand: what runs, how much is kept and how fast it grows, what lags, and what is wrong."""

from __future__ import annotations

import asyncio
import contextlib
import platform
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from comity import __version__
from comity.core.journal.retention import KINDS
from comity.core.tracing.telemetry import ExportStats
from comity.engines.sqlite.care import File, Kind, measure
from comity.engines.sqlite.connecting import connect_anywhere
from comity.engines.sqlite.spans.path import spans_path
from comity.server.routes import Ask

_LAGS_SHOWN: Final = 20


class NodeStatus(Struct, frozen=True):
    """The process."""

    id: str
    version: str
    python: str
    started_at: int
    agents: int
    running: int
    streams: int
    in_flight: int
    peers: list[str]  # other nodes on the same store


class Check(Struct, frozen=True):
    """One thing that was looked at; `level` is ok, warning or failed."""

    name: str
    level: str
    detail: str


class Kept(Struct, frozen=True):
    """How long and how many of one kind are kept; null is no bound."""

    age_ms: int | None
    count: int | None


class Recording(Struct, frozen=True, kw_only=True):
    """How spans are recorded: where they are exported to, which share of traces, and whether they hold what was said."""

    exported_to: str
    ratio: float
    has_content: bool


class System(Struct, frozen=True):
    """A node: `kinds` and `files` are empty where it keeps everything in memory."""

    node: NodeStatus
    store: str | None
    kinds: list[Kind]
    files: list[File]
    export: ExportStats
    checks: list[Check]
    retention: dict[str, Kept]
    recording: Recording


async def show(ask: Ask) -> System:
    """Return how the node stands. The store is measured in a thread, on a connection of its own."""
    state, node = ask.state, ask.state.node
    kinds: list[Kind] = []
    files: list[File] = []
    if node.store is not None:
        kinds, files = await asyncio.to_thread(_measured, node.store, state.now_ms())
    status = NodeStatus(
        node.node_id,
        __version__,
        f"{platform.python_version()} on {sys.platform}",
        state.started_at,
        len(node.registry),
        sum(node.running().values()),
        state.streams.open,
        state.metrics.in_flight,
        node.peers(),
    )
    store = None if node.store is None else str(node.store)
    return System(status, store, kinds, files, node.export, list(_checks(ask)), _retention(ask), _recording(ask))


def _retention(ask: Ask) -> dict[str, Kept]:
    found = {kind: getattr(ask.state.node.retention, kind) for kind in KINDS}
    return {
        kind: Kept(None if keep.age is None else int(keep.age / timedelta(milliseconds=1)), keep.count)
        for kind, keep in found.items()
    }


def _recording(ask: Ask) -> Recording:
    settings = ask.state.node.telemetry
    to = urlsplit(settings.endpoint)
    return Recording(
        exported_to=f"{to.scheme}://{to.hostname}{f':{to.port}' if to.port else ''}{to.path}" if to.hostname else "",
        ratio=settings.ratio,
        has_content=settings.captures_content,
    )


def _measured(store: Path, now_ms: int) -> tuple[list[Kind], list[File]]:
    with contextlib.closing(connect_anywhere(store)) as connection:
        return measure(store, connection, spans_path(store), now_ms)


def _checks(ask: Ask) -> Iterator[Check]:
    node, failure = ask.state.node, ask.state.node.failure
    yield Check("store", "ok", "takes writes") if failure is None else Check("store", "failed", failure.message)
    for problem in node.problems:
        yield Check("declarations", "warning", problem)
    if not node.problems:
        yield Check("declarations", "ok", "agents, tools and personal data fit together")
    if node.guidance is not None:
        why = node.guidance.failure
        yield (
            Check("guidance", "warning", f"the last good one is in force: {why}")
            if why
            else Check("guidance", "ok", "in force")
        )
    lags = node.lags[-_LAGS_SHOWN:]
    if lags:
        worst = max(lags, key=lambda one: one.blocked_ms)
        detail = f"{len(lags)} recent blocks; the longest, {worst.blocked_ms:.0f} ms, by {worst.target} {worst.capability}"
        yield Check("event loop", "warning", detail)
    else:
        yield Check("event loop", "ok", "no call blocked it lately")
    strays = node.strays
    detail = ", ".join(f"{one.target} {one.capability}" for one in strays[:5]) or "none runs on after its call had ended"
    yield Check("stray code", "warning" if strays else "ok", detail)
    export = node.export
    lost = export.dropped + export.refused + export.unstored
    detail = f"{lost} spans lost; {export.last_error}" if lost else f"{export.exported} exported, {export.waiting} waiting"
    yield Check("spans", "warning" if lost else "ok", detail)
