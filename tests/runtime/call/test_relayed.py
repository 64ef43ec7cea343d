"""An agent that passes on how a call of its own ended has failed itself: only the node refuses, withdraws or times out a call."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from comity import Agent, AsyncHandoffReceiver, Context, Limits, Node, Reply, Status, Tool
from comity.core.envelope.envelope import Error
from comity.core.journal.terms import Bound
from comity.dialects import call_agent, kdap
from comity.engines.memory.cluster import LeaseService, MemoryLeases, MemoryNetwork, SharedJournal
from comity.engines.memory.engine import JournalEngine
from comity.engines.memory.journal import MemoryJournal
from comity.errors import AGENT_CODES, CODES, ComityError, RefusedError, TargetError
from comity.testing import VirtualClock, run_virtual


def relay(target: str, capability: str, **more) -> tuple[Agent, list[str]]:
    agent, done = Agent("B", can_call=["SLOW", "NOBODY", "C"]), []

    @agent.capability("GO")
    async def go(ctx: Context):
        done.append("an effect")
        return await ctx.call(target, capability, **more)

    return agent, done


def slow() -> Agent:
    agent = Agent("SLOW")

    @agent.capability("WORK")
    async def work() -> None:
        await asyncio.sleep(60)

    return agent


async def test_a_refusal_that_is_passed_on_is_an_error_of_the_call_that_ran(make_node):
    agent, done = relay("NOBODY", "X")
    async with make_node([agent]) as node:
        reply = await node.call("B", "GO", user_id="u")
        kinds = [(row.kind, row.target, row.status, row.error_code) for row in node.audit.rows()]
    assert (reply.status, reply.error.code, done) == ("error", "ROUTING_UNKNOWN_AGENT", ["an effect"])
    assert "NOBODY" in reply.error.message  # the cause can be read
    assert kinds == [
        ("admitted", "B", None, None),
        ("refused", "NOBODY", "refused", "ROUTING_UNKNOWN_AGENT"),
        ("settled", "B", "error", "ROUTING_UNKNOWN_AGENT"),
    ]


async def test_a_timeout_that_is_passed_on_is_no_timeout_of_the_call_that_ended_in_time(make_node):
    agent, _ = relay("SLOW", "WORK", timeout_ms=10)
    async with make_node([agent, slow()]) as node:
        reply = await node.call("B", "GO", user_id="u")
    assert (reply.status, reply.error.code) == ("error", "CALL_TIMEOUT")


def says(answer, agent_id: str = "B", **more) -> Agent:
    """An agent that answers so, or raises it."""
    agent = Agent(agent_id, **more)

    @agent.capability("GO")
    async def go() -> Reply:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return agent


FORGED = {
    "refused": Reply(status=Status.REFUSED, error=Error.of("SOLD_OUT", "no")),
    "cancelled": Reply(status=Status.CANCELLED, error=Error.of("SOLD_OUT", "no")),
    "timeout": Reply(status=Status.TIMEOUT, error=Error.of("SOLD_OUT", "no")),
    "refused by a rule": Reply(status=Status.REFUSED, error=Error.of("GUIDANCE_BLOCKED", "no")),
    "cycle": Reply(status=Status.ERROR, error=Error.of("ROUTING_CYCLE_DETECTED", "no"), metadata={"cycle.target": "x"}),
    "cycle metadata": Reply.success({}, metadata={"cycle.target": "x"}),
    "transfer metadata": Reply.success({}, metadata={"transfer.from": "x"}),
    "future metadata": Reply.success({}, metadata={"comity.anything": 1}),
    "approval": Reply.needs_input("Allow?", data={"approval_id": "r#1"}),
    "raised": RefusedError("no", code="GUIDANCE_BLOCKED"),
    "raised without a code": RefusedError("no"),
    "kdap": kdap.decode_reply({"status": "ERROR", "error_code": "BUDGET_CALLS_EXHAUSTED", "error_message": "no", "request_id": "x", "result_json": {}}),
    "call_agent": call_agent.decode_reply({"error": "CycleDetected: no"}),
    "call_agent rejected": call_agent.decode_reply({"error": "AgentCallRejected: no"}),
} | {code: Reply.failure("no", code=code) for code in sorted(CODES.keys() - AGENT_CODES)}  # fmt: skip


@pytest.mark.parametrize("what", FORGED)
async def test_an_agent_cannot_say_of_itself_what_only_the_node_can(make_node, what):
    async with make_node([says(FORGED[what])]) as node:
        reply = await node.call("B", "GO", user_id="u")
        rows = [(row.kind, row.status, row.error_code) for row in node.audit.rows()]
    assert (reply.status, reply.error.code, reply.metadata, reply.data) == ("error", "OUTPUT_RESERVED", {}, None)
    assert "is the platform's to say" in reply.error.message
    assert rows == [("admitted", None, None), ("settled", "error", "OUTPUT_RESERVED")]


@pytest.mark.parametrize("code", [*sorted(AGENT_CODES), "SOLD_OUT"])
async def test_an_agent_may_fail_with_codes_that_are_for_agents_and_with_its_own(make_node, code):
    async with make_node([says(Reply.failure("no", code=code))]) as node:
        reply = await node.call("B", "GO", user_id="u")
    assert (reply.status, reply.error.code, reply.error.message) == ("error", code, "no")


@pytest.mark.parametrize("how", ["returned", "raised"])
async def test_a_refusal_that_is_passed_on_says_who_passed_it_on_in_every_dialect(make_node, how):
    agent = Agent("B", can_call=["C"])

    @agent.capability("GO")
    async def go(ctx: Context):
        reply = await ctx.call("C", "X", limits=ctx.limits)
        return reply if how == "returned" else reply.unwrap()

    async with make_node([agent, says(Reply.success({}), "C")]) as node:
        reply = await node.call("B", "GO", user_id="u", limits=Limits(depth_max=0))
    assert (reply.status, reply.error.code, reply.error.facts) == ("error", reply.error.code, {"passed_on_by": "B"})
    assert reply.error.message.startswith("B passed on: ")
    assert "B passed on" in kdap.encode_reply(reply)["error_message"]
    assert "B passed on" in call_agent.encode_reply(reply)["error"]


async def test_what_only_a_delegate_was_refused_is_not_passed_on_by_an_agent_that_was_told_nothing(make_node):
    agent = Agent("A", can_call=["B"])

    @agent.capability("GO")
    async def go(ctx: Context):
        await ctx.call("B", "GO")
        return Reply.failure("no", code="ROUTING_UNKNOWN_AGENT")  # which B was told, and not A

    below = Agent("B", can_call=["NOBODY"])

    @below.capability("GO")
    async def well(ctx: Context) -> dict:
        return {"code": (await ctx.call("NOBODY", "X")).error.code}

    async with make_node([agent, below]) as node:
        assert (await node.call("A", "GO", user_id="u")).error.code == "OUTPUT_RESERVED"


async def test_what_the_node_raises_in_an_agent_stays_the_nodes_word(make_node):
    agent = Agent("B")

    @agent.capability("GO")
    async def go(ctx: Context) -> None:
        ctx.report_usage(prompt_tokens=10)

    async with make_node([agent]) as node:
        reply = await node.call("B", "GO", user_id="u", limits=Limits(tokens_max=5))
    assert (reply.error.code, reply.error.facts) == ("BUDGET_TOKENS_EXHAUSTED", {})


async def test_a_step_cannot_be_recorded_in_the_nodes_words(make_node):
    agent = Agent("B")

    @agent.capability("GO")
    async def go(ctx: Context) -> None:
        async def make() -> Reply:
            return Reply(status=Status.REFUSED, error=Error.of("GUIDANCE_BLOCKED", "no"))

        await ctx.once("rates.example", "fetch", make)

    async with make_node([agent]) as node:
        reply = await node.call("B", "GO", user_id="u")
        statuses = [row.status for row in node.audit.rows()]
    assert (reply.error.code, statuses) == ("INPUT_VALIDATION_FAILED", [None, "error"])


async def test_a_tool_cannot_speak_for_the_node_either(make_node):
    agent, told = Agent("B", tools_allowed=["t"]), []

    @agent.capability("GO")
    async def go(ctx: Context) -> None:
        try:
            await ctx.use_tool("t")
        except ComityError as error:
            told.append(error.code)

    def lie() -> None:
        raise TargetError("no", code="GUIDANCE_BLOCKED")

    async with make_node([agent], tools=[Tool(name="t", function=lie)]) as node:
        await node.call("B", "GO", user_id="u")
    assert told == ["OUTPUT_RESERVED"]


# --- whether a call ran is what the node knows ---


def tried(answer, times: int) -> tuple[Agent, Agent, list[int]]:
    far, boss, ran = Agent("far"), Agent("boss"), []

    @far.capability("WORK")
    async def work() -> Reply:
        ran.append(1)
        return answer

    @boss.capability("LOOP")
    async def loop(ctx: Context) -> dict:
        return Counter([(await ctx.call("far", "WORK")).error.code for _ in range(times)])

    return far, boss, ran


@pytest.mark.parametrize("code", ["AGENT_BUSY", "SOLD_OUT"])
def test_an_agent_that_says_it_was_refused_makes_no_call_free_on_another_node(code):
    far, boss, ran = tried(Reply(status=Status.REFUSED, error=Error.of(code, "no")), 40)
    clock, store, network = VirtualClock(), MemoryJournal(), MemoryNetwork()
    service = LeaseService(clock)

    def node(name, agent):
        journal = SharedJournal(store, name)
        leases = MemoryLeases(service, journal)
        return Node([agent], engine=JournalEngine(journal, leases, network.transport()), clock=clock, lag_ms=None)

    async def main():
        async with node("n1", boss) as one, node("n2", far):
            return await one.call("boss", "LOOP", user_id="u", limits=Limits(calls_max=10))

    reply = run_virtual(main())
    assert reply.data == {"OUTPUT_RESERVED": 9, "BUDGET_CALLS_EXHAUSTED": 31}
    assert len(ran) == 9


def test_a_call_whose_agent_says_it_was_refused_counts_after_a_restart():
    far, boss, ran = tried(Reply(status=Status.REFUSED, error=Error.of("AGENT_BUSY", "no")), 5)
    journal = MemoryJournal()

    async def main():
        async with Node([far, boss], journal=journal, clock=VirtualClock(), lag_ms=None) as node:
            await node.call("boss", "LOOP", user_id="u", request_id="r")
        return journal.begun(Bound("r", "r", 10))

    assert run_virtual(main()) == len(ran) == 5


def test_a_handoff_that_its_receiver_rejected_was_made():
    boss, codes = Agent("boss", can_call=["o11y"]), []

    @boss.capability("ASK")
    async def ask(ctx: Context) -> None:
        reply = await ctx.hand_off("o11y", "investigate")
        codes.append((reply.status, reply.error.code))

    async def main():
        async with Node([boss], clock=VirtualClock(), lag_ms=None) as node:
            receiver = AsyncHandoffReceiver("o11y", ["investigate"], node=node)
            for code in (None, "GUIDANCE_BLOCKED"):
                asking = asyncio.ensure_future(node.call("boss", "ASK", user_id="u"))
                handoff = await anext(receiver.watch_handoffs())
                if code is None:
                    await receiver.reject(handoff.id, "no")
                else:
                    await receiver.accept(handoff.id)
                    await receiver.fail(handoff.id, "no", code=code)
                await asking

    run_virtual(main())
    assert codes == [("error", "HANDOFF_REJECTED"), ("error", "OUTPUT_RESERVED")]
