"""Plain functions in a simulation: threads that take turns with the loop, so that a seed still decides everything."""

from __future__ import annotations

import asyncio
import threading

import pytest

from comity import Agent, Reply, SyncContext, Tool
from comity.testing import Fault, Kind, World

FAULTS = Fault.each(Kind.NODE_CRASH_IN_WRITE, Kind.STORE_SLOW, Kind.AGENT_CALL_NETWORK_DELAY)
SEEDS = range(6)


def agents():
    lead, counter = Agent("LEAD", tools_allowed=["price"]), Agent("COUNTER", concurrency=1)

    @counter.capability("ADD")
    def add(ctx: SyncContext) -> int:
        ctx.state["sum"] = ctx.state.get("sum", 0) + 1
        return ctx.state["sum"]

    @lead.capability("GO")
    def go(ctx: SyncContext) -> list[int]:
        ctx.progress({"asked": True})
        first, second = ctx.gather(ctx.start_call("COUNTER", "ADD"), ctx.start_call("COUNTER", "ADD"))
        said = ctx.once("oracle", "SAY", lambda: Reply.success(ctx.use_tool("price")))
        return [first.unwrap(), second.unwrap(), ctx.call("COUNTER", "ADD").unwrap(), said.unwrap()]

    return [lead, counter]


async def play(world: World) -> None:
    await world.node(agents(), tools=[Tool(name="price", function=lambda: 7, idempotent=True)])
    replies = await asyncio.gather(*(world.call("LEAD", "GO", user_id="ann") for _ in range(3)))
    await world.heal()
    for reply in replies:
        assert reply.status in {"success", "error", "timeout"}, reply


def outcome(seed):
    found = World(seed, faults=FAULTS).run(play)
    assert found.ok, found.error
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_seed_gives_the_same_run_of_plain_functions(seed):
    assert outcome(seed).trace.digest() == outcome(seed).trace.digest()


def test_crashes_strike_plain_functions_and_no_thread_outlives_its_world():
    of_other_tests = set(threading.enumerate())
    struck = [fault.kind for seed in SEEDS for fault in outcome(seed).fired]
    assert Kind.NODE_CRASH_IN_WRITE in struck
    left = set(threading.enumerate()) - of_other_tests
    assert [one.name for one in left if one.name == "comity-function"] == []


def test_a_function_that_waits_for_another_ones_lock_fails_and_does_not_hang(monkeypatch):
    monkeypatch.setattr("comity.testing.turns.TURN_S_MAX", 0.05)
    agent, never = Agent("A"), threading.Event()

    @agent.capability("GO")
    def go(ctx: SyncContext) -> bool:
        return never.wait(20)

    async def once(world: World) -> None:
        await world.node([agent])
        await world.call("A", "GO", user_id="ann")

    found = World(1).run(once)
    never.set()
    assert "held up virtual time" in found.failure
