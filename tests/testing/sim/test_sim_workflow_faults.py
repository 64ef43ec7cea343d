"""Runs under faults: crashes, a slow and forgetful store, agents that fail. Every run ends, its invariants hold, and each planted
defect breaks one."""

from __future__ import annotations

import pytest

from comity.core.workflow.activities import Activities
from comity.core.workflow.ending import Endings
from comity.core.workflow.planner import Planner
from comity.core.workflow.scope import State
from comity.testing.workloads.scenarios import SCENARIOS

PLAY = SCENARIOS["workflows"]
SEEDS_MAX = 12


@pytest.mark.parametrize("seed", range(3))
def test_every_run_ends_and_its_invariants_hold(seed):
    outcome = PLAY.run(seed)
    assert outcome.failure == "", outcome.failure
    assert sum(outcome.marks.get(mark, 0) for mark in PLAY.marks) == 3


def forgets_edges_of_skipped_nodes(self, scope, number):
    scope.states[number] = State.SKIPPED


def starts_a_join_twice(self, scope, number):
    for _ in range(2 if len(scope.graph.nodes[number].incoming) > 1 else 1):
        if not scope.pending[number] and scope.taken[number]:
            self._begin(scope, number)
    if not scope.pending[number] and not scope.taken[number]:
        self.push(self.skip, scope, number)


def forgets_what_to_undo(self, activity, found):
    return None


def undoes_in_order(self, scope):
    undo = scope.undo.pop(0)
    scope.undoing, scope.undo_attempts = undo, 1
    self._call_undo(scope, undo)


def never_drains(self, scope):
    return None


@pytest.mark.parametrize(
    ("place", "name", "defect", "invariant"),
    [
        (Planner, "skip", forgets_edges_of_skipped_nodes, "EveryJoinSettles"),
        (Planner, "_try", starts_a_join_twice, "NoNodeTwice"),
        (Activities, "_push_undo", forgets_what_to_undo, "CompensationComplete"),
        (Endings, "_undo_next", undoes_in_order, "CompensationComplete"),
        (Endings, "drained", never_drains, "EveryRunEnds"),
    ],
)
def test_a_planted_defect_is_found_within_a_few_seeds(monkeypatch, place, name, defect, invariant):
    monkeypatch.setattr(place, name, defect)
    failure = next(filter(None, (PLAY.run(seed).failure for seed in range(SEEDS_MAX))))
    assert invariant in failure
