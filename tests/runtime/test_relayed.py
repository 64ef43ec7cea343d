"""An agent that passes on how a call of its own ended has failed itself: only the node refuses, withdraws or times out a call."""

from __future__ import annotations

import asyncio

import pytest

from comity import Agent, Context, Reply


def relay(target: str, capability: str, **more) -> tuple[Agent, list[str]]:
    agent, done = Agent("B", can_call=["SLOW", "NOBODY", "C"]), []

    @agent.capability("GO")
    async def go(ctx: Context):
        done.append("an effect")
        return await ctx.call(target, capability, **more)

    return agent, done


def slow() -> Agent:
    agent = Agent("SLOW")

    @agent.capability("WORK")
    async def work() -> None:
        await asyncio.sleep(60)

    return agent


async def test_a_refusal_that_is_passed_on_is_an_error_of_the_call_that_ran(make_node):
    agent, done = relay("NOBODY", "X")
    async with make_node([agent]) as node:
        reply = await node.call("B", "GO", user_id="u")
        kinds = [(row.kind, row.target, row.status, row.error_code) for row in node.audit.rows()]
    assert (reply.status, reply.error.code, done) == ("error", "ROUTING_UNKNOWN_AGENT", ["an effect"])
    assert "NOBODY" in reply.error.message  # the cause can be read
    assert kinds == [
        ("admitted", "B", None, None),
        ("refused", "NOBODY", "refused", "ROUTING_UNKNOWN_AGENT"),
        ("settled", "B", "error", "ROUTING_UNKNOWN_AGENT"),
    ]


async def test_a_timeout_that_is_passed_on_is_no_timeout_of_the_call_that_ended_in_time(make_node):
    agent, _ = relay("SLOW", "WORK", timeout_ms=10)
    async with make_node([agent, slow()]) as node:
        reply = await node.call("B", "GO", user_id="u")
    assert (reply.status, reply.error.code) == ("error", "CALL_TIMEOUT")


@pytest.mark.parametrize("status", ["refused", "cancelled", "timeout"])
async def test_an_agent_cannot_say_of_itself_what_only_the_node_can(make_node, status):
    agent = Agent("B")

    @agent.capability("GO")
    async def go() -> Reply:
        return Reply(status=type(failed.status)(status), error=failed.error, message="I did nothing")

    failed = Reply.failure("no", code="ROUTING_NOT_PERMITTED")
    async with make_node([agent]) as node:
        reply = await node.call("B", "GO", user_id="u")
    assert (reply.status, reply.error.code, reply.message) == ("error", "ROUTING_NOT_PERMITTED", "I did nothing")
