"""Each invariant of a run is broken by the defect that is planted for it, and by nothing else."""

from __future__ import annotations

import pytest
from workflow_defects import NAMES, PLANTED
from workflow_driver import Run, failed, ok
from workloads.run_invariants import BrokenError, judge

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


REPLIES = {  # of `a` and `d`, where the defect shows
    "EveryJoinSettles": (ok({"n": 1}), ok()),
    "NoNodeTwice": (ok({"n": 9}), ok()),
    "CompensationComplete": (ok({"n": 9}), failed()),
    "EveryRunEnds": (ok({"n": 9}), failed()),
}


@pytest.mark.parametrize(("owner", "name", "defect", "invariant"), PLANTED, ids=NAMES)
def test_a_planted_defect_breaks_its_invariant(monkeypatch, owner, name, defect, invariant):
    replies = dict(zip("ad", REPLIES[invariant], strict=True))
    sound = Run(TEXT, replies).go()
    judge(sound.program, sound.history)
    monkeypatch.setattr(owner, name, defect)
    broken = Run(TEXT, replies).go()
    with pytest.raises(BrokenError) as caught:
        judge(broken.program, broken.history)
    assert caught.value.name == invariant
