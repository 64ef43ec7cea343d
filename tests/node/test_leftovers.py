"""What a node keeps in memory after calls, runs and questions have ended: as much as before them."""

from __future__ import annotations

import asyncio
from typing import Any

from leftovers import grown, scheduled, sizes

from comity import Agent, Context, Node, Reply
from comity.core.agent.tool import Risk, Tool

FLOW = """
workflow: flow
nodes:
  a: {call: LOW/DO, input: {n: 1}}
  b: {call: LOW/DO, input: {n: 2}}
  q: {ask: 'Go on?', after: [a]}
  w: {wait: 2s, after: [q]}
"""


def team() -> list[Agent]:
    low, top = Agent("LOW", tools_allowed=["pay"]), Agent("TOP")

    @low.capability("DO")
    async def do(n: int) -> dict[str, int]:
        return {"n": n}

    @low.capability("FAIL")
    async def fail() -> Reply:
        return Reply.failure("no luck", code="NO_LUCK")

    @low.capability("WAIT")
    async def wait() -> None:
        await asyncio.sleep(3600)

    @low.capability("PAY")
    async def pay(ctx: Context) -> Any:
        return await ctx.use_tool("pay")

    @top.capability("ASK")
    async def ask(ctx: Context, what: str = "DO") -> Any:
        reply = await ctx.call("LOW", what, {"n": 1} if what == "DO" else {}, objective="an objective")
        ctx.session.learn("key", "value", source="user", confidence=0.9)
        return reply.data

    return [low, top]


async def round_of(node: Node) -> None:
    """Let everything happen once that can happen to a call or a run, in a session that is there already."""
    session = {"user_id": "ann", "session_id": "s"}
    for capability in ("DO", "FAIL"):
        await node.call("TOP", "ASK", {"what": capability}, message="hello", **session)
    await node.call("TOP", "ASK", {"what": "WAIT"}, timeout_ms=1_000, **session)
    await node.call("NONE", "ASK", **session)
    await node.call("LOW", "DO", {"n": 1}, user_id="ann")
    handle = node.start_call("TOP", "ASK", {"what": "WAIT"}, **session)
    events = asyncio.ensure_future(anext(handle.events()))
    await asyncio.sleep(1)
    handle.cancel()
    await handle.reply()
    events.cancel()
    for granted in (True, False):
        await node.call("TOP", "ASK", {"what": "PAY"}, **session)
        (question,) = [one for one in node.approvals(by="boss") if one.granted is None]
        await node.decide(question.id, granted=granted, by="boss")
    for is_cancelled in (False, True):
        run = await node.workflows.start("flow", **session)
        while not run.record.questions:
            await asyncio.sleep(0.1)
        if is_cancelled:
            await run.cancel()
        else:
            await run.answer(run.record.questions[0].question_id, "yes")
        await run.result()
    await asyncio.sleep(60)


async def test_a_node_keeps_no_more_after_many_calls_runs_and_questions_than_after_a_few(make_node):
    async with make_node(team(), tools=[Tool(name="pay", function=lambda: "paid", risk=Risk.HIGH)]) as node:
        node.workflows.add(FLOW)
        for _ in range(2):
            await round_of(node)
        before = sizes(node)
        await round_of(node)
        after = sizes(node)
    assert grown(before, after) == {}


async def test_a_node_that_closes_in_the_middle_of_everything_leaves_no_timer_and_no_task(make_node):
    async with make_node(team(), tools=[Tool(name="pay", function=lambda: "paid", risk=Risk.HIGH)]) as node:
        node.workflows.add(FLOW)
        session = {"user_id": "ann", "session_id": "s"}
        await node.workflows.schedules.add("hourly", "flow", user_id="ann", every="1h")
        handle = node.start_call("TOP", "ASK", {"what": "WAIT"}, **session)
        reading = asyncio.ensure_future(_read(handle.events()))
        await node.call("TOP", "ASK", {"what": "PAY"}, **session)
        runs = [await node.workflows.start("flow", **session) for _ in range(2)]
        watching = asyncio.ensure_future(_read(runs[0].events()))
        while not runs[0].record.questions:
            await asyncio.sleep(0.1)
        await runs[0].answer(runs[0].record.questions[0].question_id, "yes")
        await asyncio.sleep(0.5)
    await asyncio.wait([reading, watching], timeout=5)
    assert scheduled() == []


async def _read(events: Any) -> None:
    async for _ in events:
        pass
