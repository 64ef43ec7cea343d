"""An engine: journal, leases and transport of a node, as one object. `docs/engines.md` says how to write one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from comity.ports.cluster import Leases, Transport
from comity.ports.journal import Journal
from comity.ports.reader import Reader


class Engine(Protocol):
    """The storage and communication of one node.

    A node opens its engine, reads its initial state, then calls `listen` and `join`, in this order. While `is_alone` is true
    no other node uses the same store, and the node uses neither leases nor transport. If another node may join later, the
    engine calls the `share` of `listen` once, and lets no other node begin before it has returned.
    """

    @property
    def journal(self) -> Journal:
        """Records, calls, documents, the audit and the handoff queue."""
        ...

    @property
    def leases(self) -> Leases:
        """Which node holds which address."""
        ...

    @property
    def transport(self) -> Transport:
        """Messages between nodes."""
        ...

    @property
    def path(self) -> Path | None:
        """The file beside which spans and key are kept; None keeps them in memory, or where the environment says."""
        ...

    @property
    def is_alone(self) -> bool:
        """Whether this node needs no leases: no other works on the same store."""
        ...

    def open_reader(self) -> Reader:
        """Return a new reader. Raises `UnavailableError` if the store cannot be listed."""
        ...

    async def open(self) -> None:
        """Open the journal. Raises `UnavailableError` if the store cannot be used."""
        ...

    async def listen(self, share: Callable[[], Awaitable[None]]) -> None:
        """Start to accept other nodes. `share` takes the leases of this node's active addresses; it is awaited at most once."""
        ...

    async def join(self) -> None:
        """Wait until every other node works under leases. Raises `UnavailableError` if one of them does not answer."""
        ...

    async def leave(self) -> None:
        """Close the transport; the journal stays open."""
        ...

    async def close(self) -> None:
        """Make everything durable and close the journal."""
        ...
