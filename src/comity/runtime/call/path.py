"""The one call path: every call, whichever door it came through, is opened, admitted, queued, run and settled here.

    open → admit → queue → run → settle

Opening to queueing is one step without an await, so what admission saw is still true when the call takes its place. Settling is
one step too: a call and everything below it end in one journal record.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace

from comity.core.agent.disclosure import spoken
from comity.core.agent.registry import Registry
from comity.core.call import admission
from comity.core.call.guardrail import Guardrail
from comity.core.call.inheritance import Inheritance
from comity.core.call.ledger import Account
from comity.core.call.limits import Limits
from comity.core.call.machine import CANCEL, FINISH, QUEUE, RUNNING, START
from comity.core.document.payload import unpack
from comity.core.document.schema import Checked, SchemaError
from comity.core.document.slices import Sliced
from comity.core.envelope.envelope import Error, Reply, Request, Status, Usage
from comity.core.envelope.request_id import chosen_id_problem
from comity.core.journal.records import Accepted, Record, Refused, Resumed, is_same
from comity.core.journal.terms import Terms
from comity.core.redaction import restore_value
from comity.core.session.session import EXPIRED_MS, is_first
from comity.core.tracing.telemetry import CallEnd
from comity.core.tracing.trace_context import TraceContext
from comity.errors import UnavailableError
from comity.ports import Clock, Ids, Journal
from comity.ports.observer import Observer
from comity.runtime.agent.activations import Activations, Lane
from comity.runtime.agent.threads import FunctionThreads
from comity.runtime.agent.watchdog import Watchdog
from comity.runtime.call import events
from comity.runtime.call.call import Call
from comity.runtime.call.context import Context
from comity.runtime.call.draft import Arrival, Draft, Identity, Reader, quoted
from comity.runtime.call.journaled import Steps
from comity.runtime.call.long_request import look_through
from comity.runtime.call.named import as_asked, open_named
from comity.runtime.call.placement import CallRoot, Placement
from comity.runtime.call.replay import again, go_on, known, newest, reused
from comity.runtime.call.run import Execution, RunInProcess
from comity.runtime.call.screening import screen
from comity.runtime.call.settle import Settlement, end_leftovers
from comity.runtime.call.slices import LONG_BYTES, Slices
from comity.runtime.call.snapshot import snapshot
from comity.runtime.call.stopping import Stopping, described
from comity.runtime.call.tasks import after_a_turn, all_ended, release
from comity.runtime.call.tools import Paused, Toolbox
from comity.runtime.call.turnstile import SHARED_NS, Turnstile
from comity.runtime.call.unread import unread
from comity.runtime.call.way import Way
from comity.runtime.session.memory import Memories
from comity.runtime.session.privacy import Answers, Privacy
from comity.runtime.session.sessions import Sessions
from comity.runtime.session.vault_key import Seal
from comity.runtime.session.view import SessionView
from comity.runtime.tracing import ambient, standing
from comity.runtime.tracing.ambient import MODULES, OTEL, use
from comity.runtime.tracing.recorder import Recorder

if TYPE_CHECKING:
    from comity.core.guidance.guidance import Finding
    from comity.runtime.guidance.guidance import LiveGuidance
    from comity.runtime.handoff.desk import Handoffs

_NOTHING = Checked({})


class Runs(Protocol):
    """Takes up runs of workflows that a node which is gone left open."""

    def adopt(self, request: Request, leftovers: dict[str, Request]) -> None:
        """Take up a run, given its root and the calls below it that were open."""
        ...

    def has(self, run_id: str) -> bool:
        """Return whether this node drives a run, or waits for what it waits for."""
        ...

    def forget_waiting(self) -> None:
        """Wait for no run that is not in memory: another node may hold it."""
        ...

    def sweep(self) -> None:
        """See to what other processes sent, to timers and to schedules."""
        ...


def _seen(arrival: Arrival, observer: Observer) -> Arrival:
    agent = observer.arrives(arrival.request, arrival.agent)
    return arrival if agent is arrival.agent else replace(arrival, agent=agent, capability=agent and arrival.capability)


class CallPath:
    """Calls under way on one node, and the way they take."""

    def __init__(
        self,
        registry: Registry,
        journal: Journal,
        clock: Clock,
        ids: Ids,
        limits: Limits,
        loop: asyncio.AbstractEventLoop,
        *,
        calls: dict[str, Call],
        threads: FunctionThreads,
        run_in_process: RunInProcess,
        sessions: Sessions,
        memories: Memories,
        toolbox: Toolbox,
        identity_key: bytes,
        inheritance: Inheritance,
        privacy: Privacy | None = None,
        guardrails: tuple[Guardrail, ...] = (),
        guidance: LiveGuidance | None = None,
        recorder: Recorder,
        watchdog: Watchdog | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.observer = observer
        self.registry = registry
        self.guidance = guidance
        self.sessions = sessions
        self.recorder = recorder
        self.memories = memories
        seal = Seal(sessions.cipher, None if privacy is None else privacy.may_hold)
        hide = None if privacy is None else privacy.hide_trace
        self.activations = Activations(
            journal, clock, start=self._start, fail=self._fail, hide=hide, seal=seal, observer=observer
        )
        self._stopping = Stopping(journal, clock, loop, self.activations, threads.runs)
        self.calls = calls  # by request id, until the reply has been delivered
        self.settlement = Settlement(
            calls,
            journal,
            clock,
            loop,
            sessions,
            memories,
            guardrails,
            recorder.ended,
            limits,
            privacy,
            self._stopping.stop,
            observer,
        )
        self.toolbox = toolbox
        self.identity_key = identity_key
        self.limits = limits
        self.inheritance = inheritance
        self.watchdog = watchdog
        self.handoffs: Callable[[], Handoffs] | None = None  # the node's, made when first needed
        self.workflows: Callable[[], Runs] | None = None  # as well
        self.is_closed = False
        self.placement = self.settlement.placement = Placement()  # alone, until `join`
        self.call_root: CallRoot = self.call_here  # for a user, wherever the agent is
        self._journal = journal
        self._reader = Reader(registry, limits, ids, inheritance)
        self.clock, self.ids = clock, ids  # for what works on behalf of a call
        self._privacy = privacy
        self._guardrails = guardrails
        self.slices = self.settlement.slices = Slices(lambda: journal.is_awaited)
        self.settlement.keeps_content = recorder.settings.captures_content
        self.answers = None if privacy is None else Answers(sessions, self.slices, privacy)
        # What is still to be judged is neither shown nor recorded; see `settlement`.
        self.holds_words = any(one.outbound is not None and not one.streams for one in guardrails)
        self.steps = Steps(journal, clock, ids, recorder, holds_words=self.holds_words, answers=self.answers, seal=seal)
        self.threads, self.run_in_process = threads, run_in_process
        self._execution = Execution(clock, ids, threads, run_in_process, self.answers, self.slices, observer)
        self.loop = loop
        self._turnstile = Turnstile(loop)
        self._newest: Identity | Request = Identity("", "", "")  # whose call came last; at first no user's
        self._shared_at = -SHARED_NS  # when a user called after another

    def join(self, cluster: Placement) -> None:
        """Share the work with other nodes from now on."""
        self.placement = self.settlement.placement = cluster
        self.call_root = cluster.call_root
        self.activations.put_away = cluster.release
        self.sessions.share()

    # --- open ---

    def open_root(
        self,
        draft: Draft,
        identity: Identity,
        request_id: str | None,
        remote: TraceContext | None = None,
        log: events.EventLog | None = None,
    ) -> Call | Reply:
        """Open a call by a user: return the call under way, one it joins, or the reply if there is one already."""
        now_ns = self.clock.now_ns()
        arrival = self._asked(draft, identity, request_id, now_ns // 1_000_000, remote)
        try:
            if request_id is not None:
                return self._open_named(arrival, request_id, now_ns, remote, log)
            return self.enter(arrival, None, now_ns, log, remote=remote)
        except UnavailableError as error:
            return unread(self, arrival.request, error)

    def _asked(
        self, draft: Draft, identity: Identity, request_id: str | None, now_ms: int, remote: TraceContext | None
    ) -> Arrival:
        if request_id is None:
            new_id, trace_id = self.ids.new_request(now_ms)
            arrival = self._reader.read(draft, identity, None, new_id, now_ms, trace_id)
            return arrival if remote is None else standing.placed(arrival, remote, self.ids)
        if chosen_id_problem(request_id):
            return self._reader.read(draft, identity, None, quoted(request_id)[:64], now_ms)  # quoted: it may be another's
        return self.arrive(draft, identity, request_id, now_ms, remote)

    def _open_named(
        self, arrival: Arrival, request_id: str, now_ns: int, remote: TraceContext | None, log: events.EventLog | None
    ) -> Call | Reply:
        request = arrival.request
        if problem := chosen_id_problem(request_id):
            refusal = admission.Refused("IDENTITY_INVALID", f"request_id {request.request_id} {problem}")
            return self.refuse(request, refusal, log)
        return self.seen(request) or self.enter(arrival, None, now_ns, log, remote=remote, is_named=True)

    def arrive(self, draft: Draft, identity: Identity, request_id: str, now_ms: int, remote: TraceContext | None) -> Arrival:
        """Return what a user asks as a request; `remote` is the trace it belongs to, which began elsewhere."""
        arrival = self._reader.read(draft, identity, None, request_id, now_ms)
        return arrival if remote is None else standing.placed(arrival, remote, self.ids)

    async def call_here(
        self,
        draft: Draft,
        identity: Identity,
        request_id: str | None,
        remote: TraceContext | None = None,
    ) -> Reply:
        """Call for a user on this node and return the reply."""
        now_ns = self.clock.now_ns()
        now_ms = now_ns // 1_000_000
        if request_id is None and remote is None:
            new_id, trace_id = self.ids.new_request(now_ms)
            arrival = self._reader.read(draft, identity, None, new_id, now_ms, trace_id)
        else:
            arrival = self._asked(draft, identity, request_id, now_ms, remote)
        if len(arrival.body) > LONG_BYTES:
            await self.slices.pause()
        request = arrival.request
        if request.user_id != self._newest.user_id or request.tenant_id != self._newest.tenant_id:
            if self._newest.user_id:
                self._shared_at = now_ns
            self._newest = request
        if self.calls and now_ns - self._shared_at < SHARED_NS and (turn := self._turnstile.enter(request)) is not None:
            await turn
            now_ns = self.clock.now_ns()
        try:
            if request_id is None:
                opened = self.enter(arrival, None, now_ns, None, remote=remote)
            else:
                opened = self._open_named(arrival, request_id, now_ns, remote, None)
        except UnavailableError as error:
            opened = unread(self, arrival.request, error)
        if isinstance(opened, Reply):
            return await self.told(opened)
        # Not awaited by `reply_of`: a coroutine more would be a percent of a call.
        waiter = self._waiter(opened)
        try:
            await waiter
        except asyncio.CancelledError:
            self._stop_waiting(opened, waiter)
            raise
        way, reply = opened.way, opened.reply
        assert reply is not None
        return reply if way is None or not way.is_moved else await self.placement.go_on(opened.request)

    def call_child(self, parent: Call, draft: Draft) -> Coroutine[Any, Any, Reply]:
        """Call on behalf of a call under way; the reply is there when the coroutine ends."""
        # Numbered before it runs: parallel calls keep their ids when the tree is run again, whichever of them comes first then.
        parent.calls_made += 1
        return self.call_under(parent, draft, f"{parent.request.request_id}.{parent.calls_made}", parent.calls_made)

    async def call_under(
        self,
        parent: Call,
        draft: Draft,
        request_id: str,
        number: int,
        identity: Identity | None = None,
        *,
        is_repeated: bool | None = None,
    ) -> Reply:
        """Call under an id below that of a call under way; `is_repeated` is None unless an agent chose the id (see `named`)."""
        above = parent.request
        if (pause_ms := above.limits.pause_ms(number)) and not is_repeated:
            await parent.wait_in_line(pause_ms)
        if parent.state is not RUNNING:
            # A task that outlived its call has no budget, no deadline and no caller to answer to.
            error = Error.of("CALL_CANCELLED", f"the call {above.request_id} has ended")
            return await after_a_turn(Reply(status=Status.CANCELLED, error=error))
        now_ns = self.clock.now_ns()
        if identity is None:
            identity = Identity(above.user_id, above.tenant_id, above.session_id)
        arrival = self._reader.read(draft, identity, above, request_id, now_ns // 1_000_000)
        if OTEL in MODULES or use.has_begun:
            arrival = standing.hung(arrival, above)
        if (elsewhere := self.placement.call_under(arrival, parent, is_repeated=bool(is_repeated))) is not None:
            return await after_a_turn(parent.given(await elsewhere))
        # Only a call that an earlier run began can have made this one before, unless an agent chose its id.
        is_again = parent.top.leftovers is not None
        try:
            if is_repeated is not None:
                opened = open_named(self, self._journal, parent, arrival, now_ns)
            elif is_again:
                opened = again(self, self._journal, parent, arrival, now_ns)
            else:
                opened = self.enter(arrival, parent, now_ns, None)
        except UnavailableError as error:
            opened = unread(self, arrival.request, error, is_again=is_again)
        if isinstance(opened, Reply):
            return await after_a_turn(parent.given(opened))
        reply = await self.reply_of(opened)
        if opened.has_moved and (elsewhere := self.placement.call_under(arrival, parent, is_repeated=False)) is not None:
            reply = await elsewhere
        return reply if reply.error is None and not reply.metadata else parent.given(reply)

    def count(self, parent: Call, usage: Usage) -> None:
        """Charge what a call of an earlier run used: a tree has one budget for all its runs."""
        self.placement.count_replayed(parent, usage)
        parent.calls_below += 1 + usage.calls
        self.charge(parent, usage.prompt_tokens, usage.completion_tokens)

    def seen(self, request: Request) -> Call | Reply | None:
        """Return the call or reply already known under this request's id, or a refusal if it was another request."""
        running = self.calls.get(request.request_id)
        found = known(request, self._journal, is_alone=self.placement.is_alone) if running is None else running
        if isinstance(found, Call) and not is_same(request, found.request):
            found = reused(request)
        if isinstance(found, admission.Refused):
            asked = as_asked(request)
            return self.refuse(asked, reused(asked) if found.code == reused(request).code else found)
        is_root = request.parent_id is None
        return self.settlement.shown(found, request) if isinstance(found, Reply) and is_root else found

    # --- admit ---

    def enter(
        self,
        arrival: Arrival,
        parent: Call | None,
        now_ns: int,
        log: events.EventLog | None,
        leftovers: dict[str, Request] | None = None,
        lane: Lane[Call] | None = None,
        remote: TraceContext | None = None,
        way: Way | None = None,
        is_named: bool = False,
    ) -> Call | Reply:
        """Admit the call and give it its place, or refuse it. Nothing is awaited in between.

        Work for a receiver gets a place in its lane instead of one in this process.
        """
        if self.observer is not None:
            arrival = _seen(arrival, self.observer)
        request, agent, capability = arrival.request, arrival.agent, arrival.capability
        now_ms = now_ns // 1_000_000
        watcher = log if parent is None else parent.log
        if self.is_closed or self._journal.failure is not None:  # what cannot be recorded must not be begun
            is_closing = admission.Refused("NODE_CLOSED", "this node is closing")
            return self.refuse(request, is_closing if self.is_closed else self.settlement.stopped() or is_closing, watcher)
        checked = _NOTHING
        if capability is not None and not arrival.problems:
            try:
                checked = (capability.input_checker or capability.inputs).check(arrival.body)
            except SchemaError as error:
                return self.refuse(request, admission.Refused("TARGET_MISCONFIGURED", str(error)), watcher)
        if parent is None:
            names_none = request.session_id == request.root_id and request.parent_session_id is None
            is_known = is_named or leftovers is not None
            live = None if names_none and not is_known else self.sessions.bind(request, now_ms, is_known)
        else:
            is_delegated = request.parent_session_id is not None
            live = self.sessions.bind_below(request, self.sessions.live_of(parent), now_ms) if is_delegated else parent.live
        seat = None if agent is None else self.activations.seat(agent, request, way) if lane is None else lane
        limits = request.limits if way is None or way.loan is None else way.loan.of(request.limits)
        account = Account(limits) if parent is None else parent.account.narrowed(limits)
        breaker, wait_ms, has_fallback = None, None, False
        if self.settlement.breakers.known and agent is not None and (way is None or way.fence is not None):
            breaker, wait_ms, has_fallback = self.settlement.breakers.gate(agent, request.capability, now_ms)
        place = 0 if seat is None else seat.place()
        findings: tuple[Finding, ...] = ()
        if self.guidance is not None and capability is not None and capability.touching is not None and not checked.problems:
            findings = self.guidance.findings(capability.touching, unpack(arrival.body))
        is_sound = not arrival.problems and not checked.problems and not findings and wait_ms is None and way is None
        is_own = live is None or (live.session.user_id == request.user_id and now_ms - live.used_at < EXPIRED_MS)
        if not (is_sound and is_own and admission.admits_user(request, agent, capability, place, now_ms)):
            world = snapshot(
                self.registry, arrival, parent, live, checked, seat, place, account, wait_ms, findings, now_ms, way
            )
            refusal = admission.admit(request, world, now_ms)
            if refusal is not None:
                return self.refuse(request, refusal, watcher)
        assert agent is not None and capability is not None and seat is not None  # noqa: PT018  what `known` proved
        trace = remote if parent is None else parent.remote
        call = Call(
            request, parent, agent, capability, checked.value, seat, account, now_ns, live, watcher, leftovers, way, trace
        )
        note: str | Sliced[str | admission.Refused] = ""
        privacy = self._privacy
        is_concerned = privacy is not None and (
            bool(request.message or request.objective or capability.clear or request.context) or privacy.may_hold(arrival.body)
        )
        if is_concerned or findings or self._guardrails:
            screened = screen(self.sessions, call, arrival.body, findings, self._guardrails, privacy, is_concerned=is_concerned)
            if isinstance(screened, admission.Refused):
                return self.refuse(call.request, screened, watcher)
            note = screened
        if lane is not None and lane.takes:
            lane.take(note)
            return call
        if has_fallback or (way is not None and way.fence is None):  # a call that is sent has another node's breaker
            call.skips_primary = True
        elif breaker is not None:
            call.probe = breaker.enter(now_ms)
        if isinstance(note, str):
            self.reserve(call)
            self._accept(call, now_ms, note)
        else:
            look_through(self, call, note, lambda said: self._accept(call, self.now_ms(), said))
        if self.observer is not None:
            self.observer.entered(call)
        return call

    def session_of(self, call: Call) -> SessionView:
        """Return a call's view of its session."""
        return SessionView(self.sessions, self.memories, call, self._privacy)

    def refuse(self, request: Request, refusal: admission.Refused, log: events.EventLog | None = None) -> Reply:
        """Refuse a request: one audit row, one reply that says what to do instead, and nothing else."""
        error = refusal.error
        advice = f"{error.message}. {error.advice}"
        reply = Reply(
            status=Status.REFUSED,
            error=error,
            message=spoken(error, advice) if request.parent_id is None else advice,
            request_id=request.request_id,
            source=request.target,
        )
        now_ns = self.clock.now_ns()
        now_ms = now_ns // 1_000_000
        root = None if request.parent_id is None else self.calls.get(request.root_id)
        # What an earlier run had begun under this id is not taken up: it ends before its caller gets the refusal.
        begun = () if root is None or not root.leftovers else end_leftovers(root, request.request_id, now_ms)
        terms = self.placement.refusal_terms(request)
        self._journal.append((*begun, Refused(as_asked(request), reply, now_ms, refusal.reason)), None, terms)
        if self.recorder.ended is not None:
            self.recorder.ended(CallEnd(request, reply, now_ns, now_ns))
        if log is not None:
            log.add(events.Kind.REFUSED, now_ms, request, {"code": error.code, "message": error.message})
        return reply

    # --- queue ---

    def reserve(self, call: Call) -> None:
        """Charge a call and let it be known: under its caller, and by its id."""
        if call.parent is None:
            call.account.calls_used += 1  # of an account without one above
        else:
            call.account.spend_call()
            call.attach(call.parent)
        self.calls[call.request.request_id] = call

    def _accept(self, call: Call, now_ms: int, note: str) -> None:
        request, parent, live, way = call.request, call.parent, call.live, call.way
        was_accepted = call.leftovers is not None
        if parent is not None and parent.top.leftovers is not None:
            was_accepted = parent.top.leftovers.pop(request.request_id, None) is not None
        if way is not None:
            self.placement.accept(call, now_ms, note)
        elif not was_accepted:
            self._journal.append((Accepted(request, now_ms, self._journal.node_id, note),))
        elif parent is not None:  # made again: with a new deadline, within its caller's
            self._journal.append((Resumed(request, self._journal.node_id, now_ms),))
        self.settlement.deadlines.add(call)
        if way is None or way.fence is not None:
            call.move(QUEUE)
            if live is not None and (parent is None or is_first(request)):
                self.sessions.use(live, request, now_ms)
                if request.message and is_first(request):
                    self.sessions.hear(live, call.said or request, is_again=call.is_again)
        if call.log is not None:
            call.log.add(events.Kind.QUEUED, now_ms, request)
        if way is None or way.fence is not None:
            self.activations.admit(call)
        else:
            self.placement.carry(call, way)
        if self.watchdog is not None and self.watchdog.is_parked:
            self.watchdog.wake()

    # --- run ---

    def _start(self, call: Call) -> None:
        if self.observer is not None:
            self.observer.starting(call)
        call.move(START)
        call.seat.holders[call] = None
        if call.log is not None:
            call.log.add(events.Kind.STARTED, self.clock.now_ns() // 1_000_000, call.request, text=call.capability.doing)
        call.task = self.loop.create_task(self._run(call), name=call.request.request_id)

    async def _run(self, call: Call) -> None:
        if OTEL in MODULES or use.has_begun:
            ambient.enter(standing.place_of(self.recorder, call, call.request))
        try:
            reply = await self._execution.run(call, Context(self, call))
        except asyncio.CancelledError:
            # Settled already by the code that cancelled the call; if not, the agent cancelled itself.
            if call.state is RUNNING:
                self.settlement.cancel(call, "the agent's task was cancelled")
        except Paused as paused:
            self.settlement.pause(call.top, paused.approval, partial(go_on, self, self._journal, paused.approval.id))
        else:
            self.settlement.settle(call, FINISH, reply)
        finally:
            # What the call no longer needs goes at once: it may wait a while for the disk, and the collector would look at it.
            call.task = call.arguments = None
            self.activations.leave(call)

    def _fail(self, call: Call, why: str) -> None:
        """End a call whose agent could not be brought to memory."""
        error = Error.of("TARGET_CRASHED", why)
        self.settlement.settle(call, CANCEL, Reply(status=Status.ERROR, error=error, message=why))

    def progress(self, call: Call, data: Any) -> None:
        """Keep the newest partial data and tell who watches."""
        call.partial = data
        self.tell(call, events.Kind.PROGRESS, data)

    def tell(self, call: Call, kind: events.Kind, data: Any) -> None:
        """Tell who watches, with the session's hidden values back in their places."""
        if call.log is not None:
            vault = self.sessions.vault_of(call)
            data = data if vault is None else restore_value(data, vault)
            add = call.log.put_aside if self.holds_words else call.log.add
            add(kind, self.clock.now_ns() // 1_000_000, call.request, data)

    def charge(self, call: Call, prompt_tokens: int, completion_tokens: int) -> bool:
        """Charge tokens to the call, to every call above it and to the tree's budget; return whether they were there."""
        call.use_tokens(prompt_tokens, completion_tokens)
        were_there = call.account.spend_tokens(prompt_tokens + completion_tokens)
        return self.placement.top_up(call, were_there=were_there)

    def now_ms(self) -> int:
        """Return the time."""
        return self.clock.now_ns() // 1_000_000

    async def reply_of(self, call: Call) -> Reply:
        """Wait for a call's reply. If its last waiter is cancelled, the call is cancelled too, unless a handle holds it."""
        if not call.is_delivered:
            waiter = self._waiter(call)
            try:
                await waiter
            except asyncio.CancelledError:
                self._stop_waiting(call, waiter)
                raise
        assert call.reply is not None
        return call.reply

    def _waiter(self, call: Call) -> asyncio.Future[None]:
        """Return a future that is done once the reply has been delivered."""
        waiter: asyncio.Future[None] = self.loop.create_future()
        if call.is_delivered:
            waiter.set_result(None)
        elif call.waiters is None:
            call.waiters = [waiter]
        else:
            call.waiters.append(waiter)
        return waiter

    def _stop_waiting(self, call: Call, waiter: asyncio.Future[None]) -> None:
        if call.waiters is not None and waiter in call.waiters:
            call.waiters.remove(waiter)
            if not call.waiters and not call.is_detached:
                self.settlement.cancel(call, "its caller stopped waiting")

    async def durable(self, records: Sequence[Record] = (), terms: Terms | None = None) -> None:
        """Wait until everything recorded so far is durable, and these records after it; raises what stopped them."""
        waiter: asyncio.Future[None] = self.loop.create_future()
        self._journal.append(records, partial(release, waiter), terms)
        await waiter

    async def recorded(self) -> None:
        """Wait until a refusal is on disk; a store that failed can record none, which is what the refusal says then."""
        with contextlib.suppress(UnavailableError):
            await self.durable()

    async def told(self, reply: Reply) -> Reply:
        """Return an already-known reply after flushing the journal; re-read `needs_input`: the call may have resumed."""
        await self.recorded()
        return await newest(self, self._journal, reply) if reply.status is Status.NEEDS_INPUT else reply

    async def close(self) -> None:
        """Cancel what runs, wait for all code, also of calls that have ended before, and drop the timers."""
        self.is_closed = True
        calls = [*self.activations.running, *self.calls.values()]
        for call in [call for call in self.calls.values() if call.parent is None]:
            self.settlement.cancel(call, "the node is closing")
        running = {call.task: described(call) for call in calls if call.task is not None}
        others = [*self.settlement.breakers.close(), *self.activations.stop()]
        await all_ended(running | {task: task.get_name() for task in others})
        self._stopping.close()
        self.activations.close()
        self.settlement.deadlines.close()
        with contextlib.suppress(UnavailableError):  # the store is gone, and every call got that error
            self.sessions.save_ended()
