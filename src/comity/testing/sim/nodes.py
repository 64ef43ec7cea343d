"""Simulated processes: real nodes on faulty ports, that start, crash, stand still and come back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from comity.core.agent.agent import Agent, Implementation
from comity.core.agent.breaker import Breaker
from comity.core.agent.tool import Tool
from comity.core.call.machine import Event
from comity.core.envelope.envelope import Reply, Request
from comity.core.handoff.machine import Handoff, Offer
from comity.core.handoff.queue import Step
from comity.engines.memory.engine import JournalEngine
from comity.errors import CallerError, ComityError, UnavailableError
from comity.node.node import Node
from comity.runtime.call.call import Call
from comity.runtime.call.draft import Arrival
from comity.runtime.call.path import CallPath
from comity.runtime.call.run import Execution
from comity.runtime.handoff.desk import Handoffs
from comity.testing.sim.chance import SimClock, SimIds
from comity.testing.sim.faults import Kind
from comity.testing.sim.journal import SimJournal, write_failed
from comity.testing.sim.loop import Life, SimTask
from comity.testing.sim.network import SimLeases

if TYPE_CHECKING:
    from comity.testing.sim.world import World

LATE_S_MAX = 60.0
DELAY_S_MAX = 2.0


class CrashedError(ConnectionError):
    """The node died under a call; what became of it is not known."""


class FaultyExecution(Execution):
    """Runs capabilities as the node does, and lets agents fail in every way ADR-028 names."""

    __slots__ = ("_life", "_world")

    def __init__(self, world: World, life: Life, real: Execution) -> None:
        super().__init__(real._clock, real._ids, real._threads, _run_inline, real._hide, real._slices)
        self._world = world
        self._life = life

    async def _invoke(self, call: Call, ctx: Any, implementation: Implementation) -> Any:
        world, address = self._world, call.request.target
        if (chance := world.strikes(Kind.AGENT_CALL_NETWORK_DELAY, address)) is not None:
            await asyncio.sleep(DELAY_S_MAX * chance.random())
        if world.strikes(Kind.AGENT_CALL_REJECTED, address) is not None:
            raise CallerError(f"{address} will not do this")
        if world.strikes(Kind.AGENT_CRASH, address) is not None:
            raise UnavailableError(f"{address} fell over")
        if (chance := world.strikes(Kind.AGENT_CALL_TIMEOUT, address)) is not None:
            await _dawdle(LATE_S_MAX * chance.random(), is_stubborn=chance.random() < 0.5)
        return await super()._invoke(call, ctx, implementation)


async def _dawdle(seconds: float, *, is_stubborn: bool) -> None:
    """Take one's time; some do not even stop when they are told to."""
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        if not is_stubborn:
            raise


async def _run_inline(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Run what is declared for a process of its own as a step of this one."""
    await asyncio.sleep(0)
    return function(**arguments)


class WatchedNode(Node):
    """A real node whose steps can be seen from outside."""

    def __init__(self, world: World, life: Life, agents: Iterable[Agent], **more: Any) -> None:
        super().__init__(agents, **more)
        self._world = world
        self._life = life
        self._entered: list[Call] = []

    @property
    def handoffs(self) -> Handoffs:
        """The handoff queue; what it acknowledges and shows is seen."""
        is_new = self._handoffs is None
        desk = super().handoffs
        if is_new:
            _watch_desk(desk, self._world, self._life)
        return desk

    def _resume(self) -> None:
        self._watch()
        super()._resume()

    def dissolve(self) -> None:
        """Take apart what calls of a dead process hold of each other: the collector does not look at them, since they end."""
        path = self._path
        cut_off = () if path is None else path.calls.values()  # some were on their way in
        for call in (*self._entered, *cut_off):
            call.task = call.waiters = call.children = call.parent = call.root = call.live = call.log = call.way = None
            call.seat = call.account = None
        self._entered.clear()
        if path is None:
            return
        if self._journal is not None and self._journal.failure is not None:
            self._journal.failure.__traceback__ = None  # raised in many places, it remembers them all
        path.calls.clear()
        path.activations._seats.clear()
        path.settlement.deadlines.close()

    def _watch(self) -> None:
        """Put a witness beside every step that matters, before the first of them is taken."""
        world, life, witness, path = self._world, self._life, self._world.witness, self._path
        assert path is not None
        activations, settlement, toolbox = path.activations, path.settlement, path.toolbox
        path._execution = FaultyExecution(world, life, path._execution)
        path.run_in_process = _run_inline
        start, admit, leave = activations._start, activations.admit, activations.leave
        close, run_tool, enter, put_aside = settlement._close, toolbox._run, path.enter, settlement.put_aside

        def started(call: Call) -> None:
            if not life.is_dead:
                witness.started(life, call)
                world.worked(life)
            start(call)

        def admitted(call: Call) -> None:
            admit(call)
            if not life.is_dead:
                witness.queued(life, call)

        def left(call: Call) -> None:
            if not life.is_dead:
                witness.left(life, call)
            leave(call)

        def closing(call: Call, event: Event, *rest: Any) -> None:
            if not life.is_dead:
                witness.closing(life, call, event)
            close(call, event, *rest)
            world.worked(life, has_ended=True)

        def moved(call: Call) -> list[Call]:
            for one in _tree(call) if not life.is_dead else ():
                witness.moved("call", one.state, Event.PAUSE)
            put = put_aside(call)
            for one in put if not life.is_dead else ():
                witness.moved_away(life, one)
            return put

        async def used(path: CallPath, call: Call, tool: Tool, request: Request) -> Reply:
            witness.used(life, tool, request, is_written=world.disk.knows(request.request_id))
            world.worked(life)
            return await run_tool(path, call, tool, request)

        def entered(arrival: Arrival, *rest: Any, **more: Any) -> Call | Reply:
            agent, address = arrival.agent, arrival.request.target
            if world.strikes(Kind.AGENT_NOT_FOUND, address) is not None:
                arrival = Arrival(arrival.request, arrival.body, None, None, arrival.problems, arrival.code)
            elif agent is not None and world.strikes(Kind.AGENT_BUSY, address) is not None:
                queue_max, agent.pending_max = agent.pending_max, -1
                try:
                    return enter(arrival, *rest, **more)
                finally:
                    agent.pending_max = queue_max
            opened = enter(arrival, *rest, **more)
            if isinstance(opened, Call):
                self._entered.append(opened)
                world.worked(life)
            return opened

        activations._start, activations.admit, activations.leave = started, admitted, left  # type: ignore[method-assign]
        settlement._close, toolbox._run = closing, used  # type: ignore[method-assign, assignment]
        settlement.put_aside = moved  # type: ignore[method-assign, assignment]
        path.enter = entered  # type: ignore[method-assign]


def _watch_desk(desk: Handoffs, world: World, life: Life) -> None:
    witness, create, perform, show = world.witness, desk.create, desk.perform, desk.content.shown

    async def created(*asked: Any, **more: Any) -> Handoff:
        handoff = await create(*asked, **more)
        witness.acknowledged(handoff.id)
        return handoff

    async def performed(step: Step) -> Step:
        await perform(step)
        world.worked(life, has_ended=True)
        if isinstance(step.change, Offer) and step.outcome.refusal is None:
            witness.acknowledged(step.handoff_id)
        return step

    def shown(handoff: Handoff) -> Handoff:
        witness.shown(handoff)
        return show(handoff)

    desk.create, desk.perform, desk.content.shown = created, performed, shown  # type: ignore[method-assign]


def _tree(call: Call) -> list[Call]:
    """Return a call and all that it waits for."""
    found = [call]
    for one in found:
        found.extend(one.waits_for)
    return found


class SimNode:
    """One place where a node runs, over all its lives."""

    def __init__(self, world: World, name: str, agents: Iterable[Agent], *, is_clustered: bool = False, **more: Any) -> None:
        self.name = name
        self._is_clustered = is_clustered
        self.life: Life | None = None
        self.node: WatchedNode | None = None  # of the life that runs
        self.clock: SimClock | None = None
        self._world = world
        self._agents = tuple(agents)
        self._more = more
        self._lives = 0
        self._journal: SimJournal | None = None
        self._waiting: dict[asyncio.Future[Any], None] = {}  # clients that wait for this life
        self.is_starting = False
        self.has_ended_calls = False  # in the life that runs
        self._up = asyncio.Event()

    @property
    def is_up(self) -> bool:
        """Whether a client finds somebody here; one that stands still cannot be told from one that is slow."""
        return self.node is not None and not self.is_starting

    @property
    def has_failed_store(self) -> bool:
        """Whether its journal has stopped for good."""
        return self._journal is not None and self._journal.failure is not None

    @property
    def hears(self) -> bool:
        """Whether somebody here waits for the handoff queue."""
        desk = None if self.node is None else self.node._handoffs
        return desk is not None and bool(desk._ears)

    def break_store(self) -> None:
        """Let its journal accept nothing any more, as after a failed write."""
        if self._journal is not None:
            self._journal.failure = write_failed("input/output error")

    def breakers(self) -> Mapping[tuple[str, str], Breaker]:
        """Return the breakers of the life that runs."""
        path = None if self.node is None else self.node._path
        return {} if path is None else path.settlement.breakers.known

    async def start(self) -> None:
        """Begin a new life, and try again if it fails to begin."""
        world = self._world
        self.is_starting = True
        while True:
            self._lives += 1
            life = self.life = world.life(self.name, self._lives)
            self.has_ended_calls = False
            self.clock = SimClock(world.loop, world.skew_of(life))
            self._journal = SimJournal(world, world.disk, life, is_clustered=self._is_clustered)
            engine = JournalEngine(self._journal)
            if self._is_clustered:
                engine = JournalEngine(self._journal, SimLeases(world, life, self._journal), world.network.transport(life))
            self.node = WatchedNode(
                world, life, self._agents, engine=engine, clock=self.clock, ids=SimIds(world.stream(f"ids {life}")),
                lag_ms=None, **self._more,
            )  # fmt: skip
            world.bodies.append(self.node)
            world.note(str(life), "starts up", "")
            try:
                await self.within(self.node.start())
            except (CrashedError, ComityError) as error:
                world.note(str(life), "fails", str(error))
                if not life.is_dead:
                    world.crash(life)
                await asyncio.sleep(0.1)
                continue
            if not life.is_dead:  # it may have begun, and died before anybody looked
                self.is_starting = False
                self._up.set()
                return

    async def until_up(self) -> None:
        """Wait until a client finds somebody here."""
        await self._up.wait()

    async def within(self, work: Awaitable[Any]) -> Any:
        """Let the process that runs now do something and wait for it. Raises `CrashedError` if it dies meanwhile."""
        life, loop = self.life, self._world.loop
        assert life is not None
        done: asyncio.Future[Any] = loop.create_future()
        self._waiting[done] = None
        task: SimTask = loop.create_task(work, context=life.context.copy())
        task.add_done_callback(lambda ended: _pass_on(ended, done), context=self._world.context)
        try:
            return await done
        finally:
            self._waiting.pop(done, None)
            if not task.done() and not life.is_dead:
                task.cancel()

    async def call(self, target: str, capability: str, inputs: dict[str, Any] | None = None, **more: Any) -> Reply:
        """Call an agent of this node, as a client outside of it. Raises `CrashedError` if the node is or goes down."""
        if not self.is_up or self.node is None:
            raise CrashedError(f"{self.name} is down")
        reply: Reply = await self.within(self.node.call(target, capability, inputs, **more))
        self._world.told(reply)
        return reply

    async def decide(self, approval_id: str, *, granted: bool) -> Reply | None:
        """Answer a question a tool asked, and return the reply of the call that goes on. Raises as `call` does."""
        if not self.is_up or self.node is None:
            raise CrashedError(f"{self.name} is down")
        reply: Reply | None = await self.within(self.node.decide(approval_id, granted=granted, by="somebody"))
        if reply is not None:
            self._world.told(reply)
        return reply

    def crashed(self) -> None:
        """The life that ran here is gone."""
        life, self.node = self.life, None
        self._up.clear()
        if life is None or self._journal is None:
            return
        self._journal.crashed()
        self._world.network.members.pop(str(life), None)
        self._world.network.hosted.pop(str(life), None)
        waiting, self._waiting = self._waiting, {}
        for client in waiting:
            if not client.done():
                client.set_exception(CrashedError(f"{life} died"))

    async def close(self) -> None:
        """End this life in good order."""
        if self.node is not None:
            await self.within(self.node.close())
            self.node = None


def _pass_on(ended: asyncio.Task[Any], done: asyncio.Future[Any]) -> None:
    error = None if ended.cancelled() else ended.exception()
    if done.done():  # whoever waited has gone away, and does not want to know
        return
    if ended.cancelled():
        done.cancel()
    elif error is not None:
        done.set_exception(error)
    else:
        done.set_result(ended.result())
