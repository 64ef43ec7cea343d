"""Several nodes that share one store: each address is held by one of them, and calls go to where their agent is.

A call to an address that is held here takes the usual way. One to an address held elsewhere is sent there and runs there, under
the same request id. Everything a held agent does is written under its token, and the store refuses what was written under an
older one. A node that lost an address lets go of its calls; each waiter looks for the agent again, and calls by users
are taken up by the node that gets the address next.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from comity.core.agent.agent import Agent, DeclarationError
from comity.core.call.admission import Refused
from comity.core.call.machine import Event, State
from comity.core.cluster import messages as wire
from comity.core.cluster.lease import LEASE_MS
from comity.core.cluster.messages import Message
from comity.core.envelope.envelope import Error, Reply, Request, Status, Usage
from comity.core.envelope.request_id import chosen_id_problem
from comity.core.journal.records import Accepted, Document, Late, Record, Saved, Settled
from comity.core.journal.terms import Fence, Terms, Version
from comity.core.tracing.trace_context import TraceContext
from comity.errors import CallChangedError, DocumentChangedError, RefusedError, StaleLeaseError, UnavailableError
from comity.ports import Engine
from comity.runtime.call.call import Call, Errand, Way
from comity.runtime.call.draft import Arrival, Draft, Identity
from comity.runtime.call.events import EventLog
from comity.runtime.call.placement import Placement
from comity.runtime.call.replay import resume
from comity.runtime.call.settle import interrupted
from comity.runtime.call.unfinished import keep
from comity.runtime.cluster.budgets import Loans, is_short
from comity.runtime.cluster.deadlocks import Probes
from comity.runtime.cluster.inbound import Server
from comity.runtime.cluster.leases import Holds
from comity.runtime.cluster.outbound import REPEAT, ROUNDS_MAX, Carrier

if TYPE_CHECKING:
    from comity.runtime.call.path import CallPath

log = logging.getLogger("comity")

# How often open calls are looked for that no node runs, and how long after its deadline any node may end one.
SWEEP_MS: Final = LEASE_MS
OVERDUE_MS: Final = 1_000
STRANGERS_MAX: Final = 1_000  # capabilities of other nodes' agents that stand-ins are kept for
UNDER_WAY: Final = frozenset({State.QUEUED, State.RUNNING, State.SENT})


class Cluster(Placement):
    """This node among the others: a call runs here, or on the node that holds its agent."""

    is_alone = False

    def __init__(self, path: CallPath, engine: Engine) -> None:
        self.path = path
        self.journal = journal = engine.journal
        self.ids = path.ids
        self.loop = asyncio.get_running_loop()
        self.holds = Holds(engine.leases, journal, path.clock, self._lose)
        self.probes = Probes(self, path.calls)
        self.carrier = Carrier(self)
        self.loans = Loans(self)
        self._server = Server(self)
        self._clock = path.clock
        self._transport = engine.transport
        self._errands: dict[str, list[Errand]] = {}  # by request id, which several may ask under, strangers too
        self._strangers: dict[tuple[str, str], Agent] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._is_leaving = False
        self._spawned: dict[asyncio.Task[object], None] = {}  # the loop keeps only weak references
        self._deaths = asyncio.Event()  # another node seems to have left or died: what it ran is looked for at once

    @property
    def is_open(self) -> bool:
        """Whether it has begun to take part."""
        return bool(self._tasks)

    async def open(self) -> None:
        """Take part."""
        await self.holds.open()
        await self._transport.open(self.journal.node_id, self._received, lost=self._gone)
        self.announce()
        self._tasks = [self.loop.create_task(self.holds.keep()), self.loop.create_task(self._sweep())]

    def release(self, address: str) -> None:
        """Give back an address that has left memory."""
        self.holds.release(address)

    def announce(self) -> None:
        """Tell the other nodes which agents this one hosts."""
        self._transport.announce([name for agent in self.path.registry for name in (agent.id, *agent.aliases)])

    async def leave(self) -> None:
        """Take no more from others, and let what they asked for go elsewhere."""
        self._is_leaving = True
        ending = [*self._tasks, *self._spawned]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        await self._server.close()

    async def close(self) -> None:
        """Give back what is held, once everything is written."""
        await self.path.recorded()
        self.carrier.close()
        await self.holds.close()
        if self.is_open:
            await self._transport.close()

    def now_ms(self) -> int:
        """Return the time."""
        return self._clock.now_ns() // 1_000_000

    def send(self, node_id: str, message: Message) -> None:
        """Send a message, which may not arrive."""
        self._transport.send(node_id, wire.encode(message))

    def _received(self, sender: str, raw: bytes) -> None:
        with contextlib.suppress(UnavailableError):  # what the store cannot serve now is as good as lost, and comes again
            self._take(sender, raw)

    def _take(self, sender: str, raw: bytes) -> None:
        message = wire.decode(raw)
        match message:
            case None:
                pass
            case wire.Ask() if self._is_leaving:
                pass  # it is asked again where the agent is next
            case wire.Ask() | wire.Inquire() | wire.Cancel():
                self._server.received(sender, message)
            case wire.Borrow() | wire.Lend():
                self.loans.received(sender, message)
            case wire.Look() | wire.Seen():
                self.probes.received(sender, message)
            case _:
                self.carrier.received(sender, message)

    def asker(self, request_id: str) -> str | None:
        """Return the node that waits for a call that runs here."""
        return self._server.asker(request_id)

    # --- asking ---

    def errand(
        self,
        draft: Draft,
        identity: Identity,
        request_id: str | None,
        remote: TraceContext | None,
        log: EventLog | None = None,
    ) -> Errand:
        """Return a call by a user, to be run; `log` is that of the handle which holds it."""
        now_ms, is_fresh = self._clock.now_ns() // 1_000_000, request_id is None
        if request_id is None:
            request_id = self.ids.new_request(now_ms)[0]
        arrival = self.path.arrive(draft, identity, request_id, now_ms, remote)
        return Errand(arrival, None, remote, log, is_fresh=is_fresh)

    def start_root(
        self, draft: Draft, identity: Identity, request_id: str | None, remote: TraceContext | None, log: EventLog
    ) -> Errand | None:
        """Begin a user's call in the background; None for an id that no caller may choose, which this node refuses."""
        if request_id is not None and chosen_id_problem(request_id):
            return None
        errand = self.errand(draft, identity, request_id, remote, log)
        errand.task = self.loop.create_task(self.run(errand), name=errand.arrival.request.request_id)
        return errand

    def call_root(
        self, draft: Draft, identity: Identity, request_id: str | None, remote: TraceContext | None = None
    ) -> Coroutine[Any, Any, Reply]:
        """Call for a user where the agent is; an id that no caller may choose is refused here."""
        if request_id is not None and chosen_id_problem(request_id):
            return self.path.call_here(draft, identity, request_id, remote)
        return self.run(self.errand(draft, identity, request_id, remote))

    def call_under(self, arrival: Arrival, parent: Call, *, is_repeated: bool) -> Coroutine[Any, Any, Reply]:
        """Call on behalf of a call under way where the agent is; once only where it was asked for before."""
        return self.run(Errand(arrival, parent, is_repeated=is_repeated))

    def spawn(self, work: Coroutine[Any, Any, object]) -> None:
        """Do something in the background, which ends with this node."""
        task = self.loop.create_task(work)
        self._spawned[task] = None
        task.add_done_callback(self._ended_task)

    def _ended_task(self, task: asyncio.Task[object]) -> None:
        self._spawned.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("what was begun in the background has failed: %s", error)

    def call_for(self, arrival: Arrival, remote: TraceContext | None) -> Coroutine[Any, Any, Reply]:
        """Return a call that the node makes for a user, to be awaited."""
        return self.run(Errand(arrival, None, remote))

    async def go_on(self, request: Request) -> Reply:
        """Go on with a call by a user that was put aside or has moved, wherever its agent is by now."""
        return await self.run(Errand(self.arrival(request), None))

    def arrival(self, request: Request) -> Arrival:
        """Return a request that was checked before, with what this node knows of its target."""
        address = self.path.registry.resolve(request.target)
        agent = None if address is None else address.agent
        capability = None if agent is None else agent.capabilities.get(request.capability)
        return Arrival(request, bytes(request.body), agent, capability, (), "")

    async def run(self, errand: Errand) -> Reply:
        """Ask wherever the agent is, and again where it went if it moves, until there is a reply."""
        request = errand.arrival.request
        errands = self._errands.setdefault(request.request_id, [])
        errands.append(errand)
        try:
            while True:
                reply = await self._try(errand)
                if reply is not None:
                    return reply
        finally:
            errands.remove(errand)
            if not errands:
                del self._errands[request.request_id]
            if errand.log is not None:
                errand.log.close()

    def withdraw(self, errand: Errand) -> bool:
        """Cancel an errand; return whether it was still under way."""
        errand.is_withdrawn = True
        if errand.call is not None and self.path.settlement.cancel(errand.call, "its caller cancelled it"):
            return True
        return errand.task is not None and not errand.task.done()

    def is_wanted(self, request_id: str) -> bool:
        """Return whether a caller here waits for a call, wherever it is."""
        return request_id in self._errands

    def without(self, request: Request, node_id: str) -> None:
        """Note that a node has no agent of the name a request asks for."""
        for errand in self._errands.get(request.request_id, ()):
            errand.without.append(node_id)

    async def _try(self, errand: Errand) -> Reply | None:
        arrival, parent = errand.arrival, errand.parent
        fence = self.holds.fence(arrival.request.target) if arrival.capability is not None and not arrival.problems else None
        way = Way(fence=fence) if fence is not None else await self._way(errand)
        if parent is not None and is_short(parent):
            await self.loans.cover(parent)
        gone = "its caller has ended" if parent is not None and parent.state is not State.RUNNING else ""
        gone = "its caller cancelled it" if errand.is_withdrawn else gone
        if gone:
            return Reply(status=Status.CANCELLED, error=Error.of("CALL_CANCELLED", gone), request_id=arrival.request.request_id)
        if way is None:
            return await self._nowhere(errand)
        if parent is not None and parent.way is not None:
            way.caller = parent.way.fence
            way.bounds = parent.way.bounds_below(parent.request)
        if way.node_id and arrival.agent is None:
            arrival = self._stranger(arrival)
        if parent is None:
            is_again = errand.call is not None or not errand.is_fresh
        else:
            is_again = errand.call is not None or errand.is_repeated or parent.is_again
        way.is_fresh = not is_again
        opened = await self.enter(errand, arrival, way, may_be_known=is_again)
        if opened is None or isinstance(opened, Reply):
            return opened
        errand.call = opened
        if errand.is_withdrawn:
            self.path.settlement.cancel(opened, "its caller cancelled it")
        reply = await self.path.reply_of(opened)
        if opened.way is not None and opened.way.is_moved:
            return None
        if parent is not None and opened.parent is not parent and not errand.is_repeated and reply.status is not Status.REFUSED:
            self.path.count(parent, reply.usage)  # begun for an earlier run of its caller, below which it stood
        return reply

    async def _way(self, errand: Errand) -> Way | None:
        """Find out where an agent is; None when there is no time left, or no node has it."""
        request, agent = errand.arrival.request, errand.arrival.agent
        if errand.arrival.problems or (agent is not None and errand.arrival.capability is None):
            return None
        for failures in range(1, REPEAT.attempts):
            try:
                place = await self.holds.locate(request.target, is_hosted=agent is not None)
            except UnavailableError:
                place = None
            else:
                if isinstance(place, Fence):
                    return Way(fence=place)
                if place is None and agent is None:  # a node may have it and not be running it
                    name = request.target.partition("/")[0]
                    place = next((one for one in self._transport.hosts(name) if one not in errand.without), None)
                    if place is None:
                        return None
                if place is not None:
                    return Way(node_id=place)
            left_ms = request.deadline_at - self.now_ms()
            pause_ms = REPEAT.pause_ms(min(failures, ROUNDS_MAX), left_ms=left_ms, chance=self.ids.chance())
            if pause_ms is None or errand.is_withdrawn:
                return None
            await asyncio.sleep(pause_ms / 1000)
        return None

    async def _nowhere(self, errand: Errand) -> Reply:
        """Refuse what is wrong with the request itself, or what no node could be found for in time."""
        arrival, request = errand.arrival, errand.arrival.request
        stored = self.journal.call(request.request_id)
        if arrival.problems or arrival.agent is None or arrival.capability is None:
            opened = self.path.enter(arrival, errand.parent, self._clock.now_ns(), errand.log)
            assert isinstance(opened, Reply)
        elif stored is None:
            what = f"nobody could tell in time who holds {request.target}"
            opened = self.path.refuse(request, Refused("NODE_UNREACHABLE", what), errand.log)
        else:
            if errand.parent is not None:  # begun, and perhaps ended: it counts, whichever node ran it
                self.path.count(errand.parent, Usage() if stored.reply is None else stored.reply.usage)
            if stored.settled_at is not None and stored.reply is not None:
                return stored.reply
            error = Error.of("NODE_UNREACHABLE", f"the node on which {request.request_id} runs does not answer")
            opened = Reply(status=Status.ERROR, error=error, message=error.message, request_id=request.request_id)
            if errand.parent is not None:  # a call by a user goes on for its user to find; this one's caller goes on without it
                self._end_begun(Settled(request, opened, self.now_ms()), fences=self._caller_fences(request))
        await self.path.recorded()
        return opened

    async def enter(self, errand: Errand, arrival: Arrival, way: Way, *, may_be_known: bool) -> Call | Reply | None:
        """Open a call the way it goes, join it or return its reply; None if the agent has moved meanwhile."""
        request, parent = arrival.request, errand.parent
        try:
            if way.fence is not None and request.parent_id is not None and arrival.agent is not None:
                seat = self.path.activations.seat(arrival.agent, request, way)
                if seat.is_full:
                    is_wanted = partial(self._may_wait, request, parent, way)
                    way.loop = await self.probes.loop(request, seat, is_wanted)
                    if not is_wanted():
                        return None
            is_open = False
            if may_be_known:
                known = self.path.seen(request)
                if known is not None:
                    is_begun = isinstance(known, Reply) and known.status is not Status.REFUSED
                    if parent is not None and isinstance(known, Reply) and is_begun and not errand.is_repeated:
                        self.path.count(parent, known.usage)
                        keep(parent, request, known)
                    return known
                stored = self.journal.call(request.request_id)
                is_open = stored is not None
                if stored is not None and stored.request is not None and request.parent_id is None:
                    # Who asks for it again has not more time than who asked first.
                    request = stored.request
                    arrival = replace(arrival, request=request)
            leftovers: dict[str, Request] | None = {} if is_open and way.fence is not None else None
            now_ns = self._clock.now_ns()
            is_named = request.parent_id is None and may_be_known
            opened = self.path.enter(
                arrival, parent, now_ns, errand.log, leftovers, remote=errand.remote, way=way, is_named=is_named
            )
            if isinstance(opened, Reply) and is_open:
                fences = self._caller_fences(request) if way.fence is None else (way.fence,)
                # Not as refused: it was begun, and counts for as long as its tree lives.
                self._end_begun(*interrupted((request,), self.now_ms()), fences=fences)
                if parent is not None:
                    self.path.count(parent, Usage())
            return opened
        finally:
            self.probes.done(request)

    def _may_wait(self, request: Request, parent: Call | None, way: Way) -> bool:
        """Return whether an agent is held here still, and its caller still waits."""
        return self.holds.fence(request.target) == way.fence and (parent is None or parent.state is State.RUNNING)

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
            if len(self._strangers) >= STRANGERS_MAX:  # anybody may ask for any name
                del self._strangers[next(iter(self._strangers))]
            self._strangers[key] = agent
        return Arrival(request, arrival.body, agent, agent.capabilities[key[1]], (), "")

    # --- what calls do here, under their tokens ---

    def accept(self, call: Call, now_ms: int, note: str) -> None:
        """Record a call that runs here, if its agent is still held and its caller waits; send a call that runs elsewhere."""
        way, request = call.way, call.request
        if way is None or way.fence is None:
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
        if error is not None:  # not at once: the call has not taken its place yet
            self.loop.call_soon(self._unaccepted, call, error)
        elif call.way is not None:
            call.way.is_recorded = True

    def _unaccepted(self, call: Call, error: Exception) -> None:
        if isinstance(error, RefusedError) and error.code == "IDENTITY_MISMATCH":
            self.disown(call)
        if isinstance(error, RefusedError) and call.state in UNDER_WAY:
            reply = self.path.refuse(call.request, Refused(error.code, error.message), call.log)
            self.path.settlement.take_back(call, reply)
            if call.uses_state:  # what it has changed must not be saved with the end of another call
                self.holds.spoil(call.request.target)
            return
        if isinstance(error, StaleLeaseError):
            self._stale(error)
        self.let_go(call)

    def disown(self, call: Call) -> None:
        """Forget the session that a call began here: another user named it first, on another node."""
        request = call.request
        if call.live is not None and call.live.session.user_id == request.user_id:
            self.path.sessions.drop(request.tenant_id, request.session_id)

    def refusal_terms(self, request: Request) -> Terms | None:
        """Return the terms on which a refusal is recorded: its caller is held still and has not ended, and it was not begun."""
        if request.parent_id is None:
            return None  # a user may be refused any number of times
        return Terms(fences=self._caller_fences(request), unknown=request.request_id, open=(request.parent_id,))

    def _caller_fences(self, request: Request) -> tuple[Fence, ...]:
        parent = None if request.parent_id is None else self.path.calls.get(request.parent_id)
        fence = None if parent is None or parent.way is None else parent.way.fence
        return () if fence is None else (fence,)

    def _end_begun(self, end: Settled, *, fences: tuple[Fence, ...]) -> None:
        """End a call that was begun elsewhere and is refused when it is to be taken up: no node goes on with it."""
        request_id = end.request.request_id
        self.journal.append((end,), None, Terms(fences=fences, open=(request_id,), ends=request_id))

    def ended(self, call: Call, event: Event, records: list[Record]) -> None:
        """Record the end of a call and of everything below it, on every node, and deliver it once that is done."""
        way, request_id = call.way, call.request.request_id
        if way is None:
            return
        kept = [one for one in records if type(one) is not Settled or not self._is_withdrawn(one, request_id)]
        if way.fence is None:
            self.carrier.ended(call, event, kept)
        else:
            terms = way.to_end(request_id)
            if event is Event.CANCEL and way.is_served and way.caller is not None:
                terms = replace(terms, fences=(*terms.fences, way.caller))  # its caller may have moved
            if states := _states_before(kept):
                terms = replace(terms, documents=states)
            self.path.sessions.append(kept, partial(self._ended, call, event), terms)

    def _is_withdrawn(self, end: Settled, top_id: str) -> bool:
        """Withdraw a call that was sent elsewhere, if it is below the call that ends; the store ends it with the rest."""
        return end.request.request_id != top_id and self.carrier.withdraw(end.request.request_id)

    def _ended(self, call: Call, event: Event, error: Exception | None) -> None:
        settlement = self.path.settlement
        if error is not None and call.uses_state:  # what it has changed must not be saved with the end of another call
            self.holds.spoil(call.request.target)
        if isinstance(error, StaleLeaseError):
            self._stale(error)
            settlement.release_moved(call)
        elif isinstance(error, DocumentChangedError):  # a call before it, whose changes it saw, was refused
            self.holds.spoil(Saved(Document.STATE, error.facts["key"], 0, b"").address)
            settlement.release_moved(call)
        elif isinstance(error, CallChangedError):
            try:
                stored = self.journal.call(call.request.request_id)
            except UnavailableError as unreadable:
                settlement.deliver(call, unreadable)
                return
            if stored is None and call.way is not None and call.way.is_recorded:  # it was erased with its session
                settlement.deliver(call, None)
                return
            if stored is None or stored.settled_at is None or stored.reply is None:
                settlement.release_moved(call)
                return
            if event is Event.FINISH:
                assert call.reply is not None
                self.late(call, call.reply)
            call.reply = stored.reply
            settlement.deliver(call, None)
        else:
            if error is None and call.way is not None:
                call.way.note_end()
            settlement.deliver(call, error)

    def late(self, call: Call, reply: Reply) -> bool:
        """Record a result that came after its call had ended, unless another node holds the agent by now."""
        if call.held is not None and call.way is not None and not call.way.is_moved:
            terms = replace(call.held, ended=call.request.request_id)  # if it was accepted at all
            self.journal.append((Late(call.request, reply, self.now_ms()),), None, terms)
        return True

    def carry(self, call: Call) -> None:
        """Send a call to the node that holds its agent."""
        self.carrier.carry(call)

    def answered_in_store(self, call: Call) -> bool:
        """End a call whose time is up with the end that the store has of it."""
        return self.carrier.answered_in_store(call)

    def top_up(self, call: Call, *, were_there: bool) -> bool:
        """Return whether tokens that were used were there, after borrowing more."""
        return self.loans.top_up(call, were_there=were_there)

    def count_replayed(self, parent: Call, usage: Usage) -> None:
        """Charge a call that an earlier run of its tree made."""
        parent.account.give_back(-1 - usage.calls, 0)

    def let_go(self, call: Call) -> None:
        """Put a call that is under way out of memory, for another node to go on with."""
        if call.state not in UNDER_WAY:
            return
        if call.uses_state:  # what it has changed must not be saved with the end of another call
            self.holds.spoil(call.request.target)
        else:
            self.path.settlement.move(call)

    def _stale(self, error: StaleLeaseError) -> None:
        self.holds.lost(error.facts["address"], error.facts["token"])

    def _lose(self, address: str) -> None:
        """Let go of an agent and of its calls: another node goes on with them."""
        for call in self.path.activations.drop(address):
            if call.state in UNDER_WAY:  # code that does not stop keeps its place after its call has ended
                self.path.settlement.move(call)

    # --- taking over ---

    async def _sweep(self) -> None:
        """Look for open calls by users that no node runs, for as long as the node runs."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SWEEP_MS * (1 + self.ids.chance()) / 2000):
                    await self._deaths.wait()
            self._deaths.clear()
            if self.journal.failure is None:
                for stored in self.journal.open_roots():
                    if stored.request is not None:
                        await self._take_over(stored.request)

    def _gone(self, node_id: str) -> None:
        """Look for what another node held and ran: it seems to have left or died."""
        self.holds.gone(node_id)
        self.carrier.gone(node_id)
        self._deaths.set()

    async def _take_over(self, request: Request) -> None:
        request_id = request.request_id
        if request_id in self.path.calls or request_id in self._errands or self._server.serves(request_id):
            return
        if request.deadline_at + OVERDUE_MS <= self.now_ms():  # by now anybody may say so
            ends = interrupted((request,), self.now_ms())
            self.journal.append(ends, None, Terms(open=(request_id,), ends=request_id))
            return
        if self.path.registry.resolve(request.target) is None:
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
    """Return which states of agents the store must have for these to be their next: each is made from all before it."""
    first: dict[str, Version] = {}
    for one in records:
        if type(one) is Saved and one.kind is Document.STATE:
            first.setdefault(one.key, Version(one.kind, one.key, one.version - 1))
    return tuple(first.values())


def _elsewhere(**inputs: object) -> None:
    """Stand for a capability of an agent that other nodes host: calls to it are sent there, so this is never run."""
    raise AssertionError(f"a call with {sorted(inputs)} was run where its agent is not hosted")
