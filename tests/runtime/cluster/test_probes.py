"""Probes: what a node tells others of its calls, whom it asks, and when a call is let wait for a place."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from comity.core.cluster.deadlock import Awaited, Fact
from comity.core.cluster.messages import Look, Seen, Taken
from comity.runtime.cluster.deadlocks import ANSWER_S, Probes


def seat(address: str, *holders: Any, is_full: bool = True) -> Any:
    return SimpleNamespace(address=address, holders=list(holders), is_full=is_full)


def call(call_id: str, at: Any, *waits_for: Any, node_id: str = "", is_queued: bool = False) -> Any:
    request = SimpleNamespace(request_id=call_id)
    return SimpleNamespace(
        request=request, seat=at, waits_for=waits_for, way=SimpleNamespace(node_id=node_id), is_queued=is_queued
    )


class World:
    """A node whose place B is held by `b`, which waits for `c` on n2; the call `a.1` of `a` is about to wait for B."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []
        self.now = 0
        sent = call("c", seat("C"), node_id="n2")
        self.place = seat("B")
        self.holder = call("b", self.place, sent)
        self.place.holders.append(self.holder)
        caller = call("a", seat("A", is_full=False))
        self.calls = {"a": caller, "b": self.holder, "c": sent}
        peers = SimpleNamespace(send=lambda node_id, message: self.told.append((node_id, message)), now_ms=lambda: self.now)
        self.probes = Probes(peers, self.calls)
        self.request = SimpleNamespace(request_id="a.1", source="A", deadline_at=1_000)
        self.is_wanted = True

    def loop(self) -> asyncio.Future[Any]:
        return asyncio.ensure_future(self.probes.loop(self.request, "a", self.place, lambda: self.is_wanted))


async def test_a_call_is_let_wait_once_every_node_has_answered_and_no_loop_is_seen():
    world = World()
    asked = world.loop()
    await asyncio.sleep(0.01)
    assert world.told == [("n2", Look(1, ("c",)))]
    world.probes.received("n2", Seen(9, ()))
    world.probes.received("n3", Seen(1, ()))
    world.probes.received("n2", Taken("c"))
    await asyncio.sleep(0.01)
    assert not asked.done()
    world.probes.received("n2", Seen(1, (Fact("c", "C", False, False),)))
    assert await asked == ()
    assert world.probes._answers == {}
    world.probes.received("n2", Seen(1, ()))  # late, and to no question


async def test_a_loop_over_other_nodes_is_followed_from_one_to_the_next_and_closed_here():
    world = World()
    asked = world.loop()
    await asyncio.sleep(0.01)
    world.probes.received("n2", Seen(1, (Fact("c", "C", False, True, (), (Awaited("d", "n3"),)),)))
    await asyncio.sleep(0.01)
    assert world.told[1:] == [("n3", Look(2, ("d",)))]
    world.probes.received("n3", Seen(2, (Fact("d", "A", True, True, ("a",)),)))
    assert "A" in await asked


async def test_a_node_that_does_not_answer_is_asked_again_until_the_place_is_free():
    world = World()
    asked = world.loop()
    await asyncio.sleep(ANSWER_S * 2.5)
    assert [(node_id, message.call_ids) for node_id, message in world.told] == [("n2", ("c",))] * 3
    assert not asked.done()
    world.place.is_full = False
    assert await asyncio.wait_for(asked, ANSWER_S) == ()


@pytest.mark.parametrize("end", ["free", "unwanted", "late"])
async def test_nobody_is_asked_for_a_place_that_is_free_or_a_call_that_is_over(end):
    world = World()
    world.place.is_full, world.is_wanted, world.now = end != "free", end != "unwanted", 1_000 if end == "late" else 999
    assert await world.loop() == ()
    assert world.told == []


async def test_a_node_tells_of_calls_that_run_wait_or_are_about_to_and_of_all_that_they_depend_on():
    world = World()
    waiting = world.loop()
    await asyncio.sleep(0)
    world.calls["q"] = call("q", world.place, is_queued=True)
    world.told.clear()
    world.probes.received("n2", Look(7, ("a", "q", "c", "gone")))
    ((receiver, seen),) = world.told
    assert (receiver, seen.probe_id) == ("n2", 7)
    assert {fact.call_id: fact for fact in seen.facts} == {
        "a": Fact("a", "A", False, False, (), (Awaited("a.1"),)),
        "a.1": Fact("a.1", "B", True, True, ("b",)),
        "q": Fact("q", "B", True, True, ("b",)),
        "b": Fact("b", "B", False, True, (), (Awaited("c", "n2"),)),
    }
    world.probes.done(world.request)
    world.told.clear()
    world.probes.received("n2", Look(8, ("a", "a.1")))
    assert world.told == [("n2", Seen(8, (Fact("a", "A", False, False),)))]
    waiting.cancel()
