"""Leases and message transport between nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from comity.core.cluster.lease import Lease

Receive = Callable[[str, bytes], None]  # the sender's node id, and what it sent
Noticed = Callable[[str], None]  # a node's id


class Leases(Protocol):
    """One node's client of the lease service, which decides which node holds which address.

    One heartbeat, `keep`, renews all leases of a node; without it they expire together. Each grant of an address, to another
    holder or to the same one after its lease expired, has a greater fencing token than every grant before.
    `core.cluster.lease.LeaseTable` has the rules. The async methods may take long or raise `UnavailableError`; then it is
    unknown whether the operation happened, and the caller retries.
    """

    async def acquire(self, address: str) -> Lease:
        """Take a free or expired lease; return the current lease. A lease that this node holds already keeps its token.

        A grant is durable when this returns, and the journal refuses records with an older token.
        """
        ...

    def find(self, address: str) -> Lease | None:
        """Return the last known lease of an address, without acquiring it; None if it is free."""
        ...

    async def keep(self) -> int | None:
        """Renew all leases of this node and return for how many milliseconds.

        Return None if it came too late: the leases have expired, and the node starts without any.
        """
        ...

    async def release(self, lease: Lease) -> None:
        """Release a lease before it expires; releasing a lost lease changes nothing."""
        ...


class Transport(Protocol):
    """Carries messages between nodes. Any message may be lost, late, duplicated or reordered.

    Guaranteed are only the sender's identity and the integrity of a delivered message. The runtime repeats and expires them.
    """

    async def open(self, node_id: str, receive: Receive, *, lost: Noticed | None = None) -> None:
        """Join the network as `node_id`; `receive` is called in the event loop with each message that arrives.

        `lost` is called with a node that seems to have left or died; it may be wrong, and may never be called.
        """
        ...

    async def close(self) -> None:
        """Leave the network; messages that have not arrived are lost."""
        ...

    def send(self, node_id: str, message: bytes) -> None:
        """Send a message without waiting; a missing node raises no error."""
        ...

    def peers(self) -> Sequence[str]:
        """Return the known other nodes, sorted; some may be dead."""
        ...

    def announce(self, agents: Collection[str]) -> None:
        """Announce this node's agents to the others, and to nodes that join later."""
        ...

    def hosts(self, agent_id: str) -> Sequence[str]:
        """Return the other nodes that host an agent, sorted, as far as is known."""
        ...
