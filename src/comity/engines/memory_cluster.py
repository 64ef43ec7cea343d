"""What several nodes in one process share: leases and a network in memory. The runtime's tests stand on them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from comity.core import lease as core
from comity.core.lease import LEASE_MS, Grant, Lease
from comity.ports import Clock, Receive


class MemoryLeases:
    """Leases of all nodes that hold this object; its clock is the one that counts."""

    def __init__(self, clock: Clock, *, lease_ms: int = LEASE_MS) -> None:
        self._clock = clock
        self._lease_ms = lease_ms
        self._grants: dict[str, Grant] = {}

    async def acquire(self, address: str, holder: str) -> Lease:
        """Return who holds the address now."""
        now_ms = self._now_ms()
        grant = core.acquire(self._grants.get(address), holder, now_ms=now_ms, lease_ms=self._lease_ms)
        return self._keep(address, grant, now_ms)

    async def renew(self, lease: Lease) -> Lease | None:
        """Extend a lease that has not run out."""
        now_ms = self._now_ms()
        held = self._grants.get(lease.address)
        grant = core.renew(held, lease.holder, lease.token, now_ms=now_ms, lease_ms=self._lease_ms)
        return None if grant is None else self._keep(lease.address, grant, now_ms)

    async def release(self, lease: Lease) -> None:
        """Let others have the address."""
        grant = core.release(self._grants.get(lease.address), lease.holder, lease.token)
        if grant is not None:
            self._grants[lease.address] = grant

    def expire(self, address: str) -> None:
        """Let the lease of an address run out now; its holder is not told."""
        held = self._grants.get(address)
        if held is not None:
            self._grants[address] = Grant(held.holder, held.token, self._now_ms())

    def _keep(self, address: str, grant: Grant, now_ms: int) -> Lease:
        self._grants[address] = grant
        return Lease(address, grant.holder, grant.token, grant.expires_at - now_ms)

    def _now_ms(self) -> int:
        return self._clock.now_ns() // 1_000_000


class MemoryNetwork:
    """Carries messages between the nodes of one process: in order, once, in the next turn of the event loop."""

    def __init__(self) -> None:
        self.members: dict[str, Receive] = {}

    def transport(self) -> MemoryTransport:
        """Return the end of one node."""
        return MemoryTransport(self)

    def deliver(self, sender: str, node_id: str, message: bytes) -> None:
        """Hand a message over, if there is somebody to take it."""
        receive = self.members.get(node_id)
        if receive is not None:
            receive(sender, message)


class MemoryTransport:
    """One node's end of a network in memory."""

    def __init__(self, network: MemoryNetwork) -> None:
        self._network = network
        self._node_id = ""

    async def open(self, node_id: str, receive: Receive) -> None:
        """Take part under a name."""
        if node_id in self._network.members:
            raise ValueError(f"there is a node {node_id} already")
        self._node_id = node_id
        self._network.members[node_id] = receive

    async def close(self) -> None:
        """Leave."""
        self._network.members.pop(self._node_id, None)

    def send(self, node_id: str, message: bytes) -> None:
        """Send in the next turn of the loop: no sender finds itself inside the receiver."""
        asyncio.get_running_loop().call_soon(self._network.deliver, self._node_id, node_id, message)

    def peers(self) -> Sequence[str]:
        """Return who else is here."""
        return sorted(one for one in self._network.members if one != self._node_id)
