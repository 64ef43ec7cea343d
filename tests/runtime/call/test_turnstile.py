"""While other users call too, the calls that one user makes at once enter a few at a time."""

from __future__ import annotations

import asyncio

from comity import Agent, Context
from comity.runtime.call.turnstile import ENTER_MOST, ROUND_S, SHARED_NS

BURST = 3 * ENTER_MOST + 1


def waiting_agent() -> tuple[Agent, asyncio.Event]:
    agent, go_on = Agent("A", concurrency=1000), asyncio.Event()

    @agent.capability("WAIT")
    async def wait(ctx: Context) -> str:
        await go_on.wait()
        return ctx.request.user_id

    return agent, go_on


async def some_turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_burst_enters_in_rounds_and_another_user_does_not_wait_for_it(make_node):
    agent, go_on = waiting_agent()
    async with make_node([agent]) as node:
        first = asyncio.ensure_future(node.call("A", "WAIT", user_id="bob"))
        await some_turns()
        burst = [asyncio.ensure_future(node.call("A", "WAIT", user_id="eve")) for _ in range(BURST)]
        await some_turns()
        users = [call.request.user_id for call in node._path.calls.values()]
        assert users == ["bob", *["eve"] * ENTER_MOST]
        last = asyncio.ensure_future(node.call("A", "WAIT", user_id="bob"))
        await some_turns()
        assert [call.request.user_id for call in node._path.calls.values()].count("bob") == 2
        for entered in (2 * ENTER_MOST, 3 * ENTER_MOST, BURST):
            await asyncio.sleep(ROUND_S * 1.01)
            assert [call.request.user_id for call in node._path.calls.values()].count("eve") == entered
        go_on.set()
        assert {(await one).data for one in (first, last)} == {"bob"}
        assert {(await one).data for one in burst} == {"eve"}


async def test_a_user_who_is_alone_does_not_wait(make_node):
    agent, go_on = waiting_agent()
    async with make_node([agent]) as node:
        early = asyncio.ensure_future(node.call("A", "WAIT", user_id="bob"))
        await some_turns()
        alone = asyncio.ensure_future(node.call("A", "WAIT", user_id="eve"))
        await asyncio.sleep(SHARED_NS / 1e9 * 1.01)
        burst = [asyncio.ensure_future(node.call("A", "WAIT", user_id="eve")) for _ in range(BURST)]
        await some_turns()
        assert len(node._path.calls) == BURST + 2
        go_on.set()
        await asyncio.gather(early, alone, *burst)


async def test_the_first_user_of_a_node_is_alone(make_node):
    agent, go_on = waiting_agent()
    async with make_node([agent]) as node:
        burst = [asyncio.ensure_future(node.call("A", "WAIT", user_id="eve")) for _ in range(BURST)]
        await some_turns()
        assert len(node._path.calls) == BURST
        go_on.set()
        await asyncio.gather(*burst)


async def test_two_tenants_with_a_user_of_one_name_do_not_share_a_line(make_node):
    agent, go_on = waiting_agent()
    async with make_node([agent]) as node:
        asked = [
            asyncio.ensure_future(node.call("A", "WAIT", user_id="admin", tenant_id=tenant_id))
            for tenant_id in ("acme", "evil")
            for _ in range(BURST)
        ]
        await some_turns()
        tenants = [call.request.tenant_id for call in node._path.calls.values()]
        assert tenants.count("evil") == ENTER_MOST
        go_on.set()
        await asyncio.gather(*asked)


async def test_a_call_that_is_given_up_in_the_line_leaves_no_record_and_takes_no_turn(make_node):
    agent, go_on = waiting_agent()
    async with make_node([agent]) as node:
        bob = asyncio.ensure_future(node.call("A", "WAIT", user_id="bob"))
        await some_turns()
        burst = [asyncio.ensure_future(node.call("A", "WAIT", user_id="eve")) for _ in range(BURST)]
        await some_turns()
        for one in burst[ENTER_MOST : 2 * ENTER_MOST]:
            one.cancel()
        await asyncio.sleep(ROUND_S * 1.01)
        assert [call.request.user_id for call in node._path.calls.values()].count("eve") == 2 * ENTER_MOST
        go_on.set()
        await asyncio.gather(bob, *burst, return_exceptions=True)
        assert len({row.request_id for row in node.audit.rows()}) == BURST - ENTER_MOST + 1
