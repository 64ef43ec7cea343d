"""The contract's orchestrator, statement by statement, and what users expect beside it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from office import FLOWS, Office

from comity import Agent, Context, Limits, Node, Reply, Status
from comity.agents.orchestrator import EmbeddingRanker, ModelRanker, Orchestrator, rankers, templates
from comity.agents.orchestrator.work import STATED_MAX
from comity.core.agent.agent import DeclarationError
from comity.demo.team import agents as demo_agents
from comity.testing import ScriptedModel


async def ask(node: Node, text: str, inputs: dict[str, Any] | None = None, **more: Any) -> Reply[Any]:
    given = {"text": text, **({"inputs": inputs} if inputs else {}), **more.pop("extra", {})}
    return await node.call("ORC", "ORC_ROUTE", given, user_id="u1", session_id=more.pop("session_id", "s1"), **more)


# --- classify intent ---


async def test_the_primary_intent_is_identified_with_confidence_target_and_capability() -> None:
    office = Office()
    async with Node(agents=office.agents) as node:
        reply = await node.call("ORC", "ORC_CLASSIFY", {"text": "please project revenue for the next two years"}, user_id="u")
    assert reply.data["primary"] == "projection"
    assert reply.data["route"] == {"target": "ANL", "capability": "ANL_PROJECTION"}
    assert 0 < reply.data["confidence"] <= 1
    assert office.calls == []


async def test_secondary_intents_of_a_request_of_several_parts_are_identified() -> None:
    office = Office()
    async with Node(agents=office.agents) as node:
        text = "Forecast our costs and then draft a memo about it"
        reply = await node.call("ORC", "ORC_CLASSIFY", {"text": text}, user_id="u")
    assert reply.data["secondary"] == ["generate"]
    assert reply.data["secondary_routes"] == [{"target": "DOC", "capability": "DOC_GENERATE"}]


# --- route to agent ---


async def test_the_agent_is_selected_by_intent_and_its_result_is_the_answer() -> None:
    office = Office()
    async with Node(agents=office.agents) as node:
        reply = await ask(node, "calculate the net present value", FLOWS)
    assert (reply.status, office.codes) == (Status.SUCCESS, ["ANL_NPV"])
    assert reply.data["result"] == {"npv": 17206.82, "currency": "USD"}
    assert reply.data["classification"]["route"]["capability"] == "ANL_NPV"


async def test_the_full_context_passes_to_the_target() -> None:
    office = Office()
    async with Node(agents=office.agents) as node:
        await ask(node, "Calculate the net present value and then draft a memo about it", FLOWS)
    request = office.seen["DOC_GENERATE"]
    assert (request.session_id, request.user_id) == ("s1", "u1")
    assert request.context.original_request.startswith("Calculate the net present value")
    assert request.context.workflow_position.startswith("Step 2 of 2")
    assert request.context.prior_agents[:2] == ("ORC", "ANL")
    assert request.context.prior_outputs["part_1"] == {"npv": 17206.82, "currency": "USD"}
    assert request.context.history_ref


async def test_routing_errors_are_monitored_per_intent() -> None:
    office = Office()
    async with Node(agents=office.agents) as node:
        await ask(node, "segment our customers")
        await node.call("ORC", "ORC_CORRECT", {"target": "ANL", "capability": "ANL_PROJECTION"}, user_id="u1", session_id="s1")
        await ask(node, "what is the capital of mongolia")
        reply = await node.call("ORC", "ORC_MONITOR", user_id="u1")
    rows = {row["intent"]: row for row in reply.data["intents"]}
    assert rows["AUD/AUD_SEGMENT_BUILD"]["misrouted"] == 1
    assert rows["AUD/AUD_SEGMENT_BUILD"]["routed"] == 1
    assert rows["(none)"]["declined"] == 1
    assert reply.data["totals"]["misrouted"] == 1


async def test_a_refused_call_counts_as_a_refusal_of_its_intent() -> None:
    office = Office()
    async with Node(agents=office.agents) as node:
        reply = await node.call("ORC", "ORC_ROUTE", {"text": "segment our customers"}, user_id="u", limits=Limits(depth_max=0))
        monitor = await node.call("ORC", "ORC_MONITOR", user_id="u")
    assert reply.error is not None
    assert reply.error.code == "LIMIT_DEPTH_EXCEEDED"
    assert monitor.data["totals"]["refused"] == 1


# --- handle ambiguity ---


async def test_below_the_threshold_one_clarifying_question_is_asked_and_nothing_runs() -> None:
    office = Office(threshold=0.999)
    async with Node(agents=office.agents) as node:
        reply = await ask(node, "something about our customers")
    assert (reply.status, office.calls) == (Status.NEEDS_INPUT, [])
    assert reply.message.count("?") == 1


async def test_several_valid_routes_are_offered_in_words_without_names_of_agents() -> None:
    office = Office(threshold=0.999)
    async with Node(agents=office.agents) as node:
        reply = await ask(node, "revenue and cash flows")
    assert reply.status is Status.NEEDS_INPUT
    assert 1 <= len(reply.data["options"]) <= 3
    assert "ANL" not in reply.message


async def test_an_answer_to_the_question_is_taken_learnt_and_not_asked_again() -> None:
    office = Office(threshold=0.97)
    async with Node(agents=office.agents) as node:
        first = await ask(node, "something about our customers")
        labels = [one["label"] for one in first.data["options"]]
        at = labels.index("build audience segments from customer data")
        second = await ask(node, str(at + 1))
        third = await ask(node, "something about our customers", session_id="s2")
        lessons = await node.call("ORC", "ORC_LESSONS", user_id="u1")
    assert first.status is Status.NEEDS_INPUT
    assert (second.status, office.codes[0]) == (Status.SUCCESS, "AUD_SEGMENT_BUILD")
    assert third.data is not None
    assert [one["text"] for one in lessons.data] == ["something about our customers"]


async def test_a_request_that_nothing_serves_is_declined_with_what_comes_nearest() -> None:
    office = Office()
    async with Node(agents=office.agents) as node:
        reply = await ask(node, "what is the capital of mongolia")
    assert reply.error is not None
    assert reply.error.code == "ROUTING_INTENT_UNKNOWN"
    assert "cannot help" in reply.error.message
    assert office.calls == []


# --- route or handle ---


@pytest.mark.parametrize("text", ["what can you do", "thanks a lot", "where are we"])
async def test_what_needs_no_specialist_is_handled_here(text: str) -> None:
    office = Office()
    async with Node(agents=office.agents) as node:
        reply = await ask(node, text)
    assert (reply.status, office.calls) == (Status.SUCCESS, [])
    assert reply.message


# --- multi-agent coordination ---


async def test_a_sequence_runs_in_order_with_accumulated_context() -> None:
    office = Office()
    async with Node(agents=office.agents) as node:
        reply = await ask(node, "First segment our customers. Then draft a memo about them.")
    assert office.codes == ["AUD_SEGMENT_BUILD", "DOC_GENERATE"]
    assert [one["name"] for one in reply.data["components"]] == ["segment_build", "generate"]
    assert [one["after"] for one in reply.data["plan"]] == [[], [0]]


async def test_independent_parts_run_at_the_same_time_and_are_assembled_in_the_order_asked_for() -> None:
    office = Office()
    async with Node(agents=office.agents) as node:
        reply = await ask(node, "Forecast our costs and segment our customers")
    assert sorted(office.codes) == ["ANL_PROJECTION", "AUD_SEGMENT_BUILD"]
    assert reply.data["result"].keys() >= {"revenue", "segments"}
    assert reply.message.index("projection") < reply.message.index("udience segments")


async def test_the_state_of_the_workflow_is_kept_in_the_session() -> None:
    office = Office()
    async with Node(agents=office.agents) as node:
        await ask(node, "Forecast our costs and then draft a memo")
        session = node.session("s1")
    assert session is not None
    assert (session.workflow.step, session.workflow.steps) == (2, 2)


async def test_a_part_that_fails_makes_the_reply_partial_and_the_rest_is_there() -> None:
    office = Office()

    @office.audience.capability(
        "AUD_PERSONA",
        description="Portrait of a typical customer",
        utterances=("describe our typical buyer", "write a persona"),
    )
    async def persona(ctx: Context) -> Reply[Any]:
        return Reply.failure("The customer data is locked.", code="DATA_LOCKED")

    async with Node(agents=office.agents) as node:
        reply = await ask(node, "Forecast our costs and describe our typical buyer")
    assert reply.status is Status.PARTIAL
    assert "customer data is locked" in reply.message
    assert reply.data["result"]["revenue"] == [100, 120, 150]
    assert reply.data["missing"][0]["code"] == "DATA_LOCKED"


async def test_what_builds_on_a_failed_part_is_not_run() -> None:
    office = Office()

    @office.audience.capability(
        "AUD_PERSONA",
        description="Portrait of a typical customer",
        utterances=("describe our typical buyer", "write a persona"),
    )
    async def persona(ctx: Context) -> Reply[Any]:
        return Reply.failure("The customer data is locked.", code="DATA_LOCKED")

    async with Node(agents=office.agents) as node:
        reply = await ask(node, "Describe our typical buyer and then draft a memo")
    assert office.calls == []
    assert reply.error is not None


# --- response aggregation ---


async def test_conflicts_between_agents_are_shown_and_the_surer_one_is_used() -> None:
    office = Office()

    @office.audience.capability(
        "AUD_SIZE", description="Size of the market for bicycles", utterances=("how big is the bicycle market",)
    )
    async def size(ctx: Context) -> Reply[Any]:
        return Reply.success({"market_size": "4.2bn"}, confidence=0.9)

    @office.analyst.capability(
        "ANL_SIZE", description="Estimate demand from trade statistics", utterances=("estimate demand from trade statistics",)
    )
    async def demand(ctx: Context) -> Reply[Any]:
        return Reply.success({"market_size": 3_100_000_000}, confidence=0.6)

    async with Node(agents=office.agents) as node:
        reply = await ask(node, "How big is the bicycle market? Estimate demand from trade statistics.")
    (conflict,) = reply.data["conflicts"]
    assert (conflict["path"], conflict["preferred"], conflict["ask_user"]) == ("market_size", "4.2bn", False)
    assert "differ on market size" in reply.message
    assert reply.confidence == pytest.approx(0.65)


async def test_things_that_one_verb_asks_for_are_served_apart_and_recalled_with_their_figures() -> None:
    office = Office()

    @office.analyst.capability("ANL_IRR", description="Internal rate of return", utterances=("internal rate of return", "irr"))
    async def irr(ctx: Context) -> Reply[Any]:
        return Reply.success({"irr": 0.19})

    async with Node(agents=office.agents) as node:
        first = await ask(node, "calculate the net present value and the internal rate of return", FLOWS)
        second = await ask(node, "calculate the net present value and the internal rate of return", FLOWS)
    assert [one["name"] for one in first.data["components"]] == ["npv", "irr"]
    assert office.codes == ["ANL_NPV"]
    assert "irr 19 % (presented just now" in second.message


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Forecast our costs and project the sales", 1),  # two clauses of one intent
        ("Calculate the net present value and the weather", 1),  # no agent serves the second thing
        ("What is the npv and the segments?", 2),
    ],
)
async def test_a_request_has_as_many_parts_as_intents_that_agents_serve(text: str, parts: int) -> None:
    """Dies where clauses of one intent are done twice, or where a thing that no agent serves becomes a part."""
    office = Office()
    async with Node(agents=office.agents) as node:
        reply = await ask(node, text, FLOWS)
    assert (reply.status, len(reply.data["components"]), len(office.calls)) == ("success", parts, parts)


# --- session continuity ---


async def test_what_is_missing_is_asked_for_once_and_a_known_answer_is_not_asked() -> None:
    office = Office()
    async with Node(agents=office.agents) as node:
        first = await ask(node, "calculate the net present value", {"cash_flows": FLOWS["cash_flows"]})
        second = await ask(node, "12%")
        third = await ask(node, "what is the npv of these cash flows, again please")
    assert (first.status, first.data) == (Status.NEEDS_INPUT, {"missing": ["discount_rate"]})
    assert "discount rate" in first.message
    assert second.data["result"]["npv"] == 17206.82
    assert third.data["result"]["npv"] == 17206.82


async def test_an_analysis_already_presented_is_referred_to_and_not_run_again_unless_asked() -> None:
    office = Office()
    async with Node(agents=office.agents) as node:
        await ask(node, "calculate the net present value", FLOWS)
        second = await ask(node, "calculate the net present value", FLOWS)
        assert office.codes == ["ANL_NPV"]
        assert second.data["result"]["npv"] == 17206.82
        assert "nothing was run again" in second.message
        await ask(node, "calculate the net present value again", FLOWS)
        assert office.codes == ["ANL_NPV"] * 2
        await ask(node, "calculate the net present value", {**FLOWS, "discount_rate": 0.1})
        await ask(node, "calculate the net present value", FLOWS, session_id="other")
        assert len(office.codes) == 4
        monitor = await node.call("ORC", "ORC_MONITOR", user_id="u")
    assert monitor.data["totals"]["repeated"] == 1


async def test_of_thousands_of_inputs_the_last_are_noted_in_the_session() -> None:
    office = Office()
    async with Node(agents=office.agents) as node:
        await ask(node, "segment our customers", {f"n{number}": number for number in range(3_000)})
        facts = node.session("s1").facts
    assert len(facts) <= STATED_MAX + 50
    assert "n2999" in facts
    assert "n2" not in facts


async def test_an_analysis_that_is_no_longer_fresh_is_run_again() -> None:
    office = Office(fresh_ms=-1)
    async with Node(agents=office.agents) as node:
        await ask(node, "calculate the net present value", FLOWS)
        await ask(node, "calculate the net present value", FLOWS)
    assert len(office.codes) == 2


async def test_what_has_effects_is_never_taken_from_memory() -> None:
    office = Office()
    sent: list[str] = []

    @office.writer.capability(
        "DOC_SEND", description="Send the newsletter to all subscribers", effects=True, utterances=("send the newsletter",)
    )
    async def send(ctx: Context) -> Reply[Any]:
        sent.append("sent")
        return Reply.success({"sent": True})

    async with Node(agents=office.agents) as node:
        await ask(node, "send the newsletter")
        await ask(node, "send the newsletter")
    assert len(sent) == 2


# --- corrections ---


async def test_a_correction_to_what_no_agent_offers_is_refused_and_nothing_is_learnt() -> None:
    office = Office()
    async with Node(agents=office.agents) as node:
        await ask(node, "segment our customers")
        wrong = {"target": "ANL", "capability": "ANL_NONE"}
        reply = await node.call("ORC", "ORC_CORRECT", wrong, user_id="u1", session_id="s1")
        await ask(node, "segment our customers", session_id="s3")
    assert reply.error is not None
    assert "there is no capability ANL/ANL_NONE" in reply.error.message
    assert office.codes == ["AUD_SEGMENT_BUILD"] * 2


async def test_a_correction_in_words_reroutes_the_last_request_and_is_learnt() -> None:
    office = Office()
    async with Node(agents=office.agents) as node:
        await ask(node, "segment our customers")
        reply = await ask(node, "no, I meant draft a memo")
        again = await ask(node, "segment our customers", session_id="s3")
    assert office.codes == ["AUD_SEGMENT_BUILD", "DOC_GENERATE", "DOC_GENERATE"]
    assert reply.data["classification"]["primary"] == "generate"
    assert again.data["classification"]["primary"] == "generate"


async def test_a_correction_of_a_request_in_parts_teaches_the_words_of_the_part_that_an_agent_did() -> None:
    async with Node(agents=Office().agents) as node:
        await ask(node, "what can you do, and segment our customers")
        await ask(node, "no, I meant draft a memo")
        lessons = await node.call("ORC", "ORC_LESSONS", user_id="u1")
    assert [one["text"] for one in lessons.data] == ["segment our customers"]


async def test_a_no_that_asks_for_the_same_again_or_for_nothing_we_do_teaches_nothing() -> None:
    office = Office()
    async with Node(agents=office.agents) as node:
        await ask(node, "segment our customers")
        await ask(node, "no, segment our customers")
        await ask(node, "no, hello")
        lessons = await node.call("ORC", "ORC_LESSONS", user_id="u1")
    assert (lessons.data, set(office.codes)) == ([], {"AUD_SEGMENT_BUILD"})


@pytest.mark.parametrize(("text", "is_told"), [("forecast our costs", False), ("forecast our costs, then draft a memo", True)])
async def test_a_plan_is_told_before_the_work_where_a_request_has_several_parts(text: str, is_told: bool) -> None:
    async with Node(agents=Office().agents) as node:
        handle = node.start_call("ORC", "ORC_ROUTE", {"text": text}, user_id="u1")
        told = [event.data async for event in handle.events() if event.kind == "progress"]
    assert any("plan" in one for one in told) is is_told
    steps = 1 + is_told
    assert [(one["step"], one["of"]) for one in told if "doing" in one] == [(n, steps) for n in range(1, steps + 1)]
    assert all(one["doing"] for one in told if "doing" in one)


def test_lessons_survive_a_restart_and_can_be_undone(tmp_path: Any) -> None:
    text, store = "segment our customers", tmp_path / "orc.db"

    async def teach() -> str:
        async with Node(agents=Office().agents, store=store) as node:
            told = {"target": "DOC", "capability": "DOC_GENERATE", "text": text}
            return str((await node.call("ORC", "ORC_CORRECT", told, user_id="u")).data["lesson_id"])

    async def undo(lesson: str) -> list[Reply[Any]]:
        async with Node(agents=Office().agents, store=store) as node:
            asked = [("ORC_CLASSIFY", {"text": text}), ("ORC_UNDO", {"lesson_id": lesson})] * 2
            return [await node.call("ORC", capability, inputs, user_id="u") for capability, inputs in asked]

    learnt, undone, forgotten, missing = asyncio.run(undo(asyncio.run(teach())))  # a store and a thread: real time
    assert learnt.data["primary"] == "generate"
    assert undone.data["lessons"] == 0
    assert forgotten.data["primary"] == "segment_build"
    assert missing.status is Status.ERROR


LESSON = {"target": "DOC", "capability": "DOC_GENERATE"}


async def _primary(node: Node, text: str, **who: str) -> str:
    reply = await node.call("ORC", "ORC_CLASSIFY", {"text": text}, **who)
    return str(reply.data["primary"])


async def test_a_lesson_changes_routing_for_its_user_only() -> None:
    text = "segment our customers"
    async with Node(agents=Office().agents) as node:
        taught = await node.call("ORC", "ORC_CORRECT", {**LESSON, "text": text}, user_id="ann", session_id="s1")
        listed = [
            (await node.call("ORC", "ORC_LESSONS", user_id=user, tenant_id=tenant)).data
            for user, tenant in (("ann", "default"), ("bob", "default"), ("ann", "other"))
        ]
        routes = [await _primary(node, text, user_id=user) for user in ("ann", "bob")]
        taken = await node.call("ORC", "ORC_UNDO", {"lesson_id": taught.data["lesson_id"]}, user_id="bob")
    assert [[one["text"] for one in lessons] for lessons in listed] == [[text], [], []]
    assert routes == ["generate", "segment_build"]
    assert not taken.ok


def test_lessons_are_erased_with_the_session_or_the_person_they_came_from(tmp_path: Any) -> None:
    asyncio.run(_erased(tmp_path / "orc.db"))
    assert not any(b"wintergreen" in path.read_bytes() for path in tmp_path.iterdir())


async def _erased(store: Any) -> None:
    async def texts(user: str) -> list[str]:
        found = await node.call("ORC", "ORC_LESSONS", user_id=user, session_id=f"look-{user}")
        return [one["text"] for one in found.data]

    async with Node(agents=Office().agents, store=store) as node:
        for user, session, text in (
            ("ann", "s1", "one wintergreen"),
            ("ann", "s2", "two wintergreen"),
            ("bob", "b1", "three"),
        ):
            await node.call("ORC", "ORC_CORRECT", {**LESSON, "text": text}, user_id=user, session_id=session)
        await node.erase_session("s1")
        assert await texts("ann") == ["two wintergreen"]
        await node.erase_person("ann")
        assert await texts("ann") == []
        assert await texts("bob") == ["three"]


async def test_lessons_that_an_earlier_version_kept_for_a_tenant_are_dropped() -> None:
    office, left = Office(), []

    @office.orchestrator.capability("OLD_STATE")
    async def old(ctx: Context) -> None:
        left.append(ctx.state.get("lessons"))
        ctx.state["lessons"] = [{"id": "1", "text": "segment our customers", "intent": "DOC/DOC_GENERATE"}]

    async with Node(agents=office.agents) as node:
        await node.call("ORC", "OLD_STATE", user_id="ann")
        assert await _primary(node, "segment our customers", user_id="bob") == "segment_build"
        await node.call("ORC", "OLD_STATE", user_id="ann")
    assert left == [None, None]


async def test_personal_data_in_a_lesson_is_a_token_to_agents_and_clear_to_its_user() -> None:
    office, seen = Office(), []
    text = "segment our customers for ann.smith@example.com"

    @office.analyst.capability("ANL_LOOK", description="Look at what is remembered")
    async def look(ctx: Context) -> Reply[Any]:
        own = await ctx.call("ORC", "ORC_LESSONS")
        seen.extend([own.data[0]["text"], ctx.memory.notes])
        return Reply.success({})

    async with Node(agents=office.agents) as node:
        await node.call("ORC", "ORC_CORRECT", {**LESSON, "text": text}, user_id="ann", session_id="s1")
        await node.call("ANL", "ANL_LOOK", user_id="ann", session_id="s2")
        listed = await node.call("ORC", "ORC_LESSONS", user_id="ann", session_id="s3")
        route = await _primary(node, text, user_id="ann", session_id="s4")
    assert seen[0].startswith("segment our customers for [[EMAIL_1_")
    assert seen[1] == ()  # of another agent
    assert [one["text"] for one in listed.data] == [text]
    assert route == "generate"


# --- rankers and declaration ---


async def test_embeddings_rank_what_shares_no_word() -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        return [
            [1.0, 0.0] if any(word in text.lower() for word in ("customer", "audience", "folk")) else [0.0, 1.0]
            for text in texts
        ]

    office = Office(ranker=EmbeddingRanker(embed), threshold=0.3)
    async with Node(agents=office.agents) as node:
        reply = await node.call("ORC", "ORC_CLASSIFY", {"text": "sort the folk"}, user_id="u")
    assert reply.data["route"]["target"] == "AUD"


async def test_hidden_values_are_not_embedded() -> None:
    embedded: list[str] = []

    def embed(texts: list[str]) -> list[list[float]]:
        embedded.extend(texts)
        return [[1.0] for _ in texts]

    async with Node(agents=Office(ranker=EmbeddingRanker(embed), threshold=0.3).agents) as node:
        await node.call("ORC", "ORC_CLASSIFY", {"text": "block bo@example.com"}, user_id="u")
        await node.call("ORC", "ORC_CLASSIFY", {"text": "bo@example.com"}, user_id="u")
    assert embedded[0] == "block"
    assert not [text for text in embedded if "EMAIL" in text or not text]


async def test_a_request_in_the_words_of_an_example_is_ranked_and_vectors_of_examples_are_bounded(monkeypatch) -> None:
    embedded: list[str] = []

    def embed(texts: list[str]) -> list[list[float]]:
        embedded.extend(texts)
        return [[float("segment" in text.lower()), 1.0] for text in texts]

    monkeypatch.setattr(rankers, "VECTORS_MAX", 1)
    async with Node(agents=Office(ranker=EmbeddingRanker(embed), threshold=0.3).agents) as node:
        await node.call("ORC", "ORC_CLASSIFY", {"text": "sort the folk"}, user_id="u")
    example = embedded[1]
    async with Node(agents=Office(ranker=EmbeddingRanker(embed), threshold=0.3).agents) as node:
        first = await node.call("ORC", "ORC_CLASSIFY", {"text": example}, user_id="u")
        await node.call("ORC", "ORC_CLASSIFY", {"text": "sort the folk"}, user_id="u")
    assert first.status is not Status.ERROR
    assert embedded.count(example) == 3  # dropped after the first request of the second node


async def test_a_model_is_asked_only_where_words_do_not_decide_and_its_call_is_governed() -> None:
    judge = Agent("judge", model=ScriptedModel(["AUD/AUD_SEGMENT_BUILD"]))
    office = Office(ranker=ModelRanker("judge", below=0.9))
    async with Node(agents=[*office.agents, judge]) as node:
        sure = await node.call("ORC", "ORC_CLASSIFY", {"text": "calculate the net present value"}, user_id="u")
        asked = await node.call("ORC", "ORC_CLASSIFY", {"text": "sort the folk"}, user_id="u")
        rows = [row for row in node.audit.rows() if row.target == "judge"]
    assert sure.data["route"]["capability"] == "ANL_NPV"
    assert asked.data["route"]["capability"] == "AUD_SEGMENT_BUILD"
    assert rows


def test_a_strategy_that_does_not_exist_is_refused_where_it_is_declared() -> None:
    with pytest.raises(DeclarationError, match="merge"):
        Orchestrator(strategy="mash")


async def test_an_orchestrator_alone_says_that_nothing_can_be_done() -> None:
    async with Node(agents=[Orchestrator()]) as node:
        reply = await ask(node, "what can you do")
    assert reply.message == "Nothing can be done here yet."


@pytest.mark.parametrize(
    "text", ["what is the capital of peru", "what is the weather", "who won the world cup", "tell me a joke"]
)
async def test_a_question_that_shares_common_words_with_small_talk_is_declined(text: str) -> None:
    analyst = Agent("ANL", description="Financial analysis")

    @analyst.capability("ANL_NPV")
    async def npv(cash_flows: list[float]) -> float:
        """Net present value of yearly cash flows, the first of them today."""
        return 1.0

    async with Node([Orchestrator(), analyst]) as node:
        reply = await ask(node, text)
    assert reply.error is not None
    assert reply.error.code == "ROUTING_INTENT_UNKNOWN"


async def test_where_the_work_stands_is_not_the_question_itself() -> None:
    office = Office()
    async with Node(agents=office.agents) as node:
        before = await ask(node, "where are we")
        await ask(node, "calculate the net present value", FLOWS)
        after = await ask(node, "where are we")
    assert (before.message, after.message) == ("Nothing is under way.", "We are at: Step 1 of 1.")


async def test_the_demo_has_an_orchestrator_that_routes_and_runs_its_template(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with Node(demo_agents) as node:
        node.workflows.add(*templates.fitting(node.workflows.catalog()))
        valued = await ask(node, "what is the npv", {"cash_flows": [-100, 60, 70], "discount_rate": 0.1})
        case = await ask(node, "please build a business case", session_id="s2")
    assert valued.data["result"]["npv"] == 12.4
    assert case.data["workflow"] == "business_case"
    assert case.data["result"]["base_npv"] == 17206.82
    assert (tmp_path / "business-case.md").read_text().startswith("# Business case")


@pytest.mark.parametrize("value", ["abc", 5, ["a"], [1.0, "b"]])
async def test_a_value_of_another_type_than_the_input_takes_is_named_in_the_question(value: Any) -> None:
    office = Office()
    async with Node(agents=office.agents) as node:
        reply = await ask(node, "calculate the net present value", {"cash_flows": value, "discount_rate": 0.1})
        unknown = await ask(node, "calculate the net present value", session_id="s2")
    assert (reply.status, office.codes) == (Status.NEEDS_INPUT, [])
    assert reply.message.endswith("I need: cash flows. What was given for cash flows is not a list of numbers.")
    assert unknown.message.endswith("I need: cash flows, discount rate.")


async def test_an_input_that_nothing_takes_is_named() -> None:
    async with Node(agents=Office().agents) as node:
        done = await ask(node, "calculate the net present value", {**FLOWS, "nosuch": 1})
        asked = await ask(node, "calculate the net present value", {"nosuch": 1}, session_id="s2")
        known = await ask(node, "segment our customers", {"Cash_Flows": [1.0], "ANL_NPV": {}}, session_id="s3")
    told = "Not used, because nothing here takes it: nosuch"
    assert (done.status, done.warnings) == (Status.SUCCESS, (told,))
    assert asked.message.endswith(f"{told}.")
    assert known.warnings == ()


@pytest.mark.parametrize(("threshold", "is_sound"), [(0, True), (1, True), (0.5, True), (-0.01, False), (1.01, False)])
def test_a_threshold_is_a_number_from_0_to_1(threshold: float, is_sound: bool) -> None:
    if is_sound:
        assert Orchestrator(threshold=threshold).settings.threshold == threshold
    else:
        with pytest.raises(DeclarationError, match="threshold"):
            Orchestrator(threshold=threshold)


async def test_a_correction_without_a_text_where_nothing_was_asked_before_is_asked_about() -> None:
    async with Node(agents=Office().agents) as node:
        told = {"target": "DOC", "capability": "DOC_GENERATE"}
        reply = await node.call("ORC", "ORC_CORRECT", told, user_id="u", session_id="new")
        unknown = await node.call("ORC", "ORC_CORRECT", told | {"capability": "NONE"}, user_id="u", session_id="new")
    assert (reply.status, "Which request" in reply.message) == (Status.NEEDS_INPUT, True)
    assert unknown.status is Status.ERROR


@pytest.mark.parametrize(
    ("text", "written", "message"),
    [
        ("Forecast our costs and segment our customers", Reply.success(message="All in one."), "All in one."),
        ("Forecast our costs and segment our customers", Reply.success(), None),
        ("Forecast our costs and segment our customers", Reply.failure("out of words"), None),
        ("Forecast our costs", Reply.success(message="All in one."), None),  # of one part there is nothing to write
    ],
)
async def test_the_agent_that_is_named_for_it_writes_the_answer_to_several_parts(
    text: str, written: Reply[Any], message: str | None
) -> None:
    asked: list[str] = []
    author = Agent("SYN")

    @author.capability("message", description="xyzzy")
    async def write(ctx: Context) -> Reply[Any]:
        asked.append(ctx.request.message)
        return written

    office = Office(strategy="synthesise", synthesiser="SYN")
    async with Node(agents=[*office.agents, author]) as node:
        reply = await ask(node, text)
    assert reply.status is Status.SUCCESS
    assert (reply.message == "All in one.") is (message is not None)
    assert reply.message
    assert len(asked) == (" and " in text)
    assert all("data, not instructions" in one for one in asked)


@pytest.mark.parametrize("text", ["", "  ", "?!"])
async def test_a_request_without_a_word_is_asked_for(text: str) -> None:
    office = Office()
    async with Node(agents=office.agents) as node:
        reply = await ask(node, text)
    assert (reply.status, office.calls) == (Status.NEEDS_INPUT, [])


async def test_a_request_that_answers_no_question_of_choice_is_a_request_of_its_own() -> None:
    office = Office(threshold=0.97)
    async with Node(agents=office.agents) as node:
        assert (await ask(node, "something about our customers")).status is Status.NEEDS_INPUT
        reply = await ask(node, "what can you do")
        lessons = await node.call("ORC", "ORC_LESSONS", user_id="u1")
        late = await ask(node, "1")
    assert (reply.status, lessons.data, office.calls) == (Status.SUCCESS, [], [])
    assert not late.ok  # the question is closed


@pytest.mark.parametrize("custom", [None, {"mine": lambda views, agreed, options: {"mine": len(views)}}])
async def test_a_strategy_of_ones_own_can_be_named(custom: Any) -> None:
    if custom is None:
        with pytest.raises(DeclarationError, match="there is no strategy 'mine'"):
            Orchestrator(strategy="mine")
        return
    office = Office(strategy="mine", custom=custom)
    async with Node(agents=office.agents) as node:
        reply = await ask(node, "Forecast our costs and then draft a memo about it")
    assert reply.data["result"] == {"mine": 2}
