"""The one table of roles, and who has which right because of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from comity.core.access import RIGHTS_OF, Claims, Kind, Principal, Right, Role, Scope
from comity.core.access.principal import rights_of
from comity.core.access.rights import AGENT_RIGHTS
from comity.errors import RefusedError


def user(*roles):
    return Principal(Kind.USER, "ann", "ann", "default", rights_of(roles))


def test_every_role_has_a_row_and_nobody_reads_less_than_a_viewer():
    assert set(RIGHTS_OF) == set(Role)
    assert all(RIGHTS_OF[Role.VIEWER] <= rights for rights in RIGHTS_OF.values())


def test_a_viewer_changes_nothing():
    assert {right for right in RIGHTS_OF[Role.VIEWER] if not right.endswith(":read")} == set()


def test_who_works_does_not_approve_and_who_approves_does_not_work():
    assert Right.APPROVALS_DECIDE not in RIGHTS_OF[Role.OPERATOR]
    assert Right.CALLS_CREATE not in RIGHTS_OF[Role.APPROVER]


@pytest.mark.parametrize("right", [Right.TOKENS_MANAGE, Right.DATA_ERASE, Right.DATA_REVEAL, Right.STORE_MANAGE])
def test_only_an_administrator_may(right):
    assert [role for role in Role if right in RIGHTS_OF[role]] == [Role.ADMIN]


def test_several_roles_add_up_and_a_missing_right_is_refused_by_name():
    both = user(Role.OPERATOR, Role.APPROVER)
    both.check(Right.CALLS_CREATE)
    both.check(Right.APPROVALS_DECIDE)
    with pytest.raises(RefusedError, match="tokens:manage") as caught:
        both.check(Right.TOKENS_MANAGE)
    assert caught.value.code == "RIGHTS_MISSING"


def test_an_agent_is_no_user_and_a_user_no_agent():
    agent = Principal(Kind.AGENT, "CST", "ann", "default", scope=Scope.of("call:ANL/*"))
    agent.check_agent()
    agent.check_call("ANL/key", "ANL_NPV")
    for check in (agent.check_user, user(Role.ADMIN).check_agent):
        with pytest.raises(RefusedError) as caught:
            check()
        assert caught.value.code == "IDENTITY_WRONG_KIND"
    with pytest.raises(RefusedError) as caught:
        agent.check_call("DOC", "DOC_GENERATE")
    assert caught.value.code == "RIGHTS_SCOPE_EXCEEDED"
    with pytest.raises(RefusedError, match=f"not allow {'A' * 64} {'C' * 64}$"):
        agent.check_call("A" * 65, "C" * 65)


def claims(**fields):
    return Claims(**{"iss": "n1", "aud": "n1", "jti": "j", "iat": 0, "nbf": 0, "exp": 60, "tid": "acme", "sid": "s"} | fields)


def test_a_users_token_gives_the_rights_of_its_roles_and_a_scope_narrows_them():
    roles = (Role.OPERATOR, Role.APPROVER)
    whole = Principal.of(claims(sub="user:ann", roles=roles))
    assert whole.rights == rights_of(roles)
    assert (whole.kind, whole.name, whole.user_id, whole.tenant_id) == (Kind.USER, "ann", "ann", "acme")
    assert (whole.session_id, whole.token_id) == ("s", "j")
    narrowed = Principal.of(claims(sub="user:ann", roles=roles, scope=f"{Right.READ} {Right.STORE_MANAGE}"))
    assert narrowed.rights == {Right.READ}
    assert Principal.of(claims(sub="user:ann", scope=str(Right.READ))).rights == frozenset()


def test_an_agents_token_gives_the_rights_of_its_scope_and_none_of_its_users():
    agent = Principal.of(claims(sub="agent:CST", uid="ann", scope="call:ANL/*"))
    assert (agent.kind, agent.name, agent.user_id, agent.rights) == (Kind.AGENT, "CST", "ann", frozenset())
    for right, word in AGENT_RIGHTS.items():
        assert right in Principal.of(claims(sub="agent:CST", uid="ann", scope=word)).rights


@pytest.mark.parametrize("kind", Kind)
def test_a_missing_right_is_refused_by_kind_and_name(kind):
    with pytest.raises(RefusedError, match=f"the {kind.name.lower()} X has no right records:read in tenant acme"):
        Principal(kind, "X", "ann", "acme").check(Right.READ)


def test_the_table_of_the_documentation_is_the_table_of_the_code():
    text = (Path(__file__).parents[3] / "docs" / "identity.md").read_text(encoding="utf-8").split("## Roles")[1].split("##")[0]
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    roles = [Role(cell.strip()) for cell in rows[0][1:]]
    documented = {role: set() for role in roles}
    for rights, *cells in rows[2:]:
        for role, cell in zip(roles, cells, strict=True):
            documented[role] |= set(re.findall(r"`([a-z:]+)`", rights)) if "✓" in cell else set()
    assert documented == {role: set(map(str, rights)) for role, rights in RIGHTS_OF.items()}
