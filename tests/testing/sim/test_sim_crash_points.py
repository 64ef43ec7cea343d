"""Crash points, all of them: every step and every write on the way of a call is cut once, and the call still ends once."""

from __future__ import annotations

import asyncio

import pytest

from comity import Agent, Context, Tool
from comity.testing import World


def team() -> list[Agent]:
    boss, helper = Agent("BOSS", tools_allowed=["pay"]), Agent("HELP", tools_allowed=["pay"])

    @boss.capability("GO")
    async def go(ctx: Context) -> list:
        first, second = await ctx.gather(ctx.call("HELP", "WORK"), ctx.call("HELP", "PAY"))
        ctx.state["runs"] = ctx.state.get("runs", 0) + 1
        return [first.data, second.error.code if second.error else second.data]

    @helper.capability("WORK")
    async def work() -> int:
        await asyncio.sleep(0.01)
        return 1

    @helper.capability("PAY")
    async def pay(ctx: Context) -> str:
        return await ctx.use_tool("pay")

    return [boss, helper]


def play(**cut):
    effects = []

    async def pay(idempotency_key: str) -> str:
        effects.append(idempotency_key)
        await asyncio.sleep(0.005)
        return "paid"

    replies = []

    async def scenario(world):
        node = await world.node(team(), tools=[Tool(name="pay", function=pay, takes_key=True)])
        world.arm(node)
        replies.append(await world.call("BOSS", "GO", user_id="u", request_id="r"))

    return World(1, **cut).run(scenario), replies, effects


WHOLE = play()[0]


def test_the_uncut_run_has_steps_and_writes_to_cut():
    assert WHOLE.ok
    assert WHOLE.steps > 20
    assert WHOLE.writes > 6


@pytest.mark.parametrize("cut", ["cut_at_step", "cut_at_append"])
def test_a_call_that_is_cut_anywhere_ends_once_and_its_effect_happens_at_most_once(cut):
    most = WHOLE.steps if cut == "cut_at_step" else WHOLE.writes
    crashed = 0
    for point in range(1, most + 1):
        outcome, replies, effects = play(**{cut: point})
        assert outcome.failure == "", (cut, point, outcome.trace.text())
        (reply,) = replies
        assert reply.ok, (point, reply)
        assert reply.data in ([1, "paid"], [1, "TOOL_OUTCOME_UNKNOWN"]), point
        assert len(effects) <= 1, point
        assert effects or reply.data[1] != "paid", point
        crashed += outcome.marks.get("node crashed", 0)
    assert crashed >= most * 0.7  # the last points lie behind the reply
