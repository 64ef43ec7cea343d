"""Calls between two served nodes: one trace, one user, limits that only shrink, progress and cancellation across."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from served import serving

from comity import Agent, Context, Limits, Node, Reply
from comity.core.access.claims import AT, Left
from comity.core.call.ledger import Account
from comity.core.call.outside import outside_of, standing_of
from comity.core.envelope.envelope import Request
from comity.engines.keys import KeyRing, Tokens
from comity.errors import CallerError, RefusedError
from comity.remote import RemoteAgent, remote_agents
from comity.remote.agent import lent
from comity.server.agent_calls import routes
from comity.server.app import Door

NOW = 1_800_000_000_000


def far_agents() -> list[Agent]:
    """Return the agents of the other node."""
    far, helper = Agent("FAR", description="Works elsewhere"), Agent("HELP")

    @far.capability("LOOK")
    async def look(ctx: Context, text: str) -> dict[str, Any]:
        ctx.progress({"step": 1})
        left = ctx.limits
        ctx.report_usage(prompt_tokens=3, completion_tokens=4)
        below = await ctx.call("HELP", "AID")
        return {
            "text": text, "user": ctx.request.user_id, "source": ctx.request.source, "chain": list(ctx.request.chain),
            "calls": left.calls_max, "depth": left.depth_max, "ms": left.timeout_ms, "tokens": left.tokens_max,
            "below": str(below.status), "message": ctx.request.message,
        }  # fmt: skip

    @far.capability("WAIT")
    async def wait(ctx: Context) -> Reply:
        return await ctx.call("HELP", "HANG")

    @far.capability("FAIL")
    async def fail() -> Reply:
        return Reply.failure("out of stock", code="STOCK_EMPTY")

    @helper.capability("AID")
    async def aid() -> None:
        return None

    @helper.capability("HANG")
    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            LEAVES.append("cancelled")

    return [far, helper]


LEAVES: list[str] = []


@contextlib.asynccontextmanager
async def two_nodes(*near_agents: Agent, limits: Limits | None = None, names: tuple[str, ...] = ("FAR",), back: bool = False):
    """Serve a node with the far agents, and a near node that trusts it; yield the near node, the far server, and the near one."""
    async with serving(Node(far_agents(), lag_ms=None), doors=[Door(routes)]) as far:
        now_ms = far.server.app.state.now_ms()
        tokens = Tokens(KeyRing(None, issuer="near", now_ms=now_ms))
        ring = far.server.app.state.auth.signed.tokens.ring
        ring.trust("near", tokens.ring.jwks(), tenants=("default",), now_ms=now_ms)
        agents = [RemoteAgent(f"{far.url}/v1/agents/{name}", keys=tokens) for name in names]
        near = Node([*near_agents, *agents], limits=limits, lag_ms=None)
        async with near:
            yield near, far, tokens


def boss(target: str = "FAR", capability: str = "LOOK", **inputs: Any) -> Agent:
    """Return an agent that calls the far one."""
    agent = Agent("BOSS")

    @agent.capability("GO")
    async def go(ctx: Context) -> Any:
        return await ctx.call(target, capability, inputs, message="please", timeout_ms=5_000)

    return agent


def test_a_remote_call_keeps_user_chain_and_trace_and_shrinks_limits():
    async def go() -> None:
        limits = Limits(calls_max=20, depth_max=4, tokens_max=1_000)
        async with two_nodes(boss(text="hi"), limits=limits) as (near, far, _):
            assert near.problems == ()
            reply = await near.call("BOSS", "GO", user_id="ann")
            data = reply.unwrap()
            assert (data["text"], data["user"], data["source"], data["below"]) == ("hi", "ann", "BOSS::near", "success")
            assert (data["chain"], data["message"]) == (["BOSS::near"], "please")
            assert 0 < data["calls"] < 20
            assert (data["depth"], data["tokens"]) == (4 - 1, 500)
            assert data["ms"] <= 5_000
            assert (reply.usage.total_tokens, reply.usage.calls) == (7, 2)  # FAR, and HELP below it
            assert {row.origin for row in far.server.node.audit.rows() if row.target == "FAR"} == {"BOSS::near"}
            await near.flush_spans()
            await far.server.node.flush_spans()
            traces = {span.trace_id for one in (near, far.server.node) for span in one.spans.find("{}")}
            assert len(traces) == 1

    asyncio.run(go())


def test_a_loop_across_two_nodes_is_refused_at_the_first_repeat():
    async def go() -> None:
        async with serving(Node(far_agents(), lag_ms=None), doors=[Door(routes)]) as far:
            state = far.server.app.state
            now_ms, signed = state.now_ms(), state.auth.signed
            tokens = Tokens(KeyRing(None, issuer="near", now_ms=now_ms))
            signed.tokens.ring.trust("near", tokens.ring.jwks(), tenants=("default",), now_ms=now_ms)
            from comity.core.access import Standing

            left = Left(deadline=now_ms + 9_000, calls=5, depth=3, fan_out=3)
            standing = Standing(chain=(f"FAR{AT}{signed.node_name}", "A::near"), left=left)
            token = tokens.for_agent(
                "A", audience=signed.node_name, user_id="u", standing=standing, scope="call:*/*", now_ms=now_ms
            )
            body = {"target": "FAR", "capability": "LOOK", "inputs": {"text": ""}, "request_id": "loop"}
            headers = {"authorization": f"Bearer {token}"}
            answer = await far.client.post("/v1/agent-calls", json=body, headers=headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (409, "ROUTING_CYCLE_DETECTED")

    asyncio.run(go())


def test_progress_is_told_here_and_a_failure_there_is_the_agents_own():
    async def go() -> None:
        async with two_nodes(boss("FAR", "FAIL")) as (near, _, _tokens):
            handle = near.start_call("FAR", "LOOK", {"text": "x"}, user_id="ann")
            told = [event.data async for event in handle.events() if event.kind == "progress"]
            assert told == [{"step": 1}]
            assert (await handle.reply()).data["source"] == "FAR::near"  # the agent that stands for it, as a user called it
            failed = await near.call("BOSS", "GO", user_id="ann")
            assert (failed.status, failed.error.code) == ("error", "STOCK_EMPTY")

    asyncio.run(go())


def test_cancelling_here_reaches_the_leaf_there():
    async def go() -> None:
        LEAVES.clear()
        async with two_nodes(boss("FAR", "WAIT")) as (near, far, _):
            handle = near.start_call("BOSS", "GO", user_id="ann")
            while not any(row.target == "HELP" for row in far.server.node.audit.rows()):
                await asyncio.sleep(0.01)
            assert handle.cancel()
            assert (await handle.reply()).status == "cancelled"
            while not LEAVES:
                await asyncio.sleep(0.01)
            ends = {row.target: row.status for row in far.server.node.audit.rows() if row.status}
            assert ends["FAR"] == "cancelled"

    asyncio.run(go())


def test_the_deadline_holds_though_the_other_node_hangs():
    async def go() -> None:
        async with two_nodes(boss("FAR", "WAIT")) as (near, _, _tokens):
            reply = await near.call("BOSS", "GO", user_id="ann", timeout_ms=300)
            assert (reply.ok, reply.error and reply.error.code) == (False, "CALL_TIMEOUT")

    asyncio.run(go())


def test_every_agent_of_a_node_can_be_had_and_an_untrusted_caller_gets_none():
    async def go() -> None:
        async with two_nodes() as (_, far, tokens):
            found = await asyncio.to_thread(remote_agents, far.url, keys=tokens)
            assert [one.id for one in found] == ["FAR", "HELP"]
            stranger = RemoteAgent(f"{far.url}/v1/agents/FAR", keys=Tokens(KeyRing(None, issuer="odd", now_ms=NOW)))
            async with Node([stranger], lag_ms=None) as node:
                assert "IDENTITY" in node.problems[0] or "401" in node.problems[0]
                assert (await node.call("FAR", "LOOK", {"text": ""}, user_id="u")).error.code == "ROUTING_UNKNOWN_CAPABILITY"

    asyncio.run(go())


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a/v1/agents/X",
        "http://far.example/v1/agents/X",
        "https://a:1/agents/X",
        "https://u:p@a/v1/agents/X",
        "https://a/v1/agents/",
    ],
)
def test_an_address_that_is_none_or_is_not_safe_is_refused(url):
    with pytest.raises(CallerError):
        RemoteAgent(url, keys=Tokens(KeyRing(None, issuer="near", now_ms=NOW)))


COUNTS = st.integers(0, 50)
LIMITS = st.builds(
    Limits, depth_max=st.integers(0, 6), fan_out_max=COUNTS, timeout_ms=st.integers(0, 9_000), timeout_ms_max=st.integers(0, 9_000),
    calls_max=COUNTS, tokens_max=st.none() | COUNTS,
)  # fmt: skip


@given(LIMITS, LIMITS, st.integers(0, 4), st.booleans(), st.integers(0, 9_000))
def test_limits_only_shrink_on_the_way_to_another_node(mine, theirs, depth, is_foreign, ms):
    """What the other node allows is within what was left here, whatever both nodes allow by themselves."""
    chain = tuple(f"A{number}" for number in range(depth))
    chain = (*chain[:-1], "X::third") if chain and is_foreign else chain
    request = Request("r", "FAR", "LOOK", "u", mine, NOW + ms, NOW, source=chain[-1] if chain else None, chain=chain)
    account = Account(mine)
    left = Limits(
        depth_max=max(mine.depth_max - depth, 0), fan_out_max=mine.fan_out_max, timeout_ms=min(mine.timeout_ms, ms),
        timeout_ms_max=min(mine.timeout_ms_max, ms), calls_max=account.calls_left(), tokens_max=account.tokens_left(),
    )  # fmt: skip
    loan = account.lend()
    try:
        standing = standing_of(request, lent(left, loan), "near", outgoing_id="o")
    except RefusedError as error:
        assert error.code == "LIMIT_DEPTH_EXCEEDED"
        return
    tokens = Tokens(KEYS)
    caller = standing.chain[-1].rpartition(AT)[0]
    token = tokens.for_agent(caller, audience="near", user_id="u", standing=standing, scope="call:*/*", now_ms=NOW)
    outside = outside_of(tokens.verify(token, now_ms=NOW - 1), "far", now_ms=NOW) if ms else None
    if outside is None:
        return
    there = outside.applied(Request("o", "FAR", "LOOK", "u", theirs, NOW + 10_000, NOW))
    assert there.deadline_at <= request.deadline_at
    assert theirs.allows(there.limits)
    assert there.limits.depth_max - there.depth <= left.depth_max
    assert there.limits.fan_out_max <= left.fan_out_max
    assert there.limits.calls_max - 1 <= left.calls_max
    assert left.tokens_max is None or there.limits.tokens_max <= left.tokens_max
    assert there.limits.calls_max - 1 + account.calls_left() <= left.calls_max  # nothing can be spent twice
    assert not any(one.endswith(f"{AT}far") for one in there.chain)


KEYS = KeyRing(None, issuer="near", now_ms=NOW)
