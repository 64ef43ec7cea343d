"""What belongs to one tenant does not exist for another, on every route; and what each kind of token is for."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from outside_agents import agent_token, bearer
from threaded import Threaded, served_in_thread

from comity import Agent, AsyncHandoffManager, Context, Node, Reply, Tool
from comity.core.access import Role
from comity.core.access.rights import NODE_RIGHTS
from comity.core.call.limits import TIMEOUT_MS_CEILING
from comity.errors import CallerError, RefusedError, UnavailableError
from comity.server import leases
from comity.server.agent_calls import routes
from comity.server.app import Door
from comity.server.leases import Receivers
from comity.server.table import ROUTES

OWN = "own-"  # stands in what the tenant `default` has, and nowhere else
ASKS = """
workflow: asks
nodes:
  q: {ask: "Go on?", options: ["yes", "no"]}
"""


def node() -> Node:
    agent = Agent("A", tools_allowed=["pay"])

    @agent.capability("SAY")
    async def say(ctx: Context, text: str) -> Reply:
        ctx.insight("analysis", summary=f"{OWN}insight", confidence=1.0)
        return Reply.success({"text": text}, new_facts=(f"{OWN}fact: it rains",))

    @agent.capability("PAY")
    async def pay(ctx: Context, to: str = "") -> list[str]:
        return [await ctx.use_tool("pay"), to]

    @agent.capability("WAIT")
    async def wait() -> None:
        await asyncio.Event().wait()

    return Node([agent], tools=[Tool(name="pay", function=lambda: "paid", risk="high")], lag_ms=None)


def person(served: Threaded, tenant_id: str = "default", role: Role = Role.ADMIN, **more: Any) -> dict[str, str]:
    tokens, now_ms = served.state.auth.signed.tokens, served.state.now_ms()
    return bearer(tokens.for_user("ann", roles=(role,), tenant_id=tenant_id, now_ms=now_ms, **more))


def call(capability: str, **more: Any) -> dict[str, Any]:
    return {"target": "A", "capability": capability, "inputs": {}} | more


@pytest.fixture(scope="module")
def served():
    with served_in_thread(node, doors=[Door(routes)]) as one:
        ours = person(one)
        one.loop.call_soon_threadsafe(lambda: one.node.workflows.add(ASKS))

        def post(path: str, body: dict[str, Any]) -> None:
            answer = one.client.post(path, json=body, headers=ours)
            assert answer.status_code in {200, 202}, answer.text

        mail = {"inputs": {"text": "mail ann@example.com"}, "message": "mail ann@example.com"}
        post("/v1/calls", call("SAY", **mail, session_id=f"{OWN}s", request_id=f"{OWN}call"))
        post("/v1/calls", call("PAY", request_id=f"{OWN}pay"))
        post("/v1/calls?wait=false", call("WAIT", request_id=f"{OWN}wait"))
        for number in range(4):
            post("/v1/handoffs", {"capability": "look", "to_agent": "r", "handoff_id": f"{OWN}handoff{number}"})
        for name in ("run", "other"):
            post("/v1/workflows/asks/runs", {"run_id": f"{OWN}{name}"})
        yield one


def ask(served: Threaded, name: str, who: dict[str, str], body: Any = None, query: str = "", **named: str) -> tuple[int, str]:
    route = next(one for one in ROUTES if one.name == name)
    path = route.path.format(**{key: value.replace("#", "%23") for key, value in named.items()})
    answer = served.client.request(route.method, path + query, json=body, headers=who)
    return answer.status_code, answer.text


# What a list shows of the tenant `default`, in its answer to a person who may see it.
LISTS: dict[str, dict[str, Any]] = {
    "list_calls": {},
    "list_audit": {},
    "export_audit": {},
    "list_sessions": {},
    "list_approvals": {},
    "list_handoffs": {},
    "list_runs": {},
    "list_insights": {},
    "show_view": {"audience": "agent"},
    "show_memory": {"user_id": "ann"},
    "take_handoffs": {"agent_id": "r", "body": {"wait_ms": 0}},
}
# What one id names, in an order in which the last ones take away what others look at.
NAMED: dict[str, dict[str, Any]] = {
    "show_call": {"request_id": f"{OWN}call"},
    "show_tree": {"request_id": f"{OWN}call"},
    "follow_call": {"request_id": f"{OWN}call"},
    "show_session": {"session_id": f"{OWN}s"},
    "export_session": {"session_id": f"{OWN}s"},
    "reveal_value": {"session_id": f"{OWN}s", "body": {"token": "TOKEN"}},
    "show_handoff": {"handoff_id": f"{OWN}handoff1"},
    "show_run": {"run_id": f"{OWN}run"},
    "fork_run": {"run_id": f"{OWN}run", "body": {}},
    "deny_approval": {"approval_id": f"{OWN}pay#1", "body": {}},
    "grant_approval": {"approval_id": f"{OWN}pay#1", "body": {}},
    "reject_handoff": {"handoff_id": f"{OWN}handoff1", "body": {"agent_id": "r", "reason": "no"}},
    "follow_handoff": {"handoff_id": f"{OWN}handoff1"},
    "cancel_handoff": {"handoff_id": f"{OWN}handoff2", "body": {}},
    "accept_handoff": {"handoff_id": f"{OWN}handoff3", "body": {"agent_id": "r"}},
    "answer_handoff": {"handoff_id": f"{OWN}handoff3", "body": {"answer": 1}},
    "cancel_call": {"request_id": f"{OWN}wait"},
    "answer_run": {"run_id": f"{OWN}run", "body": {"question_id": "1", "answer": "yes"}},
    "answer_chain": {"run_id": f"{OWN}other", "body": {"wait_ms": 0}},
    "cancel_run": {"run_id": f"{OWN}other", "body": {}},
    "correct_memory": {"user_id": "ann", "fact_id": "m1", "body": {"text": "it snows"}},
    "forget_memory": {"user_id": "ann", "fact_id": "m1"},
    "erase_memory": {"user_id": "ann"},
    "erase_session": {"session_id": f"{OWN}s"},
}
# What makes something new in the sender's own tenant, works under a lease that only its holder knows, or is of the whole node.
OTHERS = frozenset(
    {
        *("health", "ready", "metrics", "openapi", "sign_in", "me", "create_call", "rehearse_call", "create_handoff"),
        *("start_run", "run_chain", "list_workflows", "check_workflow", "list_breakers", "reset_breaker", "list_agents"),
        *("show_agent", "verify_audit", "follow_verification", "show_system", "list_keys", "revoke_token", "answer_question"),
        *("show_guidance", "put_guidance", "preview_guidance", "beat_handoff", "progress_handoff", "ask_handoff"),
        *("complete_handoff", "fail_handoff", "release_handoff", "count_calls", "show_map", "follow_node", "watch_handoffs"),
    }
)


def test_every_route_is_decided_upon():
    names = {one.name for one in ROUTES}
    assert len(names) == len(ROUTES) == len(LISTS) + len(NAMED) + len(OTHERS)
    assert {*LISTS, *NAMED, *OTHERS} == names


@pytest.mark.parametrize("name", LISTS)
def test_a_list_shows_a_person_the_own_tenant_alone(served, name):
    theirs = ask(served, name, person(served, "acme"), **LISTS[name])
    ours = ask(served, name, person(served), **LISTS[name])
    assert (theirs[0], ours[0]) == (200, 200)
    assert (OWN in theirs[1], OWN in ours[1]) == (False, True)


def test_what_an_id_of_another_tenant_names_is_answered_as_if_there_were_none(served):
    _, shown = ask(served, "show_session", person(served), session_id=f"{OWN}s")
    token = "[[" + shown.split("[[")[1].split("]]")[0] + "]]"
    for name, asked in NAMED.items():
        if name == "reveal_value":
            asked["body"]["token"] = token
        unknown = {key: "none" if key != "body" else value for key, value in asked.items()}
        theirs = ask(served, name, person(served, "acme"), **asked)
        nothing = ask(served, name, person(served, "acme"), **unknown)
        ours = ask(served, name, person(served), **asked)
        assert ours[0] in {200, 409}, (name, ours)  # it is there, whatever state it is in by now
        for key in asked.keys() - {"body"}:
            theirs = (theirs[0], theirs[1].replace(asked[key], "none"))
        assert theirs == nothing != ours, name


def test_a_tree_shows_nothing_of_a_tenant_that_asked_under_its_id(served):
    asked = call("SAY", inputs={"text": "x"}, request_id=f"{OWN}kept")
    assert served.client.post("/v1/calls", json=asked, headers=person(served)).status_code == 200
    for path, body in (("/v1/calls", asked), ("/v1/workflows/asks/runs", {"run_id": f"{OWN}kept"})):
        assert "IDENTITY_REQUEST_ID_REUSED" in served.client.post(path, json=body, headers=person(served, "acme")).text
    status, told = ask(served, "show_tree", person(served), request_id=f"{OWN}kept")
    assert (status, "acme" in told) == (200, False)


def test_who_decides_the_own_question_sees_the_reply_in_clear_in_every_tenant(served):
    theirs = person(served, "acme")
    body = call("PAY", inputs={"to": "ann@example.com"}, request_id="acme-pay", session_id="acme-s")
    assert served.client.post("/v1/calls", json=body, headers=theirs).json()["status"] == "needs_input"
    status, told = ask(served, "grant_approval", theirs, body={}, approval_id="acme-pay#1")
    assert (status, '["paid","ann@example.com"]' in told) == (200, True)


def test_a_lease_is_good_in_its_own_tenant_and_for_its_own_agent_alone(served):
    made = {"capability": "look", "to_agent": "lessee", "handoff_id": "leased"}
    served.client.post("/v1/handoffs", json=made, headers=person(served))
    _, taken = ask(served, "accept_handoff", person(served), handoff_id="leased", body={"agent_id": "lessee"})
    body = {"lease": json.loads(taken)["lease"]}
    other, own = (bearer(agent_token(served, name, user_id="ann", scope="handoff:write")) for name in ("other", "lessee"))
    for who in (person(served, "acme"), other):
        status, told = ask(served, "complete_handoff", who, handoff_id="leased", body=body | {"result": 1})
        assert (status, "HANDOFF_LEASE_LOST" in told) == (409, True)
    assert ask(served, "complete_handoff", own, handoff_id="leased", body=body | {"result": 1})[0] == 200


def test_a_decision_of_the_operator_is_told_to_the_tenant_of_the_question_alone(served):
    body = call("PAY", request_id="told-pay", session_id="told-s")
    assert served.client.post("/v1/calls", json=body, headers=person(served, "acme")).json()["status"] == "needs_input"
    before = served.state.live.seq
    assert ask(served, "grant_approval", {}, body={}, approval_id="told-pay#1")[0] == 200
    told = [one.tenant_id for one in served.state.live.since(before) if one.topic == "approval"]
    assert told == ["acme"]


NODE_WIDE: dict[str, dict[str, Any]] = {
    "put_guidance": {"body": {"source": ""}},
    "answer_question": {"question_id": "q", "body": {"answer": "yes"}},
    "reset_breaker": {"body": {"agent": "A", "capability": "SAY"}},
}


def test_what_changes_the_node_for_all_tenants_is_its_operators_right_alone(served):
    assert {one.name for one in ROUTES if one.right in NODE_RIGHTS} == set(NODE_WIDE)
    for name, asked in NODE_WIDE.items():
        for role in Role:
            status, told = ask(served, name, person(served, role=role), **asked)
            assert (status, "RIGHTS_MISSING" in told, "server's operator" in told) == (403, True, True), (name, role)
        assert ask(served, name, {}, **asked)[0] == 404, name  # the operator is let in; this node has no such thing


# --- what a token is for ---


def code_of(answer: Any) -> str | None:
    return answer.json().get("code") or (answer.json().get("error") or {}).get("code")


@pytest.mark.parametrize("path", ["/v1/calls", "/v1/calls/rehearsal"])
def test_a_users_token_with_a_scope_makes_the_calls_that_its_scope_names(served, path):
    narrow = person(served, role=Role.OPERATOR, scope="calls:create call:A/SAY")
    said = served.client.post(path, json=call("SAY", inputs={"text": "hi"}), headers=narrow)
    paid = served.client.post(path, json=call("PAY"), headers=narrow)
    assert (said.status_code, paid.status_code, code_of(paid)) == (200, 403, "RIGHTS_SCOPE_EXCEEDED")


def test_an_agents_token_makes_the_calls_that_its_scope_names_within_its_time_and_only_its_user_cancels_them(served):
    def agent(user_id: str = "ann", scope: str = "call:A/WAIT call:A/SAY", **more: Any) -> dict[str, str]:
        return bearer(agent_token(served, "B", user_id=user_id, scope=scope, **more))

    def make(capability: str, request_id: str, who: dict[str, str], **more: Any) -> Any:
        return served.client.post("/v1/agent-calls", json=call(capability, request_id=request_id, **more), headers=who)

    assert code_of(make("PAY", "beyond", agent())) == "RIGHTS_SCOPE_EXCEEDED"
    patient = make("SAY", "patient", agent(), inputs={"text": "hi"}, timeout_ms=TIMEOUT_MS_CEILING + 1)
    assert patient.json()["data"] == {"text": "hi"}
    mine = agent(req="wait")
    with served.client.stream(
        "POST", "/v1/agent-calls", json=call("WAIT", request_id="wait"), headers=mine | {"accept": "text/event-stream"}
    ) as events:
        assert any("queued" in line for line in events.iter_lines())
        used = agent(req="another")
        for who, code in ((agent("bob"), "HTTP_RESOURCE_UNKNOWN"), (used, "IDENTITY_TOKEN_REUSED")):
            assert code_of(served.client.delete("/v1/agent-calls/wait", headers=who)) == code
        assert served.client.delete("/v1/agent-calls/wait", headers=mine).json()["cancelled"] is True


def test_a_time_that_no_call_may_have_is_refused_and_the_longest_is_not(served):
    for timeout_ms, status in ((TIMEOUT_MS_CEILING, 200), (TIMEOUT_MS_CEILING + 1, 422), (-1, 422)):
        body = call("SAY", inputs={"text": "hi"}, timeout_ms=timeout_ms)
        assert served.client.post("/v1/calls", json=body, headers=person(served)).status_code == status


def test_an_agent_receives_under_its_own_name_alone(served):
    token = bearer(agent_token(served, "r", user_id="ann", scope="handoff:write"))
    assert served.client.post("/v1/receivers/r/take", json={"wait_ms": 0}, headers=token).status_code == 200
    for path, body in (("/v1/receivers/x/take", {"wait_ms": 0}), ("/v1/handoffs/h/accept", {"agent_id": "x"})):
        assert code_of(served.client.post(path, json=body, headers=token)) == "IDENTITY_MISMATCH"


def test_who_may_only_read_sees_neither_what_is_remembered_nor_what_handoffs_hold_in_a_list(served):
    made = {"capability": "look", "to_agent": "q", "inputs": {"to": "bob"}, "handoff_id": "h1"}
    served.client.post("/v1/handoffs", json=made, headers=person(served))
    body = call("SAY", inputs={"text": "hi"}, session_id="t")
    served.client.post("/v1/calls", json=body, headers=person(served))
    reads, reveals = person(served, role=Role.VIEWER), person(served)
    seen = [served.client.get("/v1/sessions/t", headers=who).json()["memory"] for who in (reads, reveals)]
    assert seen == [[], [f"{OWN}fact: it rains"]]
    listed = served.client.get("/v1/handoffs?target=q", headers=reads).json()["items"]
    assert [one["inputs"] for one in listed] == [None]
    assert served.client.get("/v1/handoffs/h1", headers=reads).json()["inputs"] == {"to": "bob"}


async def test_a_handoff_that_is_held_anew_is_its_new_holders_until_that_one_falls_silent(make_node):
    async with make_node() as node:
        receivers, manager = Receivers(node), AsyncHandoffManager("p", "boss", node=node)
        made = await manager.create_handoff("r", "look")
        receiver = receivers.receiver("default", "r", ())
        (handoff,) = await receiver.take()
        old = receivers.hold(handoff, receiver, 1_000, 0)
        new = receivers.hold(handoff, receiver, 5_000, 0)
        await asyncio.sleep(2)
        receivers.drop(old)
        assert receivers.held(made, new.id) is new
        with pytest.raises(RefusedError, match="has ended"):
            receivers.held(made, old.id)
        assert node.handoffs.get(made).holder
        await asyncio.sleep(4)
        assert node.handoffs.get(made).is_free
        with pytest.raises(RefusedError, match="has ended"):
            receivers.held(made, new.id)


async def test_a_server_stands_in_for_a_bounded_number_of_receivers_and_handoffs(make_node, monkeypatch):
    monkeypatch.setattr(leases, "RECEIVERS_MAX", 2)
    monkeypatch.setattr(leases, "HELD_MAX", 1)
    async with make_node() as node:
        receivers, manager = Receivers(node), AsyncHandoffManager("p", "boss", node=node)
        with pytest.raises(CallerError, match="agent_id"):
            receivers.receiver("default", "", ())
        first = receivers.receiver("default", "r", ("look", "a", "look"))
        assert receivers.receiver("default", "r", ("a", "look")) is first
        assert receivers.receiver("evil", "r", ("a", "look")) is not first
        with pytest.raises(UnavailableError, match="stands in for 2 receivers"):
            receivers.receiver("default", "s", ())
        for _ in range(2):
            await manager.create_handoff("r", "look")
        one, two = await first.take(2)
        receivers.hold(one, first, 1_000, 0)
        with pytest.raises(UnavailableError, match="holds 1 handoffs"):
            receivers.hold(two, first, 1_000, 0)
        receivers.close()
        with pytest.raises(RefusedError, match="has ended"):
            receivers.held(one.id, "any")


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("POST", "/v1/tokens/revoke", {"token": "two words"}, "INPUT_VALIDATION_FAILED"),
        ("POST", "/v1/tokens/revoke", {"token": "a.~.c"}, ""),  # no token, so it is the id of one
        ("GET", "/v1/agent-calls", None, "HTTP_METHOD_UNKNOWN"),
        ("GET", "/v1/agent-calls/r", None, "HTTP_METHOD_UNKNOWN"),
    ],
)
def test_a_request_that_cannot_be_served_is_refused_for_what_is_wrong_with_it(served, method, path, body, code):
    answer = served.client.request(method, path, json=body)
    assert answer.json().get("code", "") == code


def test_the_keys_by_which_others_check_the_nodes_tokens_are_public_ones(served):
    (key,) = served.client.get("/.well-known/jwks.json").json()["keys"]
    assert (key["kty"], "d" in key) == ("OKP", False)
    assert key["kid"] == served.client.get("/v1/keys").json()["keys"][0]["id"]
