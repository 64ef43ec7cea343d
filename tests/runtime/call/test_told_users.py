"""What a user is told of a failure names no agent, capability or exception; programs, the log and `comity show` have all of it."""

from __future__ import annotations

import pytest

from comity import Agent, Context, Reply
from comity.core.agent.disclosure import leak
from comity.errors import TargetError

KDAP = {"source_agent": "USER", "target_agent": "ORC", "request_id": "r", "inputs_json": {}}
NAMES = ("ORC", "ANL", "CRASH", "KeyError", "boom", "secret_function")


def team() -> list[Agent]:
    orc, anl = Agent("ORC", can_call=[]), Agent("ANL")

    @anl.capability("CRASH")
    @orc.capability("CRASH")
    async def secret_function() -> None:
        raise KeyError("boom")

    @orc.capability("DOWN")
    async def down() -> None:
        raise ConnectionError("boom at 10.0.0.7")

    @orc.capability("ASK")
    async def ask(ctx: Context):
        return await ctx.call("ANL", "CRASH")

    @orc.capability("BAD")
    async def bad() -> int:
        return "boom"

    @orc.capability("SAY")
    async def say() -> Reply:
        return Reply.failure("The scan is too dark to read.")

    @orc.capability("RAISE")
    async def say_so() -> None:
        raise TargetError("The scan is too dark to read.")

    return [orc, anl]


@pytest.mark.parametrize("capability", ["CRASH", "DOWN", "ASK", "BAD"])
async def test_no_failure_shows_a_user_an_exception_or_an_agent_and_a_program_sees_both(make_node, capability):
    async with make_node(team()) as node:
        reply = await node.call("ORC", capability, user_id="u")
        document = await node.receive(KDAP | {"capability_code": capability}, dialect="kdap", user_id="u")
    for told in (reply.message, document["error_message"]):
        assert told
        assert not [name for name in NAMES if name in told], told
    assert any(name in reply.error.message for name in NAMES)
    assert document["error_code"] == reply.error.code


@pytest.mark.parametrize("capability", ["SAY", "RAISE"])
async def test_what_an_agent_says_on_purpose_reaches_the_user(make_node, capability):
    async with make_node(team()) as node:
        reply = await node.call("ORC", capability, user_id="u")
        document = await node.receive(KDAP | {"capability_code": capability}, dialect="kdap", user_id="u")
    assert reply.message == document["error_message"] == "The scan is too dark to read."


@pytest.mark.parametrize("capability", ["CRASH", "DOWN", "ASK", "BAD"])
@pytest.mark.parametrize("more", ["", ", map: {over: [1, 2]}"], ids=["a step", "the items of a step"])
async def test_no_failure_of_a_run_shows_its_user_an_exception_and_its_record_and_history_have_it(make_node, capability, more):
    async with make_node(team()) as node:
        node.workflows.add(f"workflow: w\nnodes:\n  c: {{call: ORC/{capability}{more}}}\n")
        run = await node.workflows.start("w", user_id="u")
        reply = await run.result()
        history = str(node.workflows.replay(run.run_id))
    assert reply.message
    assert not [name for name in NAMES if name in reply.message], reply.message
    for kept in (reply.error.message, run.record.error_message, history):
        assert any(name in kept for name in NAMES)


async def test_a_warning_of_a_run_about_a_step_it_did_without_names_no_exception(make_node):
    async with make_node(team()) as node:
        node.workflows.add(
            "workflow: w\nnodes:\n  c: {call: ORC/DOWN}\n  d: {wait: 1s}\n  j: {join: any, after: [c, d]}\n"
            "  e: {call: ORC/DOWN}\n  f: {wait: 1s}\n  k: {join: 1, after: [e, f]}\n"
        )
        reply = await node.workflows.run("w", user_id="u")
    assert reply.warnings == ("c failed: TARGET_TEMPORARY_FAILURE", "e failed: TARGET_TEMPORARY_FAILURE")


@pytest.mark.parametrize("capability", ["SAY", "RAISE"])
async def test_what_an_agent_says_on_purpose_reaches_the_user_of_a_run(make_node, capability):
    async with make_node(team()) as node:
        node.workflows.add(f"workflow: w\nnodes:\n  c: {{call: ORC/{capability}}}\n")
        reply = await node.workflows.run("w", user_id="u")
    assert reply.message == "The scan is too dark to read."


async def test_a_refused_user_is_told_no_rule_between_agents_and_a_caller_that_is_an_agent_is(make_node):
    busy = Agent("BUSY", status="maintenance")
    told: list[str] = []
    orc = Agent("ORC")

    @orc.capability("ASK")
    async def ask(ctx: Context) -> None:
        told.append((await ctx.call("BUSY", "X")).message)

    async with make_node([orc, busy]) as node:
        refused = await node.call("BUSY", "X", user_id="u")
        await node.call("ORC", "ASK", user_id="u")
    assert "BUSY" not in refused.message
    assert "BUSY" in refused.error.message
    assert told == ["agent BUSY is maintenance. Try later, or call another agent."]


async def test_an_agent_outside_reads_the_facts(make_node):
    answers: list[dict] = []
    orc = Agent("ORC", can_call=[])

    @orc.capability("ASK")
    async def ask(ctx: Context) -> None:
        document = KDAP | {"source_agent": "ORC", "target_agent": "ANL", "capability_code": "CRASH"}
        answers.append(await node.receive(document, dialect="kdap", user_id="u", token=ctx.token))

    async with make_node([orc, team()[1]]) as node:
        await node.call("ORC", "ASK", user_id="u")
    assert answers[0]["error_message"] == "ORC may call nobody, not ANL"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Routing to ANL agent", "ANL"),
        ("Routing to the anl agent", "ANL"),
        ("asking agent Anl", "ANL"),
        ("the clerk agent looks", "clerk"),
        ("a clerk looks into the case", None),
    ],
)
def test_a_name_that_is_called_an_agent_is_one_however_it_is_written(text, found):
    assert leak(text, ["ANL", "CASE", "clerk"]) == found


@pytest.mark.parametrize("what", ["unwrap NOPE", "return NOPE", "unwrap agent", "return inputs"])
async def test_the_names_that_an_agent_gave_in_a_refused_call_are_not_told_to_its_user(make_node, what):
    lead, below = Agent("lead-7"), Agent("below-8")

    @below.capability("READ")
    async def read(path: str) -> str:
        return path

    @lead.capability("GO")
    async def go(ctx: Context):
        target = "nobody-9" if "agent" in what else "below-8"
        reply = await ctx.call(target, "NOPE" if "NOPE" in what else "READ", {"secret_input": 1})
        if what.startswith("unwrap"):
            reply.unwrap()
        return reply

    async with make_node([lead, below]) as node:
        reply = await node.call("lead-7", "GO", user_id="u")
        document = await node.receive(KDAP | {"target_agent": "lead-7", "capability_code": "GO"}, dialect="kdap", user_id="u")
    for told in (reply.message, document["error_message"]):
        assert told
        assert not [name for name in ("lead-7", "below-8", "nobody-9", "NOPE", "READ", "secret_input") if name in told], told
    assert "secret_input" in reply.error.message or "lead-7" in reply.error.message
