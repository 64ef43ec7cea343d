"""An id that an agent outside chooses for a request is idempotent within the call it speaks for, also after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from death import die

from comity import Agent, Context, Limits, Node, Reply

KDAP = {"source_agent": "CST", "target_agent": "ANL", "capability_code": "PAY", "request_id": "pay-1"}
DELEGATION = {
    "request_id": "pay-1",
    "origin_employee": "CST",
    "target_employee": "ANL",
    "user_id": "u",
    "parent_session_id": "s",
    "objective": "Pay",
    "constraints": {},
    "context_hints": [],
    "handoff_data": {},
}
HANDOFF = {"id": "pay-1", "from_agent": "CST", "to_agent": "ANL", "capability_id": "message"}
DIALECTS = {
    "kdap": lambda n: KDAP | {"inputs_json": {"n": n}},
    "delegation": lambda n: DELEGATION | {"input": str(n)},
    "contextcore": lambda n: HANDOFF | {"task": str(n)},
}
ANSWERED = {"SUCCESS", "success", "completed"}


class Team:
    """An agent that sends documents for its call, and one that is paid once for each that is taken."""

    def __init__(self, send: Callable[[Context], Awaitable[Any]], work_s: float = 1) -> None:
        self.ran: list[Any] = []
        self.cst, self.anl = Agent("CST"), Agent("ANL")

        @self.cst.capability("GO")
        async def go(ctx: Context):
            return await send(ctx)

        @self.anl.capability("PAY")
        async def pay(ctx: Context, n: int = 0) -> dict:
            ctx.report_usage(prompt_tokens=10)
            self.ran.append(n)
            await asyncio.sleep(work_s)
            return {"paid": n}

        @self.anl.capability("message")
        async def message(ctx: Context) -> dict:
            self.ran.append(int(ctx.request.message))
            return {"paid": int(ctx.request.message)}

    @property
    def agents(self) -> list[Agent]:
        return [self.cst, self.anl]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_same_request_runs_once_another_under_its_id_is_refused_and_the_audit_names_it(make_node, dialect):
    answers: list[dict] = []

    async def send(ctx: Context) -> None:
        for n in (5, 5, 99, 5):
            document = DIALECTS[dialect](n)
            answers.append(await node.receive(document, dialect=dialect, user_id="u", token=ctx.token))

    team = Team(send)
    async with make_node(team.agents) as node:
        reply = await node.call("CST", "GO", user_id="u", request_id="root")
        rows = node.audit.rows(root_id="root")
        assert node.audit.verify().ok
    assert team.ran == [5]
    assert [str(answer.get("status")) in ANSWERED for answer in answers] == [True, True, False, True]
    assert answers[0] == answers[1] == answers[3]
    assert "IDENTITY_REQUEST_ID_REUSED" in str(answers[2])
    assert "'pay-1'" in str(answers[2])
    assert reply.usage.calls == 1
    below = [(row.kind, row.request_id, row.parent_id) for row in rows if row.target == "ANL"]
    assert below == [
        ("admitted", "root.@pay-1", "root"),
        ("settled", "root.@pay-1", "root"),
        ("refused", "pay-1", None),
    ]


async def test_a_repeated_request_joins_the_one_under_way_and_is_charged_once(make_node):
    async def send(ctx: Context) -> list:
        document = DIALECTS["kdap"](5)
        return await asyncio.gather(*(node.receive(document, dialect="kdap", user_id="u", token=ctx.token) for _ in range(20)))

    team = Team(send)
    async with make_node(team.agents, limits=Limits(calls_max=3, tokens_max=15)) as node:
        reply = await node.call("CST", "GO", user_id="u")
    assert team.ran == [5]
    assert {answer["status"] for answer in reply.data} == {"SUCCESS"}
    assert (reply.usage.calls, reply.usage.prompt_tokens) == (1, 10)


async def test_an_id_belongs_to_the_call_it_is_used_in(make_node):
    async def send(ctx: Context) -> Any:
        answer = await node.receive(DIALECTS["kdap"](5), dialect="kdap", user_id=ctx.request.user_id, token=ctx.token)
        return answer["status"], (await ctx.call("ANL", "PAY", {"n": 7})).request_id

    team = Team(send)
    async with make_node(team.agents) as node:
        for user in ("u", "v"):
            reply = await node.call("CST", "GO", user_id=user, request_id=f"of-{user}")
            assert reply.data == ["SUCCESS", f"of-{user}.1"]  # what a node numbers is counted apart
        own = await node.call("ANL", "PAY", {"n": 8}, user_id="u", request_id="pay-1")
    assert own.data == {"paid": 8}
    assert team.ran == [5, 7, 5, 7, 8]


@pytest.mark.parametrize("chosen", ["1", "@1", "a b", "ü"])
async def test_no_chosen_id_is_one_that_the_node_makes(make_node, chosen):
    async def send(ctx: Context) -> Any:
        first = await ctx.call("ANL", "PAY", {"n": 1})
        answer = await node.receive(DIALECTS["kdap"](2) | {"request_id": chosen}, dialect="kdap", user_id="u", token=ctx.token)
        return first.data, answer["result_json"]

    team = Team(send)
    async with make_node(team.agents) as node:
        assert (await node.call("CST", "GO", user_id="u")).data == [{"paid": 1}, {"paid": 2}]


@pytest.mark.parametrize("chosen", ["x.1", "x#1", "y" * 250])
async def test_an_id_that_could_be_a_nodes_own_is_refused(make_node, chosen):
    async def send(ctx: Context) -> Any:
        document = DIALECTS["kdap"](2) | {"request_id": chosen}
        return await node.receive(document, dialect="kdap", user_id="u", token=ctx.token)

    team = Team(send)
    async with make_node(team.agents) as node:
        answer = (await node.call("CST", "GO", user_id="u", request_id="a-root")).data
        assert (answer["error_code"], answer["request_id"], team.ran) == ("IDENTITY_INVALID", chosen, [])
        assert [row.error_code for row in node.audit.rows() if row.kind == "refused"] == ["IDENTITY_INVALID"]


async def test_what_was_refused_may_be_asked_for_again_under_its_id(make_node):
    codes: list[Any] = []

    async def send(ctx: Context) -> None:
        for target in ("NOBODY", "ANL"):
            document = DIALECTS["kdap"](5) | {"target_agent": target}
            answer = await node.receive(document, dialect="kdap", user_id="u", token=ctx.token)
            codes.append(answer.get("error_code"))

    team = Team(send)
    async with make_node(team.agents) as node:
        await node.call("CST", "GO", user_id="u")
        own = await node.call("ANL", "PAY", {"n": 8}, user_id="v", request_id="pay-1")
    assert (codes, team.ran, own.data) == (["ROUTING_UNKNOWN_AGENT", None], [5, 8], {"paid": 8})


def test_after_a_restart_the_same_request_gets_the_stored_reply_and_is_charged_once(tmp_path):
    told: list[dict] = []
    lives: list[Node] = []

    async def send(ctx: Context) -> Any:
        for n in (5, 5) if len(lives) == 1 else (5, 5, 6):
            answer = await lives[-1].receive(DIALECTS["kdap"](n), dialect="kdap", user_id="u", token=ctx.token)
            told.append(answer)
        if len(lives) == 1:
            await asyncio.Event().wait()
        return ctx.tokens_left

    team = Team(send, work_s=0)

    def node() -> Node:
        lives.append(Node(team.agents, store=tmp_path / "s.db", lag_ms=None, limits=Limits(tokens_max=25)))
        return lives[-1]

    async def first_life() -> None:
        await node().start()
        lives[0].start_call("CST", "GO", user_id="u", request_id="root")
        while len(told) < 2:
            await asyncio.sleep(0)
        await die(lives[0])

    async def second_life() -> Reply:
        async with node() as again:
            return await again.call("CST", "GO", user_id="u", request_id="root")

    asyncio.run(first_life())
    reply = asyncio.run(second_life())
    assert team.ran == [5]
    assert [one["status"] for one in told] == ["SUCCESS"] * 4 + ["ERROR"]
    assert all(one == told[0] for one in told[:4])
    assert (reply.data, reply.usage.calls, reply.usage.prompt_tokens) == (15, 1, 10)
