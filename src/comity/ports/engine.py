"""An engine: everything a node stands on, as one object. `docs/engines.md` says how to write one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from comity.ports.cluster import Leases, Transport
from comity.ports.journal import Journal
from comity.ports.reader import Reader


class Engine(Protocol):
    """What carries and stores for one node.

    A node opens its engine, reads what it needs to begin, then calls `listen` and `join`, in this order. While `is_alone` holds
    there is no other node on the same store, and the node uses neither leases nor transport. An engine whose store can get
    company later calls what `listen` was given, once, and lets no other node begin before that has returned.
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
        """The file beside which the spans and the key are kept; None keeps them in memory, or as the environment says."""
        ...

    @property
    def is_alone(self) -> bool:
        """Whether this node needs no leases: no other works on the same store."""
        ...

    def open_reader(self) -> Reader:
        """Return a new view of what people look at. Raises `UnavailableError` where the store cannot be listed."""
        ...

    async def open(self) -> None:
        """Make the journal ready. Raises `UnavailableError` if the store cannot be used."""
        ...

    async def listen(self, share: Callable[[], Awaitable[None]]) -> None:
        """Begin to notice other nodes. `share` takes the leases of what this node runs; it is awaited at most once."""
        ...

    async def join(self) -> None:
        """Wait until every other node works under leases. Raises `UnavailableError` if one of them does not answer."""
        ...

    async def leave(self) -> None:
        """Send and hear nothing more; the journal stays open."""
        ...

    async def close(self) -> None:
        """Make everything durable and let go."""
        ...
