"""Defects of the planner, each with the invariant of a run that it breaks."""

from __future__ import annotations

from typing import Any

from comity.core.workflow.activities import Activities
from comity.core.workflow.ending import Endings
from comity.core.workflow.planner import Planner
from comity.core.workflow.scope import Activity, Scope, State


def forgets_edges_of_skipped_nodes(self: Planner, scope: Scope, number: int) -> None:
    scope.states[number] = State.SKIPPED


def starts_a_join_twice(self: Planner, scope: Scope, number: int) -> None:
    for _ in range(2 if len(scope.graph.nodes[number].incoming) > 1 else 1):
        if not scope.pending[number] and scope.taken[number]:
            self._begin(scope, number)
    if not scope.pending[number] and not scope.taken[number]:
        self.push(self.skip, scope, number)


def forgets_what_to_undo(self: Activities, activity: Activity, found: dict[str, Any]) -> None:
    return None


def undoes_in_order(self: Endings, scope: Scope) -> None:
    undo = scope.undo.pop(0)
    scope.undoing, scope.undo_attempts = undo, 1
    self._call_undo(scope, undo)


def never_drains(self: Endings, scope: Scope) -> None:
    return None


PLANTED = [  # the class, its method, the defect, the invariant
    (Planner, "skip", forgets_edges_of_skipped_nodes, "EveryJoinSettles"),
    (Planner, "_try", starts_a_join_twice, "NoNodeTwice"),
    (Activities, "_push_undo", forgets_what_to_undo, "CompensationComplete"),
    (Endings, "_undo_next", undoes_in_order, "CompensationComplete"),
    (Endings, "drained", never_drains, "EveryRunEnds"),
]
NAMES = [defect.__name__ for _, _, defect, _ in PLANTED]
