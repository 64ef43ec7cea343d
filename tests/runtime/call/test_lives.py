"""What the simulator found: what a call tree keeps over crashes, standstills and several lives of its node."""

from __future__ import annotations

import asyncio

from death import die

from comity import Agent, Context, Limits, Node, Reply, Tool
from comity.core.agent.breaker import Policy
from comity.core.envelope.envelope import Request
from comity.errors import UnavailableError
from comity.runtime.call.replay import count_begun
from comity.testing import World


def run(scenario, seed=1):
    outcome = World(seed).run(scenario)
    assert outcome.failure == "", outcome.trace.text()
    return outcome


def records(outcome, request_id):
    """Return the kinds and statuses of what was written about a call."""
    found = [record for append in outcome.appends for record in append if getattr(record, "request", None) is not None]
    mine = [record for record in found if record.request.request_id == request_id]
    return [(type(record).__name__, str(record.reply.status) if hasattr(record, "reply") else "") for record in mine]


def test_a_queue_is_bounded_while_its_agent_wakes_up():
    async def wake(address, state):
        await asyncio.sleep(1)

    agent = Agent("A", concurrency=1, pending_max=1, on_activate=wake)

    @agent.capability("GO")
    async def go():
        return 1

    async def scenario(world):
        await world.node([agent])
        replies = await asyncio.gather(*(world.call("A", "GO", user_id="u") for _ in range(4)))
        assert sorted(reply.error.code if reply.error else "" for reply in replies) == ["", "", "AGENT_BUSY", "AGENT_BUSY"]

    run(scenario)


def test_a_result_that_waited_out_a_standstill_is_late_and_no_success():
    agent = Agent("A")

    @agent.capability("GO")
    async def go():
        await asyncio.sleep(0.1)
        return 1

    async def scenario(world):
        node = await world.node([agent])
        asking = asyncio.ensure_future(world.call("A", "GO", user_id="u", request_id="r", timeout_ms=1_000))
        await asyncio.sleep(0.05)
        world.pause(node, 5)
        assert (await asking).status == "timeout"

    found = [records(run(scenario, seed), "r") for seed in range(12)]  # by seed, the result or the timer comes first
    assert [("Accepted", ""), ("Settled", "timeout"), ("Late", "success")] in found
    assert {tuple(one[:2]) for one in found} == {(("Accepted", ""), ("Settled", "timeout"))}


def slow_tool(seconds: float, **more) -> Tool:
    async def work() -> int:
        await asyncio.sleep(seconds)
        return 1

    return Tool(name="work", function=work, **more)


def user_of_tools() -> Agent:
    agent = Agent("A", tools_allowed=["work"])

    @agent.capability("GO")
    async def go(ctx: Context):
        return await ctx.use_tool("work")

    return agent


def test_a_tool_in_use_ends_with_the_call_that_used_it_and_its_node_starts_again():
    async def scenario(world):
        node = await world.node([user_of_tools()], tools=[slow_tool(10)])
        reply = await world.call("A", "GO", user_id="u", request_id="r", timeout_ms=1_000)
        assert reply.status == "timeout"
        world.crash(node.life)
        await node.until_up()

    assert records(run(scenario), "r#1") == [("Accepted", ""), ("Settled", "cancelled")]


def test_a_tool_that_is_begun_again_in_a_later_life_ends_once():
    async def scenario(world):
        node = await world.node([user_of_tools()], tools=[slow_tool(0.2, idempotent=True)])
        asking = asyncio.ensure_future(world.call("A", "GO", user_id="u", request_id="r"))
        await asyncio.sleep(0.1)
        world.crash(node.life)
        assert (await asking).data == 1

    assert records(run(scenario), "r#1") == [("Accepted", ""), ("Accepted", ""), ("Settled", "success")]


def test_a_task_that_outlived_its_call_uses_no_tools():
    agent = Agent("A", tools_allowed=["work"])
    left = []

    @agent.capability("GO")
    async def go(ctx: Context):
        async def later():
            await asyncio.sleep(1)
            return await ctx.use_tool("work")

        left.append(asyncio.ensure_future(later()))

    async def scenario(world):
        await world.node([agent], tools=[slow_tool(0)])
        await world.call("A", "GO", user_id="u", request_id="r")
        await asyncio.sleep(2)
        assert left[0].exception().code == "CALL_CANCELLED"

    assert records(run(scenario), "r#1") == []


def test_a_root_that_its_node_ends_at_start_is_not_begun_again_while_that_is_being_written():
    agent = Agent("A")
    begun = []

    @agent.capability("GO")
    async def go():
        begun.append(1)
        await asyncio.sleep(60)

    async def scenario(world):
        node = await world.node([agent])
        asking = asyncio.ensure_future(world.call("A", "GO", user_id="u", request_id="r", timeout_ms=100))
        await asyncio.sleep(0.05)
        world.crash(node.life)
        await asyncio.sleep(0.1)  # its deadline passes before anybody takes it up
        await node.until_up()
        reply = await node.call("A", "GO", user_id="u", request_id="r", timeout_ms=100)
        assert (reply.status, reply.error.code) == ("refused", "AGENT_BUSY")
        assert (await asking).status == "timeout"

    run(scenario)
    assert begun == [1]


def test_a_tree_has_one_budget_for_all_its_lives():
    boss, helper = Agent("BOSS"), Agent("HELP")

    @boss.capability("GO")
    async def go(ctx: Context):
        replies = [await ctx.call("HELP", "WORK", {"ms": ms}) for ms in (0, 200, 0, 0)]
        return [reply.error.code if reply.error else "" for reply in replies]

    @helper.capability("WORK")
    async def work(ctx: Context, ms: int):
        ctx.report_usage(prompt_tokens=10)
        await asyncio.sleep(ms / 1000)

    async def scenario(world):
        node = await world.node([boss, helper])
        limits = Limits(calls_max=4)
        asking = asyncio.ensure_future(world.call("BOSS", "GO", user_id="u", request_id="r", limits=limits))
        await asyncio.sleep(0.1)
        world.crash(node.life)
        reply = await asking
        assert reply.data == ["", "", "", "BUDGET_CALLS_EXHAUSTED"]
        assert (reply.usage.calls, reply.usage.prompt_tokens) == (3, 30)

    run(scenario)


def test_parallel_calls_keep_their_ids_in_every_life_whichever_of_them_runs_first():
    boss, helper = Agent("BOSS"), Agent("HELP")

    @boss.capability("GO")
    async def go(ctx: Context):
        asked = [ctx.call("HELP", "WORK", {"number": number}) for number in range(4)]
        replies = await ctx.gather(*reversed(asked))
        return [reply.unwrap() for reply in replies]

    @helper.capability("WORK")
    async def work(ctx: Context, number: int):
        await asyncio.sleep(number / 10)
        return [number, ctx.request.request_id]

    async def scenario(world):
        node = await world.node([boss, helper])
        asking = asyncio.ensure_future(world.call("BOSS", "GO", user_id="u", request_id="r"))
        await asyncio.sleep(0.15)
        world.crash(node.life)
        assert (await asking).data == [[number, f"r.{number + 1}"] for number in (3, 2, 1, 0)]

    for seed in range(4):
        run(scenario, seed)


def test_calls_to_nobody_share_no_session_however_long_ago_and_whoever_made_the_last_one():
    async def scenario(world):
        await world.node([Agent("A")])
        for user, hours_later in (("one", 25), ("two", 0)):  # a session expires after 24
            reply = await world.call("NOBODY", "GO", user_id=user)
            assert reply.error.code == "ROUTING_UNKNOWN_AGENT"
            await asyncio.sleep(hours_later * 60 * 60)

    run(scenario)


def test_a_tool_in_use_waits_with_the_tree_that_waits_for_a_person_and_ends_with_its_call():
    boss, payer, worker = (Agent(name, tools_allowed=["*"]) for name in ("BOSS", "PAYER", "WORKER"))

    @boss.capability("GO")
    async def go(ctx: Context):
        replies = await ctx.gather(ctx.call("WORKER", "WORK"), ctx.call("PAYER", "PAY"))
        return [reply.error.code if reply.error else reply.data for reply in replies]

    @worker.capability("WORK")
    async def work(ctx: Context):
        return await ctx.use_tool("work")

    @payer.capability("PAY")
    async def pay(ctx: Context):
        await asyncio.sleep(0.1)
        return await ctx.use_tool("wire")

    async def scenario(world):
        wire = Tool(name="wire", function=lambda: "sent", risk="high")
        node = await world.node([boss, payer, worker], tools=[slow_tool(1), wire])
        asked = await world.call("BOSS", "GO", user_id="u", request_id="r")
        assert asked.status == "needs_input"
        reply = await node.decide(asked.data["approval_id"], granted=True)
        assert reply.data == ["TOOL_OUTCOME_UNKNOWN", "sent"]

    kinds = [kind for kind, _ in records(run(scenario), "r.1#1")]
    assert kinds == ["Accepted", "Paused", "Settled"]


def test_a_breaker_whose_probe_waits_for_a_person_lets_others_try():
    agent = Agent("A", tools_allowed=["*"])
    failing = [True] * 2

    @agent.capability("GO", breaker_policy=Policy(failures_max=2, open_ms=100, probes=1))
    async def go(ctx: Context, asks: bool = False):
        if failing:
            failing.pop()
            raise ConnectionError("down")
        return await ctx.use_tool("wire") if asks else "done"

    async def scenario(world):
        await world.node([agent], tools=[Tool(name="wire", function=lambda: "sent", risk="high")])
        for _ in range(2):
            assert (await world.call("A", "GO", user_id="u")).status == "error"
        await asyncio.sleep(0.2)
        assert (await world.call("A", "GO", {"asks": True}, user_id="u")).status == "needs_input"
        assert (await world.call("A", "GO", user_id="u")).data == "done"

    run(scenario)


def two_lives(tmp_path, first: list[Agent], second: list[Agent], until, tools: list[Tool] = (), **more) -> Reply:
    """Call GO of BOSS, kill the node `until` something has happened, and return the reply that the next node gives."""

    async def life(agents: list[Agent], *, dies: bool) -> Reply | None:
        node = Node(agents, tools=tools, store=tmp_path / "s.db", lag_ms=None)
        await node.start()
        asked = {"user_id": "u", "request_id": "r", "timeout_ms": 60_000, **more}
        if not dies:
            reply = await node.call("BOSS", "GO", **asked)
            await node.close()
            return reply
        node.start_call("BOSS", "GO", **asked)
        while not until():
            await asyncio.sleep(0)
        await die(node)
        return None

    async def lives() -> Reply:
        await life(first, dies=True)
        return await life(second, dies=False)

    return asyncio.run(lives())


def hanging(runs: list[str], name: str = "HELP") -> Agent:
    agent = Agent(name)

    @agent.capability("HANG")
    async def hang() -> None:
        runs.append("hang")
        await asyncio.Event().wait()

    return agent


def test_a_begun_call_that_is_refused_in_the_next_life_has_ended_with_all_below_it_and_stays_counted(tmp_path):
    runs: list[str] = []
    boss, helper, stricter = Agent("BOSS"), Agent("HELP"), Agent("HELP")

    @boss.capability("GO")
    async def go(ctx: Context) -> list:
        reply = await ctx.call("HELP", "GO")
        left = ctx.limits.calls_max, ctx.tokens_left
        await ctx._path.durable()
        ended = [ctx._path._journal.call(one).settled_at is not None for one in ("r.1", "r.1.1")]
        return [reply.error.code, *left, ended]

    @helper.capability("GO")
    async def help_out(ctx: Context) -> None:
        await ctx.call("LEAF", "HANG")

    @stricter.capability("GO")
    async def never(needed: int) -> None:
        runs.append("never")

    leaf = hanging(runs, "LEAF")
    reply = two_lives(
        tmp_path, [boss, helper, leaf], [boss, stricter, leaf], lambda: runs, limits=Limits(calls_max=5, tokens_max=100)
    )
    # Its own call and the two that were begun are gone.
    assert reply.data == ["INPUT_VALIDATION_FAILED", 2, 100, [True, True]]
    assert runs == ["hang"]


def test_what_a_failed_call_of_an_earlier_life_used_is_used(tmp_path):
    runs: list[str] = []
    boss, failing = Agent("BOSS"), Agent("FAIL")

    @failing.capability("WORK")
    async def work(ctx: Context) -> None:
        runs.append("work")
        ctx.report_usage(prompt_tokens=10)
        raise RuntimeError("no")

    @boss.capability("GO")
    async def go(ctx: Context) -> list:
        failed = await ctx.call("FAIL", "WORK")
        left = ctx.tokens_left
        if runs.count("hang") < 1:
            await ctx.call("HELP", "HANG")
        return [failed.error.code, left]

    agents = [boss, failing, hanging(runs)]
    reply = two_lives(tmp_path, agents, agents, lambda: "hang" in runs, limits=Limits(tokens_max=100))
    assert reply.data == ["TARGET_CRASHED", 90]
    assert (reply.usage.prompt_tokens, runs.count("work")) == (10, 1)


def test_a_call_with_a_budget_of_its_own_has_in_the_next_life_what_it_has_left(tmp_path):
    runs: list[str] = []
    boss, middle, leaf = Agent("BOSS"), Agent("MID"), Agent("LEAF")

    @boss.capability("GO")
    async def go(ctx: Context) -> list:
        return (await ctx.call("MID", "GO")).data

    @middle.capability("GO", limits=Limits(calls_max=3))
    async def mid(ctx: Context) -> list:
        replies = [await ctx.call("LEAF", "GO", {"n": n}) for n in range(4)]
        return [reply.error.code if reply.error else "" for reply in replies]

    @leaf.capability("GO")
    async def do(n: int) -> None:
        runs.append(str(n))
        if n == 1 and runs.count("1") < 2:
            await asyncio.Event().wait()

    agents = [boss, middle, leaf]
    reply = two_lives(tmp_path, agents, agents, lambda: "1" in runs)
    assert reply.data == ["", "", "BUDGET_CALLS_EXHAUSTED", "BUDGET_CALLS_EXHAUSTED"]
    assert runs == ["0", "1", "1"]


def test_what_was_not_made_again_yet_waits_with_its_tree_for_a_person(tmp_path):
    runs: list[str] = []
    boss, helper = Agent("BOSS", tools_allowed=["pay"]), Agent("HELP")

    @boss.capability("GO")
    async def go(ctx: Context) -> list:
        if runs:  # of the first life
            await ctx.use_tool("pay")
        return [(await ctx.call("HELP", "WORK")).data]

    @helper.capability("WORK")
    async def work() -> str:
        runs.append("work")
        if len(runs) == 1:
            await asyncio.Event().wait()
        return "done"

    agents, tool = [boss, helper], Tool(name="pay", function=lambda: "paid", risk="high")
    asked = two_lives(tmp_path, agents, agents, lambda: runs, tools=[tool])
    assert asked.status == "needs_input"

    async def third_life() -> Reply:
        async with Node(agents, tools=[tool], store=tmp_path / "s.db", lag_ms=None) as node:
            return await node.decide("r#1", granted=True, by="boss")

    assert asyncio.run(third_life()).data == ["done"]
    assert runs == ["work", "work"]


def test_where_the_store_cannot_say_what_was_begun_nothing_is_left():
    class Unreadable:
        def begun(self, request):
            raise UnavailableError("no", code="STORE_UNAVAILABLE")

    request = Request("r", "A", "GO", "u", Limits(calls_max=7), 1, 0)
    assert count_begun(Unreadable(), request) == 7
