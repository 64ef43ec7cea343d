"""The templates: sound, for any agents that offer their capabilities, run by their trigger phrases, partial where a part fails."""

from __future__ import annotations

from typing import Any

import pytest

from comity import Agent, Context, Node, Reply, Status
from comity.agents.orchestrator import Orchestrator, templates
from comity.agents.orchestrator.catalogue import Offer
from comity.agents.orchestrator.phrases import unused
from comity.agents.orchestrator.rankers import OfflineRanker
from comity.core.orchestration.aggregate import STRATEGIES
from comity.core.orchestration.intent import Route
from comity.core.workflow.check import check_text
from comity.errors import CallerError
from comity.workflow import load

RANKER = OfflineRanker()  # learns once for all tests
# The agents of each template in order, as the origin of the contract names them.
AGENTS = {
    "full_media_plan": ["ANL", "AUD", "CHA", "PRF", "DOC"], "budget_optimization": ["ANL", "CHA", "PRF"],
    "audience_channel_fit": ["AUD", "CHA"], "measurement_strategy": ["PRF", "ANL"], "campaign_analysis": ["PRF", "ANL", "CHA"],
    "audience_strategy": ["AUD", "ANL"], "channel_strategy": ["CHA", "ANL", "PRF"], "quick_projection": ["ANL"],
    "document_generation": ["DOC"], "competitive_analysis": ["CHA", "AUD", "ANL"],
}  # fmt: skip


def test_the_ten_templates_of_the_origin_are_there() -> None:
    assert set(templates.names()) == {*AGENTS, "business_case"}


def test_the_business_case_of_the_demo_is_a_sound_template() -> None:
    assert check_text(templates.text("business_case"), strategies=STRATEGIES) == []


@pytest.mark.parametrize("name", AGENTS)
def test_a_template_is_sound_and_calls_the_agents_of_the_origin_in_order(name: str) -> None:
    assert check_text(templates.text(name), strategies=STRATEGIES) == []
    found = templates.definition(name)
    assert [node.call.agent for node in found.nodes.values() if node.call is not None] == AGENTS[name]
    assert len(found.triggers) >= 3


def _specialists(*, failing: str = "") -> list[Agent]:
    agent = Agent("SPECIALIST", description="Does everything")
    for code in ("PRF_ANOMALY_DETECT", "ANL_ROI_PROJECT", "CHA_BENCHMARK_LOOKUP"):

        async def work(budget: float = 0.0, code: str = code) -> Reply[Any]:
            del budget
            return (
                Reply.failure("The data is closed.", code="DATA_CLOSED")
                if code == failing
                else Reply.success({code.lower(): 1})
            )

        agent.capability(code, input_schema={"type": "object", "properties": {"budget": {"type": "number"}}})(work)
    return [agent]


async def test_a_template_runs_with_any_agent_that_offers_its_capabilities() -> None:
    async with Node(agents=_specialists()) as node:
        fitted = templates.fitted(templates.definition("campaign_analysis"), node.workflows.catalog())
        reply = await node.workflows.run(fitted, {}, user_id="u")
    assert reply.status is Status.SUCCESS
    assert set(reply.data["result"]) == {"prf_anomaly_detect", "anl_roi_project", "cha_benchmark_lookup"}


async def test_a_part_that_fails_is_missing_in_the_result_which_says_so() -> None:
    async with Node(agents=_specialists(failing="ANL_ROI_PROJECT")) as node:
        fitted = templates.fitted(templates.definition("campaign_analysis"), node.workflows.catalog())
        reply = await node.workflows.run(fitted, {}, user_id="u")
    assert reply.data["missing"][0]["name"] == "returns"
    assert "closed" in reply.data["missing"][0]["why"]


async def test_what_a_capability_requires_becomes_an_input_of_the_workflow() -> None:
    agent = Agent("ANY")

    @agent.capability("ANL_ROI_PROJECT")
    async def project(budget: float) -> dict[str, Any]:
        return {"roi": budget * 2}

    async with Node(agents=[agent]) as node:
        fitted = templates.fitted(templates.definition("quick_projection"), node.workflows.catalog())
        reply = await node.workflows.run(fitted, {"budget": 21.0}, user_id="u")
    assert (fitted.input_schema or {})["required"] == ["budget"]
    assert reply.data == {"roi": 42.0}


def test_a_capability_that_no_agent_offers_is_named() -> None:
    with pytest.raises(CallerError, match="ANL_ROI_PROJECT"):
        templates.fitted(templates.definition("quick_projection"), {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Please analyse the campaigns of May", "campaign_analysis"), ("give me a rough forecast", "quick_projection"), ("play jazz", None)],
)  # fmt: skip
def test_trigger_phrases_find_their_workflow(text: str, expected: str | None) -> None:
    assert templates.triggered(text, {name: templates.definition(name) for name in templates.names()}) == expected


@pytest.mark.parametrize(
    "text",
    [
        "do not build a business case",
        "please don’t ever build a business case",
        "tell me how to build a business case",
        "compute the irr without a business case for market entry",
        "find the mail in which Bo asks us to build a business case",
    ],
)
def test_a_trigger_phrase_that_is_negated_or_only_spoken_of_starts_nothing(text: str) -> None:
    known = {"business_case": templates.definition("business_case")}
    assert templates.triggered(text, known) is None
    assert templates.triggered("Don't forget to build a business case", known) == "business_case"
    assert templates.triggered(f"{text}, but now build a business case", known) == "business_case"


def test_only_a_clause_that_denies_a_workflow_is_left_out_of_a_request() -> None:
    known = {"business_case": templates.definition("business_case")}
    assert templates.without_negated("compute the irr, do not build a business case", known) == "compute the irr"
    said = "write a memo, do not mention the price"
    assert templates.without_negated(said, known) == said


FLOW = """
workflow: rent
triggers: [pay the rent]
nodes: {p: {call: FLAT/PAY}}
"""


@pytest.mark.parametrize(
    ("text", "status", "did"),
    [
        ("pay the rent", Status.SUCCESS, ["PAY"]),
        ("count the rooms, do not pay the rent", Status.SUCCESS, ["COUNT"]),
        ("count the rooms and then pay the rent", Status.SUCCESS, ["COUNT", "PAY"]),
        ("pay the rent and then paint the wall", Status.SUCCESS, ["PAY", "PAINT"]),
        ("count the rooms and then pay the rent and then what can you do", Status.SUCCESS, ["COUNT", "PAY"]),
        ("count the rooms and then pay the rent and then paint the wall", Status.SUCCESS, ["COUNT", "PAY", "PAINT"]),
        ("break the window and then pay the rent", Status.ERROR, ["BREAK"]),  # what it waits for failed
        ("pay the rent and count the rooms and paint the wall", Status.SUCCESS, ["COUNT", "PAINT", "PAY"]),
    ],
)
async def test_a_trigger_phrase_starts_its_workflow_for_its_part_and_the_other_parts_are_done(
    text: str, status: Status, did: list[str]
) -> None:
    done: list[str] = []
    flat = Agent("FLAT")

    def offer(code: str, description: str) -> None:
        async def work(ctx: Context) -> Reply[Any]:
            done.append(code)
            return Reply.failure("It is stuck.") if code == "BREAK" else Reply.success({code.lower(): True})

        flat.capability(code, description=description, utterances=(description,))(work)

    offer("PAY", "transfer money")
    offer("COUNT", "count the rooms")
    offer("PAINT", "paint the wall")
    offer("BREAK", "break the window")
    async with Node([Orchestrator(ranker=RANKER), flat]) as node:
        node.workflows.add(FLOW)
        reply = await node.call("ORC", "ORC_ROUTE", {"text": text}, user_id="ann", session_id="s")
    assert (reply.status, done if "then" in text else sorted(done)) == (status, did), reply.message
    assert "stuck" in reply.message or status is Status.SUCCESS


async def test_a_part_behind_a_workflow_is_not_done_again_where_its_result_was_presented_before() -> None:
    done: list[str] = []
    flat = Agent("FLAT")

    @flat.capability("COUNT", description="count the rooms", utterances=("count the rooms",))
    async def count() -> dict[str, int]:
        done.append("COUNT")
        return {"rooms": 3}

    @flat.capability("PAY", description="transfer money")
    async def pay() -> None:
        done.append("PAY")

    async with Node([Orchestrator(ranker=RANKER), flat]) as node:
        node.workflows.add(FLOW)
        for text in ("count the rooms", "pay the rent and then count the rooms"):
            assert (await node.call("ORC", "ORC_ROUTE", {"text": text}, user_id="ann", session_id="s")).ok
    assert done == ["COUNT", "PAY"]


async def test_a_run_by_a_trigger_phrase_is_the_users_in_their_tenant_and_gets_what_its_input_names() -> None:
    text = "workflow: sure\nversion: '1'\ninput: {type: object, properties: {n: {type: integer}, request: {type: string}}}\n"
    text += "triggers: [are you sure]\nnodes:\n  q: {ask: 'Really {{input.n}}?', options: ['yes', 'no']}\n"
    async with Node([Orchestrator()]) as node:
        node.workflows.add(text)
        given = {"text": "Are you sure?", "inputs": {"n": 1, "secret": "s3cret"}}
        reply = await node.call("ORC", "ORC_ROUTE", given, user_id="ann", tenant_id="acme", session_id="s")
        (run,) = node.workflows.list()
        assert (run.tenant_id, run.user_id, run.session_id) == ("acme", "ann", "s")
        assert unused(["secret"]) in reply.warnings  # and no word of what the workflow takes
        assert node.workflows.store.events(run.run_id)[0].input == {"n": 1, "request": "Are you sure?"}


@pytest.mark.parametrize(("effects", "account"), [(True, "GOOD"), (False, "EVIL")])
async def test_a_run_by_a_trigger_phrase_takes_no_fact_that_an_agent_noted_where_it_has_effects(
    effects: bool, account: str
) -> None:
    paid: list[Any] = []
    noter, payer = Agent("NOTER"), Agent("PAYER")

    @noter.capability("NOTE")
    async def note(ctx: Context) -> None:
        ctx.session.learn("account", "EVIL")

    @payer.capability("PAY", effects=effects)
    async def pay(account: str) -> None:
        paid.append(account)

    text = "workflow: pay\ninput: {type: object, properties: {account: {type: string}}}\ntriggers: [pay the rent]\n"
    text += "nodes: {p: {call: PAYER/PAY, input: {account: \"{{input.account ?? 'GOOD'}}\"}}}"
    async with Node([Orchestrator(), noter, payer]) as node:
        node.workflows.add(text)
        await node.call("NOTER", "NOTE", user_id="ann", session_id="s")
        await node.call("ORC", "ORC_ROUTE", {"text": "pay the rent"}, user_id="ann", session_id="s")
    assert paid == [account]


@pytest.mark.parametrize(("effects", "account"), [(True, "GOOD"), (False, "FOUND")])
async def test_a_run_by_a_trigger_phrase_takes_what_the_part_before_it_gave_where_it_has_no_effects(
    effects: bool, account: str
) -> None:
    paid: list[Any] = []
    flat = Agent("FLAT")

    @flat.capability("FIND", description="find the landlord", utterances=("find the landlord",))
    async def find() -> dict[str, str]:
        return {"account": "FOUND"}

    @flat.capability("PAY", effects=effects, description="transfer money")
    async def pay(account: str) -> None:
        paid.append(account)

    text = "workflow: pay\ninput: {type: object, properties: {account: {type: string}}}\ntriggers: [pay the rent]\n"
    text += "nodes: {p: {call: FLAT/PAY, input: {account: \"{{input.account ?? 'GOOD'}}\"}}}"
    async with Node([Orchestrator(ranker=RANKER), flat]) as node:
        node.workflows.add(text)
        given = {"text": "find the landlord and then pay the rent"}
        assert (await node.call("ORC", "ORC_ROUTE", given, user_id="ann", session_id="s")).ok
    assert paid == [account]


def test_a_workflow_acts_if_a_step_or_what_takes_it_back_has_effects_or_is_not_known() -> None:
    def offer(code: str, *, effects: bool) -> Offer:
        return Offer(f"A/{code}", code, Route("A", code), code, {}, (), "", effects, "")

    offers = {"A/LOOK": offer("LOOK", effects=False), "A/PAY": offer("PAY", effects=True)}
    acts = {
        "{call: A/LOOK}": False,
        "{call: A/PAY}": True,
        "{call: A/GONE}": True,
        "{call: A/LOOK, undo: {call: A/PAY}}": True,
        "{run: other}": True,
        "{set: 1}": False,
    }
    found = {node: templates.may_act(load(f"workflow: w\nnodes: {{n: {node}}}"), offers) for node in acts}
    assert found == acts


async def test_the_orchestrator_runs_the_workflow_whose_trigger_phrase_a_user_says() -> None:
    async with Node(agents=[Orchestrator(), *_specialists()]) as node:
        node.workflows.add(templates.fitted(templates.definition("campaign_analysis"), node.workflows.catalog()))
        reply = await node.call("ORC", "ORC_ROUTE", {"text": "please analyse the campaign"}, user_id="u")
        (run,) = node.workflows.list()
    assert (reply.status, reply.data["workflow"], reply.data["run_id"]) == (Status.SUCCESS, "campaign_analysis", run.run_id)


async def test_a_workflow_that_asks_the_orchestrator_for_itself_stops_at_the_first_repeat() -> None:
    text = "workflow: again\ntriggers: [once more]\nnodes:\n  a: {call: ORC/ORC_ROUTE, input: {text: once more}}\n"
    async with Node([Orchestrator()]) as node:
        node.workflows.add(text)
        reply = await node.call("ORC", "ORC_ROUTE", {"text": "once more"}, user_id="u")
        assert len(node.workflows.list()) == 1
    assert (reply.status, reply.error.code) == (Status.ERROR, "ROUTING_CYCLE_DETECTED")


async def test_a_question_of_the_workflow_is_the_orchestrators_question() -> None:
    text = "workflow: sure\nversion: '1'\ntriggers: [are you sure]\nnodes:\n  q: {ask: 'Really?', options: ['yes', 'no']}\n"
    async with Node(agents=[Orchestrator()]) as node:
        node.workflows.add(text)
        reply = await node.call("ORC", "ORC_ROUTE", {"text": "are you sure"}, user_id="u")
        await node.workflows.answer(reply.data["run_id"], reply.data["question_id"], "yes")
        ended = await node.workflows.result(reply.data["run_id"])
    assert (reply.status, reply.message) == (Status.NEEDS_INPUT, "Really?")
    assert ended.ok
