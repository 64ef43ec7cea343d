"""Runs under faults: crashes, a slow and forgetful store, agents that fail. Every run ends, its invariants hold, and each planted
defect breaks one."""

from __future__ import annotations

import pytest
from workflow_defects import NAMES, PLANTED
from workloads.scenarios import SCENARIOS

PLAY = SCENARIOS["workflows"]
SEEDS_MAX = 12


@pytest.mark.parametrize("seed", range(3))
def test_every_run_ends_and_its_invariants_hold(seed):
    outcome = PLAY.run(seed)
    assert outcome.failure == "", outcome.failure
    assert sum(outcome.marks.get(mark, 0) for mark in PLAY.marks) == 3


@pytest.mark.parametrize(("place", "name", "defect", "invariant"), PLANTED, ids=NAMES)
def test_a_planted_defect_is_found_within_a_few_seeds(monkeypatch, place, name, defect, invariant):
    monkeypatch.setattr(place, name, defect)
    failure = next(filter(None, (PLAY.run(seed).failure for seed in range(SEEDS_MAX))))
    assert invariant in failure
