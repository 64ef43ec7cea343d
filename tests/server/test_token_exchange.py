"""Token exchange: what comes out is within what was shown, once."""

from __future__ import annotations

import pytest
from outside_agents import agent_token, bearer, document, node
from threaded import served_in_thread

from comity.core.access import Left, Role, Standing
from comity.core.access.claims import AGENT_LIFE_S_MAX
from comity.engines.keys import KeyRing, Tokens
from comity.server.app import Door
from comity.server.dialect_doors import routes as dialects
from comity.server.token_exchange import GRANT, PATH, routes

NPV = document("kdap", "request_npv")


@pytest.fixture(scope="module")
def served():
    with served_in_thread(node, doors=[Door(routes), Door(dialects)]) as one:
        yield one


def token(served, **more):
    return bearer(agent_token(served, "CST", user_id="user-456", session_id="sess-789", **more))


def exchange(served, headers, **form):
    return served.client.post(PATH, data={"grant_type": GRANT} | form, headers=headers)


def claims_of(served, answer):
    tokens = served.state.auth.signed.tokens
    return tokens.verify(answer.json()["access_token"], now_ms=served.state.now_ms())


def test_a_token_can_be_exchanged_for_less_and_the_less_holds(served):
    answer = exchange(served, token(served), scope="call:ANL/ANL_NPV", calls="1", depth="99", request_id="r-1")
    assert (answer.status_code, answer.json()["token_type"], answer.json()["scope"]) == (200, "Bearer", "call:ANL/ANL_NPV")
    claims = claims_of(served, answer)
    assert (claims.scope, claims.cty.left.calls, claims.cty.left.depth, claims.cty.req) == ("call:ANL/ANL_NPV", 1, 3, "r-1")
    headers = bearer(answer.json()["access_token"])
    done = served.client.post("/v1/dialects/kdap", json=NPV | {"request_id": "r-1"}, headers=headers)
    assert done.json()["status"] == "SUCCESS"


def test_what_comes_out_ends_with_the_token_that_was_shown(served):
    now_ms = served.state.now_ms()
    mine = token(served, left={"deadline": now_ms + 2_000 * AGENT_LIFE_S_MAX})
    answer = exchange(served, mine)
    shown = served.state.auth.signed.tokens.verify(mine["authorization"].split()[1], now_ms=now_ms)
    assert claims_of(served, answer).cty.left.deadline == shown.exp * 1000
    assert answer.json()["expires_in"] <= AGENT_LIFE_S_MAX


def test_a_token_of_a_trusted_node_is_exchanged_where_it_was_made(served):
    ring, now_ms = served.state.auth.signed.tokens.ring, served.state.now_ms()
    there = Tokens(KeyRing(None, issuer="there", now_ms=now_ms))
    ring.trust("there", there.ring.jwks(), tenants=("default",), now_ms=now_ms)
    left = Left(deadline=now_ms + 60_000, calls=5, depth=2, fan_out=3)
    theirs = there.for_agent(
        "CST",
        audience=ring.issuer,
        user_id="u",
        standing=Standing(chain=("CST::there",), left=left),
        scope="call:ANL/*",
        now_ms=now_ms,
    )
    answer = exchange(served, bearer(theirs))
    assert (answer.status_code, answer.json()["code"]) == (403, "IDENTITY_WRONG_KIND")


def test_a_scope_cannot_grow(served):
    answer = exchange(served, token(served, scope="call:ANL/*"), scope="call:*/*")
    assert (answer.status_code, answer.json()["code"]) == (403, "RIGHTS_SCOPE_EXCEEDED")
    assert served.rows()[-1].error_code == "RIGHTS_SCOPE_EXCEEDED"


def test_a_token_is_exchanged_once_and_not_used_besides(served):
    mine = token(served)
    assert exchange(served, mine, calls="1").status_code == 200
    assert exchange(served, mine, calls="2").json()["code"] == "IDENTITY_TOKEN_REUSED"
    used = served.client.post("/v1/dialects/kdap", json=NPV | {"request_id": "r-2"}, headers=mine)
    assert used.json()["error_code"] == "IDENTITY_TOKEN_REUSED"


def test_a_user_has_nothing_to_exchange_and_a_bad_form_is_refused(served):
    state = served.state
    user = bearer(state.auth.signed.sign_in("u", roles=(Role.ADMIN,), now_ms=state.now_ms()))
    assert exchange(served, user).json()["code"] == "IDENTITY_WRONG_KIND"
    assert exchange(served, token(served), grant_type="password").status_code == 400
    assert exchange(served, token(served), calls="-1").status_code == 400
    assert served.client.post(PATH, json={}, headers=token(served)).status_code == 415
    assert served.client.get(PATH, headers=token(served)).status_code == 405


def test_a_token_for_another_node_is_for_that_node_alone(served):
    answer = exchange(served, token(served), audience="node-b")
    with pytest.raises(Exception, match="node-b"):
        claims_of(served, answer)
