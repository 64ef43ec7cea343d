"""Calls are bounded: depth, fan-out, cycles, deadlocks, budgets. What is refused did nothing."""

from __future__ import annotations

import asyncio

import pytest

from comity import Agent, Context, Limits, Reply, Status
from comity.core.envelope.usage import Usage
from comity.runtime.call.insider import Insider


def chain_of(length: int, ran: list[str]) -> list[Agent]:
    """Agents A0 → A1 → …, each calling the next and passing the last reply up."""
    agents = []
    for index in range(length):
        agent = Agent(f"A{index}")

        @agent.capability("GO")
        async def go(ctx: Context, _next: str = f"A{index + 1}", _last: bool = index == length - 1, _me: str = f"A{index}"):
            ran.append(_me)
            if _last:
                return {"code": None, "by": _me}
            reply = await ctx.call(_next, "GO")
            return reply.data if reply.ok else {"code": reply.error.code, "by": _me, "why": reply.message}

        agents.append(agent)
    return agents


@pytest.mark.parametrize("depth_max", range(6))
async def test_exactly_depth_max_passes_and_one_more_is_refused(make_node, depth_max):
    ran: list[str] = []
    async with make_node(chain_of(depth_max + 2, ran), limits=Limits(depth_max=depth_max)) as node:
        reply = await node.call("A0", "GO", user_id="u")

    assert reply.data["code"] == "LIMIT_DEPTH_EXCEEDED"
    assert reply.data["by"] == f"A{depth_max}"
    assert ran == [f"A{i}" for i in range(depth_max + 1)]


async def test_the_default_depth_is_five(make_node):
    ran: list[str] = []
    async with make_node(chain_of(6, ran)) as node:
        reply = await node.call("A0", "GO", user_id="u")
    assert (reply.data["code"], reply.data["by"]) == (None, "A5")


async def test_seed_001_max_depth_2_lets_prime_ask_byte_and_stops_byte_asking_tag(make_node):
    prime, byte, tag = Agent("prime-boss"), Agent("byte-docs"), Agent("tag-ai")

    @prime.capability("ASK")
    async def ask(ctx: Context):
        return (await ctx.call("byte-docs", "EXTRACT")).data

    @byte.capability("EXTRACT")
    async def extract(ctx: Context):
        return {"tag": (await ctx.call("tag-ai", "TAG")).error.code}

    @tag.capability("TAG")
    async def tagged():
        raise AssertionError("never reached")

    async with make_node([prime, byte, tag], limits=Limits(depth_max=1)) as node:
        assert (await node.call("prime-boss", "ASK", user_id="u")).data == {"tag": "LIMIT_DEPTH_EXCEEDED"}


async def test_exactly_fan_out_max_run_in_parallel_and_one_more_is_refused(make_node):
    boss, helper = Agent("BOSS"), Agent("HELP")
    most = 3
    running = 0
    peak = 0

    @helper.capability("WORK")
    async def work(n: int) -> int:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await asyncio.sleep(1)
        running -= 1
        return n

    @boss.capability("SPREAD")
    async def spread(ctx: Context, n: int) -> list:
        replies = await ctx.gather(*(ctx.call("HELP", "WORK", {"n": i}) for i in range(n)))
        return [reply.data if reply.ok else reply.error.code for reply in replies]

    async with make_node([boss, helper], limits=Limits(fan_out_max=most)) as node:
        assert (await node.call("BOSS", "SPREAD", {"n": most}, user_id="u")).data == [0, 1, 2]
        assert peak == most
        over = await node.call("BOSS", "SPREAD", {"n": most + 1}, user_id="u")
        assert over.data == [0, 1, 2, "LIMIT_FAN_OUT_EXCEEDED"]


async def test_fan_out_counts_calls_under_way_not_calls_made(make_node):
    boss, helper = Agent("BOSS"), Agent("HELP")

    @helper.capability("WORK")
    async def work() -> int:
        return 1

    @boss.capability("ONE_BY_ONE")
    async def one_by_one(ctx: Context) -> int:
        return sum([(await ctx.call("HELP", "WORK")).data for _ in range(7)])

    async with make_node([boss, helper], limits=Limits(fan_out_max=1)) as node:
        assert (await node.call("BOSS", "ONE_BY_ONE", user_id="u")).data == 7


def mutual() -> tuple[list[Agent], list[str]]:
    """Two agents that each ask the other, for ever."""
    said: list[str] = []
    agents = []
    for me, other in (("A", "B"), ("B", "A")):
        agent = Agent(me)

        @agent.capability("ASK")
        async def ask(ctx: Context, _me: str = me, _other: str = other):
            said.append(_me)
            reply = await ctx.call(_other, "ASK")
            return reply.data if reply.ok else {"stopped_at": _me, "code": reply.error.code, "why": reply.message}

        agents.append(agent)
    return agents, said


async def test_two_agents_asking_each_other_stop_at_the_first_repeat_and_the_leaf_reads_why(make_node):
    agents, said = mutual()
    async with make_node(agents) as node:
        reply = await node.call("A", "ASK", user_id="u")

    assert said == ["A", "B"]
    assert reply.data["stopped_at"] == "B"
    assert reply.data["code"] == "ROUTING_CYCLE_DETECTED"
    assert "A is already in A → B" in reply.data["why"]


async def test_an_agent_cannot_call_itself(make_node):
    loner = Agent("A")

    @loner.capability("ASK")
    async def ask(ctx: Context):
        return (await ctx.call("A", "ASK")).error.code

    async with make_node([loner]) as node:
        assert (await node.call("A", "ASK", user_id="u")).data == "ROUTING_CYCLE_DETECTED"


async def test_an_alias_does_not_hide_a_cycle(make_node):
    first, second = Agent("A", aliases=["alpha"]), Agent("B")

    @first.capability("ASK")
    async def ask(ctx: Context):
        return (await ctx.call("B", "ASK")).data

    @second.capability("ASK")
    async def ask_back(ctx: Context):
        return (await ctx.call("alpha", "ASK")).error.code

    async with make_node([first, second]) as node:
        assert (await node.call("A", "ASK", user_id="u")).data == "ROUTING_CYCLE_DETECTED"


async def test_keys_of_one_agent_are_different_actors_and_no_cycle(make_node):
    cart = Agent("cart")

    @cart.capability("TOTAL")
    async def total(ctx: Context, other: str = ""):
        if other:
            return (await ctx.call(other, "TOTAL")).data
        return ctx.request.target

    async with make_node([cart]) as node:
        assert (await node.call("cart/1", "TOTAL", {"other": "cart/2"}, user_id="u")).data == "cart/2"


@pytest.mark.parametrize("ring", [2, 3, 4])
async def test_serial_agents_waiting_for_each_other_from_several_roots_are_refused_at_once(make_node, ring):
    """Without the wait-for graph, each root waits for its 30 s timeout."""
    barrier = asyncio.Barrier(ring)
    agents = []
    for index in range(ring):
        agent = Agent(f"A{index}", concurrency=1)

        @agent.capability("ASK")
        async def ask(ctx: Context, _next: str = f"A{(index + 1) % ring}"):
            await barrier.wait()  # every agent is taken before anyone asks
            reply = await ctx.call(_next, "ANSWER")
            return {"status": reply.status, "code": reply.error.code if reply.error else None}

        @agent.capability("ANSWER")
        async def answer() -> str:
            return "yes"

        agents.append(agent)
    async with make_node(agents) as node:
        began = asyncio.get_running_loop().time()
        replies = await asyncio.gather(*(node.call(f"A{i}", "ASK", user_id=f"u{i}") for i in range(ring)))
        took = asyncio.get_running_loop().time() - began

    outcomes = [reply.data for reply in replies]
    assert [o["code"] for o in outcomes].count("ROUTING_DEADLOCK_PREVENTED") == 1
    assert [o["status"] for o in outcomes].count("success") == ring - 1
    assert took == 0


async def test_a_busy_agent_that_will_finish_is_waited_for_not_refused(make_node):
    first, second = Agent("A", concurrency=1), Agent("B", concurrency=1)

    @first.capability("ASK")
    async def ask(ctx: Context):
        return (await ctx.call("B", "SLOW")).data

    @second.capability("SLOW")
    async def slow():
        await asyncio.sleep(5)
        return "done"

    async with make_node([first, second]) as node:
        other = asyncio.ensure_future(node.call("B", "SLOW", user_id="u2"))
        await asyncio.sleep(1)
        assert (await node.call("A", "ASK", user_id="u1")).data == "done"
        await other


async def test_the_same_objective_twice_at_once_is_refused_and_again_later_is_not(make_node):
    boss, helper = Agent("BOSS"), Agent("HELP")

    @helper.capability("READ")
    async def read():
        await asyncio.sleep(1)
        return "text"

    @boss.capability("TWICE")
    async def twice(ctx: Context):
        ask = {"objective": "extract receipt"}
        at_once = await ctx.gather(ctx.call("HELP", "READ", **ask), ctx.call("HELP", "READ", **ask))
        later = await ctx.call("HELP", "READ", **ask)
        other = await ctx.gather(ctx.call("HELP", "READ", objective="one"), ctx.call("HELP", "READ", objective="two"))
        return [r.error.code if r.error else "ok" for r in (*at_once, later, *other)]

    async with make_node([boss, helper]) as node:
        first, second = await asyncio.gather(node.call("BOSS", "TWICE", user_id="u1"), node.call("BOSS", "TWICE", user_id="u2"))
    assert first.data == second.data == ["ok", "ROUTING_OBJECTIVE_IN_PROGRESS", "ok", "ok", "ok"]


async def test_the_tree_stops_at_calls_max_whatever_its_shape(make_node):
    boss, helper = Agent("BOSS"), Agent("HELP")

    @helper.capability("WORK")
    async def work():
        return 1

    @boss.capability("MANY")
    async def many(ctx: Context, n: int):
        replies = [await ctx.call("HELP", "WORK") for _ in range(n)]
        return [r.error.code if r.error else "ok" for r in replies]

    async with make_node([boss, helper], limits=Limits(calls_max=4)) as node:
        reply = await node.call("BOSS", "MANY", {"n": 5}, user_id="u")
        assert reply.data == ["ok", "ok", "ok", "BUDGET_CALLS_EXHAUSTED", "BUDGET_CALLS_EXHAUSTED"]
        again = await node.call("BOSS", "MANY", {"n": 3}, user_id="u")
        assert again.data == ["ok"] * 3  # the budget belongs to the tree, not to the node
        assert again.usage.calls == 3


async def test_tokens_spent_anywhere_in_the_tree_count_against_its_root(make_node):
    boss, helper = Agent("BOSS"), Agent("HELP")
    left: list[int | None] = []

    @helper.capability("THINK")
    async def think(ctx: Context, tokens: int):
        ctx.report_usage(prompt_tokens=tokens - 10, completion_tokens=10)
        left.append(ctx.limits.tokens_max)
        return tokens

    @boss.capability("PLAN")
    async def plan(ctx: Context):
        replies = [await ctx.call("HELP", "THINK", {"tokens": 400}) for _ in range(4)]
        return [(r.status, r.error.code if r.error else None) for r in replies]

    async with make_node([boss, helper], limits=Limits(tokens_max=1000)) as node:
        reply = await node.call("BOSS", "PLAN", user_id="u")

    assert left == [600, 200]
    assert reply.data == [
        ["success", None],
        ["success", None],
        ["error", "BUDGET_TOKENS_EXHAUSTED"],  # it used more than was left
        ["refused", "BUDGET_TOKENS_EXHAUSTED"],  # and nothing was left for the next
    ]
    assert reply.usage.total_tokens == 1200


async def test_a_child_can_narrow_its_limits_and_never_raise_them(make_node):
    boss, helper, plain = Agent("BOSS"), Agent("HELP", limits=Limits(fan_out_max=2, calls_max=50)), Agent("PLAIN")
    seen: list[Limits] = []

    @plain.capability("LOOK")
    @helper.capability("LOOK")
    async def look(ctx: Context):
        seen.append(ctx.request.limits)
        return ctx.limits.calls_max

    @boss.capability("PASS_ON")
    async def pass_on(ctx: Context):
        wider = Limits(depth_max=30, fan_out_max=1000, calls_max=100_000, tokens_max=10**9, timeout_ms_max=10**7)
        wide = await ctx.call("HELP", "LOOK", limits=wider)
        narrow = await ctx.call("HELP", "LOOK", limits=Limits(depth_max=1, calls_max=3))
        plainly = await ctx.call("PLAIN", "LOOK", limits=wider)
        return [wide.data, narrow.data, plainly.data]

    mine = Limits(depth_max=3, fan_out_max=5, calls_max=20, tokens_max=500, timeout_ms_max=40_000)
    async with make_node([boss, helper, plain]) as node:
        reply = await node.call("BOSS", "PASS_ON", user_id="u", limits=mine)

    bounds = ("depth_max", "fan_out_max", "calls_max", "tokens_max", "timeout_ms_max")
    assert all(getattr(limits, bound) <= getattr(mine, bound) for limits in seen for bound in bounds)
    assert (seen[0].depth_max, seen[0].fan_out_max, seen[0].calls_max, seen[0].tokens_max) == (3, 2, 20, 500)
    assert (seen[1].depth_max, seen[1].calls_max) == (1, 3)
    assert reply.data == [18, 2, 16]  # 20 less the root and this call; 3 less this call; 20 less the root and all three


async def test_can_call_decides_whom_an_agent_may_call(make_node):
    boss = Agent("BOSS", can_call=["helper"])
    helper, vault = Agent("HELP", aliases=["helper"]), Agent("VAULT")

    @helper.capability("GO")
    async def help_out():
        return "ok"

    @vault.capability("GO")
    async def open_vault():
        raise AssertionError("never reached")

    @boss.capability("TRY")
    async def try_both(ctx: Context):
        replies = await ctx.gather(ctx.call("HELP", "GO"), ctx.call("VAULT", "GO"))
        return [r.data if r.ok else r.error.code for r in replies]

    async with make_node([boss, helper, vault]) as node:
        assert (await node.call("BOSS", "TRY", user_id="u")).data == ["ok", "ROUTING_NOT_PERMITTED"]


async def test_a_refusal_runs_nothing_spends_nothing_and_leaves_one_audit_row(make_node):
    agents, _ = mutual()
    async with make_node(agents, limits=Limits(calls_max=10)) as node:
        reply = await node.call("A", "ASK", user_id="u")
        rows = node.audit.rows()

    refused = [row for row in rows if row.kind == "refused"]
    assert [(row.error_code, row.status, row.origin, row.target, row.chain) for row in refused] == [
        ("ROUTING_CYCLE_DETECTED", "refused", "B", "A", "A B")
    ]
    assert [row.kind for row in rows] == ["admitted", "admitted", "refused", "settled", "settled"]
    assert reply.usage.calls == 1


@pytest.mark.parametrize(
    ("status", "code"), [("maintenance", "ROUTING_AGENT_IN_MAINTENANCE"), ("retired", "ROUTING_AGENT_RETIRED")]
)
async def test_an_agent_that_is_not_active_takes_no_calls(make_node, status, code):
    agent = Agent("A", status=status)

    @agent.capability("GO")
    async def go():
        return 1

    @agent.capability("OFF", active=False)
    async def off():
        return 1

    async with make_node([agent]) as node:
        reply = await node.call("A", "GO", user_id="u")
        assert (reply.status, reply.error.code) == (Status.REFUSED, code)
        agent.status = type(agent.status)("active")
        assert (await node.call("A", "OFF", user_id="u")).error.code == "ROUTING_CAPABILITY_INACTIVE"


async def test_names_nobody_has_are_answered_at_once_with_the_nearest(make_node):
    agent = Agent("analyst")

    @agent.capability("NPV")
    async def npv():
        return 1

    async with make_node([agent]) as node:
        unknown = await node.call("analist", "NPV", user_id="u")
        assert unknown.error.code == "ROUTING_UNKNOWN_AGENT"
        assert "did you mean analyst?" in unknown.error.message
        missing = await node.call("analyst", "NVP", user_id="u")
        assert missing.error.code == "ROUTING_UNKNOWN_CAPABILITY"
        assert "did you mean NPV?" in missing.error.message


async def test_the_depth_that_a_request_asks_for_holds_for_the_request_itself(make_node):
    boss, worker = Agent("BOSS"), Agent("WORK")

    @worker.capability("GO")
    async def work(ctx: Context) -> int:
        return ctx.request.limits.depth_max

    @boss.capability("ASK")
    async def ask(ctx: Context):
        return [await ctx.call("WORK", "GO", limits=Limits(depth_max=most)) for most in (0, 1, 9)]

    async with make_node([boss, worker]) as node:
        replies = (await node.call("BOSS", "ASK", user_id="u")).data
        alone = await node.call("WORK", "GO", user_id="u", limits=Limits(depth_max=0))  # a user's call is at depth 0
    assert [(one["status"], one.get("data")) for one in replies] == [("refused", None), ("success", 1), ("success", 5)]
    assert replies[0]["error"]["message"] == "depth 1 exceeds depth_max 0 on BOSS → WORK"
    assert alone.data == 0


async def test_what_a_callee_narrows_holds_below_it_and_not_for_the_call_to_it(make_node):
    boss, worker = Agent("BOSS"), Agent("WORK", limits=Limits(depth_max=0))

    @worker.capability("GO")
    async def work(ctx: Context) -> int:
        return ctx.request.limits.depth_max

    @boss.capability("ASK")
    async def ask(ctx: Context):
        return (await ctx.call("WORK", "GO")).data

    async with make_node([boss, worker]) as node:
        assert (await node.call("BOSS", "ASK", user_id="u")).data == 0


@pytest.mark.parametrize(("used", "cost"), [(0, 0), (3, 3), (None, 50)])
async def test_what_was_lent_to_another_node_and_not_used_comes_back(make_node, used, cost):
    agent = Agent("A")

    @agent.capability("GO")
    async def go(ctx: Context) -> list[int]:
        inner, left = Insider.of(ctx), [ctx.limits.calls_max]
        loan = inner.lend()
        left.append(ctx.limits.calls_max)
        inner.repay(loan, None if used is None else Reply(status=Status.SUCCESS, confidence=1.0, usage=Usage(calls=used)))
        return [*left, ctx.limits.calls_max]

    async with make_node([agent], limits=Limits(calls_max=101)) as node:
        before, meanwhile, after = (await node.call("A", "GO", user_id="u")).data
    assert (before - meanwhile, before - after) == (50, cost)
