"""Every invariant can fail: each has a broken twin of production code that it must catch."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from defects import DEFECTS

from comity.testing.sim.invariants import INVARIANTS, LIVENESS

SPEC = Path(__file__).parents[3] / "spec"


def test_every_invariant_has_a_defect_and_every_defect_an_invariant():
    assert {defect.invariant for defect in DEFECTS} == {*INVARIANTS, *LIVENESS}


def test_the_simulator_checks_what_the_specification_states_under_the_same_names():
    stated = {"BreakerEventuallyProbes"}
    for module in ("Comity", "Handoff"):
        text = (SPEC / f"{module}.tla").read_text().partition("(* What always holds *)")[2].partition("(* What happens")[0]
        stated |= set(re.findall(r"^(\w+)(?:\(.*?\))? +==", text, re.MULTILINE))
    assert stated == {*INVARIANTS, *LIVENESS}


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: f"{defect.invariant}: {defect.what}")
def test_a_defect_is_caught(defect):
    assert defect.is_caught_by(defect.known) or defect.seeds_needed() is not None
