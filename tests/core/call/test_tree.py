"""A call in its tree: what stands below it, what the tree has in progress, and what came back."""

from __future__ import annotations

import pytest

from comity.core.call.ledger import Account
from comity.core.call.limits import Limits
from comity.core.call.machine import State
from comity.core.call.tree import PARTS_KEPT_MAX, Branch
from comity.core.envelope.envelope import Error, Reply, Request, Status
from comity.core.envelope.usage import Usage

LIMITS = Limits()
DONE = Reply.success({"n": 1})
LATE = Reply(status=Status.TIMEOUT, error=Error.of("CALL_TIMEOUT", "late"))


def call(request_id: str, parent: Branch | None = None, objective: str = "", **more) -> Branch:
    request = Request(request_id, "A", "DO", "u", LIMITS, 2_000, objective=objective)
    made = Branch(request, parent, Account(LIMITS) if parent is None else parent.account, **more)
    if parent is not None:
        made.attach(parent)
    return made


def test_an_objective_is_in_progress_until_the_last_call_for_it_has_left():
    root = call("r")
    first, second = call("r.1", root, "sum"), call("r.2", root, "sum")
    key = (None, "A", "sum")
    assert root.objectives == {key: 2}
    first.leave(root, DONE)
    assert root.objectives == {key: 1}
    second.detach()
    assert (root.objectives, list(root.waits_for)) == ({}, [])


def test_a_call_that_ended_counts_with_the_calls_below_it_and_leaves_its_reply():
    root = call("r")
    child = call("r.1", root)
    call("r.1.1", child).leave(child, DONE)
    child.leave(root, LATE)
    assert root.calls_below == 2
    assert root.parts == [(child.request, LATE)]
    assert (root.has_missed, child.has_missed) == (True, False)
    assert root.usage() == Usage(calls=2)


def test_a_call_that_moves_away_has_given_nothing_back():
    root = call("r")
    call("r.1", root).detach()
    assert (root.calls_below, root.parts, list(root.waits_for)) == (0, None, [])


def test_only_the_newest_replies_are_kept():
    root = call("r")
    requests = [call(f"r.{number}").request for number in range(PARTS_KEPT_MAX + 1)]
    for request in requests:
        root.keep(request, DONE)
    assert [request for request, _ in root.parts] == requests[1:]


def test_a_call_below_a_resumed_one_may_have_been_made_before():
    root = call("r", leftovers={})
    child = call("r.1", root)
    assert (root.is_resumed, child.is_resumed, child.is_again) == (True, False, True)
    assert not call("q").is_again


def test_tokens_are_noted_in_every_call_above():
    root = call("r")
    child = call("r.1", root)
    child.use_tokens(Usage(prompt_tokens=3, completion_tokens=4, calls=9))
    child.use_tokens(Usage(prompt_tokens=1))
    assert root.used == child.used == Usage(prompt_tokens=4, completion_tokens=4)
    assert child.top is root


@pytest.mark.parametrize("state", State)
def test_a_call_waits_for_its_place_unless_it_runs_here_or_elsewhere(state):
    assert call("r", state=state).is_queued is (state not in {State.RUNNING, State.SENT})


@pytest.mark.parametrize(("now_ms", "left_ms"), [(1_000, 1_000), (2_500, 0)])
def test_what_is_left_shrinks_with_time_and_open_calls(now_ms, left_ms):
    root = call("r")
    call("r.1", root)
    left = root.left(now_ms)
    assert (left.timeout_ms, left.timeout_ms_max, left.fan_out_max) == (left_ms, left_ms, LIMITS.fan_out_max - 1)
