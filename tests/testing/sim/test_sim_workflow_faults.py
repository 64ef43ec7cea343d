"""Runs under faults: crashes, a slow and forgetful store, agents that fail. Every run ends, and its invariants hold."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from run_invariants import judge

from comity import Agent
from comity.errors import ComityError
from comity.testing import Fault, World
from comity.testing.sim.faults import Kind
from comity.testing.sim.nodes import CrashedError
from comity.workflow import load

FLOW = load("""
workflow: judged
nodes:
  a: {call: W/DO, input: {n: 1}, undo: {call: W/UNDO}, retry: {max: 1, backoff: 1s}}
  b: {call: W/DO, after: [a], input: {n: 2}, undo: {call: W/UNDO}}
  c: {call: W/DO, input: {n: 3}}
  c2: {call: W/DO, after: [c], input: {n: 4}}
  w: {wait: 5s, after: [b]}
  d: {call: W/DO, after: [w, c2], input: {n: 5}}
edges:
  - {from: a, to: c, when: 'response.data.n > 5'}
""")
FAULTS = (
    Kind.NODE_CRASH,
    Kind.NODE_CRASH_IN_WRITE,
    Kind.STORE_SLOW,
    Kind.STORE_UNFLUSHED_LOST,
    Kind.AGENT_CRASH,
    Kind.AGENT_BUSY,
)


@pytest.mark.parametrize("seed", range(3))
def test_every_run_ends_and_its_invariants_hold(seed):
    worker = Agent("W")

    @worker.capability("DO")
    async def do(n: int) -> dict:
        await asyncio.sleep(0.01)
        return {"n": n}

    @worker.capability("UNDO")
    async def undo() -> dict:
        return {}

    judged = []

    async def scenario(world):
        node = await world.node([worker])
        for number in range(400):
            if number == 40:
                await world.heal()
            with contextlib.suppress(CrashedError, ComityError):
                await node.until_up()
                flows = node.node.workflows
                handle = await node.within(flows.start(FLOW, user_id="u", run_id="run"))
                if handle.record.status.has_ended:
                    await node.within(handle.result())
                    judged.append(judge(flows.store.program(handle.record.definition), flows.store.events("run")))
                    return
            await asyncio.sleep(1.0)
        raise AssertionError("the run did not end")

    outcome = World(seed, faults=Fault.each(*FAULTS, probability=0.02, must_strike=False)).run(scenario)
    assert outcome.failure == "", outcome.failure
    assert judged
