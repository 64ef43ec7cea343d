"""A document narrows what its node allows by what it says, and by nothing else."""

from __future__ import annotations

import pytest

from comity import Agent, Context, Limits
from comity.dialects import delegation

WIDE = Limits(depth_max=9, fan_out_max=50, timeout_ms=60_000, timeout_ms_max=3_600_000, calls_max=5_000)
KDAP = {"source_agent": "USER", "target_agent": "ANL", "capability_code": "message", "request_id": "r", "inputs_json": {}}
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
HANDOFF = {"id": "r", "from_agent": "user", "to_agent": "ANL", "capability_id": "message", "task": "t"}


def analyst(timeout_ms: int | None = None) -> tuple[Agent, list[dict]]:
    agent, seen = Agent("ANL"), []

    @agent.capability("message", timeout_ms=timeout_ms)
    async def message(ctx: Context) -> str:
        limits = ctx.request.limits
        seen.append({"left_ms": ctx.left_ms} | {name: getattr(limits, name) for name in limits.__struct_fields__})
        return "done"

    return agent, seen


async def seen_by(make_node, document, dialect, *, limits=WIDE, timeout_ms=None) -> dict:
    agent, seen = analyst(timeout_ms)
    async with make_node([agent], limits=limits) as node:
        answer = await node.receive(document, dialect=dialect, user_id="u")
    assert len(seen) == 1, answer
    return seen[0]


@pytest.mark.parametrize(
    ("dialect", "document"),
    [("kdap", KDAP), ("call_agent", {"agent_id": "ANL", "message": "m"}), ("contextcore", HANDOFF)],
)
async def test_what_a_document_does_not_say_stays_as_the_node_has_it(make_node, dialect, document):
    seen = await seen_by(make_node, document, dialect)
    assert {name: value for name, value in seen.items() if name != "left_ms"} == {
        name: getattr(WIDE, name) for name in WIDE.__struct_fields__
    }


async def test_the_time_of_a_kdap_request_may_be_as_long_as_the_node_allows(make_node):
    assert (await seen_by(make_node, KDAP | {"timeout_ms": 1_800_000}, "kdap"))["left_ms"] == 1_800_000
    assert (await seen_by(make_node, KDAP | {"timeout_ms": 7_200_000}, "kdap"))["left_ms"] == 3_600_000


@pytest.mark.parametrize(("dialect", "document"), [("kdap", KDAP), ("call_agent", {"agent_id": "ANL", "message": "m"})])
async def test_without_a_time_of_its_own_a_request_has_the_capabilitys_or_the_nodes(make_node, dialect, document):
    assert (await seen_by(make_node, document, dialect, timeout_ms=900_000))["left_ms"] == 900_000
    assert (await seen_by(make_node, document, dialect))["left_ms"] == 60_000
    assert (await seen_by(make_node, document, dialect, limits=None))["left_ms"] == 30_000  # as both protocols say
    stated = await seen_by(make_node, document | {"timeout_ms": 30_000}, dialect, timeout_ms=900_000)
    assert stated["left_ms"] == 30_000


async def test_a_delegation_has_its_constraints_and_their_defaults_and_no_others(make_node):
    unsaid = await seen_by(make_node, DELEGATION, "delegation")
    assert (unsaid["tokens_max"], unsaid["depth_max"], unsaid["left_ms"]) == (1200, 1, 15_000)
    assert (unsaid["fan_out_max"], unsaid["calls_max"], unsaid["timeout_ms_max"]) == (50, 5_000, 3_600_000)
    constraints = {"max_tokens": 9_000, "max_depth": 4, "deadline_ms": 1_800_000}
    said = await seen_by(make_node, DELEGATION | {"constraints": constraints}, "delegation")
    assert (said["tokens_max"], said["depth_max"], said["left_ms"]) == (9_000, 3, 1_800_000)


async def test_the_checklist_of_the_delegation_protocol_holds_at_every_door_of_a_node_that_is_given_it(make_node):
    seen = await seen_by(make_node, KDAP, "kdap", limits=delegation.LIMITS)
    assert (seen["depth_max"], seen["fan_out_max"], seen["tokens_max"], seen["left_ms"]) == (1, 3, 1200, 15_000)


async def test_a_delegations_own_max_depth_holds_for_it(make_node):
    prime, (byte, seen) = Agent("prime"), analyst()
    document = DELEGATION | {"origin_employee": "prime", "current_depth": 1}
    answers = {}

    @prime.capability("message")
    async def delegate(ctx: Context) -> None:
        for most in (1, 2):
            asked = document | {"request_id": f"r{most}", "constraints": {"max_depth": most}}
            answers[most] = await node.receive(asked, dialect="delegation", user_id="u", token=ctx.token)

    async with make_node([prime, byte]) as node:
        await node.call("prime", "message", user_id="u")
    assert (answers[1]["status"], answers[2]["status"], len(seen)) == ("failed", "success", 1)
