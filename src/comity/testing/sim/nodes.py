"""Simulated processes: real nodes on faulty ports, that start, crash, stand still and come back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any

from comity.core.agent.agent import Agent
from comity.core.agent.breaker import Breaker
from comity.core.agent.tool import Tool
from comity.core.call.machine import Event
from comity.core.envelope.envelope import Reply, Request
from comity.core.handoff.machine import Handoff, Offer
from comity.core.handoff.queue import Step
from comity.engines.memory.engine import JournalEngine
from comity.errors import CallerError, ComityError, UnavailableError
from comity.node.node import Node
from comity.ports.observer import Call, Observer
from comity.runtime.call.replay import is_run
from comity.runtime.call.way import LOCAL
from comity.testing.sim.chance import SimClock, SimIds
from comity.testing.sim.faults import Kind
from comity.testing.sim.ground import Ground
from comity.testing.sim.journal import SimJournal, write_failed
from comity.testing.sim.loop import Life, SimTask
from comity.testing.sim.network import SimLeases

LATE_S_MAX = 60.0
DELAY_S_MAX = 2.0


class CrashedError(ConnectionError):
    """The node died under a call; what became of it is not known."""


async def _dawdle(seconds: float, *, is_stubborn: bool) -> None:
    """Take one's time; some do not even stop when they are told to."""
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        if not is_stubborn:
            raise


class Beside(Observer):
    """Stands beside a simulated process: shows the witness its steps, and lets agents fail in every way ADR-028 names."""

    def __init__(self, world: Ground, life: Life) -> None:
        self._world = world
        self._life = life
        self._witness = world.witness
        self.entered_calls: list[Any] = []

    def arrives(self, request: Request, agent: Agent | None) -> Agent | None:
        """Let the agent be unknown, or have no place."""
        if self._world.strikes(Kind.AGENT_NOT_FOUND, request.target) is not None:
            return None
        if agent is not None and self._world.strikes(Kind.AGENT_BUSY, request.target) is not None:
            agent = copy(agent)
            agent.pending_max = -1
        return agent

    def entered(self, call: Call) -> None:
        """Keep the call, to be taken apart should its process die."""
        self.entered_calls.append(call)
        self._world.worked(self._life)

    async def runs(self, call: Call) -> None:
        """Let the agent be slow, unwilling, broken or late."""
        world, address = self._world, call.request.target
        if is_run(address):
            return  # what drives a run is a part of the node, which fails by crashing
        if (chance := world.strikes(Kind.AGENT_CALL_NETWORK_DELAY, address)) is not None:
            await asyncio.sleep(DELAY_S_MAX * chance.random())
        if world.strikes(Kind.AGENT_CALL_REJECTED, address) is not None:
            raise CallerError(f"{address} will not do this")
        if world.strikes(Kind.AGENT_CRASH, address) is not None:
            raise UnavailableError(f"{address} fell over")
        if (chance := world.strikes(Kind.AGENT_CALL_TIMEOUT, address)) is not None:
            await _dawdle(LATE_S_MAX * chance.random(), is_stubborn=chance.random() < 0.5)

    def queued(self, call: Call) -> None:
        """Show it."""
        if not self._life.is_dead:
            self._witness.queued(self._life, call)

    def starting(self, call: Call) -> None:
        """Show it."""
        if not self._life.is_dead:
            self._witness.started(self._life, call)
            self._world.worked(self._life)

    def leaving(self, call: Call) -> None:
        """Show it."""
        if not self._life.is_dead:
            self._witness.left(self._life, call)

    def settling(self, call: Call, event: Event) -> None:
        """Show it."""
        if not self._life.is_dead:
            self._witness.closing(self._life, call, event)

    def settled(self, call: Call) -> None:  # noqa: ARG002  which call does not matter
        """Perhaps hit the process."""
        self._world.worked(self._life, has_ended=True)

    def putting_aside(self, calls: Sequence[Call]) -> None:
        """Show which states they leave."""
        for call in calls if not self._life.is_dead else ():
            self._witness.moved("call", call.state, Event.PAUSE)

    def put_aside(self, calls: Sequence[Call]) -> None:
        """Show it."""
        for call in calls if not self._life.is_dead else ():
            self._witness.moved_away(self._life, call)

    def using(self, tool: Tool, request: Request) -> None:
        """Show it, and whether its intent is on disk."""
        self._witness.used(self._life, tool, request, is_written=self._world.disk.knows(request.request_id))
        self._world.worked(self._life)

    def moved(self, machine: str, state: str, event: str) -> None:
        """Show it."""
        self._witness.moved(machine, state, event)

    def acknowledged(self, handoff_id: str) -> None:
        """Show it."""
        self._witness.acknowledged(handoff_id)

    def performed(self, step: Step) -> None:
        """Show what was handed off, and perhaps hit the process."""
        self._world.worked(self._life, has_ended=True)
        if isinstance(step.change, Offer) and step.outcome.refusal is None:
            self._witness.acknowledged(step.handoff_id)

    def shown(self, handoff: Handoff) -> None:
        """Show it."""
        self._witness.shown(handoff)


class Body:
    """The memory of one life."""

    def __init__(self, node: Node, beside: Beside) -> None:
        self.node = node
        self._beside = beside

    def dissolve(self) -> None:
        """Take apart what calls of a dead process hold of each other: the collector does not look at them, since they end."""
        runtime = self.node.runtime
        cut_off = () if runtime is None else runtime.path.calls.values()  # some were on their way in
        for call in (*self._beside.entered_calls, *cut_off):
            call.task = call.waiters = call.children = call.parent = call.root = call.live = call.log = None
            call.way = LOCAL
            call.seat = call.account = None
        self._beside.entered_calls.clear()
        if runtime is None:
            return
        if runtime.journal.failure is not None:
            runtime.journal.failure.__traceback__ = None  # raised in many places, it remembers them all
        runtime.path.calls.clear()
        activations = runtime.path.activations
        for address in activations.addresses():
            activations.drop(address)
        activations.strays.clear()
        runtime.path.settlement.deadlines.close()


class SimNode:
    """One place where a node runs, over all its lives."""

    def __init__(self, world: Ground, name: str, agents: Iterable[Agent], *, is_clustered: bool = False, **more: Any) -> None:
        self.name = name
        self._is_clustered = is_clustered
        self.life: Life | None = None
        self.node: Node | None = None  # of the life that runs
        self.clock: SimClock | None = None
        self._world = world
        self._agents = tuple(agents)
        self._more = more
        self._lives = 0
        self._journal: SimJournal | None = None
        self._waiting: dict[asyncio.Future[Any], None] = {}  # clients that wait for this life
        self.bodies: list[Body] = []  # of all its lives
        self.is_starting = False
        self.has_ended_calls = False  # in the life that runs
        self._up = asyncio.Event()

    @property
    def is_up(self) -> bool:
        """Whether a client finds a running process here; a client cannot tell a paused process from a slow one."""
        return self.node is not None and not self.is_starting

    @property
    def has_failed_store(self) -> bool:
        """Whether its journal has stopped for good."""
        return self._journal is not None and self._journal.failure is not None

    @property
    def hears(self) -> bool:
        """Whether a waiter of this node waits for the handoff queue."""
        runtime = None if self.node is None else self.node.runtime
        return runtime is not None and runtime.desk is not None and runtime.desk.is_listened_to

    def break_store(self) -> None:
        """Let its journal accept nothing any more, as after a failed write."""
        if self._journal is not None:
            self._journal.failure = write_failed("input/output error")

    def breakers(self) -> Mapping[tuple[str, str], Breaker]:
        """Return the breakers of the life that runs."""
        runtime = None if self.node is None else self.node.runtime
        return {} if runtime is None else runtime.path.settlement.breakers.known

    async def start(self) -> None:
        """Begin a new life, and try again if it fails to begin."""
        world = self._world
        self.is_starting = True
        while True:
            self._lives += 1
            life = self.life = world.life(self.name, self._lives)
            self.has_ended_calls = False
            self.clock = SimClock(world.loop, world.skew_of(life))
            self._journal = SimJournal(world, world.disk, world.witness, life, is_clustered=self._is_clustered)
            engine = JournalEngine(self._journal)
            if self._is_clustered:
                engine = JournalEngine(
                    self._journal, SimLeases(world.network, world.leases, life, self._journal), world.network.transport(life)
                )
            beside = Beside(world, life)
            self.node = Node(
                self._agents, engine=engine, clock=self.clock, ids=SimIds(world.stream(f"ids {life}")),
                lag_ms=None, observer=beside, **self._more,
            )  # fmt: skip
            self.bodies.append(Body(self.node, beside))
            world.note(str(life), "starts up", "")
            try:
                await self.within(self.node.start())
            except (CrashedError, ComityError) as error:
                world.note(str(life), "fails", str(error))
                if not life.is_dead:
                    world.crash(life)
                await asyncio.sleep(0.1)
                continue
            if not life.is_dead:  # it may have begun, and died before this look
                self.is_starting = False
                self._up.set()
                return

    async def until_up(self) -> None:
        """Wait until a client finds a running process here."""
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
    if done.done():  # the waiter has gone away, and does not want to know
        return
    if ended.cancelled():
        done.cancel()
    elif error is not None:
        done.set_exception(error)
    else:
        done.set_result(ended.result())
