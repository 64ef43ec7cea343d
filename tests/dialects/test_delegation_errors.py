"""An error whose facts are known is told in the delegation protocol's own sentence, and read back from it."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity import Agent, Context, Limits, Tool
from comity.core.envelope.envelope import Error, Reply, Status
from comity.dialects import call_agent, delegation
from comity.dialects.delegation_errors import read_sentence, sentence_of
from comity.errors import RefusedError

SENTENCES = [
    (
        Error.of("LIMIT_DEPTH_EXCEEDED", "m", facts={"depth": 2, "depth_max": 1}),
        "Delegation depth limit reached (2/2). Cannot delegate further. Return results to parent.",
    ),
    (
        Error.of("LIMIT_FAN_OUT_EXCEEDED", "m", facts={"calls": 4, "fan_out_max": 3}),
        "Too many concurrent delegates (4/3). Choose top 3 most relevant employees.",
    ),
    (
        Error.of("ROUTING_OBJECTIVE_IN_PROGRESS", "m", facts={"caller": "prime", "target": "byte"}),
        "Cycle detected: prime → byte with same objective already in progress.",
    ),
    (
        Error.of("ROUTING_CYCLE_DETECTED", "m", facts={"caller": "B", "target": "A", "chain": ["A", "B"]}),
        "Cycle detected: B → A is already in A → B.",
    ),
    (Error.of("CALL_TIMEOUT", "m", facts={"timeout_ms": 5000}), "Delegation timeout after 5000ms"),
    (
        Error.of("BUDGET_TOKENS_EXHAUSTED", "m", facts={"estimated": 1500, "tokens_max": 1200}),
        "Estimated tokens (1500) exceeds budget (1200). Simplify task or increase budget.",
    ),
    (Error.of("IDENTITY_MISMATCH", "m", facts={"claim": "user"}), "User ID mismatch - security violation"),
    (
        Error.of("TOOL_NOT_PERMITTED", "m", facts={"agent": "byte", "tool": "ocr"}),
        "Employee byte not authorized to use tool ocr",
    ),
]


@pytest.mark.parametrize(("error", "sentence"), SENTENCES, ids=[error.code for error, _ in SENTENCES])
def test_it_is_told_and_read_in_the_protocols_words(error, sentence):
    document = delegation.encode_reply(Reply(status=Status.ERROR, error=error))
    assert document["error"] == sentence
    back = delegation.decode_reply(document).error
    assert (back.code, back.facts, back.message) == (error.code, error.facts, sentence)
    assert delegation.encode_reply(delegation.decode_reply(document)) == document


@pytest.mark.parametrize(
    "facts", [{}, {"depth": "2", "depth_max": 1}, {"depth": 2}, {"depth": -2, "depth_max": 1}, {"timeout_ms": 1}]
)
def test_without_its_facts_it_is_told_as_its_code_and_message(facts):
    error = Error.of("LIMIT_DEPTH_EXCEEDED", "too deep", facts=facts)
    assert delegation.encode_reply(Reply(status=Status.ERROR, error=error))["error"] == "LIMIT_DEPTH_EXCEEDED: too deep"


@given(
    caller=st.text(max_size=12), target=st.text(max_size=12), chain=st.lists(st.text(max_size=9), max_size=3), n=st.integers()
)
def test_whatever_the_facts_are_a_sentence_reads_back_as_they_were(caller, target, chain, n):
    for code, facts in (
        ("ROUTING_CYCLE_DETECTED", {"caller": caller, "target": target, "chain": chain}),
        ("ROUTING_OBJECTIVE_IN_PROGRESS", {"caller": caller, "target": target}),
        ("TOOL_NOT_PERMITTED", {"agent": caller, "tool": target}),
        ("CALL_TIMEOUT", {"timeout_ms": n}),
    ):
        sentence = sentence_of(Error.of(code, "m", facts=facts))
        assert sentence is None or read_sentence(sentence).facts == facts


def team() -> list[Agent]:
    prime, byte = Agent("prime"), Agent("byte", can_call=["prime", "byte"])

    @byte.capability("message")
    async def message(ctx: Context):
        match ctx.request.message:
            case "tool":
                await ctx.use_tool("ocr")
            case "back":
                return await ctx.call("prime", "GO")
            case "slow":
                await asyncio.sleep(60)
        return "done"

    @prime.capability("GO")
    async def go(ctx: Context) -> None:
        pass

    return [prime, byte]


DELEGATION = {
    "origin_employee": "user",
    "target_employee": "byte",
    "user_id": "u",
    "parent_session_id": "s",
    "objective": "o",
    "context_hints": [],
    "handoff_data": {},
}


@pytest.mark.parametrize(
    ("said", "constraints", "sentence"),
    [
        ("slow", {"deadline_ms": 300}, "Delegation timeout after 300ms"),
        ("tool", {}, "Employee byte not authorized to use tool ocr"),
        ("x" * 400, {"max_tokens": 99}, "Estimated tokens (101) exceeds budget (99). Simplify task or increase budget."),
    ],
    ids=["timeout", "tool", "tokens"],
)
async def test_so_a_node_answers(make_node, said, constraints, sentence):
    tools = [Tool(name="ocr", function=lambda: "text")]
    async with make_node(team(), tools=tools) as node:
        document = DELEGATION | {"request_id": "r", "input": said, "constraints": constraints}
        answer = await node.receive(document, dialect="delegation", user_id="u")
        assert (answer["status"], answer["error"]) == ("failed", sentence)


async def test_so_a_node_answers_one_that_names_another_user_or_goes_too_deep(make_node):
    answers: list[str] = []
    prime, byte = team()

    @prime.capability("SEND")
    async def send(ctx: Context) -> None:
        for more in ({"constraints": {"max_depth": 1}}, {"user_id": "v"}):
            document = {"request_id": str(len(answers)), "input": "i", "constraints": {}} | DELEGATION | more
            document["origin_employee"] = "prime"
            answer = await node.receive(document, dialect="delegation", user_id="u", token=ctx.token)
            answers.append(answer["error"])

    async with make_node([prime, byte]) as node:
        await node.call("prime", "SEND", user_id="u")
    assert answers == [
        "Delegation depth limit reached (1/1). Cannot delegate further. Return results to parent.",
        "User ID mismatch - security violation",
    ]


# --- ADR-028 ------------------------------------------------------------------------------------------------------------


async def test_a_cycle_and_a_depth_have_their_fields_in_the_error_and_in_the_dialect(make_node):
    a, b = Agent("A"), Agent("B")
    replies: list[Reply] = []

    @a.capability("GO")
    async def go(ctx: Context) -> None:
        await ctx.call("B", "GO")

    @b.capability("GO")
    async def back(ctx: Context) -> None:
        replies.append(await ctx.call("A", "GO"))
        replies.append(await ctx.call("C", "GO", limits=Limits(depth_max=1)))

    async with make_node([a, b, chained("C")]) as node:
        await node.call("A", "GO", user_id="u")
    cycle, depth = replies
    assert cycle.error.facts == {"caller": "B", "target": "A", "chain": ["A", "B"]}
    assert depth.error.facts == {"depth": 2, "depth_max": 1}
    assert call_agent.encode_reply(cycle) == {
        "error": "CycleDetected: A is already in A → B",
        "details": {"caller": "B", "chain": ["A", "B"], "target": "A"},
    }
    assert call_agent.encode_reply(depth)["details"] == {"depth": 1, "max_depth": 1}  # the caller's depth, as it counts
    for reply in replies:
        assert call_agent.decode_reply(call_agent.encode_reply(reply)).error.facts == reply.error.facts
        with pytest.raises(RefusedError) as raised:
            reply.unwrap()
        assert raised.value.facts.items() >= reply.error.facts.items()


def chained(name: str) -> Agent:
    agent = Agent(name)

    @agent.capability("GO")
    async def go() -> None:
        pass

    return agent
