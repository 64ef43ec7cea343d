"""Fallbacks: what stands in for an implementation that failed or took too long, and how its answer is told."""

from __future__ import annotations

import asyncio

import pytest

from comity import Agent, Context, Reply, Retry, Status
from comity.core.agent import breaker
from comity.core.agent.agent import DeclarationError
from comity.core.envelope.confidence import Band, band, representative
from comity.errors import CallerError

DOWN = ConnectionError("feed down")


def feed(answer=DOWN, stands_in=lambda: {"price": 1}, *, first=None, **fallback) -> Agent:
    """An agent whose PRICE raises or returns `answer`, and a fallback that returns what `stands_in` gives."""
    agent = Agent("ANL")

    @agent.capability("PRICE", **first or {})
    async def price():
        if isinstance(answer, BaseException):
            raise answer
        return answer

    @agent.fallback("PRICE", **fallback)
    async def yesterdays_cache():
        return stands_in()

    return agent


async def ask(make_node, agent: Agent, **more) -> Reply:
    async with make_node([agent]) as node:
        return await node.call("ANL", "PRICE", user_id="u", **more)


async def test_the_answer_of_a_fallback_is_partial_degraded_of_medium_confidence_and_says_so_without_code_names(make_node):
    reply = await ask(make_node, feed())
    assert (reply.status, reply.data, reply.degraded) == (Status.PARTIAL, {"price": 1}, True)
    assert reply.confidence == representative(Band.MEDIUM)
    (warning,) = reply.warnings
    assert not any(word in warning for word in ("yesterdays_cache", "price", "ANL", "PRICE", "TARGET_", "implementation"))


async def test_a_kdap_document_tells_a_fallback_as_partial(make_node):
    document = {"source_agent": "USER", "target_agent": "ANL", "capability_code": "PRICE", "request_id": "r", "inputs_json": {}}
    async with make_node([feed(warning="Yesterday's price: the exchange cannot be reached.")]) as node:
        told = await node.receive(document, dialect="kdap", user_id="u")
    assert (told["status"], told["confidence_level"], told["result_json"]) == ("PARTIAL", "MEDIUM", {"price": 1})
    assert told["warnings"] == ["Yesterday's price: the exchange cannot be reached."]


@pytest.mark.parametrize(("said", "kept"), [(1.0, 0.725), (0.85, 0.725), (0.84, 0.84), (0.6, 0.6), (0.2, 0.2)])
async def test_a_fallback_is_never_surer_than_medium_and_keeps_its_own_doubts(make_node, said, kept):
    reply = await ask(make_node, feed(stands_in=lambda: Reply.success(1, confidence=said)))
    assert reply.confidence == kept
    assert band(reply.confidence) is not Band.HIGH


async def test_what_a_fallback_itself_warns_of_stays_and_comes_after(make_node):
    reply = await ask(make_node, feed(stands_in=lambda: Reply.partial(1, warnings=["No volume."]), warning="Of yesterday."))
    assert reply.warnings == ("Of yesterday.", "No volume.")


async def test_a_fallback_that_is_declared_equivalent_answers_like_the_first(make_node):
    async with make_node([feed(equivalent=True)]) as node:
        reply = await node.call("ANL", "PRICE", user_id="u")
        notes = [row.note for row in node.audit.rows() if row.kind == "noted"]
    assert (reply.status, reply.confidence, reply.degraded, reply.warnings) == (Status.SUCCESS, 1.0, False, ())
    assert len(notes) == 1  # who runs the node can see it all the same
    assert "yesterdays_cache" in notes[0]
    assert "TARGET_TEMPORARY_FAILURE" in notes[0]


@pytest.mark.parametrize("question", [Reply.needs_input("Which market?"), Reply.failure("Not traded.")])
async def test_a_fallback_that_asks_or_fails_is_told_as_that(make_node, question):
    reply = await ask(make_node, feed(stands_in=lambda: question))
    assert (reply.status, reply.message) == (question.status, question.message)


async def test_a_failure_that_is_returned_is_as_good_a_reason_for_the_fallback_as_one_that_is_raised(make_node):
    down = Reply.failure("upstream is down", code="TARGET_TEMPORARY_FAILURE")
    assert (await ask(make_node, feed(down))).data == {"price": 1}
    own = Reply.failure("upstream is down", code="FEED_DOWN", retryable=True)
    assert (await ask(make_node, feed(own))).data == {"price": 1}


@pytest.mark.parametrize(
    "answer", [Reply.failure("no such share"), Reply.failure("closed", code="FEED_CLOSED"), CallerError("no")]
)
async def test_an_answer_that_is_no_failure_of_the_agent_is_not_replaced(make_node, answer):
    assert (await ask(make_node, feed(answer))).status is Status.ERROR


async def test_what_is_returned_as_a_transient_failure_is_retried_and_if_nothing_helps_kept_as_it_was_said(make_node):
    tries: list[int] = []
    agent = Agent("ANL")

    @agent.capability("PRICE", retry=Retry(attempts=3, delay_ms=1))
    async def price() -> Reply:
        tries.append(1)
        return Reply.failure("upstream is down", code="TARGET_TEMPORARY_FAILURE", data={"seen": 7}, next_step_hint="wait")

    reply = await ask(make_node, agent)
    assert (len(tries), reply.error.code, reply.data, reply.next_step_hint) == (
        3,
        "TARGET_TEMPORARY_FAILURE",
        {"seen": 7},
        "wait",
    )


async def test_an_implementation_that_takes_longer_than_its_own_time_makes_room_for_the_fallback(make_node):
    ended: list[str] = []
    agent, slow = Agent("ANL"), Agent("SLOW")

    @slow.capability("WAIT")
    async def wait():
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("child")

    @agent.capability("PRICE", timeout_ms=5_000, first_timeout_ms=1_000)
    async def price(ctx: Context):
        return (await ctx.call("SLOW", "WAIT")).unwrap()

    @agent.fallback("PRICE", timeout_ms=2_000)
    async def also_slow():
        await asyncio.sleep(60)

    @agent.fallback("PRICE")
    async def cache(ctx: Context) -> int:
        return ctx.left_ms

    async with make_node([agent, slow]) as node:
        reply = await node.call("ANL", "PRICE", user_id="u")
        assert (reply.status, reply.data, ended) == (Status.PARTIAL, 2_000, ["child"])
        shorter = await node.call("ANL", "PRICE", user_id="u", timeout_ms=500)
        assert shorter.status is Status.TIMEOUT  # the call's own end comes first
        for _ in range(4):
            await node.call("ANL", "PRICE", user_id="u")
        quick = await node.call("ANL", "PRICE", user_id="u")
    assert (quick.data, quick.status) == (3_000, Status.PARTIAL)  # its breaker is open: the first one is not waited for


async def test_a_time_of_its_own_holds_for_each_attempt(make_node):
    agent = Agent("ANL")

    @agent.capability("PRICE", first_timeout_ms=1_000, retry=Retry(attempts=2, delay_ms=0))
    async def price():
        await asyncio.sleep(60)

    reply = await ask(make_node, agent)
    assert (reply.error.code, reply.duration_ms) == ("TARGET_TEMPORARY_FAILURE", 2_000)
    assert "1000 ms" in reply.error.message


async def test_a_timeout_of_the_code_itself_is_not_told_as_that_of_its_declaration(make_node):
    agent = Agent("ANL")

    @agent.capability("PRICE", first_timeout_ms=1_000)
    async def price():
        raise TimeoutError("socket")

    assert "socket" in (await ask(make_node, agent)).error.message


@pytest.mark.parametrize(
    "wrong", [{"timeout_ms": 0}, {"timeout_ms": 1.5}, {"timeout_ms": True}, {"warning": 5}, {"equivalent": "yes"}]
)
def test_a_fallback_that_is_declared_wrongly_is_refused_at_once(wrong):
    with pytest.raises(DeclarationError, match=next(iter(wrong))):
        feed(**wrong)


async def test_a_fallback_stands_in_while_the_breaker_of_the_first_is_open(make_node):
    tried: list[str] = []
    agent = Agent("ANL")

    @agent.capability("PRICE", breaker_policy=breaker.Policy(failures_max=1))
    async def price():
        tried.append("first")
        raise DOWN

    @agent.fallback("PRICE")
    async def cache():
        tried.append("fallback")
        return 1

    async with make_node([agent]) as node:
        replies = [await node.call("ANL", "PRICE", user_id="u") for _ in range(2)]
        notes = [row.note for row in node.audit.rows() if row.kind == "noted"]
    assert [(one.status, one.data, one.degraded) for one in replies] == [(Status.PARTIAL, 1, True)] * 2
    assert tried == ["first", "fallback", "fallback"]
    assert "TARGET_TEMPORARY_FAILURE" in notes[0]
    assert "breaker" in notes[1]
