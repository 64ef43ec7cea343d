"""A disk that fills while work is handed off, taken and completed: what was acknowledged stays, and everybody else is told."""

from __future__ import annotations

import asyncio

import pytest

from comity import AsyncHandoffManager, AsyncHandoffReceiver, Node
from comity.core.handoff.machine import State
from comity.errors import UnavailableError


async def fill(node, room, made, completed):
    """Hand off and complete until there is no room left; return what those were told who waited then."""
    journal = node._journal
    manager, receiver = AsyncHandoffManager(node=node, user_id="u"), AsyncHandoffReceiver("o11y", node=node)
    never = await manager.create_handoff("nobody", "look", handoff_id="never")
    made.add(never)
    (pages,) = journal._reader.execute("PRAGMA page_count").fetchone()
    journal._writer.execute(f"PRAGMA max_page_count = {pages + room}")

    async def make(maker):
        for number in range(10_000):
            made.add(await manager.create_handoff("o11y", "look", inputs={"x": "x" * 900}, handoff_id=f"h-{maker}-{number}"))

    async def work():
        while True:
            for handoff in await receiver.take(4):
                await receiver.complete(handoff.id, {"for": handoff.id, "y": "y" * 900})
                completed.add(handoff.id)

    tasks = [make(0), make(1), work(), manager.await_result(never), anext(manager.events(never, after=1))]
    return await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 60)


@pytest.mark.parametrize("room", [5, 23, 40])
def test_nothing_acknowledged_is_lost_on_a_disk_that_fills_and_nobody_waits_on(tmp_path, room):
    made: set[str] = set()
    completed: set[str] = set()

    async def first():
        async with Node(store=tmp_path / "work.db", lag_ms=None) as node:
            told = await fill(node, room, made, completed)
        assert all(isinstance(one, UnavailableError) and "disk is full" in one.message for one in told)

    async def second():
        async with Node(store=tmp_path / "work.db", lag_ms=None) as node:
            queue = node.handoffs.queue
            assert all(queue.get(one) is not None for one in made)
            assert {queue.get(one).state for one in completed} <= {State.COMPLETED}
            assert node.audit.verify().ok
            receiver = AsyncHandoffReceiver("o11y", node=node)
            while any(one != "never" and not queue.get(one).has_ended for one in made):
                for handoff in await asyncio.wait_for(receiver.take(50), 30):
                    await receiver.complete(handoff.id, {})

    asyncio.run(first())
    assert len(made) > 1
    asyncio.run(second())
