"""Asking for a call wherever its agent is: here, on the node that holds it, and where it went if it moves."""

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

AGAIN_S: Final = 0.1  # after which a call is asked for again whose tree was to be put aside
_UNREAD: Final = Checked({})  # the node that has the agent reads the inputs
STRANGERS_MAX: Final = 1_000  # capabilities of other nodes' agents that stand-ins are kept for


class Waits(NamedTuple):
    """A call waits for a person, and the tree above it with it."""

    approval_id: str


class Asking:
    """Runs the errands of this node, and opens calls on the way they go."""

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
        """Return a call by a user, to be run; `log` is that of the handle which holds it."""
        arrival = self._path.asked(draft, identity, request_id, self._peers.now_ms(), remote)
        return Errand(arrival, None, remote, log, is_fresh=request_id is None)

    def arrival(self, request: Request) -> Arrival:
        """Return a request that was checked before, with what this node knows of its target."""
        address = self._path.registry.resolve(request.target)
        agent = None if address is None else address.agent
        capability = None if agent is None else agent.capabilities.get(request.capability)
        return Arrival(request, bytes(request.body), agent, capability, (), "")

    async def call(self, errand: Errand) -> Reply:
        """Ask for a user. A call under a fresh id whose agent is held here becomes an errand once it moves: most never do."""
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
        """Ask wherever the agent is, and again where it went if it moves, until there is a reply."""
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
            self._path.count(parent, reply.usage)  # begun for an earlier run of its caller, below which it stood
        return reply

    async def _aside(self, waits: Waits, parent: Call | None) -> None:
        """Put the caller of a call that waits for a person aside; its code, which awaits this, is stopped."""
        if parent is not None:
            self._peers.loop.call_soon(self._carrier.pause_above, parent, waits.approval_id)
        await asyncio.sleep(AGAIN_S)  # where it is not stopped, a person has just answered, and the call goes on

    async def _end_withdrawn(self, call: Call, reply: Reply) -> Reply:
        """End a call by a user that was begun here, left and was cancelled meanwhile, or return how it ended.

        It is open in the store, and the node that gets its agent next would go on with it.
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
        """Return where an agent is, if this node knows that and nothing is wrong with the request."""
        if arrival.problems or (arrival.agent is not None and arrival.capability is None):
            return None
        place = self._holds.known(arrival.request.target)
        if isinstance(place, Fence):
            return Way(fence=place)
        return None if place is None else Way(node_id=place)

    async def _way(self, errand: Errand) -> Way | None:
        """Find out where an agent is; None when there is no time left, or no node has it."""
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
                if place is None and agent is None:  # a node may have it and not be running it
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
            await asyncio.sleep(pause_ms / 1000)
        return None

    async def _nowhere(self, errand: Errand) -> Reply:
        """Refuse what is wrong with the request itself, or what no node could be found for in time."""
        arrival, request = errand.arrival, errand.arrival.request
        stored = self._peers.journal.call(request.request_id)
        if arrival.problems or arrival.agent is None or arrival.capability is None:
            opened = self._path.enter(arrival, errand.parent, self._path.clock.now_ns(), errand.log)
            assert isinstance(opened, Reply)
        elif stored is None:
            what = f"no node said in time which node holds {request.target}"
            opened = self._path.refuse(request, Refused("NODE_UNREACHABLE", what), errand.log)
        else:
            if errand.parent is not None:  # begun, and perhaps ended: it counts, whichever node ran it
                self._path.count(errand.parent, Usage() if stored.reply is None else stored.reply.usage)
            if stored.settled_at is not None and stored.reply is not None:
                return stored.reply
            error = Error.of("NODE_UNREACHABLE", f"the node on which {request.request_id} runs does not answer")
            opened = Reply(status=Status.ERROR, error=error, message=error.message, request_id=request.request_id)
            if errand.parent is not None:  # a call by a user goes on for its user to find; this one's caller goes on without it
                self._end_begun(Settled(request, opened, self._peers.now_ms()), fences=self.caller_fences(request))
        await self._path.recorded()
        return opened

    def full_seat(self, arrival: Arrival, way: Way) -> Activation[Call] | None:
        """Return where a call by an agent would have to wait for a place on this node; None if it would not."""
        request, agent = arrival.request, arrival.agent
        if way.fence is None or request.parent_id is None or agent is None:
            return None
        seat = self._path.activations.seat(agent, request, way)
        return seat if seat.is_full else None

    async def open_full(
        self, errand: Errand, arrival: Arrival, way: Way, seat: Activation[Call], *, may_be_known: bool
    ) -> Call | Reply | Waits | None:
        """Ask other nodes whether a call would wait for ever, and open it; None if its agent has moved meanwhile."""
        request = arrival.request
        try:
            is_wanted = partial(self._may_wait, request, errand.parent, way)
            way.loop = await self._probes.loop(request, request.parent_id or "", seat, is_wanted)
            return self.open(errand, arrival, way, may_be_known=may_be_known) if is_wanted() else None
        finally:
            self._probes.done(request)

    def open(self, errand: Errand, arrival: Arrival, way: Way, *, may_be_known: bool) -> Call | Reply | Waits:
        """Open a call the way it goes, join it or return its reply.

        A call below another that was put aside for a person has no reply to give.
        """
        request, parent = arrival.request, errand.parent
        is_open = False
        if may_be_known:
            known = self._path.seen(request)
            if isinstance(known, Reply) and request.parent_id is not None and self._is_aside(request.request_id):
                return Waits(known.data["approval_id"])
            if known is not None:
                is_begun = isinstance(known, Reply) and known.status is not Status.REFUSED
                if parent is not None and isinstance(known, Reply) and is_begun and not errand.is_repeated:
                    self._path.count(parent, known.usage)
                    parent.keep(request, known)
                return known
            stored = self._peers.journal.call(request.request_id)
            is_open = stored is not None
            if stored is not None and stored.request is not None and request.parent_id is None:
                # Who asks for it again has not more time than who asked first.
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
            # Not as refused: it was begun, and counts for as long as its tree lives.
            self._end_begun(*interrupted((request,), self._peers.now_ms()), fences=fences)
            if parent is not None:
                self._path.count(parent, Usage())
        return opened

    def _is_aside(self, request_id: str) -> bool:
        stored = self._peers.journal.call(request_id)
        return stored is not None and stored.settled_at is None and stored.reply is not None

    def _may_wait(self, request: Request, parent: Call | None, way: Way) -> bool:
        """Return whether an agent is held here still, and its caller still waits."""
        return self._holds.fence(request.target) == way.fence and (parent is None or parent.state is State.RUNNING)

    def _stranger(self, arrival: Arrival) -> Arrival:
        """Return an arrival for an agent this node knows nothing of but its name; the node that has it checks the rest."""
        request = arrival.request
        key = (request.target.partition("/")[0], request.capability)
        agent = self._strangers.get(key)
        if agent is None:
            try:
                agent = Agent(key[0])
                agent.capability(key[1], input_schema={"type": "object"})(_elsewhere)
            except DeclarationError:
                return arrival
            if len(self._strangers) >= STRANGERS_MAX:  # any caller may ask for any name
                del self._strangers[next(iter(self._strangers))]
            self._strangers[key] = agent
        return Arrival(request, arrival.body, agent, agent.capabilities[key[1]], (), "", checked=_UNREAD)

    def caller_fences(self, request: Request) -> tuple[Fence, ...]:
        parent = None if request.parent_id is None else self._path.calls.get(request.parent_id)
        fence = None if parent is None else parent.way.fence
        return () if fence is None else (fence,)

    def _end_begun(self, end: Settled, *, fences: tuple[Fence, ...]) -> None:
        """End a call that was begun elsewhere and is refused when it is to be taken up: no node goes on with it."""
        request_id = end.request.request_id
        self._peers.journal.append((end,), None, Terms(fences=fences, open=(request_id,), ends=request_id))


def _elsewhere(**inputs: object) -> None:
    """Stand for a capability of an agent that other nodes host: calls to it are sent there, so this is never run."""
    raise AssertionError(f"a call with {sorted(inputs)} was run where its agent is not hosted")
