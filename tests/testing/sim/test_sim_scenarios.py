"""The named scenarios hold for several seeds, every refusal is reached, and what the code does the specification allows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from checkers import load_checker
from workloads.mesh import STORM, mesh
from workloads.refusals import PROVOKED
from workloads.scenarios import IN_TURN, LONG_RUN, REFUSALS, SCENARIOS

from comity.core.journal.records import Accepted
from comity.testing import World
from comity.testing.sim.faults import Kind

ROOT = Path(__file__).parents[3]


PLAYED_ELSEWHERE = {"mesh", "nodes", "handoffs"}  # by more seeds: in test_sim_world.py, test_sim_handoffs.py


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name not in PLAYED_ELSEWHERE])
def test_a_scenario_holds(name):
    for seed in range(2):
        assert SCENARIOS[name].run(seed).failure == ""


def test_the_scenarios_of_the_origin_are_all_here():
    assert set(SCENARIOS) >= {
        "test_agent_calls_agent_success", "test_agent_call_cycle_detection", "test_agent_call_timeout",
        "test_agent_call_depth_limit", "test_agent_call_under_network_partition", "test_single_activation_during_cross_call",
        "test_agent_call_with_storage_faults", "test_determinism_multi_agent",
    }  # fmt: skip


def test_a_scenario_about_order_has_one_trace_for_a_seed_and_others_for_others():
    play = SCENARIOS["test_determinism_multi_agent"]
    traces = [play.run(seed).trace.text() for seed in (1, 1, 2)]
    assert traces[0] == traces[1] != traces[2]


def test_every_refusal_of_the_call_path_is_provoked():
    """Read off the sources, so that a new refusal needs a way to be reached."""
    told = set()
    for name in (
        "core/call/admission.py",
        "runtime/call/path.py",
        "runtime/call/tools.py",
        "runtime/call/replay.py",
        "runtime/cluster/asking.py",
        "runtime/cluster/cluster.py",
    ):
        text = (ROOT / "src" / "comity" / name).read_text()
        told |= set(re.findall(r'Refus(?:ed|al)\(\s*"([A-Z_]+)"', text))
    assert told <= set(REFUSALS), told - set(REFUSALS)
    assert set(REFUSALS) - set(PROVOKED) == {"ROUTING_DEADLOCK_PREVENTED", "NODE_UNREACHABLE"}  # which storms bring


def test_a_long_run_has_every_fault_there_is_and_the_marks_of_one_node_and_of_several():
    assert {fault.kind for fault in LONG_RUN.faults} == set(Kind)
    assert {"lease takeover", "zombie refused", "duplicate refused", "late reply", "torn tail"} <= set(LONG_RUN.marks)
    assert {"handoff re-delivered", "former receiver refused", "handoff dead-lettered"} <= set(LONG_RUN.marks)
    assert {names[0] for names in IN_TURN} == {"mesh", "nodes"}  # which make enough calls
    assert {name for names in IN_TURN for name in names[1:]} == {"handoffs", "refusals"}


def test_what_the_nodes_wrote_is_a_behaviour_of_the_specification():
    checker = load_checker("trace_check")
    for seed in range(4):
        world = World(
            seed, faults=[fault for fault in STORM if fault.kind not in {Kind.CLOCK_JUMP, Kind.NODE_PAUSE}], is_swarm=True
        )
        outcome = world.run(mesh)
        assert outcome.failure == ""
        records = checker.of_appends(outcome.appends)
        breach = checker.check(records, skew_ms=1_000)
        assert breach is None, (seed, breach, records[breach.position])


def test_a_damaged_record_of_a_run_is_not():
    checker = load_checker("trace_check")
    outcome = World(3).run(mesh)
    doubled = [one for append in outcome.appends for one in (append, *([append] if type(append[0]) is Accepted else []))]
    assert checker.check(checker.of_appends(outcome.appends)) is None
    assert checker.check(checker.of_appends(doubled)).rule == "SettledOnce"
