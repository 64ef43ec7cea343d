"""What must hold for every run that is over, judged from its history alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from comity.core.workflow import history
from comity.core.workflow.graph import Program
from comity.core.workflow.planner import Planner


class BrokenError(AssertionError):
    """An invariant does not hold; `name` is the one."""

    def __init__(self, name: str, what: object) -> None:
        super().__init__(f"{name}: {what}")
        self.name = name


def judge(program: Program, events: Sequence[history.Event]) -> Planner:
    """Return the planner after a history of a run that is over; raise `BrokenError`."""
    planner = Planner(program)
    calls: dict[int, history.Call] = {}
    settled: dict[int, str] = {}
    for event in events:
        for command in planner.apply(event):
            if isinstance(command, history.Call):
                calls[command.step] = command
        if isinstance(event, history.Settled):
            settled[event.step] = event.reply["status"]
    if planner.finish is None or planner.waits:
        raise BrokenError("EveryRunEnds", [one.place for one in planner.waits.values()])
    places = Counter((one.place, one.attempt) for one in calls.values() if not one.is_undo)
    if twice := [place for place, count in places.items() if count > 1]:
        raise BrokenError("NoNodeTwice", twice)
    root = planner.root
    assert root is not None
    if planner.finish.status == "completed":
        unsettled = [edge.spec.id for edge in root.graph.edges if edge.loop is None and root.edges[edge.number] is None]
        if unsettled:
            raise BrokenError("EveryJoinSettles", unsettled)
    undoable = {node.spec.name for node in root.graph.nodes if node.undo is not None}
    done = [
        calls[step].place
        for step, status in settled.items()
        if not calls[step].is_undo and status == "success" and calls[step].node in undoable
    ]
    undone = [one.place for one in calls.values() if one.is_undo and one.attempt == 1]
    expected = [] if planner.finish.status == "completed" else done[::-1]
    if undone != expected:
        raise BrokenError("CompensationComplete", (undone, expected))
    return planner
