"""Running a call: deadlines, cancellation, partial data, repeats, events, crashes, state, priorities."""

from __future__ import annotations

import asyncio

import pytest

from comity import Agent, Background, Context, Limits, Reply, Retry, Status
from comity.core import breaker
from comity.errors import UnavailableError


def now() -> float:
    return asyncio.get_running_loop().time()


def tasks_left() -> int:
    return len(asyncio.all_tasks()) - 1  # this test itself


def chain_to(leaf, capability: str = "GO") -> list[Agent]:
    """TOP → MIDDLE → LEAF, where the leaf runs `leaf`."""
    top, middle, bottom = Agent("TOP"), Agent("MIDDLE"), Agent("LEAF")

    @top.capability(capability)
    async def go_top(ctx: Context):
        return (await ctx.call("MIDDLE", capability)).data

    @middle.capability(capability)
    async def go_middle(ctx: Context):
        return (await ctx.call("LEAF", capability)).data

    bottom.capability(capability)(leaf)
    return [top, middle, bottom]


async def test_a_deadline_ends_a_chain_of_three_on_time_with_every_task_cancelled(make_node):
    ended: list[str] = []

    async def leaf(ctx: Context):
        ctx.progress({"pages_read": 3})
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("leaf")

    async with make_node(chain_to(leaf)) as node:
        reply = await node.call("TOP", "GO", user_id="u", timeout_ms=1_000)
        assert (reply.status, reply.error.code, reply.error.retryable) == (Status.TIMEOUT, "CALL_TIMEOUT", True)
        assert 1.0 <= now() <= 1.1
        await asyncio.sleep(0)
        assert ended == ["leaf"]
        assert tasks_left() == 0
        rows = {(row.target, row.kind): row.status for row in node.audit.rows()}
    assert [rows[agent, "settled"] for agent in ("TOP", "MIDDLE", "LEAF")] == ["timeout"] * 3


async def test_a_timeout_keeps_the_partial_data_that_was_told(make_node):
    async def leaf():
        return 1

    slow = Agent("SLOW")

    @slow.capability("GO", timeout_ms=500)
    async def go(ctx: Context):
        for page in range(100):
            ctx.progress({"pages": page})
            await asyncio.sleep(0.2)

    async with make_node([slow]) as node:
        reply = await node.call("SLOW", "GO", user_id="u")
    assert (reply.status, reply.data) == (Status.TIMEOUT, {"pages": 2})


async def test_a_child_never_outlives_the_deadline_of_its_parent(make_node):
    deadlines: list[int] = []

    async def leaf(ctx: Context):
        deadlines.append(ctx.limits.timeout_ms)
        return 1

    agents = chain_to(leaf)
    agents[2].capabilities["GO"].timeout_ms = 200_000
    async with make_node(agents) as node:
        await node.call("TOP", "GO", user_id="u", timeout_ms=700)
    assert deadlines == [700]


async def test_a_timeout_is_clamped_to_the_maximum(make_node):
    agent = Agent("A")

    @agent.capability("LOOK")
    async def look(ctx: Context):
        return ctx.limits.timeout_ms_max

    async with make_node([agent]) as node:
        assert (await node.call("A", "LOOK", user_id="u", timeout_ms=10_000_000)).data == 300_000


async def test_a_result_after_the_deadline_is_recorded_and_never_delivered(make_node):
    stubborn = Agent("A")

    @stubborn.capability("GO", timeout_ms=100)
    async def go():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "too late"

    async with make_node([stubborn]) as node:
        reply = await node.call("A", "GO", user_id="u", request_id="r1")
        await asyncio.sleep(0)
        again = await node.call("A", "GO", user_id="u", request_id="r1")
        kinds = [(row.kind, row.status) for row in node.audit.rows()]
    assert reply.status is again.status is Status.TIMEOUT
    assert kinds == [("admitted", None), ("settled", "timeout"), ("late", "success")]


async def test_cancel_from_the_root_reaches_the_leaf(make_node):
    ended: list[str] = []
    began = asyncio.Event()

    async def leaf():
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("leaf")

    async with make_node(chain_to(leaf)) as node:
        handle = node.start_call("TOP", "GO", user_id="u")
        await began.wait()
        assert handle.cancel()
        reply = await handle.reply()
        await asyncio.sleep(0)
        assert (reply.status, reply.error.code) == (Status.CANCELLED, "CALL_CANCELLED")
        assert ended == ["leaf"]
        assert tasks_left() == 0
        assert not handle.cancel()


async def test_a_caller_that_stops_waiting_cancels_what_it_called(make_node):
    ended: list[str] = []
    boss, helper = Agent("BOSS"), Agent("HELP")

    @helper.capability("SLOW")
    async def slow():
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("helper")

    @boss.capability("IMPATIENT")
    async def impatient(ctx: Context):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await ctx.call("HELP", "SLOW")
        return list(ended)

    async with make_node([boss, helper]) as node:
        reply = await node.call("BOSS", "IMPATIENT", user_id="u")
        await asyncio.sleep(0)
        assert reply.ok
        assert ended == ["helper"]


async def test_calls_left_behind_by_a_finished_parent_end_with_it(make_node):
    ended: list[str] = []
    boss, helper = Agent("BOSS"), Agent("HELP")

    @helper.capability("SLOW")
    async def slow():
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("helper")

    @boss.capability("FORGETFUL")
    async def forgetful(ctx: Context):
        left_behind.append(asyncio.ensure_future(ctx.call("HELP", "SLOW")))
        await asyncio.sleep(1)
        return "done"

    left_behind: list[asyncio.Future[Reply]] = []
    async with make_node([boss, helper]) as node:
        assert (await node.call("BOSS", "FORGETFUL", user_id="u")).data == "done"
        assert (await left_behind[0]).status is Status.CANCELLED
        assert ended == ["helper"]


async def test_a_task_that_outlives_its_call_can_call_nobody(make_node):
    boss, helper = Agent("BOSS"), Agent("HELP")
    contexts: list[Context] = []

    @helper.capability("GO")
    async def go():
        raise AssertionError("never reached")

    @boss.capability("LEAK")
    async def leak(ctx: Context):
        contexts.append(ctx)

    async with make_node([boss, helper]) as node:
        await node.call("BOSS", "LEAK", user_id="u")
        assert (await contexts[0].call("HELP", "GO")).error.code == "CALL_CANCELLED"


async def test_one_failure_in_a_gather_does_not_stop_the_others(make_node):
    boss, helper = Agent("BOSS"), Agent("HELP")

    @helper.capability("WORK")
    async def work(n: int) -> int:
        await asyncio.sleep(n)
        if n == 2:
            raise ValueError("two is wrong")
        return n

    @boss.capability("SPREAD")
    async def spread(ctx: Context):
        replies = await ctx.gather(*(ctx.call("HELP", "WORK", {"n": n}) for n in (1, 2, 3)))
        return [(r.status, r.data) for r in replies]

    async with make_node([boss, helper]) as node:
        reply = await node.call("BOSS", "SPREAD", user_id="u")
        assert reply.data == [["success", 1], ["error", None], ["success", 3]]
        assert now() == 3


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
            for other in ({"inputs": {"n": 2}, "user_id": "u"}, {"inputs": {"n": 1}, "user_id": "someone else"}):
                reply = await node.call("A", "GO", request_id="x", **other)
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


async def test_a_crash_in_one_agent_is_an_error_to_its_caller_and_nothing_to_others(make_node, caplog):
    bad, good = Agent("BAD"), Agent("GOOD")

    @bad.capability("GO")
    async def crash():
        raise KeyError("gone")

    @good.capability("GO")
    async def fine():
        await asyncio.sleep(1)
        return "fine"

    async with make_node([bad, good]) as node:
        broken, whole = await asyncio.gather(node.call("BAD", "GO", user_id="u"), node.call("GOOD", "GO", user_id="u"))
    assert (broken.status, broken.error.code) == (Status.ERROR, "TARGET_CRASHED")
    assert "KeyError" in broken.error.message
    assert whole.data == "fine"
    assert "Traceback" in caplog.text


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (float("nan"), "OUTPUT_VALIDATION_FAILED"),
        (object(), "OUTPUT_VALIDATION_FAILED"),
        ("x" * (1024 * 1024), "OUTPUT_TOO_LARGE"),
        ({"n": "not a number"}, "OUTPUT_VALIDATION_FAILED"),
        ({"n": 1, "extra": "\ud800"}, "OUTPUT_VALIDATION_FAILED"),
    ],
)
async def test_an_answer_that_does_not_fit_is_the_agents_error(make_node, answer, code):
    agent = Agent("A")

    @agent.capability("GO")
    async def go() -> dict[str, int]:
        return answer

    async with make_node([agent]) as node:
        reply = await node.call("A", "GO", user_id="u")
    assert (reply.status, reply.error.code) == (Status.ERROR, code)
    assert reply.error.problems[0].path.startswith("data")


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


async def test_a_breaker_opens_after_five_failures_and_closes_after_two_probes(make_node):
    failing = True
    agent = Agent("A")

    @agent.capability("GO")
    async def go():
        if failing:
            raise ConnectionError("no route")
        return "ok"

    async with make_node([agent]) as node:
        codes = [(await node.call("A", "GO", user_id="u")).error.code for _ in range(7)]
        assert codes == ["TARGET_TEMPORARY_FAILURE"] * 5 + ["CAPABILITY_UNAVAILABLE"] * 2
        refused = await node.call("A", "GO", user_id="u")
        assert (refused.status, refused.error.retry_after_ms) == (Status.REFUSED, 30_000)
        await asyncio.sleep(30)
        assert (await node.call("A", "GO", user_id="u")).error.code == "TARGET_TEMPORARY_FAILURE"  # the probe
        assert (await node.call("A", "GO", user_id="u")).error.code == "CAPABILITY_UNAVAILABLE"
        await asyncio.sleep(30)
        failing = False
        assert [(await node.call("A", "GO", user_id="u")).status for _ in range(3)] == [Status.SUCCESS] * 3


async def test_a_cancelled_probe_gives_its_place_back(make_node):
    fail, hang = True, False
    agent = Agent("A")

    @agent.capability("GO", breaker_policy=breaker.Policy(failures_max=1, open_ms=1_000, probes=1))
    async def go():
        if fail:
            raise ConnectionError
        if hang:
            await asyncio.sleep(600)
        return "ok"

    async with make_node([agent]) as node:
        await node.call("A", "GO", user_id="u")
        await asyncio.sleep(1)
        fail, hang = False, True
        probe = node.start_call("A", "GO", user_id="u")
        await asyncio.sleep(0.1)
        assert (await node.call("A", "GO", user_id="u")).error.code == "CAPABILITY_UNAVAILABLE"
        probe.cancel()
        hang = False
        assert (await node.call("A", "GO", user_id="u")).data == "ok"


@pytest.mark.parametrize("mistake", [{"n": "x"}, {"wrong": 1}])
async def test_mistakes_of_the_caller_never_open_a_breaker(make_node, mistake):
    agent = Agent("A")

    @agent.capability("GO")
    async def go(n: int):
        return n

    async with make_node([agent]) as node:
        for _ in range(10):
            assert (await node.call("A", "GO", mistake, user_id="u")).error.code == "INPUT_VALIDATION_FAILED"
        assert (await node.call("A", "GO", {"n": 1}, user_id="u")).data == 1


async def test_misconfiguration_opens_the_breaker_at_once(make_node):
    from comity.errors import TargetError

    agent = Agent("A")

    @agent.capability("GO")
    async def go():
        raise TargetError("no API key", code="TARGET_MISCONFIGURED")

    async with make_node([agent]) as node:
        codes = [(await node.call("A", "GO", user_id="u")).error.code for _ in range(2)]
    assert codes == ["TARGET_MISCONFIGURED", "CAPABILITY_UNAVAILABLE"]


async def test_a_fallback_answers_for_a_failing_implementation_and_while_its_breaker_is_open(make_node):
    tried: list[str] = []
    agent = Agent("A")

    @agent.capability("GO", breaker_policy=breaker.Policy(failures_max=2))
    async def best():
        tried.append("best")
        raise ConnectionError

    @agent.fallback("GO")
    async def second_best():
        tried.append("second")
        return "estimate"

    async with make_node([agent]) as node:
        replies = [await node.call("A", "GO", user_id="u") for _ in range(3)]
    assert [(r.status, r.data, r.degraded) for r in replies] == [(Status.SUCCESS, "estimate", True)] * 3
    assert tried == ["best", "second", "best", "second", "second"]  # the third time the breaker is open
    assert "TARGET_TEMPORARY_FAILURE" in replies[0].warnings[0]
    assert "breaker" in replies[2].warnings[0]


async def test_only_transient_failures_are_retried_with_growing_pauses_within_the_deadline(make_node):
    times: list[float] = []
    agent = Agent("A")
    patient = Retry(attempts=4, delay_ms=1_000, multiplier=2, delay_ms_max=60_000, jitter=0)

    @agent.capability("FLAKY", retry=patient)
    async def flaky():
        times.append(now())
        if len(times) < 4:
            raise UnavailableError("busy")
        return "at last"

    @agent.capability("BROKEN", retry=patient)
    async def broken():
        times.append(now())
        raise ValueError("always")

    async with make_node([agent]) as node:
        assert (await node.call("A", "FLAKY", user_id="u")).data == "at last"
        assert times == [0, 1, 3, 7]
        times.clear()
        assert (await node.call("A", "BROKEN", user_id="u")).error.code == "TARGET_CRASHED"
        assert len(times) == 1
        times.clear()
        began = now()
        hurried = await node.call("A", "FLAKY", user_id="u", timeout_ms=2_500)
        assert (hurried.error.code, now() - began) == ("TARGET_TEMPORARY_FAILURE", 1)  # a pause of 2 s would pass the deadline


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


async def test_an_agent_that_cannot_be_activated_fails_its_calls_and_can_be_tried_again(make_node):
    broken = True

    def wake(address: str, state: dict) -> None:
        if broken:
            raise OSError("no disk")

    agent = Agent("A", on_activate=wake)

    @agent.capability("GO")
    async def go():
        return "ok"

    async with make_node([agent]) as node:
        assert (await node.call("A", "GO", user_id="u")).error.code == "TARGET_CRASHED"
        broken = False
        assert (await node.call("A", "GO", user_id="u")).data == "ok"


async def test_closing_a_node_ends_every_call_and_leaves_no_task(make_node):
    async def leaf():
        await asyncio.sleep(600)

    async with make_node(chain_to(leaf)) as node:
        handle = node.start_call("TOP", "GO", user_id="u")
        await asyncio.sleep(1)
    assert (await handle.reply()).status is Status.CANCELLED
    assert tasks_left() == 0
    with pytest.raises(UnavailableError, match="NODE_CLOSED"):
        await node.call("TOP", "GO", user_id="u")


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
