"""A store that cannot be read for a while, or written any more, leaves nobody waiting for ever. Told in simulated time."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from comity import AsyncHandoffManager, AsyncHandoffReceiver
from comity.core.handoff.machine import State
from comity.errors import RefusedError, UnavailableError
from comity.runtime.handoff.receiver import Receiver
from comity.testing import Fault, Kind, World


def play(scenario, **fault):
    faults = [Fault(probability=1.0, **fault)] if fault else []
    assert World(1, faults=faults).run(scenario).failure == ""


async def handed_off(node, handoff_id="h", **more):
    manager = AsyncHandoffManager(node=node.node, user_id="u")
    await node.within(manager.create_handoff("o11y", "look", handoff_id=handoff_id, **more))
    return manager


def test_who_waits_learns_of_a_deadline_that_passed_while_the_store_could_not_be_read():
    async def scenario(world):
        node = await world.node([])
        manager = await handed_off(node, timeout_ms=5_000)
        assert (await node.within(manager.await_result("h"))).state is State.TIMEOUT
        assert 5.3 < world.loop.time() < 6.6

    play(scenario, kind=Kind.STORE_READ_FAILED, from_ms=4_900, until_ms=5_300)


def test_who_works_in_vain_is_stopped_although_the_store_could_not_be_read_when_the_work_was_withdrawn():
    async def scenario(world):
        boss, worker = await world.node([]), await world.node([])
        manager = await handed_off(boss)
        receiver = AsyncHandoffReceiver("o11y", ["look"], node=worker.node, lease_ms=60_000)
        stopped_at = []

        async def work(_):
            try:
                await asyncio.sleep(1_000)
            finally:
                stopped_at.append(world.loop.time())

        serving = asyncio.ensure_future(worker.within(receiver.serve(work)))
        await asyncio.sleep(1)
        await boss.within(manager.cancel("h"))
        await asyncio.sleep(3)
        assert len(stopped_at) == 1
        assert 1.5 < stopped_at[0] < 3  # long before its lease would have been renewed
        serving.cancel()
        await asyncio.sleep(1)

    play(scenario, kind=Kind.STORE_READ_FAILED, where="n2", from_ms=900, until_ms=1_500)


def test_who_waits_on_a_node_whose_store_has_failed_is_told_so():
    async def scenario(world):
        node = await world.node([])
        manager = await handed_off(node)
        waiting = asyncio.ensure_future(node.within(manager.await_result("h")))
        await asyncio.sleep(1)
        with pytest.raises(UnavailableError):
            await handed_off(node, "i")
        with pytest.raises(UnavailableError):
            await asyncio.wait_for(waiting, 1)
        with pytest.raises(UnavailableError):  # nor does anybody begin to wait there
            await node.within(manager.await_result("h"))

    play(scenario, kind=Kind.STORE_WRITE_FAILED, from_ms=900, until_ms=10_000, count=1)


def test_a_receiver_whose_store_has_failed_loses_what_it_has_and_can_be_closed():
    async def scenario(world):
        node = await world.node([])
        for handoff_id in ("h", "i"):
            await handed_off(node, handoff_id)
        receiver = AsyncHandoffReceiver("o11y", ["look"], node=node.node, lease_ms=3_000)
        await node.within(receiver.take(2))
        await asyncio.sleep(0.5)
        node.break_store()
        with pytest.raises(UnavailableError):  # it has that one still
            await node.within(receiver.complete("i"))
        await asyncio.sleep(2)  # when its lease was to be renewed
        with pytest.raises(Exception, match="does not have h"):
            await node.within(receiver.complete("h"))
        await node.within(receiver.close())

    play(scenario)


@pytest.mark.parametrize("is_lost", [False, True])
async def test_a_result_that_cannot_be_stored_is_a_lost_one_where_its_lease_was_lost_before(is_lost):
    async def change(handoff_id: str, change: None) -> None:
        raise UnavailableError("the disk is full")

    mine = object()
    receiver = SimpleNamespace(
        _held={},
        _gone={"h": mine} if is_lost else {},
        _mine=lambda _: mine,
        _not_mine=lambda _: RefusedError("it is another's", code="HANDOFF_LEASE_LOST"),
    )
    desk = SimpleNamespace(leases=SimpleNamespace(let_go=lambda _: None), change=change)
    with pytest.raises(RefusedError if is_lost else UnavailableError):
        await Receiver._end(receiver, desk, "h", None)
    assert receiver._gone == {}
