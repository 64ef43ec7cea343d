"""What a call that has ended still tries to do: it changes nothing, and is told so."""

from __future__ import annotations

import asyncio
from typing import Any

from comity import Agent, Context, Node
from comity.errors import RefusedError


def told(doing: Any, *args: Any, **more: Any) -> str:
    try:
        doing(*args, **more)
    except RefusedError as error:
        return error.code
    return ""


def team(kept: dict[str, Any]) -> Agent:
    agent = Agent("A", on_activate=lambda address, state: state.setdefault("made", 1))

    @agent.capability("STUBBORN")
    async def stubborn(ctx: Context) -> str:
        ctx.state["early"] = 1
        kept["state"] = ctx.state
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        kept["codes"] = [
            told(ctx.session.learn, "late", 1),
            told(ctx.session.say, "late"),
            told(ctx.insight, "risk", summary="late", confidence=0.5),
            told(lambda: ctx.state),
        ]
        kept["state"]["late"] = 1
        return "late"

    @agent.capability("LEAK")
    async def leak(ctx: Context) -> None:
        ctx.state["list"] = [1]
        kept.update(ctx=ctx, session=ctx.session, state=ctx.state)

    @agent.capability("LOOK")
    async def look(ctx: Context) -> dict:
        return {"facts": ctx.session.facts, "turns": len(ctx.session.history()), "state": ctx.state}

    return agent


async def test_code_that_does_not_stop_at_its_deadline_changes_nothing_any_more(make_node) -> None:
    kept: dict[str, Any] = {}
    async with make_node([team(kept)]) as node:
        assert (await node.call("A", "STUBBORN", user_id="u", session_id="s", timeout_ms=100)).status == "timeout"
        await asyncio.sleep(1)
        seen = await node.call("A", "LOOK", user_id="u", session_id="s")
        await node.flush_spans()
        insights = node.spans.find('{ .insight.type = "risk" }')
    assert kept["codes"] == ["CALL_CANCELLED"] * 4
    assert seen.data == {"facts": {}, "turns": 1, "state": {"made": 1, "early": 1}}  # that it timed out
    assert insights == []


def test_what_a_call_left_behind_changes_nothing_once_it_has_ended(tmp_path) -> None:
    async def main() -> None:
        kept: dict[str, Any] = {}
        async with Node([team(kept)], store=tmp_path / "s.db") as node:
            await node.call("A", "LEAK", user_id="u", session_id="s")
            kept["state"]["list"].append(2)
            kept["state"]["after"] = 1
            codes = [told(kept["session"].learn, "after", 1), told(lambda: kept["ctx"].state)]
            seen = await node.call("A", "LOOK", user_id="u", session_id="s")
            kept["state"]["list"].append(3)
        assert codes == ["CALL_CANCELLED"] * 2
        async with Node([team({})], store=tmp_path / "s.db") as node:
            again = await node.call("A", "LOOK", user_id="u", session_id="s")
        assert seen.data == {"facts": {}, "turns": 0, "state": {"made": 1, "list": [1]}}
        assert again.data == {"facts": {}, "turns": 1, "state": {"made": 1, "list": [1]}}  # what `LOOK` answered

    asyncio.run(main())


async def test_calls_at_one_address_that_overlap_share_its_state(make_node) -> None:
    counter = Agent("COUNT")

    @counter.capability("ADD")
    async def add(ctx: Context, seconds: float) -> int:
        state = ctx.state
        await asyncio.sleep(seconds)
        state["n"] = state.get("n", 0) + 1
        return state["n"]

    async with make_node([counter]) as node:
        first = asyncio.create_task(node.call("COUNT", "ADD", {"seconds": 3}, user_id="u"))
        await asyncio.sleep(1)
        counts = [(await node.call("COUNT", "ADD", {"seconds": 0.5}, user_id="u")).data for _ in range(2)]
        counts.append((await first).data)
        counts.append((await node.call("COUNT", "ADD", {"seconds": 0}, user_id="u")).data)
    assert counts == [1, 2, 3, 4]
