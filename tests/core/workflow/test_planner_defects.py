"""Each invariant of a run is broken by the defect that is planted for it, and by nothing else."""

from __future__ import annotations

import pytest
from workflow_driver import Run, failed, ok

from comity.core.workflow.activities import Activities
from comity.core.workflow.ending import Endings
from comity.core.workflow.planner import Planner
from comity.core.workflow.scope import State
from comity.testing.sim.run_invariants import BrokenError, judge

TEXT = """
workflow: judged
nodes:
  a: {call: A/X, undo: {call: U/X}}
  b: {call: B/X, after: [a], undo: {call: U/X}}
  c: {call: C/X}
  c2: {call: C/X, after: [c]}
  d: {call: D/X, after: [b, c2]}
edges:
  - {from: a, to: c, when: 'response.data.n > 5'}
"""


def forgets_edges_of_skipped_nodes(self, scope, number):
    scope.states[number] = State.SKIPPED


def starts_a_join_twice(self, scope, number):
    for _ in range(2 if scope.graph.nodes[number].spec.name == "d" else 1):
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


DEFECTS = [
    (Planner, "skip", forgets_edges_of_skipped_nodes, "EveryJoinSettles", ok({"n": 1}), ok()),
    (Planner, "_try", starts_a_join_twice, "NoNodeTwice", ok({"n": 9}), ok()),
    (Activities, "_push_undo", forgets_what_to_undo, "CompensationComplete", ok({"n": 9}), failed()),
    (Endings, "_undo_next", undoes_in_order, "CompensationComplete", ok({"n": 9}), failed()),
    (Endings, "drained", never_drains, "EveryRunEnds", ok({"n": 9}), failed()),
]


@pytest.mark.parametrize(
    ("owner", "name", "defect", "invariant", "first", "last"), DEFECTS, ids=[one[2].__name__ for one in DEFECTS]
)
def test_a_planted_defect_breaks_its_invariant(monkeypatch, owner, name, defect, invariant, first, last):
    replies = {"a": first, "d": last}
    sound = Run(TEXT, replies).go()
    judge(sound.program, sound.history)
    monkeypatch.setattr(owner, name, defect)
    broken = Run(TEXT, replies).go()
    with pytest.raises(BrokenError) as caught:
        judge(broken.program, broken.history)
    assert caught.value.name == invariant
