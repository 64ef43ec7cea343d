"""A simulated network and lease service: messages are lost, doubled, late, overtaken or damaged; parts of it are cut off.

That a message is damaged is noticed where it arrives, so it is not delivered: the port promises that. A question to the lease
service crosses the same network; when its answer is lost, the node does not know whether the lease was granted.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, TypeVar

from comity.core.cluster.lease import Lease
from comity.engines.memory.cluster import LeaseService, claimed
from comity.errors import UnavailableError
from comity.ports import Journal, Receive
from comity.testing.sim.chance import SimClock
from comity.testing.sim.faults import Kind
from comity.testing.sim.loop import Life
from comity.testing.sim.scene import Scene

HOP_S_MAX: Final = 0.003
REORDER_S_MAX: Final = 0.2
DELAY_S_MAX: Final = 4.0
LEASES: Final = "leases"  # where the lease service is
ASK_TIMEOUT_S: Final = 1.0

Answer = TypeVar("Answer")


class SimNetwork:
    """What carries messages between simulated nodes."""

    def __init__(self, world: Scene) -> None:
        self.members: dict[str, tuple[Life, Receive]] = {}
        self.hosted: dict[str, frozenset[str]] = {}  # by process: its agents
        self._world = world
        self._chance = world.stream("network")
        self._cuts: dict[tuple[str, str], int] = {}  # links that carry nothing, and how many partitions cut each

    def transport(self, life: Life) -> SimTransport:
        """Return the end of one process."""
        return SimTransport(self, life)

    def hops(self, sender: str, receiver: str) -> list[float]:
        """Decide what becomes of a message: after how many seconds it arrives, once, twice or not at all."""
        world, link = self._world, f"{sender}>{receiver}"
        delay_s = HOP_S_MAX * self._chance.random()
        if self.is_cut(sender, receiver):
            world.reached("message met a partition")
            return []
        if world.strikes(Kind.MESSAGE_LOST, link) is not None:
            return []
        if world.strikes(Kind.MESSAGE_CORRUPTED, link) is not None:
            world.reached("damaged message dropped")
            return []
        if (chance := world.strikes(Kind.MESSAGE_DELAYED, link)) is not None:
            delay_s += DELAY_S_MAX * chance.random()
        if (chance := world.strikes(Kind.MESSAGE_REORDERED, link)) is not None:
            delay_s += REORDER_S_MAX * chance.random()
        if (chance := world.strikes(Kind.MESSAGE_DUPLICATED, link)) is not None:
            return [delay_s, delay_s + REORDER_S_MAX * chance.random()]
        return [delay_s]

    def send(self, sender: Life, node_id: str, message: bytes) -> None:
        """Carry a message to a process, if it is still there then."""
        to = self.members.get(node_id)
        if to is None or sender.is_dead:
            return
        life = to[0]
        for delay_s in self.hops(sender.name, life.name):
            context = life.context.copy()  # it arrives within the receiver: a dead one hears nothing, a paused one later
            self._world.loop.call_later(delay_s, self._deliver, str(sender), node_id, message, context=context)

    def _deliver(self, sender: str, node_id: str, message: bytes) -> None:
        to = self.members.get(node_id)
        if to is not None:
            to[1](sender, message)

    # --- partitions ---

    def is_cut(self, sender: str, receiver: str) -> bool:
        """Whether nothing gets from one place to another."""
        return bool(self._cuts.get((sender, receiver)))

    def cut(self, links: Sequence[tuple[str, str]], seconds: float) -> None:
        """Let links carry nothing for a while."""
        for link in links:
            self._cuts[link] = self._cuts.get(link, 0) + 1
        self._world.note("network", "is cut", ", ".join(f"{one}>{other}" for one, other in links))
        self._world.loop.call_later(seconds, self._mend, tuple(links), context=self._world.context)

    def _mend(self, links: Sequence[tuple[str, str]]) -> None:
        for link in links:
            if self._cuts.get(link):
                self._cuts[link] -= 1

    def heal(self) -> None:
        """Mend everything."""
        self._cuts.clear()

    def partition(self, kind: Kind, chance: random.Random, nodes: Iterable[str]) -> None:
        """Cut the network between these nodes in a way that a fault names."""
        places = [*nodes, LEASES]
        seconds = 0.1 + 8 * chance.random() ** 2
        if kind is Kind.PARTITION_GROUP:
            one = chance.choice(places[:-1])
            links = [link for other in places if other != one for link in ((one, other), (other, one))]
        elif kind is Kind.PARTITION_ONE_WAY:
            links = [tuple(chance.sample(places, 2))]  # type: ignore[list-item]
        else:
            chance.shuffle(places)
            half = chance.randint(1, len(places) - 1)
            links = [link for one in places[:half] for other in places[half:] for link in ((one, other), (other, one))]
        self.cut(links, seconds)


class SimTransport:
    """One process's end of the network."""

    def __init__(self, network: SimNetwork, life: Life) -> None:
        self._network = network
        self._life = life
        self._node_id = ""

    async def open(self, node_id: str, receive: Receive, *, lost: Callable[[str], None] | None = None) -> None:  # noqa: ARG002
        """Take part under a name; no node is notified when another dies."""
        self._node_id = node_id
        self._network.members[node_id] = (self._life, receive)

    async def close(self) -> None:
        """Leave."""
        self._network.members.pop(self._node_id, None)
        self._network.hosted.pop(self._node_id, None)

    def send(self, node_id: str, message: bytes) -> None:
        """Send a message, which may not arrive."""
        self._network.send(self._life, node_id, message)

    def peers(self) -> Sequence[str]:
        """Return who else is here."""
        return sorted(one for one in self._network.members if one != self._node_id)

    def announce(self, agents: Collection[str]) -> None:
        """Tell the others which agents this node hosts."""
        self._network.hosted[self._node_id] = frozenset(agents)

    def hosts(self, agent_id: str) -> Sequence[str]:
        """Return who else hosts an agent."""
        return sorted(one for one, agents in self._network.hosted.items() if agent_id in agents and one != self._node_id)


class SimLeaseService(LeaseService):
    """Who holds what, on a machine of its own whose clock is the world's."""

    def __init__(self, world: Scene) -> None:
        super().__init__(SimClock(world.loop))
        self._world = world
        self._holders: dict[str, str] = {}  # by address, the last

    def acquire(self, address: str, node_id: str) -> Lease:
        """Return who holds the address now."""
        lease = super().acquire(address, node_id)
        if self._holders.get(address, lease.holder) != lease.holder:
            self._world.reached("lease takeover")
        self._holders[address] = lease.holder
        return lease

    def release(self, lease: Lease) -> None:
        """Free an address."""
        super().release(lease)
        if self._holders.get(lease.address) == lease.holder:
            del self._holders[lease.address]


class SimLeases:
    """One process's way to the lease service."""

    def __init__(self, network: SimNetwork, service: SimLeaseService, life: Life, journal: Journal) -> None:
        self._network = network
        self._service = service
        self._life = life
        self._journal = journal

    async def acquire(self, address: str) -> Lease:
        """Ask for an address."""
        lease = await self._ask(lambda: self._service.acquire(address, self._journal.node_id))
        return await claimed(self._journal, lease)

    def find(self, address: str) -> Lease | None:
        """Return who holds an address, unless the lease service is cut off."""
        if self._network.is_cut(self._life.name, LEASES):
            raise UnavailableError("the lease service does not answer")
        return self._service.find(address)

    async def keep(self) -> int | None:
        """Keep everything this process holds."""
        return await self._ask(lambda: self._service.keep(self._journal.node_id))

    async def release(self, lease: Lease) -> None:
        """Give a lease back."""
        await self._ask(lambda: self._service.release(lease))

    async def _ask(self, question: Callable[[], Answer]) -> Answer:
        """Send a question and wait for its answer; either may be lost."""
        network, name = self._network, self._life.name
        there = network.hops(name, LEASES)
        if not there:
            await asyncio.sleep(ASK_TIMEOUT_S)
            raise UnavailableError("the lease service does not answer")
        await asyncio.sleep(there[0])
        answer = question()
        back = network.hops(LEASES, name)
        if not back:
            await asyncio.sleep(ASK_TIMEOUT_S)
            raise UnavailableError("the lease service does not answer")
        await asyncio.sleep(back[0])
        return answer
