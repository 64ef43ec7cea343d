"""Trees of calls over three simulated nodes: what holds for a tree as a whole holds, and each rule has a defect it catches."""

from __future__ import annotations

from unittest import mock

import pytest
from defects import Defect, nothing
from workloads.scenarios import SCENARIOS
from workloads.trees import MARKS

from comity.runtime.cluster.asking import Asking
from comity.runtime.cluster.inbound import Server, _Told
from comity.runtime.cluster.outbound import Carrier

HEAR = Carrier._hear


def hear_everything(self, sent, message):
    sent.steps = 0
    HEAR(self, sent, message)


async def tell_the_user_only(self, call, reply):
    return reply


DEFECTS = [
    Defect("steps are shown as they arrive", "StepsInOrder", lambda: [mock.patch.object(Carrier, "_hear", hear_everything)]),
    Defect("steps stay on their node", "StepsShown", lambda: [mock.patch.object(_Told, "add_step", nothing)]),
    Defect(
        "a call that waits for a person answers whoever asks for it again",
        "TreeWaitsAsOne",
        lambda: [mock.patch.object(Asking, "_is_aside", return_value=False)],
        known=5,
    ),
    Defect(
        "a node does not put its part of a tree aside",
        "TreeWaitsAsOne",
        lambda: [mock.patch.object(Carrier, "_pause", nothing)],
    ),
    Defect("no node stops what was cancelled", "CancelReachesTheLeaf", lambda: [mock.patch.object(Server, "_cancel", nothing)]),
    Defect(
        "a call that lost its caller's node is not looked for",
        "CancelReachesTheLeaf",
        lambda: [mock.patch.object(Server, "stop_ended", nothing)],
        known=25,
    ),
    Defect(
        "a call that is cancelled between two holders stays open",
        "CancelReachesTheLeaf",
        lambda: [mock.patch.object(Asking, "_end_withdrawn", tell_the_user_only)],
        known=79,
    ),
]


def test_what_a_tree_over_several_nodes_promises_holds_under_late_doubled_and_reordered_messages() -> None:
    marks: set[str] = set()
    for seed in (*range(6), 1121, 2113):  # a late word that a tree waits; a tool whose agent moved
        outcome = SCENARIOS["trees"].run(seed)
        assert outcome.failure == "", f"comity sim --scenario trees --seed {seed}"
        marks |= set(outcome.marks)
    assert set(MARKS) <= marks


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: f"{defect.invariant}: {defect.what}")
def test_a_defect_of_a_tree_is_caught(defect: Defect) -> None:
    defect = defect._replace(scenario="trees", seeds_max=200)
    assert defect.is_caught_by(defect.known) or defect.seeds_needed() is not None
