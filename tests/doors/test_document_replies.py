"""What a node says in a dialect's reply beyond what its agent said: versions, summaries, questions, and how sure it is."""

from __future__ import annotations

import pytest

from comity import Agent, Context, Reply, Status
from comity.core.agent.agent import DeclarationError
from comity.core.envelope.envelope import Artifact
from comity.testing import ScriptedModel

KDAP = {"source_agent": "USER", "target_agent": "ANL", "capability_code": "X", "request_id": "r", "inputs_json": {}}
DELEGATION = {
    "request_id": "r",
    "origin_employee": "user",
    "target_employee": "ANL",
    "user_id": "u",
    "parent_session_id": "s",
    "objective": "o",
    "input": "i",
    "constraints": {},
    "context_hints": [],
    "handoff_data": {},
}


async def answer(make_node, agent: Agent, dialect: str, **more) -> dict:
    document = (KDAP if dialect == "kdap" else DELEGATION) | more
    async with make_node([agent]) as node:
        return await node.receive(document, dialect=dialect, user_id="u")


def agent_that(result, **declared) -> Agent:
    agent = Agent("ANL")

    @agent.capability("X", **declared)
    @agent.capability("message", **declared)
    async def x(ctx: Context):
        return result(ctx) if callable(result) else result

    return agent


# --- kdap ---


async def test_the_declared_version_of_a_capability_is_in_kdaps_metadata(make_node):
    said = await answer(make_node, agent_that({}, version="2.1"), "kdap")
    assert said["metadata"]["capability_version"] == "2.1"


async def test_an_agent_says_which_source_it_used_and_whether_that_was_a_cache(make_node):
    known = {"source_version": "2023-Q4", "cache_status": "hit", "capability_version": "own"}
    said = await answer(make_node, agent_that(Reply.success({}, metadata=known)), "kdap")
    assert said["metadata"].items() >= known.items()


async def test_a_failure_has_no_version(make_node):
    assert "capability_version" not in (await answer(make_node, agent_that(Reply.failure("no")), "kdap")).get("metadata", {})


# --- how sure plain data is ---


@pytest.mark.parametrize(
    ("declared", "band"), [({}, "HIGH"), ({"confidence": 0.7}, "MEDIUM"), ({"confidence": 0}, "SPECULATIVE")]
)
async def test_plain_data_is_as_sure_as_its_capability_declares(make_node, declared, band):
    assert (await answer(make_node, agent_that({"n": 1}, **declared), "kdap"))["confidence_level"] == band


async def test_a_reply_says_itself_how_sure_it_is(make_node):
    agent = agent_that(Reply.success({"n": 1}, confidence=0.95), confidence=0.3)
    assert (await answer(make_node, agent, "kdap"))["confidence_level"] == "HIGH"


@pytest.mark.parametrize("bad", [1.1, -1, "high", None, True])
def test_a_confidence_is_a_number_from_0_to_1(bad):
    with pytest.raises(DeclarationError, match="confidence must be a number from 0 to 1"):
        agent_that({}, confidence=bad)


# --- delegation ---


@pytest.mark.parametrize(
    ("result", "summary", "text"),
    [
        (Reply.success(message="It is done. All of it! Are you glad? I am."), "It is done. All of it! Are you glad?", None),
        (Reply.success(message="Done.", summary="own words"), "own words", "Done."),
        ({"npv": 1.5, "currency": "USD"}, "The result has the fields npv, currency.", '{"npv":1.5,"currency":"USD"}'),
        (dict.fromkeys("abcdefg", 1), "The result has the fields a, b, c, d, e and 2 more.", None),
        ([1], "The result has 1 item.", "[1]"),
        ("A text. And more.", "A text. And more.", "A text. And more."),
        (42, "42", "42"),
        (None, "", ""),
        (Reply.failure("The scanner is off."), "The scanner is off.", "The scanner is off."),
        ({"blob": "x" * 200_000}, "The result has the fields blob.", "The result is the artifact labelled data."),
    ],
    ids=["sentences", "own", "fields", "many", "list", "text", "number", "nothing", "failure", "large"],
)
async def test_a_delegation_has_a_summary_and_a_result_in_words(make_node, result, summary, text):
    said = await answer(make_node, agent_that(result), "delegation")
    assert said["summary"] == summary
    assert text is None or said["result"] == text


async def test_a_long_sentence_is_cut_between_words(make_node):
    said = await answer(make_node, agent_that(Reply.success(message="word " * 200)), "delegation")
    assert len(said["summary"]) <= 300
    assert said["summary"].endswith("word…")


async def test_a_model_has_a_summary_too(make_node):
    agent = Agent("ANL", model=ScriptedModel(["You owe 120. Pay by May. Ask me for more. Goodbye."]), can_call=[])
    said = await answer(make_node, agent, "delegation")
    assert said["summary"] == "You owe 120. Pay by May. Ask me for more."


async def test_a_question_asks_for_a_follow_up(make_node):
    said = await answer(make_node, agent_that(Reply.needs_input("Which year?")), "delegation")
    assert (said["requires_followup"], said["error"], said["result"]) == (True, "CALL_NEEDS_INPUT: Which year?", "Which year?")


async def test_when_a_document_was_written_is_kept(make_node):
    seen: list[object] = []
    agent = agent_that(lambda ctx: seen.append(ctx.request.metadata))
    await answer(make_node, agent, "delegation", created_at="2025-10-09T12:00:00Z")
    await answer(make_node, agent, "delegation")
    assert seen == [{"sent_at": 1760011200000}, {}]


# --- artifacts ---


@pytest.mark.parametrize("kind", ["TABLE", "weird", ""])
async def test_an_artifact_of_a_type_that_there_is_not_is_a_wrong_answer_with_its_path(make_node, kind):
    artifacts = (Artifact(type="json", value=1), Artifact(type=kind, value=2))
    agent = agent_that(Reply.success(artifacts=artifacts))
    async with make_node([agent]) as node:
        reply = await node.call("ANL", "X", user_id="u")
    assert reply.error.code == "OUTPUT_VALIDATION_FAILED"
    assert [problem.path for problem in reply.error.problems] == ["artifacts[1].type"]


# --- what a capability is given ---


async def test_a_capability_knows_its_project_and_the_nodes_clock(make_node):
    seen: list[tuple[str, bool]] = []
    agent = agent_that(lambda ctx: seen.append((ctx.project_id, ctx.clock.now_ns() // 1_000_000 == ctx.request.created_at)))
    async with make_node([agent]) as node:
        await node.call("ANL", "X", user_id="u", tenant_id="acme")
    assert seen == [("acme", True)]


async def test_a_user_reads_the_error_of_an_agent_not_the_words_beside_it_and_the_nodes_words_where_code_raised(make_node):
    own = Reply(status=Status.ERROR, error=Reply.failure("the books are closed").error, message="Sorry!")
    assert (await answer(make_node, agent_that(own), "kdap"))["error_message"] == "the books are closed"

    def crash(ctx: Context):
        raise KeyError("internal_table")

    said = await answer(make_node, agent_that(crash), "kdap")
    assert "internal_table" not in said["error_message"]
    assert said["error_message"]


async def test_a_delegation_longer_than_the_tokens_it_allows_is_refused(make_node):
    for tokens_max, status in ((1, "failed"), (1_000, "success")):
        said = await answer(make_node, agent_that({}), "delegation", constraints={"max_tokens": tokens_max}, input="word " * 50)
        assert said["status"] == status
