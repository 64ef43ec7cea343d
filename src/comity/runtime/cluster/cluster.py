"""Several nodes that share one store: one node holds the lease of each address, and calls go to that node.

A call to an address held here takes the usual path. A call to an address held by another node is sent there and runs under the
same request id. All records of an agent carry the fencing token of its lease, and the store refuses records with an older
token. A node that loses a lease gives up the calls at that address; each waiter looks for the agent again, and the next holder
resumes users' calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from comity.core.call.admission import Refused
from comity.core.call.endings import interrupted
from comity.core.call.machine import Event, State
from comity.core.cluster import messages as wire
from comity.core.cluster.lease import LEASE_MS
from comity.core.envelope.envelope import Reply, Request
from comity.core.envelope.request_id import chosen_id_problem
from comity.core.envelope.usage import Usage
from comity.core.journal.records import Accepted, Document, Late, Record, Saved, Settled, StoredCall
from comity.core.journal.terms import Fence, Terms, Version
from comity.core.tracing.trace_context import TraceContext
from comity.errors import CallChangedError, DocumentChangedError, RefusedError, StaleLeaseError, UnavailableError
from comity.ports import Engine, Journal
from comity.runtime.call.call import Call
from comity.runtime.call.draft import Arrival, Draft, Identity
from comity.runtime.call.errand import Errand
from comity.runtime.call.events import EventLog
from comity.runtime.call.placement import Placement
from comity.runtime.call.replay import is_run
from comity.runtime.call.resume import resume
from comity.runtime.call.way import LOCAL, Way
from comity.runtime.cluster.asking import Asking
from comity.runtime.cluster.budgets import Loans
from comity.runtime.cluster.deadlocks import Probes
from comity.runtime.cluster.errands import Errands
from comity.runtime.cluster.inbound import Server
from comity.runtime.cluster.leases import Holds
from comity.runtime.cluster.outbound import Carrier, disown
from comity.runtime.cluster.peers import Peers
from comity.runtime.cluster.served import Served

if TYPE_CHECKING:
    from comity.runtime.call.path import CallPath

log = logging.getLogger("comity")

# How often to look for open calls that no node runs, and how long after its deadline any node may end one.
SWEEP_MS: Final = LEASE_MS
OVERDUE_MS: Final = 1_000
UNDER_WAY: Final = frozenset({State.QUEUED, State.RUNNING, State.SENT})


class Cluster(Placement):
    """The placement of a node in a cluster: a call runs on the node that holds its agent."""

    resumes_here = takes_over = False  # the node that holds the agent does both
    ends_come_first = False  # a reply from another node may precede the journal's record of it

    def __init__(self, path: CallPath, engine: Engine) -> None:
        self.path = path
        self.journal = engine.journal
        self.peers = peers = Peers(engine.journal, engine.transport, path.clock, path.ids)
        self.holds = Holds(engine.leases, engine.journal, path.clock, self._lose)
        self.errands = Errands()
        served: dict[str, Served] = {}
        self._probes = Probes(peers, path.calls)
        self.carrier = Carrier(path, peers, self.holds, self.errands)
        self._loans = Loans(peers, path.calls, self.carrier, served)
        self.asking = Asking(path, peers, self.holds, self._probes, self._loans, self.errands, self.carrier)
        self._server = Server(path, peers, self.holds, self.asking, served, self.let_go)
        self._tasks: list[asyncio.Task[None]] = []
        self._is_leaving = False
        self._deaths = asyncio.Event()  # set if another node seems to have left or died, to sweep at once

    @property
    def is_open(self) -> bool:
        """Whether `open` has completed."""
        return bool(self._tasks)

    async def open(self) -> None:
        """Join the cluster."""
        await self.holds.open()
        await self.peers.transport.open(self.journal.node_id, self._received, lost=self._gone)
        self.announce()
        self._tasks = [self.peers.loop.create_task(self.holds.keep()), self.peers.loop.create_task(self._sweep())]

    def release(self, address: str) -> None:
        """Release the lease of an address whose activation has left memory."""
        self.holds.release(address)

    async def hold(self, address: str) -> bool:
        """Take the lease of an address without an agent; return whether this node holds it now."""
        try:
            return isinstance(await self.holds.locate(address, is_hosted=True), Fence)
        except UnavailableError:
            return False

    def is_held(self, address: str) -> bool:
        """Return whether this node has the lease of an address."""
        return self.holds.fence(address) is not None

    def meets_open(self, request: Request, stored: StoredCall, node_id: str) -> None:
        """Return None: the node that holds the agent resumes an open call."""

    def begun_before(self, request: Request, journal: Journal) -> int:  # noqa: ARG002
        """Return 0: the store counts them on the terms of each call."""
        return 0

    def way_at(self, address: str) -> Way:
        """Return how a call goes at an address that is held here."""
        fence = self.holds.fence(address)
        return LOCAL if fence is None else Way(fence=fence)

    def announce(self) -> None:
        """Tell the other nodes which agents this one hosts."""
        self.peers.transport.announce([name for agent in self.path.registry for name in (agent.id, *agent.aliases)])

    async def leave(self) -> None:
        """Accept no more calls from other nodes, and let the calls that they wait for move to other nodes."""
        self._is_leaving = True
        ending = [*self._tasks, *self.peers.spawned()]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        await self._server.close()
        for call in list(self.path.calls.values()):
            if call.parent is None and call.is_resumed and not call.waiters:
                self.let_go(call)  # resumed for a dead node: its user may wait at another node

    async def close(self) -> None:
        """Release all leases, once all records are durable."""
        await self.path.recorded()
        self.carrier.close()
        await self.holds.close()
        if self.is_open:
            await self.peers.transport.close()

    def _received(self, sender: str, raw: bytes) -> None:
        try:
            self._take(sender, raw)
        except UnavailableError:  # treat it as a lost message: the sender repeats it
            return

    def _take(self, sender: str, raw: bytes) -> None:
        message = wire.decode(raw)
        match message:
            case None:
                pass
            case wire.Ask() if self._is_leaving:
                pass  # the caller asks the agent's next holder
            case wire.Ask() | wire.Inquire() | wire.Cancel():
                self._server.received(sender, message)
            case wire.Borrow() | wire.Lend():
                self._loans.received(sender, message)
            case wire.Look() | wire.Seen():
                self._probes.received(sender, message)
            case _:
                self.carrier.received(sender, message)

    # --- asking ---

    def start_root(
        self, draft: Draft, identity: Identity, request_id: str | None, remote: TraceContext | None, log: EventLog
    ) -> Errand | None:
        """Start a user's call in the background; return None for an invalid request id, which the call path refuses."""
        if request_id is not None and chosen_id_problem(request_id):
            return None
        errand = self.asking.errand(draft, identity, request_id, remote, log)
        errand.task = self.peers.loop.create_task(self.asking.run(errand), name=errand.arrival.request.request_id)
        return errand

    def call_root(
        self, draft: Draft, identity: Identity, request_id: str | None, remote: TraceContext | None = None
    ) -> Coroutine[Any, Any, Reply]:
        """Make a user's call on the node that holds its agent; refuse an invalid request id here."""
        if request_id is not None and chosen_id_problem(request_id):
            return self.path.call_here(draft, identity, request_id, remote)
        return self.asking.call(self.asking.errand(draft, identity, request_id, remote))

    def call_under(self, arrival: Arrival, parent: Call, *, is_repeated: bool) -> Coroutine[Any, Any, Reply]:
        """Make a child call on the node that holds its agent; a repeated one is not charged again."""
        return self.asking.run(Errand(arrival, parent, is_repeated=is_repeated))

    def spawn(self, work: Coroutine[Any, Any, object]) -> None:
        """Run `work` in a background task, which is cancelled when this node closes."""
        self.peers.spawn(work)

    def call_for(self, arrival: Arrival, remote: TraceContext | None) -> Coroutine[Any, Any, Reply]:
        """Make a call for a user on the node that holds its agent."""
        return self.asking.run(Errand(arrival, None, remote))

    async def go_on(self, request: Request) -> Reply:
        """Resume a user's call that was paused or has moved, on the node that holds its agent now."""
        return await self.asking.run(Errand(self.asking.arrival(request), None))

    def withdraw(self, errand: Errand) -> bool:
        """Cancel an errand; return whether it was still in progress."""
        errand.is_withdrawn = True
        if errand.call is not None and self.path.settlement.cancel(errand.call, "its caller cancelled it"):
            return True
        return errand.task is not None and not errand.task.done()

    # --- records, under fencing tokens ---

    def accept(self, call: Call, now_ms: int, note: str) -> None:
        """Record a call that runs here, on the terms that the lease is held and the caller waits; else send it to its node."""
        way, request = call.way, call.request
        if way.fence is None:
            return
        terms = Terms(
            fences=(way.fence,) if way.caller is None else (way.fence, way.caller),
            unsettled=request.request_id,
            open=() if request.parent_id is None else (request.parent_id,),
            within=way.bounds,
        )
        accepted = Accepted(request, now_ms, self.journal.node_id, note)
        self.path.sessions.accept(accepted, call.live, partial(self._accepted, call), terms)

    def _accepted(self, call: Call, error: Exception | None) -> None:
        if error is not None:  # later: the call is not queued or started yet
            self.peers.loop.call_soon(self._unaccepted, call, error)
        else:
            call.way.is_recorded = True

    def _unaccepted(self, call: Call, error: Exception) -> None:
        if isinstance(error, RefusedError) and error.code == "IDENTITY_MISMATCH":
            disown(self.path, call)
        if isinstance(error, RefusedError) and call.state in UNDER_WAY:
            reply = self.path.refuse(call.request, Refused(error.code, error.message), call.log)
            self.path.settlement.take_back(call, reply)
            if call.uses_state:  # what it has changed must not be saved with the end of another call
                self.holds.spoil(call.request.target)
            return
        if isinstance(error, StaleLeaseError):
            self._stale(error)
        self.let_go(call)

    def refusal_terms(self, request: Request) -> Terms | None:
        """Return the terms of a refusal: the caller's lease is held, the caller is open, and the call was not begun."""
        if request.parent_id is None:
            return None  # a user's refusal has no terms
        return Terms(fences=self.asking.caller_fences(request), unknown=request.request_id, open=(request.parent_id,))

    def ended(self, call: Call, event: Event, records: list[Record]) -> None:
        """Record the end of a call and of all calls below it, on every node, then deliver its reply."""
        way, request_id = call.way, call.request.request_id
        is_short = len(records) == 1  # the usual case: no other call ends with it, and no document is saved
        kept = records if is_short else [one for one in records if not self._is_withdrawn(one, request_id)]
        if way.fence is None:
            self.carrier.ended(call, way, event, kept)
        else:
            terms = way.to_end(request_id)
            if event is Event.CANCEL and way.is_served and way.caller is not None:
                terms = replace(terms, fences=(*terms.fences, way.caller))  # its caller may have moved
            if is_short:
                self.journal.append(kept, partial(self._ended, call, event), terms)
                return
            if states := _states_before(kept):
                terms = replace(terms, documents=states)
            self.path.sessions.append(kept, partial(self._ended, call, event), terms)

    def _is_withdrawn(self, end: Record, top_id: str) -> bool:
        """Cancel a child call on another node, if `end` is its record; the store ends it with the tree."""
        if type(end) is not Settled or end.request.request_id == top_id:
            return False
        return self.carrier.withdraw(end.request.request_id)

    def _ended(self, call: Call, event: Event, error: Exception | None) -> None:
        settlement = self.path.settlement
        if error is not None and call.uses_state:  # what it has changed must not be saved with the end of another call
            self.holds.spoil(call.request.target)
        if isinstance(error, StaleLeaseError):
            self._stale(error)
            settlement.release_moved(call)
        elif isinstance(error, DocumentChangedError):  # an earlier call, whose state changes it saw, was refused
            self.holds.spoil(Saved(Document.STATE, error.facts["key"], 0, b"").address)
            settlement.release_moved(call)
        elif isinstance(error, CallChangedError):
            try:
                stored = self.journal.call(call.request.request_id)
            except UnavailableError as unreadable:
                settlement.deliver(call, unreadable)
                return
            if stored is None and call.way.is_recorded:  # it was erased with its session
                settlement.deliver(call, None)
                return
            if stored is None or stored.settled_at is None or stored.reply is None:
                settlement.release_moved(call)
                return
            if event is Event.FINISH and call.reply is not None:
                self.late(call, call.reply)
            call.reply = stored.reply
            settlement.deliver(call, None)
        else:
            if error is None:
                call.way.note_end()
            settlement.deliver(call, error)

    def late(self, call: Call, reply: Reply) -> bool:
        """Record a late result, unless another node holds the agent by now."""
        if call.held is not None and not call.way.is_moved:
            terms = replace(call.held, ended=call.request.request_id)  # if it was accepted at all
            self.journal.append((Late(call.request, reply, self.peers.now_ms()),), None, terms)
        return True

    def carry(self, call: Call, way: Way) -> None:
        """Send a call to the node that holds its agent."""
        self.carrier.carry(call, way)

    def answered_in_store(self, call: Call) -> bool:
        """Settle a call past its deadline with the result that another node has stored; return whether there is one."""
        return self.carrier.answered_in_store(call)

    def top_up(self, call: Call, *, were_there: bool) -> bool:
        """Return whether the budget covers the tokens used, after borrowing more if needed."""
        return self._loans.top_up(call, were_there=were_there)

    def count_replayed(self, parent: Call, usage: Usage) -> None:
        """Charge a replayed child call."""
        parent.account.give_back(-1 - usage.calls, 0)

    def let_go(self, call: Call) -> None:
        """Remove a running call from memory, for another node to resume."""
        if call.state not in UNDER_WAY:
            return
        if call.uses_state:  # what it has changed must not be saved with the end of another call
            self.holds.spoil(call.request.target)
        else:
            self.path.settlement.move(call)

    def _stale(self, error: StaleLeaseError) -> None:
        self.holds.lost(error.facts["address"], error.facts["token"])

    def _lose(self, address: str) -> None:
        """Give up an agent and its calls: another node resumes them."""
        for call in self.path.activations.drop(address):
            if call.state in UNDER_WAY:  # a call that has ended may still have its slot, if its code does not stop
                self.path.settlement.move(call)
        if is_run(address) and self.path.workflows is not None:
            self.path.workflows().forget_waiting()

    # --- taking over ---

    async def _sweep(self) -> None:
        """Periodically resume users' open calls that no node runs, and stop calls here that have ended in the store."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SWEEP_MS * (1 + self.peers.ids.chance()) / 2000):
                    await self._deaths.wait()
            self._deaths.clear()
            if self.journal.failure is None:
                with contextlib.suppress(UnavailableError):
                    self._server.stop_ended()
                for stored in self.journal.open_roots():
                    if stored.request is not None:
                        await self._take_over(stored.request)

    def _gone(self, node_id: str) -> None:
        """Look for the agents and calls of a node that seems to have left or died."""
        self.holds.gone(node_id)
        self.carrier.gone(node_id)
        self._deaths.set()

    async def _take_over(self, request: Request) -> None:
        request_id = request.request_id
        if request_id in self.path.calls or self.errands.is_wanted(request_id) or self._server.serves(request_id):
            return
        if request.deadline_at + OVERDUE_MS <= self.peers.now_ms():  # from now on any node may end it
            ends = interrupted((request,), self.peers.now_ms())
            self.journal.append(ends, None, Terms(open=(request_id,), ends=request_id))
            return
        if is_run(request.target):
            if self.path.workflows is None or not len(self.path.registry) or self.path.workflows().has(request_id):
                return
        elif self.path.registry.resolve(request.target) is None:
            return
        try:
            place = await self.holds.locate(request.target, is_hosted=True)
        except UnavailableError:
            return
        stored = self.journal.call(request_id)
        is_free = request_id not in self.path.calls and not self._server.serves(request_id)
        if isinstance(place, Fence) and is_free and stored is not None and stored.settled_at is None:
            resume(self.path, self.journal, request, {}, Way(fence=place))


def _states_before(records: list[Record]) -> tuple[Version, ...]:
    """Return the versions of agent states that the store must have for these records to be the next versions."""
    first: dict[str, Version] = {}
    for one in records:
        if type(one) is Saved and one.kind is Document.STATE:
            first.setdefault(one.key, Version(one.kind, one.key, one.version - 1))
    return tuple(first.values())
