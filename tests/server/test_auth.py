"""Who sends a request: the operator, a browser that signed in, or the holder of a signed token."""

from __future__ import annotations

import pytest

from comity.core.access import Kind, Principal, Role
from comity.errors import RefusedError
from comity.server import auth, token_auth
from comity.server.auth import (
    CODE_MS,
    CODES_MAX,
    CONSOLE_MS,
    CONSOLES_MAX,
    OPERATOR,
    TOKEN_CHARS_MIN,
    Gate,
    seen_tenant,
    stored_token,
    tenant_of,
    user_of,
)
from comity.server.token_auth import PRINCIPALS_MAX, Auth

ANN = Principal(Kind.USER, "ann", "ann", "acme")
NOW_MS = 1_000_000


def refusal(function, *args, **kwargs) -> str:
    with pytest.raises(RefusedError) as caught:
        function(*args, **kwargs)
    return caught.value.code


@pytest.fixture(scope="module")
def signed() -> Auth:
    return Auth.open(None, name="here", now_ms=NOW_MS)


def test_a_token_acts_for_its_own_user_and_tenant_alone_and_the_operator_for_any():
    for function, own, usual in ((user_of, "ann", "operator"), (tenant_of, "acme", "default")):
        assert function(ANN, None) == function(ANN, own) == own
        assert refusal(function, ANN, "another") == "IDENTITY_MISMATCH"
        assert refusal(function, ANN, "") == "IDENTITY_MISMATCH"
        assert (function(OPERATOR, None), function(OPERATOR, "another")) == (usual, "another")


def test_only_the_operator_sees_the_records_of_every_tenant():
    assert (seen_tenant(OPERATOR), seen_tenant(ANN)) == (None, "acme")
    lookalike = Principal(OPERATOR.kind, OPERATOR.name, OPERATOR.user_id, OPERATOR.tenant_id, OPERATOR.rights)
    assert seen_tenant(lookalike) == "default"


def test_a_header_that_names_a_tenant_names_that_of_the_token():
    assert token_auth.tenant_of(ANN, None) == token_auth.tenant_of(ANN, "") == token_auth.tenant_of(ANN, "acme") == "acme"
    assert refusal(token_auth.tenant_of, ANN, "default") == "IDENTITY_MISMATCH"


def test_the_servers_token_is_the_operators_and_no_other_is(signed):
    gate = Gate("secret-of-the-server", signed)
    assert gate.authenticate("Bearer secret-of-the-server", NOW_MS) is OPERATOR
    for other in ("Bearer secret-of-the-serve", "secret-of-the-server", "Bearer ", "", "Basic secret-of-the-server"):
        assert refusal(gate.authenticate, other, NOW_MS).startswith("IDENTITY_")


def test_a_code_signs_a_browser_in_once_and_within_its_time(signed):
    gate = Gate("secret-of-the-server", signed)
    code, late = gate.code(NOW_MS), gate.code(NOW_MS)
    token, until = gate.exchange(code, NOW_MS + CODE_MS - 1)
    assert until == NOW_MS + CODE_MS - 1 + CONSOLE_MS
    assert gate.authenticate(f"Bearer {token}", until - 1) is OPERATOR
    assert refusal(gate.authenticate, f"Bearer {token}", until) == "IDENTITY_FORGED"
    assert refusal(gate.exchange, code, NOW_MS) == "IDENTITY_EXPIRED"
    assert refusal(gate.exchange, late, NOW_MS + CODE_MS) == "IDENTITY_EXPIRED"
    assert refusal(gate.exchange, "unknown", NOW_MS) == "IDENTITY_EXPIRED"


def test_of_too_many_codes_and_browsers_the_oldest_go(signed):
    gate = Gate("secret-of-the-server", signed)
    codes = [gate.code(NOW_MS) for _ in range(CODES_MAX + 1)]
    assert refusal(gate.exchange, codes[0], NOW_MS) == "IDENTITY_EXPIRED"
    gate.exchange(codes[1], NOW_MS)
    first, *_, last = [gate.exchange(gate.code(NOW_MS), NOW_MS)[0] for _ in range(CONSOLES_MAX)]
    assert gate.authenticate(f"Bearer {first}", NOW_MS) is OPERATOR
    gate.exchange(gate.code(NOW_MS), NOW_MS)
    assert refusal(gate.authenticate, f"Bearer {first}", NOW_MS) == "IDENTITY_FORGED"
    later_ms = NOW_MS + CONSOLE_MS
    kept, _ = gate.exchange(gate.code(later_ms), later_ms)  # the others have ended, and make room
    assert gate.authenticate(f"Bearer {kept}", later_ms) is OPERATOR
    assert refusal(gate.authenticate, f"Bearer {last}", later_ms) == "IDENTITY_FORGED"


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic abc", "token"])
def test_a_header_without_a_bearer_token_proves_nobody(signed, header):
    assert refusal(signed.authenticate, header, now_ms=NOW_MS) == "IDENTITY_REQUIRED"


def test_a_bearer_is_who_the_newest_token_under_its_id_names(signed):
    token = signed.sign_in("ann", roles=(Role.VIEWER,), now_ms=NOW_MS, tenant_id="acme")
    ann = signed.authenticate(f"bearer  {token} ", now_ms=NOW_MS)
    assert (ann.user_id, ann.tenant_id, ann.is_agent) == ("ann", "acme", False)
    assert signed.authenticate(f"Bearer {token}", now_ms=NOW_MS) is ann
    signed.bind(ann, "r1", now_ms=NOW_MS)
    signed.bind(ann, "r2", now_ms=NOW_MS)  # a user's token serves any number of requests
    assert signed.node_name == "here"


def test_of_the_bearers_that_a_server_has_seen_a_bounded_number_is_remembered(signed):
    tokens = [signed.sign_in(f"u{number}", roles=(Role.VIEWER,), now_ms=NOW_MS) for number in range(3)]
    signed._principals = {}
    signed._principals.update((str(number), None) for number in range(PRINCIPALS_MAX - 1))
    first = signed.authenticate(f"Bearer {tokens[0]}", now_ms=NOW_MS)
    assert (len(signed._principals), signed.authenticate(f"Bearer {tokens[0]}", now_ms=NOW_MS) is first) == (
        PRINCIPALS_MAX,
        True,
    )
    second = signed.authenticate(f"Bearer {tokens[1]}", now_ms=NOW_MS)
    assert (list(signed._principals.values()), second.user_id) == ([second], "u1")


def test_the_servers_token_is_made_once_for_its_owner_alone(tmp_path):
    path = auth.token_file(tmp_path / "comity.db")
    token = stored_token(path)
    assert len(token) >= TOKEN_CHARS_MIN
    assert (stored_token(path), path.stat().st_mode & 0o777) == (token, 0o600)
    assert [one.name for one in tmp_path.iterdir()] == ["comity.db.token"]
    path.write_text("x" * (TOKEN_CHARS_MIN - 1) + "\n")
    assert refusal(stored_token, path) == "IDENTITY_INVALID"
    path.write_text("x" * TOKEN_CHARS_MIN + "\n")
    assert stored_token(path) == "x" * TOKEN_CHARS_MIN
    for mode in (0o640, 0o604, 0o610, 0o601):
        path.chmod(mode)
        assert refusal(stored_token, path) == "IDENTITY_INVALID"
