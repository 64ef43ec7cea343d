"""Who a call and its reply belong to: an id that a caller chooses is never one that a node makes."""

from __future__ import annotations

import asyncio

import pytest

from comity import Agent, Context, Node, Tool
from comity.errors import CallerError
from comity.runtime.handoff.manager import AsyncHandoffManager
from death import die

MESSAGE = {"from_agent": "orc", "to_agent": "echo", "capability_id": "SAY", "task": "say it", "inputs": {"text": "a"}}


def team(paid: list[int]) -> tuple[list[Agent], list[Tool]]:
    bank, shop, echo = Agent("bank", tools_allowed=["pay"]), Agent("shop", tools_allowed=["pay"]), Agent("echo")

    @bank.capability("SETTLE")
    async def settle(ctx: Context, amount: int) -> str:
        return await ctx.use_tool("pay", amount=amount)

    @shop.capability("BUY")
    async def buy(ctx: Context) -> str:
        return (await ctx.call("bank", "SETTLE", {"amount": 5})).data

    @echo.capability("SAY")
    async def say(text: str) -> str:
        return text

    def pay(amount: int) -> str:
        paid.append(amount)
        return f"paid {amount}"

    return [bank, shop, echo], [Tool(name="pay", function=pay, risk="high")]


async def test_an_approval_is_for_the_one_call_it_was_given_for(make_node) -> None:
    paid: list[int] = []
    agents, tools = team(paid)
    async with make_node(agents, tools=tools) as node:
        taken = await node.call("bank", "SETTLE", {"amount": 5}, user_id="mallory", request_id="x.1")
        placed = await node.call("echo", "SAY", {"text": "paid"}, user_id="mallory", request_id="x.1#1")
        asked = await node.call("shop", "BUY", user_id="alice", request_id="x")
        assert (asked.status, asked.data["approval_id"], paid) == ("needs_input", "x.1#1", [])
        reply = await node.decide("x.1#1", granted=True, by="ann")
    assert (reply.data, paid) == ("paid 5", [5])
    assert [one.error.code for one in (taken, placed)] == ["IDENTITY_INVALID"] * 2


@pytest.mark.parametrize("chosen", ["job.1", "job#1"])
async def test_no_door_takes_an_id_that_a_node_could_make(make_node, chosen: str) -> None:
    agents, tools = team([])
    async with make_node(agents, tools=tools) as node:
        called = await node.call("echo", "SAY", {"text": "a"}, user_id="u", request_id=chosen)
        started = await node.start_call("echo", "SAY", {"text": "a"}, user_id="u", request_id=chosen).reply()
        manager = AsyncHandoffManager("shop", "orc", node=node, user_id="u")
        for handing_off in (
            manager.create_handoff("echo", "SAY", handoff_id=chosen),
            manager.receive(MESSAGE | {"id": chosen}),
        ):
            with pytest.raises(CallerError, match="must not contain") as handed_off:
                await handing_off
            assert handed_off.value.code == "IDENTITY_INVALID"
        rows = node.audit.rows()
    assert [one.error.code for one in (called, started)] == ["IDENTITY_INVALID"] * 2
    assert "write - or _ instead" in called.message
    # The rows say what was asked without naming what may be another's call.
    assert [(row.kind, row.request_id) for row in rows] == [("refused", f"'{chosen}'")] * 4


def test_who_asks_under_the_id_of_a_tree_that_was_taken_up_ends_nothing_of_it(tmp_path) -> None:
    def agents(gate: asyncio.Event) -> list[Agent]:
        boss, helper = Agent("boss"), Agent("helper")

        @helper.capability("WAIT")
        async def wait() -> str:
            await gate.wait()
            return "waited"

        @boss.capability("PLAN")
        async def plan(ctx: Context) -> str:
            await asyncio.sleep(0.02)
            return (await ctx.call("helper", "WAIT")).data

        return [boss, helper]

    async def first_life() -> None:
        node = Node(agents(asyncio.Event()), store=tmp_path / "s.db")
        await node.start()
        node.start_call("boss", "PLAN", user_id="ann", request_id="case", timeout_ms=60_000)
        while "case.1" not in node._path.calls:
            await asyncio.sleep(0.001)
        await die(node)

    async def second_life() -> list[tuple[str, str, str | None]]:
        gate = asyncio.Event()
        gate.set()
        async with Node(agents(gate), store=tmp_path / "s.db") as node:
            stolen = await node.call("boss", "PLAN", user_id="bob", request_id="case")
            assert stolen.error.code == "IDENTITY_REQUEST_ID_REUSED"
            assert (await node.call("boss", "PLAN", user_id="ann", request_id="case")).data == "waited"
            return [(row.request_id, row.status, row.error_code) for row in node.audit.rows() if row.kind == "settled"]

    asyncio.run(first_life())
    assert sorted(asyncio.run(second_life())) == [("case", "success", None), ("case.1", "success", None)]
