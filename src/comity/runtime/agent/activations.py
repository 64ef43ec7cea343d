"""Virtual agents: brought to memory by their first call, put away when idle, one activation at a time per tenant and address.

An activation is where a tenant's calls to one address wait and run, and where the agent's private state lives while it is in
memory. No tenant sees another's. The state is saved with the settlement of a call that looked at it, in the same transaction.
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
    """What an activation asks of a call that runs or waits there."""

    uses_state: bool  # it looked at the agent's state
    began_ms: int  # when it got its place; -1 while it waits for one
    seat: Any  # where it has that place


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
        self.key = key or address  # of the state, which is one tenant's
        self.state: State = INACTIVE
        self.mailbox: Mailbox[C] = Mailbox()
        self.holders: dict[C, None] = {}
        self.coming = 0  # calls that were admitted and are still looked through
        self.token = 0  # under which the address is held, where several nodes may
        self.used_at = 0  # milliseconds; when it fell idle
        self._journal = journal
        self._seal = seal
        self._state_data: dict[str, Any] | None = None
        self._saved = self._kept = b"{}"  # as the store has it, and as it was when last a call that used it ended
        self._version = 0

    @property
    def is_full(self) -> bool:
        """Whether a further call would have to wait for another to end."""
        return len(self.holders) >= self.agent.concurrency

    def place(self) -> int:
        """Return the place in the queue of a call that comes now; 0 if it can run, or could if the agent were awake already."""
        place = len(self.holders) + self.mailbox.waiting + self.coming + 1 - self.agent.concurrency
        return place if place > 0 else 0  # noqa: FURB136  `max` costs as much as three rules

    def can_start(self) -> bool:
        """Return whether a call can run here now."""
        return self.state is ACTIVE and len(self.holders) < self.agent.concurrency

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs or waits here."""
        return not self.holders and not self.mailbox.waiting and not self.coming

    def advance(self, event: Event) -> None:
        """Move the life cycle on."""
        self.state = advance(self.state, event)

    @property
    def data(self) -> dict[str, Any]:
        """The agent's private state, loaded when first looked at."""
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
        """Forget what a call that has ended did to the state since. While another call uses it, both look at one state."""
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
            # In place: a call that runs beside the call that ends here may hold on to it.
            self._state_data.clear()
            self._state_data.update(unpack(self._kept))
            raise

    def changes(self) -> tuple[Saved, ...]:
        """Return the record of what changed since it was last saved, if anything did."""
        if self._kept == self._saved:
            return ()
        self._saved = self._kept
        self._version += 1
        data = self._saved if self._seal is None else self._seal.sealed(f"state {self.key}", self._saved)
        return (Saved(Document.STATE, self.key, self._version, data, self.token),)


class Lane(Activation[C]):
    """Where work waits that is done elsewhere: not in memory, and never started here."""

    __slots__ = ("_takes", "_waiting", "note", "screening")

    def __init__(self, agent: Agent, address: str, journal: Journal, waiting: int, *, takes: bool) -> None:
        super().__init__(agent, address, journal)
        self._waiting = waiting
        self._takes = takes
        self.note = ""  # what the audit is to say of the call it took
        self.screening: Sliced[str | Refused] | None = None  # what is left to do before the call may lie in it

    @property
    def is_full(self) -> bool:
        """Whether a call waits until a receiver takes it; False if a caller on this node waits for that in its stead."""
        return self._takes

    def can_start(self) -> bool:
        """Return whether a caller on this node waits in its stead."""
        return not self._takes

    def place(self) -> int:
        """Return the place of the next one."""
        return self._waiting + 1

    @property
    def takes(self) -> bool:
        """Whether a call that was admitted lies here until it is taken, and does not go on."""
        return self._takes

    def take(self, screened: str | Sliced[str | Refused]) -> None:
        """Take a call that was admitted: with a note for the audit, or with what is left to do until there is one."""
        if isinstance(screened, str):
            self.note = screened
        else:
            self.screening = screened


class Activations(Generic[C]):
    """All addresses in memory. Starting a waiting call and failing one are the call path's business."""

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
        self._hide = hide  # what must not stand in the log
        self._seats: dict[str, Activation[C]] = {}  # by `state_key`
        self._stand_ins: dict[str, Activation[C]] = {}  # by address: of agents of other nodes, where nothing runs
        self._tasks: dict[asyncio.Task[None], None] = {}
        self.strays: dict[C, int] = {}  # calls whose code runs without a place, and since when, in milliseconds
        self.put_away: Callable[[str], None] | None = None  # told when an address has left memory

    def __len__(self) -> int:
        return len(self._seats)

    def seat(self, agent: Agent, request: Request, way: Way = LOCAL) -> Activation[C]:
        """Return the activation a request is for, new if it is not in memory; a stand-in if it is held elsewhere."""
        address = request.target
        if way.node_id:
            stand_in = self._stand_ins.get(address)
            if stand_in is None or stand_in.agent is not agent:
                if len(self._stand_ins) >= STAND_INS_MAX:
                    self._stand_ins.clear()
                stand_in = self._stand_ins[address] = Activation(agent, address, self._journal)
            return stand_in
        # Not asked of `state_key` where it is the address: every call comes here, and most are of one tenant.
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
        """Start a call, or let it wait for its place."""
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
        """Give up a call's place; the next one waiting gets it."""
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
            seat.used_at = self._clock.now_ns() // 1_000_000

    def take_back(self, call: C) -> None:
        """Give the place of a call that has ended to the next one, though its code still runs."""
        if call not in self.strays:  # else it lost its place with its address
            self.leave(call)
            self.strays[call] = self._clock.now_ns() // 1_000_000

    def seats(self) -> Collection[Activation[C]]:
        """Return every address in memory, once for each tenant."""
        return self._seats.values()

    def addresses(self) -> list[str]:
        """Return the addresses in memory, each once."""
        return list(dict.fromkeys(seat.address for seat in self._seats.values()))

    @property
    def running(self) -> list[C]:
        """The calls whose code runs here, whether they have ended or not."""
        return [*(call for seat in self._seats.values() for call in seat.holders), *self.strays]

    def drop(self, address: str) -> list[C]:
        """Forget an address that another node has taken over and return the calls that ran or waited here. Nothing is saved."""
        calls: list[C] = []
        for seat in [one for one in self._seats.values() if one.address == address]:
            del self._seats[seat.key]
            calls += seat.holders
            self.strays |= dict.fromkeys(seat.holders, self._clock.now_ns() // 1_000_000)
            while (call := seat.mailbox.take()) is not None:
                calls.append(call)
        return calls

    def put_away_idle(self) -> None:
        """Put away every activation that has been idle for as long as its agent says."""
        now_ms = self._clock.now_ns() // 1_000_000
        for seat in list(self._seats.values()):
            if seat.state is ACTIVE and seat.is_idle and now_ms - seat.used_at >= seat.agent.idle_ms:
                self._advance(seat, Event.DEACTIVATE)
                if seat.agent.on_deactivate is None:
                    self._gone(seat)
                else:
                    self._spawn(self._deactivate(seat), f"deactivate {seat.address}")

    def stop(self) -> list[asyncio.Task[None]]:
        """Cancel what brings agents to memory or puts them away, and return the tasks."""
        for task in self._tasks:
            task.cancel()
        return list(self._tasks)

    def close(self) -> None:
        """Save what has changed."""
        for seat in self._seats.values():
            self._save(seat)

    def _start_waiting(self, seat: Activation[C]) -> None:
        while seat.can_start() and (call := seat.mailbox.take()) is not None:
            call.began_ms = self._clock.now_ns() // 1_000_000
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
        if seat.mailbox.waiting:  # a call came while it was being put away
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
