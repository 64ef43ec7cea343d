"""Agents that fail: crashes, answers that do not fit, breakers, fallbacks, retries, activations that go wrong."""

from __future__ import annotations

import asyncio
import sys

import pytest
from path_agents import now

from comity import Agent, Context, Retry, Status, Tool
from comity.core.agent import breaker
from comity.core.call.guardrail import Allow, Guardrail
from comity.errors import UnavailableError
from comity.testing import run_virtual


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


class Odd(BaseException):
    """Neither an error nor the end of anything."""


def leave(*_seen, **_inputs):
    sys.exit(0)


def be_odd(*_seen, **_inputs):
    raise Odd("odd")


class Mute(Exception):
    """Cannot be shown."""

    def __str__(self) -> str:
        raise ValueError("no")


class Wary(Exception):
    """Cannot even be asked what it is."""

    __class__ = property(lambda self: 1 / 0)


def be_mute(*_seen, **_inputs):
    raise Mute


def be_gone(*_seen, **_inputs):
    raise GeneratorExit


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (leave, "SystemExit: its code called sys.exit(0)"),
        (be_odd, "Odd: odd"),
        (be_mute, "Mute, which cannot be shown as text"),
        (be_gone, "GeneratorExit"),
    ],
)
@pytest.mark.parametrize(
    ("where", "code"),
    [
        ("async", "TARGET_CRASHED"),
        ("plain", "TARGET_CRASHED"),
        ("fallback", "TARGET_CRASHED"),
        ("on_activate", "TARGET_CRASHED"),
        ("tool", "TARGET_FAILED"),
        ("inbound", "GUARDRAIL_STOPPED"),
        ("outbound", "GUARDRAIL_STOPPED"),
    ],
)
async def test_code_that_leaves_the_program_ends_its_own_call_and_nothing_else(make_node, where, code, act, says):
    bad, good = Agent("BAD", tools_allowed=["act"], on_activate=act if where == "on_activate" else None), Agent("GOOD")

    @bad.capability("GO")
    async def go(ctx: Context):
        if where == "fallback":
            raise ConnectionError
        return await ctx.use_tool("act") if where == "tool" else act()

    @bad.capability("PLAIN")
    def plain():
        return act()

    if where == "fallback":
        bad.fallback("GO")(plain)

    @good.capability("GO")
    async def fine():
        await asyncio.sleep(1)
        return "fine"

    rails = [Guardrail(name="rail", **{where: _for_bad(act)})] if where.endswith("bound") else []
    async with make_node([bad, good], tools=[Tool(name="act", function=act)], guardrails=rails) as node:
        wrong = node.call("BAD", "PLAIN" if where == "plain" else "GO", user_id="u")
        broken, whole = await asyncio.gather(wrong, node.call("GOOD", "GO", user_id="u"))
    assert (broken.error.code, whole.data) == (code, "fine")
    # What the exception of a guardrail says may quote the message that it was to judge.
    assert (says.partition(":")[0].partition(",")[0] if where.endswith("bound") else says) in broken.error.message
    assert broken.duration_ms < 1_000


async def test_an_exception_that_cannot_be_looked_at_is_a_crash_at_once(make_node):
    agent = Agent("A")

    @agent.capability("GO")
    async def go():
        raise Wary

    async with make_node([agent]) as node:
        reply = await node.call("A", "GO", user_id="u")
    assert (reply.error.code, reply.error.message) == ("TARGET_CRASHED", "A raised Wary, which cannot be looked at")


def test_a_coroutine_that_is_thrown_away_is_no_failure_of_its_agent(make_node, caplog):
    agent = Agent("A")

    @agent.capability("GO")
    async def go():
        await asyncio.sleep(60)

    async def program():
        async with make_node([agent]) as node:
            handle = node.start_call("A", "GO", user_id="u")
            await asyncio.sleep(1)
            call = node._path.calls[handle.request_id]
            call.task.get_coro().cr_await.close()  # as the collector does, and a loop that ends
            assert call.reply is None
            assert "raised" not in caplog.text

    run_virtual(program())


@pytest.mark.parametrize("act", [leave, be_odd, be_mute, be_gone])
async def test_an_agent_that_leaves_the_program_when_it_is_put_away_is_put_away_and_wakes_again(make_node, caplog, act):
    agent = Agent("A", idle_ms=10, on_deactivate=act)

    @agent.capability("GO")
    async def go():
        return "fine"

    async with make_node([agent]) as node:
        for _ in range(2):
            assert (await node.call("A", "GO", user_id="u")).data == "fine"
            await asyncio.sleep(1)
    assert caplog.text.count("A failed while being put away") == 2


def _for_bad(act):
    return lambda request, *reply: act() if request.target == "BAD" else Allow()


def test_an_interrupted_program_is_not_kept_alive_by_an_agent(make_node):
    agent = Agent("A")

    @agent.capability("GO")
    async def go():
        raise KeyboardInterrupt

    async def program():
        async with make_node([agent]) as node:
            await node.call("A", "GO", user_id="u")

    with pytest.raises(KeyboardInterrupt):
        run_virtual(program())


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
