"""Who sees in clear what a user said: that user, and people of the same tenant with `data:reveal`; on every route that shows it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace
from outside_agents import agent_token, bearer
from threaded import Threaded, served_in_thread

from comity import Agent, Context, Node, Reply
from comity.core.access import Role
from comity.core.envelope.envelope import encode
from comity.server.app import Door
from comity.server.contextcore_doors import HANDOFFS, routes
from comity.server.sight import reply_as_stored

MAIL = "ann@example.com"
ASKS = """
workflow: asks
nodes:
  x: {call: A/SAY, input: {text: "{{input.text}}"}}
  q: {ask: "Go on?", after: [x]}
output: {text: "{{x.data.text}}"}
"""


def node() -> Node:
    agent = Agent("A")

    @agent.capability("SAY")
    async def say(ctx: Context, text: str) -> dict[str, str]:
        ctx.progress({"so far": text})
        return {"text": text}

    return Node([agent], lag_ms=None)


def person(served: Threaded, user_id: str, role: Role, tenant_id: str = "acme") -> dict[str, str]:
    tokens, now_ms = served.state.auth.signed.tokens, served.state.now_ms()
    return bearer(tokens.for_user(user_id, roles=(role,), tenant_id=tenant_id, now_ms=now_ms))


# Who asks about what ann of acme said, and whether it is shown in clear.
ASKERS: dict[str, bool] = {"ann": True, "admin": True, "bob": False, "agent": False}


def asker(served: Threaded, name: str) -> dict[str, str]:
    if name == "agent":
        scope = "records:read handoff:write call:*/*"
        return bearer(agent_token(served, "B", user_id="ann", tenant_id="acme", scope=scope))
    return person(served, name, Role.ADMIN if name == "admin" else Role.OPERATOR)


@pytest.fixture(scope="module")
def served():
    with served_in_thread(node, doors=[Door(routes)]) as one:
        one.loop.call_soon_threadsafe(lambda: one.node.workflows.add(ASKS))
        yield one


def post(served: Threaded, path: str, who: dict[str, str], body: Any = None) -> str:
    answer = served.client.post(path, json={} if body is None else body, headers=who)
    assert answer.status_code < 300, (path, answer.text)
    return answer.text


def call(served: Threaded, request_id: str, who: dict[str, str], text: str = f"mail {MAIL}") -> None:
    body = {"target": "A", "capability": "SAY", "inputs": {"text": text}, "request_id": request_id}
    post(served, "/v1/calls?wait=false", who, body)


def hand_off(served: Threaded, handoff_id: str) -> str:
    """Hand off for ann, and take it; return the lease."""
    ann, receiver = asker(served, "ann"), person(served, "far", Role.OPERATOR)
    body = {"capability": "X", "to_agent": "FAR", "task": f"mail {MAIL}", "inputs": {"text": MAIL}, "handoff_id": handoff_id}
    post(served, "/v1/handoffs", ann, body)
    taken = post(served, f"/v1/handoffs/{handoff_id}/accept", receiver, {"agent_id": "FAR", "capabilities": ["X"]})
    lease = str(json.loads(taken)["lease"])
    post(served, f"/v1/handoffs/{handoff_id}/progress", receiver, {"lease": lease, "data": {"to": "zoe@example.com"}})
    return lease


def follow_call(served: Threaded, name: str, who: dict[str, str]) -> str:
    call(served, f"c-{name}", asker(served, "ann"))
    told = served.client.get(f"/v1/calls/c-{name}/events", headers=who).text
    assert "event: progress" in told
    return told


def cancel_handoff(served: Threaded, name: str, who: dict[str, str]) -> str:
    hand_off(served, f"hc-{name}")
    return post(served, f"/v1/handoffs/hc-{name}/cancel", who, {"reason": "no"})


def answer_handoff(served: Threaded, name: str, who: dict[str, str]) -> str:
    lease, receiver = hand_off(served, f"ha-{name}"), person(served, "far", Role.OPERATOR)
    post(served, f"/v1/handoffs/ha-{name}/ask", receiver, {"lease": lease, "question": "Sure?", "wait_ms": 0})
    return post(served, f"/v1/handoffs/ha-{name}/answer", who, {"answer": f"yes, {MAIL}"})


def follow_handoff(served: Threaded, name: str, who: dict[str, str]) -> str:
    lease, receiver = hand_off(served, f"hf-{name}"), person(served, "far", Role.OPERATOR)
    post(served, f"/v1/handoffs/hf-{name}/complete", receiver, {"lease": lease, "result": {}})
    return served.client.get(f"/v1/handoffs/hf-{name}/events", headers=who).text


def answer_chain(served: Threaded, name: str, who: dict[str, str]) -> str:
    body = {"input": {"text": MAIL}, "run_id": f"r-{name}"}
    asked = post(served, "/v1/sacp/chains/asks", asker(served, "ann"), body)
    assert "clarification_needed" in asked
    return post(served, f"/v1/sacp/runs/r-{name}", who, {"answer": "ok"})


LOOKS = [
    (look, name)
    for look in (follow_call, cancel_handoff, answer_handoff, follow_handoff, answer_chain)
    for name in ASKERS
    if not (name == "agent" and look is answer_chain)  # an agent's token runs no workflow
]


@pytest.mark.parametrize(("look", "name"), LOOKS)
def test_what_a_user_said_is_in_clear_for_that_user_and_for_people_who_may_reveal_it(served, look, name):
    told = look(served, name, asker(served, name))
    assert ("@example.com" in told) is ASKERS[name]


@pytest.mark.parametrize("path", ["/v1/handoffs", HANDOFFS])
def test_an_agent_that_hands_off_gets_no_value_for_a_token_of_its_users_session(served, path):
    said = {"target": "A", "capability": "SAY", "inputs": {"text": MAIL}, "session_id": "s", "request_id": f"said{len(path)}"}
    post(served, "/v1/calls", asker(served, "ann"), said)
    hidden = served.client.get(f"/v1/calls/said{len(path)}", headers=asker(served, "ann")).json()["reply"]["data"]["text"]
    body: dict[str, Any] = {"to_agent": "FAR", "task": "look", "inputs": {"text": hidden}}
    scope = "handoff:write call:*/*"
    who = bearer(agent_token(served, "B", user_id="ann", tenant_id="acme", session_id="s", scope=scope))
    told = post(served, path, who, body | {"capability" if path == "/v1/handoffs" else "capability_id": "X"})
    assert (hidden in told, MAIL in told) == (True, False)


# --- calls that were left to run, and erased ---


def test_events_of_an_erased_call_are_gone_for_the_next_call_under_its_id(served):
    ann, eve = asker(served, "ann"), person(served, "eve", Role.ADMIN, "evil")
    for who in (eve, ann):  # a person of another tenant, and the user who said it
        call(served, "again", ann)
        assert MAIL in served.client.get("/v1/calls/again/events", headers=ann).text
        served.run(served.node.erase_session("again", tenant_id="acme"))  # not over HTTP: the server is not told
        body = {"target": "A", "capability": "SAY", "inputs": {"text": "other"}, "request_id": "again"}
        post(served, "/v1/calls", who, body)
        told = served.client.get("/v1/calls/again/events", headers=who).text
        assert ("other" in told, "mail" in told, "progress" in told) == (True, False, False)
        served.run(served.node.erase_session("again", tenant_id="evil" if who is eve else "acme"))


def test_erasing_a_session_over_http_drops_the_events_of_its_calls(served):
    ann = asker(served, "ann")
    call(served, "dropped", ann)
    assert MAIL in served.client.get("/v1/calls/dropped/events", headers=ann).text
    assert "dropped" in served.state.handles
    served.client.delete("/v1/sessions/dropped", headers=asker(served, "admin"))
    assert "dropped" not in served.state.handles
    assert served.client.get("/v1/calls/dropped/events", headers=ann).status_code == 404


@pytest.mark.parametrize(
    "ended", [Reply.success({"to": MAIL}), Reply.partial({}, warnings=[MAIL]), Reply.failure(MAIL)], ids=str
)
def test_the_end_of_a_call_that_is_erased_while_it_is_followed_is_told_without_content(served, ended):
    """Dies where the reply that stands for an erased one lacks what its status asks for, such as a confidence or an error."""
    told = served.run(reply_as_stored(served.state, "gone", replace(ended, request_id="gone")))
    assert (told.status, told.request_id, MAIL in encode(told).decode()) == (ended.status, "gone", False)
    assert (told.error and told.error.code) == (ended.error and ended.error.code)
