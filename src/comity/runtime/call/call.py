"""One call under way: how it runs, where, its waiters and its reply, and until when it may run.

What was asked, and the tree of a call, are in `core/call/tree.py`. Calls whose deadlines fall into one slot share a timer.
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
from comity.errors import RefusedError
from comity.ports import Clock
from comity.runtime.agent.activations import Activation
from comity.runtime.agent.clock_watch import ClockWatch
from comity.runtime.call.events import EventLog
from comity.runtime.call.pace import Pace
from comity.runtime.call.way import LOCAL, Way
from comity.runtime.session.live import Live

SLOT_MS: Final = 10
EXPIRE_MOST: Final = 2  # calls that end by their deadline in one turn of the loop; the others end in the next ones
NEVER_MS: Final = 253_370_764_800_000  # the year 9999


class Unjudged(NamedTuple):
    """A step of a call whose words may turn out to be withheld: its records, and its span if spans are kept."""

    accepted: Accepted
    settled: Settled
    end: CallEnd | None

    def without_words(self) -> Unjudged:
        """Return the step as it is recorded if a guardrail took the words away: that it happened, and what it cost."""
        reply = replace(self.settled.reply, data=None)
        asked = None if self.end is None or self.end.asked is None else replace(self.end.asked, prompt=None)
        end = None if self.end is None else replace(self.end, reply=reply, asked=asked)
        return Unjudged(self.accepted, replace(self.settled, reply=reply), end)


class Call(Branch, eq=False, gc=False, kw_only=True):
    """Everything the runtime knows about one call; equal only to itself.

    Its cycles (task, children, seat) are undone when it ends, so the garbage collector need not look for them.
    """

    agent: Agent
    capability: Capability
    arguments: Any
    seat: Activation[Call]
    started_ns: int
    live: Live | None = None  # the session; None for a call without one, until something in it needs keeping
    log: EventLog | None = None  # the root's, if a caller may watch it
    way: Way = LOCAL
    remote: TraceContext | None = None  # the trace its root came with from outside
    uses: dict[str, Request] | None = None  # of tools, begun and not done
    task: asyncio.Task[None] | None = None
    arriving: asyncio.Task[None] | None = None  # while its long request is looked through
    waiters: list[asyncio.Future[None]] | None = None
    slot: int = 0  # of its deadline, while that is watched
    reply: Reply | None = None
    reply_bytes: int = 0  # of its data, where they are many
    written: tuple[Any, bytes] | None = None  # data of its reply, and the JSON of that; see `as_written`
    ended_ns: int = 0  # when its code gave back a result that is settled in the same step; 0 for any other
    progress: Callable[[], Any] | None = None  # gives the last progress told, or the text being written
    warnings: tuple[str, ...] = ()  # of people's constraints, for the reply
    primary: Error | None = None  # why the first implementation failed
    gave_up: bool = False  # its code waited for something no longer
    began_ms: int = 0  # when it got its place; 0 if it had not to wait for one, -1 while it does
    is_delivered: bool = False  # the reply may leave: it is durable where the node promises that
    is_detached: bool = False  # no caller needs to wait for it: a handle holds it, or it was resumed
    probe: int = 0  # of which half-open time of the breaker: its outcome decides whether that closes
    skips_primary: bool = False  # the breaker is open and another implementation stands in
    uses_state: bool = False  # it looked at the agent's state, which is saved when it settles
    handed: Handed | None = None  # of a handoff within a tree: what its span says
    reported: tuple[int, int] | None = None  # tokens its own code reported, prompt and completion
    unjudged: list[Unjudged] | None = None  # words of a model that are recorded once the guardrails have judged the reply
    has_answer: Callable[[], bool] | None = None  # of a handoff: whether its end is stored, which was in time
    tools_used: int = 0  # numbers the ids of the tools it uses
    asked: int = 0  # calls that an agent outside made for it under ids of its own, repeated ones too
    named: dict[str, tuple[Request, Call | Reply] | None] | None = None  # by id: what was asked, and what came of it here
    line: asyncio.Lock | None = None  # in which what it asks for waits once it has asked too often
    said: Request | None = None  # the request as its session keeps it, where its callee sees more of it
    told: set[str] | None = None  # what the node told it in words that are the platform's: codes, and names of metadata
    marks: dict[str, str] | None = None  # the platform's own metadata for its reply

    @property
    def shown(self) -> Any:
        """What the call has told of its work so far."""
        return None if self.progress is None else self.progress()

    @property
    def rights(self) -> frozenset[str]:
        """The tools it may use: what its agent's profile allows of what was granted to it."""
        granted = self.request.tools
        return narrow(EVERYTHING if granted is None else frozenset(granted), self.agent.tools_allowed)

    @property
    def session_head(self) -> Call:
        """The call at or above this one that is the first in its session: what a session holds hangs there."""
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
        """Whether it left this node without having ended: another node holds its agent."""
        return self.way.is_moved

    @property
    def token(self) -> int:
        """Under which its agent is held here; 0 where no lease is needed."""
        return 0 if self.way.fence is None else self.way.fence.token

    @property
    def delivered(self) -> Reply:
        """The reply of a call that was delivered."""
        assert self.reply is not None  # `Settlement` gives each call its reply before it delivers the call
        return self.reply

    def as_written(self, reply: Reply) -> Reply:
        """Return a reply of this call with its data as JSON, for code that only writes it; as it is where no JSON is kept.

        The JSON is that of one object: a reply that a rule or the session's user made another of is returned as it is.
        """
        written = self.written
        return reply if written is None or reply.data is not written[0] else replace(reply, data=Raw(written[1]))

    def move(self, event: Event) -> None:
        """Take a step of the machine: the one place where the state of a call changes."""
        self.state = TRANSITIONS[self.state][event]

    @property
    def terms(self) -> Terms | None:
        """On which it may write down what it does: its agent is held still, and it has not ended."""
        fence = self.way.fence
        return None if fence is None else Terms(fences=(fence,), open=(self.request.request_id,))

    @property
    def held(self) -> Terms | None:
        """On which what it did may be written down, also after its end: its agent is held still."""
        return None if self.way.fence is None else Terms(fences=(self.way.fence,))

    def note_named(self, request_id: str) -> bool:
        """Note that a call is asked for under an id that an agent outside chose; return whether it was before, in this run."""
        self.asked += 1
        if request_id in (named := self.named_calls):
            return True
        named[request_id] = None
        return False

    @property
    def named_calls(self) -> dict[str, tuple[Request, Call | Reply] | None]:
        """The calls it made under ids that an agent outside chose, by id."""
        if self.named is None:
            self.named = {}
        return self.named

    async def wait_in_line(self, pause_ms: int) -> None:
        """Let a call that goes round and round wait, one step after the other: side by side they leave no more rows."""
        if self.line is None:
            self.line = asyncio.Lock()
        async with self.line:
            await asyncio.sleep(pause_ms / 1000)

    def hear(self, *words: str) -> None:
        """Note codes, and names of metadata, that the node gave to this call, which may pass them on."""
        if self.told is None:
            self.told = set()
        self.told.update(words)

    def given(self, reply: Reply) -> Reply:
        """Return a reply that the node gives to this call, having noted what the call may pass on of it."""
        if (reply.error is not None or reply.metadata) and (words := words_of(reply)):
            self.hear(*words)
        return reply

    def check_running(self) -> None:
        """Raise if it has ended: a task that outlived its call does nothing in the world any more."""
        if self.state is not RUNNING:
            raise RefusedError(f"the call {self.request.request_id} has ended", code="CALL_CANCELLED")

    def watch(self, log: EventLog) -> None:
        """Let events of this call and those below it be seen from now on."""
        self.log = log
        for child in self.waits_for:
            child.watch(log)


class Deadlines:
    """Tells which calls ran out of time, at most a slot late and never early; after a suspend or a step, a second late."""

    def __init__(self, clock: Clock, loop: asyncio.AbstractEventLoop, expire: Callable[[Call], None], pace: Pace) -> None:
        self._clock = clock
        self._loop = loop
        self._expire = expire
        self._pace = pace
        self._slots: dict[int, dict[Call, None]] = {}
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self.watch = ClockWatch(clock, loop)  # also for others that wait for points in time
        self.watch.join(self)

    def add(self, call: Call) -> None:
        """Watch a call's deadline; the root of a run has none, since its planner watches the time."""
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
        """Whether a slot is still to come."""
        return bool(self._timers)

    def set_anew(self) -> None:
        """Set the timer of every slot again: the clock went apart from the loop."""
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
        now_ms = self._clock.now_ns() // 1_000_000
        self._timers[slot] = self._loop.call_later(max(slot * SLOT_MS - now_ms, 0) / 1000, self._fire, slot)

    def _fire(self, slot: int) -> None:
        now_ms = self._clock.now_ns() // 1_000_000
        if now_ms < slot * SLOT_MS:  # the two clocks differ a little; early is never right
            self._arm(slot)
            return
        calls, begun_s = self._slots[slot], self._loop.time()
        for _ in range(EXPIRE_MOST):
            if not calls:  # a call takes along those below it
                del self._slots[slot], self._timers[slot]
                return
            call = next(iter(calls))
            del calls[call]
            self._expire(call)
        self._timers[slot] = self._loop.call_later(0, self._rest, slot, begun_s)  # once what runs for them has been told

    def _rest(self, slot: int, begun_s: float) -> None:
        now_s = self._loop.time()
        self._pace.spend(now_s - begun_s, now_s)
        self._timers[slot] = self._loop.call_later(self._pace.rest_s(now_s), self._fire, slot)
