"""A store that cannot be read on behalf of a call: the call is answered, whatever happened to the store."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3

import pytest

from comity import Agent, Context, Node, Status, Tool
from comity.core.call.limits import ID_CHARS_MAX
from comity.errors import CallerError

agent, helper = Agent("agent", tools_allowed=["ask"]), Agent("helper")


@agent.capability("NOTE")
async def note(ctx: Context, text: str = "x") -> str:
    ctx.session.learn("a", text)
    return str((await ctx.call("helper", "HI")).status)


@agent.capability("ASK")
async def ask(ctx: Context) -> str:
    return await ctx.use_tool("ask")


@agent.capability("RUIN")
async def ruin(ctx: Context, folder: str) -> str:
    shutil.rmtree(folder)
    await asyncio.sleep(0.01)
    ctx.session.learn("a", 1)
    return "not so"


@helper.capability("HI")
async def hi() -> str:
    return "hi"


def answer() -> str:
    return "yes"


def node_in(folder) -> Node:
    return Node([agent, helper], store=folder / "s.db", lag_ms=None, tools=[Tool(name="ask", function=answer, risk="high")])


def test_a_store_whose_folder_is_gone_answers_every_call_and_says_so(tmp_path):
    async def run() -> None:
        folder = tmp_path / "store"
        folder.mkdir()
        node = node_in(folder)
        await node.start()
        assert (await node.call("agent", "NOTE", user_id="u", session_id="s")).ok
        shutil.rmtree(folder)
        calls = ({"session_id": "s"}, {"session_id": "new", "message": "hello"}, {"request_id": "r"}, {})
        replies = [await node.call("agent", "NOTE", user_id="u", **how) for how in calls]
        assert {reply.error.code for reply in replies} == {"STORE_UNAVAILABLE"}
        assert not any(reply.error.retryable for reply in replies[1:])
        assert node.failure is not None
        assert not node._path.calls  # nothing waits for ever
        await node.close()

    asyncio.run(run())


def test_a_call_during_which_the_folder_goes_is_answered_at_once(tmp_path):
    async def run() -> None:
        folder = tmp_path / "store"
        folder.mkdir()
        node = node_in(folder)
        await node.start()
        reply = await node.call(
            "agent", "RUIN", {"folder": str(folder)}, user_id="u", session_id="s", message="mail a@example.com"
        )
        assert (reply.status, reply.error.code) == (Status.ERROR, "STORE_UNAVAILABLE")
        assert node.failure is not None
        await node.close()

    asyncio.run(run())


def test_a_store_that_cannot_be_read_is_an_answer_and_no_exception(tmp_path):
    async def run() -> None:
        node = node_in(tmp_path)
        await node.start()
        reader, node._journal._reader = node._journal._reader, sqlite3.connect(tmp_path / "other.db")
        for how in ({"request_id": "r"}, {"session_id": "s"}):
            reply = await node.call("agent", "NOTE", user_id="u", **how)
            assert (reply.status, reply.error.code, reply.error.retryable) == (Status.REFUSED, "STORE_UNAVAILABLE", True)
        node._journal._reader.close()
        node._journal._reader = reader
        assert (await node.call("agent", "NOTE", user_id="u", request_id="r", session_id="s")).ok
        await node.close()

    asyncio.run(run())


ODD = [5, b"x", "", "\ud800", "a\x00", "x" * (ID_CHARS_MAX + 1), ["s"], True]


@pytest.mark.parametrize("name", ODD)
async def test_what_can_name_nothing_is_refused_at_every_door(make_node, name):
    async with make_node([agent, helper]) as node:
        for field in ("user_id", "tenant_id", "session_id", "parent_session_id"):
            reply = await node.call("agent", "NOTE", **{"user_id": "u", "session_id": "s", field: name})
            assert reply.error.code == "IDENTITY_INVALID"
            assert reply.error.problems[0].path == field
        for door in (node.session, node.resume_session, node.export_session):
            with pytest.raises(CallerError, match="session_id: must be printable"):
                door(name)
            with pytest.raises(CallerError, match="tenant_id: must be printable"):
                door("s", tenant_id=name)
        with pytest.raises(CallerError, match="session_id: must be printable"):
            await node.erase_session(name)
        with pytest.raises(CallerError, match="approval_id: must be printable"):
            await node.decide(name, granted=True, by="ann")


@pytest.mark.parametrize("tools", [5, "ask", ["ask", 5], [""], {"ask": 1}, ["\ud800"]])
async def test_tools_that_are_no_list_of_names_are_refused_by_both_doors(make_node, tools):
    async with make_node([agent, helper]) as node:
        reply = await node.call("agent", "NOTE", user_id="u", tools=tools)
        started = await node.start_call("agent", "NOTE", user_id="u", tools=tools).reply()
    assert reply.error.problems == started.error.problems
    assert (reply.error.code, reply.error.problems[0].path) == ("INPUT_VALIDATION_FAILED", "tools")


@pytest.mark.parametrize("tools", [["ask"], {"ask"}, ("ask",), None])
async def test_a_call_may_use_the_tools_that_it_names_and_without_a_list_all(make_node, tools):
    async with make_node([agent], tools=[Tool(name="ask", function=answer)]) as node:
        assert (await node.call("agent", "ASK", user_id="u", tools=tools)).data == "yes"
        assert (await node.call("agent", "ASK", user_id="u", tools=[])).error.code == "TOOL_NOT_PERMITTED"


@pytest.mark.parametrize(
    ("answer_given", "path"), [({"granted": "no", "by": "ann"}, "granted"), ({"granted": True, "by": 17}, "by")]
)
async def test_an_answer_that_is_none_is_refused_and_the_question_stays_open(make_node, answer_given, path):
    async with make_node([agent], tools=[Tool(name="ask", function=answer, risk="high")]) as node:
        asked = await node.call("agent", "ASK", user_id="u")
        with pytest.raises(CallerError, match=f"{path}: must"):
            await node.decide(asked.data["approval_id"], **answer_given)
        assert [one.granted for one in node.approvals()] == [None]
        assert (await node.decide(asked.data["approval_id"], granted=True, by="ann")).data == "yes"
