"""The one table of roles, and who has which right because of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from comity.core.access import RIGHTS_OF, Kind, Principal, Right, Role, Scope
from comity.core.access.principal import rights_of
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


def test_the_table_of_the_documentation_is_the_table_of_the_code():
    text = (Path(__file__).parents[3] / "docs" / "identity.md").read_text(encoding="utf-8").split("## Roles")[1].split("##")[0]
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    roles = [Role(cell.strip()) for cell in rows[0][1:]]
    documented = {role: set() for role in roles}
    for rights, *cells in rows[2:]:
        for role, cell in zip(roles, cells, strict=True):
            documented[role] |= set(re.findall(r"`([a-z:]+)`", rights)) if "✓" in cell else set()
    assert documented == {role: set(map(str, rights)) for role, rights in RIGHTS_OF.items()}
