"""Erasing a session erases every span of its calls, of whatever kind, and none of another session or tenant."""

import asyncio
from collections import Counter

import pytest

from comity import Agent, AsyncHandoffManager, AsyncHandoffReceiver, Context, Node, Tool
from comity.testing import ScriptedModel

KINDS = {
    "invoke_agent BOSS": 1,
    "invoke_agent WORK": 1,
    "invoke_agent THINK": 1,
    "invoke_agent NOBODY": 1,
    "handoff look": 1,
    "chat scripted": 1,
    "execute_tool add": 1,
    "own": 1,
    "insight.risk": 2,
}

SAID = '{"thought": "", "status": "success", "data": {}, "message": "well"}'


def team():
    boss = Agent("BOSS", tools_allowed=["add"])
    work = Agent("WORK")
    thinker = Agent("THINK", model=ScriptedModel([SAID] * 10, name="scripted"), can_call=[])

    @boss.capability("ASK")
    async def ask(ctx: Context):
        await ctx.call("WORK", "DO")
        await ctx.call("NOBODY", "X")
        await ctx.call("THINK", "message", message="what?")
        await ctx.use_tool("add", a=1, b=2)
        await ctx.hand_off("elsewhere", "look", timeout_ms=50)
        with ctx.span("own", attributes={"comity.tenant.id": "forged", "q": "what was said"}):
            pass
        ctx.insight("risk", summary="found", confidence=0.5)

    @work.capability("DO")
    async def do(ctx: Context):
        ctx.insight("risk", summary="found", confidence=0.5)

    return [boss, work, thinker]


TOOLS = [Tool(name="add", function=lambda a, b: a + b)]


@pytest.fixture(params=["memory", "store"])
def place(request, tmp_path):
    return None if request.param == "memory" else tmp_path / "store.db"


def names(node):
    return Counter(span.name for span in node.spans.find("{ }"))


async def ask(node, **who):
    await node.call("BOSS", "ASK", user_id="u", **who)
    await node.flush_spans()


@pytest.mark.parametrize("who", [{"session_id": "s"}, {"request_id": "s"}], ids=["named", "by its root call"])
def test_every_kind_of_span_is_erased_with_its_session_and_no_other_tenants(place, who):
    async def scenario():
        async with Node(team(), store=place, tools=TOOLS, lag_ms=None) as node:
            await ask(node, tenant_id="t1", **who)
            assert names(node) == KINDS
            await node.erase_session("s")
            assert names(node) == KINDS  # that of tenant default is another
            await node.erase_session("s", tenant_id="t1")
            assert names(node) == {}

    asyncio.run(scenario())


def test_spans_on_their_way_to_the_store_are_erased_with_their_session(place):
    """Dies where erasing does not wait for the recorder: the spans would come after it."""

    async def scenario():
        async with Node(team(), store=place, lag_ms=None) as node:
            await node.call("WORK", "DO", user_id="u", session_id="s")
            await node.erase_session("s")
            await node.flush_spans()
            assert names(node) == {}

    asyncio.run(scenario())


def test_erasing_leaves_other_sessions_and_tenants_alone(place):
    async def scenario():
        async with Node(team(), store=place, tools=TOOLS, lag_ms=None) as node:
            others = ({"tenant_id": "t2", "session_id": "s"}, {"session_id": "s2"}, {"request_id": "r"})
            await ask(node, session_id="s")
            for who in others:
                await ask(node, **who)
            before = names(node)
            await node.erase_session("s")
            assert before - names(node) == KINDS
            assert names(node)["insight.risk"] == 2 * len(others)

    asyncio.run(scenario())


@pytest.mark.parametrize("tenant_id", ["default", "t1"])
def test_a_handoff_without_a_session_is_erased_by_its_id(place, tenant_id):
    async def scenario():
        async with Node(store=place, lag_ms=None) as node:
            manager = AsyncHandoffManager(node=node, user_id="u", tenant_id=tenant_id)
            receiver = AsyncHandoffReceiver("o11y", node=node, tenant_id=tenant_id)
            made = await manager.create_handoff("o11y", "look")
            await receiver.take()
            await receiver.complete(made)
            await manager.await_result(made)
            await node.flush_spans()
            assert names(node) == {"handoff look": 1, "handoff.result look": 1}
            await node.erase_session(made, tenant_id=tenant_id)
            assert names(node) == {}

    asyncio.run(scenario())
