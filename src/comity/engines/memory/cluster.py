"""A journal, leases and a network in memory, shared by several nodes of one process; the runtime's tests use them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Any

from comity.core.cluster.lease import LEASE_MS, Lease, LeaseTable
from comity.core.journal.audit import Pseudonyms
from comity.core.journal.records import Record, StoredCall
from comity.core.journal.terms import Fence, Terms, claim
from comity.core.units import NS_PER_MS
from comity.engines.memory.journal import MemoryJournal
from comity.engines.sqlite.handoffs import MemoryHandoffs
from comity.engines.sqlite.wakeups import Heard
from comity.errors import UnavailableError
from comity.ports import Clock, Journal, Receive, Then


class SharedHandoffs:
    """One node's view of a shared in-memory handoff queue."""

    def __init__(self, shared: MemoryHandoffs) -> None:
        self._shared = shared
        self._heard: Heard | None = None

    def open(self, heard: Heard) -> None:
        """Begin to hear."""
        self._heard = heard
        self._shared.open(heard)

    def close(self) -> None:
        """Hear no more."""
        if self._heard is not None:
            self._shared.leave(self._heard)
            self._heard = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._shared, name)  # reads are the same for all nodes


class SharedJournal:
    """One node's view of a shared in-memory journal: all of `Journal`, of which the rest is the same for all nodes."""

    def __init__(self, shared: MemoryJournal, node_id: str) -> None:
        self.node_id = node_id
        self._shared = shared
        self.handoffs = SharedHandoffs(shared.handoffs)

    @property
    def names(self) -> Pseudonyms:
        """How names stand in the audit."""
        return self._shared.names

    @names.setter
    def names(self, names: Pseudonyms) -> None:
        self._shared.names = names

    forgot: Callable[[Sequence[str]], None] | None = None  # nodes that share sessions read them before they use them

    def append(self, records: Sequence[Record], then: Then | None = None, terms: Terms | None = None) -> None:
        """Store the records at once if the terms hold."""
        self._shared.append(records, then, terms)

    def take_paused(self, root_id: str) -> list[StoredCall]:
        """Return the open calls of a paused tree and assign them to this node."""
        return self._shared.take_paused(root_id, self.node_id)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._shared, name)


class LeaseService:
    """The leases of the nodes of one process, by one clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._table = LeaseTable(LEASE_MS)

    def acquire(self, address: str, node_id: str) -> Lease:
        """Return who holds the address now."""
        lease = self._table.acquire(address, node_id, now_ms=self._now_ms())
        if lease is None:
            raise UnavailableError(f"the leases of the node {node_id} have run out, and it has not begun anew yet")
        return lease

    def find(self, address: str) -> Lease | None:
        """Return who holds the address."""
        return self._table.find(address, now_ms=self._now_ms())

    def keep(self, node_id: str) -> int | None:
        """Take a node's heartbeat."""
        return self._table.keep(node_id, now_ms=self._now_ms())

    def release(self, lease: Lease) -> None:
        """Free an address."""
        self._table.release(lease)

    def expire(self, address: str) -> None:
        """Expire the lease of an address; its holder is not notified."""
        self._table.expire(address)

    def bury(self, node_id: str) -> None:
        """Expire all leases of a node; it is not notified."""
        self._table.bury(node_id, now_ms=self._now_ms())

    def _now_ms(self) -> int:
        return self._clock.now_ns() // NS_PER_MS


async def claimed(journal: Journal, lease: Lease) -> Lease:
    """Return a lease once the journal refuses records with an older fencing token of its address."""
    if lease.holder == journal.node_id:
        fence = Fence(lease.address, lease.token)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def then(error: Exception | None) -> None:
            if not done.done():
                done.set_result(None) if error is None else done.set_exception(error)

        journal.append((claim(fence, lease.holder),), then, Terms(fences=(fence,)))
        await done
    return lease


class MemoryLeases:
    """One node's client of the process's lease service."""

    def __init__(self, service: LeaseService, journal: Journal) -> None:
        self._service = service
        self._journal = journal

    async def acquire(self, address: str) -> Lease:
        """Return who holds the address now."""
        return await claimed(self._journal, self._service.acquire(address, self._journal.node_id))

    def find(self, address: str) -> Lease | None:
        """Return the node that holds the address, or None."""
        return self._service.find(address)

    async def keep(self) -> int | None:
        """Renew all leases of this node."""
        return self._service.keep(self._journal.node_id)

    async def release(self, lease: Lease) -> None:
        """Release a lease."""
        self._service.release(lease)


class MemoryNetwork:
    """Carries messages between the nodes of one process: in order, once, in the next turn of the event loop."""

    def __init__(self) -> None:
        self.members: dict[str, Receive] = {}
        self.hosted: dict[str, frozenset[str]] = {}  # by node: its agents
        self._sent: list[tuple[str, str, bytes]] = []  # in this turn of the loop

    def transport(self) -> MemoryTransport:
        """Return the transport of one node."""
        return MemoryTransport(self)

    def send(self, sender: str, node_id: str, message: bytes) -> None:
        """Deliver in the next turn of the loop, with all messages of this turn, so that no receiver runs inside a sender."""
        if not self._sent:
            asyncio.get_running_loop().call_soon(self._deliver_all)
        self._sent.append((sender, node_id, message))

    def _deliver_all(self) -> None:
        sent, self._sent = iter(self._sent), []
        try:
            for one in sent:
                self.deliver(*one)
        finally:  # a failing receiver must not stop other messages
            for one in sent:
                self.send(*one)

    def deliver(self, sender: str, node_id: str, message: bytes) -> None:
        """Hand a message over, if the receiving node is a member."""
        receive = self.members.get(node_id)
        if receive is not None:
            receive(sender, message)


class MemoryTransport:
    """One node's transport on an in-memory network."""

    def __init__(self, network: MemoryNetwork) -> None:
        self._network = network
        self._node_id = ""

    async def open(self, node_id: str, receive: Receive, *, lost: Callable[[str], None] | None = None) -> None:  # noqa: ARG002
        """Join the network as `node_id`."""
        if node_id in self._network.members:
            raise ValueError(f"there is a node {node_id} already")
        self._node_id = node_id
        self._network.members[node_id] = receive

    async def close(self) -> None:
        """Leave."""
        self._network.members.pop(self._node_id, None)
        self._network.hosted.pop(self._node_id, None)

    def send(self, node_id: str, message: bytes) -> None:
        """Send in the next turn of the loop."""
        self._network.send(self._node_id, node_id, message)

    def peers(self) -> Sequence[str]:
        """Return the other nodes, sorted."""
        return sorted(one for one in self._network.members if one != self._node_id)

    def announce(self, agents: Collection[str]) -> None:
        """Tell the others which agents this node hosts."""
        self._network.hosted[self._node_id] = frozenset(agents)

    def hosts(self, agent_id: str) -> Sequence[str]:
        """Return the other nodes that host an agent."""
        return sorted(one for one, agents in self._network.hosted.items() if agent_id in agents and one != self._node_id)
