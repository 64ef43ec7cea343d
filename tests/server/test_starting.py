"""What a token's scope, its one use and its budget allow is the same at every door that starts work."""

from __future__ import annotations

from typing import Any

import pytest
from outside_agents import agent_token, bearer
from threaded import Threaded, served_in_thread

from comity import Agent, Node
from comity.core.access import Role
from comity.server import agent_calls, contextcore_doors, dialect_doors
from comity.server.app import Door

RIGHTS = "calls:create handoffs:write workflows:run records:read"
WORKFLOWS = (
    "workflow: says\nnodes:\n  x: {call: A/SAY}\n",
    "workflow: wires\nnodes:\n  x: {call: B/WIRE}\n",
    "workflow: has_part\nnodes:\n  x: {run: wires}\n",
    "workflow: takes_back\nnodes:\n  x: {call: A/SAY, undo: {call: B/WIRE}}\n",
)


def node() -> Node:
    ours, theirs = Agent("A", takes_handoffs=True), Agent("B", takes_handoffs=True)

    @ours.capability("SAY")
    async def say() -> dict[str, str]:
        return {}

    @theirs.capability("WIRE")
    async def wire() -> dict[str, str]:
        return {}

    return Node([ours, theirs], lag_ms=None)


@pytest.fixture(scope="module")
def served():
    doors = [Door(one.routes) for one in (agent_calls, contextcore_doors, dialect_doors)]
    with served_in_thread(node, doors=doors) as one:

        async def add() -> None:
            for source in WORKFLOWS:
                one.node.workflows.add(source)

        one.run(add())
        yield one


def user(served: Threaded, scope: str) -> dict[str, str]:
    tokens, now_ms = served.state.auth.signed.tokens, served.state.now_ms()
    return bearer(tokens.for_user("ann", roles=(Role.OPERATOR,), now_ms=now_ms, scope=scope))


def agent(served: Threaded, scope: str, **more: Any) -> dict[str, str]:
    return bearer(agent_token(served, "C", user_id="ann", scope=f"{scope} handoff:write records:read", **more))


def contextcore(target: str, capability: str) -> dict[str, Any]:
    asked = {"id": f"doc-{target}", "from_agent": "user", "to_agent": target, "capability_id": capability, "task": "t"}
    return asked | {"inputs": {}, "expected_output": {"type": "json", "fields": []}, "priority": "normal", "timeout_ms": 5_000}


# Each door, and how work of an agent's capability is asked for there.
DOORS: dict[str, Any] = {
    "/v1/calls": lambda target, capability: {"target": target, "capability": capability},
    "/v1/calls?wait=false": lambda target, capability: {"target": target, "capability": capability},
    "/v1/calls/rehearsal": lambda target, capability: {"target": target, "capability": capability},
    "/v1/handoffs": lambda target, capability: {"to_agent": target, "capability": capability},
    contextcore_doors.HANDOFFS: lambda target, capability: {"to_agent": target, "capability_id": capability},
    "/v1/dialects/contextcore": lambda target, capability: contextcore(target, capability) | {"status": "pending"},
}


def is_beyond_scope(answer: Any) -> bool:
    return answer.status_code == 403 and "RIGHTS_SCOPE_EXCEEDED" in answer.text


@pytest.mark.parametrize("path", DOORS)
def test_a_users_token_starts_what_its_scope_names_at_every_door(served, path):
    narrow, wide = user(served, f"call:A/SAY {RIGHTS}"), user(served, f"call:*/* {RIGHTS}")
    assert is_beyond_scope(served.client.post(path, json=DOORS[path]("B", "WIRE"), headers=narrow))
    for who, target, capability in ((narrow, "A", "SAY"), (wide, "B", "WIRE")):
        answer = served.client.post(path, json=DOORS[path](target, capability), headers=who)
        assert answer.status_code < 300, answer.text


@pytest.mark.parametrize("path", ["/v1/handoffs", contextcore_doors.HANDOFFS])
def test_work_for_any_agent_needs_a_scope_for_any_agent(served, path):
    name = "capability" if path == "/v1/handoffs" else "capability_id"
    assert is_beyond_scope(served.client.post(path, json={name: "SAY"}, headers=user(served, f"call:A/SAY {RIGHTS}")))
    assert served.client.post(path, json={name: "SAY"}, headers=user(served, f"call:*/SAY {RIGHTS}")).status_code < 300


@pytest.mark.parametrize("path", ["/v1/workflows/{}/runs", "/v1/sacp/chains/{}"])
def test_a_run_is_started_if_every_call_of_it_and_of_its_parts_is_within_the_scope(served, path):
    narrow, wide = user(served, f"call:A/SAY {RIGHTS}"), user(served, f"call:A/SAY call:B/WIRE {RIGHTS}")
    for name in ("wires", "has_part", "takes_back"):
        assert is_beyond_scope(served.client.post(path.format(name), json={}, headers=narrow)), name
        assert served.client.post(path.format(name), json={}, headers=wide).status_code == 200, name
    assert served.client.post(path.format("says"), json={}, headers=narrow).status_code == 200


def test_a_run_is_forked_if_its_calls_are_within_the_scope(served):
    wide, narrow = user(served, f"call:*/* {RIGHTS}"), user(served, f"call:A/SAY {RIGHTS}")
    served.client.post("/v1/sacp/chains/wires", json={"run_id": "wired"}, headers=wide)
    assert is_beyond_scope(served.client.post("/v1/runs/wired/fork", json={}, headers=narrow))
    assert served.client.post("/v1/runs/wired/fork", json={}, headers=wide).status_code == 200


@pytest.mark.parametrize("path", ["/v1/handoffs", contextcore_doors.HANDOFFS])
def test_an_agents_token_hands_off_once_within_its_scope_its_chain_and_its_budget(served, path):
    id_field = "handoff_id" if path == "/v1/handoffs" else "id"

    def hand_off(who: dict[str, str], target: str, capability: str, **more: Any) -> Any:
        return served.client.post(path, json=DOORS[path](target, capability) | more, headers=who)

    assert is_beyond_scope(hand_off(agent(served, "call:A/SAY"), "B", "WIRE"))
    who = agent(served, "call:FAR/*", chain=("TOP",), left={"calls": 3, "depth": 1})
    made = hand_off(who, "FAR", "look", **{id_field: f"once{len(path)}"})
    again = hand_off(who, "FAR", "look", **{id_field: f"twice{len(path)}"})
    assert made.status_code < 300, made.text
    assert (again.status_code, again.json()["code"]) == (401, "IDENTITY_TOKEN_REUSED")

    async def stored(handoff_id: str) -> Any:
        return served.node.handoffs.get(handoff_id).request

    request = served.run(stored(f"once{len(path)}"))
    assert (request.source, request.chain) == ("C", ("TOP", "C"))
    assert (request.limits.calls_max, request.limits.depth_max) == (3, 3)
    assert request.deadline_at <= served.state.now_ms() + 60_000
    unnamed = agent(served, "call:FAR/*")
    first, second = (hand_off(unnamed, "FAR", "look").json()["id"] for _ in range(2))
    assert first == second  # known by the token: a retry


def test_an_agent_hands_off_in_the_session_of_its_token(served):
    who = agent(served, "call:FAR/*", session_id="mine")
    body = {"to_agent": "FAR", "capability": "look"}
    assert served.client.post("/v1/handoffs", json=body | {"session_id": "other"}, headers=who).status_code == 403
    assert served.client.post("/v1/handoffs", json=body, headers=who).json()["session_id"] == "mine"
