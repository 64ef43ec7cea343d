"""Handoffs on a node: the call path puts them into the queue, receivers take them out, and waiters are notified of changes.

Creating a handoff admits and accepts a call for its receiver. The transaction that ends the handoff also settles that call. A
node reads the queue only if the queue notifies it (a *ring*), if a deadline or lease expires, or every half minute, since a
ring may be lost with a process that died.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from comity.core.call.admission import Refused
from comity.core.call.guardrail import Guardrail, unsaid
from comity.core.call.limits import SETTLED_KEPT_MAX
from comity.core.document.slices import Sliced
from comity.core.envelope.envelope import ExpectedOutput, Reply, Request
from comity.core.envelope.request_id import as_refused, chosen_id_problem
from comity.core.handoff.checks import check_id
from comity.core.handoff.holder import holder_name
from comity.core.handoff.machine import (
    ATTEMPTS_MAX,
    ENDED,
    Change,
    Handoff,
    Offer,
    Outcome,
    State,
)
from comity.core.handoff.queue import Listen, Step, Sweep
from comity.core.handoff.trace import metadata_of
from comity.core.journal.records import is_same
from comity.core.tracing.trace_context import TraceContext
from comity.core.units import MS_PER_S, NS_PER_MS
from comity.errors import ComityError, UnavailableError, family
from comity.ports import Clock, Ids, Journal
from comity.ports import Handoffs as Queue
from comity.runtime.agent.activations import Lane
from comity.runtime.call.call import Call
from comity.runtime.call.draft import Draft, Identity, Reader
from comity.runtime.call.pace import user_of
from comity.runtime.call.path import CallPath
from comity.runtime.call.replay import reused
from comity.runtime.handoff.content import Content
from comity.runtime.handoff.directory import ANYBODY, Directory
from comity.runtime.handoff.leases import Leases, Receiver
from comity.runtime.handoff.listening import Ear, closed
from comity.runtime.handoff.spans import record
from comity.runtime.session.privacy import Privacy
from comity.runtime.tracing.standing import placed

log = logging.getLogger("comity")

TIMEOUT_MS: Final = 300_000
_MADE_KEPT_MAX: Final = 1_024  # cached handoffs of this node; others are read from the store
_COUNT_AGAIN_MS: Final = 1_000
_SOON_S: Final = 1.0
_PATIENCE_MS: Final = 10_000  # how long to retry an unreadable store before failing waiters past their deadline
LOOK_AGAIN_S: Final = 30.0  # a ring may be lost with the process that should have sent it
_JITTER_S: Final = 0.02  # so that not all processes read an expired lease at once


class Handoffs:
    """The handoffs of one node."""

    def __init__(
        self,
        path: CallPath,
        journal: Journal,
        clock: Clock,
        ids: Ids,
        *,
        privacy: Privacy | None,
        guardrails: tuple[Guardrail, ...],
    ) -> None:
        if not hasattr(journal, "handoffs"):
            raise UnavailableError("this node's store has no handoff queue", code="STORE_UNAVAILABLE", retryable=False)
        self.journal: Any = journal
        self.queue: Queue = self.journal.handoffs
        self.node_id = journal.node_id
        self.sessions = path.sessions
        self._path = path
        self._clock, self._ids = clock, ids
        self.content = Content(path.registry, path.sessions, privacy, guardrails, path.observer)
        self.hide_trace = None if privacy is None else privacy.hide_trace
        self.masked = privacy.hide_trace if privacy is not None else str
        self._directory = Directory(path.registry)
        self.reader = Reader(self._directory, path.limits, ids, path.inheritance)
        self._loop = asyncio.get_running_loop()
        self._ears: dict[str, tuple[Ear, ...]] = {}  # by topic
        self._made: OrderedDict[str, Handoff] = OrderedDict()  # this node's newest handoffs; stale until they end
        self._waiting: dict[str, tuple[int, int]] = {}  # by lane: an upper bound of queued handoffs, and when it was counted
        self._lanes: dict[str, int] = {}  # by lane: number of receivers on this node
        self.hosted: set[str] = set()  # lanes of which the node itself is a receiver
        self._listening = 0  # subscriptions that are not durable yet
        self._coming: dict[str, int] = {}  # by lane: handoffs whose offer is not durable yet
        self._watch = path.settlement.deadlines.watch
        self._watch.join(self)
        self.leases = Leases(self.queue, self.journal.append, clock, self._loop, self._watch)
        self._receivers = 0
        self.receivers: dict[Receiver, None] = {}  # stopped with this node
        self._timer: asyncio.TimerHandle | None = None
        self._is_due = False  # a waiter has a deadline, so the timer must follow the wall clock
        self._unread_since = 0  # ms; since when the store cannot be read; 0 if it can
        self._retry: asyncio.TimerHandle | None = None  # wakes all waiters after a failed read of the store
        self._tasks: set[asyncio.Task[None]] = set()
        self.is_closed = False
        self.queue.open(self._hear)
        self.post(self.step(Listen(self.node_id, ("-",))))
        # The process that this node replaces may be dying just now.
        self._again = self._loop.call_later(_SOON_S, self._look_for_the_dead)

    async def stop(self) -> None:
        """Fail the waiters, since the node closes, and stop the receivers, which release their handoffs."""
        self._fail(closed)
        await asyncio.gather(*(receiver.stop() for receiver in self.receivers))

    def close(self) -> None:
        """Unsubscribe from the queue and fail the waiters. `stop` has released the handoffs of receivers before."""
        self.leases.close()
        self._watch.leave(self)
        for timer in (self._timer, self._again, self._retry):
            if timer is not None:
                timer.cancel()
        for task in self._tasks:
            task.cancel()
        self.post(self.step(Listen(self.node_id, ())))
        self.queue.close()
        self.is_closed = True
        self._fail(closed)

    @property
    def now_ms(self) -> int:
        """The time in epoch milliseconds."""
        return self._clock.now_ns() // NS_PER_MS

    # --- creating ---

    def create(
        self,
        draft: Draft,
        identity: Identity,
        *,
        source: str | None,
        expected: ExpectedOutput | None = None,
        request_id: str | None = None,
        attempts_max: int = ATTEMPTS_MAX,
        metadata: dict[str, Any] | None = None,
        remote: TraceContext | None = None,
    ) -> Awaitable[Handoff]:
        """Create a handoff; the awaitable returns it once it is durable, or raises the `ComityError` of a refusal.

        `remote` is the trace context that it arrived with, if any.
        """
        now_ns = self._clock.now_ns()
        now_ms = now_ns // NS_PER_MS
        new_id, trace_id = self._ids.new_request(now_ms)
        problem = "" if request_id is None else chosen_id_problem(request_id)
        handoff_id = as_refused(request_id) if problem else request_id or new_id
        arrival = self.reader.read(draft, identity, None, handoff_id, now_ms, trace_id)
        if remote is not None:
            arrival = placed(arrival, remote, self._ids)
        more: dict[str, Any] = {"metadata": kept} if (kept := (metadata or {}) | metadata_of(remote)) else {}
        if draft.outside is None:  # else the token has proved the request's chain
            more |= {"source": source, "chain": () if source is None else (source,)}
        request = replace(arrival.request, expected_output=expected, **more)
        if problem:
            refusal = Refused("IDENTITY_INVALID", f"handoff_id {handoff_id} {problem}")
            return self._refused(self._path.refuse(request, refusal))
        waiter: asyncio.Future[Handoff] = self._loop.create_future()
        is_named = request_id is not None
        if is_named and (known := self._known(request)) is not None:
            self._acknowledge(waiter, known)
            return waiter
        if is_named and (handoff_id in self._path.calls or self.journal.call(handoff_id) is not None):
            return self._refused(self._path.refuse(request, reused(request)))
        lane, agent = lane_of(request.tenant_id, request.target), arrival.agent or ANYBODY
        waiting = self.count_waiting(lane, agent.pending_max, now_ms)
        queued: Lane[Call] = Lane(agent, request.target, self.journal, waiting, takes=True)
        arrival = replace(arrival, request=request)
        opened = self._path.enter(arrival, None, now_ns, None, lane=queued, remote=remote, is_named=is_named)
        if isinstance(opened, Reply):
            return self._refused(opened)
        offer = partial(self._offer, opened, lane, attempts_max, waiter)
        if queued.screening is not None:
            return self._offer_later(opened, queued.screening, offer, waiter)
        offer(queued.note)
        return waiter

    async def _offer_later(
        self, opened: Call, work: Sliced[str | Refused], offer: Callable[[str], None], waiter: asyncio.Future[Handoff]
    ) -> Handoff:
        outcome = await self._path.slices.run(work, user_of(opened.request))
        if isinstance(outcome, Refused):
            return await self._refused(self._path.refuse(unsaid(opened.request), outcome))
        if (known := self._known(opened.request)) is not None:  # the same handoff was offered during the PII scan
            return known
        offer(outcome)
        return await waiter

    def _offer(self, opened: Call, lane: str, attempts_max: int, waiter: asyncio.Future[Handoff], note: str) -> None:
        request, now_ms = opened.request, self.now_ms  # the screened request
        if opened.live is not None:
            self.sessions.use(opened.live, request, now_ms)
        handoff = Handoff(
            request=request, lane=lane, made_by=self.node_id, attempts_max=attempts_max, result_trace_id=request.trace_id
        )
        self.remember(handoff)  # before another node can end it
        step = Step(handoff_id=request.request_id, change=Offer(handoff, note), now_ms=now_ms)
        before = self._coming.get(lane, 0)
        self._coming[lane] = before + 1
        self.journal.append((step,), partial(self._offered, step, waiter, lane))
        if not before and lane in self._coming and lane in self._lanes:
            self._ring((f"+{lane}",))  # not durable yet, but a receiver on this node may take it in the same transaction

    async def _refused(self, reply: Reply) -> Handoff:
        await self._path.recorded()
        reply.unwrap()
        raise AssertionError("a refusal has no data")

    def _offered(self, step: Step, waiter: asyncio.Future[Handoff], lane: str, error: Exception | None) -> None:
        self._coming[lane] -= 1
        if not self._coming[lane]:
            del self._coming[lane]
        if error is not None:
            self._ring(tuple(self._ears))
        elif (refusal := step.outcome.refusal) is not None:
            error = refusal_error(refusal)
        handoff = step.outcome.handoff if error is None else None
        if handoff is None or handoff.made_by != self.node_id:  # another node was first: read the store
            self._made.pop(step.handoff_id, None)
        if waiter.done():
            return
        if error is not None:
            waiter.set_exception(error)
        else:
            self._acknowledge(waiter, checked(step.outcome))

    def _acknowledge(self, waiter: asyncio.Future[Handoff], handoff: Handoff) -> None:
        if self._path.observer is not None:
            self._path.observer.acknowledged(handoff.id)
        waiter.set_result(handoff)

    def is_received(self, lane: str) -> bool:
        """Return whether a lane has a receiver on this node other than the node itself."""
        return self._lanes.get(lane, 0) > (lane in self.hosted)

    def is_coming(self, lane: str) -> bool:
        """Return whether this node has an offer for a lane that is not durable yet."""
        return lane in self._coming

    def remember(self, handoff: Handoff) -> None:
        """Cache a handoff of this node, so that its waiters need not read the store."""
        self._made[handoff.id] = handoff
        if len(self._made) > _MADE_KEPT_MAX:
            self._made.popitem(last=False)

    def forget(self, handoff_id: str) -> None:
        """Drop a cached handoff whose waiter has its result; later reads go to the store."""
        self._made.pop(handoff_id, None)

    def count_waiting(self, lane: str, most: int, now_ms: int) -> int:
        """Return the number of handoffs queued in a lane: an upper bound, but exact if it reaches `most`."""
        waiting, counted_at = self._waiting.get(lane, (most, 0))
        if waiting >= most or now_ms - counted_at > _COUNT_AGAIN_MS:
            waiting, counted_at = self.queue.count_free(lane), now_ms
            if len(self._waiting) > SETTLED_KEPT_MAX:
                self._waiting.clear()
        self._waiting[lane] = (waiting + 1, counted_at)
        return waiting

    def _known(self, request: Request) -> Handoff | None:
        """Return the handoff in the queue with this id, if it is for the same request."""
        known = self.queue.get(request.request_id)
        return known if known is not None and is_same(known.request, request) else None

    def get(self, handoff_id: str) -> Handoff | None:
        """Return the current handoff from the queue, or None."""
        check_id(handoff_id)
        return self.queue.get(handoff_id)

    def find(self, handoff_id: str) -> Handoff | None:
        """Return a handoff from the cache or the queue; a cached one is stale until it has ended."""
        check_id(handoff_id)
        return self._made.get(handoff_id) or self.queue.get(handoff_id)

    def has_answer(self, handoff_id: str) -> bool:
        """Return whether a handoff ended before its deadline; if so, wake its waiters, since the ring may have been lost."""
        with contextlib.suppress(ComityError):  # an unreadable store means no
            handoff = self.queue.get(handoff_id)
            if handoff is not None and handoff.state in ENDED and handoff.state is not State.TIMEOUT:
                self._ring((f"!{handoff_id}",))
                return True
        return False

    # --- changing ---

    async def change(self, handoff_id: str, change: Change) -> Handoff:
        """Change a handoff and return it once the change is durable. Raises the `ComityError` of a refusal."""
        return checked((await self.perform(self.step(change, handoff_id))).outcome)

    async def perform(self, step: Step) -> Step:
        """Append a step and wait until it is durable."""
        waiter: asyncio.Future[None] = self._loop.create_future()
        self.journal.append((step,), partial(self._done, step, waiter))
        await waiter
        if self._path.observer is not None:
            self._path.observer.performed(step)
        return step

    def _done(self, step: Step, waiter: asyncio.Future[None] | None, error: Exception | None) -> None:
        if error is not None:
            self._ring(tuple(self._ears))  # the journal has failed: each waiter gets the error when it waits again
        else:
            for _, handoff in step.touched:
                if handoff.state not in ENDED:
                    continue
                record(self._path.recorder, handoff)
                handoff_id = handoff.request.request_id
                if handoff_id in self._made:
                    self._made[handoff_id] = handoff
        if waiter is None or waiter.done():
            return
        if error is None:
            waiter.set_result(None)
        else:
            waiter.set_exception(error)

    def step(self, change: Any, handoff_id: str = "") -> Step:
        """Return a step with the current time."""
        return Step(handoff_id=handoff_id, change=change, now_ms=self.now_ms)

    def post(self, *steps: Step) -> None:
        """Append steps without waiting; log refusals."""
        self.journal.append(steps, partial(self._posted, steps))

    def _posted(self, steps: tuple[Step, ...], error: Exception | None) -> None:
        for step in steps:
            self._done(step, None, error)
            if error is None and step.outcomes and (refusal := step.outcome.refusal) is not None:
                log.info("%s: %s", step.handoff_id, refusal.message)  # it had ended, or its lease was lost

    # --- notifications ---

    @property
    def is_listened_to(self) -> bool:
        """Whether a waiter on this node is subscribed to a topic."""
        return bool(self._ears)

    def ear(self, host: dict[Ear, None] | None, *topics: str) -> Ear:
        """Return a subscription to topics of the queue; `host` is the set of ears that its manager or receiver closes."""
        return Ear(self.arm, self._ears, topics, host)

    async def listen(self, lanes: Iterable[str], step: int = 1) -> None:
        """Subscribe this node to lanes, or unsubscribe with -1. A receiver that reads the queue after this misses nothing."""
        before = tuple(self._lanes)
        for lane in lanes:
            self._lanes[lane] = self._lanes.get(lane, 0) + step
            if not self._lanes[lane]:
                del self._lanes[lane]
        if step < 0:  # an agent of this node that deferred to this receiver may take the queued work
            self._ring(f"+{lane}" for lane in lanes)
        if self.is_closed or (tuple(self._lanes) == before and not self._listening):
            return
        self._listening += 1
        try:
            await self.perform(self.step(Listen(self.node_id, ("-", *self._lanes))))
        finally:
            self._listening -= 1

    def _hear(self, topics: set[str] | None) -> None:
        if self.journal.failure is not None:
            self._ring(tuple(self._ears))  # each waiter gets the error when it waits again
            return
        try:
            self._attend(topics)
            self._unread_since = 0
        except ComityError as error:
            self._look_again_soon(error)

    def _attend(self, topics: set[str] | None) -> None:
        if topics is None and self.queue.knows_of_the_dead:
            self.post(self.step(Sweep()))
        heard = tuple(self._ears) if topics is None else topics
        if topics is None:
            ended = [one for one in self._made.values() if one.state not in ENDED]
        else:
            told = [self._made.get(topic[1:]) for topic in topics if topic[0] == "!"]
            ended = [one for one in told if one is not None and one.state not in ENDED]
        for handoff in self.queue.get_again(ended) if ended else ():
            self._made[handoff.request.request_id] = handoff
        self._ring(heard)
        self.leases.look_after(topics)

    def _ring(self, topics: Iterable[str]) -> None:
        for topic in topics:
            for ear in self._ears.get(topic, ()):
                ear.ring()

    def _fail(self, why: Callable[[], Exception], due_by: int | None = None) -> None:
        """Fail the waiters; with `due_by`, only those that should have been woken by then."""
        for ear in dict.fromkeys(ear for ears in self._ears.values() for ear in ears):
            if due_by is None or (ear.due_at is not None and ear.due_at <= due_by):
                ear.fail(why())

    def _look_again_soon(self, error: ComityError) -> None:
        """Wake all waiters after a pause: the store could not be read, so missed changes are unknown."""
        log.warning("the handoff queue could not be looked at: %s", error)
        now_ms = self.now_ms
        self._unread_since = self._unread_since or now_ms
        if now_ms - self._unread_since >= _PATIENCE_MS:
            self._fail(lambda: copy.copy(error), now_ms)
        if self._retry is not None:
            self._retry.cancel()
        self._retry = self._loop.call_later(_SOON_S, self._hear, None)

    def arm(self, due_at: int | None) -> None:
        """Set the timer that reads the queue at `due_at`, or after `LOOK_AGAIN_S`. Raises the journal's error if it failed."""
        if self.is_closed:
            raise closed()
        if self.journal.failure is not None:
            raise self.journal.failure
        delay = LOOK_AGAIN_S if due_at is None else min(LOOK_AGAIN_S, max(due_at - self.now_ms, 0) / MS_PER_S)
        at = self._loop.time() + delay
        if due_at is not None:
            self._is_due = True
            if self._watch.is_parked:
                self._watch.wake()
        if self._timer is None or at < self._timer.when():
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(at + _JITTER_S * self._ids.chance(), self._look)

    @property
    def is_armed(self) -> bool:
        """Whether a timer depends on the wall clock."""
        return self._is_due

    def set_anew(self) -> None:
        """Read the queue now: the wall clock and the loop's clock drifted apart."""
        if self._timer is not None:
            self._timer.cancel()
            self._look()

    def _look(self) -> None:
        self._timer, self._is_due = None, False
        try:
            due_at = self.queue.next_due()
            if self.queue.knows_of_the_dead or (due_at is not None and due_at <= self.now_ms):
                self._spawn(self._swept())
                return
            self._hear(None)
            if self._ears:
                self.arm(due_at)
        except ComityError as error:
            self._look_again_soon(error)

    def _look_for_the_dead(self) -> None:
        try:
            self.queue.look_for_the_dead()
            if self.queue.knows_of_the_dead:
                self.post(self.step(Sweep()))
        except ComityError:
            self._again = self._loop.call_later(_SOON_S, self._look_for_the_dead)

    async def sweep(self) -> None:
        """Record expired deadlines and leases, and ring their waiters."""
        await self.perform(self.step(Sweep()))

    async def _swept(self) -> None:
        try:
            await self.sweep()
            due_at = self.queue.next_due()
            self._unread_since = 0
            if self._ears:
                self.arm(due_at)
        except ComityError as error:
            self._look_again_soon(error)

    # --- holding ---

    def new_holder(self) -> str:
        """Return a new holder name for a receiver of this node."""
        self._receivers += 1
        return holder_name(self.node_id, self._receivers)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task: asyncio.Task[None] = self._loop.create_task(work)
        self._tasks.add(task)  # the loop keeps only a weak reference
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(_report)


def lane_of(tenant_id: str, target: str) -> str:
    """Return the lane (queue name) for an agent or a capability."""
    return f"{tenant_id}\x1f{target.partition('/')[0]}"


def checked(outcome: Outcome) -> Handoff:
    """Return the changed handoff, or raise the `ComityError` of the refusal."""
    if outcome.refusal is not None:
        raise refusal_error(outcome.refusal)
    assert outcome.handoff is not None  # `machine.apply` returns the handoff of each change that it does not refuse
    return outcome.handoff


def refusal_error(refusal: Refused) -> ComityError:
    """Return the `ComityError` for a refusal."""
    return family(refusal.code)(refusal.message, code=refusal.code)


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("the handoff queue could not be looked after", exc_info=error)
