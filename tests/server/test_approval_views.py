"""Questions over HTTP: whose they are, in which order, through which agents they came, and who sees what in clear."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from comity.core.access.principal import Kind, Principal
from comity.core.access.rights import Right
from comity.errors import CallerError
from comity.runtime.call.tools import Approval
from comity.server.approvals import DecideBody, _place, deny, find, grant
from comity.server.auth import OPERATOR
from comity.server.sight import sees_clear

ANN = Principal(Kind.USER, "ann", "ann", "acme")


def question(number: int, granted: bool | None = None, tenant_id: str = "acme") -> Approval:
    return Approval(
        id=f"q{number}", root_id=f"r{number}", tool="pay", target="LOW", user_id="ann", tenant_id=tenant_id, session_id="s",
        inputs={"n": number}, asked_at=number, granted=granted,
    )  # fmt: skip


class Desk:
    """A node with questions, and what it was asked."""

    def __init__(self, *questions: Approval, rows: dict[str, list[Any]] | None = None) -> None:
        self.questions, self.rows, self.asked, self.told = questions, rows or {}, list[Any](), list[Any]()
        self.tools = [SimpleNamespace(name="pay", risk="high")]
        self.node = self.reading = self.live = self

    def approvals(self, *, by: str = "", tenant_id: str | None = None) -> list[Approval]:
        self.asked.append((by, tenant_id))
        return [one for one in self.questions if tenant_id in {None, one.tenant_id}]

    async def ask(self, read: Any) -> Any:
        return read(self)

    def call_row(self, root_id: str) -> Any:
        return next((one for one in self.rows.get(root_id, ()) if one.request_id == root_id), None)

    def tree(self, root_id: str, most: int) -> list[Any]:
        return self.rows[root_id][:most]

    async def decide(self, approval_id: str, **how: Any) -> None:
        self.asked.append((approval_id, how))

    def tell(self, *told: Any) -> None:
        self.told.append(told)


def row(request_id: str, target: str, parent_id: str | None = None, **more: Any) -> Any:
    return SimpleNamespace(
        **{"request_id": request_id, "target": target, "parent_id": parent_id, "settled_at": None, "status": ""} | more
    )


@pytest.mark.parametrize(
    ("state", "limit", "ids"),
    [("all", 9, "q4 q3 q2 q1"), ("waiting", 9, "q1 q3"), ("decided", 9, "q4 q2"), ("all", 2, "q4 q3"), ("waiting", 1, "q1")],
)
async def test_questions_are_listed_those_that_wait_longest_first_else_the_newest(state, limit, ids):
    desk = Desk(question(3), question(1), question(4, True), question(2, False), question(5, tenant_id="evil"))
    ask = SimpleNamespace(state=desk, principal=ANN, query=SimpleNamespace(state=state, limit=limit))
    found = (await find(ask)).items
    assert " ".join(one.id for one in found) == ids
    assert desk.asked == [("ann", "acme")]
    assert {one.id: one.state for one in found} | {"q1": "waiting", "q2": "denied", "q3": "waiting", "q4": "granted"} == {
        "q1": "waiting", "q2": "denied", "q3": "waiting", "q4": "granted"
    }  # fmt: skip
    assert {(one.risk, one.agent, one.ended, tuple(one.chain)) for one in found} == {("high", "LOW", True, ())}


@pytest.mark.parametrize(("answer", "granted"), [(grant, True), (deny, False)])
@pytest.mark.parametrize(("body", "reason"), [(None, ""), (DecideBody("because"), "because")])
async def test_a_person_answers_a_question_of_the_own_tenant_alone(answer, granted, body, reason):
    desk = Desk(question(1), question(2, tenant_id="evil"))
    ask = SimpleNamespace(state=desk, principal=ANN, params={"approval_id": "q1"}, body=body)
    decided = await answer(ask)
    assert (decided.id, decided.granted) == ("q1", granted)
    assert desk.asked[-1] == ("q1", {"granted": granted, "by": "ann", "tenant_id": "acme", "reason": reason})
    assert desk.told == [("approval", "acme", {"id": "q1", "granted": granted})]
    for other in ("q2", "q9"):
        ask.params = {"approval_id": other}
        with pytest.raises(CallerError, match=f"there is no approval '{other}'"):
            await answer(ask)
    assert len(desk.told) == 1


def test_a_question_shows_the_agents_through_which_it_came_and_whether_a_call_waits_for_it():
    tree = [row("r1", "TOP"), row("r1.1", "MID", "r1"), row("r1.1.1", "LOW", "r1.1"), row("r1.2", "LOW", "r1")]
    assert _place(Desk(rows={"r1": tree}), question(1)) == (False, ["TOP"])
    assert _place(Desk(rows={"r1": tree[:3]}), question(1)) == (False, ["TOP", "MID"])
    assert _place(Desk(rows={"r1": [tree[0], tree[2]]}), question(1)) == (False, [])
    assert _place(Desk(rows={"r1": [tree[0]]}), question(1)) == (False, [])
    assert _place(Desk(), question(1)) == (True, [])
    for status, is_over in (("needs_input", False), ("success", True)):
        assert _place(Desk(rows={"r1": [row("r1", "LOW", settled_at=5, status=status)]}), question(1)) == (is_over, [])


@pytest.mark.parametrize(
    ("principal", "is_clear"),
    [
        (OPERATOR, True),
        (ANN, True),
        (Principal(Kind.AGENT, "LOW", "ann", "acme"), False),
        (Principal(Kind.USER, "ann", "ann", "evil"), False),
        (Principal(Kind.USER, "bob", "bob", "acme"), False),
        (Principal(Kind.USER, "bob", "bob", "acme", frozenset({Right.DATA_REVEAL})), True),
        (Principal(Kind.USER, "bob", "bob", "evil", frozenset({Right.DATA_REVEAL})), False),
        (Principal(Kind.AGENT, "LOW", "bob", "acme", frozenset({Right.DATA_REVEAL})), False),
    ],
)
def test_personal_data_is_in_clear_for_its_user_and_for_those_who_may_reveal_it_in_one_tenant(principal, is_clear):
    assert sees_clear(principal, SimpleNamespace(user_id="ann", tenant_id="acme")) is is_clear
