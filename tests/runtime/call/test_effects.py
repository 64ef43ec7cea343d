"""What is declared to have effects and had ended does not run again: its end is on disk before its caller sees it."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
import warm

from comity import Agent, Context, Node, Tool
from comity.core.agent.agent import DeclarationError
from comity.engines.sqlite.audit_rows import read_rows
from comity.engines.sqlite.connecting import connect

LIFE = """
import asyncio, json, os, signal, sys
from comity import Agent, Context, Node, Tool

store, how = sys.argv[1:]
orc, cst, anl = Agent("ORC"), Agent("CST", tools_allowed=["pay"]), Agent("ANL")
ran = lambda what: os.write(1, (what + "\\n").encode())

@cst.capability("S", effects=True)
async def s():
    ran("capability")
    return "done"

@cst.capability("T")
async def t(ctx: Context):
    return await ctx.use_tool("pay")

@anl.capability("S")
async def a():
    if how == "die":
        os.kill(os.getpid(), signal.SIGKILL)

@orc.capability("RUN")
async def run(ctx: Context):
    replies = [await ctx.call("CST", "S"), await ctx.call("CST", "T")]
    await ctx.call("ANL", "S")
    return [reply.data for reply in replies]

def pay():
    ran("tool")
    return "paid"

async def main():
    pays = Tool(name="pay", function=pay, effects=True)
    async with Node([orc, cst, anl], store=store, tools=[pays], privacy=None) as node:
        reply = await node.call("ORC", "RUN", user_id="u", request_id="r")
        ran(json.dumps([reply.status, reply.data]))

asyncio.run(main())
"""


def test_what_had_ended_when_its_process_was_killed_at_once_does_not_run_again(tmp_path: Path) -> None:
    told = []
    for how in ("die", "go on"):
        command = [sys.executable, "-c", LIFE, str(tmp_path / "s.db"), how]
        told += warm.run(command).stdout.splitlines()
    assert told == ["capability", "tool", json.dumps(["success", ["done", "paid"]])]


def on_disk(store: Path) -> list[str]:
    connection = connect(store, read_only=True)
    try:
        return [f"{row.kind} {row.target}" for row in read_rows(connection)]
    finally:
        connection.close()


@pytest.mark.parametrize("has_effects", [True, False])
def test_a_capability_with_effects_begins_once_what_it_follows_from_is_on_disk(tmp_path: Path, has_effects: bool) -> None:
    store, seen = tmp_path / "s.db", []
    agent, boss = Agent("A"), Agent("B")

    @agent.capability("PICK")
    async def pick() -> int:
        return 1

    @agent.capability("PAY", effects=has_effects)
    async def pay() -> None:
        seen.append(on_disk(store))

    @boss.capability("GO")
    async def go(ctx: Context) -> None:
        await ctx.call("A", "PICK")
        await ctx.call("A", "PAY")

    flow = "workflow: w\nnodes:\n  p: {call: A/PICK}\n  u: {call: A/PAY, after: [p]}"

    async def main() -> None:
        async with Node([agent, boss], store=store) as node:
            await node.call("A", "PAY", user_id="u")
            await node.call("B", "GO", user_id="u")
            node.workflows.add(flow)
            await node.workflows.run("w", user_id="u", run_id="r")

    asyncio.run(main())
    steps = ["admitted A", "settled A", "admitted A"]
    ends = [rows[-len(steps) :] == steps if number else rows == ["admitted A"] for number, rows in enumerate(seen[:3])]
    assert ends == [has_effects] * 3


def test_a_capability_with_effects_does_not_begin_where_the_store_cannot_be_written(tmp_path: Path) -> None:
    agent, ran = Agent("A"), []

    @agent.capability("PAY", effects=True)
    async def pay() -> None:
        ran.append(1)

    async def main() -> str:
        async with Node([agent], store=tmp_path / "s.db") as node:
            connection = connect(tmp_path / "s.db")
            connection.execute("DROP TABLE audit")
            connection.close()
            reply = await node.call("A", "PAY", user_id="u")
            return reply.error.code

    assert asyncio.run(main()) == "STORE_UNAVAILABLE"
    assert ran == []


@pytest.mark.parametrize(
    "declared", [{"effects": True}, {"risk": "medium"}, {"risk": "high"}, {"risk": "medium", "effects": True}]
)
def test_an_agent_sees_what_a_tool_with_effects_did_once_that_is_on_disk(tmp_path: Path, declared: dict) -> None:
    store = tmp_path / "s.db"
    agent = Agent("A", tools_allowed=["pay"])

    @agent.capability("GO")
    async def go(ctx: Context) -> list[str]:
        await ctx.use_tool("pay")
        return on_disk(store)

    async def main():
        async with Node([agent], store=store, tools=[Tool(name="pay", function=lambda: None, **declared)]) as node:
            reply = await node.call("A", "GO", user_id="u")
            if reply.status == "needs_input":
                reply = await node.decide(reply.data["approval_id"], granted=True, by="ann")
            return reply.data

    assert asyncio.run(main())[-1] == "settled tool:pay"


def test_a_caller_sees_the_reply_of_a_capability_with_effects_once_that_is_on_disk(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    boss, hand = Agent("BOSS"), Agent("HAND")

    @hand.capability("ACT", effects=True)
    async def act(fails: bool) -> None:
        if fails:
            raise ValueError("half done")

    @boss.capability("GO")
    async def go(ctx: Context) -> list[list[str]]:
        seen = []
        for fails in (False, True):
            await ctx.call("HAND", "ACT", {"fails": fails})
            seen.append(on_disk(store))
        return seen

    async def main():
        async with Node([boss, hand], store=store) as node:
            return (await node.call("BOSS", "GO", user_id="u")).data

    first, second = asyncio.run(main())
    assert first == ["admitted BOSS", "admitted HAND", "settled HAND"]
    assert second == [*first, "admitted HAND", "settled HAND"]


async def test_without_a_store_nothing_is_waited_for(make_node):
    boss, hand = Agent("BOSS", tools_allowed=["pay"]), Agent("HAND")

    @hand.capability("ACT", effects=True)
    async def act() -> int:
        return 1

    @boss.capability("GO")
    async def go(ctx: Context) -> int:
        return (await ctx.call("HAND", "ACT")).data + await ctx.use_tool("pay")

    async with make_node([boss, hand], tools=[Tool(name="pay", function=lambda: 2, effects=True)]) as node:
        assert (await node.call("BOSS", "GO", user_id="u")).data == 3


async def test_a_caller_whose_time_ends_while_the_disk_is_slow_ends_on_time_and_the_end_below_stands(make_node):
    from comity.engines.memory.journal import MemoryJournal

    class Slow(MemoryJournal):
        """Takes ten seconds to say that something is written, from the effect on."""

        def append(self, records, then=None, terms=None):
            is_slow = then is not None and acted
            later = (lambda error: asyncio.get_running_loop().call_later(10, then, error)) if is_slow else then
            super().append(records, later, terms)

    boss, hand, acted = Agent("BOSS"), Agent("HAND"), []

    @hand.capability("ACT", effects=True)
    async def act() -> int:
        acted.append(1)
        return 1

    @boss.capability("GO", timeout_ms=1_000)
    async def go(ctx: Context) -> int:
        return (await ctx.call("HAND", "ACT")).data

    async with make_node([boss, hand], journal=Slow("n")) as node:
        reply = await node.call("BOSS", "GO", user_id="u")
        ends = {(row.target, row.status) for row in node.audit.rows() if row.kind == "settled"}
    assert reply.status == "timeout"
    assert ends == {("HAND", "success"), ("BOSS", "timeout")}
    assert reply.data == {
        "completed": [{"agent": "HAND", "capability": "ACT", "status": "success", "data": 1}],
        "incomplete": [],
    }


def test_effects_are_declared_as_true_or_false():
    with pytest.raises(DeclarationError, match="effects must be"):
        Tool(name="pay", function=print, effects="yes")
    with pytest.raises(DeclarationError, match="effects must be"):
        Agent("A").capability("GO", effects=1)
    assert not Tool(name="pay", function=print, risk="medium", effects=False).has_effects
