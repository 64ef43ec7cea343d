"""Replay, fork, why and migrate: the planner over recorded events, and nothing called."""

from __future__ import annotations

import pytest
from workflow_driver import Run, failed, ok

from comity.core.workflow import history
from comity.core.workflow.graph import compile_program
from comity.core.workflow.history import decode_event, encode_event
from comity.core.workflow.read import load
from comity.core.workflow.replay import difference, fold, forked, moments
from comity.core.workflow.why import decisions
from comity.errors import CallerError

FLOW = """
workflow: f
nodes:
  a: {call: A/X, input: {v: "{{input.v ?? 0}}"}}
  b: {call: B/X, input: {v: "{{a.data.n}}"}}
  c: {call: C/X}
  d: {call: D/X, after: [b, c]}
  w: {wait: 1d, after: [d]}
edges:
  - {id: high, from: a, to: b, when: 'response.data.n > 5 && response.status == "success"'}
  - {id: low, from: a, to: c, else: true}
"""


def test_an_event_survives_its_journal():
    for event in Run(FLOW, {"a": ok({"n": 9})}).go().history:
        assert decode_event(encode_event(event)) == event


def test_a_history_folded_again_gives_the_same_commands_and_what_is_still_open():
    run = Run(FLOW, {"a": ok({"n": 9})})
    while run.pending and "d" not in run.called:
        run.apply(run.pending.pop(0))
    planner, left = fold(run.program, run.history)
    assert [one.node for one in left if isinstance(one, history.Call)] == ["d"]
    assert [one for moment in moments(run.program, run.history) for one in moment.commands] == run.commands
    run.go()
    planner, left = fold(run.program, run.history)
    assert left == [run.finish]
    assert planner.finish == run.finish


def test_why_says_which_edge_was_taken_on_what_values_and_what_had_to_differ():
    run = Run(FLOW, {"a": ok({"n": 3})}).go()
    high, low = decisions(run.program, run.history, "a")
    assert (high.edge, high.taken, low.edge, low.taken) == ("high", False, "low", True)
    assert high.parts[0].reads == {"response.data.n": 3}
    assert high.parts[0].held is False
    assert high.parts[1].held is True
    assert high.differ == ("response.data.n > 5",)
    assert "response.data.n = 3" in str(high)
    assert "would have been taken if response.data.n > 5" in str(high)
    run = Run(FLOW, {"a": ok({"n": 7})}).go()
    high, low = decisions(run.program, run.history, "a")
    assert high.taken
    assert high.differ == ("response.data.n <= 5",)
    assert len(decisions(run.program, run.history)) == 5  # c was skipped: nothing was decided there


def test_a_version_that_would_have_done_the_same_may_take_a_waiting_run_over():
    run = Run(FLOW, {"a": ok({"n": 9})})
    while run.pending and not any(isinstance(one, history.Fired) for one in run.pending):
        run.apply(run.pending.pop(0))
    same = FLOW + "  - {from: w, to: end, when: 'response.status == \"success\"'}\n"
    assert difference(run.program, compile_program(load(same)), run.history) is None
    other = compile_program(load(FLOW.replace("n > 5", "n > 50")))
    found = difference(run.program, other, run.history)
    assert found.number == 1
    assert "b = B/X" in str(found)
    assert "c = C/X" in str(found)


def test_a_run_that_moved_goes_on_with_its_new_version():
    run = Run(FLOW, {"a": ok({"n": 9})})
    while run.pending and not any(isinstance(one, history.Fired) for one in run.pending):
        run.apply(run.pending.pop(0))
    new = compile_program(load(FLOW.replace("edges:", "  z: {call: Z/X, after: [w]}\nedges:")))
    moved = [*run.history, history.Migrated(5_000, "v2")]
    planner, left = fold(run.program, moved, lambda _: new)
    (timer,) = [one for one in left if isinstance(one, history.Timer) and one.place]
    commands = planner.apply(history.Fired(timer.due_at, timer.timer))
    assert [one.node for one in commands] == ["z"]


def test_a_fork_keeps_what_was_recorded_and_leaves_the_rest_open():
    run = Run(FLOW, {"a": ok({"n": 9})}).go()
    made = forked(run.program, run.program, run.history, at=2, run_id="other")
    assert made[0].run_id == "other"
    assert len(made) == 2
    _, left = fold(run.program, made)
    assert [one.node for one in left if isinstance(one, history.Call)] == ["b"]


def test_a_fork_with_a_changed_reply_goes_the_other_way_without_calling():
    run = Run(FLOW, {"a": ok({"n": 9})}).go()
    made = forked(run.program, run.program, run.history, at=len(run.history), run_id="x", replies={"a": ok({"n": 1})})
    _, left = fold(run.program, made)
    assert [one.node for one in left if isinstance(one, history.Call)] == ["c"]


def test_a_fork_with_changed_input_calls_again_only_what_depends_on_it():
    run = Run(FLOW, {"a": ok({"n": 9})}, input={"v": 1}).go()
    made = forked(run.program, run.program, run.history, at=len(run.history), run_id="x", data={"v": 2})
    _, left = fold(run.program, made)
    assert [one.node for one in left if isinstance(one, history.Call)] == ["a"]
    made = forked(run.program, run.program, run.history, at=len(run.history), run_id="x", data={"v": 1, "unused": 2})
    planner, _ = fold(run.program, made)
    assert planner.finish == run.finish


def test_a_fork_outside_of_the_history_is_refused():
    run = Run(FLOW, {"a": failed()}).go()
    for at in (0, len(run.history) + 1):
        with pytest.raises(CallerError, match="fork at 1 to"):
            forked(run.program, run.program, run.history, at=at, run_id="x")
