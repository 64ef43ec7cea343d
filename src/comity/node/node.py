"""A node: a process that hosts agents. This is the Python door to the one call path."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, overload

from comity.contextcore.handoffs.checks import tenants_of
from comity.core.agent.agent import Agent, Capability
from comity.core.agent.registry import Registry
from comity.core.agent.tool import Tool
from comity.core.call.guardrail import Guardrail, Verdict, checked_guardrails
from comity.core.call.inheritance import Inheritance
from comity.core.call.limits import THREADS_MAX, Limits
from comity.core.document import schema
from comity.core.envelope.envelope import Background, Priority, Reply
from comity.core.envelope.request_id import chosen_id_problem
from comity.core.journal.audit import Pseudonyms
from comity.core.journal.records import Document, StoredCall
from comity.core.journal.retention import Retention, checked_retention
from comity.core.tracing.telemetry import Settings, settings_from
from comity.engines.cipher import derived
from comity.engines.clock import SystemClock, SystemIds
from comity.engines.memory.engine import JournalEngine
from comity.engines.threads import SystemThreads
from comity.node.engines import check_engine, engine_for
from comity.node.outsiders import Outsiders
from comity.node.tending import Tending
from comity.node.upkeep import Upkeep, begin_upkeep, end_upkeep
from comity.ports import Clock, Engine, GuidanceSource, Ids, Journal
from comity.runtime.agent import forked
from comity.runtime.agent.declarations import check_declarations
from comity.runtime.agent.threads import FunctionThreads
from comity.runtime.agent.watchdog import Watchdog
from comity.runtime.agent.workers import Workers, check_guarded
from comity.runtime.call import tasks
from comity.runtime.call.binding import UNSAID, Bound, Result, aim
from comity.runtime.call.call import Call
from comity.runtime.call.draft import Draft, Identity
from comity.runtime.call.events import EventLog
from comity.runtime.call.handle import CallHandle
from comity.runtime.call.options import ROOT_ONLY, RootOptions
from comity.runtime.call.path import CallPath
from comity.runtime.call.tools import Toolbox, checked_tools
from comity.runtime.session.memory import Memories
from comity.runtime.session.privacy import Privacy
from comity.runtime.session.sessions import Sessions
from comity.runtime.session.vault_key import TRIED_MAX, memory_cipher, store_key, vault_cipher
from comity.runtime.tracing.ambient import MODULES, OTEL, use
from comity.runtime.tracing.recorder import Recorder
from comity.runtime.tracing.standing import joined
from comity.version import VERSION

if TYPE_CHECKING:
    from comity.core.guidance.guidance import Guidance
    from comity.runtime.guidance.guidance import LiveGuidance
    from comity.runtime.handoff.desk import Handoffs
    from comity.runtime.workflow.workflows import Workflows


class Node(Outsiders, Tending):
    """Hosts agents and takes calls for them.

    async with Node(agents=[analyst], store="work.db") as node:
        reply = await node.call("ANL", "ANL_NPV", {...}, user_id="u1")

    agents: whom it hosts; `add` brings further ones.
    store: path of the SQLite file that makes it durable; without one everything is in memory.
    limits: of every call by a user.
    tools: what its agents may use, each agent as far as its `tools_allowed` says.
    tool_rights: `"own"`: an agent's own profile decides which tools it may use; `"chain"`: every agent above it must as well.
    guardrails: see every message, in and out, and may rewrite or withhold it.
    privacy: what personal data is hidden and who is granted it; None hides nothing.
    guidance: what people want of the agents: a path, a `k8s://` address, a `Guidance` or a source of one.
    telemetry: how spans are recorded and exported; as the environment says if it is not given.
    threads_max: how many plain functions run at a time.
    child_margin: the part of its time that a call without a timeout of its own leaves to its caller.
    retention: how long and how many calls, replies, sessions, handoffs, spans and audit rows are kept.
    takes_handoffs: whether it takes handoffs for its agents, or of which tenants; `default` alone if that is not said.
    lag_ms: how long code may block before the watchdog names it; None for no watchdog.
    engine: what carries and stores, where it is neither memory nor a SQLite file; see `docs/engines.md`.
    clock, ids, journal: what the node stands on, for tests.
    """

    def __init__(
        self,
        agents: Iterable[Agent] = (),
        *,
        store: str | Path | None = None,
        limits: Limits | None = None,
        engine: Engine | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
        journal: Journal | None = None,
        lag_ms: int | None = 100,
        tools: Iterable[Tool] = (),
        guardrails: Iterable[Guardrail | Callable[..., Verdict]] = (),
        privacy: Privacy | Literal["default"] | None = "default",
        guidance: str | Path | Guidance | GuidanceSource | None = None,
        telemetry: Settings | None = None,
        tool_rights: Literal["own", "chain"] = "own",
        threads_max: int = THREADS_MAX,
        child_margin: float = 0.05,
        retention: Retention | None = None,
        takes_handoffs: bool | Collection[str] = True,
    ) -> None:
        check_engine(engine, store, journal)
        self.registry = Registry(agents)
        self.limits = limits or Limits()
        self._clock: Clock = clock or SystemClock()
        self._ids: Ids = ids or SystemIds()
        self._store = store if engine is None else engine.path
        self._engine: Engine | None = engine if journal is None else JournalEngine(journal)
        self._journal: Journal | None = None
        self._lag_ms = lag_ms
        self._tools = checked_tools(tools)
        self._guardrails = checked_guardrails(guardrails)
        self._privacy = Privacy() if privacy == "default" else privacy
        self._telemetry = telemetry
        self._inheritance = Inheritance.of(tool_rights=tool_rights, margin=child_margin)
        self._guidance_given = guidance
        self._guidance: LiveGuidance | None = None
        self.problems: tuple[str, ...] = ()  # of what was declared, found when the node started; see `core.agent.cross_check`
        self._threads_max = threads_max
        self._threads: FunctionThreads
        self._workers: Workers
        self._path: CallPath | None = None
        self._retention = checked_retention(retention)
        self._upkeep: Upkeep | None = None
        self._handoffs: Handoffs | None = None
        self._workflows: Workflows | None = None
        self._tenants = tenants_of(takes_handoffs)

    # --- life ---

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if forked.is_child():
            forked.leave(error)
        await self.close()

    async def start(self) -> None:
        """Open the store, take up what an earlier life left open, and begin to accept calls."""
        if self._path is not None:
            raise RuntimeError("the node is running already")
        check_guarded()
        is_alone = self._engine is None or self._engine.is_alone
        self.problems = await check_declarations(self.registry, self.tools, self._privacy, is_alone=is_alone)
        if len(self.registry):
            schema.load()
        if self._guidance_given is not None:
            from comity.runtime.guidance.guidance import live_guidance  # noqa: PLC0415  most nodes have no guidance

            self._guidance = await live_guidance(self._guidance_given)
        engine = self._engine = self._engine or engine_for(self._store, self._ids.span_id())
        self._journal = engine.journal
        try:
            await engine.open()
            # Before the spans: a store that is refused is left as it was.
            sealed = self._journal.list_documents(Document.VAULT, TRIED_MAX)
            remembered = self._journal.list_documents(Document.MEMORY, TRIED_MAX)
            key = store_key(None if self._store is None else Path(self._store), sealed, remembered)
            self._journal.names = Pseudonyms(derived(key, "names"))
            recorder = self._recorder()
            self._watch_files()
        except BaseException:
            if self._guidance is not None:
                self._guidance.close()
            await engine.close()
            raise
        self._workers = Workers(None if self._privacy is None else self._privacy.hide_trace)
        loop = asyncio.get_running_loop()
        self._threads = FunctionThreads(getattr(loop, "threads", None) or SystemThreads(), self._threads_max)
        self._path = CallPath(
            self.registry,
            self._journal,
            self._clock,
            self._ids,
            self.limits,
            loop,
            threads=self._threads,
            run_in_process=self._workers.run,
            sessions=Sessions(self._journal, self._clock, self._ids, vault_cipher(key)),
            memories=Memories(self._journal, self._clock, memory_cipher(key)),
            identity_key=derived(key, "identity"),
            inheritance=self._inheritance,
            toolbox=Toolbox(self.tools, self._journal, self._clock),
            privacy=self._privacy,
            guardrails=self._guardrails,
            guidance=self._guidance,
            recorder=recorder,
        )
        if self._lag_ms is not None:
            self._path.watchdog = Watchdog(self._path.calls, threshold_ms=self._lag_ms)
            self._threads.notice = self._path.watchdog.left_behind
        if not engine.is_alone:
            from comity.runtime.cluster.cluster import Cluster  # noqa: PLC0415  most nodes are alone

            self._path.join(Cluster(self._path, engine))
        self._path.handoffs = lambda: self.handoffs
        self._path.workflows = lambda: self.workflows
        await engine.listen(self._share)
        await engine.join()
        self._resume()
        if self._path.cluster is not None:
            await self._path.cluster.open()
        self._sweep_idle()
        forked.begin(self)
        self._begin_handoffs()
        self._upkeep = begin_upkeep(self._retention, self._journal, recorder, self._path.sessions, self._clock)

    async def close(self) -> None:
        """Stop accepting, cancel what runs, make everything durable and release the store."""
        if self._path is None:
            return
        self._stop_tending()
        await end_upkeep(self._upkeep)
        await self._end_handoffs()
        self._end_workflows()
        cluster = self._path.cluster
        if cluster is not None:
            await cluster.leave()
        begun_s = (loop := asyncio.get_running_loop()).time()
        await self._path.close()
        await self._threads.close(tasks.CLOSE_S - (loop.time() - begun_s))
        if cluster is not None:
            await cluster.close()
        assert self._engine is not None
        await self._engine.leave()
        for agent in self.registry:
            if agent.on_close is not None:
                await agent.on_close()
        self._unwatch_files()
        await self._path.recorder.close()
        if self._guidance is not None:
            self._guidance.close()
        self._workers.close()
        if self._path.watchdog is not None:
            self._path.watchdog.close()
        await self._engine.close()
        await self._path.settlement.delivered()
        forked.end(self)
        self._path = None

    async def _share(self) -> None:
        """Share the work with another process that has opened the store."""
        from comity.runtime.cluster.cluster import Cluster  # noqa: PLC0415  most nodes are alone
        from comity.runtime.cluster.sharing import share  # noqa: PLC0415

        path = self._running()
        assert self._engine is not None
        await share(path, Cluster(path, self._engine))

    def elsewhere(
        self, store: str | Path | None, engine: Engine | None = None, *, takes_handoffs: bool | Collection[str] = False
    ) -> Node:
        """Return a node with the same agents, tools and rules on another store, or in memory.

        Without `takes_handoffs` it is there for one command, and other nodes take what is handed to its agents.
        """
        return Node(
            self.registry,
            store=store,
            engine=engine,
            limits=self.limits,
            tools=self._tools,
            guardrails=self._guardrails,
            privacy=self._privacy,
            guidance=self._guidance_given,
            telemetry=self._telemetry,
            tool_rights=self._inheritance.tool_rights.value,
            threads_max=self._threads_max,
            child_margin=self._inheritance.margin,
            takes_handoffs=takes_handoffs,
        )

    def add(self, agent: Agent) -> None:
        """Register a further agent."""
        self.registry.add(agent)
        if self._path is not None and self._path.cluster is not None:
            self._path.cluster.announce()
        for tool in agent.tools.values():
            if self._path is not None and tool is not None:
                self._path.toolbox.add(tool)
        self._host(agent)

    # --- calls ---

    @overload
    def call(
        self,
        target: str,
        capability: str,
        inputs: dict[str, Any] | None = None,
        *,
        user_id: str,
        **options: Unpack[RootOptions],
    ) -> Coroutine[Any, Any, Reply[Any]]: ...
    @overload
    def call(
        self, target: Bound[Result], /, *, user_id: str, **options: Unpack[RootOptions]
    ) -> Coroutine[Any, Any, Reply[Result]]: ...
    @overload
    def call(
        self, target: Callable[..., Awaitable[Reply[Result]] | Reply[Result]], /, *args: Any, user_id: str, **inputs: Any
    ) -> Coroutine[Any, Any, Reply[Result]]: ...
    @overload
    def call(
        self, target: Callable[..., Awaitable[Result]], /, *args: Any, user_id: str, **inputs: Any
    ) -> Coroutine[Any, Any, Reply[Result]]: ...
    @overload
    def call(
        self, target: Callable[..., Result], /, *args: Any, user_id: str, **inputs: Any
    ) -> Coroutine[Any, Any, Reply[Result]]: ...
    def call(  # type: ignore[misc]
        self,
        target: Any,
        capability: Any = UNSAID,
        inputs: Any = None,
        *more: Any,
        user_id: str,
        session_id: str | None = None,
        request_id: str | None = None,
        timeout_ms: int | None = None,
        objective: str = "",
        message: str = "",
        priority: Priority | str = "normal",
        limits: Limits | None = None,
        correlation_id: str = "",
        tenant_id: str = "default",
        parent_session_id: str | None = None,
        context: Background | None = None,
        tools: Collection[str] | None = None,
        history: str | int = "full",
        traceparent: str | Sequence[str] | None = None,
        tracestate: str | Sequence[str] | None = None,
        **named: Any,
    ) -> Coroutine[Any, Any, Reply[Any]]:
        """Call an agent for a user and wait for the reply.

        target, capability, inputs: as of `Context.call`; a function, or what `bind` makes of one, in place of the first two.
        user_id, tenant_id: who asks.
        session_id: the session it belongs to; without one it has a session of its own. `parent_session_id` is the one above it.
        request_id: asked again under the same id, nothing runs twice.
        objective, message, context, history: what the callee is told; see `Context.call`.
        timeout_ms, priority, limits, tools: narrow what the node allows.
        correlation_id: that of the workflow the call is part of.
        traceparent, tracestate: the W3C headers the call came with, a list where there were several; what cannot be read begins
            a new trace. Without them the call belongs to the trace of the current span, if there is one.
        """
        draft = Draft(
            target,
            capability,
            inputs,
            objective,
            message,
            timeout_ms,
            priority,
            context,
            limits,
            history,
            tools,
            correlation_id,
        )
        path = self._path or self._running()
        identity = Identity(user_id, tenant_id, session_id, parent_session_id)
        remote = joined(traceparent, tracestate) if traceparent is not None or OTEL in MODULES or use.has_begun else None
        # Not awaited here: a coroutine more would be a percent of a call.
        if type(target) is str and capability is not UNSAID and not more and not named:
            return path.call_root(draft, identity, request_id, remote)
        aimed = aim(path.registry, draft, more, named, Node.call.__kwdefaults__, ROOT_ONLY)
        return aimed.typed(path.call_root(aimed.draft, identity, request_id, remote))

    @overload
    def start_call(
        self,
        target: str,
        capability: str,
        inputs: dict[str, Any] | None = None,
        *,
        user_id: str,
        **options: Unpack[RootOptions],
    ) -> CallHandle[Any]: ...
    @overload
    def start_call(self, target: Bound[Result], /, *, user_id: str, **options: Unpack[RootOptions]) -> CallHandle[Result]: ...
    @overload
    def start_call(
        self, target: Callable[..., Awaitable[Reply[Result]] | Reply[Result]], /, *args: Any, user_id: str, **inputs: Any
    ) -> CallHandle[Result]: ...
    @overload
    def start_call(
        self, target: Callable[..., Awaitable[Result]], /, *args: Any, user_id: str, **inputs: Any
    ) -> CallHandle[Result]: ...
    @overload
    def start_call(self, target: Callable[..., Result], /, *args: Any, user_id: str, **inputs: Any) -> CallHandle[Result]: ...
    def start_call(  # type: ignore[misc]
        self,
        target: Any,
        capability: Any = UNSAID,
        inputs: Any = None,
        *more: Any,
        user_id: str,
        session_id: str | None = None,
        request_id: str | None = None,
        timeout_ms: int | None = None,
        objective: str = "",
        message: str = "",
        priority: Priority | str = "normal",
        limits: Limits | None = None,
        correlation_id: str = "",
        tenant_id: str = "default",
        parent_session_id: str | None = None,
        context: Background | None = None,
        tools: Collection[str] | None = None,
        history: str | int = "full",
        traceparent: str | Sequence[str] | None = None,
        tracestate: str | Sequence[str] | None = None,
        **named: Any,
    ) -> CallHandle[Any]:
        """Begin a call for a user and return a handle to watch, cancel or await it."""
        path = self._running()
        log = EventLog()
        draft = Draft(
            target,
            capability,
            inputs,
            objective,
            message,
            timeout_ms,
            priority,
            context,
            limits,
            history,
            tools,
            correlation_id,
        )
        read: Capability | None = None
        if type(target) is not str or capability is UNSAID or more or named:
            draft, read = aim(path.registry, draft, more, named, Node.start_call.__kwdefaults__, ROOT_ONLY)
        identity = Identity(user_id, tenant_id, session_id, parent_session_id)
        remote = joined(traceparent, tracestate)
        if path.cluster is not None and (request_id is None or not chosen_id_problem(request_id)):
            errand = path.cluster.errand(draft, identity, request_id, remote, log)
            path.cluster.start(errand)
            return CallHandle(path, errand, log, errand.arrival.request.request_id, read)
        opened = path.open_root(draft, identity, request_id, remote, log)
        if isinstance(opened, Call):
            opened.is_detached = True
            if opened.log is None:  # joined a call that nobody watched until now
                opened.watch(log)
            return CallHandle(path, opened, opened.log or log, opened.request.request_id, read)
        log.close()
        return CallHandle(path, opened, log, opened.request_id, read)

    def find_call(self, request_id: str, *, tenant_id: str | None = None, user_id: str | None = None) -> CallHandle[Any] | None:
        """Return a handle of a user's call that runs on this node, or that has ended and is stored; None for any other.

        With `tenant_id` and `user_id`, a call of another tenant or user is not found.
        """
        path = self._running()
        assert self._journal is not None
        call = path.calls.get(request_id)
        asked = call.request if call is not None else self._journal.call(request_id)
        if asked is None or asked.parent_id is not None:
            return None
        if tenant_id not in {None, asked.tenant_id} or user_id not in {None, asked.user_id}:
            return None
        log = EventLog()
        if call is not None:
            if call.log is None:
                call.watch(log)
            return CallHandle(path, call, call.log or log, request_id)
        log.close()
        if not isinstance(asked, StoredCall) or asked.reply is None:
            return None
        return CallHandle(path, path.settlement.shown(asked.reply, asked), log, request_id)

    async def receive(
        self,
        document: Any,
        *,
        dialect: str,
        user_id: str,
        tenant_id: str = "default",
        session_id: str | None = None,
        capability: str = "message",
        token: str | None = None,
        traceparent: str | Sequence[str] | None = None,
        tracestate: str | Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """Take a request that came as a document in a dialect, and answer in that dialect, whatever came.

        `user_id` of `tenant_id` is who really sent it, in the session `session_id`. `capability` is meant where a dialect names
        none. An agent outside this process shows the `token` it was given in the call it works for. `traceparent` and
        `tracestate` are as of `call`.
        """
        _, answer = await self.answer_document(
            document,
            dialect=dialect,
            identity=Identity(user_id, tenant_id, session_id),
            capability=capability,
            token=token,
            traceparent=traceparent,
            tracestate=tracestate,
        )
        return answer

    # --- inside ---

    def _recorder(self) -> Recorder:
        settings = self._telemetry or settings_from(os.environ, version=VERSION)
        return Recorder(settings, self._clock, self._ids, asyncio.get_running_loop(), self._store)
