"""A node: a process that hosts agents. This is the Python door to the one call path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, cast, overload

from comity.core.agent.agent import Agent, Capability
from comity.core.agent.registry import Registry
from comity.core.agent.tool import Tool
from comity.core.call.guardrail import Guardrail, Verdict, checked_guardrails
from comity.core.call.inheritance import Inheritance
from comity.core.call.limits import THREADS_MAX, Limits
from comity.core.envelope.envelope import Background, ExpectedOutput, Priority, Reply
from comity.core.envelope.usage import Prices
from comity.core.handoff.checks import tenants_of
from comity.core.journal.records import StoredCall
from comity.core.journal.retention import Retention, checked_retention
from comity.core.tracing.telemetry import Settings as Telemetry
from comity.engines.clock import SystemClock, SystemIds
from comity.engines.memory.engine import JournalEngine
from comity.node.engines import check_engine, engine_for
from comity.node.outsiders import Outsiders
from comity.node.runtime import Parts, Runtime, Settings
from comity.ports import Clock, Engine, GuidanceSource, Ids, Journal
from comity.ports.ambient import MODULES, OTEL, use
from comity.ports.observer import Observer
from comity.runtime.agent import forked
from comity.runtime.call.binding import UNSAID, Bound, Result, aim
from comity.runtime.call.call import Call
from comity.runtime.call.draft import Draft, Identity
from comity.runtime.call.events import EventLog
from comity.runtime.call.handle import CallHandle
from comity.runtime.call.options import ROOT_ONLY, RootOptions
from comity.runtime.call.rehearsal import Rehearsal, rehearse
from comity.runtime.call.tools import checked_tools
from comity.runtime.session.privacy import Privacy
from comity.runtime.tracing.standing import joined

if TYPE_CHECKING:
    from comity.core.guidance.guidance import Guidance
    from comity.core.workflow.model import Definition


class Node(Outsiders):
    """Hosts agents and takes calls for them.

    async with Node(agents=[analyst], store="work.db") as node:
        reply = await node.call("ANL", "ANL_NPV", {...}, user_id="u1")

    agents: the agents that it hosts; `add` adds further ones.
    store: path of the SQLite file that makes it durable; without one everything is in memory.
    limits: of every call by a user.
    workflows: what it can run: definitions, paths of YAML or JSON files, or their text; `add_workflows` adds further ones.
    tools: what its agents may use, each agent as far as its `tools_allowed` says.
    tool_rights: `"own"`: an agent's own profile decides which tools it may use; `"chain"`: every agent above it must as well.
    guardrails: see every message, in and out, and may rewrite or withhold it.
    privacy: what personal data is hidden and who is granted it; None hides nothing.
    guidance: people's guidance for the agents: a path, a `k8s://` address, a `Guidance` or a source of one.
    telemetry: how spans are recorded and exported; as the environment says if it is not given.
    prices: what tokens of each model cost, as `Prices("USD", {"openai:gpt-4o": (2.50, 10.00)})`; without it cost is unknown.
    threads_max: how many plain functions run at a time.
    child_margin: the part of its time that a call without a timeout of its own leaves to its caller.
    retention: how long and how many calls, replies, sessions, handoffs, spans and audit rows are kept.
    takes_handoffs: whether it takes handoffs for its agents, or of which tenants; `default` alone if that is not said.
    lag_ms: how long code may block the event loop before the watchdog reports it; None for no watchdog.
    engine: storage and transport, if neither memory nor a SQLite file; see `docs/engines.md`.
    clock, ids, journal: replacements for tests.
    observer: hooks into the steps of calls, for tests.
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
        observer: Observer | None = None,
        lag_ms: int | None = 100,
        tools: Iterable[Tool] = (),
        guardrails: Iterable[Guardrail | Callable[..., Verdict]] = (),
        privacy: Privacy | Literal["default"] | None = "default",
        guidance: str | Path | Guidance | GuidanceSource | None = None,
        telemetry: Telemetry | None = None,
        tool_rights: Literal["own", "chain"] = "own",
        prices: Prices | None = None,
        threads_max: int = THREADS_MAX,
        child_margin: float = 0.05,
        retention: Retention | None = None,
        takes_handoffs: bool | Collection[str] = True,
        workflows: Iterable[Definition | str | Path] = (),
    ) -> None:
        check_engine(engine, store, journal)
        self.registry = Registry(agents)
        self.limits = limits or Limits()
        self._clock: Clock = clock or SystemClock()
        self._ids: Ids = ids or SystemIds()
        self._engine = engine or (engine_for(store, self._ids.span_id()) if journal is None else JournalEngine(journal))
        self._journal = self._engine.journal
        path = store if engine is None else engine.path
        self._store = None if path is None else Path(path)
        self._parts = Parts(self._engine, self._clock, self._ids, self._store, observer)
        self._tools = checked_tools(tools)
        self._settings = Settings(
            limits=self.limits,
            guardrails=checked_guardrails(guardrails),
            privacy=Privacy() if privacy == "default" else privacy,
            inheritance=Inheritance.of(tool_rights=tool_rights, margin=child_margin),
            retention=checked_retention(retention),
            tenants=tenants_of(takes_handoffs),
            threads_max=threads_max,
            lag_ms=lag_ms,
            guidance=guidance,
            telemetry=telemetry,
            prices=prices,
        )
        self._definitions: tuple[Definition, ...] = ()  # of workflows
        self._runtime: Runtime | None = None  # while it runs
        self.add_workflows(*workflows)

    @property
    def runtime(self) -> Runtime | None:
        """The parts of the running node, for the simulator and tests; they change without notice. None if it does not run."""
        return self._runtime

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
        """Open the store, resume the calls that an earlier run left open, and accept calls."""
        if self._runtime is not None:
            raise RuntimeError("the node is running already")
        try:
            await Runtime.open(self._parts, self.registry, self.tools, self._settings, self._wired)
            self._begin_handoffs()
        except BaseException:
            await self.close()
            raise

    def _wired(self, runtime: Runtime) -> None:
        """Keep the runtime, before its first call."""
        runtime.path.hand_off = self._hand_off
        runtime.path.workflows = lambda: self.workflows
        self._runtime = runtime
        if self._definitions:
            self.workflows.add(*self._definitions)

    def _hand_off(self, parent: Call, draft: Draft, expected: ExpectedOutput | None) -> Coroutine[Any, Any, Reply]:
        """Hand work off as a child call, through the queue, which is made on first use."""
        from comity.runtime.handoff.child import hand_off  # noqa: PLC0415  few agents hand anything off

        return hand_off(self._path, lambda: self.handoffs, parent, draft, expected)

    async def close(self) -> None:
        """Refuse new calls, cancel running ones, make everything durable and close the store; then raise agents' errors."""
        runtime = self._runtime
        if runtime is not None:
            try:
                await runtime.close()
            finally:
                self._runtime = None

    def elsewhere(
        self, store: str | Path | None, engine: Engine | None = None, *, takes_handoffs: bool | Collection[str] = False
    ) -> Node:
        """Return a node with the same agents, tools and rules on another store, or in memory.

        Without `takes_handoffs` (a node for one command), other nodes take handoffs for its agents.
        """
        return Node(
            self.registry,
            store=store,
            engine=engine,
            limits=self.limits,
            tools=self._tools,
            guardrails=self._settings.guardrails,
            privacy=self._settings.privacy,
            guidance=self._settings.guidance,
            telemetry=self._settings.telemetry,
            tool_rights=self._settings.inheritance.tool_rights.value,
            prices=self._settings.prices,
            threads_max=self._settings.threads_max,
            child_margin=self._settings.inheritance.margin,
            takes_handoffs=takes_handoffs,
            workflows=self._definitions,
        )

    def add_workflows(self, *workflows: Definition | str | Path) -> None:
        """Let the node know further workflows, whether it runs or not: definitions, paths of files, or texts of several lines.

        Raises `DefinitionError` with every mistake, and `OSError` for a file that cannot be read.
        """
        if workflows:
            from comity.node.workflow_files import definition_from  # noqa: PLC0415  few nodes run workflows

            made = tuple(map(definition_from, workflows))
            self._definitions += made
            if self._runtime is not None:
                self.workflows.add(*made)

    def add(self, agent: Agent) -> None:
        """Register a further agent."""
        self.registry.add(agent)
        if self._runtime is not None:
            self._runtime.path.placement.announce()
        for tool in agent.tools.values():
            if self._runtime is not None and tool is not None:
                self._runtime.path.toolbox.add(tool)
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
        user_id, tenant_id: the user on whose behalf the call runs, and the user's tenant.
        session_id: the session it belongs to; without one it has a session of its own. `parent_session_id` is the one above it.
        request_id: the idempotency key: a repeated request returns the first reply and runs nothing twice.
        objective, message, context, history: what the callee reads beside its inputs; see `Context.call`.
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
        runtime = self._runtime
        path = self._path if runtime is None else runtime.path
        identity = Identity(user_id, tenant_id, session_id, parent_session_id)
        remote = joined(traceparent, tracestate) if traceparent is not None or OTEL in MODULES or use.has_begun else None
        # Returned, not awaited: one more coroutine would cost a percent of a call.
        if type(target) is str and capability is not UNSAID and not more and not named:
            return path.call_root(draft, identity, request_id, remote)
        aimed = aim(path.registry, draft, more, named, Node.call.__kwdefaults__, ROOT_ONLY)
        return aimed.typed(path.call_root(aimed.draft, identity, request_id, remote))

    def call_written(
        self, target: str, capability: str, inputs: Any, *, user_id: str, **options: Unpack[RootOptions]
    ) -> Coroutine[Any, Any, Reply[Any]]:
        """Call as `call` does, for a door that only writes the reply: its data may come as JSON, a `msgspec.Raw`."""
        draft, identity = _drafted(target, capability, inputs, user_id, options, is_written=True)
        traceparent = options.get("traceparent")
        has_trace = traceparent is not None or OTEL in MODULES or use.has_begun
        remote = joined(traceparent, options.get("tracestate")) if has_trace else None
        return self._path.call_root(draft, identity, options.get("request_id"), remote)

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
        self, target: Any, capability: Any = UNSAID, inputs: Any = None, *more: Any, user_id: str, **named: Any
    ) -> CallHandle[Any]:
        """Begin a call for a user and return a handle to watch, cancel or await it; takes what `call` takes."""
        path = self._path
        log = EventLog()
        options = cast("RootOptions", {name: named.pop(name) for name in RootOptions.__annotations__ if name in named})
        draft, identity = _drafted(target, capability, inputs, user_id, options)
        read: Capability | None = None
        if type(target) is not str or capability is UNSAID or more or named:
            draft, read = aim(path.registry, draft, more, named, Node.call.__kwdefaults__, ROOT_ONLY)
        request_id = options.get("request_id")
        remote = joined(options.get("traceparent"), options.get("tracestate"))
        if (errand := path.placement.start_root(draft, identity, request_id, remote, log)) is not None:
            return CallHandle(path, errand, log, errand.arrival.request.request_id, read)
        opened = path.open_root(draft, identity, request_id, remote, log)
        if isinstance(opened, Call):
            opened.is_detached = True
            if opened.log is None:  # joined a call that no caller watched until now
                opened.watch(log)
            return CallHandle(path, opened, opened.log or log, opened.request.request_id, read)
        log.close()
        return CallHandle(path, opened, log, opened.request_id, read)

    def rehearse(
        self,
        target: str,
        capability: str,
        inputs: dict[str, Any] | None = None,
        *,
        user_id: str,
        **options: Unpack[RootOptions],
    ) -> Rehearsal:
        """Dry-run admission for a user's call: return the rules that pass, and the first that refuses.

        Nothing runs and nothing is stored; the actual call may get another answer later.
        """
        draft, identity = _drafted(target, capability, {} if inputs is None else inputs, user_id, options)
        return rehearse(self._path, draft, identity)

    def find_call(self, request_id: str, *, tenant_id: str | None = None, user_id: str | None = None) -> CallHandle[Any] | None:
        """Return a handle of a user's call that runs on this node, or that has ended and is stored; None for any other.

        With `tenant_id` and `user_id`, a call of another tenant or user is not found.
        """
        path = self._path
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
        return CallHandle(path, path.settlement.shown(asked.reply, asked), log, request_id, stored=asked)

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


def _drafted(
    target: str, capability: str, inputs: Any, user_id: str, options: RootOptions, *, is_written: bool = False
) -> tuple[Draft, Identity]:
    draft = Draft(
        target,
        capability,
        inputs,
        options.get("objective", ""),
        options.get("message", ""),
        options.get("timeout_ms"),
        options.get("priority", "normal"),
        options.get("context"),
        options.get("limits"),
        options.get("history", "full"),
        options.get("tools"),
        options.get("correlation_id", ""),
        is_written=is_written,
    )
    identity = Identity(
        user_id, options.get("tenant_id", "default"), options.get("session_id"), options.get("parent_session_id")
    )
    return draft, identity
