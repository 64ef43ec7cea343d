"""The one call path: every call, whichever door it came through, is opened, admitted, queued, run and settled here.

    open → admit → queue → run → settle

Opening to queueing is one step without an await, so what admission saw is still true when the call takes its place. Settling is
one step too: a call and everything below it end in one journal record.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import Any

from msgspec import Struct

from comity.core import admission
from comity.core.agent import Agent
from comity.core.breaker import Breaker
from comity.core.call import Event, State, advance
from comity.core.envelope import Error, Reply, Request, Status, is_id
from comity.core.journal import Accepted, Late, Record, Refused, Settled, fingerprint
from comity.core.ledger import Account
from comity.core.limits import SPANS_KEPT_MAX, Limits
from comity.core.payload import PayloadError
from comity.core.registry import Registry
from comity.core.schema import Checked, SchemaError
from comity.core.waits import loop_closed_by
from comity.errors import Breaker as Effect
from comity.errors import breaker_effect
from comity.ports import Clock, Ids, Journal
from comity.runtime import events
from comity.runtime.activation import Activation, Activations
from comity.runtime.arrival import Arrival, Draft, Identity, read
from comity.runtime.call import Call
from comity.runtime.context import Context
from comity.runtime.deadlines import Deadlines
from comity.runtime.execution import Execution, complete
from comity.runtime.watchdog import Watchdog

_NOTHING = Checked({})


class Span(Struct, frozen=True, gc=False):
    """What was recorded of one call for tracing; attributes are made from it when somebody reads or exports it."""

    request: Request
    reply: Reply
    start_ns: int
    end_ns: int


class CallPath:
    """Calls under way on one node, and the way they take."""

    def __init__(
        self,
        registry: Registry,
        journal: Journal,
        clock: Clock,
        ids: Ids,
        limits: Limits,
        execution: Execution,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.registry = registry
        self.limits = limits
        self.calls: dict[str, Call] = {}  # by request id, until the reply has been delivered
        self.activations = Activations(journal, clock, start=self._start, fail=self._fail)
        self.watchdog: Watchdog | None = None
        self.breakers: dict[tuple[str, str], Breaker] = {}  # only of capabilities that have failed
        self.spans: deque[Span] = deque(maxlen=SPANS_KEPT_MAX)
        self.is_closed = False
        self._journal = journal
        self._clock = clock
        self._ids = ids
        self._execution = execution
        self._loop = loop
        self._deadlines = Deadlines(clock, loop, self._expire)

    # --- open ---

    def open_root(
        self, draft: Draft, identity: Identity, request_id: str | None, *, log: events.EventLog | None = None
    ) -> Call | Reply:
        """Open a call by a user: return the call under way, one it joins, or the reply if there is one already."""
        now_ns = self._clock.now_ns()
        if request_id is None:
            new_id, trace_id = self._ids.new_request(now_ns // 1_000_000)
            return self._enter(self._read(draft, identity, None, new_id, now_ns, trace_id), None, now_ns, log)
        if not is_id(request_id):
            arrival = self._read(draft, identity, None, ascii(request_id)[:64], now_ns)
            what = admission.Refused("IDENTITY_INVALID", "request_id must be printable text that is not empty")
            return self._refuse(arrival.request, what, log)
        arrival = self._read(draft, identity, None, request_id, now_ns)
        return self._seen(arrival.request) or self._enter(arrival, None, now_ns, log)

    async def call_child(self, parent: Call, draft: Draft) -> Reply:
        """Call on behalf of a call under way and return the reply."""
        above = parent.request
        if parent.state is not State.RUNNING:
            # A task that outlived its call has no budget, no deadline and nobody to answer to.
            error = Error.of("CALL_CANCELLED", f"the call {above.request_id} has ended")
            return Reply(status=Status.CANCELLED, error=error)
        parent.calls_made += 1
        now_ns = self._clock.now_ns()
        identity = Identity(above.user_id, above.tenant_id, above.session_id)
        arrival = self._read(draft, identity, above, f"{above.request_id}.{parent.calls_made}", now_ns)
        # Only a call that an earlier life began can have made this one before.
        opened = (self._seen(arrival.request) if parent.top.leftovers is not None else None) or self._enter(
            arrival, parent, now_ns, None
        )
        return opened if isinstance(opened, Reply) else await self.reply_of(opened)

    def resume(self, request: Request, leftovers: dict[str, Request]) -> Call | None:
        """Take up a root that an earlier life of the store accepted and did not settle, or end it if it cannot go on.

        What it calls again under the same ids and had settled is answered from the store; `leftovers` are the calls below it
        that were open. Those it does not make again end with it.
        """
        now_ns = self._clock.now_ns()
        if request.deadline_at > now_ns // 1_000_000:
            address = self.registry.resolve(request.target)
            agent = address.agent if address is not None else None
            capability = agent.capabilities.get(request.capability) if agent is not None else None
            arrival = Arrival(request, bytes(request.body), agent, capability, (), "")
            opened = self._enter(arrival, None, now_ns, None, leftovers=leftovers)
            if isinstance(opened, Call):
                opened.is_detached = True
                return opened
        self._journal.append(_interrupted((request, *leftovers.values()), now_ns // 1_000_000))
        return None

    def _read(
        self, draft: Draft, identity: Identity, above: Request | None, request_id: str, now_ns: int, trace_id: str = ""
    ) -> Arrival:
        return read(
            draft,
            identity,
            above,
            request_id,
            trace_id,
            registry=self.registry,
            limits=self.limits,
            ids=self._ids,
            now_ms=now_ns // 1_000_000,
        )

    def _seen(self, request: Request) -> Call | Reply | None:
        """Return the call or reply already known under this request's id, or a refusal if it was another request."""
        running = self.calls.get(request.request_id)
        if running is not None:
            return running if _is_same(request, running.request) else self._refuse(request, _reused(request))
        stored = self._journal.call(request.request_id)
        if stored is None:
            return None
        owner = (stored.tenant_id, stored.user_id, stored.fingerprint)
        if owner != (request.tenant_id, request.user_id, fingerprint(request)):
            return self._refuse(request, _reused(request))
        if stored.reply is not None:
            return stored.reply
        if stored.node_id != self._journal.node_id:
            what = f"request {request.request_id} is under way on another node"
            return self._refuse(request, admission.Refused("AGENT_BUSY", what, 1_000))
        return None

    # --- admit ---

    def _enter(
        self,
        arrival: Arrival,
        parent: Call | None,
        now_ns: int,
        log: events.EventLog | None,
        *,
        leftovers: dict[str, Request] | None = None,
    ) -> Call | Reply:
        """Admit the call and give it its place, or refuse it. Nothing is awaited in between."""
        request, agent, capability = arrival.request, arrival.agent, arrival.capability
        now_ms = now_ns // 1_000_000
        watcher = log if parent is None else parent.log
        if self.is_closed:
            return self._refuse(request, admission.Refused("NODE_CLOSED", "this node is closing"), watcher)
        checked = _NOTHING
        if capability is not None and not arrival.problems:
            try:
                checked = capability.inputs.check(arrival.body)
            except SchemaError as error:
                return self._refuse(request, admission.Refused("TARGET_MISCONFIGURED", str(error)), watcher)
        seat = None if agent is None else self.activations.seat(agent, request.target)
        account = Account(request.limits) if parent is None else parent.account.narrowed(request.limits)
        breaker = self.breakers.get((agent.id, request.capability)) if self.breakers and agent is not None else None
        wait_ms = None if breaker is None else breaker.retry_after_ms(now_ms)
        has_fallback = wait_ms is not None and capability is not None and len(capability.implementations) > 1
        world = self._snapshot(arrival, parent, checked, seat, account, None if has_fallback else wait_ms)
        refusal = admission.admit(request, world, now_ms=now_ms)
        if refusal is not None:
            return self._refuse(request, refusal, watcher)
        assert agent is not None and capability is not None and seat is not None  # noqa: PT018  what `known` proved
        call = Call(request, parent, agent, capability, checked.value, seat, account, now_ns, watcher)
        if has_fallback:
            call.skips_primary = True
        elif breaker is not None:
            call.is_probe = breaker.enter(now_ms)
        self._accept(call, now_ms, leftovers)
        return call

    def _snapshot(
        self,
        arrival: Arrival,
        parent: Call | None,
        checked: Checked,
        seat: Activation | None,
        account: Account,
        breaker_wait_ms: int | None,
    ) -> admission.Snapshot:
        request, agent, capability = arrival.request, arrival.agent, arrival.capability
        is_full = seat is not None and seat.is_full
        caller: admission.Caller | None = None
        permitted, in_progress = True, False
        depth_max = request.limits.depth_max
        if parent is not None:
            above = parent.request
            depth_max = above.limits.depth_max
            caller = admission.Caller(
                parent.agent,
                above.user_id,
                above.tenant_id,
                above.session_id,
                len(parent.waits_for),
                above.limits.fan_out_max,
            )
            permitted = agent is None or self.registry.permits(parent.agent, agent)
            key = (request.source, request.target, request.objective)
            in_progress = bool(request.objective) and key in (parent.top.objectives or ())
        return admission.Snapshot(
            arrival.problems,
            arrival.code,
            caller,
            agent,
            capability,
            () if capability is not None else self._nearest(request, agent),
            permitted,
            checked,
            depth_max,
            breaker_wait_ms,
            in_progress,
            loop_closed_by(parent, seat) if is_full and seat is not None else (),
            len(seat.mailbox) + 1 if is_full and seat is not None else 0,
            account.calls_left,
            account.tokens_left,
        )

    def _refuse(self, request: Request, refusal: admission.Refused, log: events.EventLog | None = None) -> Reply:
        error = Error.of(refusal.code, refusal.message, retry_after_ms=refusal.retry_after_ms, problems=refusal.problems)
        reply = Reply(
            status=Status.REFUSED,
            error=error,
            message=f"{error.message}. {error.advice}",
            request_id=request.request_id,
            source=request.target,
        )
        now_ms = self._clock.now_ns() // 1_000_000
        self._journal.append((Refused(request, reply, now_ms),))
        if log is not None:
            log.add(events.Kind.REFUSED, now_ms, request, {"code": error.code, "message": error.message})
        return reply

    def _nearest(self, request: Request, agent: Agent | None) -> tuple[str, ...]:
        if agent is None:
            return tuple(self.registry.nearest_agents(request.target))
        return tuple(self.registry.nearest_capabilities(agent, request.capability))

    # --- queue ---

    def _accept(self, call: Call, now_ms: int, leftovers: dict[str, Request] | None) -> None:
        request, parent = call.request, call.parent
        call.account.spend_call()
        call.leftovers = leftovers
        was_accepted = leftovers is not None
        if parent is not None:
            call.root = top = parent.top
            if parent.children is None:
                parent.children = {}
            parent.children[call] = None
            if request.objective:
                key = (request.source, request.target, request.objective)
                if top.objectives is None:
                    top.objectives = {}
                top.objectives[key] = top.objectives.get(key, 0) + 1
            if top.leftovers is not None:
                was_accepted = top.leftovers.pop(request.request_id, None) is not None
        self.calls[request.request_id] = call
        if not was_accepted:
            self._journal.append((Accepted(request, now_ms, self._journal.node_id),))
        self._deadlines.add(call, now_ms)
        call.state = State.QUEUED
        if call.log is not None:
            call.log.add(events.Kind.QUEUED, now_ms, request)
        self.activations.admit(call)
        if self.watchdog is not None and self.watchdog.is_parked:
            self.watchdog.wake()

    # --- run ---

    def _start(self, call: Call) -> None:
        call.state = State.RUNNING
        call.seat.holders[call] = None
        if call.log is not None:
            call.log.add(events.Kind.STARTED, self._clock.now_ns() // 1_000_000, call.request)
        call.task = self._loop.create_task(self._run(call), name=call.request.request_id)

    async def _run(self, call: Call) -> None:
        try:
            reply = await self._execution.run(call, Context(self, call))
        except asyncio.CancelledError:
            # Settled already by whoever cancelled; if not, the agent cancelled itself.
            if call.state is not State.SETTLED:
                self.cancel(call, "the agent's task was cancelled")
        else:
            self.settle(call, Event.FINISH, reply)
        finally:
            self.activations.leave(call, self._clock.now_ns() // 1_000_000)

    def _fail(self, call: Call, why: str) -> None:
        """End a call whose agent could not be brought to memory."""
        error = Error.of("TARGET_CRASHED", why)
        self.settle(call, Event.CANCEL, Reply(status=Status.ERROR, error=error, message=why))

    def progress(self, call: Call, data: Any) -> None:
        """Keep the newest partial data and tell who watches."""
        call.partial = data
        if call.log is not None:
            call.log.add(events.Kind.PROGRESS, self._clock.now_ns() // 1_000_000, call.request, data)

    def charge(self, call: Call, prompt_tokens: int, completion_tokens: int) -> bool:
        """Charge tokens to the call, to every call above it and to the tree's budget; return whether they were there."""
        above: Call | None = call
        while above is not None:
            above.prompt_tokens += prompt_tokens
            above.completion_tokens += completion_tokens
            above = above.parent
        return call.account.spend_tokens(prompt_tokens + completion_tokens)

    def left(self, call: Call) -> Limits:
        """Return what is left to a call under way."""
        limits = call.request.limits
        left_ms = max(call.request.deadline_at - self._clock.now_ns() // 1_000_000, 0)
        return Limits(
            depth_max=max(limits.depth_max - call.request.depth, 0),
            fan_out_max=max(limits.fan_out_max - len(call.waits_for), 0),
            timeout_ms=min(limits.timeout_ms, left_ms),
            timeout_ms_max=min(limits.timeout_ms_max, left_ms),
            calls_max=max(call.account.calls_left, 0),
            tokens_max=call.account.tokens_left,
        )

    async def reply_of(self, call: Call) -> Reply:
        """Wait for a call's reply. Whoever waits last and is cancelled takes the call with it, unless a handle holds it."""
        if not call.is_delivered:
            waiter: asyncio.Future[None] = self._loop.create_future()
            if call.waiters is None:
                call.waiters = []
            call.waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                call.waiters.remove(waiter)
                if not call.waiters and not call.is_detached:
                    self.cancel(call, "its caller stopped waiting")
                raise
        assert call.reply is not None
        return call.reply

    # --- settle ---

    def cancel(self, call: Call, why: str) -> bool:
        """Withdraw a call and everything below it; return whether it was still under way."""
        error = Error.of("CALL_CANCELLED", f"{call.request.capability} of {call.request.target} was cancelled: {why}")
        return self.settle(call, Event.CANCEL, Reply(status=Status.CANCELLED, error=error, data=call.partial))

    def _expire(self, call: Call) -> None:
        self.settle(call, Event.EXPIRE, _timeout(call))

    def settle(self, call: Call, event: Event, reply: Reply) -> bool:
        """End a call and everything below it, once; a result that comes later is recorded and goes nowhere."""
        now_ns = self._clock.now_ns()
        if advance(call.state, event) is None:
            if event is Event.FINISH:
                self._journal.append((Late(call.request, reply, now_ns // 1_000_000),))
            return False
        records: list[Record] = []
        ended: list[Call] = []
        self._close(call, event, reply, now_ns, records, ended)
        then = partial(self._deliver, call) if call.parent is None else None
        self._journal.append(records, then)
        for one in ended:
            if one is not call or then is None:
                self._deliver(one, None)
        return True

    def _close(self, call: Call, event: Event, reply: Reply, now_ns: int, records: list[Record], ended: list[Call]) -> None:
        """Do everything that the end of a call means, children first; only delivery is left."""
        now_ms = now_ns // 1_000_000
        for child in tuple(call.waits_for):
            if event is Event.EXPIRE and child.request.deadline_at <= now_ms:
                self._close(child, event, _timeout(child), now_ns, records, ended)
            else:
                gone = Error.of("CALL_CANCELLED", f"{call.request.target}, which made this call, has ended")
                self._close(child, Event.CANCEL, Reply(status=Status.CANCELLED, error=gone), now_ns, records, ended)
        if call.state is not State.RUNNING:
            call.seat.mailbox.remove(call, call.request.priority)
        elif event is not Event.FINISH and call.task is not None:
            call.task.cancel()
        if call.uses_state:
            reply = self._save_state(call, reply, records)
        call.state = State.SETTLED
        if reply.request_id != call.request.request_id:
            reply = complete(reply, call, now_ns, data=reply.data)
        call.reply = reply
        parent = call.parent
        if parent is not None:
            assert parent.children is not None
            del parent.children[call]
            parent.calls_below += 1 + call.calls_below
            if call.request.objective:
                _end_objective(call)
        self._deadlines.discard(call)
        self._tell_breaker(call, reply, now_ms)
        records.append(Settled(call.request, reply, now_ms))
        if call.leftovers:
            records.extend(_interrupted(tuple(call.leftovers.values()), now_ms))
        self.spans.append(Span(call.request, reply, call.started_ns, now_ns))
        ended.append(call)
        if call.log is not None and parent is not None:
            call.log.add(events.Kind.SETTLED, now_ms, call.request, _outline(reply))

    def _save_state(self, call: Call, reply: Reply, records: list[Record]) -> Reply:
        try:
            records.extend(call.seat.changes())
        except PayloadError as error:
            failure = Error.of("OUTPUT_VALIDATION_FAILED", f"the state of {call.request.target} cannot be kept: {error}")
            return Reply(status=Status.ERROR, error=failure, message=failure.message)
        return reply

    def _tell_breaker(self, call: Call, reply: Reply, now_ms: int) -> None:
        if call.skips_primary or (not self.breakers and reply.error is None and not call.primary_code):
            return
        code = call.primary_code or (reply.error.code if reply.error is not None else "")
        key = (call.agent.id, call.capability.code)
        breaker = self.breakers.get(key) if self.breakers else None
        effect = breaker_effect(code) if code else None
        if effect is None:
            if breaker is not None:
                breaker.succeeded(probe=call.is_probe)
        elif effect is Effect.IGNORES:
            if breaker is not None:
                breaker.released(probe=call.is_probe)
        else:
            if breaker is None:
                breaker = self.breakers[key] = Breaker(call.capability.breaker)
            breaker.failed(now_ms, probe=call.is_probe, trips=effect is Effect.TRIPS)

    def _deliver(self, call: Call, error: Exception | None) -> None:
        """Hand the reply to whoever waits. For a root this comes after the journal has made it durable."""
        if error is not None:
            failure = Error.of("STORE_UNAVAILABLE", str(error))
            call.reply = Reply(status=Status.ERROR, error=failure, request_id=call.request.request_id)
        call.is_delivered = True
        self.calls.pop(call.request.request_id, None)
        for waiter in call.waiters or ():
            if not waiter.done():
                waiter.set_result(None)
        if call.log is not None and call.parent is None:
            assert call.reply is not None
            call.log.add(events.Kind.SETTLED, self._clock.now_ns() // 1_000_000, call.request, _outline(call.reply))
            call.log.close()

    async def durable(self) -> None:
        """Wait until everything recorded so far is durable."""
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._journal.append((), partial(_release, waiter))
        await waiter

    async def close(self) -> None:
        """Cancel what runs, wait for its tasks, and drop the timers."""
        self.is_closed = True
        tasks = [call.task for call in self.calls.values() if call.task is not None]
        for call in [call for call in self.calls.values() if call.parent is None]:
            self.cancel(call, "the node is closing")
        if tasks:
            await asyncio.wait(tasks, timeout=5)
        self.activations.close()
        self._deadlines.close()


def _is_same(request: Request, other: Request) -> bool:
    return (request.tenant_id, request.user_id, request.target, request.capability, request.body) == (
        other.tenant_id,
        other.user_id,
        other.target,
        other.capability,
        other.body,
    )


def _reused(request: Request) -> admission.Refused:
    what = f"request_id {request.request_id!r} belongs to another request"
    return admission.Refused("IDENTITY_REQUEST_ID_REUSED", what)


def _timeout(call: Call) -> Reply:
    allowed = call.request.deadline_at - call.request.created_at
    what = f"{call.request.capability} of {call.request.target} did not end within {allowed} ms"
    return Reply(status=Status.TIMEOUT, error=Error.of("CALL_TIMEOUT", what), message=what, data=call.partial)


def _interrupted(requests: tuple[Request, ...], now_ms: int) -> tuple[Settled, ...]:
    """Return the ends of calls that an earlier life of the store left open and nobody takes up."""
    records = []
    for request in requests:
        if request.deadline_at <= now_ms:
            status, error = Status.TIMEOUT, Error.of("CALL_TIMEOUT", "its node stopped, and its deadline has passed since")
        else:
            status, error = Status.ERROR, Error.of("CALL_INTERRUPTED", "its node stopped before it ended")
        reply = Reply(status=status, error=error, request_id=request.request_id, source=request.target)
        records.append(Settled(request, reply, now_ms))
    return tuple(records)


def _end_objective(call: Call) -> None:
    objectives = call.top.objectives
    assert objectives is not None
    key = (call.request.source, call.request.target, call.request.objective)
    objectives[key] -= 1
    if not objectives[key]:
        del objectives[key]


def _outline(reply: Reply) -> dict[str, Any]:
    return {"status": str(reply.status), "code": reply.error.code if reply.error else None, "ms": reply.duration_ms}


def _release(waiter: asyncio.Future[None], error: Exception | None) -> None:
    if waiter.done():
        return
    if error is None:
        waiter.set_result(None)
    else:
        waiter.set_exception(error)
