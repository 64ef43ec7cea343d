"""Holds: an address is this node's for as long as its lease runs by this node's clock, and under no token that was lost."""

from __future__ import annotations

import asyncio

from comity.core.cluster.lease import LEASE_MS, RENEW_MS
from comity.core.journal.terms import Fence
from comity.engines.memory.cluster import MemoryLeases
from comity.engines.memory.journal import MemoryJournal
from comity.runtime.cluster.leases import Holds
from comity.testing import VirtualClock


class World:
    """Two nodes that share a lease service; `lost` names what each of them lost."""

    def __init__(self) -> None:
        clock = VirtualClock()
        self.leases = MemoryLeases(clock)
        self.lost: list[tuple[str, str]] = []
        self.one, self.other = (
            Holds(
                self.leases,
                MemoryJournal(node_id),
                clock,
                lambda address, node_id=node_id: self.lost.append((node_id, address)),
            )
            for node_id in ("n1", "n2")
        )


async def test_a_hold_ends_in_the_millisecond_its_lease_does_and_is_lost_once():
    world = World()
    assert await world.one.locate("A", is_hosted=True) == Fence("A", 1)
    await asyncio.sleep((LEASE_MS - 1) / 1000)
    assert world.one.fence("A") == Fence("A", 1)
    await asyncio.sleep(0.001)
    assert [world.one.fence("A"), world.one.fence("A")] == [None, None]
    assert world.lost == [("n1", "A")]


async def test_what_is_held_stays_held_while_it_is_renewed():
    world = World()
    await world.one.locate("A", is_hosted=True)
    keeping = asyncio.ensure_future(world.one.keep())
    await asyncio.sleep((3 * LEASE_MS + RENEW_MS) / 1000)
    assert world.one.fence("A") == Fence("A", 1)
    keeping.cancel()


async def test_only_the_token_that_is_held_or_a_newer_one_can_be_lost_and_only_where_it_is_held():
    world = World()
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
    world = World()
    await world.one.locate("A", is_hosted=True)
    assert await world.other.locate("A", is_hosted=True) == "n1"
    world.one.release("A")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (world.one.fence("A"), await world.leases.find("A")) == (None, None)
    assert await world.other.locate("A", is_hosted=True) == "n1", "as far as it knows"
    world.other.doubt("A", "n3")
    assert await world.other.locate("A", is_hosted=True) == "n1"
    world.other.doubt("A", "n1")
    assert await world.other.locate("A", is_hosted=False) is None, "an agent that is not hosted here is not taken"
    assert await world.other.locate("A", is_hosted=True) == Fence("A", 2)


async def test_closing_gives_everything_back():
    world = World()
    await world.one.locate("A", is_hosted=True)
    await world.one.locate("B", is_hosted=True)
    world.one.spoil("B")
    await world.one.close()
    assert [await world.leases.find(address) for address in "AB"] == [None, None]
