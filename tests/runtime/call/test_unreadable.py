"""A store in which something cannot be read: it is named and left out, and everything else is there."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from comity import Agent, Context, Node, Status, Tool
from comity.cli.main import main
from comity.core.journal.records import StoredCall
from comity.errors import UnavailableError

agent = Agent("agent", tools_allowed=["ask"])
REPLY = StoredCall.__struct_fields__.index("reply")


@agent.capability("NOTE")
async def note(ctx: Context) -> dict:
    ctx.session.learn("a", 1)
    return ctx.session.facts


@agent.capability("ASK")
async def ask(ctx: Context) -> str:
    return await ctx.use_tool("ask")


def answer() -> str:
    return "yes"


def node_on(store: Path) -> Node:
    return Node([agent], store=store, lag_ms=None, tools=[Tool(name="ask", function=answer, risk="high")])


@pytest.fixture
def store(tmp_path) -> Path:
    """A store with two sessions, of which one and all that belongs to it cannot be read."""
    path = tmp_path / "s.db"

    async def fill() -> None:
        async with node_on(path) as node:
            for name in ("good", "bad", "broken"):
                session_id = "good" if name == "good" else "bad"
                assert (await node.call("agent", "NOTE", user_id="u", session_id=session_id, request_id=name)).ok
            for name in ("good", "bad"):
                await node.call("agent", "ASK", user_id="u", session_id=name, request_id=f"ask-{name}")

    asyncio.run(fill())
    with closing(sqlite3.connect(path)) as connection, connection:
        one = "SELECT data FROM documents WHERE kind = ? AND key = ?"
        change = "UPDATE documents SET data = ? WHERE kind = ? AND key = ?"
        for kind, key, wrong in (
            ("session", "default\x1fbad", {"workflow_position": 3}),
            ("approval", "ask-bad#1", {"decided_by": 17}),
        ):
            (data,) = connection.execute(one, (kind, key)).fetchone()
            connection.execute(change, (json.dumps(json.loads(data) | wrong).encode(), kind, key))
        (body,) = connection.execute("SELECT body FROM calls WHERE request_id = 'bad'").fetchone()
        fields = json.loads(body)
        fields[REPLY]["usage"] = {"prompt_tokens": 12.5}
        connection.execute("UPDATE calls SET body = ? WHERE request_id = 'bad'", (json.dumps(fields).encode(),))
        connection.execute("""UPDATE calls SET body = CAST('["bad"' AS BLOB) WHERE request_id = 'broken'""")
    connection.close()
    return path


def test_what_cannot_be_read_is_its_own_error_and_keeps_nobody_from_the_rest(store, caplog):
    async def run() -> None:
        async with node_on(store) as node:
            assert (await node.call("agent", "NOTE", user_id="u", session_id="good", request_id="good")).ok
            assert (await node.call("agent", "NOTE", user_id="u", session_id="good")).data == {"a": 1}
            for how in ({"session_id": "bad"}, {"session_id": "bad", "request_id": "bad"}, {"request_id": "broken"}):
                reply = await node.call("agent", "NOTE", user_id="u", **how)
                assert (reply.status, reply.error.code) == (Status.REFUSED, "STORE_UNAVAILABLE")
            assert [one.id for one in node.approvals()] == ["ask-good#1"]
            known = {call.request_id for call in node._journal.calls(limit=100)}
            assert {"good", "ask-good", "ask-bad"} <= known
            assert known.isdisjoint({"bad", "broken"})
            assert node.export_session("good")["facts"]["a"]["value"] == 1
            assert (await node.decide("ask-good#1", granted=True, by="ann")).data == "yes"
            assert node.failure is None

    asyncio.run(run())
    assert "the call bad cannot be read" in caplog.text
    assert "the question ask-bad#1 cannot be read" in caplog.text


def test_what_cannot_be_read_can_be_erased_and_its_session_begun_anew(store):
    async def run() -> None:
        async with node_on(store) as node:
            assert await node.erase_session("good") > 0
            assert await node.erase_session("bad") >= 4  # two calls, the session, the question
            assert (await node.call("agent", "NOTE", user_id="u", session_id="bad", request_id="bad")).data == {"a": 1}
            assert (await node.call("agent", "NOTE", user_id="u", request_id="broken")).ok
            assert node.approvals() == []

    asyncio.run(run())


def test_commands_show_the_rest_name_what_is_left_out_and_end_as_damaged(store, capsys):
    def comity(*words: str) -> tuple[int, str]:
        code = main([*words, "--store", str(store)])
        told = capsys.readouterr()
        return code, told.out + told.err

    code, told = comity("sessions", "list")
    assert code == 5
    assert "good" in told
    assert "session bad: Expected `str`, got `int` - at `$.workflow_position`" in told
    code, told = comity("approvals", "list", "--all")
    assert code == 5
    assert "ask-good#1" in told
    assert "approval ask-bad#1: Expected `str`" in told
    assert comity("sessions", "show", "good")[0] == 0
    code, told = comity("sessions", "show", "bad")
    assert code == 5
    assert "sessions erase" in told
    assert comity("sessions", "erase", "bad", "--yes")[0] == 0
    assert comity("sessions", "list")[0] == 0
    assert comity("approvals", "list", "--all")[0] == 0


def test_a_question_that_cannot_be_read_cannot_be_answered_and_asking_again_does_not_help(store):
    async def run() -> None:
        async with node_on(store) as node:
            with pytest.raises(UnavailableError, match=r"the question 'ask-bad#1' cannot be read: Expected `str`") as caught:
                await node.decide("ask-bad#1", granted=True, by="ann")
            assert (caught.value.code, caught.value.retryable) == ("STORE_UNAVAILABLE", False)

    asyncio.run(run())
