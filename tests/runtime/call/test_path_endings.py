"""Calls that are ended from outside: deadlines, cancellation, parents that are done, a node that closes."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from path_agents import chain_to, now

from comity import Agent, Context, Reply, Status, Tool
from comity.errors import ComityError, UnavailableError


def tasks_left() -> int:
    return len(asyncio.all_tasks()) - 1  # this test itself


async def test_a_deadline_ends_a_chain_of_three_on_time_with_every_task_cancelled(make_node):
    ended: list[str] = []

    async def leaf(ctx: Context):
        ctx.progress({"pages_read": 3})
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("leaf")

    async with make_node(chain_to(leaf), child_margin=0) as node:
        reply = await node.call("TOP", "GO", user_id="u", timeout_ms=1_000)
        assert (reply.status, reply.error.code, reply.error.retryable) == (Status.TIMEOUT, "CALL_TIMEOUT", True)
        assert 1.0 <= now() <= 1.01, "at the latest a slot of 10 ms after the deadline, as promised"
        await asyncio.sleep(0)
        assert ended == ["leaf"]
        assert tasks_left() == 0
        rows = {(row.target, row.kind): row.status for row in node.audit.rows()}
    assert [rows[agent, "settled"] for agent in ("TOP", "MIDDLE", "LEAF")] == ["timeout"] * 3


async def test_a_timeout_keeps_the_partial_data_that_was_told(make_node):
    async def leaf():
        return 1

    slow = Agent("SLOW")

    @slow.capability("GO", timeout_ms=500)
    async def go(ctx: Context):
        for page in range(100):
            ctx.progress({"pages": page})
            await asyncio.sleep(0.2)

    async with make_node([slow]) as node:
        reply = await node.call("SLOW", "GO", user_id="u")
    assert (reply.status, reply.data) == (Status.TIMEOUT, {"pages": 2})


async def test_a_timeout_is_clamped_to_the_maximum(make_node):
    agent = Agent("A")

    @agent.capability("LOOK")
    async def look(ctx: Context):
        return ctx.limits.timeout_ms_max

    async with make_node([agent]) as node:
        assert (await node.call("A", "LOOK", user_id="u", timeout_ms=10_000_000)).data == 300_000


async def test_a_result_after_the_deadline_is_recorded_and_never_delivered(make_node):
    stubborn = Agent("A")

    @stubborn.capability("GO", timeout_ms=100)
    async def go():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "too late"

    async with make_node([stubborn]) as node:
        reply = await node.call("A", "GO", user_id="u", request_id="r1")
        await asyncio.sleep(0)
        again = await node.call("A", "GO", user_id="u", request_id="r1")
        kinds = [(row.kind, row.status) for row in node.audit.rows()]
    assert reply.status is again.status is Status.TIMEOUT
    assert kinds == [("admitted", None), ("settled", "timeout"), ("late", "success")]


async def test_cancel_from_the_root_reaches_the_leaf(make_node):
    ended: list[str] = []
    began = asyncio.Event()

    async def leaf():
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("leaf")

    async with make_node(chain_to(leaf)) as node:
        handle = node.start_call("TOP", "GO", user_id="u")
        await began.wait()
        assert handle.cancel()
        reply = await handle.reply()
        await asyncio.sleep(0)
        assert (reply.status, reply.error.code) == (Status.CANCELLED, "CALL_CANCELLED")
        assert ended == ["leaf"]
        assert tasks_left() == 0
        assert not handle.cancel()


def slow_helper(ended: list[str]) -> Agent:
    """An agent that takes a minute, and tells when it was ended."""
    helper = Agent("HELP")

    @helper.capability("SLOW")
    async def slow():
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("helper")

    return helper


async def test_a_caller_that_stops_waiting_cancels_what_it_called(make_node):
    ended: list[str] = []
    boss, helper = Agent("BOSS"), slow_helper(ended)

    @boss.capability("IMPATIENT")
    async def impatient(ctx: Context):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await ctx.call("HELP", "SLOW")
        return list(ended)

    async with make_node([boss, helper]) as node:
        reply = await node.call("BOSS", "IMPATIENT", user_id="u")
        await asyncio.sleep(0)
        assert reply.ok
        assert ended == ["helper"]


async def test_calls_left_behind_by_a_finished_parent_end_with_it(make_node):
    ended: list[str] = []
    boss, helper = Agent("BOSS"), slow_helper(ended)

    @boss.capability("FORGETFUL")
    async def forgetful(ctx: Context):
        left_behind.append(asyncio.ensure_future(ctx.call("HELP", "SLOW")))
        await asyncio.sleep(1)
        return "done"

    left_behind: list[asyncio.Future[Reply]] = []
    async with make_node([boss, helper]) as node:
        assert (await node.call("BOSS", "FORGETFUL", user_id="u")).data == "done"
        assert (await left_behind[0]).status is Status.CANCELLED
        assert ended == ["helper"]


async def test_a_task_that_outlives_its_call_can_call_nobody(make_node):
    boss, helper = Agent("BOSS"), Agent("HELP")
    contexts: list[Context] = []

    @helper.capability("GO")
    async def go():
        raise AssertionError("never reached")

    @boss.capability("LEAK")
    async def leak(ctx: Context):
        contexts.append(ctx)

    async with make_node([boss, helper]) as node:
        await node.call("BOSS", "LEAK", user_id="u")
        assert (await contexts[0].call("HELP", "GO")).error.code == "CALL_CANCELLED"


@pytest.mark.parametrize(
    "ask",
    [
        lambda ctx: ctx.call("NOBODY", "GO"),
        lambda ctx: ctx.hand_off("OTHER", "NO SUCH"),
        lambda ctx: ctx.use_tool("unknown"),
        lambda ctx: ctx.use_tool("quick"),
    ],
    ids=["call", "handoff", "tool refused", "tool used"],
)
async def test_others_have_a_turn_whenever_an_agent_asks_for_something(make_node, ask):
    stubborn, other = Agent("STUBBORN", tools_allowed=["quick"]), Agent("OTHER")
    contexts: list[Context] = []
    turns: list[str] = []

    async def ask_once(ctx: Context, who: str) -> None:
        asyncio.get_running_loop().call_soon(turns.append, who)
        with contextlib.suppress(ComityError):
            await ask(ctx)
        assert turns[-1:] == [who], "asked in a loop, nobody else would ever run, nor would the deadline come"

    @stubborn.capability("ASK")
    async def ask_here(ctx: Context) -> None:
        contexts.append(ctx)
        await ask_once(ctx, "while it runs")

    async with make_node([stubborn, other], tools=[Tool(name="quick", function=lambda: 1)]) as node:
        assert (await node.call("STUBBORN", "ASK", user_id="u")).ok
        await ask_once(contexts[0], "after its end")


@pytest.mark.parametrize(
    "ask",
    [lambda ctx: ctx.call("NOBODY", "GO"), lambda ctx: ctx.hand_off("STUBBORN", "ASK"), lambda ctx: ctx.use_tool("unknown")],
    ids=["call", "handoff", "tool"],
)
async def test_who_asks_again_and_again_after_every_refusal_waits_longer_and_longer(make_node, ask):
    stubborn = Agent("STUBBORN")

    @stubborn.capability("ASK")
    async def ask_on_and_on(ctx: Context) -> None:
        for _ in range(1_000):  # and not for ever: without pauses no time would pass
            with contextlib.suppress(ComityError):
                await ask(ctx)

    async with make_node([stubborn]) as node:
        assert (await node.call("STUBBORN", "ASK", user_id="u")).status is Status.TIMEOUT
        refused = sum(row.kind == "refused" for row in node.audit.rows())
    assert 100 < refused < 150  # the calls of a whole tree at once, then about one a second until the deadline


@pytest.mark.parametrize("in_swarms", [True, False], ids=["swarm", "gather"])
@pytest.mark.parametrize(
    "ask", [lambda ctx: ctx.call("NOBODY", "GO"), lambda ctx: ctx.use_tool("unknown")], ids=["call", "tool"]
)
async def test_refusals_leave_no_more_rows_in_parallel_than_in_series(make_node, ask, in_swarms):
    stubborn = Agent("STUBBORN")

    async def one(ctx: Context) -> None:
        while True:
            with contextlib.suppress(ComityError):
                await ask(ctx)
            if not in_swarms:
                return

    @stubborn.capability("ASK")
    async def ask_at_once(ctx: Context) -> None:
        while True:
            await asyncio.gather(*(one(ctx) for _ in range(500)))

    async with make_node([stubborn]) as node:
        assert (await node.call("STUBBORN", "ASK", user_id="u")).status is Status.TIMEOUT
        refused = sum(row.kind == "refused" for row in node.audit.rows())
    assert 100 <= refused < 150


async def test_closing_a_node_waits_a_while_for_code_that_heeds_no_cancel_and_says_what_it_leaves(make_node, caplog):
    stubborn, free = Agent("STUBBORN"), asyncio.Event()

    @stubborn.capability("HOLD")
    async def hold() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(600)
        await free.wait()

    async with make_node([stubborn]) as node:
        handle = node.start_call("STUBBORN", "HOLD", user_id="u", request_id="r1")
        await asyncio.sleep(1)
    assert (await handle.reply()).status is Status.CANCELLED
    assert "left running, 5 s after they were cancelled: STUBBORN HOLD (request r1)" in caplog.text
    free.set()


async def test_closing_a_node_ends_every_call_and_leaves_no_task(make_node):
    async def leaf():
        await asyncio.sleep(600)

    async with make_node(chain_to(leaf)) as node:
        handle = node.start_call("TOP", "GO", user_id="u")
        await asyncio.sleep(1)
    assert (await handle.reply()).status is Status.CANCELLED
    assert tasks_left() == 0
    with pytest.raises(UnavailableError, match="NODE_CLOSED"):
        await node.call("TOP", "GO", user_id="u")
