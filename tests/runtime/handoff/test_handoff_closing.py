"""Nobody waits for a handoff longer than there is something to wait for: the node, its store, the deadline."""

from __future__ import annotations

import asyncio

import pytest
from handoff_pair import code_of, pair

from comity import Agent, AsyncHandoffManager, AsyncHandoffReceiver, Node
from comity.errors import UnavailableError
from comity.testing import Fault, Kind, World

PATIENCE_S = 20


async def waiters(manager, receiver):
    """Everything that can wait, each in a task of its own that has begun."""
    made = await manager.create_handoff("nobody", "look")
    held = await manager.create_handoff("o11y", "investigate")
    await receiver.take()
    following = manager.events(made, after=1)

    async def work(_):
        raise AssertionError("there is none")

    waiting = [
        asyncio.ensure_future(one)
        for one in (
            manager.await_result(made),
            manager.await_result(made, timeout_ms=60_000),
            anext(following),
            receiver.take(),
            receiver.serve(work),
            anext(receiver.watch_handoffs()),
            anext(receiver.peek_handoffs()),
            receiver.request_input(held, "why"),
        )
    ]
    await until(lambda: len(manager._ears) + len(receiver._ears) == len(waiting))
    return waiting


async def until(condition):
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0)


async def codes(waiting):
    async with asyncio.timeout(PATIENCE_S):
        return {await code_of(one) for one in waiting}


async def test_a_node_that_closes_releases_everybody_who_waits_on_it(make_node):
    async with make_node() as node:
        waiting = await waiters(*pair(node))
    assert await codes(waiting) == {"NODE_CLOSED"}


async def test_a_manager_or_receiver_that_is_closed_releases_those_who_wait_with_it_and_nobody_else(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        waiting = await waiters(manager, receiver)
        other, _ = pair(node)
        made = await other.create_handoff("nobody", "look")
        unconcerned = asyncio.ensure_future(other.await_result(made))
        await asyncio.sleep(0)
        await receiver.close()
        await manager.close()
        assert await codes(waiting) <= {"NODE_CLOSED", "HANDOFF_LEASE_LOST"}  # what it held was given back
        await other.cancel(made)
        assert (await unconcerned).state == "cancelled"


def test_who_waits_learns_that_the_store_failed_whoever_wrote_to_it(tmp_path):
    agent = Agent("A")
    store = tmp_path / "work.db"

    @agent.capability("DO")
    async def do() -> int:
        return 1

    async def scenario():
        async with Node([agent], store=store, lag_ms=None) as node:
            waiting = await waiters(*pair(node))
            store.rename(tmp_path / "elsewhere.db")
            assert (await node.call("A", "DO", user_id="u")).error.code == "STORE_UNAVAILABLE"
            assert await codes(waiting) <= {"STORE_UNAVAILABLE", "HANDOFF_LEASE_LOST"}

    asyncio.run(scenario())


def test_nobody_waits_for_ever_for_a_deadline_in_a_store_that_cannot_be_read():
    async def scenario(world):
        node = await world.node([])
        manager = AsyncHandoffManager(node=node.node, user_id="u")
        receiver = AsyncHandoffReceiver("other", node=node.node)
        await node.within(manager.create_handoff("o11y", "look", handoff_id="h", timeout_ms=5_000))
        taking = asyncio.ensure_future(node.within(receiver.take()))
        with pytest.raises(UnavailableError):
            await node.within(manager.await_result("h"))
        assert 15 < world.loop.time() < 18
        with pytest.raises(UnavailableError):
            await asyncio.wait_for(taking, 1)

    assert World(1, faults=[Fault(kind=Kind.STORE_READ_FAILED, probability=1.0, from_ms=4_000)]).run(scenario).failure == ""


def test_who_waits_for_work_is_not_put_off_by_a_store_that_cannot_be_read_for_a_moment():
    async def scenario(world):
        node = await world.node([])
        manager = AsyncHandoffManager(node=node.node, user_id="u")
        receiver = AsyncHandoffReceiver("other", node=node.node)
        await node.within(manager.create_handoff("o11y", "look", timeout_ms=5_000))
        taking = asyncio.ensure_future(node.within(receiver.take()))
        await asyncio.sleep(70)  # it waits since that deadline was to come, and there were looks that failed
        await node.within(manager.create_handoff("other", "look", handoff_id="h"))
        (taken,) = await asyncio.wait_for(taking, 10)
        assert taken.id == "h"

    faults = [Fault(kind=Kind.STORE_READ_FAILED, probability=1.0, from_ms=30_000, until_ms=36_000)]
    assert World(1, faults=faults).run(scenario).failure == ""
