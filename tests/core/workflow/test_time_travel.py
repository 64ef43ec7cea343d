"""Replay, fork, why and migrate: the planner over recorded events, and nothing called."""

from __future__ import annotations

import pytest
from workflow_driver import Run, failed, ok

from comity.core.document.slices import whole
from comity.core.workflow import history
from comity.core.workflow.graph import compile_program
from comity.core.workflow.history import decode_event, encode_event
from comity.core.workflow.read import load
from comity.core.workflow.replay import Difference, difference, fold, forked, in_words, moments, number_of, told
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
    assert whole(difference(run.program, compile_program(load(same)), run.history)) is None
    other = compile_program(load(FLOW.replace("n > 5", "n > 50")))
    found = whole(difference(run.program, other, run.history))
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
    made = whole(forked(run.program, run.program, run.history, at=2, run_id="other"))
    assert made[0].run_id == "other"
    assert len(made) == 2
    _, left = fold(run.program, made)
    assert [one.node for one in left if isinstance(one, history.Call)] == ["b"]


def test_a_fork_with_a_changed_reply_goes_the_other_way_without_calling():
    run = Run(FLOW, {"a": ok({"n": 9})}).go()
    made = whole(forked(run.program, run.program, run.history, at=len(run.history), run_id="x", replies={"a": ok({"n": 1})}))
    _, left = fold(run.program, made)
    assert [one.node for one in left if isinstance(one, history.Call)] == ["c"]


def test_a_fork_with_changed_input_calls_again_only_what_depends_on_it():
    run = Run(FLOW, {"a": ok({"n": 9})}, input={"v": 1}).go()
    made = whole(forked(run.program, run.program, run.history, at=len(run.history), run_id="x", data={"v": 2}))
    _, left = fold(run.program, made)
    assert [one.node for one in left if isinstance(one, history.Call)] == ["a"]
    made = whole(forked(run.program, run.program, run.history, at=len(run.history), run_id="x", data={"v": 1, "unused": 2}))
    planner, _ = fold(run.program, made)
    assert planner.finish == run.finish


def test_a_fork_outside_of_the_history_is_refused():
    run = Run(FLOW, {"a": failed()}).go()
    for at in (0, len(run.history) + 1):
        with pytest.raises(CallerError, match="fork at 1 to"):
            whole(forked(run.program, run.program, run.history, at=at, run_id="x"))


@pytest.mark.parametrize(
    ("command", "words", "number"),
    [
        (history.Call(3, "a@2", "a", "A", "X", {}), "a@2 = A/X", 3),
        (history.Call(3, "a", "a", "A", "X", {}, is_undo=True), "undo a = A/X", 3),
        (history.Aggregate(4, "s", "s", "merge", (), {}), "aggregate s by merge", 4),
        (history.Ask(5, "q", "q", "Go on?"), "ask at q", 5),
        (history.Timer(6, 60, "w"), "timer of w", 6),
        (history.Timer(6, 60), "timer of the run", 6),
        (history.Listen(7, "e", "e", "paid"), "wait for paid at e", 7),
        (history.Cancel(8), "cancel step 8", -8),
        (history.Drop(9), "drop 9", 9),
        (history.Finish("failed", {}), "end failed", 0),
    ],
)
def test_each_command_has_words_and_a_number(command, words, number):
    assert (told(command), number_of(command)) == (words, number)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (history.Started(1, "r"), "the start"),
        (history.Settled(1, 3, {"status": "failure"}), "the end of step 3: failure"),
        (history.Fired(1, 4), "timer 4"),
        (history.Answered(1, 5), "the answer to question 5"),
        (history.Received(1, "paid"), "the event paid"),
        (history.Cancelled(1), "the cancellation"),
        (history.Migrated(1, "0123456789abcdef"), "the move to version 0123456789ab"),
    ],
)
def test_each_event_has_words(event, words):
    assert in_words(event) == words


def test_a_difference_names_the_event_and_what_either_version_does():
    nothing = Difference(2, history.Fired(1, 4), (), ("ask at q", "drop 9"))
    assert str(nothing) == "after event 2 (timer 4) the run's version does nothing, the new one ask at q, drop 9"


SUMS = "workflow: s\nnodes: {a: {call: A/X}, b: {call: B/X}, g: {aggregate: {strategy: merge}, after: [a, b]}, q: {ask: 'Go on?', after: [g]}, w: {wait: 1s, after: [q]}, e: {wait: {event: paid}, after: [w]}, z: {call: Z/X, after: [e]}}"


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        (("", ""), "Started Settled Settled Settled Answered Fired Received Settled"),
        (("strategy: merge", "strategy: best"), "Started Settled Settled Received"),
        (("'Go on?'", "'Go?'"), "Started Settled Settled Settled Received"),
        (("wait: 1s", "wait: 1h"), "Started Settled Settled Settled Answered Received"),
        (("call: B/X", "call: B/Y"), "Started Settled Received"),
    ],
)
def test_a_fork_takes_the_outcome_of_every_step_that_asks_for_the_same_and_of_no_other(change, kinds):
    run = Run(SUMS, answers={"q": "yes"})
    run.go()
    run.apply(history.Received(run.now_ms, "paid", 5))
    run.go()
    assert run.finish.status == "completed"
    new = compile_program(load(SUMS.replace(*change)), {})
    made = whole(forked(run.program, new, run.history, at=len(run.history), run_id="fork"))
    assert [type(one).__name__ for one in made] == kinds.split()
    assert made[0].run_id == "fork"
    for at in (0, len(run.history) + 1):
        with pytest.raises(CallerError, match=f"fork at 1 to {len(run.history)}, not {at}"):
            whole(forked(run.program, new, run.history, at=at, run_id="fork"))
