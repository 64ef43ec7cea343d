"""A call in progress (`Call`): its task, its node, its waiters and its reply; and the timers of deadlines (`Deadlines`).

The request and the tree of a call are in `core/call/tree.py`. Calls whose deadlines fall into one slot share a timer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from msgspec import Raw
from msgspec.structs import replace

from comity.core.agent.agent import Agent, Capability
from comity.core.agent.tool import EVERYTHING, narrow
from comity.core.call.machine import RUNNING, TRANSITIONS, Event
from comity.core.call.tree import Branch
from comity.core.envelope.envelope import Error, Reply, Request
from comity.core.envelope.reserved import words_of
from comity.core.journal.records import Accepted, Settled
from comity.core.journal.terms import Terms
from comity.core.tracing.telemetry import CallEnd, Handed
from comity.core.tracing.trace_context import TraceContext
from comity.core.units import MS_PER_S, NS_PER_MS
from comity.errors import RefusedError
from comity.ports import Clock
from comity.runtime.agent.activations import Activation
from comity.runtime.agent.clock_watch import ClockWatch
from comity.runtime.call.events import EventLog
from comity.runtime.call.pace import Pace
from comity.runtime.call.way import LOCAL, Way
from comity.runtime.session.live import Live

SLOT_MS: Final = 10
EXPIRE_MOST: Final = 2  # calls that time out per turn of the event loop; further ones wait for the next turn
NEVER_MS: Final = 253_370_764_800_000  # the year 9999


class Unjudged(NamedTuple):
    """A model step that a guardrail may still withhold: its journal records, and its span if spans are kept."""

    accepted: Accepted
    settled: Settled
    end: CallEnd | None

    def without_words(self) -> Unjudged:
        """Return the step without prompt and data, as it is recorded if a guardrail withholds them; its cost stays."""
        reply = replace(self.settled.reply, data=None)
        asked = None if self.end is None or self.end.asked is None else replace(self.end.asked, prompt=None)
        end = None if self.end is None else replace(self.end, reply=reply, asked=asked)
        return Unjudged(self.accepted, replace(self.settled, reply=reply), end)


class Call(Branch, eq=False, gc=False, kw_only=True):
    """Everything the runtime knows about one call; equal only to itself.

    Its reference cycles (task, children, seat) are broken when it ends, so `gc=False` leaks nothing.
    """

    agent: Agent
    capability: Capability
    arguments: Any
    seat: Activation[Call]
    started_ns: int
    live: Live | None = None  # the session; None until the call needs one
    log: EventLog | None = None  # the event log of the root, if a caller watches it
    way: Way = LOCAL
    remote: TraceContext | None = None  # the trace context that the root call arrived with
    uses: dict[str, Request] | None = None  # tool uses in progress, by request id
    task: asyncio.Task[None] | None = None
    arriving: asyncio.Task[None] | None = None  # scans its long request for PII, before the call is accepted
    waiters: list[asyncio.Future[None]] | None = None
    slot: int = 0  # the slot of its deadline in `Deadlines`
    reply: Reply | None = None
    reply_bytes: int = 0  # size of the reply's data, where it is large
    written: tuple[Any, bytes] | None = None  # the reply's data and its JSON; see `as_written`
    ended_ns: int = 0  # when the code returned, if the result settles in the same step; else 0
    progress: Callable[[], Any] | None = None  # returns the latest progress report, or the text written so far
    warnings: tuple[str, ...] = ()  # from guidance constraints, for the reply
    primary: Error | None = None  # why the first implementation failed
    gave_up: bool = False  # its code raised `TimeoutError`
    began_ms: int = 0  # when it left its agent's queue; 0 if it was never queued, -1 while it is queued
    is_delivered: bool = False  # the waiters have been resolved; the reply is durable where the node promises that
    is_detached: bool = False  # keeps running without a waiter: a handle holds it, or it was resumed
    probe: int = 0  # number of the breaker's half-open period that this call probes; 0 if it is no probe
    skips_primary: bool = False  # the breaker is open and another implementation stands in
    uses_state: bool = False  # it read the agent's state, which is saved when it settles
    handed: Handed | None = None  # for a handoff within a tree: the fields of its span
    reported: tuple[int, int] | None = None  # tokens its own code reported, prompt and completion
    unjudged: list[Unjudged] | None = None  # model steps that are recorded once the guardrails have judged the reply
    has_answer: Callable[[], bool] | None = None  # for a handoff: returns whether its result was stored before the deadline
    tools_used: int = 0  # numbers the request ids of tool uses
    asked: int = 0  # calls that an external agent made for it under ids it chose, repeated ones included
    named: dict[str, tuple[Request, Call | Reply] | None] | None = None  # those calls by id: request, and call or reply
    line: asyncio.Lock | None = None  # serializes the pauses of `wait_in_line`
    said: Request | None = None  # the request as the session stores it, where the callee sees more PII than that
    told: set[str] | None = None  # reserved error codes and metadata names that the node gave it, so it may pass them on
    marks: dict[str, str] | None = None  # the platform's own metadata for its reply

    @property
    def shown(self) -> Any:
        """The latest progress report of the call, or None."""
        return None if self.progress is None else self.progress()

    @property
    def rights(self) -> frozenset[str]:
        """The tools it may use: what its agent's profile allows of what was granted to it."""
        granted = self.request.tools
        return narrow(EVERYTHING if granted is None else frozenset(granted), self.agent.tools_allowed)

    @property
    def session_head(self) -> Call:
        """The topmost call of this call's session, at or above this call; it holds the session (`live`)."""
        call, top = self, self.top
        if self.request.session_id == top.request.session_id:
            return top
        while call.parent is not None and call.parent.request.session_id == call.request.session_id:
            call = call.parent
        return call

    @property
    def is_here(self) -> bool:
        """Whether it runs on this node."""
        return not self.way.node_id

    @property
    def has_moved(self) -> bool:
        """Whether another node took over its agent, and with it this call, before it settled."""
        return self.way.is_moved

    @property
    def token(self) -> int:
        """The fencing token of its agent's lease; 0 where no lease is needed."""
        return 0 if self.way.fence is None else self.way.fence.token

    @property
    def delivered(self) -> Reply:
        """The reply of a call that was delivered."""
        assert self.reply is not None  # `Settlement` gives each call its reply before it delivers the call
        return self.reply

    def as_written(self, reply: Reply) -> Reply:
        """Return the reply with its data as `Raw` JSON, which saves encoding it again.

        Return it unchanged if no JSON is kept, or if the data was replaced (by a guardrail, or by restoring hidden values).
        """
        written = self.written
        return reply if written is None or reply.data is not written[0] else replace(reply, data=Raw(written[1]))

    def move(self, event: Event) -> None:
        """Take a step of the machine: the one place where the state of a call changes."""
        self.state = TRANSITIONS[self.state][event]

    @property
    def terms(self) -> Terms | None:
        """The terms for records of its progress: the lease of its agent is still held here, and the call is open."""
        fence = self.way.fence
        return None if fence is None else Terms(fences=(fence,), open=(self.request.request_id,))

    @property
    def held(self) -> Terms | None:
        """The terms for records that may follow its end: the lease of its agent is still held here."""
        return None if self.way.fence is None else Terms(fences=(self.way.fence,))

    def note_named(self, request_id: str) -> bool:
        """Note a call under an id that an external agent chose; return whether this run saw that id before."""
        self.asked += 1
        if request_id in (named := self.named_calls):
            return True
        named[request_id] = None
        return False

    @property
    def named_calls(self) -> dict[str, tuple[Request, Call | Reply] | None]:
        """The calls made for it under ids that an external agent chose, by id."""
        if self.named is None:
            self.named = {}
        return self.named

    async def wait_in_line(self, pause_ms: int) -> None:
        """Pause a call that repeats refused steps. Parallel steps pause one after the other, so they write no more rows."""
        if self.line is None:
            self.line = asyncio.Lock()
        async with self.line:
            await asyncio.sleep(pause_ms / MS_PER_S)

    def hear(self, *words: str) -> None:
        """Note reserved error codes and metadata names that the node gave to this call, so that its reply may hold them."""
        if self.told is None:
            self.told = set()
        self.told.update(words)

    def given(self, reply: Reply) -> Reply:
        """Return the reply, having noted (`hear`) its reserved codes and metadata names, which this call may pass on."""
        if (reply.error is not None or reply.metadata) and (words := words_of(reply)):
            self.hear(*words)
        return reply

    def check_running(self) -> None:
        """Raise `RefusedError` CALL_CANCELLED if it has ended: a task that outlived its call may cause no further effects."""
        if self.state is not RUNNING:
            raise RefusedError(f"the call {self.request.request_id} has ended", code="CALL_CANCELLED")

    def watch(self, log: EventLog) -> None:
        """Send events of this call and of the calls below it to `log` from now on."""
        self.log = log
        for child in self.waits_for:
            child.watch(log)


class Deadlines:
    """Calls `expire` for calls past their deadline: never early, at most a slot late, or a second after a clock jump."""

    def __init__(self, clock: Clock, loop: asyncio.AbstractEventLoop, expire: Callable[[Call], None], pace: Pace) -> None:
        self._clock = clock
        self._loop = loop
        self._expire = expire
        self._pace = pace
        self._slots: dict[int, dict[Call, None]] = {}
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self.watch = ClockWatch(clock, loop)  # shared with other timers on the wall clock
        self.watch.join(self)

    def add(self, call: Call) -> None:
        """Watch a call's deadline. A workflow's root has none (`NEVER_MS`): its planner watches the time."""
        slot = call.slot = call.request.deadline_at // SLOT_MS + 1
        calls = self._slots.get(slot)
        if calls is None:
            if call.request.deadline_at >= NEVER_MS:
                return
            calls = self._slots[slot] = {}
            self._arm(slot)
            if self.watch.is_parked:
                self.watch.wake()
        calls[call] = None

    def discard(self, call: Call) -> None:
        """Stop watching."""
        calls = self._slots.get(call.slot)
        if calls is not None:
            calls.pop(call, None)

    @property
    def is_armed(self) -> bool:
        """Whether a timer is set."""
        return bool(self._timers)

    def set_anew(self) -> None:
        """Set every timer again, after the wall clock and the loop's clock drifted apart."""
        for slot, timer in self._timers.items():
            timer.cancel()
            self._arm(slot)

    def close(self) -> None:
        """Drop all timers."""
        self.watch.close()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._slots.clear()

    def _arm(self, slot: int) -> None:
        # Time is read here: building a validator may have taken a while since the call arrived.
        now_ms = self._clock.now_ns() // NS_PER_MS
        self._timers[slot] = self._loop.call_later(max(slot * SLOT_MS - now_ms, 0) / MS_PER_S, self._fire, slot)

    def _fire(self, slot: int) -> None:
        now_ms = self._clock.now_ns() // NS_PER_MS
        if now_ms < slot * SLOT_MS:  # the two clocks differ a little; early is never right
            self._arm(slot)
            return
        calls, begun_s = self._slots[slot], self._loop.time()
        for _ in range(EXPIRE_MOST):
            if not calls:  # ending a call also ends, and discards, the calls below it
                del self._slots[slot], self._timers[slot]
                return
            call = next(iter(calls))
            del calls[call]
            self._expire(call)
        self._timers[slot] = self._loop.call_later(0, self._rest, slot, begun_s)  # after the cancelled code has run

    def _rest(self, slot: int, begun_s: float) -> None:
        now_s = self._loop.time()
        self._pace.spend(now_s - begun_s, now_s)
        self._timers[slot] = self._loop.call_later(self._pace.rest_s(now_s), self._fire, slot)
