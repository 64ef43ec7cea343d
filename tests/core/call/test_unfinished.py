"""A call that ends before its work is done: what it shows, and what it names as not completed."""

from __future__ import annotations

import pytest
from msgspec import Raw

from comity.core.call.ledger import Account
from comity.core.call.limits import REPLY_BYTES_MAX, WARNINGS_MAX, Limits
from comity.core.call.tree import Branch
from comity.core.call.unfinished import data_of, not_completed, timed_out, warnings_of
from comity.core.envelope.envelope import Error, Reply, Request, Status

LIMITS = Limits()
LATE = Reply(status=Status.TIMEOUT, error=Error.of("CALL_TIMEOUT", "late"), data={"half": 1})


class Telling(Branch):
    """A call that has told of its work."""

    told: object = None

    @property
    def shown(self) -> object:
        return self.told


def request(target: str = "A", capability: str = "DO", *, body: bytes = b"{}", message: str = "") -> Request:
    made = {"request_id": "r.1", "target": target, "capability": capability, "user_id": "u", "limits": LIMITS}
    return Request(**made, deadline_at=2_000, created_at=500, body=Raw(body), message=message)


def call(*parts: tuple[Request, Reply], told: object = None) -> Telling:
    made = Telling(request("ROOT"), None, Account(LIMITS), told=told)
    for part in parts:
        made.keep(*part)
    return made


def test_a_call_without_calls_below_shows_what_it_told():
    assert data_of(call()) is None
    assert data_of(call(told={"step": 1})) == {"step": 1}
    reply = timed_out(call(told={"step": 1}))
    assert (reply.status, reply.data, reply.warnings) == (Status.TIMEOUT, {"step": 1}, ())
    assert reply.message == "DO of ROOT did not end within 1500 ms"
    assert reply.error is not None
    assert (reply.error.code, reply.error.message) == ("CALL_TIMEOUT", reply.message)


def test_what_calls_below_delivered_or_had_to_show_is_shown_by_agent():
    made = call((request("A"), Reply.success({"n": 1})), (request("B"), LATE), told="working")
    made.keep(request("C"), Reply.success(message="said"))
    child = Telling(request("D"), made, made.account, told={"step": 2})
    child.attach(made)
    assert data_of(made) == {
        "progress": "working",
        "completed": [
            {"agent": "A", "capability": "DO", "status": "success", "data": {"n": 1}},
            {"agent": "C", "capability": "DO", "status": "success", "data": {"message": "said"}},
        ],
        "incomplete": [
            {"agent": "B", "capability": "DO", "status": "timeout", "data": {"half": 1}},
            {"agent": "D", "capability": "DO", "status": str(child.state), "data": {"step": 2}},
        ],
    }
    assert not_completed(made) == ["DO of B", "DO of D"]
    assert warnings_of(made) == ("DO of B was not completed", "DO of D was not completed")
    assert timed_out(made).message.endswith("; not completed: DO of B, DO of D")


@pytest.mark.parametrize("status", [Status.SUCCESS, Status.REFUSED, Status.NEEDS_INPUT])
def test_a_call_that_gave_a_result_or_never_ran_is_not_named(status):
    replies = {
        Status.SUCCESS: Reply.success(),
        Status.REFUSED: Reply(status=Status.REFUSED, error=Error.of("A_B", "no")),
        Status.NEEDS_INPUT: Reply.needs_input("Which?"),
    }
    assert not_completed(call((request(), replies[status]))) == []


@pytest.mark.parametrize(
    ("later", "is_named"),
    [
        (request(), False),
        (request("B"), True),
        (request(capability="UNDO"), True),
        (request(body=b'{"n":1}'), True),
        (request(message="other"), True),
    ],
)
def test_a_failed_call_is_made_up_for_by_a_later_one_that_asks_the_same(later, is_named):
    assert not_completed(call((request(), LATE), (later, Reply.success()))) == (["DO of A"] if is_named else [])
    assert not_completed(call((later, Reply.success()), (request(), LATE))) == ["DO of A"]  # an earlier one does not
    assert not_completed(call((request(), LATE), (request(), LATE))) == ["DO of A"]  # named once


def test_what_the_others_said_is_left_out_where_it_is_too_much_for_one_reply():
    long = "x" * (REPLY_BYTES_MAX // 2 + 1)
    parts = [(request("A"), Reply.success(long)), (request("B"), Reply.success(long))]
    bare = [{"agent": one, "capability": "DO", "status": "success"} for one in "AB"]
    assert data_of(call(*parts, told="mine")) == {"progress": "mine", "completed": bare, "incomplete": []}
    assert data_of(call(*parts, told=long * 2)) == {"completed": bare, "incomplete": []}
    assert data_of(call(parts[0]))["completed"] == [bare[0] | {"data": long}]


@pytest.mark.parametrize(("count", "more"), [(10, ""), (11, " and 1 more")])
def test_a_sentence_names_ten_calls(count, more):
    made = call(*((request(f"A{number}"), LATE) for number in range(count)))
    assert timed_out(made).message.endswith(f", DO of A9{more}")
    many = call(*((request(f"A{number}"), LATE) for number in range(WARNINGS_MAX + 1)))
    assert len(warnings_of(many)) == min(WARNINGS_MAX, len(not_completed(many)))
