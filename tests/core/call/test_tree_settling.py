"""A tree ends whole: every open call once, callees before their callers, by its own deadline or with its caller."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from comity.core.call.ledger import Account
from comity.core.call.limits import Limits
from comity.core.call.machine import CANCEL, EXPIRE, FINISH
from comity.core.call.settling import settle
from comity.core.call.tree import Branch
from comity.core.envelope.envelope import Reply, Request, Status

NOW_MS = 1_000
LIMITS = Limits()
DONE = Reply.success({"n": 1})


class Told(Branch, eq=False, gc=False):
    """A call that has something to show."""

    @property
    def shown(self) -> str:
        return f"so far {self.request.request_id}"


def call(request_id: str, deadline_at: int, parent: Branch | None = None) -> Branch:
    made = Told(Request(request_id, f"A{request_id}", "DO", "u", LIMITS, deadline_at), parent, Account(LIMITS))
    if parent is not None:
        made.attach(parent)
    return made


@st.composite
def trees(draw: st.DrawFn) -> list[Branch]:
    """Return the calls of a tree, each after its caller; a callee's deadline may be later than its caller's."""
    calls = [call("0", draw(st.sampled_from([NOW_MS - 1, NOW_MS, NOW_MS + 1])))]
    for number in range(1, draw(st.integers(1, 12))):
        parent = draw(st.sampled_from(calls))
        calls.append(call(str(number), draw(st.sampled_from([NOW_MS - 1, NOW_MS, NOW_MS + 1])), parent))
    return calls


@given(trees(), st.sampled_from([FINISH, CANCEL, EXPIRE]))
def test_every_open_call_of_a_tree_ends_once_and_before_its_caller(calls, event):
    ends = settle(calls[0], event, DONE, NOW_MS)
    order = [end.call for end in ends]
    assert sorted(map(id, order)) == sorted(map(id, calls))
    assert all(order.index(one) < order.index(one.parent) for one in calls[1:])
    assert (order[-1], ends[-1].event, ends[-1].reply) == (calls[0], event, DONE)


@given(trees(), st.sampled_from([FINISH, CANCEL, EXPIRE]))
def test_only_what_is_overdue_under_overdue_callers_times_out(calls, event):
    ends = {end.call: end for end in settle(calls[0], event, DONE, NOW_MS)}
    for one in calls[1:]:
        is_overdue = ends[one.parent].event is EXPIRE and one.request.deadline_at <= NOW_MS
        assert ends[one].event is (EXPIRE if is_overdue else CANCEL)
        assert ends[one].reply.status is (Status.TIMEOUT if is_overdue else Status.CANCELLED)


def test_a_call_that_times_out_tells_what_it_and_the_calls_below_it_had_to_show():
    root = call("0", NOW_MS)
    middle = call("1", NOW_MS, root)
    call("2", NOW_MS, middle)
    leaf, ended, _ = settle(root, EXPIRE, DONE, NOW_MS)
    assert leaf.reply.data == "so far 2"
    assert ended.reply.data["progress"] == "so far 1"
    assert [one["data"] for one in ended.reply.data["incomplete"]] == ["so far 2"]


def test_a_cancelled_call_names_the_caller_that_has_ended():
    root = call("0", NOW_MS)
    call("1", NOW_MS, root)
    end, _ = settle(root, CANCEL, DONE, NOW_MS)
    assert end.reply.error is not None
    assert (end.reply.error.code, end.reply.error.message) == ("CALL_CANCELLED", "A0, which made this call, has ended")


def test_deciding_how_a_tree_ends_changes_nothing_in_it():
    root = call("0", NOW_MS)
    child = call("1", NOW_MS, root)
    settle(root, EXPIRE, DONE, NOW_MS)
    assert (root.state, child.state, list(root.waits_for), root.parts) == ("admitted", "admitted", [child], None)
