"""The five protocols over HTTP: their examples are answered in their own fields, and false claims are refused."""

from __future__ import annotations

import pytest
from outside_agents import VECTORS, agent_token, bearer, document, node
from threaded import served_in_thread

from comity.core.access import Role
from comity.server.app import Door
from comity.server.dialect_doors import routes

DELEGATION = "/.netlify/functions/chat-internal"
SIMPLE = document("delegation", "request_simple")
HEADERS = document("delegation", "headers_internal")


@pytest.fixture(scope="module")
def served():
    with served_in_thread(node, doors=[Door(routes)]) as one:
        yield one


def prime(served, **more):
    return bearer(agent_token(served, "prime-boss", user_id="user-1", session_id="uuid-of-prime-session", **more))


def last_row(served):
    return served.rows()[-1]


def test_a_kdap_request_is_answered_as_its_document_says(served):
    token = bearer(agent_token(served, "CST", user_id="user-456", session_id="sess-789"))
    answer = served.client.post("/v1/dialects/kdap", json=document("kdap", "request_npv"), headers=token)
    told = answer.json()
    assert (answer.status_code, told["status"], told["confidence_level"]) == (200, "SUCCESS", "HIGH")
    assert (told["request_id"], told["result_json"]) == ("sess-789-20250118-143022", {"npv": 17206.82})


def test_a_kdap_block_is_taken_as_text(served):
    token = bearer(agent_token(served, "CST", user_id="user-456", session_id="sess-789"))
    block = (VECTORS / "kdap" / "request_npv.txt").read_text().replace("143022", "143023")
    answer = served.client.post("/v1/dialects/kdap", content=block, headers=token | {"content-type": "text/plain"})
    assert answer.json()["result_json"] == {"npv": 17206.82}


def test_a_kdap_request_may_carry_the_handoff_context(served):
    token = bearer(agent_token(served, "CST", user_id="user-456", session_id="sess-789"))
    context = document("kdap", "handoff_market_entry") | {"user_id": "user-456"}
    asked = document("kdap", "request_npv") | {"context": context, "request_id": "with-context"}
    assert served.client.post("/v1/dialects/kdap", json=asked, headers=token).json()["status"] == "SUCCESS"


def test_a_handoff_context_is_noted_in_its_session_and_an_intent_is_routed_with_it(served):
    token = bearer(agent_token(served, "CST", user_id="user-456", session_id="sess-790"))
    block = (VECTORS / "kdap" / "handoff_market_entry.txt").read_text().replace("sess-789", "sess-790")
    noted = served.client.post("/v1/dialects/kdap", content=block, headers=token | {"content-type": "text/plain"}).json()
    expected = document("kdap", "handoff_market_entry") | {"session_id": "sess-790"}
    assert (noted["status"], noted["result_json"]) == ("SUCCESS", expected)
    token = bearer(agent_token(served, "CST", user_id="user-456", session_id="sess-790"))
    routed = served.client.post("/v1/dialects/kdap", json=document("kdap", "intent_projection"), headers=token).json()
    assert routed["status"] == "SUCCESS", routed
    request = "Help me build a business case for market entry"
    result = routed["result_json"]["result"]
    assert (result["asked"], result["document"]) == (request, request)
    assert result["before"] == ["ORC", "CST"]
    assert result["position"].startswith("Step 2 of 2")
    assert [one["name"] for one in routed["result_json"]["components"]] == ["projection", "generate"]


def test_a_user_routes_an_intent_in_the_session_of_the_header(served):
    state = served.state
    token = bearer(state.auth.signed.sign_in("ann", roles=(Role.OPERATOR,), now_ms=state.now_ms()))
    asked = document("kdap", "intent_projection") | {"secondary_intents": [], "secondary_targets": []}
    answer = served.client.post("/v1/dialects/kdap", json=asked, headers=token | {"comity-session": "of-ann"}).json()
    assert answer["status"] == "SUCCESS"
    assert last_row(served).session_id == "of-ann"


def test_a_kdap_error_is_an_error_response(served):
    token = bearer(agent_token(served, "CST", user_id="user-456", session_id="sess-789"))
    asked = document("kdap", "request_npv") | {"inputs_json": {"cash_flows": "none"}, "request_id": "wrong-inputs"}
    answer = served.client.post("/v1/dialects/kdap", json=asked, headers=token)
    assert (answer.status_code, answer.json()["status"], answer.json()["error_code"]) == (
        422,
        "ERROR",
        "INPUT_VALIDATION_FAILED",
    )


def test_a_delegation_with_its_headers_runs_where_its_token_says(served):
    answer = served.client.post(DELEGATION, json=SIMPLE, headers=prime(served) | HEADERS)
    told = answer.json()
    assert (answer.status_code, told["status"], told["target_employee"]) == (200, "success", "byte-doc")
    assert told["request_id"] == SIMPLE["request_id"]
    issuer = served.state.auth.signed.node_name
    assert told["result"] in (
        "extracted for user-1 from prime-boss at depth 1",
        f"extracted for user-1 from prime-boss::{issuer} at depth 1",
    )


@pytest.mark.parametrize("name", ["request_full", "request_chain", "request_fan_out_1", "request_timeout"])
def test_every_delegation_of_the_document_is_answered(served, name):
    asked = document("delegation", name) | {
        "request_id": name,
        "target_employee": "byte-doc",
        "parent_session_id": "uuid-of-prime-session",
    }
    told = served.client.post(DELEGATION, json=asked, headers=prime(served)).json()
    assert (told["status"], told["request_id"]) == ("success", name)


def test_a_delegation_that_claims_to_stand_deeper_than_it_does_is_refused(served):
    asked = document("delegation", "request_depth_2") | {"request_id": "too-deep"}
    told = served.client.post(DELEGATION, json=asked, headers=prime(served)).json()
    assert told["status"] == "failed"
    deep = prime(served, chain=("user-facing",))
    told = served.client.post(DELEGATION, json=asked | {"request_id": "at-2"}, headers=deep).json()
    assert (told["status"], "depth" in told["error"].lower()) == ("failed", True)


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("X-Agent-Origin", "crystal-analytics"),
        ("X-Agent-Depth", "0"),
        ("X-Agent-Request-ID", "another"),
        ("X-Agent-Parent-Session", "of-another"),
    ],
)
def test_a_header_that_disagrees_is_refused_and_audited(served, header, value):
    asked = SIMPLE | {"request_id": f"odd-{header}"}
    answer = served.client.post(DELEGATION, json=asked, headers=prime(served) | {header: value})
    assert (answer.status_code, answer.json()["status"]) == (403, "failed")
    row = last_row(served)
    assert (row.kind, row.error_code, row.request_id) == ("refused", "IDENTITY_MISMATCH", f"odd-{header}")


@pytest.mark.parametrize(
    "changed", [{"origin_employee": "tag-ai"}, {"user_id": "user-2"}, {"parent_session_id": "another"}, {"current_depth": 3}]
)
def test_a_body_that_disagrees_is_refused_and_audited(served, changed):
    asked = SIMPLE | changed | {"request_id": f"body-{next(iter(changed))}"}
    answer = served.client.post(DELEGATION, json=asked, headers=prime(served))
    assert answer.json()["status"] == "failed"
    assert last_row(served).error_code in {"IDENTITY_MISMATCH", "LIMIT_DEPTH_EXCEEDED"}


def test_a_users_token_cannot_delegate(served):
    state = served.state
    token = state.auth.signed.sign_in("user-1", roles=(Role.ADMIN,), now_ms=state.now_ms())
    answer = served.client.post(DELEGATION, json=SIMPLE, headers=bearer(token) | HEADERS)
    assert (answer.status_code, answer.json()["code"]) == (403, "IDENTITY_WRONG_KIND")
    assert last_row(served).error_code == "IDENTITY_WRONG_KIND"


def test_call_agent_answers_with_text_or_its_own_errors(served):
    token = bearer(agent_token(served, "A", user_id="u1", chain=("B",)))
    asked = document("call_agent", "request_default")
    assert "What is known" in str(served.client.post("/v1/dialects/call_agent", json=asked, headers=token).json())
    again = served.client.post("/v1/dialects/call_agent", json=asked, headers=token)
    assert again.status_code == 200
    other = asked | {"message": "something else"}
    reused = served.client.post("/v1/dialects/call_agent", json=other, headers=token)
    assert "error" in reused.json()
    cycle = bearer(agent_token(served, "B", user_id="u1", chain=("researcher",)))
    assert "CycleDetected" in served.client.post("/v1/dialects/call_agent", json=asked, headers=cycle).json()["error"]
    missing = bearer(agent_token(served, "A", user_id="u1"))
    nobody = served.client.post("/v1/dialects/call_agent", json=asked | {"agent_id": "nobody"}, headers=missing)
    assert "AgentNotFound" in nobody.json()["error"]


def test_a_contextcore_handoff_is_completed_in_its_own_words(served):
    token = bearer(agent_token(served, "orchestrator", user_id="u1"))
    told = served.client.post("/v1/dialects/contextcore", json=document("contextcore", "request_create"), headers=token).json()
    assert (told["id"], told["status"]) == ("handoff-1", "completed")
    assert len(told["result_trace_id"]) == 32


def test_a_trace_goes_on_through_the_door(served):
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    token = bearer(agent_token(served, "CST", user_id="user-456", session_id="sess-789"))
    asked = document("kdap", "request_npv") | {"request_id": "traced"}
    served.client.post("/v1/dialects/kdap", json=asked, headers=token | {"traceparent": f"00-{trace_id}-b7ad6b7169203331-01"})

    async def spans():
        await served.node.flush_spans()
        return served.node.spans.trace(trace_id)

    (span,) = served.run(spans())
    assert span.parent_id == "b7ad6b7169203331"


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b'{"a": 1, "a": 2}', b"null"])
@pytest.mark.parametrize("name", ["kdap", "delegation", "call_agent", "contextcore", "sacp"])
def test_a_document_that_cannot_be_read_gets_its_dialects_error(served, name, body):
    token = bearer(agent_token(served, "CST", user_id="u1"))
    answer = served.client.post(f"/v1/dialects/{name}", content=body, headers=token | {"content-type": "application/json"})
    assert 400 <= answer.status_code < 500
    assert isinstance(answer.json(), dict)


def test_an_unknown_dialect_method_or_type_is_a_problem(served):
    token = bearer(agent_token(served, "CST", user_id="u1"))
    assert served.client.post("/v1/dialects/esperanto", json={}, headers=token).status_code == 404
    assert served.client.get("/v1/dialects/kdap", headers=token).status_code == 405
    assert served.client.post("/v1/dialects/kdap", content="x", headers=token | {"content-type": "a/b"}).status_code == 415
