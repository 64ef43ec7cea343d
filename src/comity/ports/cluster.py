"""What nodes share beside a journal: leases and a transport."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from comity.core.cluster.lease import Lease

Receive = Callable[[str, bytes], None]  # the sender's node id, and what it sent
Noticed = Callable[[str], None]  # a node's id


class Leases(Protocol):
    """Which node holds which address, decided in one place. This is one node's end of it.

    A node keeps everything it holds with one beat, `keep`; without it all its leases run out together. A token is given out
    once: each grant of an address to another holder, or to the same one after its lease ran out, carries a greater token than
    every grant before. `core.cluster.lease.LeaseTable` has the rules. The async methods may take long or raise
    `UnavailableError`; then it is not known whether it happened, and the caller asks again.
    """

    async def acquire(self, address: str) -> Lease:
        """Return who holds an address now: this node if it was free, had run out or was this node's already (its token stays).

        A grant is durable when this returns, and the journal refuses what is written under an older token.
        """
        ...

    def find(self, address: str) -> Lease | None:
        """Return who holds an address as far as is known here, without asking for it; None if it is free."""
        ...

    async def keep(self) -> int | None:
        """Keep everything this node holds and return for how many milliseconds.

        None if that came too late: everything it held is free, and it begins anew.
        """
        ...

    async def release(self, lease: Lease) -> None:
        """Give a lease back before its time; releasing a lease that was lost already changes nothing."""
        ...


class Transport(Protocol):
    """Carries messages between nodes. It promises nothing: each may be lost, late, doubled or overtaken by a later one.

    What it does promise is who sent a message, and that one it delivers is whole. The runtime numbers, repeats and expires.
    """

    async def open(self, node_id: str, receive: Receive, *, lost: Noticed | None = None) -> None:
        """Take part under a name; `receive` is called in the event loop with each message that arrives.

        `lost` is called with a node that seems to have left or died; it may be wrong, and may never be called.
        """
        ...

    async def close(self) -> None:
        """Leave; what has not arrived yet never will."""
        ...

    def send(self, node_id: str, message: bytes) -> None:
        """Send a message. Never waits, and says nothing about a node that is not there."""
        ...

    def peers(self) -> Sequence[str]:
        """Return the other nodes that take part, sorted, as far as is known: some may be gone."""
        ...

    def announce(self, agents: Collection[str]) -> None:
        """Tell the others, now and when they come, which agents this node hosts."""
        ...

    def hosts(self, agent_id: str) -> Sequence[str]:
        """Return the other nodes that host an agent, sorted, as far as is known."""
        ...
