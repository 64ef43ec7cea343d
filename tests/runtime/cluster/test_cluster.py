"""Several nodes on one store: calls go to where their agent is held, run there once, and come back."""

from __future__ import annotations

import asyncio
import base64
import gc
from typing import Any

import pytest
from cluster_world import World, die, play

from comity import Agent, Context, Limits, Node, Reply, Risk, Status, Tool
from comity.core.cluster import messages as wire
from comity.core.cluster.lease import Lease
from comity.core.journal.records import Settled
from comity.runtime.cluster import asking
from comity.runtime.cluster.outbound import Sent


def front() -> Agent:
    agent = Agent("FRONT")

    @agent.capability("ASK")
    async def ask(ctx: Context, times: int = 1) -> dict:
        replies = [await ctx.call("BACK", "DO", {"number": number}, objective=f"number {number}") for number in range(times)]
        return {"statuses": [str(reply.status) for reply in replies], "data": [reply.data for reply in replies]}

    return agent


def back(runs: list[int], *, seconds: float = 0.0, **more: object) -> Agent:
    agent = Agent("BACK", **more)

    @agent.capability("DO")
    async def do(ctx: Context, number: int = 0) -> dict:
        runs.append(number)
        ctx.state["runs"] = ctx.state.get("runs", 0) + 1
        await asyncio.sleep(seconds)
        ctx.report_usage(prompt_tokens=10)
        return {"number": number, "depth": ctx.request.depth, "calls_max": ctx.limits.calls_max, "runs": ctx.state["runs"]}

    return agent


def test_a_call_to_an_agent_that_another_node_has_runs_there_once_and_its_reply_returns() -> None:
    runs: list[int] = []

    async def case(world: World, one: Node, two: Node) -> None:
        reply = await one.call("FRONT", "ASK", {"times": 2}, user_id="u", request_id="r")
        assert reply.data["statuses"] == ["success", "success"]
        assert [data["number"] for data in reply.data["data"]] == runs == [0, 1]
        assert [data["runs"] for data in reply.data["data"]] == [1, 2]
        assert reply.data["data"][0]["depth"] == 1
        assert (reply.usage.calls, reply.usage.prompt_tokens) == (2, 20)
        for request_id in ("r", "r.1", "r.2"):
            assert world.kinds(request_id) == ["admitted", "settled"]
        stored = world.store.call("r.1")
        assert stored is not None
        assert stored.node_id == "memory"

    play(case, [front()], [back(runs)])


def test_an_id_that_a_node_could_make_is_refused_before_any_node_is_asked() -> None:
    runs: list[int] = []

    async def case(world: World, one: Node, two: Node) -> None:
        called = await one.call("BACK", "DO", user_id="u", request_id="r.1")
        started = await one.start_call("BACK", "DO", user_id="u", request_id="r#1").reply()
        assert [reply.error.code for reply in (called, started)] == ["IDENTITY_INVALID"] * 2
        assert (runs, world.messages(wire.Ask)) == ([], [])

    play(case, [front()], [back(runs)])


def sent_in_memory() -> list[Sent]:
    gc.collect()
    return [found for found in gc.get_objects() if isinstance(found, Sent)]


def test_a_call_that_ran_elsewhere_leaves_nothing_in_memory() -> None:
    gc.freeze()  # what other tests left is no work for the collections below
    of_other_tests = sent_in_memory()

    async def case(world: World, one: Node, two: Node) -> None:
        assert (await one.call("FRONT", "ASK", {"times": 3}, user_id="u")).ok
        assert len(world.messages(wire.Ask)) == 3
        await asyncio.sleep(1)
        assert [found for found in sent_in_memory() if not any(found is one for one in of_other_tests)] == []

    play(case, [front()], [back([])])


@pytest.mark.parametrize("request_id", ["", 0, b"r", "x" * 1_000])
def test_what_cannot_be_an_id_is_refused_in_a_cluster_too_and_runs_nothing(request_id: Any) -> None:
    runs: list[int] = []

    async def case(world: World, one: Node, two: Node) -> None:
        called = await one.call("BACK", "DO", user_id="u", request_id=request_id)
        started = await one.start_call("BACK", "DO", user_id="u", request_id=request_id).reply()
        assert called.error is not None
        assert started.error is not None
        assert (called.error.code, started.error.code, runs) == ("IDENTITY_INVALID", "IDENTITY_INVALID", [])

    play(case, [front()], [back(runs)])


def test_who_asks_again_after_every_refusal_waits_longer_and_longer_in_a_cluster_too() -> None:
    stubborn = Agent("STUBBORN")

    @stubborn.capability("ASK")
    async def ask_on_and_on(ctx: Context) -> None:
        for _ in range(1_000):  # and not for ever: without pauses no time would pass
            await ctx.call("NOBODY", "GO")

    async def case(world: World, one: Node) -> None:
        assert (await one.call("STUBBORN", "ASK", user_id="u")).status is Status.TIMEOUT
        assert 100 < sum(row.kind == "refused" for row in world.store.rows()) < 150

    play(case, [stubborn])


def test_a_user_may_ask_any_node_and_gets_the_answer_of_the_one_that_holds_the_agent() -> None:
    runs: list[int] = []

    async def case(world: World, one: Node, two: Node) -> None:
        first = await two.call("BACK", "DO", user_id="u")
        second = await one.call("BACK", "DO", user_id="u", request_id="again")
        third = await one.call("BACK", "DO", user_id="u", request_id="again")
        assert [one.data["runs"] for one in (first, second, third)] == [1, 2, 2]
        assert world.kinds("again") == ["admitted", "settled"]
        assert len(world.messages(wire.Ask)) == 1

    play(case, [back(runs)], [back(runs)])


def test_an_agent_nobody_has_is_refused_as_unknown_and_one_that_nobody_runs_is_found() -> None:
    async def case(world: World, one: Node, two: Node, three: Node) -> None:
        unknown = await one.call("NOBODY", "DO", user_id="u")
        assert unknown.error is not None
        assert unknown.error.code == "ROUTING_UNKNOWN_AGENT"
        assert (await one.call("BACK", "DO", {"number": 3}, user_id="u")).data["number"] == 3

    play(case, [front()], [front()], [back([])])


def test_the_inputs_are_checked_where_the_agent_is() -> None:
    async def case(world: World, one: Node, two: Node) -> None:
        reply = await one.call("BACK", "DO", {"number": "many"}, user_id="u")
        assert reply.error is not None
        assert reply.error.code == "INPUT_VALIDATION_FAILED"

    play(case, [front()], [back([])])


@pytest.mark.parametrize(("seconds", "said"), [(0.03, ["Ask", "Answer"]), (0.11, ["Ask", "Taken", "Answer"])])
def test_a_call_that_is_answered_soon_costs_two_messages_and_any_other_is_acknowledged_once(
    seconds: float, said: list[str]
) -> None:
    async def case(world: World, one: Node, two: Node) -> None:
        for request_id in ("r", "s"):  # a node that has told once tells again
            reply = await one.call("FRONT", "ASK", {"times": 2}, user_id="u", request_id=request_id)
            assert reply.data["statuses"] == ["success", "success"]
        for request_id in ("r.1", "r.2", "s.1", "s.2"):
            about = [type(one).__name__ for _, _, one in world.network.sent if _about(one) == request_id]
            assert about == said
        assert [one.is_root for one in world.messages(wire.Taken)] == [False] * 4 * (len(said) - 2)

    play(case, [front()], [back([], seconds=seconds)])


def _about(message: wire.Message) -> str:
    return message.request.request_id if isinstance(message, wire.Ask) else getattr(message, "request_id", "")


@pytest.mark.parametrize("lost", [wire.Ask, wire.Taken, wire.Answer])
def test_a_message_that_is_lost_is_made_up_for_and_nothing_runs_twice(lost: type) -> None:
    runs: list[int] = []

    async def case(world: World, one: Node, two: Node) -> None:
        dropped: list[wire.Message] = []

        def fault(sender: str, receiver: str, message: wire.Message) -> tuple[float, ...]:
            if isinstance(message, lost) and not dropped:
                dropped.append(message)
                return ()
            return (0.001,)

        world.network.fault = fault
        reply = await one.call("FRONT", "ASK", user_id="u", request_id="r")
        assert reply.data["statuses"] == ["success"]
        assert len(dropped) == 1
        assert runs == [0]
        assert world.kinds("r.1") == ["admitted", "settled"]

    play(
        case, [front()], [back(runs, seconds=0.2 if lost is wire.Taken else 0.02)]
    )  # what is answered soon is not acknowledged


def test_messages_that_are_doubled_late_and_out_of_order_change_nothing() -> None:
    runs: list[int] = []

    async def case(world: World, one: Node, two: Node) -> None:
        delays = iter(range(1, 10_000))

        def fault(sender: str, receiver: str, message: wire.Message) -> tuple[float, ...]:
            number = next(delays)
            return ((number * 7 % 13) / 50, (number * 5 % 11) / 5)

        world.network.fault = fault
        replies = await asyncio.gather(
            *(one.call("FRONT", "ASK", {"times": 3}, user_id="u", request_id=f"r{n}") for n in range(5))
        )
        await asyncio.sleep(10)
        assert all(reply.data["statuses"] == ["success"] * 3 for reply in replies)
        assert sorted(runs) == sorted([0, 1, 2] * 5)
        for number in range(5):
            assert world.kinds(f"r{number}.3") == ["admitted", "settled"]

    play(case, [front()], [back(runs, seconds=0.01)])


def test_a_callee_that_does_not_answer_in_time_ends_on_both_nodes_and_its_late_result_goes_nowhere() -> None:
    runs: list[int] = []
    agent = Agent("BACK")

    @agent.capability("DO", timeout_ms=1_000)
    async def do(number: int = 0) -> int:
        runs.append(number)
        for _ in range(3):
            try:
                await asyncio.sleep(2)
            except asyncio.CancelledError:
                continue
        return number

    async def case(world: World, one: Node, two: Node) -> None:
        reply = await one.call("FRONT", "ASK", user_id="u", request_id="r")
        assert reply.data["statuses"] == ["timeout"]
        await asyncio.sleep(20)
        assert world.kinds("r.1") == ["admitted", "settled", "noted", "late"]  # noted: its code ran on
        stored = world.store.call("r.1")
        assert stored is not None
        assert stored.reply is not None
        assert str(stored.reply.status) == "timeout"
        assert runs == [0]

    play(case, [front(), agent], [agent])


def test_cancelling_reaches_what_runs_elsewhere_and_the_deadline_does_if_the_message_is_lost() -> None:
    async def case(world: World, one: Node, two: Node) -> None:
        for request_id, fault in (
            ("a", lambda *_: (0.001,)),
            ("b", lambda s, r, m: () if isinstance(m, wire.Cancel) else (0.001,)),
        ):
            await two.call("BACK", "DO", user_id="u", timeout_ms=1)  # so that the second node has it
            world.network.fault = fault
            handle = one.start_call("FRONT", "ASK", user_id="u", request_id=request_id, timeout_ms=5_000)
            await asyncio.sleep(0.5)
            assert world.kinds(f"{request_id}.1") == ["admitted"]
            assert handle.cancel()
            one._path.placement.carrier.received("n2", wire.Moved(f"{request_id}.1"))  # type: ignore[union-attr]  # too late
            reply = await handle.reply()
            assert str(reply.status) == "cancelled"
            assert world.kinds(f"{request_id}.1") == ["admitted", "settled"]
            busy = two._path.calls  # type: ignore[union-attr]
            await asyncio.sleep(0.1)
            assert request_id == "b" or f"{request_id}.1" not in busy
            await asyncio.sleep(5)
            assert f"{request_id}.1" not in busy
            assert world.kinds(f"{request_id}.1") == ["admitted", "settled"]

    play(case, [front(), back([], seconds=60)], [back([], seconds=60)])


def test_a_tree_that_spans_nodes_makes_no_more_calls_than_its_root_had() -> None:
    runs: list[int] = []
    middle = Agent("MIDDLE")

    @middle.capability("SPREAD")
    async def spread(ctx: Context) -> int:
        replies = await ctx.gather(*(ctx.call("BACK", "DO", {"number": number}) for number in range(8)))
        return sum(reply.ok for reply in replies)

    top = Agent("TOP")

    @top.capability("ALL")
    async def all_(ctx: Context) -> list:
        replies = await ctx.gather(*(ctx.call("MIDDLE", "SPREAD") for _ in range(3)))
        return [reply.data for reply in replies]

    async def case(world: World, one: Node, two: Node, three: Node) -> None:
        reply = await one.call("TOP", "ALL", user_id="u", request_id="r", limits=Limits(calls_max=12))
        accepted = [row for row in world.store.rows() if row.kind == "admitted"]
        assert len(accepted) <= 12
        assert len(runs) == len(accepted) - 4
        assert reply.usage.calls == len(accepted) - 1
        again = await one.call("TOP", "ALL", user_id="u", limits=Limits(calls_max=100))
        assert again.data == [8, 8, 8]

    play(case, [top], [middle], [back(runs)])


def test_what_was_set_aside_for_another_node_and_not_spent_there_comes_back() -> None:
    runs: list[int] = []

    async def case(world: World, one: Node, two: Node) -> None:
        reply = await one.call("FRONT", "ASK", {"times": 12}, user_id="u", limits=Limits(calls_max=11, tokens_max=95))
        assert reply.data["statuses"] == ["success"] * 9 + ["error"] + ["refused"] * 2
        assert len(runs) == 10

    play(case, [front()], [back(runs)])


def test_a_loop_within_one_root_is_refused_at_once_on_whichever_node() -> None:
    def passing(name: str, to: str) -> Agent:
        agent = Agent(name)

        @agent.capability("GO")
        async def go(ctx: Context) -> str:
            reply = await ctx.call(to, "GO")
            return reply.data if reply.ok else reply.error.code

        return agent

    async def case(world: World, one: Node, two: Node) -> None:
        began = asyncio.get_running_loop().time()
        reply = await one.call("A", "GO", user_id="u")
        assert reply.data == "ROUTING_CYCLE_DETECTED"
        assert asyncio.get_running_loop().time() - began < 0.1

    play(case, [passing("A", "B")], [passing("B", "A")])


@pytest.mark.parametrize("lost", [0, 3])
def test_two_roots_that_would_wait_for_each_other_across_nodes_are_refused_as_soon_as_they_hear_of_each_other(
    lost: int,
) -> None:
    heard: list[wire.Message] = []

    def deaf(sender: str, receiver: str, message: wire.Message) -> tuple[float, ...]:
        if isinstance(message, wire.Seen):
            heard.append(message)
            return (0.001,) if len(heard) > lost else ()
        return (0.001,)

    def waiting(name: str, to: str) -> Agent:
        agent = Agent(name, concurrency=1)

        @agent.capability("GO")
        async def go(ctx: Context, first: bool = True) -> str:
            await asyncio.sleep(0.05)  # both hold their own place by now
            if not first:
                return "done"
            reply = await ctx.call(to, "GO", {"first": False})
            return reply.data if reply.ok else reply.error.code

        return agent

    async def case(world: World, one: Node, two: Node) -> None:
        world.network.fault = deaf
        began = asyncio.get_running_loop().time()
        replies = await asyncio.gather(one.call("A", "GO", user_id="u"), two.call("B", "GO", user_id="v"))
        took_s = asyncio.get_running_loop().time() - began
        outcomes = sorted(reply.data for reply in replies)
        assert "ROUTING_DEADLOCK_PREVENTED" in outcomes
        assert set(outcomes) <= {"ROUTING_DEADLOCK_PREVENTED", "done"}
        assert took_s < 0.25 * (1 + lost)
        assert world.messages(wire.Look)

    play(case, [waiting("A", "B")], [waiting("B", "A")])


def test_a_call_that_waits_for_a_place_without_a_loop_is_let_wait() -> None:
    runs: list[int] = []

    async def case(world: World, one: Node, two: Node) -> None:
        replies = await asyncio.gather(*(one.call("FRONT", "ASK", user_id="u") for _ in range(5)))
        assert [reply.data["statuses"] for reply in replies] == [["success"]] * 5
        assert len(runs) == 5

    play(case, [front()], [back(runs, seconds=0.1, concurrency=1)])


def test_a_call_goes_on_at_the_next_holder_when_its_node_dies() -> None:
    runs: list[int] = []

    async def case(world: World, one: Node, two: Node) -> None:
        await two.call("BACK", "DO", {"number": 9}, user_id="u")
        asked = asyncio.ensure_future(one.call("FRONT", "ASK", user_id="u", request_id="r", timeout_ms=60_000))
        await asyncio.sleep(0.5)
        assert runs == [9, 0]
        await die(two)
        reply = await asked
        assert reply.data["statuses"] == ["success"]
        assert runs == [9, 0, 0]
        assert reply.data["data"][0]["runs"] == 2  # the state that the first node saved, and its unfinished run did not
        assert world.kinds("r.1") == ["admitted", "settled"]

    play(case, [front(), back(runs, seconds=1)], [back(runs, seconds=1)])


def test_a_users_call_is_taken_up_by_another_node_while_that_runs_and_answered_under_its_id() -> None:
    runs: list[int] = []

    async def case(world: World, one: Node, two: Node) -> None:
        handle = two.start_call("BACK", "DO", {"number": 4}, user_id="u", request_id="r", timeout_ms=60_000)
        await asyncio.sleep(0.5)
        await die(two)
        del handle
        await asyncio.sleep(15)
        assert runs == [4, 4]
        assert world.kinds("r") == ["admitted", "settled"]
        reply = await one.call("BACK", "DO", {"number": 4}, user_id="u", request_id="r")
        assert (reply.data["number"], runs) == (4, [4, 4])

    play(case, [back(runs, seconds=1)], [back(runs, seconds=1)])


@pytest.mark.parametrize("meanwhile", ["settled", "erased"])
def test_a_call_that_ends_or_is_erased_while_its_agent_is_looked_for_is_not_taken_up(meanwhile: str) -> None:
    runs: list[int] = []

    async def case(world: World, one: Node, two: Node) -> None:
        two.start_call("BACK", "DO", {"number": 4}, user_id="u", request_id="r", timeout_ms=60_000)
        await asyncio.sleep(0.5)
        request = world.store.call("r").request

        def given(lease: Lease) -> None:
            if lease.holder == "n1" and meanwhile == "settled":
                world.store.append([Settled(request, Reply.success(4), one._path.now_ms())])
            elif lease.holder == "n1":
                world.store.erase(request.tenant_id, request.session_id)

        world.leases.given = given
        await die(two)
        await asyncio.sleep(15)
        assert runs == [4]
        assert world.kinds("r") == ["admitted", "settled"][: 2 if meanwhile == "settled" else 1]
        assert not any(task.done() for task in one._path.placement._tasks)  # it looks for further ones

    play(case, [back(runs, seconds=1)], [back(runs, seconds=1)])


def test_what_a_call_gives_that_has_ended_in_the_store_meanwhile_is_late_and_its_user_gets_what_is_stored() -> None:
    async def case(world: World, one: Node) -> None:
        asked = asyncio.ensure_future(one.call("BACK", "DO", user_id="u", request_id="r"))
        await asyncio.sleep(0.5)
        world.store.append([Settled(world.store.call("r").request, Reply.success("stored"), one._path.now_ms())])
        assert (await asked).data == "stored"
        assert world.kinds("r") == ["admitted", "settled", "late"]

    play(case, [back([], seconds=1)])


def test_a_call_that_was_taken_over_goes_on_elsewhere_when_the_node_that_took_it_closes() -> None:
    runs: list[int] = []

    async def case(world: World, one: Node, two: Node) -> None:
        two.start_call("BACK", "DO", {"number": 4}, user_id="u", request_id="r", timeout_ms=60_000)
        await asyncio.sleep(0.5)
        await die(two)
        while len(runs) < 2:
            await asyncio.sleep(0.1)
        await one.close()  # which has taken the call over, and runs it
        async with world.node("n3", [back(runs, seconds=1)]) as three:
            reply = await three.call("BACK", "DO", {"number": 4}, user_id="u", request_id="r")
            assert (reply.status, runs) == ("success", [4, 4, 4])
        assert world.kinds("r") == ["admitted", "settled"]

    play(case, [back(runs, seconds=1)], [back(runs, seconds=1)])


def test_a_call_that_waits_for_a_person_goes_on_at_whichever_node_the_answer_reaches() -> None:
    paid: list[int] = []

    def pay(amount: int) -> int:
        paid.append(amount)
        return amount

    agent = Agent("TELLER", tools_allowed=["pay"])

    @agent.capability("PAY")
    async def do(ctx: Context) -> int:
        return await ctx.use_tool("pay", amount=7)

    async def case(world: World, one: Node, two: Node) -> None:
        asked = await one.call("TELLER", "PAY", user_id="u", request_id="r")
        assert str(asked.status) == "needs_input"
        (approval,) = two.approvals()
        await asyncio.sleep(60)  # longer than its work may take; waiting for a person uses up no time
        reply = await two.decide(approval.id, granted=True, by="boss")
        assert reply is not None
        assert (reply.data, paid) == (7, [7])
        assert world.kinds("r") == ["admitted", "paused", "settled"]

    play(case, [agent], [agent], tools=[Tool(name="pay", function=pay, risk=Risk.HIGH)])


@pytest.mark.parametrize(("granted", "paid"), [(None, [7]), (["pay"], [7]), (["read"], [])])
def test_what_a_call_was_granted_holds_for_its_callee_on_another_node(granted: list[str] | None, paid: list[int]) -> None:
    boss, teller, done = Agent("BOSS"), Agent("TELLER", tools_allowed=["pay"]), []

    def pay(amount: int) -> None:
        done.append(amount)

    @boss.capability("ASK")
    async def ask(ctx: Context) -> str | None:
        error = (await ctx.call("TELLER", "PAY")).error
        return None if error is None else error.code

    @teller.capability("PAY")
    async def do(ctx: Context) -> None:
        await ctx.use_tool("pay", amount=7)

    async def case(world: World, one: Node, two: Node) -> None:
        reply = await one.call("BOSS", "ASK", user_id="u", tools=granted)
        assert (reply.data, done) == (None if paid else "TOOL_NOT_PERMITTED", paid)
        assert len(world.messages(wire.Ask)) == 1

    play(case, [boss], [teller], tools=[Tool(name="pay", function=pay)])


def test_a_document_that_is_sent_twice_for_one_call_runs_once_on_whichever_node_it_runs() -> None:
    runs: list[int] = []
    sender, answers = Agent("FRONT"), []
    document = {"source_agent": "FRONT", "target_agent": "BACK", "capability_code": "DO", "request_id": "d"}

    @sender.capability("ASK")
    async def ask(ctx: Context) -> None:
        for numbers in ((1, 1), (1,), (2,)):
            answers.extend(await asyncio.gather(*(send(ctx, number) for number in numbers)))

    async def send(ctx: Context, number: int) -> dict:
        asked = document | {"inputs_json": {"number": number}}
        return await node[0].receive(asked, dialect="kdap", user_id="u", token=ctx.token)

    node: list[Node] = []

    async def case(world: World, one: Node, two: Node) -> None:
        node.append(one)
        reply = await one.call("FRONT", "ASK", user_id="u", request_id="r")
        assert [answer["status"] for answer in answers] == ["SUCCESS", "SUCCESS", "SUCCESS", "ERROR"]
        assert (runs, reply.usage.calls, reply.usage.prompt_tokens) == ([1], 1, 10)
        assert world.kinds("r.@d") == ["admitted", "settled"]

    play(case, [sender], [back(runs, seconds=1)])


def test_what_is_said_and_reported_on_another_node_stands_once_in_the_session_and_in_memory(monkeypatch) -> None:
    monkeypatch.setenv("COMITY_VAULT_KEY", base64.b64encode(b"k" * 32).decode())  # nodes without a file have no key in common
    clerk, relay = Agent("CLERK"), Agent("RELAY")

    @clerk.capability("message")
    async def message(ctx: Context) -> Reply:
        return Reply.success(message=f"heard {ctx.request.message}", new_facts=(f"said: {ctx.request.message}",))

    @relay.capability("message")
    async def pass_on(ctx: Context) -> str:
        return (await ctx.call("CLERK", "message", message=ctx.request.message)).message

    async def case(world: World, one: Node, two: Node) -> None:
        told = {"user_id": "u", "session_id": "s"}
        await one.call("CLERK", "message", message="a", **told)  # which the other node has
        await one.call("RELAY", "message", message="b", **told)
        await two.call("CLERK", "message", message="c", **told)
        for node in (one, two):
            turns = [(turn.role, turn.text) for turn in node.session("s").turns]
            assert turns == [
                ("user", "a"), ("CLERK", "heard a"), ("user", "b"), ("RELAY", "heard b"), ("user", "c"), ("CLERK", "heard c"),
            ]  # fmt: skip
            assert [(fact.text, fact.source) for fact in node.memory("u").facts] == [("said: c", "CLERK")]

    play(case, [relay], [clerk])


def test_an_agent_of_no_node_is_unknown_and_stand_ins_for_those_of_others_are_not_kept_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asking, "STRANGERS_MAX", 3)
    theirs = [Agent(f"A{number}") for number in range(10)]
    for agent in theirs:
        agent.capability("DO")(lambda: None)

    async def case(world: World, one: Node, two: Node) -> None:
        reply = await one.call("ghost", "DO", user_id="u")
        assert reply.error is not None
        assert reply.error.code == "ROUTING_UNKNOWN_AGENT"
        for agent in theirs:
            assert (await one.call(agent.id, "DO", user_id="u")).ok
        assert len(one._path.placement.asking._strangers) == 3
        later = Agent("LATER", aliases=("AFTER",))
        later.capability("DO")(lambda: None)
        two.add(later)
        assert (await one.call("AFTER", "DO", user_id="u")).ok

    play(case, [front()], theirs)


def test_an_address_is_held_while_any_tenants_calls_use_it_and_all_of_them_go_when_it_is_lost() -> None:
    agent = back([], seconds=5, idle_ms=1_000)

    async def case(world: World, one: Node, two: Node) -> None:
        assert (await two.call("BACK", "DO", user_id="u", tenant_id="acme", timeout_ms=60_000)).data["runs"] == 1
        running = [
            asyncio.create_task(one.call("BACK", "DO", user_id="u", tenant_id=tenant, timeout_ms=60_000))
            for tenant in ("evil", "default")
        ]
        await asyncio.sleep(4)  # that of acme has been idle for long
        token = two._path.placement.holds.fence("BACK").token
        assert [(await one).data["runs"] for one in running] == [1, 1]
        assert two._path.placement.holds.fence("BACK").token == token  # it was never given back
        again = await two.call("BACK", "DO", user_id="u", tenant_id="acme", timeout_ms=60_000)
        assert again.data["runs"] == 2
        two._path.placement.holds.spoil("BACK")
        assert len(two._path.activations) == 0
        assert (await two.call("BACK", "DO", user_id="u", tenant_id="acme", timeout_ms=60_000)).data["runs"] == 3

    play(case, [front()], [agent])
