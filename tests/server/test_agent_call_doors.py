"""The door for agents of other nodes: its routes and methods, and a server that is about to stop."""

from __future__ import annotations

import pytest
from outside_agents import agent_token, bearer
from threaded import served_in_thread

from comity import Agent, Node
from comity.core.access import Role
from comity.server import agent_calls
from comity.server.app import Door


def node() -> Node:
    agent = Agent("ANL")

    @agent.capability("NPV")
    async def npv() -> int:
        return 1

    return Node([agent], lag_ms=None)


@pytest.fixture(scope="module")
def served():
    with served_in_thread(node, doors=[Door(agent_calls.routes)]) as one:
        yield one


def test_a_request_of_an_agent_is_audited_under_its_route_and_each_route_names_the_method_it_takes(served):
    who = bearer(agent_token(served, "CST", user_id="user-456"))
    for method, path, allowed in (("GET", "/v1/agent-calls", "POST"), ("POST", "/v1/agent-calls/r", "DELETE")):
        answer = served.client.request(method, path, headers=who)
        assert (answer.status_code, answer.json()["code"], answer.headers["allow"]) == (405, "HTTP_METHOD_UNKNOWN", allowed)
    user = bearer(served.state.auth.signed.sign_in("ann", roles=(Role.ADMIN,), now_ms=served.state.now_ms()))
    for method, path, route in (
        ("POST", "/v1/agent-calls", "POST:/v1/agent-calls"),
        ("DELETE", "/v1/agent-calls/r", "DELETE:/v1/agent-calls/{request_id}"),
    ):
        answer = served.client.request(method, path, headers=user)
        assert answer.status_code == 403
        row = served.node.audit.rows()[-1]
        assert (row.kind, row.capability, row.user_id) == ("refused", route, "ann")


def test_a_server_that_is_about_to_stop_takes_no_call_of_an_agent(served):
    body = {"target": "ANL", "capability": "NPV", "inputs": {}, "request_id": "too-late"}
    served.state.is_draining = True
    try:
        answer = served.client.post("/v1/agent-calls", json=body, headers=bearer(agent_token(served, "CST", user_id="u")))
    finally:
        served.state.is_draining = False
    assert (answer.status_code, answer.json()["code"]) == (503, "NODE_CLOSED")
