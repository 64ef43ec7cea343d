"""Leases in a store: the holder of an address is a document of the journal; a lock file shows whether the holder is alive.

A grant is a compare-and-set of the address's fencing token: once it is written, the store refuses records of the former holder.
A holder is alive while its lock beside the store is held and its heartbeat is recent.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from comity.core.cluster.lease import Lease
from comity.core.journal.records import Document, Record, Saved
from comity.core.journal.terms import Terms, Version
from comity.errors import DocumentChangedError, UnavailableError
from comity.ports import Journal


class Members(Protocol):
    """The processes that have a store open."""

    def beat(self) -> int | None:
        """Send a heartbeat; return for how many ms it is valid, or None if it came too late."""
        ...

    def left_ms(self, node_id: str) -> int:
        """Return for how many ms a process still counts as alive; 0 if it is dead."""
        ...


class StoreLeases:
    """The leases of one process in a shared store."""

    def __init__(self, journal: Journal, members: Members) -> None:
        self._journal = journal
        self._members = members
        self._held: dict[str, int] = {}  # by address: the fencing token

    async def acquire(self, address: str) -> Lease:
        """Take the lease of an address if it is free or its holder is dead; return the lease of the current holder."""
        me = self._journal.node_id
        while True:
            token, holder = self._read(address)
            left_ms = self._members.left_ms(holder) if holder else 0
            if left_ms > 0:
                return Lease(address, holder, token, left_ms)
            if self._members.left_ms(me) <= 0:
                raise UnavailableError(f"the leases of the node {me} have run out, and it has not begun anew yet")
            try:
                await self._write(Saved(Document.FENCE, address, token + 1, me.encode()), token)
            except DocumentChangedError:
                continue  # another process was first, or the holder released it
            self._held[address] = token + 1
            return Lease(address, me, token + 1, self._members.left_ms(me))

    def find(self, address: str) -> Lease | None:
        """Return the current lease of an address, or None."""
        token, holder = self._read(address)
        left_ms = self._members.left_ms(holder) if holder else 0
        return Lease(address, holder, token, left_ms) if left_ms > 0 else None

    async def release(self, lease: Lease) -> None:
        """Release a lease, unless another process holds the address by now."""
        if self._held.get(lease.address) == lease.token:
            del self._held[lease.address]
        if self._read(lease.address) == (lease.token, lease.holder):
            try:
                await self._write(Saved(Document.FENCE, lease.address, lease.token + 1, b""), lease.token)
            except DocumentChangedError:
                return

    async def keep(self) -> int | None:
        """Renew all leases with one heartbeat; return None if it came too late and all leases were lost."""
        left_ms = self._members.beat()
        if left_ms is None:
            me = self._journal.node_id
            await asyncio.gather(*(self.release(Lease(address, me, token, 0)) for address, token in list(self._held.items())))
        return left_ms

    def _read(self, address: str) -> tuple[int, str]:
        """Return the newest fencing token of an address, and its holder."""
        stored = self._journal.load(Document.FENCE, address)
        return (0, "") if stored is None else (stored[0], stored[1].decode())

    async def _write(self, record: Record, expected: int) -> None:
        assert isinstance(record, Saved)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def then(error: Exception | None) -> None:
            if not done.done():
                done.set_result(None) if error is None else done.set_exception(error)

        terms = Terms(documents=(Version(record.kind, record.key, expected),))
        self._journal.append((record,), then, terms)
        await done
