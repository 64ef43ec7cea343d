"""Who a call, a session and a reply belong to, whatever ids their callers choose."""

from __future__ import annotations

import asyncio

import pytest
from death import die

from comity import Agent, Context, Node, Tool
from comity.contextcore.handoffs.manager import AsyncHandoffManager
from comity.core.call.limits import ID_CHARS_MAX
from comity.errors import CallerError, RefusedError
from comity.runtime.call.draft import recordable

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


notes = Agent("notes")


@notes.capability("LEARN")
async def learn(ctx: Context, key: str, value: str = "") -> dict:
    ctx.session.learn(key, value)
    return dict(ctx.session.facts)


@notes.capability("ASK")
async def ask(text: str = "") -> str:
    return text


@notes.capability("FACTS")
async def facts(ctx: Context) -> list:
    return list(ctx.session.facts)


async def code(calling) -> str | None:
    reply = await calling
    return None if reply.error is None else reply.error.code


async def test_a_call_that_is_named_as_a_session_belongs_to_it_and_only_its_user_may_make_one(make_node) -> None:
    async with make_node([notes]) as node:
        await node.call("notes", "LEARN", {"key": "a"}, user_id="bob", session_id="order")
        assert await code(node.call("notes", "LEARN", {"key": "b"}, user_id="eve", request_id="order")) == "IDENTITY_MISMATCH"
        manager = AsyncHandoffManager(node=node, user_id="eve")
        with pytest.raises(RefusedError, match="another user"):
            await manager.create_handoff("notes", "ASK", inputs={"text": "x@example.com"}, handoff_id="order")
        mine = await node.call("notes", "LEARN", {"key": "c", "value": "bob@example.com"}, user_id="bob", request_id="order")
        assert mine.data == {"a": "", "c": "bob@example.com"}
        assert (await node.call("notes", "FACTS", user_id="bob", session_id="order")).data == ["a", "c"]


async def test_a_session_that_is_named_as_a_call_belongs_to_who_made_that(make_node) -> None:
    slow = Agent("slow")

    @slow.capability("WAIT")
    async def wait(ctx: Context) -> list:
        await asyncio.sleep(1)
        ctx.session.learn("mine", 1)
        return list(ctx.session.facts)

    async with make_node([notes, slow]) as node:
        waiting = asyncio.create_task(node.call("slow", "WAIT", user_id="ann", request_id="job"))
        await asyncio.sleep(0.5)
        stolen = [await code(node.call("notes", "LEARN", {"key": "x"}, user_id="eve", session_id="job"))]
        assert (await waiting).data == ["mine"]
        await node.call("notes", "ASK", user_id="ann", request_id="other")  # which needed no session
        stolen += [await code(node.call("notes", "ASK", user_id="eve", session_id=one)) for one in ("job", "other")]
        mine = [await code(node.call("notes", "ASK", user_id="ann", session_id=one)) for one in ("job", "other")]
        elsewhere = await code(node.call("notes", "ASK", user_id="eve", tenant_id="t2", session_id="job"))
    assert (stolen, mine, elsewhere) == (["IDENTITY_MISMATCH"] * 3, [None, None], None)


def test_a_session_is_its_users_from_the_first_call_or_handoff_in_it_also_for_another_process(tmp_path) -> None:
    def node() -> Node:
        return Node([notes], store=tmp_path / "s.db")

    async def stolen(one: Node) -> list[str | None]:
        return [await code(one.call("notes", "LEARN", {"key": "x"}, user_id="eve", session_id=name)) for name in ("s", "h")]

    async def lives() -> None:
        async with node() as one, node() as two:
            await one.call("notes", "ASK", {"text": "in private"}, user_id="bob", session_id="s")
            manager = AsyncHandoffManager(node=one, user_id="bob", session_id="h")
            await manager.create_handoff("notes", "ASK")
            assert await stolen(two) == ["IDENTITY_MISMATCH"] * 2
            refused = await one.call("notes", "NO SUCH", user_id="bob", session_id="never")
            assert refused.error is not None
        async with node() as three:
            assert await stolen(three) == ["IDENTITY_MISMATCH"] * 2
            assert await code(three.call("notes", "ASK", user_id="bob", session_id="s")) is None
            # What was refused stored nothing, and so bound nothing.
            assert await code(three.call("notes", "ASK", user_id="eve", session_id="never")) is None

    asyncio.run(lives())


async def test_a_handoff_does_not_take_the_id_of_a_call(make_node) -> None:
    async with make_node(team([])[0]) as node:
        asked = ("echo", "SAY", {"text": "a"})
        assert (await node.call(*asked, user_id="alice", request_id="order")).ok
        manager = AsyncHandoffManager("shop", "orc", node=node, user_id="bob")
        with pytest.raises(CallerError, match="belongs to another request"):
            await manager.create_handoff("echo", "SAY", inputs={"text": "b"}, handoff_id="order")
        assert (await node.call(*asked, user_id="alice", request_id="order")).data == "a"


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("name", "recorded"),
    [
        ("a" * ID_CHARS_MAX, "a" * ID_CHARS_MAX),
        ("a" * (ID_CHARS_MAX + 1), "a" * ID_CHARS_MAX),
        ("a\nb", "a\\nb"),
        (Text("ann"), "ann"),
        (5, "(int)"),
    ],
)
def test_a_name_that_cannot_be_one_is_recorded_escaped_and_cut(name, recorded):
    assert recordable(name) == recorded
