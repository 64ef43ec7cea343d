"""Time that runs out: what was delivered is kept, what is missing is named, and a caller can still answer."""

from __future__ import annotations

import ast
import asyncio
import subprocess
import sys
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from comity import Agent, Context, Limits, Node, Reply, Status
from comity.core.call.limits import REPLY_BYTES_MAX
from comity.core.call.tree import PARTS_KEPT_MAX
from comity.engines.clock import SystemClock
from comity.runtime.call.call import EXPIRE_MOST, Deadlines
from comity.runtime.call.pace import BUSY_S, LOOK_S, Pace


def team(orchestrate, *, b_timeout_ms: int | None = None) -> list[Agent]:
    """ORC, which runs `orchestrate`; A, which answers at once; B, which tells how far it is and never ends."""
    orc, a, b = Agent("ORC"), Agent("A"), Agent("B")
    orc.capability("PAR")(orchestrate)

    @a.capability("Q")
    async def done(number: int = 42) -> dict:
        return {"size": number}

    @b.capability("Q", timeout_ms=b_timeout_ms)
    async def slow(ctx: Context):
        ctx.progress({"half": 1})
        await asyncio.sleep(60)

    return [orc, a, b]


async def both(ctx: Context) -> list:
    return [reply.data for reply in await ctx.gather(ctx.call("A", "Q"), ctx.call("B", "Q"))]


async def both_and_more(ctx: Context):
    await ctx.gather(ctx.call("A", "Q"), ctx.call("B", "Q"))
    await asyncio.sleep(60)


COMPLETED = {"agent": "A", "capability": "Q", "status": "success", "data": {"size": 42}}
DOCUMENT = {"source_agent": "USER", "target_agent": "ORC", "capability_code": "PAR", "request_id": "r", "inputs_json": {}}


# --- what was done, and what was not ---


@pytest.mark.parametrize(
    ("orchestrate", "margin", "status"),
    [(both, 0, "running"), (both_and_more, 0, "running"), (both_and_more, 0.05, "timeout")],
)
async def test_a_timeout_returns_what_finished_children_delivered_and_names_what_was_not_completed(
    make_node, orchestrate, margin, status
):
    async with make_node(team(orchestrate), child_margin=margin) as node:
        reply = await node.call("ORC", "PAR", user_id="u", timeout_ms=300)
    assert reply.status is Status.TIMEOUT
    incomplete = {"agent": "B", "capability": "Q", "status": status, "data": {"half": 1}}
    assert reply.data == {"completed": [COMPLETED], "incomplete": [incomplete]}
    assert reply.error.message == reply.message == "PAR of ORC did not end within 300 ms; not completed: Q of B"
    assert reply.warnings == ("Q of B was not completed",)


async def test_what_a_call_told_itself_stands_beside_what_its_children_did(make_node):
    async def tell(ctx: Context):
        ctx.progress("asking A")
        await ctx.call("A", "Q")
        await asyncio.sleep(60)

    async with make_node(team(tell)) as node:
        reply = await node.call("ORC", "PAR", user_id="u", timeout_ms=300)
    assert reply.data == {"progress": "asking A", "completed": [COMPLETED], "incomplete": []}
    assert (reply.warnings, reply.message) == ((), "PAR of ORC did not end within 300 ms")


async def test_a_cancelled_call_shows_what_there_is_as_well(make_node):
    async with make_node(team(both)) as node:
        handle = node.start_call("ORC", "PAR", user_id="u")
        await asyncio.sleep(0.1)
        handle.cancel()
        reply = await handle.reply()
    assert reply.status is Status.CANCELLED
    assert reply.data["completed"] == [COMPLETED]
    assert reply.data["incomplete"][0]["data"] == {"half": 1}


async def test_what_was_asked_again_and_answered_is_not_missing_and_what_was_refused_is_not_either(make_node):
    tries: list[int] = []
    flaky = Agent("FLAKY")

    @flaky.capability("Q")
    async def q(item: int):
        tries.append(item)
        if tries.count(item) == 1:
            await asyncio.sleep(60)
        return item

    async def ask(ctx: Context):
        for item in (1, 1, 2):
            await ctx.call("FLAKY", "Q", {"item": item}, timeout_ms=50)
        await ctx.call("NOBODY", "Q")
        await asyncio.sleep(60)

    async with make_node([*team(ask), flaky]) as node:
        reply = await node.call("ORC", "PAR", user_id="u", timeout_ms=500)
    assert [(one["status"], one["data"]) for one in reply.data["completed"]] == [("success", 1)]
    assert [one["status"] for one in reply.data["incomplete"]] == ["timeout"]  # the second item


@pytest.mark.parametrize(
    "other", [{}, {"target": "OTHER"}, {"capability": "R"}, {"inputs": {"item": 2}}, {"message": "else"}], ids=str
)
async def test_a_failure_is_made_up_for_only_by_the_same_question_to_the_same_agent(make_node, other):
    asked = {"target": "FLAKY", "capability": "Q", "inputs": {"item": 1}, "message": "say"}
    agents, tries = [Agent("FLAKY"), Agent("OTHER")], []

    async def q(item: int):
        tries.append(item)
        if len(tries) == 1:
            await asyncio.sleep(60)
        return item

    for agent in agents:
        for code in ("Q", "R"):
            agent.capability(code)(q)

    async def ask(ctx: Context):
        await ctx.call(**asked, timeout_ms=50)
        await ctx.call(**asked | other)
        await asyncio.sleep(60)

    async with make_node([*team(ask), *agents]) as node:
        reply = await node.call("ORC", "PAR", user_id="u", timeout_ms=500)
    assert (len(reply.data["completed"]), len(reply.data["incomplete"])) == (1, 1 if other else 0)


async def test_words_count_as_what_was_delivered_where_there_is_no_data(make_node):
    talker = Agent("TALKER")

    @talker.capability("SAY")
    async def say(data: int | None = None) -> Reply:
        return Reply.success(data, message="The market grows.")

    async def ask(ctx: Context):
        await ctx.call("TALKER", "SAY")
        await ctx.call("TALKER", "SAY", {"data": 7})
        await asyncio.sleep(60)

    async with make_node([*team(ask), talker]) as node:
        reply = await node.call("ORC", "PAR", user_id="u", timeout_ms=300)
    assert [one["data"] for one in reply.data["completed"]] == [{"message": "The market grows."}, 7]


@pytest.mark.parametrize("size", [1, 2 * REPLY_BYTES_MAX // PARTS_KEPT_MAX])
async def test_what_is_kept_of_many_children_is_bounded_in_number_and_size(make_node, size):
    many = PARTS_KEPT_MAX + 10
    big = Agent("BIG")

    @big.capability("Q")
    async def q(number: int) -> dict:
        return {"number": number, "text": "x" * size}

    async def ask(ctx: Context):
        for number in range(many):
            await ctx.call("BIG", "Q", {"number": number})
        await asyncio.sleep(60)

    async with make_node([*team(ask), big], limits=Limits(calls_max=1_000)) as node:
        reply = await node.call("ORC", "PAR", user_id="u", timeout_ms=300, request_id="r")
        again = await node.call("ORC", "PAR", user_id="u", request_id="r")  # it could be stored and read
    assert reply == again
    assert len(reply.data["completed"]) == PARTS_KEPT_MAX
    assert ("data" in reply.data["completed"][-1]) is (size == 1)


async def test_what_is_nested_too_deep_for_a_reply_is_left_out(make_node):
    deep: list = []
    for _ in range(28):
        deep = [deep]
    nested = Agent("NESTED")

    @nested.capability("Q")
    async def q() -> list:
        return deep

    async def ask(ctx: Context):
        ctx.progress("there")
        await ctx.call("NESTED", "Q")
        await asyncio.sleep(60)

    top = Agent("TOP")

    @top.capability("GO", timeout_ms=300)
    async def go(ctx: Context):
        await ctx.call("ORC", "PAR")

    async with make_node([*team(ask), nested, top], child_margin=0) as node:
        reply = await node.call("TOP", "GO", user_id="u", request_id="r")
        again = await node.call("TOP", "GO", user_id="u", request_id="r")
    assert reply == again
    assert reply.data == {"completed": [], "incomplete": [{"agent": "ORC", "capability": "PAR", "status": "running"}]}


# --- in documents ---


async def test_kdap_tells_a_timeout_with_partial_results_and_what_was_not_completed(make_node):
    async with make_node(team(both_and_more)) as node:
        told = await node.receive(DOCUMENT | {"timeout_ms": 300}, dialect="kdap", user_id="u")
    assert told["status"] == "TIMEOUT"
    assert told["result_json"]["completed"] == [COMPLETED]
    assert told["result_json"]["incomplete"][0]["data"] == {"half": 1}
    assert told["error_message"].endswith("not completed: Q of B")
    assert told["warnings"] == ["Q of B was not completed"]


async def test_call_agent_tells_a_model_what_there_is(make_node):
    async with make_node(team(both_and_more)) as node:
        document = {"agent_id": "ORC", "message": "go", "timeout_ms": 300}
        told = await node.receive(document, dialect="call_agent", user_id="u", capability="PAR")
    assert "not completed: Q of B" in told["error"]
    assert '"size":42' in told["error"]
    assert '"half":1' in told["error"]


# --- the margin ---


async def test_a_caller_that_gets_its_childs_timeout_can_still_answer(make_node):
    async def without_it(ctx: Context) -> dict:
        reply = await ctx.call("B", "Q")
        return {"b": str(reply.status), "so_far": reply.data, "left_ms": ctx.left_ms}

    async with make_node(team(without_it)) as node:
        reply = await node.call("ORC", "PAR", user_id="u", timeout_ms=2_000)
    assert (reply.status, reply.data["b"], reply.data["so_far"]) == (Status.SUCCESS, "timeout", {"half": 1})
    assert 90 <= reply.data["left_ms"] <= 100
    assert reply.warnings == ("Q of B was not completed",)  # it says nothing about that itself


async def test_a_document_names_what_an_answer_had_to_do_without(make_node):
    async with make_node(team(both)) as node:
        told = await node.receive(DOCUMENT | {"timeout_ms": 300}, dialect="kdap", user_id="u")
    assert told["result_json"] == {"value": [{"size": 42}, {"half": 1}]}
    assert told["warnings"] == ["Q of B was not completed"]


async def test_a_reply_that_an_agent_made_itself_says_what_it_says(make_node):
    async def speaks(ctx: Context) -> Reply:
        await ctx.call("B", "Q")
        return Reply.success("all I need")

    async with make_node(team(speaks)) as node:
        reply = await node.call("ORC", "PAR", user_id="u", timeout_ms=300)
    assert (reply.status, reply.warnings) == (Status.SUCCESS, ())


@pytest.mark.parametrize(
    ("left_ms", "asked_ms", "declared_ms", "given_ms"),
    [
        (10_000, None, None, 9_500),  # 5 %
        (700, None, None, 650),  # at least 50 ms
        (60, None, None, 30),  # where there is that much
        (10_000, 9_900, None, 9_900),  # a time of its own that fits
        (10_000, None, 9_900, 9_900),
        (10_000, 10_000, None, 9_500),  # one that does not
        (10_000, None, 20_000, 9_500),
        (60_000, None, None, 30_000),  # the node's default is shorter
        (31_000, None, None, 29_450),  # and yet too long
    ],
)
async def test_a_child_leaves_its_parent_a_margin(make_node, left_ms, asked_ms, declared_ms, given_ms):
    leaf, top = Agent("LEAF"), Agent("TOP")

    @leaf.capability("LOOK", timeout_ms=declared_ms)
    async def look(ctx: Context) -> int:
        return ctx.left_ms

    @top.capability("GO")
    async def go(ctx: Context) -> int:
        return (await ctx.call("LEAF", "LOOK", timeout_ms=asked_ms)).data

    async with make_node([leaf, top]) as node:
        assert (await node.call("TOP", "GO", user_id="u", timeout_ms=left_ms)).data == given_ms
    async with make_node([leaf, top], child_margin=0) as node:
        without = min(left_ms, asked_ms or declared_ms or 30_000)
        assert (await node.call("TOP", "GO", user_id="u", timeout_ms=left_ms)).data == without


@pytest.mark.parametrize("wrong", [1, -0.1, "5 %", True, float("nan")])
def test_a_margin_is_a_share(wrong):
    with pytest.raises(ValueError, match="child_margin must be a number from 0 to below 1"):
        Node([], child_margin=wrong)


def test_the_first_call_does_not_spend_its_time_on_what_a_node_imports():
    code = """
import asyncio, sys
from comity import Agent, Node
agent = Agent("A")
@agent.capability("GO")
async def go(n: int) -> int: return n
async def main():
    async with Node([agent]) as node:
        before = set(sys.modules)
        assert (await node.call("A", "GO", {"n": 1}, user_id="u")).data == 1
        print(sorted(set(sys.modules) - before))
asyncio.run(main())
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not [name for name in ast.literal_eval(ran.stdout) if name.startswith("pydantic")]


async def test_calls_with_one_deadline_end_over_several_turns_of_the_loop(make_node):
    agent = Agent("A", concurrency=100)

    @agent.capability("WAIT")
    async def wait(ctx: Context) -> None:
        await asyncio.sleep(60)

    async with make_node([agent]) as node:
        asked = [asyncio.ensure_future(node.call("A", "WAIT", user_id="eve", timeout_ms=100)) for _ in range(5 * EXPIRE_MOST)]
        await asyncio.sleep(0.09)
        left = [5 * EXPIRE_MOST]
        while node._path.calls:
            await asyncio.sleep(0 if left[-1] < 5 * EXPIRE_MOST else 0.001)
            left.append(len(node._path.calls))
        assert max(before - after for before, after in pairwise(left)) == EXPIRE_MOST
        assert {(await one).status for one in asked} == {Status.TIMEOUT}


def test_after_calls_that_ended_by_one_deadline_took_long_the_loop_rests_before_more_of_them_end():
    async def main() -> None:
        loop = asyncio.get_running_loop()
        ended, rests = [], []

        def expire(call: Any) -> None:
            ended.append(call)
            loop.ahead_s += BUSY_S

        pace = Pace()
        pace.note_call(("default", "bob"), loop.time() + 60)  # who waits for all of them
        deadlines = Deadlines(SystemClock(), loop, expire, pace)
        now_ms = SystemClock().now_ns() // 1_000_000
        calls: list[Any] = [Late(now_ms) for _ in range(3 * EXPIRE_MOST)]
        for call in calls:
            deadlines.add(call)
        call_later = loop.call_later
        loop.call_later = lambda delay, *given: rests.append(delay) or call_later(0, *given)
        while len(ended) < len(calls):
            await asyncio.sleep(0)
        deadlines.close()
        assert [rest for rest in rests if rest] == [LOOK_S] * 2

    with asyncio.Runner(loop_factory=AheadLoop) as runner:
        runner.run(main())


class Late:
    """What a deadline needs of a call."""

    def __init__(self, deadline_at: int) -> None:
        self.request = SimpleNamespace(deadline_at=deadline_at)


class AheadLoop(asyncio.SelectorEventLoop):
    """A loop whose clock goes on when a test says so, as if something had been computed."""

    ahead_s = 0.0

    def time(self) -> float:
        return super().time() + self.ahead_s
