"""The parts of a running node, opened and closed as a whole.

Every opened part is put on one `AsyncExitStack`, which is unwound when a later step fails and when the node closes. An
exception during unwinding does not stop the other steps.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
from collections.abc import Callable, Collection
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from comity.core.agent.registry import Registry
from comity.core.agent.tool import Tool
from comity.core.call.guardrail import Guardrail
from comity.core.call.inheritance import Inheritance
from comity.core.call.limits import Limits
from comity.core.document import schema
from comity.core.envelope.usage import Prices
from comity.core.journal.audit import Pseudonyms
from comity.core.journal.records import Document
from comity.core.journal.retention import Retention
from comity.core.tracing.telemetry import Settings as Telemetry
from comity.core.tracing.telemetry import settings_from
from comity.engines import cipher
from comity.engines.cipher import TRIED_MAX, derived
from comity.engines.memory.journal import MemoryJournal
from comity.engines.sqlite.journal import SqliteJournal
from comity.engines.threads import SystemThreads
from comity.errors import UnavailableError
from comity.node.store_key import memory_cipher, store_key, vault_cipher
from comity.node.tending import Tending, watch_files
from comity.node.tracing import open_recorder
from comity.node.upkeep import Upkeep
from comity.ports import Clock, Engine, GuidanceSource, Ids, Journal
from comity.ports.observer import Observer
from comity.runtime.agent import forked
from comity.runtime.agent.declarations import check_declarations
from comity.runtime.agent.threads import FunctionThreads
from comity.runtime.agent.watchdog import Watchdog
from comity.runtime.agent.workers import Workers, check_guarded
from comity.runtime.call import tasks
from comity.runtime.call.call import Call
from comity.runtime.call.context import Context
from comity.runtime.call.environment import Environment
from comity.runtime.call.path import CallPath
from comity.runtime.call.resume import go_on
from comity.runtime.call.slices import Slices
from comity.runtime.call.sync_context import SyncContext
from comity.runtime.call.tools import Toolbox
from comity.runtime.session.memory import Memories
from comity.runtime.session.privacy import Answers, Privacy
from comity.runtime.session.sessions import Sessions
from comity.version import VERSION

if TYPE_CHECKING:
    from comity.core.guidance.guidance import Guidance
    from comity.runtime.cluster.cluster import Cluster
    from comity.runtime.guidance.guidance import LiveGuidance
    from comity.runtime.handoff.desk import Handoffs
    from comity.runtime.handoff.hosted import HostedAgents
    from comity.runtime.tracing.recorder import Recorder
    from comity.runtime.workflow.workflows import Workflows


class Parts(Struct, frozen=True):
    """The engine, clock and other foundations of a node."""

    engine: Engine
    clock: Clock
    ids: Ids
    store: Path | None = None  # the engine's file, if it has one: spans and key are beside it
    observer: Observer | None = None


class Settings(Struct, frozen=True):
    """The arguments of a node."""

    limits: Limits
    guardrails: tuple[Guardrail, ...]
    privacy: Privacy | None
    inheritance: Inheritance
    retention: Retention
    tenants: tuple[str, ...]  # whose handoffs it takes
    threads_max: int
    lag_ms: int | None = None
    guidance: str | Path | Guidance | GuidanceSource | None = None
    telemetry: Telemetry | None = None
    prices: Prices | None = None


class Runtime:
    """The parts of a node that runs."""

    def __init__(self, path: CallPath, journal: Journal, workers: Workers, problems: tuple[str, ...]) -> None:
        self.path = path
        self.journal = journal
        self.workers = workers
        self.problems = problems  # of what was declared; see `core.agent.cross_check`
        self.tending = Tending(path, journal, self._sweep_workflows)
        self.desk: Handoffs | None = None  # made when something is first handed off
        self.hosted: HostedAgents | None = None  # with it, where the node takes handoffs for its agents
        self.workflows: Workflows | None = None  # made when a workflow is first looked at
        self._stack = contextlib.AsyncExitStack()

    @classmethod
    async def open(
        cls, parts: Parts, registry: Registry, tools: Collection[Tool], settings: Settings, wired: Callable[[Runtime], None]
    ) -> None:
        """Open the store, wire the call path, resume the calls that an earlier run left open and accept calls.

        `wired` is called with the complete object before its first call runs. If a later step fails, everything is closed.
        """
        check_guarded()
        engine, journal, privacy = parts.engine, parts.engine.journal, settings.privacy
        loop = asyncio.get_running_loop()
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(_close_agents, registry)
            problems = await check_declarations(registry, tools, privacy, has_all=engine.is_alone)
            if len(registry):
                schema.load()
                is_for_one_command = isinstance(journal, SqliteJournal) and not journal.takes_over
                if privacy is not None and not is_for_one_command:
                    privacy.prepare()
                    cipher.load()
            _freeze_once()
            guidance = await _open_guidance(settings, stack)
            stack.push_async_callback(engine.close)
            await engine.open()
            # Before the spans: a store that is refused is left as it was.
            sealed = journal.list_documents(Document.VAULT, TRIED_MAX)
            remembered = journal.list_documents(Document.MEMORY, TRIED_MAX)
            key = store_key(parts.store, sealed, remembered)
            journal.names = Pseudonyms(derived(key, "names"))
            telemetry = settings.telemetry or settings_from(os.environ, version=VERSION)
            recorder = open_recorder(telemetry, parts.clock, parts.ids, loop, parts.store)
            stack.push_async_callback(recorder.close)
            stack.callback(watch_files(journal, parts.store))
            workers = Workers(None if privacy is None else privacy.hide_trace)
            stack.callback(workers.close)
            path = _call_path(parts, registry, tools, settings, stack, recorder, workers, guidance, key)
            runtime = cls(path, journal, workers, problems)
            stack.push_async_callback(engine.leave)
            stack.push_async_callback(_close_path, path)
            stack.callback(runtime._close_workflows)
            stack.push_async_callback(runtime._close_handoffs)
            if not engine.is_alone:
                path.join(_cluster(path, engine))
            wired(runtime)
            await engine.listen(partial(_share, path, engine))
            await engine.join()
            runtime.tending.take_over()
            if not path.placement.is_open:
                await path.placement.open()
            if settings.retention.is_bounded:
                upkeep = Upkeep(settings.retention, journal, recorder, path.sessions, parts.clock)
                stack.push_async_callback(upkeep.close)
            runtime.tending.begin()
            stack.callback(runtime.tending.stop)
            forked.begin(runtime)
            stack.callback(forked.end, runtime)
            runtime._stack = stack.pop_all()

    async def close(self) -> None:
        """Cancel running calls, make everything durable and close every part, even if one of them raises."""
        try:
            await self._stack.aclose()
        finally:
            await self.path.settlement.delivered()

    def disown(self) -> asyncio.AbstractEventLoop:
        """Make the node refuse and record nothing in this forked child; return the parent's event loop."""
        self.path.is_closed = True
        if isinstance(self.journal, SqliteJournal):
            message = "this process was forked from the one that opened the store, and is no node"
            self.journal.failure = UnavailableError(message, code="NODE_CLOSED")
        return self.path.loop

    def _sweep_workflows(self) -> None:
        if self.workflows is not None:
            self.workflows.sweep()
        elif type(self.journal) is not MemoryJournal and self.journal.list_documents(Document.SCHEDULE, 1):
            assert self.path.workflows is not None
            self.path.workflows().sweep()  # an earlier run of the node, or another process, has left schedules

    def _close_workflows(self) -> None:
        if self.workflows is not None:
            self.workflows.close()

    async def _close_handoffs(self) -> None:
        if self.hosted is not None:
            await self.hosted.close()
        if self.desk is not None:
            await self.desk.stop()
            self.desk.close()


def _call_path(
    parts: Parts,
    registry: Registry,
    tools: Collection[Tool],
    settings: Settings,
    stack: contextlib.AsyncExitStack,
    recorder: Recorder,
    workers: Workers,
    guidance: LiveGuidance | None,
    key: bytes,
) -> CallPath:
    """Return the call path on an open engine. The watchdog, which is started here, stops with the stack."""
    loop, journal, privacy = asyncio.get_running_loop(), parts.engine.journal, settings.privacy
    calls: dict[str, Call] = {}
    watchdog = None
    if settings.lag_ms is not None:
        watchdog = Watchdog(calls, threshold_ms=settings.lag_ms)
        stack.callback(watchdog.close)
    notice = None if watchdog is None else watchdog.left_behind
    threads = FunctionThreads(getattr(loop, "threads", None) or SystemThreads(), settings.threads_max, SyncContext, notice)
    sessions = Sessions(journal, parts.clock, parts.ids, vault_cipher(key), calls)
    slices = Slices(lambda: journal.is_awaited)
    env = Environment(
        registry=registry,
        journal=journal,
        clock=parts.clock,
        ids=parts.ids,
        limits=settings.limits,
        loop=loop,
        sessions=sessions,
        memories=Memories(journal, parts.clock, memory_cipher(key)),
        recorder=recorder,
        threads=threads,
        run_in_process=getattr(loop, "run_in_process", None) or workers.run,
        slices=slices,
        inheritance=settings.inheritance,
        identity_key=derived(key, "identity"),
        privacy=privacy,
        answers=None if privacy is None else Answers(sessions, slices, privacy),
        guardrails=settings.guardrails,
        prices=settings.prices,
        guidance=guidance,
        watchdog=watchdog,
        observer=parts.observer,
    )
    return CallPath(env, calls, Toolbox(tools, env), context=Context, go_on=go_on)


@cache
def _freeze_once() -> None:
    """Exclude all objects that exist before the first node (modules, patterns) from garbage collection.

    A full collection would traverse them while every call waits: 38 to 45 ms in the soak, 12 to 15 ms without them.
    """
    gc.freeze()


async def _open_guidance(settings: Settings, stack: contextlib.AsyncExitStack) -> LiveGuidance | None:
    if settings.guidance is None:
        return None
    from comity.engines.guidance import source_at  # noqa: PLC0415  most nodes have no guidance
    from comity.runtime.guidance.guidance import live_guidance  # noqa: PLC0415

    given = settings.guidance
    guidance = await live_guidance(source_at(given) if isinstance(given, str | Path) else given)
    stack.callback(guidance.close)
    return guidance


def _cluster(path: CallPath, engine: Engine) -> Cluster:
    from comity.runtime.cluster.cluster import Cluster  # noqa: PLC0415  most nodes are alone

    return Cluster(path, engine)


async def _share(path: CallPath, engine: Engine) -> None:
    """Share the work with another process that has opened the store."""
    from comity.runtime.cluster.sharing import share  # noqa: PLC0415  as above

    await share(path, _cluster(path, engine))


async def _close_path(path: CallPath) -> None:
    """Leave the cluster, cancel running calls and wait for all code; then release this node's leases."""
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(path.placement.close)
        await path.placement.leave()
        begun_s = path.loop.time()
        await path.close()
        await path.threads.close(tasks.CLOSE_S - (path.loop.time() - begun_s))


async def _close_agents(registry: Registry) -> None:
    """Close every agent, even if one of them raises."""
    async with contextlib.AsyncExitStack() as stack:
        for agent in reversed(tuple(registry)):
            if agent.on_close is not None:
                stack.push_async_callback(agent.on_close)
