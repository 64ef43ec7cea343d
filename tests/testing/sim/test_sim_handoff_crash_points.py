"""Crash points of a handoff, all of them: whoever hands off or receives is cut at every step and every write once."""

from __future__ import annotations

import asyncio

import pytest
from workloads.receivers import Client

from comity import AsyncHandoffReceiver
from comity.core.handoff.machine import State
from comity.errors import ComityError
from comity.testing import CrashedError, World


def play(who="", **cut):
    ended, writes = [], []

    async def receive(node):
        while True:
            await node.until_up()
            receiver = AsyncHandoffReceiver("o11y", ["look"], node=node.node, lease_ms=2_000)

            async def work(handoff, receiver=receiver):
                await receiver.progress(handoff.id, 50)
                await asyncio.sleep(0.01)
                return handoff.inputs["n"] + 1

            try:
                await node.within(receiver.serve(work))
            except (CrashedError, ComityError):
                await asyncio.sleep(0.01)

    async def scenario(world):
        nodes = {"boss": await world.node([]), "worker": await world.node([])}
        serving = asyncio.ensure_future(receive(nodes["worker"]))
        await asyncio.sleep(0.1)
        if who:
            world.arm(nodes[who])
        client = Client(world, 0, [nodes["boss"]])
        await client.ask(lambda manager: manager.create_handoff("o11y", "look", inputs={"n": 1}, handoff_id="h"))
        ended.append(await client.ask(lambda manager: manager.await_result("h")))
        await asyncio.sleep(1)
        writes.append(world.appends)
        serving.cancel()
        await asyncio.sleep(1)

    return World(1, **cut).run(scenario), ended, writes


WHOLE, _, WRITES = play()


def check(outcome, ended, where):
    assert outcome.failure == "", (where, outcome.trace.text())
    (handoff,) = ended
    assert (handoff.state, handoff.result) == (State.COMPLETED, 2), where
    assert [entry.kind for entry in handoff.history].count("completed") == 1, where


@pytest.mark.parametrize("who", ["boss", "worker"])
def test_a_handoff_that_is_cut_at_any_step_is_completed_once(who):
    crashed = 0
    for point in range(1, WHOLE.steps + 1):
        outcome, ended, _ = play(who, cut_at_step=point)
        check(outcome, ended, (who, point))
        crashed += outcome.marks.get("node crashed", 0)
    assert crashed >= 8  # so many steps its process takes, or more


def test_a_handoff_that_is_cut_at_any_write_is_completed_once():
    assert WRITES[0] >= 6
    for point in range(1, WRITES[0] + 1):
        outcome, ended, _ = play(cut_at_append=point)
        check(outcome, ended, point)
        assert outcome.marks["node crashed"] == 1
