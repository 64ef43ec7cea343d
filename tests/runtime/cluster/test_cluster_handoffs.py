"""Handoffs inside a call, where nodes share the work: they are done once, wherever a receiver is, also when the caller moves."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from cluster_world import World, die, play

from comity import Agent, Context, Node


def boss(asked: list[str]) -> Agent:
    agent = Agent("BOSS")

    @agent.capability("ASK", timeout_ms=60_000)
    async def ask(ctx: Context) -> str:
        asked.append(ctx.request.request_id)
        return (await ctx.hand_off("HELP", "DO", {"what": "it"}, timeout_ms=30_000)).unwrap()

    return agent


def helper(done: list[str], seconds: float = 0.0) -> Agent:
    agent = Agent("HELP")

    @agent.capability("DO", timeout_ms=30_000)
    async def do(what: str) -> str:
        await asyncio.sleep(seconds)
        done.append(what)
        return f"did {what}"

    return agent


def test_what_an_agent_hands_off_is_done_on_another_node() -> None:
    asked: list[str] = []
    done: list[str] = []

    async def case(world: World, one: Node, two: Node) -> None:
        reply = await one.call("BOSS", "ASK", user_id="u", request_id="r")
        assert (reply.data, done, asked) == ("did it", ["it"], ["r"])
        assert world.kinds("r.1") == world.kinds("r") == ["admitted", "settled"]

    play(case, [boss(asked)], [helper(done)])


def test_a_call_that_moves_waits_for_the_handoff_it_made() -> None:
    asked: list[str] = []
    done: list[str] = []

    async def case(world: World, one: Node, two: Node, three: Node) -> None:
        reply = asyncio.ensure_future(two.call("BOSS", "ASK", user_id="u", request_id="r"))
        await asyncio.sleep(1)
        holder = {"n1": one, "n2": two}[world.leases.find("BOSS").holder]
        if holder is one:
            world.leases.bury("n1")
            await die(one)
        else:
            holder._path.placement.holds.spoil("BOSS")
        assert (await reply).data == "did it"
        assert (done, asked) == (["it"], ["r", "r"])
        assert world.kinds("r.1") == ["admitted", "settled"]

    play(case, [boss(asked)], [boss(asked)], [helper(done, seconds=12.0)])


@pytest.mark.parametrize("waits", [False, True])
def test_on_one_store_a_handoff_crosses_processes(tmp_path: Path, waits: bool) -> None:
    asked: list[str] = []
    done: list[str] = []

    async def main() -> None:
        store = tmp_path / "work.db"
        async with Node([boss(asked)], store=store) as one:
            early = asyncio.ensure_future(one.call("BOSS", "ASK", user_id="u", request_id="r")) if waits else None
            while waits and not asked:
                await asyncio.sleep(0.001)
            async with Node([helper(done)], store=store):
                reply = await (early or one.call("BOSS", "ASK", user_id="u", request_id="r"))
                assert (reply.data, done, asked) == ("did it", ["it"], ["r"])
            assert one.audit.verify().ok

    asyncio.run(main())
