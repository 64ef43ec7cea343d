"""Deadlines and leases are right after the machine slept or its clock was set, in every process."""

from __future__ import annotations

import asyncio

import pytest

from comity import Agent, AsyncHandoffManager, AsyncHandoffReceiver, Context, Status
from comity.engines.clock import SystemClock
from comity.runtime.agent.clock_watch import TICK_S
from comity.runtime.call.call import SLOT_MS
from comity.testing import VirtualClock

LATE_S = TICK_S + SLOT_MS / 1000


class SetClock(VirtualClock):
    """A clock that people and name servers set, and that a suspend moves on: timers of the loop know nothing of it."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def now_ns(self) -> int:
        return super().now_ns() + round(self.ahead_s * 1e9)


@pytest.fixture
def clock():
    return SetClock()


@pytest.fixture
def sleeper():
    agent = Agent("A")

    @agent.capability("SLEEP")
    async def sleep(ctx: Context) -> None:
        await asyncio.sleep(3600)

    return agent


def now_s():
    return asyncio.get_running_loop().time()


@pytest.mark.parametrize(("step_s", "left_s"), [(3600, 0), (55, 0), (20, 35), (0.5, 54.5)])
async def test_a_call_ends_at_its_deadline_also_after_the_clock_went_forward(make_node, sleeper, clock, step_s, left_s):
    async with make_node([sleeper], clock=clock) as node:
        called = asyncio.ensure_future(node.call("A", "SLEEP", user_id="u", timeout_ms=60_000))
        await asyncio.sleep(5)
        clock.ahead_s += step_s
        begun_s = now_s()
        assert (await called).status is Status.TIMEOUT
        assert left_s <= now_s() - begun_s <= left_s + LATE_S


async def test_many_steps_and_a_clock_that_runs_fast_are_followed(make_node, sleeper, clock):
    async with make_node([sleeper], clock=clock) as node:
        called = asyncio.ensure_future(node.call("A", "SLEEP", user_id="u", timeout_ms=100_000))
        for _ in range(50):  # the clock gains a second every second, none of which is a large step
            await asyncio.sleep(0.1)
            clock.ahead_s += 0.1
        begun_s = now_s()
        clock.ahead_s += 80
        await asyncio.sleep(TICK_S)
        clock.ahead_s += 9.5
        assert (await called).status is Status.TIMEOUT
        assert now_s() - begun_s <= 2 * LATE_S


async def test_a_call_never_ends_early_when_the_clock_is_set_back(make_node, sleeper):
    wall = VirtualClock()
    back_s = [0.0]
    clock = SystemClock(lambda: wall.now_ns() - round(back_s[0] * 1e9), lambda: round(now_s() * 1e9))
    async with make_node([sleeper], clock=clock) as node:
        asked_ns = clock.now_ns()
        called = asyncio.ensure_future(node.call("A", "SLEEP", user_id="u", timeout_ms=10_000))
        await asyncio.sleep(5)
        back_s[0] = 3600
        assert (await called).status is Status.TIMEOUT
        assert clock.now_ns() - asked_ns >= 10_000_000_000
        assert now_s() <= 15 + 2 * LATE_S  # the clock goes on at half speed, and stands still for nobody


async def test_nothing_ticks_while_nothing_has_a_deadline(make_node, sleeper, clock):
    async with make_node([sleeper], clock=clock) as node:
        watch = node._path.settlement.deadlines.watch
        assert watch.is_parked
        assert (await node.call("A", "SLEEP", user_id="u", timeout_ms=100)).status is Status.TIMEOUT
        assert not watch.is_parked
        await asyncio.sleep(2 * TICK_S)
        assert watch.is_parked
        clock.ahead_s += 1000  # a step while it stood still is none for what comes later
        begun_s = now_s()
        assert (await node.call("A", "SLEEP", user_id="u", timeout_ms=5_000)).status is Status.TIMEOUT
        assert 5 <= now_s() - begun_s <= 5 + LATE_S


@pytest.mark.parametrize("has_receiver", [False, True])
async def test_a_handoff_that_ran_out_while_the_machine_slept_is_told_at_once(make_node, clock, has_receiver):
    async with make_node(clock=clock) as node, AsyncHandoffReceiver("other", ["rest"], node=node) as receiver:
        watch = node._path.settlement.deadlines.watch
        resting = asyncio.ensure_future(receiver.take()) if has_receiver else None
        await asyncio.sleep(2 * TICK_S)
        assert watch.is_parked  # a receiver that waits for work waits for no point in time
        manager = AsyncHandoffManager(project_id="p", agent_id="boss", node=node)
        handoff = await manager.create_handoff(capability_id="work", task="t", inputs={}, timeout_ms=3_000_000)
        waiting = asyncio.ensure_future(manager.await_result(handoff))
        await asyncio.sleep(5)
        clock.ahead_s += 3_600
        begun_s = now_s()
        assert str((await waiting).status) == "timeout"
        assert now_s() - begun_s <= LATE_S + 0.1
        await asyncio.sleep(40)  # the queue was looked at since, and nothing of it is due
        assert watch.is_parked
        if resting is not None:
            resting.cancel()


async def test_a_receiver_renews_at_once_after_a_step_and_one_that_lost_its_lease_stops(make_node, clock):
    stopped = asyncio.Event()

    async def work(handoff):
        try:
            await asyncio.sleep(3600)
        finally:
            stopped.set()

    async with make_node(clock=clock) as node:
        manager = AsyncHandoffManager(project_id="p", agent_id="boss", node=node)
        receiver = AsyncHandoffReceiver(agent_id="w", capabilities=["work"], node=node, lease_ms=30_000)
        serving = asyncio.ensure_future(receiver.serve(work))
        handoff = await manager.create_handoff(capability_id="work", task="t", inputs={}, timeout_ms=300_000)
        await asyncio.sleep(1)
        clock.ahead_s += 25  # five seconds of the lease are left
        await asyncio.sleep(LATE_S)
        lease_until = node.handoffs.get(handoff).lease_until
        assert lease_until is not None
        assert lease_until >= clock.now_ns() // 1_000_000 + 28_000
        clock.ahead_s += 400  # and now even its deadline has passed
        await asyncio.sleep(2 * LATE_S)
        assert stopped.is_set()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
