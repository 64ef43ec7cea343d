"""Two or more nodes on one store in virtual time, with a network whose faults a test chooses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from typing import Any

from comity import Agent, Node
from comity.core.call.machine import State
from comity.core.cluster import messages as wire
from comity.core.cluster.lease import Lease
from comity.engines.memory.cluster import LeaseService, MemoryLeases, MemoryNetwork, MemoryTransport, SharedJournal
from comity.engines.memory.engine import JournalEngine
from comity.engines.memory.journal import MemoryJournal
from comity.errors import UnavailableError
from comity.testing import VirtualClock, run_virtual

Fault = Callable[[str, str, wire.Message], Iterable[float]]  # sender, receiver, message: after how many seconds it arrives


def in_order(sender: str, receiver: str, message: wire.Message) -> Iterable[float]:
    return (0.001,)


class Network(MemoryNetwork):
    """A network that loses, delays and doubles what its fault says."""

    def __init__(self) -> None:
        super().__init__()
        self.fault: Fault = in_order
        self.sent: list[tuple[str, str, wire.Message]] = []
        self.cut: set[str] = set()

    def transport(self) -> MemoryTransport:
        return _Faulty(self)


class _Faulty(MemoryTransport):
    def send(self, node_id: str, message: bytes) -> None:
        network = self._network
        assert isinstance(network, Network)
        read = wire.decode(message)
        assert read is not None
        network.sent.append((self._node_id, node_id, read))
        if self._node_id in network.cut or node_id in network.cut:
            return
        for delay_s in network.fault(self._node_id, node_id, read):
            asyncio.get_running_loop().call_later(delay_s, network.deliver, self._node_id, node_id, message)


class Leases(LeaseService):
    """Leases that some nodes cannot reach."""

    def __init__(self) -> None:
        super().__init__(VirtualClock())
        self.deaf: set[str] = set()
        self.given: Callable[[Lease], None] = lambda lease: None  # called before a node is told who has an address

    def acquire(self, address: str, node_id: str) -> Lease:
        if node_id in self.deaf:
            raise UnavailableError("the lease service does not answer")
        lease = super().acquire(address, node_id)
        self.given(lease)
        return lease

    def keep(self, node_id: str) -> int | None:
        if node_id in self.deaf:
            raise UnavailableError("the lease service does not answer")
        return super().keep(node_id)


class World:
    """The store, the leases and the network that nodes share."""

    def __init__(self) -> None:
        self.store = MemoryJournal()
        self.leases = Leases()
        self.network = Network()

    def node(self, node_id: str, agents: Sequence[Agent], **more: Any) -> Node:
        journal = SharedJournal(self.store, node_id)
        return Node(
            agents,
            engine=JournalEngine(journal, MemoryLeases(self.leases, journal), self.network.transport()),
            clock=VirtualClock(),
            lag_ms=None,
            **more,
        )

    def kinds(self, request_id: str) -> list[str]:
        """What the audit says about one call, in order."""
        return [row.kind for row in self.store.rows() if row.request_id == request_id]

    def messages(self, kind: type) -> list[Any]:
        return [message for _, _, message in self.network.sent if isinstance(message, kind)]


def play(case: Callable[..., Awaitable[None]], *agents: Sequence[Agent], **more: Any) -> None:
    """Run a case with a world and one node for each list of agents: n1, n2, …"""

    async def main() -> None:
        world = World()
        async with AsyncExitStack() as nodes:
            running = [
                await nodes.enter_async_context(world.node(f"n{number}", one, **more)) for number, one in enumerate(agents, 1)
            ]
            await case(world, *running)

    run_virtual(main())


async def die(node: Node) -> None:
    """Stop a node as a crash would: nothing more is written or sent by it, and nobody is told."""
    path = node._path
    cluster = path.placement
    await cluster.peers.transport.close()
    path._journal.failure = RuntimeError("dead")
    for task in cluster._tasks:
        task.cancel()
    for served in cluster._server._served.values():
        assert served.task is not None
        served.task.cancel()
    for call in list(path.calls.values()):
        call.state = State.PAUSED  # whatever its task still does is nobody's business
        if call.task is not None:
            call.task.cancel()
    path.settlement.deadlines.close()
    node._runtime.tending.stop()
    await asyncio.sleep(0)
    path.calls.clear()
