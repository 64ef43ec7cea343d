"""What simulated nodes wrote of handoffs is a behaviour of the specification; what is damaged is not, and is named."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from checkers import load_checker
from workloads.scenarios import SCENARIOS

from comity.core.handoff import machine as handoff
from comity.core.handoff import queue as handoff_queue

SPEC = Path(__file__).parents[2] / "spec"
handoff_check = load_checker("handoff_check")
follow, Step, Work = handoff_check.follow, handoff_check.Step, handoff_check.Work


def test_the_checker_knows_the_actions_of_the_specification_and_the_changes_of_the_code():
    defined = set(re.findall(r"^(\w+)(?:\(.*?\))? +==", (SPEC / "Handoff.tla").read_text(), re.MULTILINE))
    assert set(handoff_check.ACTIONS) - {"Stutter"} <= defined
    assert {name for names in handoff_check.EXPLAINED.values() for name in names} == set(handoff_check.ACTIONS)
    changes = (*handoff.Change.__args__, handoff_queue.Take, handoff_queue.Sweep)
    assert set(handoff_check.EXPLAINED) == {one.__name__ for one in changes}
    assert {str(state) for state in handoff.ENDED} == handoff_check.ENDS


ONE, OTHER = "n1#1", "n2#1"
LIFE = [
    Step("h", "Offer", None, Work("pending")),
    Step("h", "Acknowledge"),
    Step("h", "Take", None, Work("accepted", ONE, 1, 1)),
    Step("h", "Renew", (ONE, 1), Work("accepted", ONE, 1, 1)),
    Step("h", "Sweep", None, Work("pending", "", 1, 1)),
    Step("h", "Take", None, Work("pending", OTHER, 2, 1)),
    Step("h", "Accept", None, Work("accepted", OTHER, 2, 2)),
    Step("h", "Ask", (OTHER, 2), Work("input_required", OTHER, 2, 2)),
    Step("h", "Answer", None, Work("accepted", OTHER, 2, 2)),
    Step("h", "Complete", (OTHER, 2), Work("completed", "", 2, 2)),
]


def test_a_whole_life_is_followed():
    actions, breach = follow(LIFE, is_complete=True)
    assert breach is None
    assert actions == [
        "Offer", "Acknowledge", "Accept", "Stutter", "Redeliver", "Reserve", "Accept", "Ask", "Answer", "Complete",
    ]  # fmt: skip


def test_who_takes_a_handoff_over_to_wait_for_it_leaves_it_as_it_is():
    kept = Step("h", "Offer", None, LIFE[2].after, takes_over=True)
    assert follow([*LIFE[:3], kept])[1] is None
    assert follow([*LIFE[:3], replace(kept, after=LIFE[0].after)])[1] == (3, "Offer")  # taken from its receiver
    assert follow([*LIFE, replace(kept, after=LIFE[9].after)])[1] == (len(LIFE), "Offer")  # it has ended


@pytest.mark.parametrize(
    ("position", "put", "rule"),
    [
        (0, [], "NoLostHandoff"),  # acknowledged and never written
        (4, [Step("h", "Sweep", None, Work("accepted", "", 1, 1))], "Redeliver"),  # taken from the dead and put nowhere
        (4, [], "Accept"),  # taken from one who has it
        (5, [Step("h", "Take", None, Work("pending", OTHER, 1, 1))], "Accept"),  # a number given twice
        (9, [Step("h", "Complete", (ONE, 1), Work("completed", "", 2, 2))], "Complete"),  # by a former receiver
        (9, [Step("h", "Complete", (OTHER, 2), Work("completed", OTHER, 2, 2))], "Complete"),  # ended, and still held
        (9, [LIFE[9], Step("h", "Cancel", None, Work("cancelled", "", 2, 2))], "Cancel"),  # ended twice
        (9, [], "EveryHandoffEnds"),
    ],
)
def test_a_step_that_no_action_allows_is_named(position, put, rule):
    _, breach = follow([*LIFE[:position], *put, *LIFE[position + 1 :]], is_complete=True)
    assert breach is not None
    assert breach.rule == rule


def test_a_step_more_or_less_in_a_real_trace_never_goes_unnoticed():
    for seed in range(2):
        trace = handoff_check.of_run(SCENARIOS["handoffs"].run(seed).handed)
        assert follow(trace, is_complete=True)[1] is None
        ends = {"Offer", "Complete", "Fail", "Reject", "Cancel"}
        offered_again = {step.work for step in trace if step.takes_over}  # where a second offer can stand for the first
        moving = [n for n, step in enumerate(trace) if step.change in ends and step.work not in offered_again]
        for position in moving:
            assert follow(trace[:position] + trace[position + 1 :], is_complete=True)[1] is not None
            again = [*trace[: position + 1], trace[position], *trace[position + 1 :]]
            assert follow(again)[1] is not None
