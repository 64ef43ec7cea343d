"""What nodes that share their work keep in memory after calls have ended: as much as before them."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest
from cluster_world import World, play
from leftovers import grown, scheduled, sizes

from comity import Agent, Context, Limits, Node
from comity.core.agent.tool import Risk, Tool
from comity.core.cluster import messages as wire
from comity.runtime.cluster import inbound
from comity.testing import run_virtual


def front() -> Agent:
    agent = Agent("FRONT")

    @agent.capability("ASK")
    async def ask(ctx: Context, what: str = "DO", times: int = 1) -> Any:
        return [(await ctx.call("BACK", what, objective="an objective")).status for _ in range(times)]

    return agent


def back() -> list[Agent]:
    agent, tiny = Agent("BACK", tools_allowed=["pay"], concurrency=1), Agent("TINY")

    @agent.capability("DO")
    async def do(ctx: Context) -> Any:
        return (await ctx.call("TINY", "DO")).status

    @agent.capability("WAIT")
    async def wait() -> None:
        await asyncio.sleep(3600)

    @agent.capability("PAY")
    async def pay(ctx: Context) -> Any:
        return await ctx.use_tool("pay")

    @tiny.capability("DO")
    async def do_little() -> None: ...

    return [agent, tiny]


async def round_of(world: World, node: Node) -> None:
    """Let everything happen once that can happen to a call over nodes, in a session that is there already."""
    session = {"user_id": "ann", "session_id": "s"}
    await node.call("FRONT", "ASK", {"times": 3}, limits=Limits(calls_max=5), **session)
    await node.call("FRONT", "ASK", {"what": "WAIT"}, timeout_ms=1_000, **session)
    await node.call("BACK", "WAIT", timeout_ms=1_000, **session)
    await node.call("NONE", "ASK", timeout_ms=1_000, **session)
    handles = [node.start_call("FRONT", "ASK", {"what": "WAIT"}, **session) for _ in range(2)]
    await asyncio.sleep(1)
    for handle in handles:
        handle.cancel()
        await handle.reply()
    await node.call("FRONT", "ASK", {"what": "PAY"}, **session)
    (question,) = [one for one in node.approvals(by="boss") if one.granted is None]
    await node.decide(question.id, granted=True, by="boss")
    world.network.fault = lambda _, __, message: () if isinstance(message, wire.Answer) else (0.001,)
    lost = asyncio.ensure_future(node.call("BACK", "DO", **session))
    await asyncio.sleep(1)
    world.network.fault = lambda *_: (0.001, 0.5)  # and everything twice
    await lost
    await node.call("FRONT", "ASK", **session)
    await asyncio.sleep(60)


def test_nodes_keep_no_more_after_many_calls_to_each_other_than_after_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbound, "RECENT_MAX", 5)

    async def case(world: World, one: Node, two: Node) -> None:
        found = []
        for _ in range(3):
            await round_of(world, one)
            found.append((sizes(one), sizes(two)))
        assert [grown(before, after) for before, after in zip(found[1], found[2], strict=True)] == [{}, {}]

    play(case, [front()], back(), tools=[Tool(name="pay", function=lambda: "paid", risk=Risk.HIGH)])


def test_nodes_that_close_in_the_middle_of_everything_leave_no_timer_and_no_task() -> None:
    async def main() -> None:
        world = World()
        tools = [Tool(name="pay", function=lambda: "paid", risk=Risk.HIGH)]
        async with AsyncExitStack() as nodes:
            one = await nodes.enter_async_context(world.node("n1", [front()], tools=tools))
            await nodes.enter_async_context(world.node("n2", back(), tools=tools))
            session = {"user_id": "ann", "session_id": "s"}
            await one.call("FRONT", "ASK", {"times": 3}, **session)
            await one.call("FRONT", "ASK", {"what": "PAY"}, **session)
            asked = [asyncio.ensure_future(one.call("FRONT", "ASK", {"what": "WAIT"}, **session)) for _ in range(2)]
            await asyncio.sleep(1)
            asked.append(asyncio.ensure_future(one.call("BACK", "WAIT", **session)))
            await asyncio.sleep(0.05)
        await asyncio.wait(asked, timeout=5)
        await asyncio.sleep(1)  # messages that are on their way
        assert scheduled() == []

    run_virtual(main())
