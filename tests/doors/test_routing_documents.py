"""KDAP's two documents of the orchestrator at the document door."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from comity import Agent, Context, Node, Reply
from comity.orchestrator import Orchestrator

VECTORS = Path(__file__).parents[1] / "dialects" / "vectors" / "kdap"
CONTEXT, INTENT = (
    msgspec.json.decode((VECTORS / f"{one}.json").read_bytes()) for one in ("handoff_market_entry", "intent_projection")
)


def team(seen: dict[str, Any]) -> list[Agent]:
    analyst, writer = Agent("ANL", aliases=["analyst"]), Agent("DOC")

    @analyst.capability("ANL_PROJECTION")
    async def projection(ctx: Context) -> dict[str, Any]:
        seen["ANL"] = ctx.request
        return {"revenue": 5}

    @writer.capability("DOC_GENERATE")
    async def generate(ctx: Context, topic: str) -> dict[str, Any]:
        seen["DOC"] = ctx.request
        return {"document": topic}

    return [Orchestrator(), analyst, writer]


async def take(node: Node, document: Any, **more: Any) -> dict[str, Any]:
    return await node.receive(document, dialect="kdap", user_id="u", **more)


async def test_a_handoff_context_is_noted_and_the_sessions_own_given_back() -> None:
    async with Node(team({})) as node:
        block = (VECTORS / "handoff_market_entry.txt").read_text()
        assert (await take(node, block))["result_json"] == CONTEXT
        later = {**CONTEXT, "workflow_position": "Step 4 of 5", "constraints": {"timeline": "12_months"}}
        told = (await take(node, later))["result_json"]
        session = node.session("sess-789")
    assert told["workflow_position"] == session.workflow_position == "Step 4 of 5"
    assert told["constraints"] == {**CONTEXT["constraints"], "timeline": "12_months"}
    assert told["prior_outputs"] == CONTEXT["prior_outputs"]
    assert session.original_request == CONTEXT["original_request"]


async def test_an_intent_is_routed_in_order_with_the_noted_context() -> None:
    seen: dict[str, Any] = {}
    async with Node(team(seen)) as node:
        await take(node, CONTEXT)
        told = await take(node, (VECTORS / "intent_projection.txt").read_text(), session_id="sess-789")
    assert (told["status"], told["result_json"]["result"]["revenue"]) == ("SUCCESS", 5)
    context = seen["DOC"].context
    assert context.original_request == CONTEXT["original_request"]
    assert context.prior_agents[:2] == ("ORC", "CST")
    assert context.constraints == CONTEXT["constraints"]
    assert context.prior_outputs["part_1"] == {"revenue": 5}


async def test_an_intent_below_the_threshold_is_asked_about_and_the_answer_runs_it() -> None:
    seen: dict[str, Any] = {}
    async with Node(team(seen)) as node:
        told = await take(node, INTENT | {"intent_confidence": 0.3}, session_id="s")
        assert (told["error_code"], seen) == ("CALL_NEEDS_INPUT", {})
        reply = await node.call("ORC", "ORC_ROUTE", {"text": "yes"}, user_id="u", session_id="s")
    assert (reply.ok, list(seen)) == (True, ["ANL"])


async def test_an_alias_is_routed_and_what_nothing_serves_is_named() -> None:
    seen: dict[str, Any] = {}
    async with Node(team(seen)) as node:
        alone = {"secondary_intents": [], "secondary_targets": []}
        assert (await take(node, INTENT | alone | {"target_agent": "analyst"}))["status"] == "SUCCESS"
        told = await take(node, INTENT | {"secondary_targets": [{"agent": "DOC", "capability": "DOC_PRINT"}]})
    assert (told["error_code"], list(seen)) == ("ROUTING_INTENT_UNKNOWN", ["ANL"])
    assert "DOC/DOC_PRINT" in told["error_message"]


async def test_a_context_of_another_users_or_another_session_is_refused() -> None:
    async with Node(team({})) as node:
        await take(node, CONTEXT)
        other = await node.receive(CONTEXT, dialect="kdap", user_id="v")
        elsewhere = await take(node, CONTEXT, session_id="another")
    assert other["error_code"] == "IDENTITY_MISMATCH"
    assert elsewhere["error_code"] == "INPUT_VALIDATION_FAILED"


async def test_with_a_token_both_stay_in_the_call_they_speak_for() -> None:
    seen: dict[str, Any] = {}
    told: list[dict[str, Any]] = []
    strategist = Agent("CST")

    @strategist.capability("GO")
    async def go(ctx: Context) -> Reply[Any]:
        told.extend([await take(node, one, token=ctx.token) for one in (CONTEXT, INTENT)])
        return Reply.success(None)

    async with Node([strategist, *team(seen)]) as node:
        await node.call("CST", "GO", user_id="u", session_id="sess-789")
    assert [one["status"] for one in told] == ["SUCCESS", "SUCCESS"]
    assert seen["DOC"].chain[:2] == ("CST", "ORC")  # then the run that serves both parts


@pytest.mark.parametrize("document", [CONTEXT, INTENT])
async def test_without_an_orchestrator_the_document_is_refused(document: dict[str, Any]) -> None:
    async with Node([Agent("ANL")]) as node:
        assert (await take(node, document))["error_code"] == "ROUTING_UNKNOWN_AGENT"
