"""Breakers on a node: which ends count, that no caller can open one for others, and how a node finds out that it works again."""

from __future__ import annotations

import asyncio
import threading

import pytest

from comity import Agent, Context, Limits, Node, Reply
from comity.core.agent.agent import DeclarationError
from comity.core.agent.breaker import Policy

OPEN = "CAPABILITY_UNAVAILABLE"


def slow(seconds: float = 60, **declared) -> Agent:
    agent = Agent("ANL")

    @agent.capability("WORK", **declared)
    async def work():
        await asyncio.sleep(seconds)
        return "ok"

    return agent


async def is_open(node: Node, target: str = "ANL", capability: str = "WORK") -> bool:
    reply = await node.call(target, capability, user_id="ann", timeout_ms=1)
    return reply.error is not None and reply.error.code == OPEN


# --- timeouts ---


async def test_one_caller_that_asks_for_a_millisecond_does_not_shut_a_capability_for_others(make_node):
    async with make_node([slow(0.02)]) as node:
        for _ in range(50):
            assert (await node.call("ANL", "WORK", user_id="mallory", timeout_ms=1)).status == "timeout"
        assert (await node.call("ANL", "WORK", user_id="ann")).data == "ok"


@pytest.mark.parametrize(
    ("declared", "asked_ms", "opens"),
    [
        ({"timeout_ms": 100}, None, True),
        ({"timeout_ms": 100}, 100, True),
        ({"timeout_ms": 100}, 5_000, True),
        ({"timeout_ms": 100}, 99, False),
        ({}, None, True),  # the node's default of 30 s
        ({}, 29_999, False),
        ({"timeout_ms": 900_000}, None, True),  # clamped for everybody
        ({"limits": Limits(timeout_ms=50)}, None, True),
        ({"limits": Limits(timeout_ms_max=50)}, 50, True),
    ],
)
async def test_a_timeout_counts_if_the_call_had_the_capabilitys_own_time(make_node, declared, asked_ms, opens):
    async with make_node([slow(600, **declared)]) as node:
        for _ in range(5):
            assert (await node.call("ANL", "WORK", user_id="u", timeout_ms=asked_ms)).status == "timeout"
        assert await is_open(node) is opens


async def test_a_short_deadline_that_a_caller_passes_on_opens_nothing_above_or_below(make_node):
    boss = Agent("BOSS")

    @boss.capability("ASK")
    async def ask(ctx: Context):
        return (await ctx.call("ANL", "WORK")).unwrap()

    @boss.capability("RELAY")
    async def relay(ctx: Context):
        return await ctx.call("ANL", "WORK")

    async with make_node([boss, slow()]) as node:
        for capability in ("ASK", "RELAY"):
            for _ in range(6):
                assert not (await node.call("BOSS", capability, user_id="mallory", timeout_ms=400)).ok
        assert [await is_open(node, "BOSS", "ASK"), await is_open(node, "BOSS", "RELAY"), await is_open(node)] == [False] * 3


async def test_a_short_deadline_in_a_document_opens_nothing(make_node):
    document = {"source_agent": "USER", "target_agent": "ANL", "capability_code": "WORK", "inputs_json": {}, "timeout_ms": 1}
    async with make_node([slow(0.02)]) as node:
        for number in range(6):
            told = await node.receive(document | {"request_id": f"r{number}"}, dialect="kdap", user_id="mallory")
            assert told["status"] == "TIMEOUT"
        assert not await is_open(node)


async def test_code_that_waits_no_longer_than_its_caller_does_opens_nothing_for_those_who_wait_longer(make_node):
    agent = Agent("ANL")

    @agent.capability("WORK", timeout_ms=1_000)
    async def work(ctx: Context):
        async with asyncio.timeout(ctx.left_ms / 2_000):  # as one bounds a request to somebody else
            await asyncio.sleep(60)

    async with make_node([agent]) as node:
        for _ in range(6):
            reply = await node.call("ANL", "WORK", user_id="mallory", timeout_ms=10)
            assert reply.error.code == "TARGET_TEMPORARY_FAILURE"
        assert not await is_open(node)
        for _ in range(5):
            await node.call("ANL", "WORK", user_id="ann")
        assert await is_open(node)


async def test_calls_that_never_got_a_place_or_got_it_late_say_nothing_about_the_capability(make_node):
    agent = Agent("ANL", concurrency=1)

    @agent.capability("WORK", timeout_ms=1_000)
    async def work(seconds: float = 0):
        await asyncio.sleep(seconds)
        return "ok"

    async with make_node([agent]) as node:
        first = node.start_call("ANL", "WORK", {"seconds": 0.9}, user_id="mallory")
        others = [node.start_call("ANL", "WORK", {"seconds": 0.9}, user_id="mallory") for _ in range(20)]
        assert (await first.reply()).ok
        assert {(await one.reply()).status for one in others} == {"timeout"}
        assert (await node.call("ANL", "WORK", user_id="ann")).data == "ok"


async def test_a_capability_that_hangs_below_others_opens_its_breaker_under_default_times(make_node):
    boss = Agent("BOSS")

    @boss.capability("ASK")
    async def ask(ctx: Context):
        return str((await ctx.call("ANL", "WORK")).status)

    async with make_node([boss, slow()]) as node:
        replies = [(await node.call("BOSS", "ASK", user_id="u")).data for _ in range(6)]
    assert replies == ["timeout"] * 5 + ["refused"]


# --- the rate ---


async def test_a_failure_rate_opens_it_though_a_success_comes_in_between(make_node):
    agent = Agent("ANL")

    @agent.capability("WORK")
    async def feed(i: int):
        if i % 5:
            raise ConnectionError("down")

    async with make_node([agent]) as node:
        codes = [(await node.call("ANL", "WORK", {"i": i}, user_id="u")).error for i in range(200)]
    turned_away = [error is not None and error.code == OPEN for error in codes]
    assert turned_away.index(True) == 22  # the 20th since the first failure succeeded; the next failure opens it
    assert all(turned_away[22:])


@pytest.mark.parametrize(
    ("failure", "opens"),
    [
        (Reply.failure("upstream is down", code="TARGET_TEMPORARY_FAILURE"), True),
        (Reply.failure("upstream is down", code="MODEL_OVERLOADED"), True),
        (Reply.failure("upstream is down", code="FEED_DOWN", retryable=True), True),
        (Reply.failure("upstream is down", retryable=True), True),
        (Reply.failure("no such share"), False),
        (Reply.failure("no such share", code="SHARE_UNKNOWN"), False),
        (Reply.failure("later", code="FEED_BUSY"), False),
    ],
)
async def test_a_failure_that_is_given_back_counts_if_it_may_pass(make_node, failure, opens):
    agent = Agent("ANL")

    @agent.capability("WORK")
    async def says() -> Reply:
        return failure

    async with make_node([agent]) as node:
        codes = [(await node.call("ANL", "WORK", user_id="u")).error.code for _ in range(50)]
    assert codes == [failure.error.code] * 5 + [OPEN] * 45 if opens else codes == [failure.error.code] * 50


# --- probes ---


def feeble(probe, works, **more) -> Agent:
    """An agent that fails until `works` says otherwise."""
    agent = Agent("ANL")
    policy = Policy(failures_max=1, open_ms=1_000, probes=2)

    @agent.capability("WORK", breaker_policy=policy, probe=probe, **more)
    async def work():
        if not works():
            raise ConnectionError
        return "ok"

    return agent


async def test_a_probe_closes_a_breaker_without_any_caller(make_node):
    probed: list[float] = []
    now = asyncio.get_running_loop().time

    async def probe():
        probed.append(now())
        if now() < 2.5:
            raise ConnectionError("still down")

    async with make_node([feeble(probe, lambda: now() > 2.5)]) as node:
        assert (await node.call("ANL", "WORK", user_id="u")).error.code == "TARGET_TEMPORARY_FAILURE"
        await asyncio.sleep(60)
        assert probed == [1, 2, 3, 3]  # each time it may; then as often as the policy asks for
        assert (await node.call("ANL", "WORK", user_id="u")).data == "ok"
        await asyncio.sleep(60)
        assert len(probed) == 4  # nothing is probed that works


async def test_a_probe_that_hangs_is_ended_and_counts_as_failed(make_node):
    ended: list[float] = []
    now = asyncio.get_running_loop().time

    async def probe():
        try:
            await asyncio.sleep(600)
        finally:
            ended.append(now())

    async with make_node([feeble(probe, lambda: False, timeout_ms=500)]) as node:
        await node.call("ANL", "WORK", user_id="u")
        await asyncio.sleep(3.2)
        assert ended == [1.5, 3.0]
        assert (await node.call("ANL", "WORK", user_id="u")).error.code == OPEN


@pytest.mark.parametrize("answer", [False, SystemExit(1), KeyError("x")])
async def test_a_probe_that_says_no_or_raises_keeps_it_open_for_another_while(make_node, answer):
    now = asyncio.get_running_loop().time

    async def probe() -> bool:
        if now() > 2.5:
            return True
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async with make_node([feeble(probe, lambda: now() > 1.0)]) as node:
        await node.call("ANL", "WORK", user_id="u")
        await asyncio.sleep(1.1)
        assert (await node.call("ANL", "WORK", user_id="u")).error.code == OPEN
        await asyncio.sleep(2)
        assert (await node.call("ANL", "WORK", user_id="u")).data == "ok"


async def test_callers_and_probes_share_the_places_of_a_half_open_breaker(make_node):
    probed: list[float] = []
    now = asyncio.get_running_loop().time

    async def probe():
        probed.append(now())
        await asyncio.sleep(0.5)

    async with make_node([feeble(probe, lambda: now() > 0.5)]) as node:
        await node.call("ANL", "WORK", user_id="u")
        await asyncio.sleep(1.1)  # the probe is under way
        assert (await node.call("ANL", "WORK", user_id="u")).data == "ok"
        assert (await node.call("ANL", "WORK", user_id="u")).error.code == OPEN  # both places are taken
        await asyncio.sleep(1)
        assert probed == [1]  # it and the caller were two


async def test_a_node_that_closes_ends_its_probes(make_node):
    ended: list[str] = []

    async def probe():
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async with make_node([feeble(probe, lambda: False)]) as node:
        await node.call("ANL", "WORK", user_id="u")
        await asyncio.sleep(1.1)
    assert ended == ["cancelled"]
    assert len(asyncio.all_tasks()) == 1


def test_a_probe_that_is_a_plain_function_does_not_stop_the_loop():
    threads: list[threading.Thread] = []

    def probe():
        threads.append(threading.current_thread())

    async def main():
        agent = Agent("ANL")

        @agent.capability("WORK", breaker_policy=Policy(failures_max=1, open_ms=5, probes=1), probe=probe)
        async def work():
            raise ConnectionError

        async with Node([agent], lag_ms=None) as node:
            await node.call("ANL", "WORK", user_id="u")
            while not threads:
                await asyncio.sleep(0.002)

    asyncio.run(main())
    assert threads[0] is not threading.main_thread()


@pytest.mark.parametrize("probe", [5, lambda needed: None])
def test_a_probe_must_be_a_function_without_parameters(probe):
    with pytest.raises(DeclarationError, match="WORK: probe must be a function without parameters"):
        feeble(probe, lambda: True)


async def test_a_misconfiguration_that_is_repaired_is_found_by_its_probe(make_node):
    from comity.errors import TargetError

    agent = Agent("ANL")

    async def probe(): ...

    @agent.capability("WORK", probe=probe)
    async def work():
        raise TargetError("no API key", code="TARGET_MISCONFIGURED")

    async with make_node([agent]) as node:
        await node.call("ANL", "WORK", user_id="u")
        assert await is_open(node)
        await asyncio.sleep(30.1)
        assert not await is_open(node)


async def test_a_breaker_that_is_closed_by_hand_is_not_probed_any_more(make_node):
    probed: list[float] = []
    now = asyncio.get_running_loop().time

    async def probe() -> None:
        probed.append(now())

    async with make_node([feeble(probe, lambda: False)]) as node:
        assert not node.reset_breaker("ANL", "WORK")
        await node.call("ANL", "WORK", user_id="u")
        assert node.reset_breaker("ANL", "WORK")
        await asyncio.sleep(5)
        assert (probed, node._path.settlement.breakers._probes) == ([], {})
