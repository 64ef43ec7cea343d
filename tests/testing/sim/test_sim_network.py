"""The simulated network and lease service: each fault does what its name says, and only where it strikes."""

from __future__ import annotations

import asyncio

import pytest

from comity.engines.memory.journal import MemoryJournal
from comity.errors import UnavailableError
from comity.testing import Fault, Kind, World
from comity.testing.sim.network import LEASES, SimLeases


def deliveries(*faults, cut=()):
    """Send fifty numbered messages from n1 to n2 and return those that arrived, in order."""
    arrived = []

    async def scenario(world):
        lives = {name: world.life(name, 1) for name in ("n1", "n2")}
        ends = {name: world.network.transport(life) for name, life in lives.items()}
        for name, end in ends.items():
            await end.open(str(lives[name]), lambda sender, message: arrived.append((sender, int(message))))
        if cut:
            world.network.cut(cut, 1_000)
        for number in range(50):
            ends["n1"].send("n2.1", b"%d" % number)
            await asyncio.sleep(0.01)
        await asyncio.sleep(20)

    outcome = World(1, faults=faults).run(scenario)
    assert outcome.failure == ""
    assert {sender for sender, _ in arrived} <= {"n1.1"}
    return [number for _, number in arrived], outcome


def test_a_healthy_network_delivers_everything_once_and_in_order():
    assert deliveries()[0] == list(range(50))


def test_messages_are_lost():
    arrived, outcome = deliveries(Fault(kind=Kind.MESSAGE_LOST, probability=0.3))
    assert len(arrived) == 50 - len(outcome.fired) < 50
    assert arrived == sorted(arrived)


def test_damaged_messages_are_not_delivered():
    arrived, outcome = deliveries(Fault(kind=Kind.MESSAGE_CORRUPTED, probability=0.3))
    assert len(arrived) == 50 - outcome.marks["damaged message dropped"] < 50


def test_messages_are_doubled():
    arrived, outcome = deliveries(Fault(kind=Kind.MESSAGE_DUPLICATED, probability=0.3))
    assert len(arrived) == 50 + len(outcome.fired) > 50
    assert set(arrived) == set(range(50))


@pytest.mark.parametrize("kind", [Kind.MESSAGE_REORDERED, Kind.MESSAGE_DELAYED])
def test_messages_are_overtaken(kind):
    arrived, _ = deliveries(Fault(kind=kind, probability=0.3))
    assert sorted(arrived) == list(range(50)) != arrived


def test_a_link_that_is_cut_one_way_carries_nothing_that_way_and_everything_the_other():
    assert deliveries(cut=[("n1", "n2")])[0] == []
    assert deliveries(cut=[("n2", "n1")])[0] == list(range(50))


def cuts(kind, seed=1):
    found = []

    async def scenario(world):
        for name in ("n1", "n2", "n3"):
            world.nodes[name] = None
        world.network.partition(kind, world.chance, world.nodes)
        places = ("n1", "n2", "n3", LEASES)
        found.extend((one, other) for one in places for other in places if world.network.is_cut(one, other))
        world.nodes.clear()
        world.network.heal()
        assert not any(world.network.is_cut(one, other) for one in places for other in places)

    assert World(seed).run(scenario).failure == ""
    return found


def test_partitions_have_three_forms():
    for seed in range(10):
        both_ways = cuts(Kind.PARTITION, seed)
        assert both_ways
        assert {(other, one) for one, other in both_ways} == set(both_ways)
        assert len(cuts(Kind.PARTITION_ONE_WAY, seed)) == 1
        alone = cuts(Kind.PARTITION_GROUP, seed)
        assert len(alone) == 6
        assert any(all(name in link for link in alone) for name in ("n1", "n2", "n3"))


def test_a_lease_service_that_is_not_reached_is_unavailable_and_may_have_granted():
    async def scenario(world):
        leases = SimLeases(world.network, world.leases, world.life("n1", 1), MemoryJournal("n1.1"))
        world.network.cut([(LEASES, "n1")], 2)
        with pytest.raises(UnavailableError):
            await leases.acquire("A")
        assert world.leases.find("A").holder == "n1.1"
        world.network.heal()
        assert (await leases.acquire("A")).token == 1

    assert World(1).run(scenario).failure == ""
