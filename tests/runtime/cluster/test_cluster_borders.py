"""What nodes may ask of each other: only who asked may cancel, former holders begin nothing, and the callee's limits hold."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import msgspec
import pytest
from cluster_world import World, play
from msgspec.structs import replace

from comity import Agent, Context, Guardrail, Limits, Node
from comity.core.agent.tool import Risk, Tool
from comity.core.call.guardrail import Allow, Redact
from comity.core.call.ledger import Loan
from comity.core.cluster import messages as wire
from comity.core.cluster.lease import LEASE_MS, RENEW_MS
from comity.core.envelope.envelope import Reply, Request
from comity.core.journal.records import Accepted, Document, Saved
from comity.core.journal.terms import Fence, claim
from comity.engines.memory.cluster import MemoryLeases
from comity.engines.memory.journal import MemoryJournal
from comity.ports.observer import Observer
from comity.runtime.call.tools import Approval
from comity.runtime.cluster.cluster import OVERDUE_MS
from comity.runtime.cluster.leases import Holds
from comity.runtime.cluster.outbound import _unbegun
from comity.testing import VirtualClock
from comity.testing.contracts.records import request, settled


def asker() -> Agent:
    agent = Agent("FRONT")

    @agent.capability("ASK")
    async def ask(ctx: Context, times: int = 1) -> Any:
        before = ctx.limits.calls_max
        replies = [await ctx.call("BACK", "DO") for _ in range(times)]
        told = [reply.data if reply.ok else reply.error.code for reply in replies]
        return {"told": told, "calls": before - ctx.limits.calls_max}

    return agent


def worker(seconds: float = 3.0, limits: Limits | None = None, of_agent: Limits | None = None) -> Agent:
    agent = Agent("BACK", limits=of_agent)

    @agent.capability("DO", limits=limits, timeout_ms=20_000)
    async def do(ctx: Context) -> int:
        await asyncio.sleep(seconds)
        return ctx.limits.calls_max

    return agent


async def begun(world: World, node: Node) -> tuple[asyncio.Task[Any], wire.Ask]:
    """Begin a call of FRONT on n1 to BACK on n2, and return what n2 was asked once it runs there."""
    task = asyncio.create_task(node.call("FRONT", "ASK", user_id="u", request_id="r", timeout_ms=20_000))
    await asyncio.sleep(1)
    return task, world.messages(wire.Ask)[0]


def deliver(world: World, sender: str, message: wire.Message) -> None:
    world.network.deliver(sender, "n2", wire.encode(message))


def test_a_call_that_takes_long_is_asked_for_once_and_then_inquired_about() -> None:
    """Dies where the other node does not say that it has taken a call: it would be asked for again and again."""

    async def case(world: World, one: Node, two: Node) -> None:
        task, _ = await begun(world, one)
        assert (await task).status == "success"
        assert len(world.messages(wire.Ask)) == 1
        assert 1 <= len(world.messages(wire.Inquire)) <= 8  # further and further apart

    play(case, [asker()], [worker()])


# --- who may cancel ---


def test_the_node_of_the_callee_is_told_as_soon_as_its_caller_is_cancelled() -> None:
    async def case(world: World, one: Node, two: Node) -> None:
        await begun(world, one)
        handle = one.find_call("r", user_id="u")
        assert handle.cancel()
        await asyncio.sleep(0.1)
        assert [message.request_id for message in world.messages(wire.Cancel)] == ["r.1"]
        alone = one.start_call("BACK", "DO", user_id="u", request_id="q", timeout_ms=20_000)
        await asyncio.sleep(1)
        assert alone.cancel()
        await asyncio.sleep(0.1)
        assert [message.request_id for message in world.messages(wire.Cancel)] == ["r.1", "q"]

    play(case, [asker()], [worker()])


def test_a_node_that_did_not_ask_for_a_call_cannot_cancel_it() -> None:
    async def case(world: World, one: Node, two: Node) -> None:
        task, _ = await begun(world, one)
        deliver(world, "n9", wire.Cancel("r.1", "I say so"))
        assert (await task).data["told"] != ["CALL_CANCELLED"]
        assert world.kinds("r.1") == ["admitted", "settled"]

    play(case, [asker()], [worker()])


@pytest.mark.parametrize(("sender", "is_cancelled"), [("n1", False), ("n3", True)])
@pytest.mark.parametrize("asks_late", [False, True])
def test_a_former_holder_of_the_caller_cancels_nothing_and_the_present_one_does(sender, is_cancelled, asks_late) -> None:
    async def case(world: World, one: Node, two: Node) -> None:
        task, ask = await begun(world, one)
        assert ask.caller is not None
        newer = Fence("FRONT", ask.caller.token + 1)
        world.store.append((claim(newer, "n3"),))
        deliver(world, "n3", replace(ask, caller=newer))  # the next holder asks again
        if asks_late:
            deliver(world, "n1", ask)  # a message of the former one that was long on its way
        deliver(world, sender, wire.Cancel("r.1", "I say so"))
        await asyncio.sleep(1)
        assert ("r.1" in two._path.calls) is not is_cancelled
        stored = world.store.call("r.1")
        assert stored is not None
        assert (stored.settled_at is not None) is is_cancelled
        task.cancel()

    play(case, [asker()], [worker()])


def test_a_node_that_only_inquires_after_a_call_of_another_cannot_cancel_it() -> None:
    async def case(world: World, one: Node, two: Node) -> None:
        task, _ = await begun(world, one)
        deliver(world, "n9", wire.Inquire("r.1"))
        deliver(world, "n9", wire.Cancel("r.1", "I say so"))
        await asyncio.sleep(0.5)
        assert "r.1" in two._path.calls
        deliver(world, "n1", wire.Inquire("r.1"))  # which costs the node that asked nothing
        deliver(world, "n1", wire.Cancel("r.1", "I say so"))
        assert "r.1" not in two._path.calls or two._path.calls["r.1"].reply is not None
        task.cancel()

    play(case, [asker()], [worker()])


@pytest.mark.parametrize("stranger", [{"user_id": "eve"}, {"user_id": "u", "tenant_id": "evil"}], ids=str)
def test_a_stranger_who_asks_under_the_same_id_takes_nothing_from_the_user_who_asked_first(stranger) -> None:
    async def case(world: World, one: Node, two: Node) -> None:
        task = asyncio.create_task(one.call("BACK", "DO", user_id="u", request_id="r", timeout_ms=20_000))
        await asyncio.sleep(1)
        refused = await one.call("BACK", "DO", request_id="r", **stranger)
        assert refused.error is not None
        assert refused.error.code == "IDENTITY_REQUEST_ID_REUSED"
        world.network.deliver("n2", "n1", wire.encode(wire.Taken("r", is_root=True)))  # as when it was asked for twice
        assert (await task).ok

    play(case, [asker()], [worker()])


@pytest.mark.parametrize(
    "message",
    [wire.Answer("r.1", Reply.success("forged")), wire.Moved("r.1"), wire.Unhosted("r.1"), wire.Unknown("r.1")],
    ids=str,
)
def test_what_another_node_than_the_callees_says_of_a_call_is_not_heard(message: wire.Message) -> None:
    async def case(world: World, one: Node, two: Node) -> None:
        task, _ = await begun(world, one)
        asked = len(world.messages(wire.Ask))
        world.network.deliver("n9", "n1", wire.encode(message))
        reply = await task
        assert reply.data["told"] != ["forged"]
        assert (reply.ok, len(world.messages(wire.Ask))) == (True, asked)

    play(case, [asker()], [worker()])


def test_a_call_waits_for_no_question_that_the_store_does_not_know() -> None:
    async def case(world: World, one: Node, two: Node) -> None:
        task, _ = await begun(world, one)
        world.network.deliver("n2", "n1", wire.encode(wire.Paused("r.1", "r.1#9")))
        assert (await task).data["told"] != []
        assert "paused" not in world.kinds("r")

    play(case, [asker()], [worker()])


def test_a_question_whose_message_was_lost_is_told_again_and_is_no_reply() -> None:
    back, lost = Agent("BACK", tools_allowed=["pay"]), []

    @back.capability("DO")
    async def do(ctx: Context) -> str:
        return await ctx.use_tool("pay")

    def lose_first(sender: str, receiver: str, message: wire.Message) -> tuple[float, ...]:
        if isinstance(message, wire.Paused) and not lost:
            lost.append(message)
            return ()
        return (0.001,)

    async def case(world: World, one: Node, two: Node) -> None:
        world.network.fault = lose_first
        asked = await one.call("FRONT", "ASK", user_id="u", request_id="r", timeout_ms=20_000)
        (question,) = one.approvals(by="boss")
        assert (len(lost), asked.status) == (1, "needs_input")
        assert (await one.decide(question.id, granted=True, by="boss")).data["told"] == ["paid"]

    play(case, [asker()], [back], tools=[Tool(name="pay", function=lambda: "paid", risk=Risk.HIGH)])


def test_a_call_goes_on_though_a_late_message_says_that_it_waits_for_what_a_person_has_granted() -> None:
    granted = Approval(
        id="r.1#1",
        root_id="r",
        tool="pay",
        target="BACK",
        user_id="u",
        tenant_id="default",
        session_id="r",
        inputs={},
        asked_at=1,
        granted=True,
    )

    async def case(world: World, one: Node, two: Node) -> None:
        task, _ = await begun(world, one)
        world.store.append((Saved(Document.APPROVAL, "r.1#1", 2, msgspec.json.encode(granted)),))
        world.network.deliver("n2", "n1", wire.encode(wire.Paused("r.1", "r.1#1")))
        assert (await task).status == "success"

    play(case, [asker()], [worker()])


def test_steps_of_a_watched_call_that_come_twice_or_late_are_told_once_and_in_order() -> None:
    back = Agent("BACK")

    @back.capability("DO")
    async def do(ctx: Context) -> str:
        for step in range(3):
            ctx.progress(step)
            await asyncio.sleep(1)
        return "done"

    def twice(sender: str, receiver: str, message: wire.Message) -> tuple[float, ...]:
        return (0.001, 1.5) if isinstance(message, wire.Happened) else (0.001,)

    async def case(world: World, one: Node, two: Node) -> None:
        world.network.fault = twice
        handle = one.start_call("BACK", "DO", user_id="u", timeout_ms=20_000)
        assert [event.data async for event in handle.events() if event.kind == "progress"] == [0, 1, 2]

    play(case, [asker()], [back])


@pytest.mark.parametrize("is_watched", [True, False])
def test_a_call_whose_message_was_lost_is_watched_again_as_it_was_before(is_watched: bool) -> None:
    back, asked = Agent("BACK"), []

    @back.capability("DO")
    async def do(ctx: Context) -> str:
        ctx.progress("half")
        return "done"

    def lose_first(sender: str, receiver: str, message: wire.Message) -> tuple[float, ...]:
        if not isinstance(message, wire.Ask):
            return (0.001,)
        asked.append(message.is_watched)
        return () if len(asked) == 1 else (0.001,)

    async def case(world: World, one: Node, two: Node) -> None:
        world.network.fault = lose_first
        if is_watched:
            handle = one.start_call("BACK", "DO", user_id="u", timeout_ms=20_000)
            assert [event.data async for event in handle.events() if event.kind == "progress"] == ["half"]
        else:
            assert (await one.call("BACK", "DO", user_id="u", timeout_ms=20_000)).data == "done"
        assert asked == [is_watched] * 2
        assert bool(world.messages(wire.Happened)) is is_watched

    play(case, [asker()], [back])


def test_the_message_of_a_call_that_comes_again_after_its_end_begins_nothing() -> None:
    """Dies where a node takes every first message for a call that no node has seen, and does not look into the store."""
    back, runs = Agent("BACK"), []

    @back.capability("DO")
    async def do() -> str:
        runs.append(1)
        return "done"

    async def case(world: World, one: Node, two: Node) -> None:
        world.network.fault = lambda _, __, message: (0.001, 5.0) if isinstance(message, wire.Ask) else (0.001,)
        assert (await one.call("BACK", "DO", user_id="u", timeout_ms=20_000)).data == "done"
        await asyncio.sleep(6)
        (first,) = world.messages(wire.Ask)
        assert [message.reply.data for message in world.messages(wire.Answer)] == ["done", "done"]
        assert (first.is_fresh, len(runs)) == (True, 1)
        assert world.kinds(first.request.request_id) == ["admitted", "settled"]

    play(case, [asker()], [back])


@pytest.mark.parametrize(("code", "is_kept"), [("IDENTITY_MISMATCH", False), ("TARGET_FAILED", True)])
def test_a_session_that_another_user_named_first_on_the_other_node_is_forgotten_here(code: str, is_kept: bool) -> None:
    """Dies where the code of the reply is not compared: the session would stay ours, or every failure would lose it."""

    async def case(world: World, one: Node, two: Node) -> None:
        one.start_call("BACK", "DO", user_id="ann", session_id="s", request_id="q", timeout_ms=20_000)
        await asyncio.sleep(1)
        world.network.deliver(
            "n2", "n1", wire.encode(wire.Answer("q", replace(Reply.failure("no", code=code), request_id="q")))
        )
        assert (("default", "s") in one._path.sessions._live) is is_kept

    play(case, [asker()], [worker()])


# --- former holders ---


def test_what_a_former_holder_of_the_caller_asks_for_is_not_begun() -> None:
    async def case(world: World, one: Node, two: Node) -> None:
        task, ask = await begun(world, one)
        assert ask.caller is not None
        world.store.append((claim(Fence("FRONT", ask.caller.token + 1), "n3"),))
        deliver(world, "n1", replace(ask, request=replace(ask.request, request_id="r.2")))
        await asyncio.sleep(1)
        assert world.kinds("r.2") == []
        task.cancel()

    play(case, [asker()], [worker()])


def test_leases_are_measured_from_the_beat_that_was_answered() -> None:
    """An answer that took long is about a time long past: a node that measures from the answer holds addresses too long."""

    class Slow(MemoryLeases):
        async def keep(self) -> int | None:
            left_ms = await super().keep()
            await asyncio.sleep(1)
            return left_ms

    async def case(world: World) -> None:
        clock, journal = VirtualClock(), MemoryJournal("n1")
        holds = Holds(Slow(world.leases, journal), journal, clock, lambda address: None)
        loop = asyncio.get_running_loop()
        begin = loop.time()
        await holds.open()
        assert isinstance(await holds.locate("A", is_hosted=True), Fence)
        keeping = asyncio.create_task(holds.keep())
        await asyncio.sleep((RENEW_MS + 1_100) / 1000)
        keeping.cancel()
        begin = loop.time() - 1.1  # when the second beat was sent
        await asyncio.sleep(begin + LEASE_MS / 1000 - loop.time() - 0.01)
        assert holds.fence("A") is not None
        await asyncio.sleep(0.02)
        assert holds.fence("A") is None

    play(case)


@pytest.mark.parametrize(("late_ms", "status"), [(OVERDUE_MS // 2, None), (OVERDUE_MS, "timeout")])
def test_other_nodes_leave_a_call_a_second_after_its_deadline_before_they_end_it(late_ms: int, status: str | None) -> None:
    async def case(world: World, one: Node) -> None:
        now_ms = VirtualClock().now_ns() // 1_000_000
        request = Request("r", "ELSEWHERE", "DO", "u", Limits(), now_ms + 5_000, now_ms, root_id="r", session_id="r")
        world.store.append((Accepted(request, now_ms, "n9"),))
        await asyncio.sleep(5 + late_ms / 1000)
        assert one._path is not None
        await one._path.placement._take_over(request)
        stored = world.store.call("r")
        assert stored is not None
        assert (stored.reply and stored.reply.status) == status

    play(case, [])


# --- limits ---


def test_the_longest_time_that_a_callee_allows_holds_on_its_node() -> None:
    async def case(world: World, one: Node, two: Node) -> None:
        begin = asyncio.get_running_loop().time()
        reply = await one.call("FRONT", "ASK", user_id="u", timeout_ms=20_000)
        assert reply.data["told"] == ["CALL_TIMEOUT"]
        assert asyncio.get_running_loop().time() - begin < 1

    play(case, [asker()], [worker(seconds=5, of_agent=Limits(timeout_ms=100, timeout_ms_max=100))])


def test_a_deadline_that_is_later_than_the_limits_beside_it_allow_is_not_taken_from_another_node() -> None:
    async def case(world: World, one: Node, two: Node) -> None:
        task, ask = await begun(world, one)
        late = ask.request.deadline_at + 10 * ask.request.limits.timeout_ms_max
        deliver(world, "n1", replace(ask, request=replace(ask.request, request_id="r.2", deadline_at=late)))
        await asyncio.sleep(0.1)
        latest = VirtualClock().now_ns() // 1_000_000 + ask.request.limits.timeout_ms_max
        assert two._path.calls["r.2"].request.deadline_at <= latest
        task.cancel()

    play(case, [asker()], [worker()])


@pytest.mark.parametrize("whose", ["limits", "of_agent"])
def test_the_calls_that_a_callee_allows_itself_are_all_it_has_on_its_node(whose: str) -> None:
    async def case(world: World, one: Node, two: Node) -> None:
        reply = await one.call("FRONT", "ASK", user_id="u", limits=Limits(calls_max=90))
        (left,) = reply.data["told"]
        assert left <= 2  # of three, one is its own

    play(case, [asker()], [worker(seconds=0, **{whose: Limits(calls_max=3)})])


def test_the_depth_that_a_callee_allows_is_that_of_its_own_calls_on_another_node_too() -> None:
    async def case(world: World, one: Node, two: Node) -> None:
        reply = await one.call("FRONT", "ASK", user_id="u", limits=Limits(calls_max=3))
        assert reply.data["told"] == [0]  # it may make none

    play(case, [asker()], [worker(seconds=0, of_agent=Limits(depth_max=0))])


def test_what_the_guardrails_of_either_node_withhold_of_a_reply_is_noted() -> None:
    async def case(world: World, one: Node, two: Node) -> None:
        assert (await one.call("FRONT", "ASK", user_id="u", request_id="r")).ok
        assert world.kinds("r.1") == ["admitted", "noted", "settled", "noted"]

    rail = Guardrail(name="g", outbound=lambda request, _: Redact() if request.target == "BACK" else Allow())
    play(case, [asker()], [worker(seconds=0)], guardrails=[rail])


@pytest.mark.parametrize("is_deaf", [False, True])
def test_a_node_holds_an_address_if_the_lease_service_gives_it_and_not_if_that_does_not_answer(is_deaf: bool) -> None:
    async def case(world: World, one: Node) -> None:
        if is_deaf:
            world.leases.deaf.add("n1")
        assert await one._path.placement.hold("FREE") is not is_deaf

    play(case, [asker()])


def test_an_old_message_does_not_shrink_what_was_lent() -> None:
    async def case(world: World, one: Node, two: Node) -> None:
        task, ask = await begun(world, one)
        assert ask.loan is not None
        call = two._path.calls["r.1"]
        had, allowed = call.way.loan, call.account.limits
        assert had.calls > 1
        deliver(world, "n1", wire.Lend("r.1", Loan(had.calls - 1)))
        assert (call.way.loan, call.account.limits) == (had, allowed)
        deliver(world, "n1", wire.Lend("r.1", Loan(had.calls + 1)))
        assert call.way.loan == Loan(had.calls + 1)
        await task

    play(case, [asker()], [worker()])


def test_a_call_that_another_node_refuses_costs_nothing() -> None:
    back = Agent("BACK")

    @back.capability("DO")
    async def do(needed: int) -> int:
        return needed

    async def case(world: World, one: Node, two: Node) -> None:
        reply = await one.call("FRONT", "ASK", {"times": 3}, user_id="u")
        assert reply.data == {"told": ["INPUT_VALIDATION_FAILED"] * 3, "calls": 0}

    play(case, [asker()], [back])


def test_an_agent_of_another_node_that_is_called_by_its_alias_is_the_same_agent() -> None:
    back = Agent("BACK", aliases=["OLD"])

    @back.capability("DO")
    async def do(ctx: Context) -> int:
        ctx.state["times"] = ctx.state.get("times", 0) + 1
        return ctx.state["times"]

    async def case(world: World, one: Node, two: Node) -> None:
        replies = [await one.call(target, "DO", user_id="u") for target in ("OLD", "BACK", "OLD")]
        assert [(reply.data, reply.source) for reply in replies] == [(1, "BACK"), (2, "BACK"), (3, "BACK")]

    play(case, [asker()], [back])


def test_a_call_that_ended_on_its_way_is_recorded_as_taken_before_its_deadline() -> None:
    asked = request("r.1", parent_id="r")
    for late_ms in (-5, 0, 9):
        end = replace(settled("r.1", parent_id="r"), at_ms=asked.deadline_at + late_ms)
        taken, ended = _unbegun(end, "n1")
        assert isinstance(taken, Accepted)
        assert (taken.at_ms - asked.deadline_at, taken.node_id, ended) == (min(late_ms, -1), "n1", end)


def test_a_session_that_was_erased_elsewhere_and_is_another_users_now_keeps_nothing_of_the_former_one(monkeypatch) -> None:
    monkeypatch.setenv("COMITY_VAULT_KEY", base64.b64encode(b"k" * 32).decode())  # nodes without a file have no key in common
    agent = Agent("A")

    @agent.capability("message")
    async def message(ctx: Context) -> str:
        return ctx.request.message

    async def case(world: World, one: Node, two: Node) -> None:
        said = {"session_id": "s", "target": "A", "capability": "message"}
        await one.call(**said, message="mail ann@example.com", user_id="ann")
        assert one.hidden_in("s") == {"EMAIL": 1}
        await two.erase_session("s")
        await two.call(**said, message="call +49 151 12345678", user_id="bob")
        assert one.hidden_in("s") == two.hidden_in("s") == {"PHONE": 1}
        refused = await one.call(**said, message="hello", user_id="ann")
        assert refused.error is not None
        assert refused.error.code == "IDENTITY_MISMATCH"

    play(case, [agent], [agent])


@pytest.mark.parametrize("delays", [(0.001,), (0.001, 0.0011, 0.3), (0.3, 0.001)], ids=["once", "twice and late", "overtaken"])
def test_a_tree_over_three_nodes_makes_all_the_calls_it_may_however_often_wishes_and_loans_arrive(
    delays: tuple[float, ...],
) -> None:
    """Dies where a late answer to an earlier wish is read as "nothing is left", or where one wish is granted twice."""
    front, mid, leaf, tiny = (Agent(name) for name in ("FRONT", "MID", "LEAF", "TINY"))

    @front.capability("ASK")
    async def ask_mid(ctx: Context) -> Any:
        return (await ctx.call("MID", "ASK")).data

    @mid.capability("ASK")
    async def ask_leaf(ctx: Context) -> Any:
        return (await ctx.call("LEAF", "ASK")).data

    @leaf.capability("ASK")
    async def ask_often(ctx: Context) -> list[Any]:
        replies = [await ctx.call("TINY", "DO") for _ in range(20)]
        return [sum(one.ok for one in replies), replies[-1].error.code]

    @tiny.capability("DO")
    async def do() -> None: ...

    async def case(world: World, one: Node, *_: Node) -> None:
        world.network.fault = lambda _, __, message: delays if isinstance(message, wire.Borrow | wire.Lend) else (0.001,)
        reply = await one.call("FRONT", "ASK", user_id="u", limits=Limits(calls_max=20))
        assert (reply.data, reply.usage.calls) == ([17, "BUDGET_CALLS_EXHAUSTED"], 19)

    play(case, [front], [mid], [leaf, tiny])


def test_a_call_of_which_the_other_node_says_that_it_has_it_not_is_asked_for_again() -> None:
    async def case(world: World, one: Node, two: Node) -> None:
        task, _ = await begun(world, one)
        assert len(world.messages(wire.Ask)) == 1
        world.network.deliver("n2", "n1", wire.encode(wire.Unknown("r.1")))
        assert (await task).ok
        assert 2 <= len(world.messages(wire.Ask)) <= 3  # one may have been under way to the node that says so
        assert world.kinds("r.1") == ["admitted", "settled"]

    play(case, [asker()], [worker(8)])


def test_an_observer_sees_which_calls_are_sent_to_another_node() -> None:
    class Seen(Observer):
        def __init__(self) -> None:
            self.moves: list[tuple[str, str, str]] = []

        def moved(self, machine: str, state: str, event: str) -> None:
            self.moves.append((machine, str(state), str(event)))

    seen = Seen()

    async def case(world: World, one: Node, two: Node) -> None:
        assert (await one.call("FRONT", "ASK", user_id="u", request_id="r")).ok
        assert [move for move in seen.moves if move[0] == "call"] == [("call", "admitted", "send")]

    play(case, [asker()], [worker(0)], observer=seen)


def test_a_node_that_inquires_after_a_call_is_told_its_reply_or_that_it_is_unknown() -> None:
    async def case(world: World, one: Node, two: Node) -> None:
        await two.call("BACK", "DO", user_id="u", request_id="r", timeout_ms=20_000)
        for request_id in ("r", "none"):
            deliver(world, "n1", wire.Inquire(request_id))
        told = [message for sender, receiver, message in world.network.sent if (sender, receiver) == ("n2", "n1")]
        assert [(type(one), one.request_id) for one in told] == [(wire.Answer, "r"), (wire.Unknown, "none")]
        assert told[0].reply == world.store.call("r").reply

    play(case, [asker()], [worker()])
