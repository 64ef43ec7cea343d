"""Virtual agents: activated by their first call, deactivated when idle, one activation per tenant and address.

An activation queues and runs a tenant's calls to one address, and holds the agent's private state while it is in memory.
Tenants never share a state. The state is saved in the transaction that settles a call which read it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from comity.core.agent.activation import ACTIVE, INACTIVE, Event, State, advance
from comity.core.agent.agent import Agent, Hook
from comity.core.agent.mailbox import Mailbox
from comity.core.call.admission import Refused
from comity.core.call.limits import STATE_BYTES_MAX
from comity.core.call.machine import RUNNING
from comity.core.document.foreign_errors import told
from comity.core.document.payload import PayloadError, pack, unpack
from comity.core.document.slices import Sliced
from comity.core.envelope.envelope import Request
from comity.core.journal.records import DEFAULT_TENANT, Document, Saved, state_key
from comity.core.units import NS_PER_MS
from comity.ports import Clock, Journal
from comity.ports.observer import Call as Observed
from comity.runtime.agent.failure_log import HideText, log_raised
from comity.runtime.call.tasks import PASSES, is_own
from comity.runtime.call.way import LOCAL, Way

if TYPE_CHECKING:
    from comity.ports.observer import Observer
    from comity.runtime.session.sealing import Seal


STAND_INS_MAX: Final = 10_000


class Occupant(Observed, Protocol):
    """The interface of a call that runs or is queued at an activation."""

    uses_state: bool  # it read the agent's state
    began_ms: int  # when it left the queue; -1 while it is queued
    seat: Any  # its activation


C = TypeVar("C", bound=Occupant)


class Activation(Generic[C]):
    """One address in memory, for one tenant."""

    __slots__ = (
        "_journal",
        "_kept",
        "_saved",
        "_seal",
        "_state_data",
        "_version",
        "address",
        "agent",
        "coming",
        "holders",
        "key",
        "mailbox",
        "state",
        "token",
        "used_at",
    )

    def __init__(
        self,
        agent: Agent,
        address: str,
        journal: Journal,
        *,
        key: str = "",
        seal: Seal | None = None,
    ) -> None:
        self.agent = agent
        self.address = address
        self.key = key or address  # of the state: tenant and address
        self.state: State = INACTIVE
        self.mailbox: Mailbox[C] = Mailbox()
        self.holders: dict[C, None] = {}
        self.coming = 0  # admitted calls whose PII scan is not done
        self.token = 0  # fencing token of the address, in a cluster
        self.used_at = 0  # epoch milliseconds; when it became idle
        self._journal = journal
        self._seal = seal
        self._state_data: dict[str, Any] | None = None
        self._saved = self._kept = b"{}"  # the state in the store, and the state when the last call that used it ended
        self._version = 0

    @property
    def is_full(self) -> bool:
        """Whether a further call would be queued."""
        return len(self.holders) >= self.agent.concurrency

    def place(self) -> int:
        """Return the queue position of a new call; 0 if it can run, or could once the agent is activated."""
        place = len(self.holders) + self.mailbox.waiting + self.coming + 1 - self.agent.concurrency
        return place if place > 0 else 0  # noqa: FURB136  `max` costs as much as three rules

    def can_start(self) -> bool:
        """Return whether a call can start now."""
        return self.state is ACTIVE and len(self.holders) < self.agent.concurrency

    @property
    def is_idle(self) -> bool:
        """Whether no call runs or is queued here."""
        return not self.holders and not self.mailbox.waiting and not self.coming

    def advance(self, event: Event) -> None:
        """Apply an event to the life cycle's state machine."""
        self.state = advance(self.state, event)

    @property
    def data(self) -> dict[str, Any]:
        """The agent's private state, loaded on first use."""
        data = self._state_data
        if data is None:
            stored = self._journal.load(Document.STATE, self.key)
            if stored is not None:
                self._version, sealed = stored
                self._saved = sealed if self._seal is None else self._seal.opened(f"state {self.key}", sealed)
            self._kept = self._saved
            data = self._state_data = unpack(self._saved)
        return data

    def look_again(self) -> None:
        """Discard later changes of a call that has ended, unless another running call shares the state."""
        if self._state_data is None or any(one.uses_state and one.state is RUNNING for one in self.holders):
            return
        self._state_data = unpack(self._kept)

    def keep(self) -> None:
        """Snapshot the agent's state as the value to persist. Later changes count only if a running call makes them.

        Raises `PayloadError` for a state that cannot be saved; the agent then has the state that was last kept.
        """
        if self._state_data is None:
            return
        try:
            self._kept = pack(self._state_data, path="state", bytes_max=STATE_BYTES_MAX)
        except PayloadError:
            # In place: a concurrent call may hold a reference to this dict.
            self._state_data.clear()
            self._state_data.update(unpack(self._kept))
            raise

    def changes(self) -> tuple[Saved, ...]:
        """Return the record that saves the state, or nothing if it has not changed."""
        if self._kept == self._saved:
            return ()
        self._saved = self._kept
        self._version += 1
        data = self._saved if self._seal is None else self._seal.sealed(f"state {self.key}", self._saved)
        return (Saved(Document.STATE, self.key, self._version, data, self.token),)


class Lane(Activation[C]):
    """The seat of a handoff: its work is queued in the store for a receiver, and never runs here."""

    __slots__ = ("_takes", "_waiting", "note", "screening")

    def __init__(self, agent: Agent, address: str, journal: Journal, waiting: int, *, takes: bool) -> None:
        super().__init__(agent, address, journal)
        self._waiting = waiting
        self._takes = takes
        self.note = ""  # the audit note of the call in it
        self.screening: Sliced[str | Refused] | None = None  # sliced work that must end before the call is offered

    @property
    def is_full(self) -> bool:
        """Whether the call is only queued; False if a task on this node waits for the receiver's result."""
        return self._takes

    def can_start(self) -> bool:
        """Return whether a task on this node waits for the receiver's result."""
        return not self._takes

    def place(self) -> int:
        """Return the queue position of the next handoff."""
        return self._waiting + 1

    @property
    def takes(self) -> bool:
        """Whether an admitted call stays here until a receiver takes it, instead of starting."""
        return self._takes

    def take(self, screened: str | Sliced[str | Refused]) -> None:
        """Keep the audit note of an admitted call, or the sliced work that returns it."""
        if isinstance(screened, str):
            self.note = screened
        else:
            self.screening = screened


class Activations(Generic[C]):
    """All activations in memory. The call path passes callbacks that start and fail calls."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        *,
        start: Callable[[C], None],
        fail: Callable[[C, str], None],
        hide: HideText | None = None,
        seal: Seal | None = None,
        observer: Observer | None = None,
    ) -> None:
        self._journal = journal
        self._seal = seal
        self._observer = observer
        self._clock = clock
        self._start = start
        self._fail = fail
        self._hide = hide  # removes personal data from log texts
        self._seats: dict[str, Activation[C]] = {}  # by `state_key`
        self._stand_ins: dict[str, Activation[C]] = {}  # by address: placeholders for agents of other nodes, where nothing runs
        self._tasks: dict[asyncio.Task[None], None] = {}
        self.strays: dict[C, int] = {}  # calls whose code runs without a slot, and since when, in ms
        self.put_away: Callable[[str], None] | None = None  # callback for an address that has left memory

    def __len__(self) -> int:
        return len(self._seats)

    def seat(self, agent: Agent, request: Request, way: Way = LOCAL) -> Activation[C]:
        """Return the activation of a request's target, new if it is not in memory; a placeholder if another node holds it."""
        address = request.target
        if way.node_id:
            stand_in = self._stand_ins.get(address)
            if stand_in is None or stand_in.agent is not agent:
                if len(self._stand_ins) >= STAND_INS_MAX:
                    self._stand_ins.clear()
                stand_in = self._stand_ins[address] = Activation(agent, address, self._journal)
            return stand_in
        # `state_key`, inlined for the default tenant: every call passes here.
        key = address if request.tenant_id == DEFAULT_TENANT else state_key(request.tenant_id, address)
        seat = self._seats.get(key)
        if seat is None:
            seat = self._seats[key] = Activation(agent, address, self._journal, key=key, seal=self._seal)
            if agent.on_activate is None:  # nothing to wait for
                self._advance(seat, Event.ACTIVATE)
                self._advance(seat, Event.READY)
        if way.fence is not None:
            seat.token = way.fence.token
        return seat

    def admit(self, call: C) -> None:
        """Start a call, or queue it."""
        seat = call.seat
        if not seat.mailbox.waiting and seat.can_start():
            start = self._start
            start(call)
        else:
            call.began_ms = -1
            seat.mailbox.offer(call, call.request.priority)
            if seat.state is INACTIVE:
                self._activate(seat)
        if self._observer is not None:
            self._observer.queued(call)

    def leave(self, call: C) -> None:
        """Free a call's slot and start the next queued call."""
        if self._observer is not None:
            self._observer.leaving(call)
        if self.strays and self.strays.pop(call, None) is not None:
            call.seat.holders.pop(call, None)
            return
        seat = call.seat
        del seat.holders[call]
        if seat.mailbox.waiting:
            self._start_waiting(seat)
        elif not seat.holders:
            seat.used_at = self._clock.now_ns() // NS_PER_MS

    def take_back(self, call: C) -> None:
        """Give the slot of an ended call to the next one although its code still runs."""
        if call not in self.strays:  # else it lost its slot with its address
            self.leave(call)
            self.strays[call] = self._clock.now_ns() // NS_PER_MS

    def seats(self) -> Collection[Activation[C]]:
        """Return all activations in memory, one per tenant and address."""
        return self._seats.values()

    def addresses(self) -> list[str]:
        """Return the addresses in memory, without duplicates."""
        return list(dict.fromkeys(seat.address for seat in self._seats.values()))

    @property
    def running(self) -> list[C]:
        """The calls whose code runs here, whether they have ended or not."""
        return [*(call for seat in self._seats.values() for call in seat.holders), *self.strays]

    def drop(self, address: str) -> list[C]:
        """Remove an address that another node has taken over; return its running and queued calls. Save nothing."""
        calls: list[C] = []
        for seat in [one for one in self._seats.values() if one.address == address]:
            del self._seats[seat.key]
            calls += seat.holders
            self.strays |= dict.fromkeys(seat.holders, self._clock.now_ns() // NS_PER_MS)
            while (call := seat.mailbox.take()) is not None:
                calls.append(call)
        return calls

    def put_away_idle(self) -> None:
        """Deactivate every activation that has been idle for its agent's idle time."""
        now_ms = self._clock.now_ns() // NS_PER_MS
        for seat in list(self._seats.values()):
            if seat.state is ACTIVE and seat.is_idle and now_ms - seat.used_at >= seat.agent.idle_ms:
                self._advance(seat, Event.DEACTIVATE)
                if seat.agent.on_deactivate is None:
                    self._gone(seat)
                else:
                    self._spawn(self._deactivate(seat), f"deactivate {seat.address}")

    def stop(self) -> list[asyncio.Task[None]]:
        """Cancel the tasks that activate and deactivate agents, and return them."""
        for task in self._tasks:
            task.cancel()
        return list(self._tasks)

    def close(self) -> None:
        """Save changed states."""
        for seat in self._seats.values():
            self._save(seat)

    def _start_waiting(self, seat: Activation[C]) -> None:
        while seat.can_start() and (call := seat.mailbox.take()) is not None:
            call.began_ms = self._clock.now_ns() // NS_PER_MS
            self._start(call)

    def _advance(self, seat: Activation[C], event: Event) -> None:
        if self._observer is not None:
            self._observer.moved("activation", seat.state, event)
        seat.advance(event)

    def _activate(self, seat: Activation[C]) -> None:
        self._advance(seat, Event.ACTIVATE)
        self._spawn(self._ready(seat), f"activate {seat.address}")

    async def _ready(self, seat: Activation[C]) -> None:
        task = asyncio.current_task()
        try:
            await _run_hook(seat.agent.on_activate, seat)
        except BaseException as raised:  # the task boundary
            if isinstance(raised, PASSES) and not is_own(raised, task):
                raise
            log_raised(raised, self._hide, "%s could not be activated", seat.address)
            self._advance(seat, Event.FAIL)
            why = told(raised) if self._hide is None else self._hide(told(raised))
            while (call := seat.mailbox.take()) is not None:
                self._fail(call, f"{seat.address} could not be activated: {why}")
            return
        self._advance(seat, Event.READY)
        self._start_waiting(seat)

    async def _deactivate(self, seat: Activation[C]) -> None:
        task = asyncio.current_task()
        try:
            await _run_hook(seat.agent.on_deactivate, seat)
        except BaseException as raised:  # the task boundary
            if isinstance(raised, PASSES) and not is_own(raised, task):
                raise
            log_raised(raised, self._hide, "%s failed while being put away", seat.address)
        self._gone(seat)

    def _save(self, seat: Activation[C]) -> None:
        if changes := seat.changes():
            self._journal.append(changes)

    def _gone(self, seat: Activation[C]) -> None:
        self._save(seat)
        self._advance(seat, Event.GONE)
        if seat.mailbox.waiting:  # a call arrived during deactivation
            self._activate(seat)
        elif self._seats.get(seat.key) is seat:
            del self._seats[seat.key]
            if self.put_away is not None and not any(one.address == seat.address for one in self._seats.values()):
                self.put_away(seat.address)

    def _spawn(self, work: Awaitable[None], name: str) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work, name=name)  # type: ignore[arg-type]
        self._tasks[task] = None  # the loop keeps only a weak reference
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)


async def _run_hook(hook: Hook | None, seat: Activation[C]) -> None:
    if hook is not None:
        seat.look_again()
        result = hook(seat.address, seat.data)
        if asyncio.iscoroutine(result):
            await result
        seat.keep()
