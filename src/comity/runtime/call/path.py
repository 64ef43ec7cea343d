"""The one call path: every call, through whichever door it came, takes these steps in this order.

    open      `call_here`, `call_under`, `open_root`: a draft becomes a request; a known request id gets the known reply
    look      `enter`: a snapshot of the session, the agent's queue, budgets, breakers and guidance
    admit     `core/call/admission.py`: the first rule that refuses, or none
    screen    `screening.py`: guardrails, and personal data hidden from the callee
    accept    `_accept`: the journal records the call
    place     `_accept`: queue it at its agent here, or send it to the node that holds the agent (`placement.py`)
    run       `_run`: `run.py` runs the capability's implementations
    read      `run.read_result`: the return value becomes a reply: checked, personal data hidden
    settle    `settle.py`: a call and everything below it end in one record
    deliver   `settle.py`: resolve the waiters, once the reply is durable where the node promises that

From look to place is one step without an await, so what admission saw is still true when the call takes its place.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from comity.core.call import admission
from comity.core.call.ledger import Account
from comity.core.call.machine import CANCEL, FINISH, QUEUE, RUNNING, START
from comity.core.document.payload import unpack_long
from comity.core.document.schema import Checked, SchemaError
from comity.core.document.slices import ONE_GO_BYTES, Sliced
from comity.core.envelope.envelope import Error, ExpectedOutput, Reply, Request, Status
from comity.core.envelope.request_id import as_asked, as_refused, chosen_id_problem
from comity.core.journal.records import Accepted, Resumed, is_same
from comity.core.session.session import EXPIRED_MS, is_first
from comity.core.tracing.trace_context import TraceContext
from comity.core.units import NS_PER_MS
from comity.errors import UnavailableError
from comity.ports import Journal, ambient
from comity.ports.ambient import MODULES, OTEL, use
from comity.ports.observer import Observer
from comity.runtime.agent.activations import Activations, Lane
from comity.runtime.call import events
from comity.runtime.call.call import Call
from comity.runtime.call.draft import Arrival, Draft, Identity, Reader
from comity.runtime.call.environment import Environment
from comity.runtime.call.journaled import Steps
from comity.runtime.call.long_request import LongRequests
from comity.runtime.call.pace import user_of
from comity.runtime.call.placement import CallRoot, Placement
from comity.runtime.call.replay import Runs, count_begun, reused
from comity.runtime.call.replies import Replies
from comity.runtime.call.run import Batches, Execution
from comity.runtime.call.screening import screen
from comity.runtime.call.settle import Settlement
from comity.runtime.call.slices import LONG_BYTES
from comity.runtime.call.snapshot import admits_below, snapshot
from comity.runtime.call.stopping import Stopping, described
from comity.runtime.call.tasks import after_a_turn, all_ended
from comity.runtime.call.tools import Paused, Toolbox
from comity.runtime.call.turnstile import SHARED_NS, Turnstile
from comity.runtime.call.way import LOCAL, Way
from comity.runtime.session.sealing import Seal
from comity.runtime.tracing import standing

if TYPE_CHECKING:
    from comity.core.guidance.guidance import Finding
    from comity.runtime.session.live import Live

log = logging.getLogger("comity")

HandOff = Callable[[Call, Draft, ExpectedOutput | None], Coroutine[Any, Any, Reply]]
_NOTHING = Checked({})


async def _cannot_hand_off(parent: Call, draft: Draft, expected: ExpectedOutput | None) -> Reply:  # noqa: ARG001
    raise UnavailableError("this node cannot hand off inside a call", code="NODE_CLOSED")


async def _given(parent: Call, elsewhere: Coroutine[Any, Any, Reply]) -> Reply:
    return await after_a_turn(parent.given(await elsewhere))


def _seen(arrival: Arrival, observer: Observer) -> Arrival:
    agent = observer.arrives(arrival.request, arrival.agent)
    return arrival if agent is arrival.agent else replace(arrival, agent=agent, capability=agent and arrival.capability)


def _checked(arrival: Arrival) -> Checked:
    capability = arrival.capability
    if capability is None or arrival.problems:
        return _NOTHING
    return (capability.input_checker or capability.inputs).check(arrival.body)


class CallPath(Replies):
    """The calls in progress on one node, and the steps that each takes."""

    # Slots: without them, method lookup on an object with more than thirty attributes searches the instance dict first.
    __slots__ = (
        "_context", "_execution", "_go_on", "_guardrails", "_latest", "_long_requests", "_reader", "_shared_at",
        "_stopping", "_turnstile", "activations", "answers", "batches", "call_root", "guidance", "hand_off", "identity_key",
        "ids", "inheritance", "is_closed", "limits", "observer", "prices", "registry", "seal", "slices", "steps", "threads",
        "toolbox", "watchdog", "workflows",
    )  # fmt: skip

    def __init__(
        self,
        env: Environment,
        calls: dict[str, Call],
        toolbox: Toolbox,
        *,
        context: Callable[[CallPath, Call], Any],
        go_on: Callable[[CallPath, Journal, str], None],
    ) -> None:
        journal, clock, observer, privacy = env.journal, env.clock, env.observer, env.privacy
        self.registry, self.limits, self.inheritance = env.registry, env.limits, env.inheritance
        self.guidance, self.threads, self.watchdog, self.observer = env.guidance, env.threads, env.watchdog, observer
        self.ids, self.slices, self.answers, self.identity_key = env.ids, env.slices, env.answers, env.identity_key
        self._guardrails, self.prices = env.guardrails, env.prices
        self.toolbox = toolbox
        self._context = context  # makes the `ctx` of a capability
        self._go_on = go_on  # resumes a paused tree, given its approval id
        self.seal = seal = Seal(env.sessions.cipher, None if privacy is None else privacy.may_hold)
        hide = None if privacy is None else privacy.hide_trace
        self.activations = Activations(
            journal, clock, start=self._start, fail=self._fail, hide=hide, seal=seal, observer=observer
        )
        self._stopping = Stopping(journal, clock, env.loop, self.activations, env.threads.runs)
        super().__init__(env, calls, Settlement(env, calls, self._stopping.stop))
        self.hand_off: HandOff = _cannot_hand_off  # replaced where the node has a handoff queue
        self.workflows: Callable[[], Runs] | None = None  # the node's, made when first needed
        self.is_closed = False
        self.call_root: CallRoot = self.call_here  # replaced where nodes share the work
        self._reader = Reader(env.registry, env.limits, env.ids, env.inheritance)
        self.steps = Steps(journal, clock, env.recorder, holds_words=self.holds_words, answers=env.answers, seal=seal)
        self._execution = Execution(clock, env.ids, env.threads, env.run_in_process, env.answers, env.slices, observer)
        self._long_requests = LongRequests(
            self.settlement, env.slices, env.answers, self.reserve, self._accept, self.refuse, env.now_ms
        )
        self._turnstile = Turnstile(env.loop, env.slices.pace)
        self.batches = Batches(env.loop, self._run)
        self._latest: Identity | Request = Identity("", "", "")  # the user of the latest call
        self._shared_at = 0  # when a call of another user followed; 0 for never

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
        """Open a user's call: return the new call, the running call with the same request id, or its stored reply."""
        now_ns = self.clock.now_ns()
        arrival = self.asked(draft, identity, request_id, now_ns // NS_PER_MS, remote)
        try:
            if request_id is not None:
                return self._open_named(arrival, request_id, now_ns, remote, log)
            return self.enter(arrival, None, now_ns, log, remote=remote)
        except UnavailableError as error:
            return self.unread(arrival.request, error)

    def asked(
        self, draft: Draft, identity: Identity, request_id: str | None, now_ms: int, remote: TraceContext | None
    ) -> Arrival:
        """Read a user's draft into a request, under a new id if `request_id` is None."""
        if request_id is None:
            new_id, trace_id = self.ids.new_request(now_ms)
            arrival = self._reader.read_plain(draft, identity, new_id, now_ms, trace_id) or self._reader.read(
                draft, identity, None, new_id, now_ms, trace_id
            )
            return arrival if remote is None else standing.placed(arrival, remote, self.ids)
        if chosen_id_problem(request_id):
            return self._reader.read(draft, identity, None, as_refused(request_id), now_ms)
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
        """Read a user's draft into a request; `remote` is the trace context it arrived with, if any."""
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
        now_ms = now_ns // NS_PER_MS
        arrival = self.asked(draft, identity, request_id, now_ms, remote)
        if len(arrival.body) > LONG_BYTES:
            await self.slices.pause(user_of(arrival.request))
        request = arrival.request
        latest = self._latest
        if request.user_id != latest.user_id or request.tenant_id != latest.tenant_id:
            if latest.user_id:
                self._shared_at = now_ns
            self._latest = request
        if self._shared_at and self.calls and self._is_shared(now_ns) and (turn := self._turnstile.enter(request)):
            await turn
            now_ns = self.clock.now_ns()
        try:
            if request_id is None:
                opened = self.enter(arrival, None, now_ns, None, remote=remote)
            else:
                opened = self._open_named(arrival, request_id, now_ns, remote, None)
        except UnavailableError as error:
            opened = self.unread(arrival.request, error)
        if isinstance(opened, Reply):
            return await self.told(opened)
        # `reply_of`, inlined: one more coroutine would cost a percent of a call.
        waiter: asyncio.Future[None] = self.loop.create_future()
        if opened.waiters is None and not opened.is_delivered:
            opened.waiters = [waiter]
        else:
            self.wait_with(opened, waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            self.stop_waiting(opened, waiter)
            raise
        way, reply = opened.way, opened.reply
        assert reply is not None  # `Call.delivered`, inlined
        if way.is_moved:
            return await self.placement.go_on(opened.request)
        return opened.as_written(reply) if draft.is_written else reply

    def _is_shared(self, now_ns: int) -> bool:
        """Return whether calls of two different users arrived within the last `SHARED_NS`."""
        return bool(self._shared_at) and now_ns - self._shared_at < SHARED_NS

    def call_child(self, parent: Call, draft: Draft) -> Coroutine[Any, Any, Reply]:
        """Return a coroutine that makes a child call of `parent` and returns the reply."""
        # Numbered before it runs, so parallel calls keep their ids on replay, in whatever order they start then.
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
        """Make a child call under `request_id`; `is_repeated` is None unless an external agent chose the id (see `named`)."""
        above = parent.request
        if (pause_ms := above.limits.pause_ms(number)) and not is_repeated:
            await parent.wait_in_line(pause_ms)
        if self._shared_at and self._is_shared(self.clock.now_ns()) and (turn := self._turnstile.enter(above)):
            await turn
        opened = self.open_under(parent, draft, request_id, identity, is_repeated=is_repeated)
        if not isinstance(opened, Call):
            return await opened
        return parent.given(await self.reply_of(opened))

    def begin_under(self, parent: Call, draft: Draft, request_id: str) -> Call | Coroutine[Any, Any, Reply]:
        """Do what `call_under` does, but return the `Call` without waiting if it starts on this node at once."""
        is_shared = self._shared_at and self._is_shared(self.clock.now_ns())
        if is_shared or not self.placement.ends_come_first:  # it may have to queue, or runs on another node
            return self.call_under(parent, draft, request_id, 0)
        return self.open_under(parent, draft, request_id)

    def open_under(
        self,
        parent: Call,
        draft: Draft,
        request_id: str,
        identity: Identity | None = None,
        *,
        is_repeated: bool | None = None,
    ) -> Call | Coroutine[Any, Any, Reply]:
        """Open a child call: return the `Call`, its reply, or an awaitable reply if it runs on another node."""
        above = parent.request
        if parent.state is not RUNNING:
            # A task that outlived its call has no budget, no deadline and no caller to answer to.
            error = Error.of("CALL_CANCELLED", f"the call {above.request_id} has ended")
            return after_a_turn(Reply(status=Status.CANCELLED, error=error))
        now_ns = self.clock.now_ns()
        if identity is None:
            identity = Identity(above.user_id, above.tenant_id, above.session_id)
        arrival = self._reader.read(draft, identity, above, request_id, now_ns // NS_PER_MS)
        if OTEL in MODULES or use.has_begun:
            arrival = standing.hung(arrival, above)
        if (elsewhere := self.placement.call_under(arrival, parent, is_repeated=bool(is_repeated))) is not None:
            return _given(parent, elsewhere)
        # A generated id can be known only to a resumed tree; an id that an external agent chose may be known anyway.
        is_again = parent.top.is_resumed
        try:
            if is_repeated is not None:
                opened = self._open_below(parent, arrival, now_ns)
            elif is_again:
                opened = self._again(parent, arrival, now_ns)
            else:
                opened = self.enter(arrival, parent, now_ns, None)
        except UnavailableError as error:
            opened = self.unread(arrival.request, error, is_again=is_again)
        return after_a_turn(parent.given(opened)) if isinstance(opened, Reply) else opened

    def _again(self, parent: Call, arrival: Arrival, now_ns: int) -> Call | Reply:
        """Replay a child call after a restart: if it already settled, return the stored reply; never charge the budget twice.

        Calls that were begun before the restart were charged when the tree was resumed.
        """
        request = arrival.request
        seen = self.seen(request)
        if seen is not None:
            if isinstance(seen, Reply) and seen.status is not Status.REFUSED:
                self.count(parent, seen.usage)
                parent.keep(request, seen)
            return seen
        if request.request_id not in (parent.top.leftovers or ()):
            return self.enter(arrival, parent, now_ns, None)
        begun = count_begun(self._journal, request)
        parent.account.give_back(1, 0)  # `enter` charges it again
        opened = self.enter(arrival, parent, now_ns, None)
        if isinstance(opened, Reply):
            parent.account.spend_call()
        elif opened.account is not parent.account:
            opened.account.calls_used += begun
        return opened

    def _open_below(self, parent: Call, arrival: Arrival, now_ns: int) -> Call | Reply:
        """Make a call under an id that an external agent chose: at most once, unless it was refused."""
        request, named = arrival.request, parent.named_calls
        before = named[request.request_id]
        if before is None:
            is_again = parent.top.is_resumed
            opened = self._again(parent, arrival, now_ns) if is_again else self.enter(arrival, parent, now_ns, None)
            if not isinstance(opened, Reply) or opened.status is not Status.REFUSED:
                named[request.request_id] = request, opened
            return opened
        if is_same(request, before[0]):
            return before[1]
        asked = as_asked(request)
        return self.refuse(asked, reused(asked))

    # --- look, admit, screen ---

    def enter(
        self,
        arrival: Arrival,
        parent: Call | None,
        now_ns: int,
        log: events.EventLog | None,
        leftovers: dict[str, Request] | None = None,
        lane: Lane[Call] | None = None,
        remote: TraceContext | None = None,
        way: Way = LOCAL,
        is_named: bool = False,
    ) -> Call | Reply:
        """Admit the call and queue or start it, or refuse it, without awaiting in between.

        A handoff (`lane`) is queued in its receiver's lane, not at an agent of this process.
        """
        if self.observer is not None:
            arrival = _seen(arrival, self.observer)
        request, agent, capability = arrival.request, arrival.agent, arrival.capability
        now_ms = now_ns // NS_PER_MS
        watcher = log if parent is None else parent.log
        if self.is_closed or self._journal.failure is not None:  # what cannot be recorded must not be begun
            stopped = None if self.is_closed else self.settlement.stopped()
            return self.refuse(request, stopped or admission.Refused("NODE_CLOSED", "this node is closing"), watcher)
        # The inputs were checked while they were read, unless the call may have entered before, or is a handoff, whose
        # capability is another one.
        checked = arrival.checked if lane is None and way.is_fresh else None
        if checked is None:
            try:
                checked = _checked(arrival)
            except SchemaError as error:
                return self.refuse(request, admission.Refused("TARGET_MISCONFIGURED", str(error)), watcher)
        live = self._session(request, parent, now_ms, is_known=is_named or leftovers is not None)
        seat = None if agent is None else self.activations.seat(agent, request, way) if lane is None else lane
        limits = request.limits if way.loan is None else way.loan.of(request.limits)
        account = Account(limits) if parent is None else parent.account.narrowed(limits)
        breaker, wait_ms, has_fallback = None, None, False
        if self.settlement.breakers.known and agent is not None and not way.node_id:
            breaker, wait_ms, has_fallback = self.settlement.breakers.gate(agent, request.capability, now_ms)
        place = 0 if seat is None else seat.place()
        findings: tuple[Finding, ...] = ()
        if self.guidance is not None and capability is not None and capability.touching is not None and not checked.problems:
            findings = self.guidance.findings(capability.touching, unpack_long(arrival.body))
        is_sound = not arrival.problems and not checked.problems and not findings and wait_ms is None and not way.loop
        is_own = live is None or (live.session.user_id == request.user_id and now_ms - live.used_at < EXPIRED_MS)
        if not (is_sound and is_own) or not (
            admission.admits_user(request, agent, capability, place, now_ms)
            if parent is None
            else admits_below(self.registry, arrival, parent, place, account, way, now_ms)
        ):
            world = snapshot(
                self.registry, arrival, parent, live, checked, seat, place, account, wait_ms, findings, now_ms, way
            )
            refusal = admission.admit(request, world, now_ms)
            if refusal is not None:
                return self.refuse(request, refusal, watcher)
        assert agent is not None and capability is not None and seat is not None  # noqa: PT018  the rule `known` refused the rest
        trace = remote if parent is None else parent.remote
        call = Call(
            request, parent, account, leftovers=leftovers, agent=agent, capability=capability, arguments=checked.value,
            seat=seat, started_ns=now_ns, live=live, log=watcher, way=way, remote=trace,
        )  # fmt: skip
        note = self._screened(call, arrival.body, findings)
        if isinstance(note, admission.Refused):
            return self.refuse(call.request, note, watcher)
        if lane is not None and lane.takes:
            lane.take(note)
            return call
        if has_fallback or way.node_id:  # the breaker of a sent call is on the other node
            call.skips_primary = True
        elif breaker is not None:
            call.probe = breaker.enter(now_ms)
        if isinstance(note, str):
            self.reserve(call)
            self._accept(call, now_ms, note)
        else:
            self._long_requests.look_through(call, note)
        if self.observer is not None:
            self.observer.entered(call)
        return call

    def _session(self, request: Request, parent: Call | None, now_ms: int, *, is_known: bool) -> Live | None:
        """Return the session of a request; None for a user's new call without a session id."""
        if parent is not None:
            is_delegated = request.parent_session_id is not None
            return self.sessions.bind_below(request, self.sessions.live_of(parent), now_ms) if is_delegated else parent.live
        names_none = request.session_id == request.root_id and request.parent_session_id is None
        return None if names_none and not is_known else self.sessions.bind(request, now_ms, is_known)

    def _screened(
        self, call: Call, body: bytes, findings: tuple[Finding, ...]
    ) -> str | admission.Refused | Sliced[str | admission.Refused]:
        """Return the audit note of a request that may pass, its refusal, or the sliced work that finds out for a long one."""
        request, privacy = call.request, self._privacy
        is_concerned: bool | None = privacy is not None and (
            bool(request.message or request.objective or call.capability.clear or request.context)
            or (None if len(body) > ONE_GO_BYTES else privacy.may_hold(body))
        )
        if is_concerned is False and not (findings or self._guardrails):
            return ""
        return screen(self.sessions, call, body, findings, self._guardrails, privacy, is_concerned=is_concerned)

    # --- accept, place ---

    def reserve(self, call: Call) -> None:
        """Charge a call to its budget, and register it with its parent and by its id."""
        if call.parent is None:
            call.account.calls_used += 1  # of an account without a parent account
        else:
            call.account.spend_call()
            call.attach(call.parent)
        self.calls[call.request.request_id] = call

    def _accept(self, call: Call, now_ms: int, note: str) -> None:
        request, parent, live, way = call.request, call.parent, call.live, call.way
        was_accepted = call.leftovers is not None
        if parent is not None and parent.top.leftovers is not None:
            was_accepted = parent.top.leftovers.pop(request.request_id, None) is not None
        if way.on_terms:
            self.placement.accept(call, now_ms, note)
        elif not was_accepted:
            self._journal.append((Accepted(request, now_ms, self._journal.node_id, note),))
        elif parent is not None:  # replayed: it has a new deadline, within its caller's
            self._journal.append((Resumed(request, self._journal.node_id, now_ms),))
        self.settlement.deadlines.add(call)
        if not way.node_id:
            call.move(QUEUE)
            if live is not None and (parent is None or is_first(request)):
                self.sessions.use(live, request, now_ms)
                if request.message and is_first(request):
                    self.sessions.hear(live, call.said or request, is_again=call.is_again, is_fresh=way.is_fresh)
        if call.log is not None:
            call.log.add(events.Kind.QUEUED, now_ms, request)
        if way.node_id:
            self.placement.carry(call, way)
        else:
            self.activations.admit(call)
        if self.watchdog is not None and self.watchdog.is_parked:
            self.watchdog.wake()

    # --- run, read, settle ---

    def _start(self, call: Call) -> None:
        if self.observer is not None:
            self.observer.starting(call)
        call.move(START)
        call.seat.holders[call] = None
        if call.log is not None:
            call.log.add(events.Kind.STARTED, self.clock.now_ns() // NS_PER_MS, call.request, text=call.capability.doing)
        self.batches.start(call)

    async def _run(self, call: Call) -> None:
        try:
            if OTEL in MODULES or use.has_begun:
                ambient.enter(standing.place_of(self.recorder, call, call.request))
            if call.state is not RUNNING:  # it settled or was paused before its code began
                return
            if call.began_ms and self._is_shared(self.clock.now_ns()) and (turn := self._turnstile.begin(call.request)):
                await turn
            if call.capability.effects and not await self._may_have_effects(call):
                return
            reply = await self._execution.run(call, self._context(self, call))
        except asyncio.CancelledError:
            # A call that the runtime cancels is settled before; one that still runs was cancelled by its agent's own code.
            if call.state is RUNNING:
                self.settlement.cancel(call, "the agent's task was cancelled")
        except Paused as paused:
            self.settlement.pause(call.top, paused.approval, partial(self._go_on, self, self._journal, paused.approval.id))
        except Exception:  # the task boundary: a bug of the runtime must not leave callers waiting for the timeout
            log.exception("the call %s could not be run", call.request.request_id)
            self._fail(call, f"{call.request.target} could not be run")
        else:
            self.settlement.settle(call, FINISH, reply)
        finally:
            # Free these now: the call may wait for the disk, and the garbage collector would traverse them meanwhile.
            call.task = call.arguments = None
            self.activations.leave(call)

    async def _may_have_effects(self, call: Call) -> bool:
        """Wait until a call, and all that it follows from, is on disk; return whether its code may still run.

        A crash may leave a record without an effect, never an effect without a record.
        """
        try:
            await self.durable()
        except UnavailableError as error:
            failed = self.settlement.unrecorded(error)
            self.settlement.settle(call, CANCEL, Reply(status=Status.ERROR, error=failed, message=failed.message))
        return call.state is RUNNING

    def _fail(self, call: Call, why: str) -> None:
        """End a call with an error if its agent's state could not be loaded or its code could not be run."""
        error = Error.of("TARGET_CRASHED", why)
        self.settlement.settle(call, CANCEL, Reply(status=Status.ERROR, error=error, message=why))

    async def close(self) -> None:
        """Cancel all calls, wait for their code (that of calls which ended before too), and drop the timers."""
        self.is_closed = True
        calls = [*self.activations.running, *self.calls.values()]
        for call in [call for call in self.calls.values() if call.parent is None]:
            self.settlement.cancel(call, "the node is closing")
        running = {call.task: described(call) for call in calls if call.task is not None}
        others = [*self.settlement.breakers.close(), *self.activations.stop()]
        await all_ended(running | {task: task.get_name() for task in (*others, *self.batches.coming)})
        self._stopping.close()
        self.activations.close()
        self.settlement.deadlines.close()
        with contextlib.suppress(UnavailableError):  # the store failed, and every call has got that error
            self.sessions.save_ended()
