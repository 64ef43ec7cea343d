"""A node with a retention removes what it keeps no longer, while it works and without being asked."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from comity import Agent, AsyncHandoffManager, AsyncHandoffReceiver, Context, Keep, Node, Retention, Risk, Tool
from comity.core.agent.declaration import DeclarationError
from comity.engines.sqlite import retention as engine
from comity.node import upkeep

HOUR = Keep(age=timedelta(hours=1))
ALL = Retention(calls=HOUR, replies=HOUR, sessions=HOUR, handoffs=HOUR, spans=HOUR, audit=HOUR)


def team() -> list[Agent]:
    agent = Agent("A", tools_allowed={"pay"})

    @agent.capability("ADD")
    async def add(ctx: Context, n: int) -> dict:
        ctx.session.learn("n", n)
        return {"n": n}

    @agent.capability("PAY")
    async def pay(ctx: Context) -> str:
        return await ctx.use_tool("pay", amount=5)

    @agent.capability("WAIT")
    async def wait(ctx: Context) -> str:
        await asyncio.sleep(7_000)
        return "done"

    return [agent]


def node_with(make_node, **more):
    tool = Tool(name="pay", function=lambda amount: "paid", risk=Risk.HIGH)
    return make_node(team(), tools=[tool], retention=ALL, **more)


async def test_what_is_too_old_goes_by_itself_and_the_rest_stays(make_node):
    async with node_with(make_node) as node:
        for n in range(3):
            await node.call("A", "ADD", {"n": n}, user_id="u", session_id="s", request_id=f"old{n}")
        await asyncio.sleep(3_000)
        await node.call("A", "ADD", {"n": 9}, user_id="u", session_id="t", request_id="young")
        assert node.session("s") is not None
        await asyncio.sleep(700)
        assert (node.session("s"), node.session("t").facts["n"].value) == (None, 9)
        again = await node.call("A", "ADD", {"n": 5}, user_id="u", request_id="old0")  # the id is free again
        assert again.data == {"n": 5}
        assert {row.request_id for row in node.audit.rows()} == {"young", "old0"}
        assert node.audit.verify().ok
        assert node.spans.count() == 2


async def test_what_waits_for_a_person_or_runs_is_never_too_old(make_node):
    async with node_with(make_node) as node:
        running = node.start_call("A", "WAIT", user_id="u", request_id="running", session_id="r", timeout_ms=300_000)
        asked = await node.call("A", "PAY", user_id="u", request_id="asked", session_id="p")
        assert asked.status == "needs_input"
        await asyncio.sleep(250)
        (question,) = node.approvals()
        paid = await node.decide(question.id, granted=True, by="cat")
        assert paid is not None
        assert paid.data == "paid"
        running.cancel()


async def test_handoffs_go_once_they_have_ended_and_not_before(make_node):
    async with node_with(make_node) as node:
        manager = AsyncHandoffManager("p", "boss", node=node)
        receiver = AsyncHandoffReceiver("worker", ("dig",), node=node)
        await manager.create_handoff("worker", "dig", "now", handoff_id="done")
        (taken,) = await receiver.take(1)
        await receiver.complete(taken.id, result={"found": 1})
        await manager.create_handoff("worker", "dig", "later", handoff_id="left", timeout_ms=300_000)
        await asyncio.sleep(3_700)  # of the first more than an hour after its end, of the second less
        assert [one.id for one in await manager.list_handoffs()] == ["left"]


def test_a_store_is_swept_while_its_node_works(tmp_path, monkeypatch):
    monkeypatch.setattr(upkeep, "SWEEP_EVERY_S", 0.001)
    monkeypatch.setattr(engine, "CUT_ROWS_LEAST", 5)
    keep = Keep(count=10)

    async def main() -> None:
        retention = Retention(calls=keep, replies=keep, sessions=keep, handoffs=keep, spans=keep, audit=keep)
        async with Node(team(), store=tmp_path / "s.db", retention=retention) as node:
            for n in range(100):
                reply = await node.call("A", "ADD", {"n": n}, user_id="u", session_id=f"s{n}")
                assert reply.data == {"n": n}
            journal = node._journal
            kept = len(node.audit.rows()), node.spans.count(), len(journal.calls(limit=100)), node.session("s0")
            while kept[0] > 16 or max(kept[1:3]) > 10 or kept[3] is not None:
                await asyncio.sleep(0.001)
                kept = len(node.audit.rows()), node.spans.count(), len(journal.calls(limit=100)), node.session("s0")
            assert node.audit.verify().ok
            assert node.session("s99") is not None

    asyncio.run(main())


def test_a_session_that_is_used_while_it_is_removed_is_kept_with_what_it_hides(tmp_path):
    """The store removed it, and a call that runs has it: it is written again, vault and all."""
    gate = asyncio.Event()
    agent = Agent("A")

    @agent.capability("SAY")
    async def say(ctx: Context, text: str) -> str:
        ctx.session.learn("who", text)
        await gate.wait()
        return text

    async def main() -> None:
        async with Node([agent], store=tmp_path / "s.db") as node:
            running = asyncio.create_task(node.call("A", "SAY", {"text": "ann@example.com"}, user_id="u", session_id="s"))
            while node.session("s") is None or not node.session("s").facts:
                await asyncio.sleep(0.001)
            await node.flush_spans()
            node._journal.erase("default", "s")
            node._path.sessions.pruned(["default\x1fs"])
            gate.set()
            await running
        async with Node([agent], store=tmp_path / "s.db") as node:
            assert node.export_session("s")["facts"]["who"]["value"] == "ann@example.com"

    asyncio.run(main())


def test_a_node_without_a_retention_keeps_everything_and_has_no_task_for_it(tmp_path):
    async def main() -> None:
        async with Node(team(), store=tmp_path / "s.db") as node:
            await node.call("A", "ADD", {"n": 1}, user_id="u")
            assert [task.get_name() for task in asyncio.all_tasks() if task.get_name() == "comity-upkeep"] == []

    asyncio.run(main())


def test_what_is_no_retention_is_refused_when_the_node_is_made():
    with pytest.raises(DeclarationError, match="the retention of a node is a Retention, not 30"):
        Node(team(), retention=30)
