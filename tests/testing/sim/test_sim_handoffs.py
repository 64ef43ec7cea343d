"""The simulated handoff queue: it is shared by processes, survives them, and rings as the embedded one does; nothing in it is lost."""

from __future__ import annotations

import asyncio

import pytest
from checkers import load_checker
from workloads.receivers import MARKS
from workloads.scenarios import SCENARIOS

from comity import Agent, AsyncHandoffManager, AsyncHandoffReceiver, Context
from comity.core.handoff.machine import State
from comity.errors import ComityError
from comity.runtime.handoff.desk import LOOK_AGAIN_S
from comity.testing import Fault, World
from comity.testing.sim.faults import Kind
from comity.testing.sim.nodes import CrashedError
from comity.testing.sim.report import MACHINES

PLAY = SCENARIOS["handoffs"]
SEEDS = range(5)  # `regressions.txt` has more, and `make sim` a thousand


@pytest.fixture(scope="module")
def storm():
    return [PLAY.run(seed) for seed in SEEDS]


def test_nothing_that_was_handed_off_is_lost_under_every_fault(storm):
    assert [(one.seed, one.failure) for one in storm if not one.ok] == []
    assert sum(one.calls for one in storm) > 30 * len(SEEDS)


def test_things_did_go_wrong_and_every_mark_is_reached(storm):
    fired = {firing.kind for one in storm for firing in one.fired}
    assert fired >= {Kind.NODE_CRASH, Kind.NODE_PAUSE, Kind.NODE_CRASH_IN_WRITE, Kind.STORE_WRITE_FAILED, Kind.CLOCK_JUMP}
    assert {mark for one in storm for mark in one.marks} >= set(MARKS)


def test_nearly_every_way_a_handoff_can_go_is_gone(storm):
    """A longer run, which `--complete` asks for, goes all of them."""
    every = {("handoff", str(state), str(event)) for state, events in MACHINES["handoff"].items() for event in events}
    assert len(every & {step for one in storm for step in one.transitions}) >= len(every) - 3


def test_what_the_nodes_wrote_is_a_behaviour_of_the_specification_and_takes_every_action(storm):
    checker = load_checker("handoff_check")
    taken = set()
    for one in storm:
        trace = checker.of_run(one.handed)
        actions, breach = checker.follow(trace, is_complete=True)
        assert breach is None, (one.seed, breach, trace[breach.position])
        taken |= set(actions)
    assert taken == {*checker.ACTIONS, "Acknowledge"}


# --- the twin ---


def play(scenario):
    outcome = World(1).run(scenario)
    assert outcome.failure == ""
    return outcome


async def pair(world, **more):
    """Return two nodes, a manager on the first and a receiver on the second."""
    boss, worker = await world.node([]), await world.node([])
    manager = AsyncHandoffManager(node=boss.node, user_id="u")
    return boss, worker, manager, AsyncHandoffReceiver("o11y", ["look"], node=worker.node, **more)


async def handed_to_one_who_waits(boss, worker, manager, receiver):
    """Hand off a second after the receiver began to wait for work, and return what it took."""
    taking = asyncio.ensure_future(worker.within(receiver.take()))
    await asyncio.sleep(1)
    await boss.within(manager.create_handoff("o11y", "look", handoff_id="h"))
    (taken,) = await taking
    return taken


def test_one_process_hears_what_another_handed_off_and_the_other_its_result():
    async def scenario(world):
        boss, worker, manager, receiver = await pair(world)
        taken = await handed_to_one_who_waits(boss, worker, manager, receiver)
        waiting = asyncio.ensure_future(boss.within(manager.await_result("h")))
        await worker.within(receiver.complete(taken.id, 7))
        assert (await waiting).result == 7
        assert world.loop.time() < 1.1  # nobody waited to look again

    play(scenario)


def test_what_a_process_had_that_died_is_given_to_the_next_as_soon_as_somebody_rings_at_its_door():
    async def scenario(world):
        boss, worker, manager, receiver = await pair(world, lease_ms=60_000)
        await boss.within(manager.create_handoff("o11y", "look", handoff_id="h", timeout_ms=60_000))
        await worker.within(receiver.take())
        world.crash(worker.life)
        again = AsyncHandoffReceiver("o11y", ["look"], node=boss.node)
        taking = asyncio.ensure_future(boss.within(again.take()))
        await asyncio.sleep(0)
        await boss.within(manager.create_handoff("o11y", "look", handoff_id="i", timeout_ms=60_000))
        taken = [*(await taking), *(await boss.within(again.take()))]
        assert {one.id: one.fence for one in taken} == {"h": 2, "i": 1}
        assert world.loop.time() < 1  # long before its lease ended

    assert play(scenario).marks["handoff re-delivered"] == 1


def test_a_process_that_stood_still_is_refused_what_it_lost():
    async def scenario(world):
        boss, worker, manager, receiver = await pair(world, lease_ms=1_000)
        await boss.within(manager.create_handoff("o11y", "look", handoff_id="h"))
        (taken,) = await worker.within(receiver.take())
        world.pause(worker, 5)
        ending = asyncio.ensure_future(worker.within(receiver.complete(taken.id, "zombie")))
        again = AsyncHandoffReceiver("o11y", ["look"], node=boss.node)
        (second,) = await boss.within(again.take())
        assert (second.fence, second.attempts) == (2, 2)
        with pytest.raises(ComityError) as refused:
            await ending
        assert refused.value.code == "HANDOFF_LEASE_LOST"
        await boss.within(again.complete("h", "second"))
        assert (await boss.within(manager.await_result("h"))).result == "second"

    assert play(scenario).marks["former receiver refused"] >= 1


def test_what_nobody_waits_for_ends_by_its_deadline_when_somebody_asks():
    async def scenario(world):
        boss, _, manager, _ = await pair(world)
        await boss.within(manager.create_handoff("o11y", "look", handoff_id="h", timeout_ms=60_000))

    worlds = []

    async def kept(world):
        worlds.append(world)
        await scenario(world)

    play(kept)
    assert worlds[0].disk.handoffs.get("h").state is State.TIMEOUT


def test_who_does_not_hear_a_ring_looks_by_himself_after_a_while():
    waited = []

    async def scenario(world):
        boss, worker, manager, receiver = await pair(world)
        taken = await handed_to_one_who_waits(boss, worker, manager, receiver)
        waited.append(world.loop.time() - 1)
        await worker.within(receiver.complete(taken.id))

    for seed in range(10):
        assert World(seed, faults=Fault.each(Kind.RING_LOST, probability=1.0)).run(scenario).failure == ""
    assert max(waited) > LOOK_AGAIN_S - 2
    assert max(waited) < LOOK_AGAIN_S + 1
    assert min(waited) < 1  # some hear that something happened, and look


def boss():
    agent = Agent("boss")

    @agent.capability("GO", timeout_ms=100_000)
    async def go(ctx: Context):
        return (await ctx.hand_off("o11y", "look", timeout_ms=10_000)).unwrap()

    return agent


async def asked(world):
    """Return a node whose agent waits for a handoff, another that has taken it, and who waits for the agent."""
    caller, worker = await world.node([boss()]), await world.node([])
    receiver = AsyncHandoffReceiver("o11y", ["look"], node=worker.node)
    calling = asyncio.ensure_future(caller.within(caller.node.call("boss", "GO", user_id="u", request_id="r")))
    await asyncio.sleep(1)  # it is there, and nobody need be told
    (taken,) = await worker.within(receiver.take())
    return caller, worker, receiver, taken, calling


def test_a_tree_that_is_run_again_hears_at_once_of_the_end_of_its_handoff():
    async def scenario(world):
        caller, worker, receiver, taken, calling = await asked(world)
        world.crash(caller.life)
        with pytest.raises(CrashedError):
            await calling
        await caller.until_up()
        again = asyncio.ensure_future(caller.within(caller.node.call("boss", "GO", user_id="u", request_id="r")))
        await asyncio.sleep(1)
        ended_at = world.loop.time()
        await worker.within(receiver.complete(taken.id, 7))
        assert (await again).unwrap() == 7
        assert world.loop.time() < ended_at + 0.1

    play(scenario)


def test_a_result_that_was_stored_in_time_is_delivered_at_the_deadline_though_nobody_was_told():
    told_at = []

    async def scenario(world):
        _, worker, receiver, taken, calling = await asked(world)
        await worker.within(receiver.complete(taken.id, 7))
        assert (await calling).unwrap() == 7
        told_at.append(world.loop.time())

    for seed in range(6):
        assert World(seed, faults=Fault.each(Kind.RING_LOST, probability=1.0)).run(scenario).failure == ""
    assert 10 <= max(told_at) < 10.1  # the deadline; others heard that something happened


def test_what_two_processes_hand_off_under_one_id_at_once_both_hear_the_end_of():
    async def scenario(world):
        boss, worker, manager, receiver = await pair(world)
        another = AsyncHandoffManager(node=worker.node, user_id="u")
        both = [(boss, manager), (worker, another)]
        await asyncio.gather(*(one.within(its.create_handoff("o11y", "look", handoff_id="h")) for one, its in both))
        waiting = [asyncio.ensure_future(one.within(its.await_result("h"))) for one, its in both]
        (taken,) = await worker.within(receiver.take())
        await worker.within(receiver.complete(taken.id, 7))
        assert [one.result for one in await asyncio.gather(*waiting)] == [7, 7]
        assert world.loop.time() < 1

    play(scenario)


def test_several_who_begin_to_wait_together_for_what_another_process_made_all_hear_of_its_end():
    waited = []

    async def scenario(world):
        boss, _, manager, _ = await pair(world)
        other = await world.node([])
        await boss.within(manager.create_handoff("o11y", "look", handoff_id="h"))
        await other.within(AsyncHandoffManager(node=other.node, user_id="u").get_handoff_status("h"))
        ending = asyncio.ensure_future(boss.within(manager.cancel("h")))
        several = [AsyncHandoffManager(node=other.node, user_id="u") for _ in range(3)]
        ended = await asyncio.gather(*(other.within(one.await_result("h")) for one in several))
        assert {one.state for one in ended} == {State.CANCELLED}
        waited.append(world.loop.time())
        await ending

    for seed in range(10):
        assert World(seed).run(scenario).failure == ""
    assert max(waited) < 1


def test_what_was_handed_off_in_a_session_that_somebody_wants_forgotten_is_not_missed():
    async def scenario(world):
        node = await world.node([])
        for session_id in ("s", "t"):
            manager = AsyncHandoffManager(node=node.node, user_id="u", session_id=session_id)
            await node.within(manager.create_handoff("o11y", "look", handoff_id=f"h-{session_id}"))
        assert await node.within(node.node.erase_session("s")) > 0
        await node.within(manager.cancel("h-t"))
        assert world.disk.handoffs.get("h-s") is None

    play(scenario)
