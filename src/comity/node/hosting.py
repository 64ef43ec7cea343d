"""The methods of a node besides calls: approvals, sessions, audit, spans, handoffs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec.structs import replace

from comity.core.agent.registry import Registry
from comity.core.agent.tool import Tool
from comity.core.call.admission import Refused
from comity.core.envelope.envelope import Reply, Request
from comity.core.journal.records import Noted
from comity.core.journal.retention import Retention
from comity.core.session.conversation import Turn
from comity.core.session.session import Session
from comity.core.tracing.telemetry import CallEnd, ExportStats
from comity.core.tracing.telemetry import Settings as Telemetry
from comity.errors import UnavailableError
from comity.node.audit import Audit
from comity.node.runtime import Runtime, Settings
from comity.ports import Clock, Engine, Ids, Journal, Reader
from comity.runtime.agent.watchdog import Lag
from comity.runtime.call.draft import Identity, check_names, named, recordable
from comity.runtime.call.path import CallPath
from comity.runtime.call.resume import take_up
from comity.runtime.call.stopping import Stray
from comity.runtime.call.tools import Approval
from comity.runtime.session.approvers import Approver, outcome, question
from comity.runtime.session.clear import in_clear
from comity.runtime.session.live import Live

if TYPE_CHECKING:
    from comity.core.agent.agent import Agent
    from comity.engines.memory.spans import MemorySpans
    from comity.engines.sqlite.spans.store import SpanStore
    from comity.runtime.guidance.guidance import LiveGuidance
    from comity.runtime.handoff.desk import Handoffs
    from comity.runtime.session.memory import UserMemory
    from comity.runtime.session.view import SessionView
    from comity.runtime.workflow.workflows import Workflows


class Hosting:
    """The part of a node that people and programs look into; `Node` opens and closes what it shows."""

    registry: Registry
    _clock: Clock
    _ids: Ids
    _journal: Journal
    _store: Path | None
    _settings: Settings
    _engine: Engine
    _tools: tuple[Tool, ...]
    _runtime: Runtime | None

    # --- people's answers ---

    def approvals(self, *, by: str = "", tenant_id: str | None = None) -> list[Approval]:
        """Return all approvals that tools have asked for, answered or not; with `tenant_id`, those of that tenant.

        Inputs are shown as `by` may see them: the call's own user sees all values, other people those that
        `Privacy(approvers=…)` grants them.
        """
        path, person = self._path, Approver(by, tenant_id)
        found = [one for one in path.toolbox.approvals() if person.sees(one)]
        return [question(one, person, self._settings.privacy, path.sessions) for one in found] if by else found

    async def decide(
        self, approval_id: str, *, granted: bool, by: str, tenant_id: str | None = None, reason: str = ""
    ) -> Reply | None:
        """Answer an approval and resume the paused call; return its reply, or None if there is no such approval.

        `approval_id` names the approval, `granted` is the answer, and `by` the person who gave it; with `tenant_id`, a person
        of that tenant, who finds only that tenant's approvals. The agent that asked gets the `reason` of a denial. The reply is
        shown as `by` may see it; see `approvals`.

        Raises `CallerError`, and records no answer, if this node lacks the agent or the tool of the call, and `RefusedError`
        APPROVAL_ANSWERED if the opposite answer was given before. If the same answer was given before, the reply has a warning.
        """
        path, person = self._path, Approver(by, tenant_id)
        check_names(approval_id=approval_id)
        approval = path.toolbox.approval(approval_id)
        if approval is None or not person.sees(approval):
            return None
        if path.placement.resumes_here:
            path.toolbox.check_goes_on(approval)
        repeated = await path.toolbox.decide(approval, granted=granted, by=by, reason=reason)
        reply = await take_up(path, self._journal, approval)
        stored = self._journal.call(approval.root_id)
        if reply is None and stored is not None and stored.reply is not None:
            reply = path.settlement.shown(stored.reply, stored)
        if reply is None:
            return None
        reply = outcome(approval, reply, stored, person, self._settings.privacy, path.sessions)
        return replace(reply, warnings=(*reply.warnings, repeated)) if repeated else reply

    def session(self, session_id: str, *, tenant_id: str = "default") -> Session | None:
        """Return the current session, or None."""
        live = self._live_session(tenant_id, session_id)
        return None if live is None else self._path.sessions.current(live)

    def history(self, reference: str, *, user_id: str, tenant_id: str = "default") -> tuple[Turn, ...]:
        """Return the turns that a history reference names (`session:ID@VERSION?history=POLICY`), as `session` shows them.

        Raises `RefusedError` IDENTITY_MISMATCH for a reference that names no session of this user.
        """
        from comity.runtime.session.history import resolve  # noqa: PLC0415  few programs are given references

        check_names(tenant_id=tenant_id, user_id=user_id)
        return resolve(self._path.sessions, tenant_id, user_id, reference)[1]

    def session_for(self, token: str, *, user_id: str | None = None, tenant_id: str = "default") -> SessionView:
        """Return the session of a running call, as its agent sees it, for an external agent with the call's token.

        `user_id` of `tenant_id` is the token's presenter, if known. Raises `RefusedError` for a token that is forged, has
        expired, was made for another user, or whose call has ended.
        """
        from comity.doors.documents import call_of  # noqa: PLC0415  dialects are slow to import and rarely spoken

        path = self._path
        sender = None if user_id is None else Identity(user_id, tenant_id, None)
        return path.session_of(call_of(path, token, path.now_ms(), sender))

    def resume_session(self, session_id: str, *, tenant_id: str = "default") -> bool:
        """Resume an expired session; return whether it exists."""
        live = self._live_session(tenant_id, session_id)
        if live is not None:
            self._path.sessions.resume(live)
        return live is not None

    def export_session(self, session_id: str, *, tenant_id: str = "default") -> dict[str, Any] | None:
        """Return a session's content with personal data in clear, without inputs and replies of its calls."""
        live = self._live_session(tenant_id, session_id)
        return None if live is None else in_clear(msgspec.to_builtins(self._path.sessions.current(live)), live.vault)

    def hidden_in(self, session_id: str, *, tenant_id: str = "default") -> dict[str, int]:
        """Return how many values of personal data a session hides, by kind."""
        live = self._live_session(tenant_id, session_id)
        return {} if live is None or live.vault is None else live.vault.counts()

    async def reveal(self, session_id: str, token: str, *, by: str, tenant_id: str = "default") -> Any:
        """Return the hidden value of a session's token, or None, once the audit row that names `by` is durable."""
        live = self._live_session(tenant_id, session_id)
        value = None if live is None or live.vault is None else live.vault.value(token)
        if value is None:
            return None
        path = self._path
        now_ms = path.now_ms()
        request_id, trace_id = path.ids.new_request(now_ms)
        who = named(Identity(by, tenant_id, None))
        request = Request(
            request_id, "(person)", "REVEAL", who.user_id, path.limits, now_ms, now_ms,
            root_id=request_id, correlation_id=request_id, tenant_id=who.tenant_id, session_id=session_id, trace_id=trace_id,
        )  # fmt: skip
        kind = token.strip("[]").rsplit("_", 1)[0]
        await path.durable((Noted(request, f"personal data was revealed: {kind}", now_ms),))
        return value

    def masked(self, data: Any) -> Any:
        """Return JSON data with personal data replaced by tokens, irreversibly."""
        privacy = self._settings.privacy
        return data if privacy is None else msgspec.json.decode(privacy.hide_kept(msgspec.json.encode(data)))

    def memory(self, user_id: str, *, tenant_id: str = "default") -> UserMemory:
        """Return the memory of a user across sessions, to be listed, corrected and erased."""
        from comity.runtime.session.memory import UserMemory  # noqa: PLC0415  few programs look into it

        check_names(tenant_id=tenant_id, user_id=user_id)
        return UserMemory(self._path.memories, self._path.durable, tenant_id, user_id)

    async def erase_person(self, user_id: str, *, tenant_id: str = "default") -> int:
        """Erase a person: memory, and every session with its calls, replies and spans; return the number of records.

        The audit, which holds no content, stays complete.
        """
        from comity.runtime.session.erasure import erase_person  # noqa: PLC0415  few processes erase anything

        path = self._path
        check_names(tenant_id=tenant_id, user_id=user_id)
        return await erase_person(path, self._journal, tenant_id, user_id)

    async def erase_session(self, session_id: str, *, tenant_id: str = "default") -> int:
        """Erase the content of a session; return the number of records. The audit stays complete.

        Facts about the user that were last reported in this session are erased from the memory too. Calls that run in the
        session are cancelled, except the call whose code asks for this.
        """
        from comity.runtime.session.erasure import erase_session  # noqa: PLC0415  few processes erase anything

        path = self._path
        check_names(tenant_id=tenant_id, session_id=session_id)
        return await erase_session(path, self._journal, tenant_id, session_id)

    # --- views ---

    @property
    def failure(self) -> UnavailableError | None:
        """The error why the node accepts nothing: it does not run, or its store could not be written. None while it works."""
        return _not_running() if self._runtime is None else self._journal.failure

    @property
    def node_id(self) -> str:
        """Name of this node in its store, new each time it starts."""
        return self._journal.node_id

    @property
    def store(self) -> Path | None:
        """Path of the store; None for a node in memory."""
        return None if self._store is None else Path(self._store)

    def peers(self) -> list[str]:
        """Return the known other nodes on the same store; some may be dead."""
        return [] if self._engine.is_alone else list(self._engine.transport.peers())

    def running(self) -> dict[str, int]:
        """Return the number of calls in progress per agent on this node, queued ones included."""
        counts: dict[str, int] = {}
        for call in self._path.calls.values():
            counts[call.agent.id] = counts.get(call.agent.id, 0) + 1
        return counts

    def queued(self) -> dict[str, int]:
        """Return the number of queued calls per agent of this node, without agents that have none."""
        counts: dict[str, int] = {}
        for seat in self._path.activations.seats():
            if seat.mailbox.waiting:
                counts[seat.agent.id] = counts.get(seat.agent.id, 0) + seat.mailbox.waiting
        return counts

    def watch_ends(self, listener: Callable[[CallEnd], None]) -> None:
        """Call `listener` with every call, tool use and request to a model that ends from now on, before its span is made."""
        path = self._path
        recorded = path.recorder.ended

        def both(end: CallEnd) -> None:
            listener(end)
            if recorded is not None:
                recorded(end)

        path.recorder.ended = path.settlement.ended = both

    @property
    def telemetry(self) -> Telemetry:
        """How spans are recorded and exported."""
        return self._path.recorder.settings

    @property
    def retention(self) -> Retention:
        """How long records are kept."""
        return self._settings.retention

    def breakers(self) -> dict[tuple[str, str], str]:
        """Return the state of the breaker of each agent and capability that ever failed on this node."""
        return {key: str(one.state) for key, one in self._path.settlement.breakers.known.items()}

    def reset_breaker(self, agent_id: str, capability: str) -> bool:
        """Close a breaker at once; return whether there is one."""
        return self._path.settlement.breakers.reset(agent_id, capability)

    def open_reader(self) -> Reader:
        """Return a new reader of calls, trees, audit, sessions and handoffs; close it after use.

        If its `is_aside` is true, use it in another thread than the event loop's, one thread at a time.
        """
        if not hasattr(self._engine, "open_reader"):  # of another package, written before engines had readers
            raise UnavailableError("this node's store cannot be listed", code="STORE_UNAVAILABLE", retryable=False)
        return self._engine.open_reader()

    @property
    def audit(self) -> Audit:
        """The audit trail."""
        return Audit(self._journal)

    @property
    def handoffs(self) -> Handoffs:
        """The handoff queue, as managers and receivers of this node use it."""
        runtime = self._open
        if runtime.desk is None:
            from comity.runtime.handoff.desk import Handoffs  # noqa: PLC0415  few nodes hand anything off

            path, settings = runtime.path, self._settings
            runtime.desk = Handoffs(
                path, self._journal, self._clock, self._ids, privacy=settings.privacy, guardrails=settings.guardrails
            )
            if self._hosts_handoffs:
                from comity.runtime.handoff.hosted import HostedAgents  # noqa: PLC0415

                runtime.hosted = HostedAgents(path, runtime.desk, settings.tenants)
        return runtime.desk

    @property
    def _hosts_handoffs(self) -> bool:
        """Whether this node takes handoffs for its agents."""
        is_able = hasattr(self._journal, "handoffs")
        return is_able and bool(self._settings.tenants) and any(agent.takes_handoffs for agent in self.registry)

    def _begin_handoffs(self) -> None:
        # A single node in memory starts this with its first handoff; otherwise other nodes may hand work off.
        if (self._store is not None or not self._engine.is_alone) and self._hosts_handoffs:
            _ = self.handoffs

    def _host(self, agent: Agent) -> None:
        if self._runtime is not None and self._runtime.hosted is not None:
            self._runtime.hosted.add((agent,))

    @property
    def workflows(self) -> Workflows:
        """The workflows the node knows and their runs."""
        runtime = self._open
        if runtime.workflows is None:
            from comity.runtime.workflow.workflows import Workflows  # noqa: PLC0415  few nodes run workflows

            runtime.workflows = Workflows(runtime.path, self._journal)
        return runtime.workflows

    @property
    def spans(self) -> SpanStore | MemorySpans:
        """The store of spans of calls, tools and insights; await `flush_spans` before reading recent ones."""
        return cast("SpanStore | MemorySpans", self._path.recorder.spans)  # a node makes no others

    def record_refusal(
        self, code: str, message: str, *, user_id: str, tenant_id: str = "default", target: str, capability: str
    ) -> None:
        """Audit a request that was refused before it became a call."""
        path = self._path
        now_ms = path.now_ms()
        request_id, trace_id = path.ids.new_request(now_ms)
        who = named(Identity(user_id, tenant_id, None))
        request = Request(
            request_id, recordable(target), recordable(capability), who.user_id, path.limits, now_ms, now_ms,
            root_id=request_id, correlation_id=request_id, tenant_id=who.tenant_id, session_id=request_id, trace_id=trace_id,
            span_id=path.ids.span_id(),
        )  # fmt: skip
        path.refuse(request, Refused(code, message))

    async def flush_spans(self) -> None:
        """Wait until all recorded spans are in `spans`. Raises `UnavailableError` if some were lost."""
        await self._path.recorder.flush()

    @property
    def export(self) -> ExportStats:
        """The statistics of the span export, with the number of lost spans."""
        return self._path.recorder.stats

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools of the node and those its agents brought."""
        return (*self._tools, *(tool for agent in self.registry for tool in agent.tools.values() if tool is not None))

    @property
    def guidance(self) -> LiveGuidance | None:
        """The guidance in force; None if the node has none."""
        return None if self._runtime is None else self._runtime.path.guidance

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems of the declarations, found when the node started; see `core.agent.cross_check`."""
        return () if self._runtime is None else self._runtime.problems

    @property
    def lags(self) -> list[Lag]:
        """The latest times a call blocked the event loop."""
        watchdog = self._path.watchdog
        return [] if watchdog is None else list(watchdog.lags)

    @property
    def strays(self) -> list[Stray]:
        """The calls that have ended while their code, which ignores its cancellation, still runs without a slot."""
        found = self._path.activations.strays.items()
        return [Stray(one.request.request_id, one.request.target, one.request.capability, since) for one, since in found]

    def _live_session(self, tenant_id: str, session_id: str) -> Live | None:
        check_names(tenant_id=tenant_id, session_id=session_id)
        sessions = self._path.sessions
        live = sessions.find(tenant_id, session_id)
        if live is None or not sessions.is_there(live):  # another node may have changed it since, or erased it
            return None
        return live

    @property
    def _open(self) -> Runtime:
        if self._runtime is None:
            raise _not_running()
        return self._runtime

    @property
    def _path(self) -> CallPath:
        return self._open.path


def _not_running() -> UnavailableError:
    return UnavailableError("the node is not running; use `async with Node(...)`", code="NODE_CLOSED")
