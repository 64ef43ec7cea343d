"""Guardrails run on every hop, both ways; thoughts reach nobody; users are told the work, not the architecture."""

from __future__ import annotations

import pytest

from comity import Agent, Context, Reply, Status
from comity.core.agent import DeclarationError
from comity.core.guardrail import Allow, Fail, Guardrail, Redact, Rewrite, Stop


def team(answer=None) -> list[Agent]:
    top, leaf = Agent("TOP"), Agent("LEAF")

    @top.capability("GO", doing="Weighing the options…")
    async def go(ctx: Context):
        reply = await ctx.call("LEAF", "GO", message="from top")
        return {"status": reply.status, "message": reply.message, "data": reply.data, "thought": reply.thought}

    @leaf.capability("GO", doing="Analysing the financial implications…")
    async def go_leaf(ctx: Context):
        return answer or Reply.success({"heard": ctx.request.message}, message="fine", thought="I wonder")

    return [top, leaf]


async def test_every_hop_is_seen_in_and_out_first_entry_and_delegated_call_alike(make_node):
    seen: list[str] = []
    watcher = Guardrail(
        name="watch",
        inbound=lambda request: seen.append(f"in {request.target}") or Allow(),
        outbound=lambda request, reply: seen.append(f"out {request.target}") or Allow(),
    )
    async with make_node(team(), guardrails=[watcher]) as node:
        await node.call("TOP", "GO", user_id="ann")
    assert seen == ["in TOP", "in LEAF", "out LEAF", "out TOP"]


async def test_a_guardrail_may_rewrite_a_message_before_the_callee_sees_it(make_node):
    rewriter = Guardrail(name="r", inbound=lambda request: Rewrite("be polite") if request.source else Allow())
    async with make_node(team(), guardrails=[rewriter]) as node:
        reply = await node.call("TOP", "GO", user_id="ann")
    assert reply.data["data"] == {"heard": "be polite"}


async def test_a_message_that_was_rewritten_or_hidden_is_the_same_request_when_it_comes_again(make_node):
    rewriter = Guardrail(name="r", inbound=lambda request: Rewrite("write to ann@example.com"))
    async with make_node(team(), guardrails=[rewriter]) as node:
        asked = {"target": "LEAF", "capability": "GO", "user_id": "ann", "request_id": "r"}
        first, again, other = [await node.call(message=text, **asked) for text in ("a@example.com", "a@example.com", "b")]
    assert first.data == again.data == {"heard": "write to ann@example.com"}
    assert other.error.code == "IDENTITY_REQUEST_ID_REUSED"


@pytest.mark.parametrize("verdict", [Stop("no politics"), Fail("no politics")])
async def test_a_stopped_request_reaches_nobody_and_is_audited(make_node, verdict):
    ran: list[str] = []
    agent = Agent("A")

    @agent.capability("GO")
    async def go():
        ran.append("ran")

    async with make_node([agent], guardrails=[Guardrail(name="g", inbound=lambda request: verdict)]) as node:
        reply = await node.call("A", "GO", user_id="ann")
        assert [row.error_code for row in node.audit.rows()] == ["GUARDRAIL_STOPPED"]
    assert (reply.status, reply.error.code, ran) == (Status.REFUSED, "GUARDRAIL_STOPPED", [])


async def test_a_failing_reply_keeps_its_data_for_the_caller_while_its_message_is_withheld(make_node):
    failing = Reply.failure("account 42 of Ann is overdrawn", code="DATA_OVERDRAWN", data={"account": 42})
    redactor = Guardrail(name="g", outbound=lambda request, reply: Redact() if not reply.ok else Allow())
    async with make_node(team(failing), guardrails=[redactor]) as node:
        reply = await node.call("TOP", "GO", user_id="ann")
    assert reply.data["message"] == "The message was withheld."
    assert reply.data["data"] == {"account": 42}


async def test_a_guardrail_can_force_a_reply_to_error_before_the_caller_acts_on_it(make_node):
    forcer = Guardrail(name="g", outbound=lambda request, reply: Fail("off topic") if request.target == "LEAF" else Allow())
    async with make_node(team(), guardrails=[forcer]) as node:
        reply = await node.call("TOP", "GO", user_id="ann")
    assert reply.data["status"] == "error"


async def forgets_await(*_) -> Allow:
    return Allow()


@pytest.mark.parametrize(
    ("check", "told"),
    [
        (lambda *_: None, "it returned None"),
        (lambda *_: True, "it returned True"),
        (lambda *_: Allow, "a value of type"),
        (lambda request, *_: f"bad: {request.message}", "a value of type str"),
        (lambda *_: Rewrite(None), "a Rewrite whose text is no text"),
        (lambda *_: Redact(7), "a Redact whose text is no text"),
        (forgets_await, "it is an async function"),
    ],
)
@pytest.mark.parametrize("side", ["inbound", "outbound"])
async def test_a_guardrail_that_returns_no_verdict_lets_nothing_pass_and_is_named(make_node, side, check, told):
    ran: list[str] = []
    agent = Agent("A")

    @agent.capability("GO")
    async def go():
        ran.append("ran")
        return Reply.success({"secret": 1}, message="the secret")

    async with make_node([agent], guardrails=[Guardrail(name="careless", **{side: check})]) as node:
        reply = await node.call("A", "GO", user_id="ann", message="my words")
    assert (reply.error.code, reply.data, ran) == ("GUARDRAIL_STOPPED", None, ["ran"] * (side == "outbound"))
    assert reply.error.message.startswith("careless: ")
    assert told in reply.error.message
    assert "secret" not in repr(reply)
    assert "my words" not in repr(reply)


async def test_thoughts_reach_neither_peer_nor_user_and_stay_in_the_record(make_node):
    async with make_node(team()) as node:
        reply = await node.call("TOP", "GO", user_id="ann", request_id="r")
        direct = await node.call("LEAF", "GO", user_id="ann", request_id="d")
        again = await node.call("LEAF", "GO", user_id="ann", request_id="d")
        kept = node._journal.call("r.1").reply.thought
    assert (reply.data["thought"], direct.thought, again.thought) == ("", "", "")
    assert kept == "I wonder"


async def test_a_user_is_told_about_the_work_in_the_capabilities_own_words(make_node):
    async with make_node(team()) as node:
        handle = node.start_call("TOP", "GO", user_id="ann")
        told = [text async for text in handle.updates()]
    assert told == ["Weighing the options…", "Analysing the financial implications…"]


@pytest.mark.parametrize("text", ["Routing to ANL agent…", "anl_npv is running", "ANL_NPV invoked", "Asking tag-ai."])
async def test_words_for_users_that_name_agents_or_capabilities_are_refused_at_the_start(make_node, text):
    agent, other = Agent("ANL"), Agent("tag-ai")

    @agent.capability("ANL_NPV", doing=text)
    async def npv():
        return 1

    with pytest.raises(DeclarationError, match="describe the work"):
        async with make_node([agent, other]):
            raise AssertionError("never reached")
