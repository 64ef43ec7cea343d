"""Running a call: repeats, events, what is shared and what is not, priorities, activation, replies."""

from __future__ import annotations

import asyncio

import pytest
from path_agents import chain_to
from pydantic import Base64Bytes

from comity import Agent, Background, Context, Limits, Reply, Status
from comity.errors import UnavailableError


async def test_a_thousand_calls_with_one_request_id_run_once(make_node):
    ran = 0
    agent = Agent("A")

    @agent.capability("GO")
    async def go(n: int) -> int:
        nonlocal ran
        ran += 1
        await asyncio.sleep(1)
        return n

    async with make_node([agent]) as node:
        replies = await asyncio.gather(*(node.call("A", "GO", {"n": 7}, user_id="u", request_id="same") for _ in range(1000)))
        later = await node.call("A", "GO", {"n": 7}, user_id="u", request_id="same")
    assert ran == 1
    assert {reply.data for reply in replies} == {7}
    assert later == replies[0]


async def test_a_request_id_of_another_request_or_user_is_refused_and_shows_nothing(make_node):
    agent = Agent("A")

    @agent.capability("GO")
    async def go(n: int) -> int:
        await asyncio.sleep(1)
        return n

    async with make_node([agent]) as node:
        first = asyncio.ensure_future(node.call("A", "GO", {"n": 1}, user_id="u", request_id="x"))
        await asyncio.sleep(0)
        for _ in range(2):  # while it runs, and after
            for other in (
                {"inputs": {"n": 2}},
                {"user_id": "someone else"},
                {"tenant_id": "another"},
                {"message": "instead of it"},
                {"objective": "another"},
                {"context": Background(facts=("it is late",))},
                {"history": "none"},
            ):
                reply = await node.call("A", "GO", request_id="x", **{"inputs": {"n": 1}, "user_id": "u"} | other)
                assert (reply.status, reply.error.code, reply.data) == (Status.REFUSED, "IDENTITY_REQUEST_ID_REUSED", None)
            await first


async def test_a_waiter_that_gives_up_does_not_end_a_call_others_wait_for(make_node):
    agent = Agent("A")

    @agent.capability("GO")
    async def go() -> str:
        await asyncio.sleep(5)
        return "done"

    async with make_node([agent]) as node:
        patient = asyncio.ensure_future(node.call("A", "GO", user_id="u", request_id="x"))
        impatient = asyncio.ensure_future(node.call("A", "GO", user_id="u", request_id="x"))
        await asyncio.sleep(1)
        impatient.cancel()
        assert (await patient).data == "done"


async def test_events_tell_the_whole_tree_in_order_without_gaps(make_node):
    async def leaf(ctx: Context):
        ctx.progress({"share": 0.5})
        return 1

    async with make_node(chain_to(leaf)) as node:
        handle = node.start_call("TOP", "GO", user_id="u")
        events = [event async for event in handle.events()]
        late = [event async for event in handle.events(after=4)]

    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [(event.target, event.kind) for event in events] == [
        ("TOP", "queued"), ("TOP", "started"), ("MIDDLE", "queued"), ("MIDDLE", "started"), ("LEAF", "queued"),
        ("LEAF", "started"), ("LEAF", "progress"), ("LEAF", "settled"), ("MIDDLE", "settled"), ("TOP", "settled"),
    ]  # fmt: skip
    assert events[6].data == {"share": 0.5}
    assert events[4].parent_id == events[2].request_id
    assert late == events[4:]


async def test_events_tell_of_refusals(make_node):
    async def leaf(ctx: Context):
        return (await ctx.call("TOP", "GO")).error.code

    async with make_node(chain_to(leaf)) as node:
        handle = node.start_call("TOP", "GO", user_id="u")
        refused = [event.data["code"] async for event in handle.events() if event.kind == "refused"]
    assert refused == ["ROUTING_CYCLE_DETECTED"]


async def test_caller_and_callee_never_share_an_object(make_node):
    kept: list[dict] = []
    agent = Agent("A")

    @agent.capability("KEEP")
    async def keep(items: list[int]):
        kept.append({"items": items})
        items.append(99)
        return kept[-1]

    mine = {"items": [1, 2]}
    async with make_node([agent]) as node:
        reply = await node.call("A", "KEEP", mine, user_id="u")
    reply.data["items"].append(5)
    assert mine == {"items": [1, 2]}
    assert kept == [{"items": [1, 2, 99]}]


async def test_a_background_is_copied_when_it_is_sent(make_node):
    seen: list[dict] = []
    agent = Agent("A")

    @agent.capability("LOOK")
    async def look(ctx: Context):
        seen.append(ctx.request.context.prior_outputs)

    told = {"scenarios": ["base"]}
    async with make_node([agent]) as node:
        handle = node.start_call("A", "LOOK", user_id="u", context=Background(prior_outputs=told))
        told["scenarios"].append("later")
        await handle.reply()
    assert seen == [{"scenarios": ["base"]}]


async def test_urgent_calls_go_first_and_low_ones_are_not_starved(make_node):
    order: list[str] = []
    agent = Agent("A", concurrency=1)

    @agent.capability("GO")
    async def go(ctx: Context, name: str):
        await asyncio.sleep(1)
        order.append(name)

    async with make_node([agent]) as node:
        waiting = [asyncio.ensure_future(node.call("A", "GO", {"name": "first"}, user_id="u"))]
        await asyncio.sleep(0)
        for name, priority in [("low", "low"), ("normal", "normal"), ("high", "high")] + [("critical", "critical")] * 20:
            waiting.append(asyncio.ensure_future(node.call("A", "GO", {"name": name}, user_id="u", priority=priority)))
            await asyncio.sleep(0)
        await asyncio.gather(*waiting)
    assert order[:9] == ["first", *["critical"] * 8]
    assert order.index("high") < order.index("normal") < order.index("low") < 15


async def test_a_full_queue_refuses_with_agent_busy(make_node):
    agent = Agent("A", concurrency=1, pending_max=2)

    @agent.capability("GO")
    async def go():
        await asyncio.sleep(1)

    async with make_node([agent]) as node:
        replies = await asyncio.gather(*(node.call("A", "GO", user_id="u") for _ in range(4)))
    assert [r.error.code if r.error else "ok" for r in replies] == ["ok", "ok", "ok", "AGENT_BUSY"]
    assert replies[3].error.retryable


async def test_an_agent_is_activated_once_on_first_call_and_put_away_when_idle(make_node):
    life: list[str] = []

    async def wake(address: str, state: dict) -> None:
        await asyncio.sleep(1)
        life.append(f"wake {address} {state.get('n', 0)}")

    def sleep(address: str, state: dict) -> None:
        life.append(f"sleep {address}")

    agent = Agent("A", idle_ms=10_000, on_activate=wake, on_deactivate=sleep)

    @agent.capability("COUNT")
    async def count(ctx: Context) -> int:
        ctx.state["n"] = ctx.state.get("n", 0) + 1
        return ctx.state["n"]

    async with make_node([agent]) as node:
        assert sorted([r.data for r in await asyncio.gather(*(node.call("A", "COUNT", user_id="u") for _ in range(3)))]) == [
            1,
            2,
            3,
        ]
        assert (await node.call("A/k", "COUNT", user_id="u")).data == 1  # a key is its own actor with its own state
        await asyncio.sleep(20)
        assert life == ["wake A 0", "wake A/k 0", "sleep A", "sleep A/k"]
        assert (await node.call("A", "COUNT", user_id="u")).data == 4
        assert life[-1] == "wake A 3"


async def test_a_reply_made_by_the_agent_keeps_what_it_said(make_node):
    agent = Agent("A")

    @agent.capability("SOME")
    async def some() -> Reply:
        return Reply.partial({"found": 1}, warnings=["one source was down"], confidence=0.7, message="half of it")

    @agent.capability("ASK")
    async def ask():
        return Reply.needs_input("Which year?")

    @agent.capability("NO")
    async def no():
        return Reply.failure("no such year", code="DATA_YEAR_UNKNOWN")

    async with make_node([agent]) as node:
        partial, question, failure = [await node.call("A", code, user_id="u") for code in ("SOME", "ASK", "NO")]
    assert (partial.status, partial.confidence, partial.warnings) == (Status.PARTIAL, 0.7, ("one source was down",))
    assert (question.status, question.message) == (Status.NEEDS_INPUT, "Which year?")
    assert (failure.status, failure.error.code, failure.error.retryable) == (Status.ERROR, "DATA_YEAR_UNKNOWN", False)


async def test_plain_functions_serve_as_well_as_async_ones(make_node):
    agent = Agent("A")

    @agent.capability("ADD")
    def add(a: int, b: int = 2) -> int:
        return a + b

    @agent.capability("WHO")
    def who(ctx: Context) -> str:
        return ctx.session.user_id

    async with make_node([agent]) as node:
        assert (await node.call("A", "ADD", {"a": 1}, user_id="u")).data == 3
        assert (await node.call("A", "WHO", user_id="u")).data == "u"


async def test_limits_left_shrink_as_they_are_used(make_node):
    agent, helper = Agent("A"), Agent("H")

    @helper.capability("GO")
    async def go():
        return 1

    @agent.capability("LOOK")
    async def look(ctx: Context):
        before = ctx.limits
        await ctx.call("H", "GO")
        await asyncio.sleep(2)
        ctx.report_usage(prompt_tokens=30)
        after = ctx.limits
        assert before.allows(after)
        return [before.calls_max - after.calls_max, before.timeout_ms - after.timeout_ms, before.tokens_max - after.tokens_max]

    async with make_node([agent, helper], limits=Limits(tokens_max=100)) as node:
        assert (await node.call("A", "LOOK", user_id="u")).data == [1, 2_000, 30]


@pytest.mark.parametrize("wrong", [("X", "GO", {}), ["X"], None])
async def test_gather_says_what_it_takes_and_calls_nobody(make_node, wrong):
    lead, other = Agent("LEAD"), Agent("X")
    told = []

    @lead.capability("GO")
    async def lead_go(ctx: Context):
        try:
            await ctx.gather(ctx.call("X", "GO"), wrong)
        except TypeError as error:
            told.append(str(error))

    @other.capability("GO")
    async def other_go():
        return 1

    async with make_node([lead, other]) as node:
        await node.call("LEAD", "GO", user_id="u")
        assert "X" not in {row.target for row in node.audit.rows()}
    (message,) = told
    assert message.startswith("ctx.gather takes calls, as in ctx.gather(ctx.call(…), ctx.call(…))")
    assert message.endswith(f"argument 2 is a {type(wrong).__name__}")


@pytest.mark.parametrize(("hint", "seen"), [(str, "aGVsbG8="), (bytes, b"aGVsbG8="), (Base64Bytes, b"hello")])
async def test_bytes_travel_as_base64_text(make_node, hint, seen):
    agent = Agent("X")
    got = []

    async def go(value):
        got.append(value)

    go.__annotations__["value"] = hint
    agent.capability("GO")(go)
    async with make_node([agent]) as node:
        await node.call("X", "GO", {"value": b"hello"}, user_id="u")
    assert got == [seen]


async def test_a_call_of_the_same_user_id_in_another_tenant_neither_joins_nor_is_given_the_reply(make_node):
    agent, runs = Agent("A"), []

    @agent.capability("GO")
    async def go(ctx: Context) -> str:
        runs.append(ctx.request.tenant_id)
        await asyncio.sleep(1)
        return "the secret of acme"

    asked = {"target": "A", "capability": "GO", "user_id": "admin", "request_id": "x"}
    async with make_node([agent]) as node:
        first = node.start_call(**asked, tenant_id="acme", session_id="s")
        await asyncio.sleep(0.5)
        for _ in range(2):  # while it runs, and from the store
            other = await node.call(**asked, tenant_id="evil", session_id="s")
            assert (other.error.code, other.data) == ("IDENTITY_REQUEST_ID_REUSED", None)
            assert (await first.reply()).data == "the secret of acme"
        assert (await node.call(**asked, tenant_id="acme", session_id="t")).data == "the secret of acme"
    assert runs == ["acme"]


@pytest.mark.parametrize("ends", ["error", "timeout", "refused below", "success"])
async def test_what_has_ended_may_be_asked_for_again_under_the_same_objective_however_it_ended(make_node, ends):
    boss, helper, runs = Agent("BOSS"), Agent("HELP"), []

    @helper.capability("WORK")
    async def work(ctx: Context) -> str:
        runs.append(1)
        if len(runs) > 1:
            return "done"
        match ends:
            case "error":
                raise RuntimeError("not now")
            case "timeout":
                await asyncio.sleep(60)
            case "refused below":
                (await ctx.call("NOBODY", "X")).unwrap()
        return "first"

    @boss.capability("GO")
    async def go(ctx: Context) -> list[str]:
        asked = [await ctx.call("HELP", "WORK", objective="find it", timeout_ms=1_000) for _ in range(2)]
        return [reply.data if reply.ok else reply.error.code for reply in asked]

    async with make_node([boss, helper]) as node:
        reply = await node.call("BOSS", "GO", user_id="u")
    assert (reply.data[1], len(runs)) == ("done", 2)


async def test_usage_counts_the_calls_of_every_level_below(make_node):
    agents = [Agent(f"A{level}") for level in range(4)]
    for level, agent in enumerate(agents):

        @agent.capability("GO")
        async def go(ctx: Context, _below: int = level + 1) -> int:
            return 0 if _below == len(agents) else (await ctx.call(f"A{_below}", "GO")).usage.calls

    async with make_node(agents) as node:
        reply = await node.call("A0", "GO", user_id="u")
    assert (reply.usage.calls, reply.data) == (3, 2)


async def test_nothing_is_begun_below_a_call_once_the_store_has_failed(make_node):
    boss, helper, runs = Agent("BOSS"), Agent("HELP"), []

    @helper.capability("WORK")
    async def work() -> None:
        runs.append(1)

    @boss.capability("GO")
    async def go(ctx: Context) -> str:
        node._journal.failure = UnavailableError("the disk is full", code="STORE_UNAVAILABLE")
        return (await ctx.call("HELP", "WORK")).error.code

    async with make_node([boss, helper]) as node:
        reply = await node.call("BOSS", "GO", user_id="u")
    assert (reply.data, runs) == ("STORE_UNAVAILABLE", [])
