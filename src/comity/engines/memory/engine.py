"""The memory engine: nothing outlives the process, and several nodes of one process may share it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

from comity.engines.clock import SystemClock
from comity.engines.memory.cluster import LeaseService, MemoryLeases, MemoryNetwork, SharedJournal
from comity.engines.memory.journal import MemoryJournal
from comity.errors import UnavailableError
from comity.ports import Clock, Journal, Leases, Reader, Transport


class JournalEngine:
    """An engine for one node on a given journal, with leases and a transport if it shares the journal with other nodes."""

    def __init__(self, journal: Journal, leases: Leases | None = None, transport: Transport | None = None) -> None:
        self.journal = journal
        self.path: Path | None = None
        self.is_alone = leases is None or transport is None
        self.leases = leases or MemoryLeases(LeaseService(SystemClock()), journal)
        self.transport = transport or MemoryNetwork().transport()

    def open_reader(self) -> Reader:
        """Return a view of what is in memory. Raises `UnavailableError` for a journal of another kind."""
        from comity.engines.memory.reader import MemoryReader  # noqa: PLC0415  few programs list anything

        if isinstance(self.journal, MemoryJournal):
            return MemoryReader(self.journal)
        raise UnavailableError("this node's store cannot be listed", code="STORE_UNAVAILABLE", retryable=False)

    async def open(self) -> None:
        """Open the journal."""
        self.journal.open()

    async def listen(self, share: Callable[[], Awaitable[None]]) -> None:
        """No other node comes later: a node is alone from the beginning, or never."""

    async def join(self) -> None:
        """No other node has to be waited for."""

    async def leave(self) -> None:
        """Leave the network."""
        await self.transport.close()

    async def close(self) -> None:
        """Close the journal."""
        await self.journal.close()


class MemoryEngine(JournalEngine):
    """An engine for one node that keeps everything in memory."""

    def __init__(self, node_id: str = "memory") -> None:
        super().__init__(MemoryJournal(node_id))


class MemoryCluster:
    """What several nodes of one process share: a journal, leases and a network."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.store = MemoryJournal()
        self.leases = LeaseService(clock or SystemClock())
        self.network = MemoryNetwork()

    def engine(self, node_id: str) -> JournalEngine:
        """Return the engine of one of the nodes."""
        journal = cast("Journal", SharedJournal(self.store, node_id))
        return JournalEngine(journal, MemoryLeases(self.leases, journal), self.network.transport())
