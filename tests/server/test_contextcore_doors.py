"""ContextCore's calls over HTTP: the examples of its document, in its own fields."""

from __future__ import annotations

import pytest
from outside_agents import agent_token, bearer, document, node
from threaded import served_in_thread

from comity.core.access import Role
from comity.server.app import Door
from comity.server.contextcore_doors import HANDOFFS, INSIGHTS, routes

CREATE = {name: value for name, value in document("contextcore", "request_create").items() if name not in ("id", "from_agent")}
DECISION = {
    "type": "decision", "project_id": "checkout-service", "confidence": 0.92, "audience": "both",
    "summary": "Selected event-driven architecture for payment processing", "rationale": "Lower coupling",
    "evidence": [{"type": "adr", "ref": "ADR-015-event-driven"}, {"type": "trace", "ref": "trace-xyz", "description": "200ms"}],
}  # fmt: skip


@pytest.fixture(scope="module")
def served():
    with served_in_thread(node, doors=[Door(routes)]) as one:
        yield one


def agent(served, name="orchestrator", scope="call:*/* handoff:write insight:write records:read"):
    left = {"deadline": served.state.now_ms() + 600_000}
    return bearer(agent_token(served, name, user_id="u1", scope=scope, left=left))


def test_a_handoff_is_created_waited_for_and_its_result_found(served):
    made = served.client.post(HANDOFFS, json=CREATE | {"id": "handoff-9"}, headers=agent(served))
    told = made.json()
    assert (made.status_code, told["id"], told["from_agent"], told["to_agent"]) == (201, "handoff-9", "orchestrator", "o11y")
    assert (told["capability_id"], told["priority"], told["timeout_ms"]) == ("investigate_error", "high", 300_000)
    ended = served.client.get(f"{HANDOFFS}/handoff-9", params={"wait_ms": "20000"}, headers=agent(served)).json()
    assert (ended["status"], ended["result"]["root_cause"]) == ("completed", "N+1 query")
    assert len(ended["result_trace_id"]) == 32
    assert (
        served.client.post(HANDOFFS, json=CREATE | {"id": "handoff-9"}, headers=agent(served)).json()["status"] == "completed"
    )


def test_an_insight_is_emitted_and_found_by_its_query(served):
    made = served.client.post(INSIGHTS, json=DECISION, headers=agent(served, "claude-code"))
    assert (made.status_code, made.json()["type"], made.json()["agent_id"]) == (201, "decision", "claude-code")
    query = {
        "project_id": "checkout-service",
        "insight_type": "decision",
        "min_confidence": "0.8",
        "time_range": "24h",
        "limit": "10",
    }
    (found,) = served.client.get(INSIGHTS, params=query, headers=agent(served)).json()
    assert (found["summary"], found["confidence"]) == (DECISION["summary"], 0.92)
    assert [one["ref"] for one in found["evidence"]] == ["ADR-015-event-driven", "trace-xyz"]
    assert served.client.get(INSIGHTS, params=query | {"min_confidence": "0.95"}, headers=agent(served)).json() == []


def test_personal_data_in_an_insight_is_hidden_from_all_who_read_it(served):
    words = {"summary": "ann@example.com asked", "rationale": "bob@example.com too"}
    evidence = [{"type": "file", "ref": "x", "description": "eve@example.com"}]
    told = DECISION | words | {"evidence": evidence, "project_id": "hidden"}
    made = served.client.post(INSIGHTS, json=told, headers=agent(served, "claude-code"))
    assert (made.status_code, "[[EMAIL_" in made.json()["summary"], "asked" in made.json()["summary"]) == (201, True, True)
    for path in (f"{INSIGHTS}?project_id=hidden", "/v1/insights?project=hidden"):
        found = served.client.get(path).text
        assert ("[[EMAIL_" in found, "@example.com" in found) == (True, False)


def test_another_tenant_finds_neither(served):
    state = served.state
    token = bearer(state.auth.signed.sign_in("u1", roles=(Role.OPERATOR,), tenant_id="acme", now_ms=state.now_ms()))
    served.client.post(INSIGHTS, json=DECISION, headers=agent(served))
    assert served.client.get(INSIGHTS, params={"project_id": "checkout-service"}, headers=token).json() == []
    served.client.post(HANDOFFS, json=CREATE | {"id": "handoff-t"}, headers=agent(served))
    assert served.client.get(f"{HANDOFFS}/handoff-t", headers=token).status_code == 404


def test_a_scope_without_the_right_is_refused_and_bad_fields_are_named(served):
    narrow = agent(served, scope="call:*/*")
    assert served.client.post(INSIGHTS, json=DECISION, headers=narrow).status_code == 403
    assert served.client.post(HANDOFFS, json=CREATE, headers=agent(served, scope="handoff:write call:DOC/*")).status_code == 403
    assert served.client.post(INSIGHTS, json=DECISION | {"odd": 1}, headers=agent(served)).status_code == 400
    assert served.client.post(INSIGHTS, json=DECISION | {"confidence": 7}, headers=agent(served)).status_code == 422
    assert served.client.get(INSIGHTS, params={"limit": "many"}, headers=agent(served)).status_code == 400
    assert served.client.get(f"{HANDOFFS}/x", params={"wait_ms": "-1"}, headers=agent(served)).status_code == 400
    assert served.client.delete(INSIGHTS, headers=agent(served)).status_code == 405
