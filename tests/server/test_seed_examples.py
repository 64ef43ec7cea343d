"""Every example of the five protocols at its HTTP door: each request is answered, and each reply comes out, as its protocol says.

The table names every file of `tests/dialects/vectors`, so an example without a row fails.
"""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from outside_agents import VECTORS, agent_token, bearer, document
from threaded import served_in_thread

from comity import Agent, Context, Node, Reply
from comity.dialects import DIALECTS
from comity.orchestrator import Orchestrator
from comity.server.app import Door
from comity.server.contextcore_doors import HANDOFFS
from comity.server.contextcore_doors import routes as contextcore_routes
from comity.server.dialect_doors import routes
from comity.testing import ScriptedModel

DELEGATION = "/.netlify/functions/chat-internal"
EMPLOYEES = ("byte-doc", "tag-ai", "crystal-analytics", "ledger-tax")
SAYING = "SAY_EXAMPLE"  # what each agent is asked for to answer with an example of its protocol
ENDS = {"completed", "failed", "timeout", "rejected", "cancelled"}
SACP = [path.stem for path in sorted((VECTORS / "sacp").glob("reply_*.json"))]


def _node() -> Node:
    """Return a node with the agents that the examples name; each answers as an example says where it is asked to."""
    analyst, writer, specialist, researcher = Agent("ANL"), Agent("DOC"), Agent("o11y"), Agent("researcher")

    @analyst.capability("ANL_NPV", version="1.0")
    async def npv(cash_flows: list[float], discount_rate: float, periods: str = "annual") -> dict[str, Any]:
        return {"npv": round(sum(cash / (1 + discount_rate) ** year for year, cash in enumerate(cash_flows)), 2)}

    @analyst.capability("ANL_PROJECTION")
    async def projection(years: int = 3) -> dict[str, Any]:
        return {"years": years}

    @analyst.capability(SAYING, version="1.0")
    async def say(example: str) -> Reply:
        return _decoded("kdap", example)

    @writer.capability("DOC_GENERATE")
    async def generate(topic: str = "", template_type: str = "", title: str = "") -> dict[str, Any]:
        return {"document": title or topic}

    @writer.capability("DOC_WAIT")
    async def wait() -> None:
        await asyncio.Event().wait()

    @specialist.capability("investigate_error")
    async def investigate(error_context: str, time_range: str, app_name: str) -> dict[str, Any]:
        return {"root_cause": "N+1 query", "evidence": ["trace"], "recommended_fix": "join"}

    @specialist.capability(SAYING)
    async def end(example: str) -> Reply:
        if example == "reply_timeout":
            await asyncio.Event().wait()
        return _decoded("contextcore", example)

    @researcher.capability("message")
    async def research(ctx: Context) -> Reply:
        is_named = ctx.request.message.startswith("reply_")
        return _decoded("call_agent", ctx.request.message) if is_named else Reply.success(f"about {ctx.request.message}")

    employees = [Agent(name) for name in EMPLOYEES]
    for employee in employees:

        @employee.capability("message")
        async def work(ctx: Context) -> Reply:
            if ctx.request.message == "reply_failed":
                await asyncio.Event().wait()
            is_named = ctx.request.message.startswith("reply_")
            return _decoded("delegation", ctx.request.message) if is_named else Reply.success("done")

    sayers = [
        Agent(f"NODE_{name}", model=ScriptedModel([_raw(name)] * 9), can_call=[], use_standard_protocol=True) for name in SACP
    ]
    return Node([Orchestrator(), analyst, writer, specialist, researcher, *employees, *sayers], lag_ms=None)


def _decoded(dialect: str, example: str) -> Reply:
    return DIALECTS[dialect].decode_reply(document(dialect, example))


def _raw(name: str) -> str:
    """Return what a model says for an example; the fallback stands for text that is no JSON."""
    example = document("sacp", name)
    return example["data"]["raw_output"] if name == "reply_fallback" else json.dumps(example)


@pytest.fixture(scope="module")
def served():
    with served_in_thread(_node, doors=[Door(routes), Door(contextcore_routes)]) as one:
        for name in SACP:
            source = f"workflow: {name.replace('_', '-')}\nnodes:\n  only: {{call: NODE_{name}/message, message: say it}}\n"
            one.loop.call_soon_threadsafe(one.node.workflows.add, source)
        yield one


def _post(served: Any, path: str, body: Any, token: str, **headers: str) -> tuple[int, Any]:
    kind = {"content-type": "text/plain" if isinstance(body, str) else "application/json"}
    content = body if isinstance(body, str) else json.dumps(body)
    answer = served.client.post(path, content=content, headers=bearer(token) | kind | headers)
    return answer.status_code, answer.json()


# --- 000: requests, responses, handoff context and intents, as JSON and as the block of the protocol ---


def _kdap_token(served: Any, agent: str = "CST", session_id: str = "sess-789") -> str:
    return agent_token(served, agent, user_id="user-456", session_id=session_id)


def kdap_request(served: Any, name: str, suffix: str) -> None:
    asked = document("kdap", name)
    token = _kdap_token(served, asked["source_agent"])
    asked_id = f"{name}-{suffix}"
    text = (VECTORS / "kdap" / f"{name}.{suffix}").read_text().replace(asked["request_id"], asked_id)
    status, told = _post(served, "/v1/dialects/kdap", text if suffix == "txt" else json.loads(text), token)
    result = {"npv": 17206.82} if name == "request_npv" else {"document": "Market Entry Analysis"}
    assert (status, told["status"], told["request_id"], told["result_json"]) == (200, "SUCCESS", asked_id, result)
    assert told["confidence_level"] in {"HIGH", "MEDIUM", "LOW", "SPECULATIVE"}


def kdap_reply(served: Any, name: str, suffix: str) -> None:
    expected = document("kdap", name)
    if name == "reply_fields":  # a timeout is the platform's to say: it comes of a request that took too long
        asked = document("kdap", "request_fields") | {"request_id": f"late-{suffix}", "timeout_ms": 50}
        asked |= {"capability_code": "DOC_WAIT", "inputs_json": {}}
        status, told = _post(served, "/v1/dialects/kdap", asked, _kdap_token(served, "ANL"))
        assert (status, told["status"], told["error_code"]) == (504, "TIMEOUT", "CALL_TIMEOUT")
        return
    asked = {
        "source_agent": "CST", "target_agent": "ANL", "capability_code": SAYING, "request_id": f"{name}-{suffix}",
        "inputs_json": {"example": name},
    }  # fmt: skip
    _, told = _post(served, "/v1/dialects/kdap", asked, _kdap_token(served))
    if name == "reply_success":
        assert told["metadata"]["capability_version"] in {1.0, "1.0"}
        assert told["metadata"]["processing_time_ms"] >= 0
    own = {"request_id", "metadata"}  # of the call that was made, measured by the node
    assert {key: told[key] for key in expected if key not in own} == {
        key: value for key, value in expected.items() if key not in own
    }


def kdap_handoff(served: Any, name: str, suffix: str) -> None:
    session = f"sess-{suffix}"
    text = (VECTORS / "kdap" / f"{name}.{suffix}").read_text().replace("sess-789", session)
    body = text if suffix == "txt" else json.loads(text)
    status, told = _post(served, "/v1/dialects/kdap", body, _kdap_token(served, session_id=session))
    assert (status, told["status"]) == (200, "SUCCESS")
    assert told["result_json"] == document("kdap", name) | {"session_id": session}


def kdap_intent(served: Any, name: str, suffix: str) -> None:
    text = (VECTORS / "kdap" / f"{name}.{suffix}").read_text()
    session = f"routed-{suffix}"
    _post(
        served, "/v1/dialects/kdap", document("kdap", "handoff_market_entry") | {"session_id": session},
        _kdap_token(served, session_id=session),
    )  # fmt: skip
    body = text if suffix == "txt" else json.loads(text)
    status, told = _post(served, "/v1/dialects/kdap", body, _kdap_token(served, session_id=session))
    assert (status, told["status"]) == (200, "SUCCESS"), told
    assert [one["name"] for one in told["result_json"]["components"]] == ["projection", "generate"]


# --- 001: delegations to each employee, the headers beside one, the three ends ---


def _prime(served: Any, **more: Any) -> str:
    return agent_token(served, "prime-boss", user_id="user-1", session_id="uuid-of-prime-session", **more)


def delegation_request(served: Any, name: str, _suffix: str) -> None:
    asked = document("delegation", name) | {"request_id": name}
    status, told = _post(served, DELEGATION, asked, _prime(served))
    if name == "request_depth_2":  # depth >= MAX_DEPTH is refused before anything runs
        assert told["status"] == "failed"
        assert status in {403, 409, 429}
        return
    assert (status, told["status"], told["result"]) == (200, "success", "done"), told
    assert (told["request_id"], told["target_employee"]) == (name, asked["target_employee"])
    assert set(told["token_usage"]) == {"prompt", "completion", "total"}


def delegation_headers(served: Any, name: str, _suffix: str) -> None:
    headers = document("delegation", name)
    asked = document("delegation", "request_simple")
    status, told = _post(served, DELEGATION, asked, _prime(served), **headers)
    assert (status, told["status"], told["request_id"]) == (200, "success", headers["X-Agent-Request-ID"])


def delegation_reply(served: Any, name: str, _suffix: str) -> None:
    expected = document("delegation", name)
    asked = document("delegation", "request_simple") | {"request_id": f"said-{name}", "input": name, "objective": name}
    asked["target_employee"] = expected["target_employee"]
    if name == "reply_failed":
        asked["constraints"] = {"deadline_ms": 50}
        # The protocol leaves the words empty that a user would read; ours say what happened.
        expected = {"target_employee": "byte-doc", "status": "failed", "error": "Delegation timeout after 50ms"}
    _, told = _post(served, DELEGATION, asked, _prime(served))
    own = {"request_id", "duration_ms", "child_session_id", "token_usage"}  # of the call that was made, measured by the node
    assert {key: told.get(key) for key in expected if key not in own} == {
        key: value for key, value in expected.items() if key not in own
    }


# --- 002: the tool's requests, the context of a nested call, its text and its errors ---


def call_agent_request(served: Any, name: str, _suffix: str) -> None:
    asked = document("call_agent", name)
    status, told = _post(served, "/v1/dialects/call_agent", asked, agent_token(served, "A", user_id="u1"))
    assert (status, told) == (200, {"text": f"about {asked['message']}"})


def call_agent_context(served: Any, name: str, _suffix: str) -> None:
    *above, caller = document("call_agent", name)["call_chain"]
    token = agent_token(served, caller, user_id="u1", chain=tuple(above))
    status, told = _post(served, "/v1/dialects/call_agent", document("call_agent", "request_default"), token)
    assert (status, "text" in told) == (200, True)
    row = [one for one in served.rows() if one.target == "researcher"][-1]
    assert row.chain.split() == document("call_agent", name)["call_chain"]


def call_agent_reply(served: Any, name: str, _suffix: str) -> None:
    expected = document("call_agent", name)
    if name == "reply_text":
        asked, token = {"agent_id": "researcher", "message": name}, agent_token(served, "A", user_id="u1")
        assert _post(served, "/v1/dialects/call_agent", asked, token) == (200, expected)
        return
    if name == "reply_cycle":
        token = agent_token(served, "B", user_id="u1", chain=("researcher",))
    else:
        token = agent_token(served, "A", user_id="u1", chain=("U", "V", "W", "X", "Y"))
    _, told = _post(served, "/v1/dialects/call_agent", document("call_agent", "request_default"), token)
    assert told["error"].partition(":")[0] == expected["error"].partition(":")[0]


# --- 003: handoffs, taken in every state that one can be read in, and their ends ---


def contextcore_request(served: Any, name: str, _suffix: str) -> None:
    asked = document("contextcore", name) | {"id": name}
    if "created_at" in asked:
        asked["created_at"] = datetime.now(UTC).isoformat()
    token = agent_token(served, "orchestrator", user_id="u1")
    _, told = _post(served, "/v1/dialects/contextcore", asked, token)
    state = asked.get("status", "pending")
    assert told["id"] == name
    if state in ENDS:  # what has ended is not done again
        assert (told["status"], told["reason"].partition(":")[0]) == ("rejected", "HANDOFF_ENDED")
    else:
        assert (told["status"], told["result"]["root_cause"]) == ("completed", "N+1 query")
        assert len(told["result_trace_id"]) == 32


def contextcore_reply(served: Any, name: str, _suffix: str) -> None:
    expected = document("contextcore", name)
    work = {"capability_id": SAYING, "to_agent": "o11y", "task": "say it", "inputs": {"example": name}, "id": name}
    if name == "reply_timeout":
        work["timeout_ms"] = 50
    token = agent_token(served, "orchestrator", user_id="u1", scope="call:*/* handoff:write records:read")
    assert _post(served, HANDOFFS, work, token)[0] == 201
    told = served.client.get(f"{HANDOFFS}/{name}", params={"wait_ms": "20000"}, headers=bearer(token)).json()
    own = {"id", "result_trace_id"}
    assert {key: told.get(key) for key in expected if key not in own} == {
        key: value for key, value in expected.items() if key not in own
    }


# --- 004: the reply of a chain ---


def sacp_reply(served: Any, name: str, _suffix: str) -> None:
    asked = {"user_id": "ann", "run_id": name}
    answer = served.client.post(f"/v1/sacp/chains/{name.replace('_', '-')}", json=asked)
    told, expected = answer.json(), document("sacp", name)
    if expected["status"] == "completed":  # it ends the chain, whose own reply is a success; its hint was for the chain
        expected |= {"status": "success"}
        del expected["next_step_hint"]
    assert (answer.status_code, told["status"]) == (200, expected["status"]), told
    assert told["message"] == expected["message"]
    if name == "reply_clarification":  # its data says how to answer
        assert told["data"]["run_id"] == name
    else:
        assert told["data"] == expected["data"]
    assert told.get("next_step_hint") == expected.get("next_step_hint")


TRIED = {
    ("kdap", "request"): kdap_request,
    ("kdap", "reply"): kdap_reply,
    ("kdap", "handoff"): kdap_handoff,
    ("kdap", "intent"): kdap_intent,
    ("delegation", "request"): delegation_request,
    ("delegation", "headers"): delegation_headers,
    ("delegation", "reply"): delegation_reply,
    ("call_agent", "request"): call_agent_request,
    ("call_agent", "context"): call_agent_context,
    ("call_agent", "reply"): call_agent_reply,
    ("contextcore", "request"): contextcore_request,
    ("contextcore", "reply"): contextcore_reply,
    ("sacp", "reply"): sacp_reply,
}
GIVEN_TO_MODELS = "call_agent/tool.json"  # a tool that a model is offered, never a document at a door
EXAMPLES = sorted(str(path.relative_to(VECTORS)) for path in VECTORS.glob("*/*"))


@pytest.mark.parametrize("name", [one for one in EXAMPLES if one != GIVEN_TO_MODELS])
def test_an_example_is_answered_at_its_door_as_its_protocol_says(served, name):
    path = VECTORS / name
    TRIED[path.parent.name, path.stem.partition("_")[0]](served, path.stem, path.suffix[1:])
