"""What nodes share beside a journal: leases and a transport."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from comity.core.cluster.lease import Lease

Receive = Callable[[str, bytes], None]  # the sender's node id, and what it sent


class Leases(Protocol):
    """Who holds which address, decided in one place, for a limited time by that place's own clock.

    A token is given out once: each grant of an address to another holder, or to the same one after its lease ran out, carries a
    greater token than every grant before. `core.cluster.lease` has the rules as pure functions. Any method may take long or
    raise `UnavailableError`; then nobody knows whether it happened, and the caller asks again.
    """

    async def acquire(self, address: str, holder: str) -> Lease:
        """Ask for an address. Return who holds it now and for how long: `holder` itself if it was free, had run out or was
        `holder`'s already (its token stays), and otherwise somebody else."""
        ...

    async def find(self, address: str) -> Lease | None:
        """Return who holds an address, without asking for it; None if nobody does."""
        ...

    async def renew(self, lease: Lease) -> Lease | None:
        """Extend a lease that `lease.holder` has under `lease.token`; None if it ran out or is another's."""
        ...

    async def release(self, lease: Lease) -> None:
        """Give a lease back before its time; one that was lost already changes nothing."""
        ...


class Transport(Protocol):
    """Carries messages between nodes. It promises nothing: each may be lost, late, doubled or overtaken by a later one.

    What it does promise is who sent a message, and that one it delivers is whole. The runtime numbers, repeats and expires.
    """

    async def open(self, node_id: str, receive: Receive) -> None:
        """Take part under a name; `receive` is called in the event loop with each message that arrives."""
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
