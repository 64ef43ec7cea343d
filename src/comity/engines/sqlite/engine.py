"""The SQLite engine: one file that processes of one machine share.

A single process works without leases and messages. It listens on a socket beside the store; when a second process opens the
store and connects, the first takes the leases of its active addresses, and both share the work from then on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final

from comity.engines.sqlite.journal import SqliteJournal
from comity.engines.sqlite.leases import StoreLeases
from comity.engines.sqlite.transport import SocketTransport
from comity.errors import UnavailableError
from comity.ports import Reader

log = logging.getLogger("comity")

# How long a process that opens a store waits until the other process works under leases, and how often it checks.
SHARE_S_MAX: Final = 10.0
_LOOK_S: Final = 0.005
HELLO_S_MAX: Final = 2.0  # how long it then waits for the others to announce their agents


class SqliteEngine:
    """A store file, the leases in it, and the sockets beside it.

    Without `takes_over` (a node for one command) open calls of dead nodes are left to a long-running node.
    """

    def __init__(self, path: str | Path, node_id: str, *, takes_over: bool = True) -> None:
        self.journal = SqliteJournal(path, node_id)
        self.journal.takes_over = takes_over
        self.path: Path | None = self.journal.path
        self.leases = StoreLeases(self.journal, self.journal.members)
        self.transport = SocketTransport(self.journal.path, self.journal.members.is_alive)
        self._share: Callable[[], Awaitable[None]] | None = None
        self._sharing: asyncio.Task[None] | None = None

    @property
    def is_alone(self) -> bool:
        """Whether no other process works on the store, so that no leases are needed."""
        return self.journal.members.is_alone

    def open_reader(self) -> Reader:
        """Return a reader of the file, with its own connection."""
        from comity.engines.sqlite.reader import StoreReader  # noqa: PLC0415  few programs list anything

        return StoreReader(self.journal.path)

    async def open(self) -> None:
        """Open the store and register this process as one of its users."""
        self.journal.open()

    async def listen(self, share: Callable[[], Awaitable[None]]) -> None:
        """Accept connections of other processes: `share` is awaited once, before the first of them begins to work."""
        self._share = share
        await self.transport.open(self.journal.node_id, _unheard, met=self._met)

    async def join(self) -> None:
        """Wait until every other process works under leases. Raises `UnavailableError` if one of them does not answer.

        Then wait until each has announced its agents (at most `HELLO_S_MAX`), so that the first call finds them.
        """
        members, loop = self.journal.members, asyncio.get_running_loop()
        until = loop.time() + SHARE_S_MAX
        while unshared := members.unshared():
            self.transport.greet(unshared)
            if loop.time() > until:
                process = members.process_of(unshared[0])
                message = f"process {process} has the store {self.journal.path} open and does not answer; stop it first"
                raise UnavailableError(message, code="STORE_UNAVAILABLE")
            await asyncio.sleep(_LOOK_S)
        await self.transport.meet(HELLO_S_MAX)

    async def leave(self) -> None:
        """Stop listening."""
        if self._sharing is not None:
            self._sharing.cancel()
            await asyncio.gather(self._sharing, return_exceptions=True)
        await self.transport.close()

    async def close(self) -> None:
        """Flush the journal and close the file."""
        await self.leave()
        await self.journal.close()

    def _met(self, node_id: str) -> None:
        if self.is_alone and self._sharing is None:
            log.info("the node %s has opened the store %s; work is shared from now on", node_id, self.journal.path)
            self._sharing = asyncio.get_running_loop().create_task(self._begin_to_share(), name="comity-share")

    async def _begin_to_share(self) -> None:
        assert self._share is not None
        try:
            await self._share()
        except Exception:  # the task boundary: the other process times out with an error
            if self.journal.failure is None:
                log.exception("the store cannot be shared with another process")
                self._sharing = None
                return
        self.journal.members.share()  # even if the journal has failed: then this process writes nothing any more


@contextlib.asynccontextmanager
async def visiting(path: str | Path, node_id: str) -> AsyncIterator[SqliteJournal]:
    """Open a store briefly to change it; nodes that have it open read their cached sessions again from then on."""
    engine = SqliteEngine(path, node_id, takes_over=False)
    await engine.open()
    try:
        await engine.listen(_nothing_runs)
        await engine.join()
        yield engine.journal
    finally:
        await engine.close()


async def _nothing_runs() -> None:
    """Share nothing: a visitor runs no agents."""


def _unheard(sender: str, message: bytes) -> None:
    """Drop a message to a process that does not share its work yet: it is sent again."""
