"""Makes a call on the node that holds its agent, this one or another, and again elsewhere if the agent moves."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from comity.core.agent.agent import Agent, DeclarationError
from comity.core.call.admission import Refused
from comity.core.call.endings import interrupted
from comity.core.call.machine import State
from comity.core.document.schema import Checked
from comity.core.envelope.envelope import Error, Reply, Request, Status
from comity.core.envelope.usage import Usage
from comity.core.journal.records import Settled
from comity.core.journal.terms import Fence, Terms
from comity.core.tracing.trace_context import TraceContext
from comity.core.units import MS_PER_S
from comity.errors import CallChangedError, UnavailableError
from comity.runtime.agent.activations import Activation
from comity.runtime.call.call import Call
from comity.runtime.call.draft import Arrival, Draft, Identity
from comity.runtime.call.errand import Errand
from comity.runtime.call.events import EventLog
from comity.runtime.call.tasks import release
from comity.runtime.call.way import Way
from comity.runtime.cluster.budgets import Loans, is_short
from comity.runtime.cluster.deadlocks import Probes
from comity.runtime.cluster.errands import Errands
from comity.runtime.cluster.leases import Holds
from comity.runtime.cluster.outbound import REPEAT, ROUNDS_MAX, Carrier
from comity.runtime.cluster.peers import Peers

if TYPE_CHECKING:
    from comity.runtime.call.path import CallPath

AGAIN_S: Final = 0.1  # pause before a call is made again that found its callee paused
_UNREAD: Final = Checked({})  # the node that has the agent reads the inputs
STRANGERS_MAX: Final = 1_000  # cached stand-ins for capabilities of other nodes' agents


class Waits(NamedTuple):
    """A call waits for an approval, so the tree above it must pause too."""

    approval_id: str


class Asking:
    """Runs the errands of this node, and opens their calls."""

    def __init__(
        self, path: CallPath, peers: Peers, holds: Holds, probes: Probes, loans: Loans, errands: Errands, carrier: Carrier
    ) -> None:
        self._path = path
        self._peers = peers
        self._holds = holds
        self._probes = probes
        self._loans = loans
        self._errands = errands
        self._carrier = carrier
        self._strangers: dict[tuple[str, str], Agent] = {}

    def errand(
        self,
        draft: Draft,
        identity: Identity,
        request_id: str | None,
        remote: TraceContext | None,
        log: EventLog | None = None,
    ) -> Errand:
        """Return the errand of a user's call; `log` belongs to its `CallHandle`."""
        arrival = self._path.asked(draft, identity, request_id, self._peers.now_ms(), remote)
        return Errand(arrival, None, remote, log, is_fresh=request_id is None)

    def arrival(self, request: Request) -> Arrival:
        """Return the arrival of an already checked request, with its agent and capability if this node knows them."""
        address = self._path.registry.resolve(request.target)
        agent = None if address is None else address.agent
        capability = None if agent is None else agent.capabilities.get(request.capability)
        return Arrival(request, bytes(request.body), agent, capability, (), "")

    async def call(self, errand: Errand) -> Reply:
        """Make a user's call. If its id is fresh and its agent is held here, it needs an errand only if the agent moves."""
        arrival, path = errand.arrival, self._path
        is_plain = errand.is_fresh and arrival.capability is not None and not arrival.problems
        fence = self._holds.fence(arrival.request.target) if is_plain else None
        if fence is None:
            return await self.run(errand)
        way = Way(fence=fence, is_fresh=True)
        opened = path.enter(arrival, None, path.clock.now_ns(), None, remote=errand.remote, way=way)
        if isinstance(opened, Reply):
            return opened
        waiter: asyncio.Future[None] = path.loop.create_future()
        path.wait_with(opened, waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            path.stop_waiting(opened, waiter)
            raise
        if not way.is_moved:
            return opened.delivered
        errand.call = opened
        return await self.run(errand)

    async def run(self, errand: Errand) -> Reply:
        """Make the call on the node that holds the agent, and again if the agent moves, until there is a reply."""
        self._errands.begin(errand)
        try:
            while True:
                reply = await self._try(errand)
                if reply is not None:
                    return reply
        finally:
            self._errands.end(errand)
            if errand.log is not None:
                errand.log.close()

    async def _try(self, errand: Errand) -> Reply | None:
        arrival, parent = errand.arrival, errand.parent
        found = self._known_way(arrival) or await self._way(errand)
        if parent is not None and is_short(parent):
            await self._loans.cover(parent)
        gone = "its caller has ended" if parent is not None and parent.state is not State.RUNNING else ""
        gone = "its caller cancelled it" if errand.is_withdrawn else gone
        if gone:
            error = Error.of("CALL_CANCELLED", gone)
            reply = Reply(status=Status.CANCELLED, error=error, request_id=arrival.request.request_id)
            return reply if parent is not None or errand.call is None else await self._end_withdrawn(errand.call, reply)
        if found is None:
            return await self._nowhere(errand)
        way = found
        if parent is not None:
            way.caller = parent.way.fence
            way.bounds = parent.way.bounds_below(parent.request)
        if way.node_id and arrival.agent is None:
            arrival = self._stranger(arrival)
        if parent is None:
            is_again = errand.call is not None or not errand.is_fresh
        else:
            is_again = errand.call is not None or errand.is_repeated or parent.is_again
        way.is_fresh = not is_again
        opened: Call | Reply | Waits | None
        if (full := self.full_seat(arrival, way)) is None:
            opened = self.open(errand, arrival, way, may_be_known=is_again)
        else:
            opened = await self.open_full(errand, arrival, way, full, may_be_known=is_again)
        if isinstance(opened, Waits):
            await self._aside(opened, parent)
            return None
        if opened is None or isinstance(opened, Reply):
            return opened
        errand.call = opened
        if errand.is_withdrawn:
            self._path.settlement.cancel(opened, "its caller cancelled it")
        reply = await self._path.reply_of(opened)
        if opened.has_moved:
            return None
        if parent is not None and opened.parent is not parent and not errand.is_repeated and reply.status is not Status.REFUSED:
            self._path.count(parent, reply.usage)  # an earlier run of its caller began it
        return reply

    async def _aside(self, waits: Waits, parent: Call | None) -> None:
        """Pause the caller of a call that waits for an approval; pausing cancels the caller's code, which awaits this."""
        if parent is not None:
            self._peers.loop.call_soon(self._carrier.pause_above, parent, waits.approval_id)
        await asyncio.sleep(AGAIN_S)  # if it was not cancelled, the approval has just been answered: try again

    async def _end_withdrawn(self, call: Call, reply: Reply) -> Reply:
        """End a user's call that was cancelled after it had moved away, or return its reply if it has settled.

        It is open in the store, and the next node that holds its agent would resume it.
        """
        journal, request, recorded = self._peers.journal, call.request, self._peers.loop.create_future()
        end = Settled(request, reply, self._peers.now_ms())
        journal.append((end,), partial(release, recorded), Terms(open=(request.request_id,), ends=request.request_id))
        try:
            await recorded
        except CallChangedError:
            stored = journal.call(request.request_id)
            if stored is not None and stored.settled_at is not None and stored.reply is not None:
                return self._path.settlement.shown(stored.reply, stored)
        return reply

    def _known_way(self, arrival: Arrival) -> Way | None:
        """Return the way to an agent if this node knows where it is and the request has no problems."""
        if arrival.problems or (arrival.agent is not None and arrival.capability is None):
            return None
        place = self._holds.known(arrival.request.target)
        if isinstance(place, Fence):
            return Way(fence=place)
        return None if place is None else Way(node_id=place)

    async def _way(self, errand: Errand) -> Way | None:
        """Find the way to an agent; return None if the deadline has passed or no node has it."""
        request, agent = errand.arrival.request, errand.arrival.agent
        if errand.arrival.problems or (agent is not None and errand.arrival.capability is None):
            return None
        for failures in range(1, REPEAT.attempts):
            try:
                place = await self._holds.locate(request.target, is_hosted=agent is not None)
            except UnavailableError:
                place = None
            else:
                if isinstance(place, Fence):
                    return Way(fence=place)
                if place is None and agent is None:  # a node may host the agent without holding its lease
                    name = request.target.partition("/")[0]
                    place = next((one for one in self._peers.transport.hosts(name) if one not in errand.without), None)
                    if place is None:
                        return None
                if place is not None:
                    return Way(node_id=place)
            left_ms = request.deadline_at - self._peers.now_ms()
            pause_ms = REPEAT.pause_ms(min(failures, ROUNDS_MAX), left_ms=left_ms, chance=self._peers.ids.chance())
            if pause_ms is None or errand.is_withdrawn:
                return None
            await asyncio.sleep(pause_ms / MS_PER_S)
        return None

    async def _nowhere(self, errand: Errand) -> Reply:
        """Refuse a request that has problems, or whose agent was found on no node in time."""
        arrival, request = errand.arrival, errand.arrival.request
        stored = self._peers.journal.call(request.request_id)
        if arrival.problems or arrival.agent is None or arrival.capability is None:
            opened = self._path.enter(arrival, errand.parent, self._path.clock.now_ns(), errand.log)
            assert isinstance(opened, Reply)
        elif stored is None:
            what = f"no node said in time which node holds {request.target}"
            opened = self._path.refuse(request, Refused("NODE_UNREACHABLE", what), errand.log)
        else:
            if errand.parent is not None:  # it was begun and may have settled, so it counts
                self._path.count(errand.parent, Usage() if stored.reply is None else stored.reply.usage)
            if stored.settled_at is not None and stored.reply is not None:
                return stored.reply
            error = Error.of("NODE_UNREACHABLE", f"the node on which {request.request_id} runs does not answer")
            opened = Reply(status=Status.ERROR, error=error, message=error.message, request_id=request.request_id)
            if errand.parent is not None:  # a user's call stays open for a retry; a child call is abandoned by its caller
                self._end_begun(Settled(request, opened, self._peers.now_ms()), fences=self.caller_fences(request))
        await self._path.recorded()
        return opened

    def full_seat(self, arrival: Arrival, way: Way) -> Activation[Call] | None:
        """Return the activation on this node at which an agent's call would be queued; None if it could run at once."""
        request, agent = arrival.request, arrival.agent
        if way.fence is None or request.parent_id is None or agent is None:
            return None
        seat = self._path.activations.seat(agent, request, way)
        return seat if seat.is_full else None

    async def open_full(
        self, errand: Errand, arrival: Arrival, way: Way, seat: Activation[Call], *, may_be_known: bool
    ) -> Call | Reply | Waits | None:
        """Probe other nodes for a deadlock, then open the call; return None if its agent has moved meanwhile."""
        request = arrival.request
        try:
            is_wanted = partial(self._may_wait, request, errand.parent, way)
            way.loop = await self._probes.loop(request, request.parent_id or "", seat, is_wanted)
            return self.open(errand, arrival, way, may_be_known=may_be_known) if is_wanted() else None
        finally:
            self._probes.done(request)

    def open(self, errand: Errand, arrival: Arrival, way: Way, *, may_be_known: bool) -> Call | Reply | Waits:
        """Open a call, join the running one with the same id, or return its known reply.

        Return `Waits` for a child call that is paused for an approval: it has no reply.
        """
        request, parent = arrival.request, errand.parent
        is_open = False
        if may_be_known:
            known = self._path.seen(request)
            if isinstance(known, Reply):
                if request.parent_id is not None and self._is_aside(request.request_id):
                    return Waits(known.data["approval_id"])
                if parent is not None and known.status is not Status.REFUSED and not errand.is_repeated:
                    self._path.count(parent, known.usage)
                    parent.keep(request, known)
            if known is not None:
                return known
            stored = self._peers.journal.call(request.request_id)
            is_open = stored is not None
            if stored is not None and stored.request is not None and request.parent_id is None:
                # A retry keeps the deadline of the first attempt.
                request = stored.request
                arrival = replace(arrival, request=request)
        leftovers: dict[str, Request] | None = {} if is_open and way.fence is not None else None
        now_ns = self._path.clock.now_ns()
        is_named = request.parent_id is None and may_be_known
        opened = self._path.enter(
            arrival, parent, now_ns, errand.log, leftovers, remote=errand.remote, way=way, is_named=is_named
        )
        if isinstance(opened, Reply) and is_open:
            fences = self.caller_fences(request) if way.fence is None else (way.fence,)
            # It was begun before, so it ends as interrupted, not refused, and counts against the tree's budget.
            self._end_begun(*interrupted((request,), self._peers.now_ms()), fences=fences)
            if parent is not None:
                self._path.count(parent, Usage())
        return opened

    def _is_aside(self, request_id: str) -> bool:
        stored = self._peers.journal.call(request_id)
        return stored is not None and stored.settled_at is None and stored.reply is not None

    def _may_wait(self, request: Request, parent: Call | None, way: Way) -> bool:
        """Return whether this node still holds the agent, and the caller still waits."""
        return self._holds.fence(request.target) == way.fence and (parent is None or parent.state is State.RUNNING)

    def _stranger(self, arrival: Arrival) -> Arrival:
        """Return an arrival for an agent of which this node knows only the name; the node that hosts it checks the rest."""
        request = arrival.request
        key = (request.target.partition("/")[0], request.capability)
        agent = self._strangers.get(key)
        if agent is None:
            try:
                agent = Agent(key[0])
                agent.capability(key[1], input_schema={"type": "object"})(_elsewhere)
            except DeclarationError:
                return arrival
            if len(self._strangers) >= STRANGERS_MAX:  # callers can invent names, so the cache is bounded
                del self._strangers[next(iter(self._strangers))]
            self._strangers[key] = agent
        return Arrival(request, arrival.body, agent, agent.capabilities[key[1]], (), "", checked=_UNREAD)

    def caller_fences(self, request: Request) -> tuple[Fence, ...]:
        parent = None if request.parent_id is None else self._path.calls.get(request.parent_id)
        fence = None if parent is None else parent.way.fence
        return () if fence is None else (fence,)

    def _end_begun(self, end: Settled, *, fences: tuple[Fence, ...]) -> None:
        """End a call that another node began and that is refused on resuming: no node will run it."""
        request_id = end.request.request_id
        self._peers.journal.append((end,), None, Terms(fences=fences, open=(request_id,), ends=request_id))


def _elsewhere(**inputs: object) -> None:
    """Placeholder for a capability that other nodes host. It never runs: calls to it are sent there."""
    raise AssertionError(f"a call with {sorted(inputs)} was run where its agent is not hosted")
