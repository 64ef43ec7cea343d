"""Leases in a store: which process holds which address is a document of the journal, whether that process lives its lock says.

A grant is a compare-and-set of the address's fence, so it is the claim as well: from the moment it is written the store refuses
what a former holder writes. A holder is alive while the lock beside the store is held and its beat is not too old.
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
        """Say that this process lives; return how long that counts, in milliseconds, or None if it came too late."""
        ...

    def left_ms(self, node_id: str) -> int:
        """Return how long a process still counts as alive; 0 if it is gone."""
        ...


class StoreLeases:
    """One process's leases in a store that it shares with others."""

    def __init__(self, journal: Journal, members: Members) -> None:
        self._journal = journal
        self._members = members
        self._held: dict[str, int] = {}  # by address: the token it was granted under

    async def acquire(self, address: str) -> Lease:
        """Return the lease: this process's if the address was free, its holder is gone, or it was this process's already."""
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
                continue  # another process was first, or the holder gave it back
            self._held[address] = token + 1
            return Lease(address, me, token + 1, self._members.left_ms(me))

    def find(self, address: str) -> Lease | None:
        """Return who holds an address, as the store and the locks say now."""
        token, holder = self._read(address)
        left_ms = self._members.left_ms(holder) if holder else 0
        return Lease(address, holder, token, left_ms) if left_ms > 0 else None

    async def release(self, lease: Lease) -> None:
        """Free an address, unless it is another process's by now."""
        if self._held.get(lease.address) == lease.token:
            del self._held[lease.address]
        if self._read(lease.address) == (lease.token, lease.holder):
            try:
                await self._write(Saved(Document.FENCE, lease.address, lease.token + 1, b""), lease.token)
            except DocumentChangedError:
                return

    async def keep(self) -> int | None:
        """Beat once for everything this process holds; None if that came too late, and everything was given up."""
        left_ms = self._members.beat()
        if left_ms is None:
            me = self._journal.node_id
            await asyncio.gather(*(self.release(Lease(address, me, token, 0)) for address, token in list(self._held.items())))
        return left_ms

    def _read(self, address: str) -> tuple[int, str]:
        """Return the newest token of an address, and which process has it."""
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
