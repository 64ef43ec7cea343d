"""A tree of calls over three nodes is one tree: watched, put aside for a person, and cancelled as a whole.

Each case runs on nodes in virtual time, and on three nodes that share one store file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from cluster_world import World, play

from comity import Agent, Context, Node, Tool
from comity.core.agent.tool import Risk

Case = Callable[[Node, Node, Node], Awaitable[None]]


@pytest.fixture(params=["memory", "file"])
def on_three(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., None]:
    """Run a case with three nodes, each with one of three agents."""

    def run(case: Case, *agents: Agent, **more: Any) -> None:
        async def in_world(_: World, *nodes: Node) -> None:
            await case(*nodes)

        async def on_file() -> None:
            async with AsyncExitStack() as opened:
                store = tmp_path / "work.db"
                await case(*[await opened.enter_async_context(Node([one], store=store, **more)) for one in agents])

        if request.param == "memory":
            play(in_world, *([one] for one in agents), **more)
        else:
            asyncio.run(on_file())

    return run


def caller(name: str, below: str, went_on: list[str]) -> Agent:
    """Return an agent that asks the next, and notes that it went on after."""
    agent = Agent(name)

    @agent.capability("DO")
    async def do(ctx: Context) -> Any:
        ctx.progress(f"{name} asks")
        reply = await ctx.call(below, "DO")
        went_on.append(name)
        return reply.unwrap()

    return agent


def test_what_happens_on_other_nodes_is_watched_where_the_call_was_made(on_three: Callable[..., None]) -> None:
    leaf = Agent("C")

    @leaf.capability("DO")
    async def do(ctx: Context) -> str:
        for percent in (10, 20, 30):
            ctx.progress({"percent": percent})
            await asyncio.sleep(0.01)
        return "done"

    async def case(one: Node, two: Node, three: Node) -> None:
        handle = one.start_call("A", "DO", user_id="u", request_id="r")
        seen = [event async for event in handle.events()]
        assert (await handle.reply()).data == "done"
        told = [event.data for event in seen if event.kind == "progress"]
        assert told == ["A asks", "B asks", {"percent": 10}, {"percent": 20}, {"percent": 30}]
        steps = [(str(event.kind), event.request_id) for event in seen if event.kind != "progress"]
        begins = [(kind, request_id) for request_id in ("r", "r.1", "r.1.1") for kind in ("queued", "started")]
        assert steps == [*begins, *(("settled", request_id) for request_id in ("r.1.1", "r.1", "r"))]
        assert [event.seq for event in seen] == list(range(1, len(seen) + 1))

    on_three(case, caller("A", "B", []), caller("B", "C", []), leaf)


@pytest.mark.parametrize("is_granted", [True, False])
def test_a_tree_waits_for_a_person_as_a_whole_wherever_the_answer_is_given(
    on_three: Callable[..., None], is_granted: bool
) -> None:
    paid: list[int] = []
    went_on: list[str] = []

    def pay(amount: int) -> int:
        paid.append(amount)
        return amount

    leaf = Agent("C", tools_allowed=["pay"])

    @leaf.capability("DO")
    async def do(ctx: Context) -> Any:
        return await ctx.use_tool("pay", amount=7)

    async def case(one: Node, two: Node, three: Node) -> None:
        asked = await one.call("A", "DO", user_id="u", request_id="r")
        assert (str(asked.status), went_on, paid) == ("needs_input", [], [])
        assert not [node for node in (one, two, three) if node._path.calls]  # it has left the memory of every node
        (approval,) = two.approvals()
        reply = await two.decide(approval.id, granted=is_granted, by="boss")
        assert reply is not None
        ended = {row.request_id: row.status for row in one.audit.rows() if row.kind == "settled"}
        assert [ended[name] for name in ("r", "r.1", "r.1.1")] == ["success" if is_granted else "error"] * 3
        assert (reply.data, paid) == ((7, [7]) if is_granted else (None, []))
        assert went_on == ["B", "A"]  # once
        kinds = [row.kind for row in one.audit.rows() if row.request_id == "r.1.1"]
        assert kinds == ["admitted", "paused", "settled"]

    on_three(
        case, caller("A", "B", went_on), caller("B", "C", went_on), leaf, tools=[Tool(name="pay", function=pay, risk=Risk.HIGH)]
    )


def test_a_call_that_is_cancelled_ends_on_every_node_it_reached(on_three: Callable[..., None]) -> None:
    began, stopped = asyncio.Event(), asyncio.Event()
    leaf = Agent("C")

    @leaf.capability("DO")
    async def do(ctx: Context) -> None:
        began.set()
        try:
            await asyncio.sleep(3_600)
        finally:
            stopped.set()

    async def case(one: Node, two: Node, three: Node) -> None:
        handle = one.start_call("A", "DO", user_id="u", request_id="r", timeout_ms=60_000)
        await began.wait()
        await three._path.durable()  # its acceptance, without which there is nothing to end
        assert handle.cancel()
        assert str((await handle.reply()).status) == "cancelled"
        await stopped.wait()
        ended = {row.request_id: row.status for row in one.audit.rows() if row.kind == "settled"}
        assert ended == dict.fromkeys(("r", "r.1", "r.1.1"), "cancelled")

    on_three(case, caller("A", "B", []), caller("B", "C", []), leaf)
