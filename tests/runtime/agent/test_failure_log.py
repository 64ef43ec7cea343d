"""The log: what agents and tools raise stands there with its traceback and without personal data."""

from __future__ import annotations

import asyncio
import logging

import pytest

from comity import Agent, AsyncHandoffManager, AsyncHandoffReceiver, Context, Privacy
from comity.core.agent.tool import Tool
from comity.runtime.agent.failure_log import TRACE_CHARS_MAX, log_raised, log_trace

EMAIL, CARD = "bea@example.com", "4111 1111 1111 1111"


def desk(fail) -> Agent:
    agent = Agent("desk", tools_allowed=["mail"])

    @agent.capability("FAIL", clear=["EMAIL"])
    async def go(ctx: Context, to: str) -> str:
        return fail(to)

    @agent.capability("MAIL")
    async def mail(ctx: Context, to: str, card: str = "") -> str:
        return await ctx.use_tool("mail", to=to, card=card)

    return agent


def plainly(to: str, card: str = "") -> str:
    raise RuntimeError(f"550 mailbox {to} unknown {card}")


def with_a_cause(to: str, card: str = "") -> str:
    try:
        plainly(to, card)
    except RuntimeError as error:
        raise ValueError("the mail is not sent") from error


def with_a_context_and_a_note(to: str, card: str = "") -> str:
    try:
        plainly(to, card)
    except RuntimeError:
        error = ValueError("the mail is not sent")
        error.add_note(f"it was for {to}")
        raise error  # noqa: B904


def in_a_group(to: str, card: str = "") -> str:
    raise ExceptionGroup("several", [RuntimeError(f"550 mailbox {to} unknown {card}")])


FAILURES = [plainly, with_a_cause, with_a_context_and_a_note, in_a_group]


@pytest.mark.parametrize("fail", FAILURES)
@pytest.mark.parametrize("capability", ["FAIL", "MAIL"])
async def test_what_an_agent_or_a_tool_raises_is_logged_without_personal_data(make_node, caplog, fail, capability):
    tool = Tool(name="mail", function=fail, clear={"EMAIL", "CARD"}, run_in="loop")
    privacy = Privacy(grants={"FAIL": {"EMAIL"}})
    inputs = {"to": EMAIL} | ({"card": CARD} if capability == "MAIL" else {})
    async with make_node([desk(fail)], tools=[tool], privacy=privacy) as node:
        assert not (await node.call("desk", capability, inputs, user_id="u")).ok
    assert EMAIL not in caplog.text
    assert CARD not in caplog.text
    assert "[[EMAIL_1_" in caplog.text
    assert "in plainly" in caplog.text or fail is in_a_group  # the traceback is there
    assert not any(one.exc_info for one in caplog.records if one.name == "comity")


async def test_a_hidden_value_that_no_detector_finds_without_its_label_is_not_logged_either(make_node, caplog):
    def book(born: str) -> str:
        raise ValueError(f"cannot book {born}")

    agent = Agent("desk", tools_allowed=["book"])

    @agent.capability("BOOK")
    async def go(ctx: Context, born: str) -> str:
        return await ctx.use_tool("book", born=born)

    async with make_node([agent], tools=[Tool(name="book", function=book, clear={"DOB"}, run_in="loop")]) as node:
        await node.call("desk", "BOOK", {"born": "1980-02-29"}, user_id="u")
    assert "cannot book [[DOB_1_" in caplog.text
    assert "1980-02-29" not in caplog.text


@pytest.mark.parametrize("hook", ["on_activate", "on_deactivate"])
async def test_what_a_hook_raises_is_logged_and_told_without_personal_data(make_node, caplog, hook):
    agent = Agent("desk", idle_ms=1_000, **{hook: lambda address, state: plainly(EMAIL)})

    @agent.capability("GO")
    async def go() -> str:
        return "gone"

    async with make_node([agent]) as node:
        reply = await node.call("desk", "GO", user_id="u")
        await asyncio.sleep(10)
        stored = node.audit.reply(reply.request_id)
    assert "mailbox [[EMAIL_1_inthelog]] unknown" in caplog.text
    assert EMAIL not in caplog.text + repr(stored)


async def test_what_a_receiver_raises_is_logged_without_personal_data(make_node, caplog):
    async with make_node([]) as node:
        manager = AsyncHandoffManager(project_id="p", agent_id="b", node=node)
        receiver = AsyncHandoffReceiver(agent_id="w", capabilities=["work"], node=node)
        serving = asyncio.ensure_future(receiver.serve(lambda handoff: plainly(EMAIL)))
        result = await manager.await_result(await manager.create_handoff(capability_id="work", task="t", inputs={}))
        serving.cancel()
    assert result.status == "failed"
    assert "in plainly" in caplog.text
    assert EMAIL not in caplog.text


async def test_an_exception_without_personal_data_is_logged_as_it_is(make_node, caplog):
    def fail(to: str) -> str:
        raise KeyError("gone")

    for privacy in (Privacy(), None):
        async with make_node([desk(fail)], privacy=privacy) as node:
            await node.call("desk", "FAIL", {"to": "x"}, user_id="u")
    assert [one.exc_info[0] for one in caplog.records if (one.name, one.levelno) == ("comity", logging.ERROR)] == [
        KeyError,
        KeyError,
    ]


def test_a_long_traceback_is_cut_between_words_before_it_is_looked_at(caplog):
    looked_at = []

    def hide(text: str) -> str:
        looked_at.append(text)
        return text

    value = "bea@example.com"
    for pad in range(2 * len(value)):
        log_trace("x" * pad + f" {value}" * 5_000, hide, "it raised")
    assert all(len(text) <= TRACE_CHARS_MAX + 10 for text in looked_at)
    assert {word for text in looked_at for word in text.split() if "x" not in word.replace("example", "")} == {value, "[…]"}
    log_trace("y" * 10**6, hide, "it raised")
    assert len(looked_at[-1]) <= TRACE_CHARS_MAX


def test_an_exception_that_cannot_be_shown_is_named_without_its_text(caplog):
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError(EMAIL)

    def hide(text: str) -> str:
        raise RuntimeError(EMAIL)

    log_raised(Odd(), hide, "%s raised", "desk")
    assert caplog.messages == ["desk raised; its traceback cannot be shown"]
    assert EMAIL not in caplog.text
