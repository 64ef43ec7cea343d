"""The simulator's journal, handoff queue, leases and network keep the contracts of those they stand for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from simulated_journal import Named, Unwatched

from comity.core.cluster.lease import LEASE_MS
from comity.engines.memory.cluster import SharedJournal
from comity.engines.memory.journal import MemoryJournal
from comity.ports import Journal, Leases, Transport
from comity.testing import World
from comity.testing.contracts.cluster import LeasesContract, TransportContract
from comity.testing.contracts.handoffs import HandoffContract
from comity.testing.contracts.journal import JournalContract
from comity.testing.sim.network import SimLeases


class Simulated:
    def make(self, folder: Path) -> Journal:
        return Unwatched(World(1))

    @pytest.fixture
    def journal(self, tmp_path: Path) -> Iterator[Journal]:
        journal = self.make(tmp_path)
        yield journal
        journal.bury()


class TestSimJournal(Simulated, JournalContract):
    pass


class TestSimHandoffs(Simulated, HandoffContract):
    pass


def play(case: Callable[[World], Awaitable[None]]) -> None:
    outcome = World(1).run(case)
    if outcome.error is not None:
        raise outcome.error


class TestSimLeases(LeasesContract):
    def check(self, case: Callable[[Leases, Leases], Awaitable[None]]) -> None:
        store = MemoryJournal()
        ends = ("n1", "n2")
        play(
            lambda world: case(
                *(SimLeases(world.network, world.leases, world.life(one, 1), SharedJournal(store, one)) for one in ends)
            )
        )

    async def wait_out(self) -> None:
        await asyncio.sleep(LEASE_MS / 1000)


class TestSimTransport(TransportContract):
    def check(self, case: Callable[[Transport, Transport], Awaitable[None]]) -> None:
        play(lambda world: case(world.network.transport(Named("n1", 1)), world.network.transport(Named("n2", 1))))

    async def settle(self) -> None:
        await asyncio.sleep(1)
