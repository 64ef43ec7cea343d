"""One simulated world: a seed, a loop, a disk, nodes on them, faults that strike, and a witness who sees it all.

First things go wrong and nothing unsafe may happen; then everything is healed, and whatever is open must end. A run that goes
round and round fails by its bound of steps instead of hanging.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar, cast

from msgspec import Struct

import comity.node.runtime as node_module
from comity.core.agent.agent import Agent
from comity.core.agent.breaker import Breaker
from comity.core.agent.breaker import State as BreakerState
from comity.core.envelope.envelope import Reply
from comity.core.journal.records import Record
from comity.core.units import MS_PER_S, NS_PER_MS
from comity.errors import UnavailableError
from comity.ports import Model
from comity.runtime.cluster.cluster import SWEEP_MS
from comity.testing.sim.chance import replaced, sealed
from comity.testing.sim.faults import Fault, Firing, Kind, Pace
from comity.testing.sim.faulty_model import FaultyModel
from comity.testing.sim.ground import CURRENT, Ground
from comity.testing.sim.invariants import GRACE_MS, Handed, ViolationError
from comity.testing.sim.loop import Life, LivelockError, StuckError, kill
from comity.testing.sim.nodes import CrashedError, SimNode
from comity.testing.sim.trace import Trace
from comity.testing.sim.witness import UNWRITABLE

STEPS_MAX: Final = 500_000
JUMP_MS_MAX: Final = 3_000
PAUSE_S_MAX: Final = 12.0
RESTART_S_MAX: Final = 1.0
# A process that is to die does so after at most this many steps.
CUT_STEPS_MAX: Final = 40
# How often a process may be hit from outside; chance stretches it up to tenfold.
TICK_S: Final = 0.02
# A client asks again this often before it takes a node for lost.
TRIES_MAX: Final = 200

Scenario = Callable[["World"], Awaitable[None]]
Choice = TypeVar("Choice")


def current_world() -> World:
    """Return the world that the code that asks is in: for agents that are declared once and run in many."""
    return cast("World", CURRENT.get())


class Outcome(Struct, frozen=True, kw_only=True):
    """What one run came to."""

    seed: int
    failure: str  # empty if nothing is wrong
    invariant: str  # that was violated; empty if none was, or if the test itself failed
    error: BaseException | None
    trace: Trace
    fired: tuple[Firing, ...]
    marks: dict[str, int]
    refusals: dict[str, int]
    transitions: dict[tuple[str, str, str], int]
    appends: list[tuple[Record, ...]]
    handed: list[tuple[str, str, Handed | None]]
    calls: int
    steps: int
    writes: int

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.failure


class World(Ground):
    """One run. `run` plays a scenario in it."""

    def __init__(
        self,
        seed: int,
        *,
        faults: Sequence[Fault] = (),
        only: Iterable[Firing] | None = None,
        is_swarm: bool = False,
        steps_max: int = STEPS_MAX,
        cut_at_step: int | None = None,
        cut_at_append: int | None = None,
    ) -> None:
        super().__init__(seed, faults, only, is_swarm=is_swarm, steps_max=steps_max, cut_at_append=cut_at_append)
        self.chance = self.stream("world")  # for the author of a scenario
        self.nodes: dict[str, SimNode] = {}
        self.cut_at_step = cut_at_step
        self._knobs = self.stream("knobs")
        self._restarts = self.stream("restarts")
        self._clients = self.stream("clients")
        self._ids = itertools.count(1)
        self._background: list[asyncio.Task[Any]] = []

    # --- for the author of a scenario ---

    def knob(self, *choices: Choice) -> Choice:
        """Let the seed choose a setting: a bound that is never reached in real life may be two here."""
        return self._knobs.choice(choices)

    async def node(self, agents: Iterable[Agent], name: str | None = None, **more: Any) -> SimNode:
        """Start a node with these agents; `more` goes to `Node`."""
        name = name or f"n{len(self.nodes) + 1}"
        node = self.nodes[name] = SimNode(self, name, agents, **more)
        await node.start()
        return node

    async def cluster(self, count: int, agents: Iterable[Agent], **more: Any) -> list[SimNode]:
        """Start nodes that share their agents, a network and a lease service."""
        agents = tuple(agents)
        return [await self.node(agents, is_clustered=True, **more) for _ in range(count)]

    def model(self, model: Model) -> FaultyModel:
        """Put a model behind a provider that fails as this seed decides."""
        return FaultyModel(self, model)

    async def call(self, target: str, capability: str, inputs: dict[str, Any] | None = None, **more: Any) -> Reply:
        """Call as a careful client does: under one request id, at any node, again if the node dies, until there is a reply."""
        if not self.nodes:
            raise RuntimeError("this world has no node to call yet; start a node first: await world.node(agents)")
        more.setdefault("request_id", f"r{next(self._ids)}")
        reply: Reply | None = None
        for tried in range(TRIES_MAX):
            node = self._clients.choice(list(self.nodes.values()))
            try:
                reply = await node.call(target, capability, inputs, **more)
            except (CrashedError, UnavailableError):
                self.reached("client asked again")
            else:
                if not self._is_to_ask_again(reply):
                    return reply
            await asyncio.sleep(min(0.05 * (tried + 1), 1.0) * (0.5 + self._clients.random()))
        if reply is None:
            raise CrashedError(f"no node answered {more['request_id']} in {TRIES_MAX} tries")
        return reply

    async def heal(self) -> None:
        """Let nothing go wrong any more, and bring back what did."""
        if self.faults.is_healed:
            return
        self.faults.is_healed = True
        self.note("world", "heals", "")
        self.network.heal()
        for node in self.nodes.values():
            life = node.life
            if life is None:
                continue
            is_doomed = life.steps_left >= 0 and self.cut_at_step is None  # struck, a few steps before its end
            life.steps_left = -1
            if life.is_paused:
                self.resume(node)
            if not life.is_dead and (is_doomed or node.has_failed_store):
                self.crash(life)  # a supervisor would restart a node that can write nothing
        for node in self.nodes.values():
            await node.until_up()

    def arm(self, node: SimNode) -> None:
        """From here on count the steps of a node's process up to the one at which this run is to cut it."""
        if self.cut_at_step is not None and node.life is not None:
            node.life.steps_left = self.cut_at_step - 1

    # --- what strikes ---

    def crash(self, life: Life) -> None:
        """Let a process die where it stands; the world starts its node again after a while."""
        if life.is_dead:
            return
        kill(life)
        self.loop.keep_dead(life)
        self.reached("node crashed")
        self.note(str(life), "dies", "")
        self.witness.died(life)
        node = self.nodes[life.name]
        node.crashed()
        if not node.is_starting:
            delay_s = RESTART_S_MAX * self._restarts.random()
            self.loop.call_later(delay_s, self._restart, node, context=self.context)

    def _restart(self, node: SimNode) -> None:
        self.reached("node restarted")
        self._background.append(self.loop.create_task(node.start(), context=self.context.copy()))

    def pause(self, node: SimNode, seconds: float) -> None:
        """Let a process stand still for a while: it does not know, and no other process can tell."""
        life = node.life
        if life is not None and not life.is_dead and not life.is_paused:
            life.is_paused = True
            self.note(str(life), "stands still", f"for {seconds:.3f} s")
            self.loop.call_later(seconds, self.resume, node, context=self.context)

    def resume(self, node: SimNode) -> None:
        """Let it go on, none the wiser."""
        if node.life is not None and node.life.is_paused:
            self.reached("paused node came back")
            self.note(str(node.life), "goes on", "")
            self.loop.go_on(node.life)

    async def _meddle(self) -> None:
        """Hit processes from outside, now and then, and start those again that can write nothing any more."""
        chance = self.stream("ticks")
        while not self.faults.is_healed:
            await asyncio.sleep(TICK_S * (1 + 9 * chance.random()))
            self._hit_network(Pace.TIME)
            for node in list(self.nodes.values()):
                life = node.life
                if life is None or life.is_dead or life.is_paused:
                    continue
                if node.has_failed_store and chance.random() < 0.1:
                    self.crash(life)  # a supervisor would start it again
                    continue
                self._hit_process(node, life, Pace.TIME)

    def worked(self, life: Life, *, has_ended: bool = False) -> None:
        """An agent of a process has done something, or ended a call: an occasion to hit that process, however short the test.

        A process that was started again is spared until a call has ended in it, so that work goes on at any probability.
        """
        node = self.nodes.get(life.name)
        if node is None:
            return
        node.has_ended_calls = node.has_ended_calls or has_ended
        is_spared = node.is_starting or (life.number > 1 and not node.has_ended_calls)
        if is_spared or life.is_dead or life.is_paused or life.steps_left >= 0:  # or about to die already
            return
        self._hit_network(Pace.STEP)
        self._hit_process(node, life, Pace.STEP)

    def _hit_network(self, pace: Pace) -> None:
        for kind in (Kind.PARTITION, Kind.PARTITION_ONE_WAY, Kind.PARTITION_GROUP) if self.network.members else ():
            if (details := self.strikes(kind, "network", pace)) is not None:
                self.network.partition(kind, details, self.nodes)

    def _hit_process(self, node: SimNode, life: Life, pace: Pace) -> None:
        if (details := self.strikes(Kind.NODE_CRASH, node.name, pace)) is not None:
            # Where an agent's own step brought it, it mostly comes at once.
            is_now = pace is Pace.STEP
            life.steps_left = int(CUT_STEPS_MAX * details.random() ** 4) if is_now else details.randrange(CUT_STEPS_MAX)
        if (details := self.strikes(Kind.NODE_PAUSE, node.name, pace)) is not None:
            self.pause(node, PAUSE_S_MAX * details.random() ** 2)
        if node.clock is not None and (details := self.strikes(Kind.CLOCK_JUMP, node.name, pace)) is not None:
            node.clock.offset_ns += details.randint(1, JUMP_MS_MAX) * NS_PER_MS
            self.skew_ms += JUMP_MS_MAX

    # --- the run ---

    def run(self, scenario: Scenario) -> Outcome:
        """Play a scenario: safety while things go wrong, then healing, then everything must end."""
        error: BaseException | None = None
        with self._sealed():
            try:
                self.loop.run_until_complete(self.loop.create_task(self._main(scenario), context=self.context.copy()))
            except (LivelockError, StuckError) as caught:
                error = self.violation = self.violation or ViolationError("EveryCallEnds", str(caught))
            except BaseException as caught:  # noqa: BLE001  a scenario's own assertions are a finding too
                error = self.violation or caught
            finally:
                for node in self.nodes.values():
                    if node.life is not None:
                        node.life.is_dead = True  # no invariant is checked any more
                self.loop.bury()
                for node in self.nodes.values():
                    for body in node.bodies:
                        body.dissolve()
        if error is None and self.loop.failures:
            first = self.loop.failures[0]
            error = first.get("exception") or RuntimeError(first["message"])
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise error
        return self._outcome(error)

    async def _main(self, scenario: Scenario) -> None:
        if any(self.faults.has(kind) for kind in Kind):
            self._background.append(asyncio.ensure_future(self._meddle()))
        await scenario(self)
        await self.heal()
        await self._end()
        for node in self.nodes.values():
            await node.close()
        verdict = self.disk.verify()
        if not verdict.ok:
            self.witness.violate("AuditComplete", f"the chain of the audit is broken: {verdict.reason}")
            await asyncio.sleep(0)

    async def _end(self) -> None:
        """See that what is open ends, and that breakers let a call try."""
        await self.end_handoffs()
        observed = self.witness.observed
        # From here on nothing goes wrong. Where several nodes share the work, a live node finds a dead node's work.
        latest_ms = max((one.deadline_at for one in observed.open_roots.values()), default=0)
        latest_ms = max(latest_ms, self.now_ms()) + 1_000 + self.skew_ms + (SWEEP_MS if self.network.members else 0)
        while any(not self._is_paused(one) for one in observed.open_roots):
            if self.now_ms() > latest_ms:
                self.witness.violate("EveryCallEnds", f"{', '.join(observed.open_roots)} did not end")
            await asyncio.sleep(0.1)
        if not any(breaker.state is not BreakerState.CLOSED for breaker in self._breakers()):
            return
        longest_ms = max(one.policy.open_ms for one in self._breakers())
        await asyncio.sleep(longest_ms / MS_PER_S + 1)
        for node in self.nodes.values():
            for (agent, capability), breaker in node.breakers().items():
                if node.clock is not None and breaker.retry_after_ms(node.clock.now_ns() // NS_PER_MS) is not None:
                    self.witness.violate("BreakerEventuallyProbes", f"{capability} of {agent} is {breaker.state} for ever")
                    await asyncio.sleep(0)

    async def end_handoffs(self) -> None:
        """See that what was handed off ends. A waiter for the queue notices deadlines; if no node has one, the world sweeps."""
        observed = self.witness.observed
        while left := [one for one in observed.handoffs.values() if not one.has_ended]:
            latest_ms = max(one.request.deadline_at for one in left) + GRACE_MS + self.skew_ms
            if self.now_ms() > latest_ms:
                running = [node for node in self.nodes.values() if node.node is not None]
                for node in running if not any(node.hears for node in running) else ():
                    await node.within(node.node.handoffs.sweep())  # type: ignore[union-attr]
                if still := [one for one in left if not observed.handoffs[one.id].has_ended]:
                    self.witness.violate("EveryHandoffEnds", f"{', '.join(one.id for one in still)} did not end")
            await asyncio.sleep(0.1)

    def _is_to_ask_again(self, reply: Reply) -> bool:
        """Whether a client should try again: the node could not write, or another one still works on it."""
        if reply.error is None:
            return False
        if reply.error.code in UNWRITABLE:
            return not self.is_written(reply)
        known = self.disk.call(reply.request_id)
        return reply.error.code == "AGENT_BUSY" and known is not None and known.settled_at is None

    def _is_paused(self, request_id: str) -> bool:
        known = self.disk.call(request_id)
        return known is not None and known.reply is not None and known.settled_at is None

    def _breakers(self) -> list[Breaker]:
        return [one for node in self.nodes.values() for one in node.breakers().values()]

    @contextlib.contextmanager
    def _sealed(self) -> Iterator[None]:
        """Seal the world off: one key for every store, and no log."""
        key = self.stream("key").randbytes(32)
        log = logging.getLogger("comity")
        twins = ((node_module, "store_key", lambda *_: key), (log, "disabled", True))
        with sealed(self.seed, self.loop), replaced(*twins):
            yield

    def _outcome(self, error: BaseException | None) -> Outcome:
        invariant = error.name if isinstance(error, ViolationError) else ""
        failure = "" if error is None else (str(error) if invariant else f"{type(error).__name__}: {error}")
        return Outcome(
            seed=self.seed,
            failure=failure,
            invariant=invariant,
            error=error,
            trace=self.trace,
            fired=tuple(self.faults.fired),
            marks=self.marks,
            refusals=self.witness.refusals,
            transitions=self.witness.transitions,
            appends=self.witness.appends,
            handed=self.witness.handed_off,
            calls=self.witness.calls,
            steps=self.loop.steps,
            writes=self.appends,
        )
