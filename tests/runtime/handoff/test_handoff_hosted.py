"""A running node takes the handoffs that are addressed to its agents, through the one call path."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from death import die
from handoff_pair import code_of
from pydantic import BaseModel

from comity import Agent, AsyncHandoffManager, AsyncHandoffReceiver, Context, Limits, Node, Reply, Status, Tool
from comity.core.agent.agent import DeclarationError
from comity.core.handoff.machine import State
from comity.errors import UnavailableError
from comity.runtime.handoff import hosted
from comity.testing import World


class Found(BaseModel):
    cause: str


def o11y(**more):
    agent = Agent("o11y", aliases=["eyes"], **more)
    agent_seen = []

    @agent.capability("investigate")
    async def investigate(ctx: Context, app: str) -> Found:
        request = ctx.request
        agent_seen.append((request.source, request.chain, request.trace_id, request.parent_span_id, request.message))
        return Found(cause=f"N+1 in {app}")

    @agent.capability("crash")
    async def crash() -> None:
        raise RuntimeError("it broke")

    @agent.capability("slow")
    async def slow(ctx: Context) -> str:
        await asyncio.sleep(3600)
        return "late"

    @agent.capability("unready")
    async def unready() -> None:
        raise UnavailableError("try later")

    @agent.capability("wordless")
    async def wordless(ctx: Context) -> Reply:
        return Reply.success(ctx.request.message) if ctx.request.message else Reply(status=Status.NEEDS_INPUT)

    @agent.capability("ask")
    async def ask(ctx: Context) -> Reply:
        if ctx.request.message in {"", "Look"}:
            return Reply.needs_input("Which app?")
        return Reply.success({"cause": ctx.request.message})

    agent_seen_by[id(agent)] = agent_seen
    return agent


agent_seen_by: dict[int, list] = {}


async def test_a_handoff_for_an_agent_of_the_node_is_done_by_it(make_node):
    agent = o11y()
    async with make_node([agent]) as node:
        manager = AsyncHandoffManager("checkout", "orchestrator", node=node)
        for to in ("o11y", "eyes", None, "o11y/cart-7"):  # its name, another one, whoever has the capability, one of its keys
            made = await manager.create_handoff(to, "investigate", "Find it", {"app": "checkout"})
            ended = await manager.await_result(made)
            assert (ended.status, ended.result, ended.receiver) == ("completed", {"cause": "N+1 in checkout"}, "o11y")
            source, chain, trace_id, parent_id, message = agent_seen_by[id(agent)][-1]
            assert (source, chain, message) == ("orchestrator", ("orchestrator",), "Find it")
            assert (trace_id, parent_id) == (ended.request.trace_id, ended.request.span_id)
        rows = [(row.request_id, row.kind) for row in node.audit.rows() if row.request_id.startswith(made)]
        assert rows == [(made, "admitted"), (f"{made}~1", "admitted"), (f"{made}~1", "settled"), (made, "settled")]


async def test_what_the_agent_cannot_do_is_told_with_its_reason(make_node):
    async with make_node([o11y()]) as node:
        manager = AsyncHandoffManager("checkout", "orchestrator", node=node)
        crashed = await manager.create_and_await("o11y", "crash")
        assert (crashed.state, crashed.reply.error.code) == (State.FAILED, "TARGET_CRASHED")
        unready = await manager.create_and_await("o11y", "unready", timeout_ms=20_000)
        assert (unready.state, unready.reply.error.message) == (State.FAILED, "try later")  # the agent was called: no refusal
        late = await manager.create_and_await("o11y", "slow", timeout_ms=2_000)
        assert late.state in {State.TIMEOUT, State.FAILED}
        bad = await manager.create_and_await("o11y", "investigate", inputs={"app": "x"}, expected_output={"fields": ["fix"]})
        assert (bad.state, bad.reply.error.code) == (State.FAILED, "OUTPUT_VALIDATION_FAILED")
        assert await code_of(manager.create_handoff("o11y", "investigate", inputs={"app": 7})) == "INPUT_VALIDATION_FAILED"


async def test_a_question_of_the_agent_is_asked_of_whoever_handed_off_and_its_answer_told(make_node):
    async with make_node([o11y()]) as node:
        manager = AsyncHandoffManager("checkout", "orchestrator", node=node)
        made = await manager.create_handoff("o11y", "ask", "Look")
        async for entry in manager.events(made):
            if entry.kind == "input_required":
                assert entry.data["question"] == "Which app?"
                await manager.provide_input(made, "checkout")
        assert (await manager.await_result(made)).result == {"cause": "checkout"}


async def test_a_question_without_words_is_asked_all_the_same(make_node):
    async with make_node([o11y()]) as node:
        manager = AsyncHandoffManager("checkout", "orchestrator", node=node)
        made = await manager.create_handoff("o11y", "wordless")
        async for entry in manager.events(made):
            if entry.kind == "input_required":
                assert entry.data["question"] == "What should be done?"
                await manager.provide_input(made, "nothing")
        assert (await manager.await_result(made)).result == "nothing"


async def test_a_handoff_that_is_withdrawn_ends_the_call_that_was_made_for_it(make_node):
    async with make_node([o11y()]) as node:
        manager = AsyncHandoffManager("checkout", "orchestrator", node=node)
        made = await manager.create_handoff("o11y", "slow")
        await asyncio.sleep(1)
        await manager.cancel(made)
        await asyncio.sleep(1)
        (row,) = [row for row in node.audit.rows() if row.request_id == f"{made}~1" and row.kind == "settled"]
        assert row.status == "cancelled"


async def test_an_agent_or_node_that_takes_none_leaves_them_to_receivers(make_node):
    for agent, more in ((o11y(takes_handoffs=False), {}), (o11y(), {"takes_handoffs": False})):
        async with make_node([agent], **more) as node:
            manager = AsyncHandoffManager("checkout", "orchestrator", node=node)
            made = await manager.create_handoff("o11y", "investigate", inputs={"app": "x"})
            await asyncio.sleep(60)
            assert (await manager.get_handoff_status(made)).state is State.PENDING
            receiver = AsyncHandoffReceiver("o11y", ["investigate"], node=node)
            assert [one.id for one in await receiver.take()] == [made]


async def test_a_receiver_that_a_program_has_on_the_node_has_the_work_and_the_agent_again_once_it_is_gone(make_node):
    agent = o11y()
    async with make_node([agent]) as node:
        manager = AsyncHandoffManager("checkout", "orchestrator", node=node)
        await manager.create_and_await("o11y", "investigate", inputs={"app": "first"})  # the agent is being served by now
        async with AsyncHandoffReceiver("o11y", ["investigate"], node=node) as receiver:
            made = await manager.create_handoff("o11y", "investigate", inputs={"app": "second"})
            await asyncio.sleep(60)
            (taken,) = await receiver.take()
            assert taken.id == made
            await receiver.complete(made, {"cause": "by hand"})
            assert (await manager.await_result(made)).result == {"cause": "by hand"}
            waiting = await manager.create_handoff("o11y", "investigate", inputs={"app": "third"})
            await asyncio.sleep(1)  # the agent has heard of it, and stood back
            gone_s = asyncio.get_running_loop().time()
        assert (await manager.await_result(waiting)).result == {"cause": "N+1 in third"}
        assert asyncio.get_running_loop().time() - gone_s < 1  # the agent is told, and does not look again after a while
        assert len(agent_seen_by[id(agent)]) == 2


async def test_only_the_tenants_that_are_named_are_served(make_node):
    async with make_node([o11y()], takes_handoffs=["acme"]) as node:
        ours = AsyncHandoffManager("checkout", "orchestrator", node=node, tenant_id="acme")
        assert (await ours.create_and_await("o11y", "investigate", inputs={"app": "x"})).status == "completed"
        others = AsyncHandoffManager("checkout", "orchestrator", node=node)
        made = await others.create_handoff("o11y", "investigate", inputs={"app": "x"})
        await asyncio.sleep(60)
        assert (await others.get_handoff_status(made)).state is State.PENDING


@pytest.mark.parametrize("odd", ["acme", [1], [""]])
def test_tenants_that_are_none_are_told_at_once(odd):
    with pytest.raises(DeclarationError, match="takes_handoffs"):
        Node(takes_handoffs=odd)


async def test_an_agent_that_joins_later_takes_handoffs_too(make_node):
    other = Agent("other")
    async with make_node([other]) as node:
        manager = AsyncHandoffManager("checkout", "orchestrator", node=node)
        made = await manager.create_handoff("late", "DO")
        late = Agent("late")

        @late.capability("DO")
        async def do() -> int:
            return 7

        node.add(late)
        assert (await manager.await_result(made)).result == 7


async def test_the_limits_and_the_chain_of_a_handoff_hold_in_the_call_that_does_it(make_node):
    boss, worker = Agent("BOSS"), Agent("WORK")
    seen = []

    @boss.capability("GO")
    async def go(ctx: Context) -> dict:
        reply = await ctx.hand_off("WORK", "BACK", task="Go back", limits=Limits(tokens_max=100))
        return {"status": str(reply.status), "data": reply.data, "left": ctx.tokens_left}

    @worker.capability("BACK")
    async def back(ctx: Context) -> str:
        seen.append((ctx.request.chain, ctx.limits.tokens_max))
        ctx.report_usage(prompt_tokens=30, completion_tokens=5)
        again = await ctx.call("BOSS", "GO")
        return again.error.code

    async with make_node([boss, worker], limits=Limits(tokens_max=1_000)) as node:
        reply = await node.call("BOSS", "GO", user_id="u")
        assert reply.data == {"status": "success", "data": "ROUTING_CYCLE_DETECTED", "left": 965}
        assert seen == [(("BOSS",), 100)]
        assert reply.usage.prompt_tokens == 30


async def test_what_an_agent_is_handed_is_no_word_of_its_users_in_the_session(make_node):
    async with make_node([o11y()]) as node:
        manager = AsyncHandoffManager("checkout", "orchestrator", node=node, user_id="u", session_id="s")
        await manager.create_and_await("o11y", "investigate", "Find it", inputs={"app": "x"})
        session = node.session("s")
        assert [turn.role for turn in (() if session is None else session.turns)] == []


async def test_a_high_risk_tool_asks_a_person_and_the_handoff_goes_on_with_the_answer(make_node):
    agent = Agent("o11y", tools_allowed=["pay"])

    @agent.capability("pay")
    async def pay(ctx: Context) -> int:
        return await ctx.use_tool("pay")

    tool = Tool(name="pay", function=lambda: 7, risk="high")
    async with make_node([agent], tools=[tool]) as node:
        manager = AsyncHandoffManager("checkout", "orchestrator", node=node)
        made = await manager.create_handoff("o11y", "pay")
        async for entry in manager.events(made):
            if entry.kind == "input_required":
                (approval,) = node.approvals()
                await node.decide(approval.id, granted=True, by="ann")
                await manager.provide_input(made, "decided")
        assert (await manager.await_result(made)).result == 7


def test_a_handoff_that_waits_in_a_store_is_taken_when_a_node_with_its_agent_starts(tmp_path):
    async def make():
        async with AsyncHandoffManager("checkout", "orchestrator", store=tmp_path / "w.db") as manager:
            return await manager.create_handoff("o11y", "investigate", inputs={"app": "checkout"})

    async def main(made):
        async with (
            Node([o11y()], store=tmp_path / "w.db"),
            AsyncHandoffManager("checkout", "orchestrator", store=tmp_path / "w.db") as manager,
        ):
            first = await manager.await_result(made)
            second = await manager.create_and_await("o11y", "investigate", inputs={"app": "second"})
            return first.result, second.result

    made = asyncio.run(make())
    assert asyncio.run(main(made)) == ({"cause": "N+1 in checkout"}, {"cause": "N+1 in second"})


def test_what_a_node_was_doing_that_died_is_gone_on_with_once(tmp_path):
    runs, release = [], asyncio.Event()

    def slow():
        agent = Agent("o11y")

        @agent.capability("investigate")
        async def investigate(ctx: Context) -> int:
            runs.append(ctx.request.request_id)
            if len(runs) == 1:
                await release.wait()
            return len(runs)

        return agent

    async def first():
        node = Node([slow()], store=tmp_path / "w.db", lag_ms=None)
        await node.start()
        manager = AsyncHandoffManager("checkout", "orchestrator", node=node)
        made = await manager.create_handoff("o11y", "investigate", timeout_ms=60_000)
        while not runs:
            await asyncio.sleep(0.01)
        node.handoffs.leases.close()
        await die(node)  # and what served it is gone with its loop
        return made

    async def second(made):
        async with Node([slow()], store=tmp_path / "w.db", lag_ms=None) as node:
            manager = AsyncHandoffManager("checkout", "orchestrator", node=node)
            return await manager.await_result(made, timeout_ms=20_000)

    made = asyncio.run(first())
    ended = asyncio.run(second(made))
    assert (ended.status, ended.result) == ("completed", 2)
    assert runs == [f"{made}~1"] * 2  # the same call, taken up, and no second one beside it


def stored(reply: Reply | None, settled_at: int | None = 5) -> SimpleNamespace:
    return SimpleNamespace(reply=reply, settled_at=settled_at)


GOOD, BAD, LEFT = stored(Reply.success(1)), stored(Reply.failure("no")), stored(None)  # LEFT: its content was removed


@pytest.mark.parametrize(
    ("attempts", "found"),
    [
        ({}, None),
        ({1: GOOD}, 1),
        ({1: GOOD, 2: BAD}, 1),
        ({1: GOOD, 2: LEFT}, 1),
        ({1: BAD}, None),
        ({1: GOOD, 2: stored(None, None)}, "h-2"),  # under way: it is waited for
        ({1: GOOD, 2: stored(Reply.needs_input("may I?"), None)}, "h-2"),
        ({1: GOOD, 2: "running"}, "running"),
    ],
)
async def test_a_handoff_goes_on_with_the_newest_attempt_that_succeeded_or_is_under_way(attempts, found):
    async def reply_of(call: str) -> Reply:
        return Reply.success(call)

    async def ask(handoff: SimpleNamespace, request_id: str, task: str) -> Reply:
        return Reply.success(request_id)

    handoff = SimpleNamespace(id="h", fence=3, task="find it")
    names = {hosted._attempt(handoff, fence): fence for fence in (1, 2)}
    under_way = {name: "running" for name, fence in names.items() if attempts.get(fence) == "running"}
    path = SimpleNamespace(
        calls=under_way,
        placement=SimpleNamespace(takes_over=False),
        reply_of=reply_of,
        settlement=SimpleNamespace(shown=lambda reply, request: reply),
    )
    journal = SimpleNamespace(call=lambda name: attempts.get(names[name]))
    receiver = SimpleNamespace(_path=path, _hosted_at=SimpleNamespace(journal=journal), _ask=ask)
    reply = await hosted.HostedReceiver._earlier(receiver, handoff)
    told = None if reply is None else reply.data
    assert told == (found if found != "h-2" else hosted._attempt(handoff, 2))


@pytest.mark.parametrize("seed", range(6))
def test_hosted_agents_complete_each_handoff_once_whichever_nodes_die(seed):
    ends = []

    def worker():
        agent = Agent("o11y")

        @agent.capability("look")
        async def look(ctx: Context, number: int) -> int:
            await asyncio.sleep(0.5)
            return number

        return agent

    async def scenario(world):
        boss = await world.node([])
        workers = [await world.node([worker()]) for _ in range(2)]
        for one in workers:
            _ = one.node.handoffs  # a node on a file hears of it from its start
        manager = AsyncHandoffManager(node=boss.node, user_id="u")
        for number in range(6):
            await boss.within(
                manager.create_handoff("o11y", "look", inputs={"number": number}, handoff_id=f"h{number}", timeout_ms=120_000)
            )
        await asyncio.sleep(0.1 + 0.1 * seed)
        world.crash(workers[0].life)
        for number in range(6):
            ended = await boss.within(manager.await_result(f"h{number}"))
            ends.append((ended.state, ended.result))

    outcome = World(seed).run(scenario)
    assert outcome.failure == ""
    assert ends == [(State.COMPLETED, number) for number in range(6)]


def test_a_manager_that_is_told_of_agents_checks_inputs_as_they_declare_them_and_does_not_run_them(tmp_path):
    async def main():
        async with AsyncHandoffManager("checkout", "boss", store=tmp_path / "w.db", agents=[o11y()]) as manager:
            refused = await code_of(manager.create_handoff("o11y", "investigate", inputs={"app": 7}))
            unknown = await code_of(manager.create_handoff("o11y", "investigat", inputs={"app": "x"}))
            made = await manager.create_handoff("o11y", "investigate", inputs={"app": "x"})
            ended = await manager.await_result(made, timeout_ms=50)
            return refused, unknown, ended.state

    assert asyncio.run(main()) == ("INPUT_VALIDATION_FAILED", "ROUTING_UNKNOWN_CAPABILITY", State.PENDING)
