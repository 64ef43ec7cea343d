"""Sessions in documents: whose they are is checked wherever they are named, and a delegate has a conversation of its own."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from comity import Agent, Context, Node, Reply
from comity.core.session.session import Session
from comity.dialects.delegation import encode_headers

DELEGATION = {
    "origin_employee": "prime",
    "target_employee": "byte",
    "user_id": "u",
    "parent_session_id": "ROOT",
    "objective": "o",
    "input": "Read it",
    "constraints": {},
    "context_hints": [],
    "handoff_data": {},
}
KDAP = {"source_agent": "prime", "target_agent": "byte", "capability_code": "message", "inputs_json": {}}


class Team:
    """Prime delegates what it is given, with its token; byte tells where it is."""

    def __init__(self, *documents: dict[str, Any], dialect: str = "delegation") -> None:
        self.prime, self.byte = Agent("prime"), Agent("byte")
        self.seen: list[tuple[str, str | None]] = []
        self.headers: list[str] = []
        self.answers: list[dict] = []
        self.hidden: dict[str, dict[str, int]] = {}  # how many values sessions hide, by kind
        self.node: Node

        @self.byte.capability("message")
        async def message(ctx: Context) -> Reply:
            self.seen.append((ctx.request.session_id, ctx.request.parent_session_id))
            self.headers.append(encode_headers(ctx.request)["X-Agent-Parent-Session"])
            return Reply.success(message=f"It says: {ctx.request.message}")

        @self.prime.capability("GO")
        async def go(ctx: Context) -> list[str]:
            for number, document in enumerate(documents):
                asked = {"request_id": f"d{number}"} | document
                self.answers.append(await self.node.receive(asked, dialect=dialect, user_id="u", token=ctx.token))
            return [answer.get("result", "") for answer in self.answers]

    async def run(
        self, make_node, *, session_id: str | None = "ROOT", **more: Any
    ) -> tuple[Reply, dict[str, Session | None], list]:
        """Return the reply, what sessions there are by now, and the refused rows."""
        async with make_node([self.prime, self.byte], **more) as self.node:
            await self.node.call("byte", "message", user_id="v", session_id="of-v")
            await self.node.call("byte", "message", user_id="v", request_id="call-of-v")
            self.seen.clear()
            self.headers.clear()
            reply = await self.node.call("prime", "GO", user_id="u", request_id="root", session_id=session_id)
            self.hidden = {one: self.node.hidden_in(one) for one in ("ROOT", "of-v")}
            ids = ("ROOT", "my-child", "root.@d0", "root.@d1")
            sessions = {one: self.node.session(one) for one in ids}
            return reply, sessions, [row for row in self.node.audit.rows() if row.kind == "refused"]


async def test_a_delegate_runs_in_the_session_it_is_given_below_that_of_its_delegator(make_node):
    team = Team(DELEGATION | {"child_session_id": "my-child"})
    _, sessions, refused = await team.run(make_node)
    assert (team.seen, team.headers, refused) == ([("my-child", "ROOT")], ["ROOT"], [])
    assert team.answers[0]["child_session_id"] == "my-child"
    child = sessions["my-child"]
    assert (child.parent_id, child.user_id) == ("ROOT", "u")
    assert [(turn.role, turn.text) for turn in child.turns] == [("prime", "Read it"), ("byte", "It says: Read it")]
    assert [turn.role for turn in sessions["ROOT"].turns] == ["prime"]  # its own answer, and nothing of the delegate


@pytest.mark.parametrize("unsaid", [{}, {"child_session_id": None}])
async def test_without_one_it_gets_a_new_session_of_its_own(make_node, unsaid):
    team = Team(DELEGATION | unsaid, DELEGATION | unsaid)
    _, sessions, _ = await team.run(make_node)
    assert team.seen == [("root.@d0", "ROOT"), ("root.@d1", "ROOT")]
    assert [answer["child_session_id"] for answer in team.answers] == ["root.@d0", "root.@d1"]
    assert [sessions[one].parent_id for one in ("root.@d0", "root.@d1")] == ["ROOT", "ROOT"]


async def test_a_session_of_its_own_can_be_gone_on_with_by_its_user_alone(make_node):
    team = Team(DELEGATION | {"child_session_id": "my-child"}, DELEGATION | {"child_session_id": "my-child", "input": "More"})
    _, sessions, _ = await team.run(make_node)
    assert team.seen == [("my-child", "ROOT")] * 2
    assert [turn.text for turn in sessions["my-child"].turns if turn.role == "prime"] == ["Read it", "More"]


async def test_the_session_of_the_delegator_may_be_named_and_stays_the_same(make_node):
    team = Team(DELEGATION | {"child_session_id": "ROOT"})
    await team.run(make_node)
    assert (team.seen, team.headers) == ([("ROOT", None)], ["ROOT"])


async def test_a_delegator_without_a_named_session_is_named_by_its_call(make_node):
    team = Team(DELEGATION)
    await team.run(make_node, session_id=None)
    assert team.seen == [("root.@d0", "root")]


@pytest.mark.parametrize("theirs", ["of-v", "call-of-v"])
@pytest.mark.parametrize("field", ["parent_session_id", "child_session_id"])
async def test_naming_another_users_session_is_refused_and_recorded(make_node, field, theirs):
    team = Team(DELEGATION | {field: theirs})
    _, _, refused = await team.run(make_node)
    assert (team.seen, [(row.error_code, row.user_id) for row in refused]) == ([], [("IDENTITY_MISMATCH", "u")])
    assert team.answers[0]["status"] == "failed"


async def test_another_users_session_that_is_named_learns_nothing_of_what_is_hidden_in_the_delegators(make_node):
    team = Team(DELEGATION | {"input": "Mail ann@example.org"}, DELEGATION | {"child_session_id": "of-v"})
    await team.run(make_node)
    assert team.hidden == {"ROOT": {"EMAIL": 1}, "of-v": {}}


@pytest.mark.parametrize("theirs", ["of-v", "call-of-v"])
async def test_so_it_is_in_the_context_of_a_kdap_request_with_a_token(make_node, theirs):
    team = Team(KDAP | {"context": {"session_id": theirs}}, KDAP | {"context": {"session_id": "ROOT"}}, dialect="kdap")
    _, _, refused = await team.run(make_node)
    assert (team.seen, [row.error_code for row in refused]) == ([("ROOT", None)], ["IDENTITY_MISMATCH"])


@pytest.mark.parametrize("theirs", ["of-v", "call-of-v"])
@pytest.mark.parametrize("mine", [{}, {"session_id": "new"}, {"session_id": "mine"}])
async def test_so_it_is_for_a_user_at_every_door(make_node, mine, theirs):
    team = Team()
    document = DELEGATION | {"origin_employee": "user", "request_id": "r"}
    async with make_node([team.prime, team.byte]) as node:
        await node.call("byte", "message", user_id="v", session_id="of-v")
        await node.call("byte", "message", user_id="v", request_id="call-of-v")
        await node.call("byte", "message", user_id="u", session_id="mine")
        team.seen.clear()
        reply = await node.call("byte", "message", user_id="u", parent_session_id=theirs, **mine)
        started = await node.start_call("byte", "message", user_id="u", parent_session_id=theirs, **mine).reply()
        assert reply.error.code == started.error.code == "IDENTITY_MISMATCH"
        for claimed in ({"parent_session_id": theirs}, {"child_session_id": theirs}):
            answer = await node.receive(document | claimed, dialect="delegation", user_id="u", **mine)
            assert answer["status"] == "failed"
        rows = [row.error_code for row in node.audit.rows() if row.kind == "refused"]
    assert (team.seen, rows) == ([], ["IDENTITY_MISMATCH"] * 4)


async def test_a_users_delegation_has_its_parent_session_too(make_node):
    team = Team()
    document = DELEGATION | {"origin_employee": "user", "request_id": "r"}
    async with make_node([team.prime, team.byte]) as node:
        for more in ({}, {"child_session_id": "my-child", "request_id": "q"}):
            await node.receive(document | more, dialect="delegation", user_id="u")
        assert [node.session(one).parent_id for one in ("r", "my-child")] == ["ROOT", "ROOT"]
    assert team.seen == [("r", "ROOT"), ("my-child", "ROOT")]


async def test_personal_data_crosses_between_sessions_of_one_user_and_comes_back_in_its_place(make_node):
    team = Team(DELEGATION | {"input": "Mail ann@example.org", "child_session_id": "my-child"})
    reply, sessions, _ = await team.run(make_node)
    assert reply.data == ["It says: Mail ann@example.org"]
    child = sessions["my-child"]
    assert all("ann@example.org" not in turn.text for turn in child.turns)  # hidden there as everywhere


def test_a_session_that_was_given_is_there_after_a_restart_and_is_its_users(tmp_path):
    team = Team(DELEGATION | {"child_session_id": "my-child", "input": "Mail ann@example.org"})
    make_node = partial(Node, store=tmp_path / "s.db", lag_ms=None)

    async def second_life() -> None:
        async with make_node([team.prime, team.byte]) as node:
            assert node.session("my-child").parent_id == "ROOT"
            assert "ann@example.org" in str(node.export_session("my-child"))
            stranger = await node.call("byte", "message", user_id="v", session_id="my-child")
            assert stranger.error.code == "IDENTITY_MISMATCH"
            assert await node.erase_session("my-child")
            assert node.session("my-child") is None

    asyncio.run(team.run(make_node))
    asyncio.run(second_life())
