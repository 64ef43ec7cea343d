"""The planner, one behaviour after the other."""

from __future__ import annotations

from typing import Any

import pytest
from workflow_driver import Run, failed, ok

from comity.core.envelope.usage import Cost
from comity.core.workflow import history
from comity.core.workflow.ending import UNDO_ATTEMPTS_MAX, UNDO_PAUSE_MS

LATE_SKIP = """
workflow: late-skip
nodes:
  a: {call: A/X}
  b: {call: B/X, after: [a]}
  c: {call: C/X}
  c2: {call: C/X, after: [c]}
  d: {call: D/X, after: [b, c2]}
edges:
  - {from: a, to: c}
  - {from: c, to: end, when: 'response.status == "failure"'}
"""


def test_a_join_survives_a_branch_that_is_skipped_after_the_other_arrived():
    order = iter([0, 1, 0, 0, 0])  # b ends before c fails, which skips c2
    run = Run(LATE_SKIP, {"c": failed()}, choose=lambda count: min(next(order, 0), count - 1)).go()
    assert run.called == ["a", "b", "c", "d"]
    assert run.finish.status == "completed"


def test_a_join_survives_a_branch_that_is_skipped_first():
    run = Run(LATE_SKIP, {"c": failed()}).go()
    assert run.called[-1] == "d"
    assert run.finish.status == "completed"


def test_a_node_behind_two_branches_of_different_length_runs_once():
    run = Run(LATE_SKIP).go()
    assert sorted(run.called) == ["a", "b", "c", "c2", "d"]


def test_two_edges_between_one_pair_both_count():
    text = """
workflow: pair
nodes: {a: {call: A/X}, b: {call: B/X}}
edges:
  - {from: a, to: b, when: 'response.data.score > 0.8'}
  - {from: a, to: b, when: 'response.data.forced == true'}
"""
    assert Run(text, {"a": ok({"score": 0.1, "forced": True})}).go().called == ["a", "b"]
    assert Run(text, {"a": ok({"score": 0.9, "forced": False})}).go().called == ["a", "b"]
    assert Run(text, {"a": ok({"score": 0.1, "forced": False})}).go().error["code"] == "ROUTING_NO_EDGE"


def test_no_edge_that_applies_is_an_error_and_never_the_end():
    text = """
workflow: nowhere
nodes: {a: {call: A/X}, b: {call: B/X}}
edges: [{from: a, to: b, when: 'response.data.kind == "x"'}]
"""
    run = Run(text, {"a": ok({"kind": "y"})}).go()
    assert run.finish.status == "failed"
    assert run.error["code"] == "ROUTING_NO_EDGE"
    assert run.error["node"] == "a"


def test_the_result_is_of_the_nodes_from_which_no_taken_edge_leads_on():
    """Dies where an edge that was not taken keeps a node from being one of the last."""
    text = """
workflow: w
nodes: {a: {call: A/X}, b: {call: B/X}}
edges:
  - {from: a, to: b, when: 'response.status == "failure"'}
  - {from: a, to: end, else: true}
"""
    assert Run(text, {"a": ok({"n": 1})}).go().data == {"n": 1}


def test_an_else_edge_is_taken_if_no_other_is():
    text = """
workflow: otherwise
nodes: {a: {call: A/X}, b: {call: B/X}, c: {call: C/X}}
edges: [{from: a, to: c, else: true}, {from: a, to: b, when: 'response.data.kind == "x"'}]
"""
    assert Run(text, {"a": ok({"kind": "y"})}).go().called == ["a", "c"]
    assert Run(text, {"a": ok({"kind": "x"})}).go().called == ["a", "b"]
    assert Run(text, {"a": failed("MY_CODE")}).go().error["code"] == "MY_CODE"  # a failure is never handled by accident


def test_a_failure_edge_and_an_error_edge_both_route():
    for edge in ("when: 'response.status == \"failure\"'", "on: error"):
        text = f"""
workflow: fails
nodes:
  a: {{call: A/X}}
  fix: {{call: F/X, input: {{why: "{{{{error.code}}}}"}}}}
edges: [{{from: a, to: fix, {edge}}}]
"""
        run = Run(text, {"a": failed("MY_CODE")}).go()
        assert run.called == ["a", "fix"]
        assert run.calls["fix"].inputs == {"why": "MY_CODE"}
        assert run.finish.status == "completed"


def test_a_failure_that_no_edge_handles_fails_the_run_with_its_code():
    run = Run("workflow: f\nnodes: {a: {call: A/X}, b: {call: B/X, after: [a]}}", {"a": failed("MY_CODE")}).go()
    assert (run.finish.status, run.error["code"], run.error["node"]) == ("failed", "MY_CODE", "a")
    assert run.called == ["a"]


def test_the_first_of_two_branches_wins_and_the_other_is_stopped():
    text = "workflow: race\nnodes: {a: {call: A/X}, b: {call: B/X}, d: {call: D/X, join: any, after: [a, b]}}"
    run = Run(text).go()
    assert run.called == ["a", "b", "d"]
    assert [one for one in run.commands if isinstance(one, history.Cancel)] == [history.Cancel(run.calls["b"].step)]
    assert run.finish.reply["status"] == "success"


@pytest.mark.parametrize("other", ["{wait: 1h}", "{ask: 'Sure?'}", "{wait: {event: paid}}"])
def test_a_branch_that_only_waits_is_stopped_by_the_one_that_wins_and_the_run_ends(other):
    """Dies where a stopped wait, question or event is never settled: the run would wait for it."""
    run = Run(f"workflow: race\nnodes: {{a: {{call: A/X}}, w: {other}, d: {{call: D/X, join: any, after: [a, w]}}}}")
    while run.called != ["a", "d"]:
        run.apply(next(one for one in run.pending if isinstance(one, history.Settled)))
    run.apply(run.pending[-1])
    assert (run.finish.status, run.finish.reply["status"]) == ("completed", "success")


def test_a_run_ends_with_a_step_that_leads_to_a_join_which_has_fired():
    run = Run(
        """
workflow: late
nodes:
  a: {call: A/X}
  b: {call: B/X, after: [a], when: 'a.status == "success"'}
  c: {call: C/X, after: [a, b], join: any}
""",
        choose=lambda count: count - 1,
    ).go()
    assert run.called == ["a", "b", "c"]
    assert run.finish.status == "completed"


def test_a_join_of_two_of_three_starts_at_the_second_and_fails_when_two_fail():
    text = """
workflow: quorum
nodes: {a: {call: A/X}, b: {call: B/X}, c: {call: C/X}, d: {call: D/X, join: 2, after: [a, b, c]}}
"""
    run = Run(text, {"a": failed()}).go()
    assert run.called == ["a", "b", "c", "d"]
    assert run.finish.reply["status"] == "partial"
    run = Run(text, {"a": failed(), "b": failed()}).go()
    assert run.error["code"] == "WORKFLOW_JOIN_UNREACHABLE"
    assert "d" not in run.called


def test_a_bounded_loop_ends_at_its_bound_with_an_error_that_names_the_edge():
    text = """
workflow: loop
nodes: {w: {call: A/X}, d: {call: B/X}}
edges:
  - {id: again, from: w, to: w, when: 'response.data.n < 100', max: 3}
  - {from: w, to: d, when: 'response.data.n >= 100'}
"""
    run = Run(text, {"w": ok({"n": 1})}).go()
    assert run.called == ["w", "w@2", "w@3", "w@4"]
    assert run.error["code"] == "WORKFLOW_LOOP_EXHAUSTED"
    assert "again" in run.error["message"]
    count = iter(range(99, 200))
    run = Run(text, lambda call: ok({"n": next(count)})).go()
    assert run.called == ["w", "w@2", "d"]


def test_a_node_is_run_again_as_often_as_its_bound_says_where_every_other_case_leads_on():
    """Dies where the bound is not compared before a call of its own node is repeated."""
    text = """
workflow: loop
nodes: {w: {call: A/X}, d: {call: B/X}}
edges:
  - {from: w, to: w, when: 'response.data.n < 100', max: 3}
  - {from: w, to: d, else: true}
"""
    run = Run(text, {"w": ok({"n": 1})})
    for _ in range(5):  # not until nothing is left: a loop without a bound never ends
        run.apply(run.pending.pop())
    assert (run.called, run.finish and run.finish.status) == (["w", "w@2", "w@3", "w@4", "d"], "completed")


def test_a_loop_of_several_nodes_runs_its_body_again_and_leaves_once():
    text = """
workflow: body
nodes:
  a: {call: A/X}
  b: {call: B/X, after: [a]}
  c: {call: C/X, after: [a]}
  j: {call: J/X, after: [b, c]}
  out: {call: O/X, input: {n: "{{j.data.n}}"}}
edges:
  - {from: j, to: a, when: 'response.data.n < 3', max: 5}
  - {from: j, to: out, when: 'response.data.n >= 3'}
"""
    count = iter(range(1, 10))
    run = Run(text, lambda call: ok({"n": next(count)}) if call.node == "j" else ok()).go()
    assert run.called.count("out") == 1
    assert [one.partition("@")[0] for one in run.called].count("b") == 3
    assert run.calls["out"].inputs == {"n": 3}


def test_work_that_is_sent_back_goes_to_the_previous_step_with_the_instruction():
    text = """
workflow: talk-back
nodes: {write: {call: W/X}, judge: {call: J/X, after: [write]}}
edges:
  - {from: judge, to: write, on: retry, max: 2}
  - {from: judge, to: end}
"""
    sent_back = {
        "status": "retry_with_instruction",
        "outcome": "error",
        "error": {"code": "TARGET_SENT_BACK", "message": "shorter"},
        "message": "shorter",
    }
    run = Run(text, {"judge": [sent_back, ok()]}).go()
    assert run.called == ["write", "judge", "write@2", "judge@2"]
    assert run.calls["write"].instruction == ""
    assert run.calls["write@2"].instruction == "shorter"
    assert run.finish.status == "completed"
    run = Run(text, {"judge": [sent_back, sent_back, sent_back, sent_back]}).go()
    assert run.error["code"] == "WORKFLOW_LOOP_EXHAUSTED"


def test_a_failed_step_is_tried_again_after_a_pause_that_grows():
    text = "workflow: r\nnodes: {a: {call: A/X, retry: {max: 2, backoff: 1s, factor: 3}}}"
    run = Run(text, {"a": [failed(retryable=True), failed(retryable=True), ok({"n": 1})]}).go()
    assert [one.attempt for one in run.commands if isinstance(one, history.Call)] == [1, 2, 3]
    timers = [one.due_at for one in run.commands if isinstance(one, history.Timer)][1:]
    assert 3_000 <= timers[1] - timers[0] <= 3_010
    assert run.data == {"n": 1}
    run = Run(text, {"a": failed()}).go()  # not retryable
    assert run.called == ["a"]


def test_a_retry_with_instruct_hands_the_validation_error_to_the_agent():
    text = """
workflow: s
nodes:
  a:
    call: A/X
    output_schema: {type: object, required: [email]}
    retry: {max: 1, on: [OUTPUT_VALIDATION_FAILED], instruct: true}
"""
    run = Run(text, {"a": [ok({}), ok({"email": "x"})]}).go()
    second = [one for one in run.commands if isinstance(one, history.Call)][1]
    assert "email" in second.instruction
    assert run.finish.status == "completed"


def test_a_clarification_pauses_with_a_question_and_the_answer_goes_to_the_same_agent():
    text = "workflow: c\nnodes: {a: {call: A/X}, b: {call: B/X, after: [a]}}"
    asks = {
        "status": "clarification_needed",
        "outcome": "needs_input",
        "message": "Which year?",
        "data": {"options": [2026, 2027]},
    }
    run = Run(text, {"a": [asks, ok({"n": 1})]}).go()
    assert run.finish is None
    (question,) = run.planner.questions.values()
    assert (question.text, question.options, question.is_clarification) == ("Which year?", (2026, 2027), True)
    run.apply(history.Answered(9 * 86_400_000, question.question, 2027, "u1"))
    run.go()
    again = [one for one in run.commands if isinstance(one, history.Call) and one.node == "a"][1]
    assert (again.question, again.answer) == ("Which year?", 2027)
    assert run.finish.status == "completed"


def test_several_questions_are_open_at_once_and_the_first_answer_to_each_stands():
    text = """
workflow: two
nodes:
  a: {ask: "A?"}
  b: {ask: "B?", options: [yes, no]}
output: {a: "{{a.data.answer}}", b: "{{b.data.answer}}"}
"""
    run = Run(text).go()
    first, second = run.planner.questions
    run.apply(history.Answered(2_000, second, "yes"))
    run.apply(history.Answered(2_001, second, "no"))
    assert run.finish is None
    run.apply(history.Answered(2_002, first, 7))
    assert run.data == {"a": 7, "b": "yes"}


def test_a_question_that_nobody_answers_takes_its_default_or_fails():
    text = 'workflow: d\nnodes: {a: {ask: "A?", timeout: 7d, default: no}}'
    run = Run(text).go()
    assert run.data == {"answer": "no", "defaulted": True}
    assert run.now_ms >= 7 * 86_400_000
    run = Run(text.replace(", default: no", "")).go()
    assert run.error["code"] == "WORKFLOW_WAIT_TIMEOUT"


def test_a_wait_lasts_its_time_and_a_wait_until_lasts_until_then():
    run = Run("workflow: w\nnodes: {a: {wait: 3d}, b: {call: B/X, after: [a]}}").go()
    assert run.now_ms >= 3 * 86_400_000
    assert run.called == ["b"]
    run = Run('workflow: w\nnodes: {a: {wait: {until: "{{input.at}}"}}}', input={"at": "2027-01-31T09:00:00Z"})
    assert run.pending == [history.Fired(1_801_386_000_000, 2)]


def test_an_event_that_comes_before_its_wait_is_kept_for_it():
    text = """
workflow: e
nodes:
  a: {call: A/X}
  w: {wait: {event: paid, match: 'event.amount >= 10'}, after: [a]}
output: {amount: "{{w.data.amount}}"}
"""
    run = Run(text)
    run.apply(history.Received(1_500, "paid", {"amount": 5}))
    run.apply(history.Received(1_500, "paid", {"amount": 12}))
    assert run.go().data == {"amount": 12}
    run = Run(text).go()
    assert run.finish is None
    run.apply(history.Received(2_000, "paid", {"amount": 3}))
    run.apply(history.Received(2_001, "paid", {"amount": 30}))
    assert run.data == {"amount": 30}


UNDO = """
workflow: u
nodes:
  a: {call: A/X, undo: {call: A/U, input: {id: "{{a.data.id}}"}}}
  b: {call: B/X, after: [a], undo: {call: B/U}}
  c: {call: C/X, after: [b]}
"""


def test_a_failed_run_takes_back_what_was_done_in_reverse_order():
    run = Run(UNDO, {"a": ok({"id": 7}), "c": failed()}).go()
    assert run.called == ["a", "b", "c", "undo b", "undo a"]
    assert run.calls["undo a"].inputs == {"id": 7}
    assert run.finish.status == "failed"


def test_a_compensation_that_fails_for_good_is_named_and_the_others_still_run():
    run = Run(UNDO, {"a": ok({"id": 7}), "c": failed(), "undo b": failed(message="locked")}).go()
    assert run.called == ["a", "b", "c", "undo b", "undo b", "undo b", "undo a"]
    assert run.error["not_undone"] == ["b: locked"]


def test_cancel_stops_what_runs_then_takes_back_what_was_done_and_schedules_nothing_else():
    run = Run(UNDO, {"a": ok({"id": 7}), "b": None})
    run.go()
    run.apply(history.Cancelled(5_000, "changed my mind", "u1"))
    run.go()
    assert run.called == ["a", "b", "undo a"]
    assert run.finish.status == "cancelled"
    assert "changed my mind" in run.error["message"]


def test_a_step_that_ends_well_while_it_is_cancelled_is_taken_back_too():
    run = Run(UNDO, {"a": ok({"id": 7}), "b": None})
    run.go()
    step = run.calls["b"].step
    run.apply(history.Cancelled(5_000))
    run.pending = [history.Settled(5_001, step, ok())]
    run.go()
    assert run.called == ["a", "b", "undo b", "undo a"]


def test_a_map_keeps_to_its_concurrency_and_the_order_of_its_items():
    text = """
workflow: m
nodes: {a: {call: A/X, map: {over: "{{input.items}}", concurrency: 2}, input: {v: "{{item}}", i: "{{index}}"}}}
"""
    run = Run(
        text, lambda call: ok({"v": call.inputs["v"] * 10}), input={"items": [1, 2, 3, 4, 5]}, choose=lambda count: count - 1
    )
    assert len(run.pending) == 2
    run.go()
    assert run.data == [{"v": 10}, {"v": 20}, {"v": 30}, {"v": 40}, {"v": 50}]
    assert Run(text, input={"items": []}).go().data == []


def test_a_map_tolerates_as_many_failures_as_it_says_and_stops_at_one_more():
    text = """
workflow: m
nodes: {a: {call: A/X, map: {over: [1, 2, 3, 4], concurrency: 1, tolerate: 1}, input: {v: "{{item}}"}}}
"""
    run = Run(text, lambda call: failed() if call.inputs["v"] == 2 else ok(call.inputs["v"])).go()
    assert run.data == [1, None, 3, 4]
    assert run.finish.reply["status"] == "partial"
    run = Run(text, lambda call: failed() if call.inputs["v"] >= 2 else ok(1)).go()
    assert run.called == ["a[0]", "a[1]", "a[2]"]
    assert run.finish.status == "failed"


def test_a_map_stops_an_item_that_waits_for_its_retry_when_too_many_items_have_failed():
    text = """
workflow: m
nodes: {a: {call: A/X, map: {over: [1, 2, 3], concurrency: 3}, input: {v: "{{item}}"}, retry: {max: 2, backoff: 1m}}}
"""
    run = Run(text, lambda call: failed(retryable=call.inputs["v"] < 3)).go()
    assert (run.called, run.finish.status) == (["a[0]", "a[1]", "a[2]"], "failed")


RETRIED = "call: A/X, retry: {max: 2, backoff: 1m}"


@pytest.mark.parametrize(
    ("step", "waits"), [("ask: which", 1), (RETRIED, 1), (f"{RETRIED}, map: {{over: [1, 2], concurrency: 2}}", 2)]
)
def test_a_run_that_is_cancelled_lets_go_of_what_its_steps_wait_for(step, waits):
    run = Run(f"workflow: m\nnodes: {{a: {{{step}}}}}", lambda _: failed(retryable=True))
    for event in [one for one in run.pending if isinstance(one, history.Settled)]:
        run.apply(event)
    assert len(run.waits) == waits + 1  # and the time that the run may take
    run.apply(history.Cancelled(3_000))
    assert (run.finish.status, run.waits) == ("cancelled", set())


@pytest.mark.parametrize("tolerate", [0, 9])
@pytest.mark.parametrize("retry", ["", ", retry: {max: 2, backoff: 1m}"])
def test_a_map_that_a_join_does_without_begins_no_more_items(tolerate, retry):
    each = f"map: {{over: [1, 2, 3, 4], concurrency: 2, tolerate: {tolerate}}}"
    text = f"workflow: m\nnodes: {{a: {{call: A/X, {each}{retry}}}, b: {{call: B/X}}, j: {{join: any, after: [a, b]}}}}"
    run = Run(text, lambda call: ok() if call.node == "b" else failed(retryable=bool(retry)))
    first, second, third = run.pending
    for event in (first, second) if retry else ():
        run.apply(event)
    run.pending = [third] if retry else [third, first, second]
    run.go()
    assert (run.called, run.finish.status) == (["a[0]", "a[1]", "b"], "completed")
    cancelled = [one.step for one in run.commands if isinstance(one, history.Cancel)]
    assert len(cancelled) == len(set(cancelled)) == (0 if retry else 2)


SUB = """
workflow: sub
input: {type: object, required: [q]}
nodes: {z: {call: Z/Z, input: {q: "{{input.q}}"}, undo: {call: Z/U}}}
output: {got: "{{z.data.q}}"}
"""


def test_a_sub_workflow_is_part_of_the_run_and_its_output_is_the_nodes_data():
    text = 'workflow: top\nnodes: {s: {run: sub, input: {q: 7}}, t: {call: T/X, after: [s], input: {v: "{{s.data.got}}"}}}'
    run = Run(text, lambda call: ok({"q": 7}), parts=(SUB,)).go()
    assert run.called == ["s/z", "t"]
    assert run.calls["t"].inputs == {"v": 7}
    run = Run(text, lambda call: failed() if call.node == "t" else ok({"q": 7}), parts=(SUB,)).go()
    assert run.called == ["s/z", "t", "undo s/z"]


def test_a_sub_workflow_over_each_item_and_one_that_gets_the_wrong_input():
    text = 'workflow: top\nnodes: {s: {run: sub, map: {over: [1, 2]}, input: {q: "{{item}}"}}}'
    run = Run(text, lambda call: ok({"q": call.inputs["q"]}), parts=(SUB,)).go()
    assert run.data == [{"got": 1}, {"got": 2}]
    run = Run("workflow: top\nnodes: {s: {run: sub, input: {w: 1}}}", parts=(SUB,)).go()
    assert run.error["code"] == "INPUT_VALIDATION_FAILED"


def test_a_hint_is_followed_only_where_routing_is_dynamic_and_only_to_a_target_of_the_node():
    text = """
workflow: h
nodes: {a: {call: A/X, dynamic: true}, b: {call: B/X}, c: {call: C/X}, d: {call: D/X, after: [b]}}
edges: [{from: a, to: b}, {from: a, to: c, when: "false"}]
"""
    assert Run(text, {"a": ok(next_step_hint="c")}).go().called == ["a", "c"]
    assert Run(text, {"a": ok(next_step_hint="d")}).go().called == ["a", "b", "d"]  # not a target of a
    assert Run(text.replace(", dynamic: true", ""), {"a": ok(next_step_hint="c")}).go().called == ["a", "b", "d"]


def test_a_reply_that_says_completed_ends_the_workflow_with_its_data():
    run = Run(
        "workflow: c\nnodes: {a: {call: A/X}, b: {call: B/X, after: [a]}}", {"a": {"status": "completed", "data": {"n": 1}}}
    ).go()
    assert run.called == ["a"]
    assert (run.finish.status, run.data) == ("completed", {"n": 1})


def test_an_end_node_ends_the_whole_run_and_stops_the_other_branch():
    text = """
workflow: e
nodes:
  a: {call: A/X}
  b: {call: B/X}
  stop: {end: failure, message: "no budget for {{input.what}}", after: [a]}
"""
    run = Run(text, {"b": None}, input={"what": "tea"}).go()
    assert (run.finish.status, run.error["code"], run.error["message"]) == ("failed", "WORKFLOW_ENDED", "no budget for tea")


def test_a_missing_path_in_a_mapping_fails_the_node_and_a_default_stands_in():
    text = 'workflow: m\nnodes: {a: {call: A/X}, b: {call: B/X, after: [a], input: {v: "{{a.data.x}}"}}}'
    run = Run(text).go()
    assert run.error["code"] == "WORKFLOW_MAPPING_FAILED"
    assert "a.data.x is missing" in run.error["message"]
    assert Run(text.replace("data.x", "data.x ?? 5")).go().calls["b"].inputs == {"v": 5}


def test_a_condition_that_meets_the_wrong_type_fails_the_run_and_says_so():
    text = "workflow: t\nnodes: {a: {call: A/X}, b: {call: B/X}}\nedges: [{from: a, to: b, when: 'response.data.score > 0.8'}]"
    run = Run(text, {"a": ok({"score": "high"})}).go()
    assert run.error["code"] == "WORKFLOW_CONDITION_FAILED"


@pytest.mark.parametrize(
    ("limits", "settled"),
    [
        ("steps_max: 2", {}),
        ("tokens_max: 10", {"prompt_tokens": 6}),
        ("calls_max: 5", {"calls": 3}),
        ("cost_max: 1.0, prompt_cost: 100000", {"prompt_tokens": 6}),
        ("cost_max: 1.0", {"prompt_tokens": 6, "cost": Cost(amount=0.6, currency="USD")}),
    ],
)
def test_a_run_ends_at_each_of_its_limits(limits: str, settled: dict[str, Any]):
    text = f"workflow: l\nlimits: {{{limits}}}\nnodes: {{a: {{call: A/X}}, b: {{call: B/X, after: [a]}}, c: {{call: C/X, after: [b]}}}}"
    run = Run(text, lambda _: None)
    while run.finish is None:
        call = [one for one in run.commands if isinstance(one, history.Call)][-1]
        run.apply(history.Settled(2_000, call.step, ok(), **settled))
    assert run.error["code"] == "WORKFLOW_LIMIT_REACHED"
    assert run.called == ["a", "b"]


UNDOABLE = "nodes: {a: {call: A/X, undo: {call: A/U}}, " + ", ".join(
    f"{name}: {{call: A/X, undo: {{call: A/U}}, after: [{before}]}}" for before, name in ("ab", "bc", "cd")
)


def spent(text: str, *parts: str, **settled: Any) -> Run:
    """Run to the end where each step uses the same."""
    run, done = Run(text, lambda _: None, parts=parts), set()
    while run.finish is None:
        call = next(one for one in run.commands if isinstance(one, history.Call) and one.step not in done)
        done.add(call.step)
        run.apply(history.Settled(2_000, call.step, ok(), **({} if call.is_undo else settled)))
    return run


@pytest.mark.parametrize(
    ("limits", "settled", "steps", "told"),
    [
        ("steps_max: 2", {}, "ab", "has made the 2 calls that steps_max allows"),
        ("calls_max: 2", {}, "ab", "has made the 2 calls that calls_max allows"),
        ("calls_max: 4", {"calls": 1}, "ab", "has made the 4 calls that calls_max allows"),
        ("calls_max: 3", {"calls": 1}, "ab", "has made 4 calls; calls_max is 3"),
        ("tokens_max: 8", {"prompt_tokens": 1, "completion_tokens": 3}, "abc", "has used 12 tokens; tokens_max is 8"),
    ],
)
def test_a_run_and_a_sub_workflow_use_all_they_may_and_take_back_what_they_did_at_one_more(limits, settled, steps, told):
    limited = f"limits: {{{limits}}}\n"
    run = spent(f"workflow: l\n{limited}{UNDOABLE}}}", **settled)
    assert run.called == [*steps, *(f"undo {step}" for step in reversed(steps))]
    assert (run.error["code"], run.error["message"]) == ("WORKFLOW_LIMIT_REACHED", f"the run {told}")
    top, inner = "workflow: top\nnodes: {o: {run: outer}}", f"workflow: inner\n{UNDOABLE}}}"
    outer = "workflow: outer\n%snodes: {i: {run: inner}}"
    for name, parts in (
        ("outer", (outer % limited, inner)),
        ("inner", (outer % "", inner.replace("nodes", f"{limited}nodes"))),
        ("outer", (outer % limited, inner.replace("nodes", f"{limited}nodes"))),  # the outermost that has reached a limit
    ):
        run = spent(top, *parts, **settled)
        assert run.called == [*(f"o/i/{step}" for step in steps), *(f"undo o/i/{step}" for step in reversed(steps))]
        assert (run.error["code"], run.error["message"]) == ("WORKFLOW_LIMIT_REACHED", f"the sub-workflow {name} {told}")


@pytest.mark.parametrize(
    ("limits", "settled", "steps", "told"),
    [
        ("cost_max: 1.0, prompt_cost: 250000", {"prompt_tokens": 2}, "abc", "has cost 1.5000; cost_max is 1.0"),
        ("cost_max: 1.0, completion_cost: 250000", {"completion_tokens": 2}, "abc", "has cost 1.5000; cost_max is 1.0"),
        ("calls_max: 9", {"over": "calls"}, "a", "has used up the calls that calls_max 9 allows"),
        ("tokens_max: 9", {"over": "tokens"}, "a", "has used up the tokens that tokens_max 9 allows"),
    ],
)
def test_a_run_ends_with_the_step_that_cost_more_than_it_may_or_lacked_some(limits, settled, steps, told):
    run = spent(f"workflow: l\nlimits: {{{limits}}}\n{UNDOABLE}}}", **settled)
    assert run.called == [*steps, *(f"undo {step}" for step in reversed(steps))]
    assert (run.error["code"], run.error["message"]) == ("WORKFLOW_LIMIT_REACHED", f"the run {told}")


def test_two_parts_of_a_run_each_have_their_own_steps_calls_and_tokens():
    part = "workflow: part\nlimits: {steps_max: 2, calls_max: 4, tokens_max: 6}\nnodes: {a: {call: A/X}, b: {call: A/X, after: [a]}}"
    text = "workflow: top\nnodes: {x: {run: part}, y: {run: part, after: [x]}}"
    run = spent(text, part, calls=1, prompt_tokens=1, completion_tokens=2)
    assert (run.finish.status, run.called) == ("completed", ["x/a", "x/b", "y/a", "y/b"])


def test_a_run_whose_cost_is_unknown_ends_where_it_may_not_cost_more_than_something():
    run = Run("workflow: l\nlimits: {cost_max: 1.0}\nnodes: {a: {call: A/X}, b: {call: B/X, after: [a]}}", lambda _: None)
    call = next(one for one in run.commands if isinstance(one, history.Call))
    run.apply(history.Settled(2_000, call.step, ok(), prompt_tokens=6))
    assert run.error["message"].startswith("6 tokens have no price, so cost_max 1.0 cannot be kept")
    assert run.called == ["a"]


def test_a_run_that_takes_too_long_fails_and_is_taken_back():
    run = Run("workflow: l\nlimits: {runtime_max: 1h}\nnodes: {a: {wait: 2h}}")
    deadline = next(one for one in run.commands if isinstance(one, history.Timer))
    assert deadline.due_at == 1_000 + 3_600_000
    run.apply(history.Fired(deadline.due_at, deadline.timer))
    assert run.error["code"] == "WORKFLOW_LIMIT_REACHED"


def test_a_node_with_a_condition_is_skipped_and_skipped_can_be_tested():
    text = """
workflow: s
nodes:
  a: {call: A/X}
  b: {call: B/X, after: [a], when: 'a.data.n > 5'}
  c: {call: C/X, after: [a, b], when: 'b.status == "skipped"'}
"""
    assert Run(text, {"a": ok({"n": 1})}).go().called == ["a", "c"]
    assert Run(text, {"a": ok({"n": 9})}).go().called == ["a", "b"]


def test_an_aggregate_gets_the_replies_of_its_branches_in_order():
    text = (
        "workflow: g\nnodes: {a: {call: A/X}, b: {call: B/X}, g: {aggregate: {strategy: merge, tolerance: 2}, after: [b, a]}}"
    )
    run = Run(text, {"a": ok(1), "b": ok(2)}).go()
    made = next(one for one in run.commands if isinstance(one, history.Aggregate))
    assert [name for name, _ in made.parts] == ["b", "a"]
    assert (made.strategy, made.options) == ("merge", {"tolerance": 2})
    assert run.data == [2, 1]


def test_a_strategy_that_asks_is_called_again_with_the_answer():
    run = Run("workflow: g\nnodes: {a: {call: A/X}, g: {aggregate: {strategy: mine, of: [a]}, after: [a]}}", {"a": None})
    run.apply(history.Settled(2_000, run.calls["a"].step, ok(1)))
    asks = {"status": "clarification_needed", "outcome": "needs_input", "message": "Which?"}
    (first,) = [one for one in run.commands if isinstance(one, history.Aggregate)]
    run.pending.clear()
    run.apply(history.Settled(2_001, first.step, asks))
    (question,) = run.planner.questions
    run.apply(history.Answered(2_002, question, "b"))
    second = [one for one in run.commands if isinstance(one, history.Aggregate)][1]
    assert (first.options, second.options) == ({}, {"question": "Which?", "answer": "b"})
    assert run.go().data == [1]


def test_an_event_that_nothing_waits_for_changes_nothing():
    run = Run("workflow: n\nnodes: {a: {call: A/X}}", {"a": None})
    for event in (history.Settled(1, 99, ok()), history.Fired(1, 99), history.Answered(1, 99, 1), history.Started(1, "x")):
        assert run.planner.apply(event) == []


NESTED = """
workflow: nested
nodes:
  a: {call: A/X}
  b: {call: A/X}
  c: {call: A/X, route: first}
  d: {call: A/X}
edges:
  - {from: a, to: b}
  - {from: b, to: c}
  - {id: inner, from: c, to: b, when: 'response.data.go == "inner"', max: 2}
  - {id: outer, from: c, to: a, when: 'response.data.go == "outer"', max: 3}
  - {from: c, to: d, else: true}
"""


def test_a_loop_inside_of_a_loop_begins_anew_with_every_turn_of_the_outer_one():
    ways = ["inner", "inner", "outer", "inner", "inner", "outer", "on"]
    run = Run(NESTED, {"c": [ok({"go": one}) for one in ways]}).go()
    assert run.finish.status == "completed"
    assert run.called == [
        *("a", "b", "c", "b@1.2", "c@1.2", "b@1.3", "c@1.3"),
        *("a@2", "b@2.1", "c@2.1", "b@2.2", "c@2.2", "b@2.3", "c@2.3"),
        *("a@3", "b@3.1", "c@3.1", "d"),
    ]


def test_a_loop_inside_of_a_loop_keeps_its_bound_in_every_turn_of_the_outer_one():
    text = NESTED.replace("else: true", "on: error")  # by which the run goes on where the bound is reached
    run = Run(text, {"c": [ok({"go": "outer"}), ok({"go": "inner"})]}).go()
    assert run.finish.status == "completed"
    assert run.called == ["a", "b", "c", "a@2", "b@2.1", "c@2.1", "b@2.2", "c@2.2", "b@2.3", "c@2.3", "d"]


def test_an_edge_out_of_a_loop_is_taken_if_it_applied_in_any_turn():
    text = """
workflow: out
nodes:
  a: {call: A/X}
  b: {call: A/X}
  c: {call: A/X}
edges:
  - {from: a, to: b, on: always}
  - {from: b, to: a, when: 'response.data.n < 3', max: 5}
  - {from: a, to: c, when: 'response.data.n == 1'}
  - {from: b, to: end, on: always}
"""
    numbers = {"a": [ok({"n": 1}), ok({"n": 2})], "b": [ok({"n": 1}), ok({"n": 3})]}
    run = Run(text, numbers).go()
    assert (run.finish.status, run.called) == ("completed", ["a", "b", "a@2", "b@2", "c"])


def test_a_run_is_as_sure_as_the_least_sure_of_its_steps():
    text = "workflow: s\nnodes: {a: {call: A/X}, b: {call: B/X, after: [a]}, c: {call: C/X, after: [b]}, d: {call: D/X, after: [c]}}"
    sure = {"a": ok(confidence=0.9), "b": ok(confidence=0.5), "c": ok(confidence=0.7)}  # and `d` does not say
    assert Run(text, sure).go().finish.reply["confidence"] == 0.5


ENDS = "workflow: w\nnodes: {a: {call: A/X}, b: {call: B/X, after: [a]}}\n"


@pytest.mark.parametrize(
    ("text", "replies", "told"),
    [
        ("", {"b": ok({"n": 1}, message="done")}, {"data": {"n": 1}, "message": "done"}),
        ("output: {n: '{{b.data.n}}'}", {"b": ok({"n": 1}, message="done")}, {"data": {"n": 1}, "message": "done"}),
        ("output: 7", {"a": ok(message="first")}, {"data": 7}),
        ("output: '{{a.data.n}}'", {"a": {"status": "completed", "data": {"n": 2}, "message": "all"}}, {"data": 2, "message": "all"}),
        ("output: '{{b.data.n}}'", {"a": {"status": "completed", "data": {"n": 2}}}, {"data": {"n": 2}}),
        ("output: 7\noutput_schema: {type: integer}", {}, {"data": 7}),
    ],
)  # fmt: skip
def test_a_run_gives_back_its_output_or_the_data_of_its_last_node_with_the_message_of_that_node(text, replies, told):
    run = Run(ENDS + text, replies).go()
    assert run.finish.reply == {"status": "success", "outcome": "success"} | told


@pytest.mark.parametrize(
    ("text", "code", "what"),
    [
        ("output: '{{b.data.gone}}'", "WORKFLOW_MAPPING_FAILED", "the output of w has no value: "),
        ("output: '{{b.data.n}}'\noutput_schema: {type: string}", "OUTPUT_VALIDATION_FAILED", "the output of w does not fit: "),
    ],
)
def test_a_run_whose_output_has_no_value_or_does_not_fit_fails(text, code, what):
    run = Run(ENDS + text, {"b": ok({"n": 1})}).go()
    assert (run.finish.status, run.error["code"]) == ("failed", code)
    assert run.error["message"].startswith(what)


@pytest.mark.parametrize("part", ["s: {run: sub}", "s: {call: A/X, undo: {call: A/U}, map: {over: '{{input.of}}'}}"])
def test_what_a_join_does_without_is_stopped_and_what_it_did_is_taken_back(part):
    sub = "workflow: sub\nnodes: {x: {call: A/X, undo: {call: A/U}}, y: {call: A/SLOW, after: [x]}}"
    text = f"workflow: race\nnodes: {{{part}, b: {{call: B/X, after: [c]}}, c: {{call: B/X}}, d: {{call: D/X, join: any, after: [s, b]}}}}"
    slow = {"y": None} if "run" in part else {"s": None}
    run = Run(text, slow, parts=(sub,), input={"of": [1, 2]}).go()
    assert run.finish.status == "completed"
    stopped = [one.step for one in run.commands if isinstance(one, history.Cancel)]
    began = [
        one.step for one in run.commands if isinstance(one, history.Call) and (one.place.startswith("s") and one.node in "sy")
    ]
    assert sorted(set(stopped)) == began
    assert [one for one in run.called if one.startswith("undo")] == (["undo s/x"] if "run" in part else [])


def test_a_part_that_has_ended_well_is_taken_back_with_the_run_that_fails_later():
    sub = "workflow: sub\nnodes: {x: {call: A/X, undo: {call: A/U}}}"
    text = "workflow: w\nnodes: {s: {run: sub}, a: {call: A/X, undo: {call: A/U}, after: [s]}, z: {call: Z/X, after: [a]}}"
    run = Run(text, {"z": failed()}, parts=(sub,)).go()
    assert run.called == ["s/x", "a", "z", "undo a", "undo s/x"]
    assert run.error["node"] == "z"


@pytest.mark.parametrize("failures", range(UNDO_ATTEMPTS_MAX + 1))
def test_what_cannot_be_taken_back_is_tried_again_after_four_times_as_long_each_time_and_then_named(failures):
    replies = {"b": failed(), "undo a": [*[failed(message="locked")] * failures, ok()]}
    run = Run("workflow: u\nnodes: {a: {call: A/X, undo: {call: A/U}}, b: {call: B/X, after: [a]}}", replies)
    began = {}
    while run.pending:
        before = len(run.commands)
        event = run.pending[0]
        run.go() if run.finish else run.apply(run.pending.pop(0))
        for one in run.commands[before:]:
            if isinstance(one, history.Timer) and one.place == "a":
                began[one.timer] = one.due_at - event.at_ms
    tries = min(failures + 1, UNDO_ATTEMPTS_MAX)
    assert run.called.count("undo a") == tries
    assert [one.attempt for one in run.commands if isinstance(one, history.Call) and one.is_undo] == list(range(1, tries + 1))
    assert list(began.values()) == [UNDO_PAUSE_MS * 4**number for number in range(tries - 1)]
    assert run.error.get("not_undone") == (["a: locked"] if failures >= UNDO_ATTEMPTS_MAX else None)


def test_the_inputs_of_an_undo_that_cannot_be_mapped_are_named_and_the_rest_is_taken_back():
    run = Run(UNDO, {"a": ok({}), "c": failed()}).go()
    assert run.called == ["a", "b", "c", "undo b"]
    (told,) = run.error["not_undone"]
    assert told.startswith("a: ")
    assert "id" in told


def test_a_condition_of_a_node_that_cannot_be_decided_fails_the_run_with_its_name():
    text = """
workflow: w
nodes:
  a: {call: A/X}
  b: {call: B/X, after: [a], when: 'a.data.score > 3'}
"""
    assert Run(text, {"a": ok({"score": 4})}).go().called == ["a", "b"]
    assert Run(text, {"a": ok({"score": 3})}).go().called == ["a"]
    run = Run(text, {"a": ok({"score": "many"})}).go()
    assert (run.called, run.finish.status, run.error["code"]) == (["a"], "failed", "WORKFLOW_CONDITION_FAILED")
    assert "the condition of b cannot be decided" in run.error["message"]


def test_a_loop_whose_condition_cannot_be_decided_fails_the_run():
    text = """
workflow: w
nodes: {a: {call: A/X}, b: {call: B/X}}
edges:
  - {from: a, to: a, max: 2, when: 'response.data.score > 3'}
  - {from: a, to: b, when: 'response.data.score <= 3'}
"""
    assert Run(text, {"a": ok({"score": 4})}).go().called[:3] == ["a", "a@2", "a@3"]
    assert Run(text, {"a": ok({"score": 1})}).go().called == ["a", "b"]
    run = Run(text, {"a": ok({"score": "many"})}).go()
    assert (run.called, run.finish.status) == (["a"], "failed")


def test_a_run_whose_first_steps_are_more_than_its_limit_calls_none_after_it():
    text = """
workflow: w
limits: {calls_max: 1}
nodes: {a: {call: A/X}, b: {call: B/X}, c: {call: C/X}}
"""
    run = Run(text).go()
    assert (run.called, run.finish.status) == (["a"], "failed")


def test_a_loop_whose_condition_no_longer_holds_is_not_exhausted():
    text = """
workflow: w
nodes: {a: {call: A/X}, b: {call: B/X}}
edges:
  - {from: a, to: a, max: 1, when: 'response.data.again == true'}
  - {from: a, to: b, when: 'response.data.done == true'}
"""

    def run(*said: dict[str, bool]) -> Run:
        left = iter(said)
        return Run(text, lambda call: ok(next(left, {"again": False, "done": True}))).go()

    again, lost = {"again": True, "done": False}, {"again": False, "done": False}
    assert run(again).called == ["a", "a@2", "b"]
    assert run(again, again).error["code"] == "WORKFLOW_LOOP_EXHAUSTED"
    assert run(again, lost).error["code"] == "ROUTING_NO_EDGE"
    assert run(lost).error["code"] == "ROUTING_NO_EDGE"
