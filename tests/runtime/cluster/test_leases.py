"""Holds: an address is this node's for as long as its lease runs by this node's clock, and under no token that was lost."""

from __future__ import annotations

import asyncio

import pytest

from comity.core.cluster.lease import LEASE_MS, RENEW_MS, Lease
from comity.core.journal.terms import Fence
from comity.engines.memory.cluster import LeaseService, MemoryLeases
from comity.engines.memory.journal import MemoryJournal
from comity.runtime.cluster.leases import Holds
from comity.testing import VirtualClock


class World:
    """Two nodes that share a lease service; `lost` names what each of them lost."""

    def __init__(self) -> None:
        clock = VirtualClock()
        self.leases = LeaseService(clock)
        self.lost: list[tuple[str, str]] = []
        self.one, self.other = (self._holds(node_id, clock) for node_id in ("n1", "n2"))

    def _holds(self, node_id: str, clock: VirtualClock) -> Holds:
        journal = MemoryJournal(node_id)
        return Holds(MemoryLeases(self.leases, journal), journal, clock, lambda address: self.lost.append((node_id, address)))

    async def open(self) -> World:
        await self.one.open()
        await self.other.open()
        return self


async def test_a_hold_ends_in_the_millisecond_its_lease_does_and_is_lost_once():
    world = await World().open()
    assert await world.one.locate("A", is_hosted=True) == Fence("A", 1)
    await asyncio.sleep((LEASE_MS - 1) / 1000)
    assert world.one.fence("A") == Fence("A", 1)
    await asyncio.sleep(0.001)
    assert [world.one.fence("A"), world.one.fence("A")] == [None, None]
    assert world.lost == [("n1", "A")]


async def test_one_beat_keeps_everything_that_is_held():
    world = await World().open()
    beats = 0
    keep = world.leases.keep

    def counted(node_id):
        nonlocal beats
        beats += 1
        return keep(node_id)

    world.leases.keep = counted
    for number in range(100):
        await world.one.locate(f"A/{number}", is_hosted=True)
    keeping = asyncio.ensure_future(world.one.keep())
    await asyncio.sleep((3 * LEASE_MS + RENEW_MS / 2) / 1000)
    assert {world.one.fence(f"A/{number}").token for number in range(100)} == {1}
    assert beats == 3 * LEASE_MS // RENEW_MS
    keeping.cancel()


async def test_a_node_that_was_given_up_loses_everything_with_its_next_beat_and_begins_anew():
    world = await World().open()
    await world.one.locate("A", is_hosted=True)
    await world.one.locate("B", is_hosted=True)
    keeping = asyncio.ensure_future(world.one.keep())
    world.leases.bury("n1")
    assert await world.other.locate("A", is_hosted=True) == Fence("A", 2)
    await asyncio.sleep(RENEW_MS * 1.5 / 1000)
    assert world.lost == [("n1", "A"), ("n1", "B")]
    assert await world.one.locate("A", is_hosted=True) == "n2"
    assert await world.one.locate("B", is_hosted=True) == Fence("B", 2)
    keeping.cancel()


class SlowLeases(MemoryLeases):
    """A lease service whose answers take a second."""

    async def keep(self) -> int | None:
        await asyncio.sleep(1)
        return await super().keep()


async def test_a_node_that_begins_anew_holds_from_when_it_asked_and_not_from_the_answer():
    clock, journal = VirtualClock(), MemoryJournal("n1")
    service = LeaseService(clock)
    one = Holds(SlowLeases(service, journal), journal, clock, lambda _: None)
    await one.open()
    service.bury("n1")
    await one.open()  # given up: it asks a second time, which is what counts
    assert await one.locate("A", is_hosted=True) == Fence("A", 1)
    await asyncio.sleep((LEASE_MS - 1_001) / 1000)
    assert one.fence("A") == Fence("A", 1)
    await asyncio.sleep(0.001)
    assert one.fence("A") is None


async def test_what_a_node_held_that_seems_to_have_died_is_asked_for_again():
    world = await World().open()
    await world.one.locate("A", is_hosted=True)
    assert await world.other.locate("A", is_hosted=True) == "n1"
    world.leases.bury("n1")
    world.other.gone("n3")
    assert await world.other.locate("A", is_hosted=True) == "n1", "as far as it knows"
    world.other.gone("n1")
    assert await world.other.locate("A", is_hosted=True) == Fence("A", 2)


async def test_only_the_token_that_is_held_or_a_newer_one_can_be_lost_and_only_where_it_is_held():
    world = await World().open()
    world.one.lost("A", 9)
    world.one.doubt("A", "n2")
    world.one.spoil("A")
    assert await world.one.locate("A", is_hosted=True) == Fence("A", 1)
    assert await world.other.locate("A", is_hosted=True) == "n1"
    world.one.lost("A", 0)
    world.other.lost("A", 9)
    assert (world.one.fence("A"), world.lost) == (Fence("A", 1), [])
    world.one.lost("A", 1)
    world.one.lost("A", 1)
    assert (world.one.fence("A"), world.lost) == (None, [("n1", "A")])
    assert await world.one.locate("A", is_hosted=True) == Fence("A", 2), "never again under a token that was lost"


async def test_the_lease_service_is_asked_again_only_where_the_node_that_has_an_address_is_in_doubt():
    world = await World().open()
    await world.one.locate("A", is_hosted=True)
    assert await world.other.locate("A", is_hosted=True) == "n1"
    world.one.release("A")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (world.one.fence("A"), world.leases.find("A")) == (None, None)
    assert await world.other.locate("A", is_hosted=True) == "n1", "as far as it knows"
    world.other.doubt("A", "n3")
    assert await world.other.locate("A", is_hosted=True) == "n1"
    world.other.doubt("A", "n1")
    assert await world.other.locate("A", is_hosted=False) is None, "an agent that is not hosted here is not taken"
    assert await world.other.locate("A", is_hosted=True) == Fence("A", 2)


async def test_closing_gives_everything_back():
    world = await World().open()
    await world.one.locate("A", is_hosted=True)
    await world.one.locate("B", is_hosted=True)
    world.one.spoil("B")
    await world.one.close()
    assert [world.leases.find(address) for address in "AB"] == [None, None]
    assert world.one.fence("A") is None, "it may write nothing under a token that it gave back"


async def test_a_node_that_closes_frees_no_address_that_it_lost_to_another_node():
    world = await World().open()
    await world.one.locate("A", is_hosted=True)
    world.one.lost("A", 1)
    world.leases.expire("A")
    assert await world.other.locate("A", is_hosted=True) == Fence("A", 2)
    assert await world.one.locate("A", is_hosted=True) == "n2"
    await world.one.close()
    assert world.leases.find("A").holder == "n2"


class StuckLeases(MemoryLeases):
    """A lease service that does not answer who holds an address."""

    async def acquire(self, address: str) -> Lease:
        await asyncio.Event().wait()
        raise AssertionError


async def test_closing_waits_for_no_answer_of_the_lease_service():
    clock, journal = VirtualClock(), MemoryJournal("n1")
    one = Holds(StuckLeases(LeaseService(clock), journal), journal, clock, lambda _: None)
    await one.open()
    asked = asyncio.ensure_future(one.locate("A", is_hosted=True))
    await asyncio.sleep(0.01)
    async with asyncio.timeout(1):
        await one.close()
    with pytest.raises(asyncio.CancelledError):
        await asked


async def test_an_address_held_elsewhere_is_asked_for_again_in_the_millisecond_its_lease_ends():
    world = await World().open()
    await world.one.locate("A", is_hosted=True)
    assert await world.other.locate("A", is_hosted=True) == "n1"
    await asyncio.sleep((LEASE_MS - 1) / 1000)
    assert world.other.known("A") == "n1"
    await asyncio.sleep(0.001)
    assert (world.other.known("A"), world.other.elsewhere("A")) == (None, "n1")


async def test_a_beat_forgets_addresses_but_not_those_held_nor_elsewhere_nor_with_a_token_that_was_lost():
    world = await World().open()
    for address in ("held", "released", "lost"):
        await world.one.locate(address, is_hosted=True)
    for address in ("elsewhere", "doubted"):
        await world.other.locate(address, is_hosted=True)
        await world.one.locate(address, is_hosted=True)
    world.one.release("released")
    world.one.lost("lost", 1)
    world.one.doubt("doubted", "n2")
    keeping = asyncio.ensure_future(world.one.keep())
    await asyncio.sleep(RENEW_MS * 1.5 / 1000)
    keeping.cancel()
    assert sorted(world.one._holds) == ["elsewhere", "held", "lost"]
    assert await world.one.locate("lost", is_hosted=True) == Fence("lost", 2), "never again under a token that was lost"


async def test_an_answer_that_comes_after_the_lease_was_over_by_the_nodes_clock_keeps_nothing():
    clock, journal, lost = VirtualClock(), MemoryJournal("n1"), []
    one = Holds(SlowLeases(LeaseService(clock), journal), journal, clock, lost.append)
    await one.open()  # which took a second: the lease runs a second longer by the clock of the service
    await one.locate("A", is_hosted=True)
    await asyncio.sleep((LEASE_MS - 1_500) / 1000)
    await one.open()
    assert lost == ["A"]


async def test_a_lost_token_is_not_taken_again_after_an_older_lease_was_read():
    world = await World().open()
    assert await world.one.locate("A", is_hosted=True) == Fence("A", 1)
    world.one.spoil("A")
    find = world.leases.find
    world.leases.find = lambda address: Lease(address, "n2", 0, LEASE_MS)  # as a copy that lags behind would answer
    assert await world.one.locate("A", is_hosted=False) == "n2"
    world.leases.find = find
    world.one.doubt("A", "n2")
    assert await world.one.locate("A", is_hosted=True) == Fence("A", 2)
