"""Specification, configurations, trace checker and code use the same names, and every rule of the specification is needed."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from comity.core.call.limits import Limits
from comity.core.journal.audit import Kind
from comity.errors import CODES

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "spec"
INVARIANTS = (
    "NoDeadlock", "NoCycle", "SingleActivation", "DepthBounded", "FanOutBounded", "BoundedPendingCalls", "LimitsOnlyShrink",
    "BudgetConserved", "SettledOnce", "NoLateSuccess", "EffectAtMostOnce", "AuditPrecedesEffect", "AuditComplete",
    "IsolationHolds",
)  # fmt: skip
OF_HANDOFFS = ("NoLostHandoff",)
OF_WORKFLOWS = ("FiresOnce", "WaitsForThePerson")
LIVENESS = ("EveryCallEnds", "BreakerEventuallyProbes", "EveryHandoffEnds", "EveryJoinSettles")
SOUND = ("small", "wide", "ends", "answers", "breaker", "handoff", "delivery", "workflow", "quorum", "large")
BROKEN = sorted((SPEC / "broken").glob("*.cfg"))


def load(path: Path):
    found = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(found)
    sys.modules[path.stem] = module
    found.loader.exec_module(module)
    return module


def definitions(module: str, after: str = "") -> list[str]:
    text = (SPEC / f"{module}.tla").read_text()
    return re.findall(r"^(\w+)(?:\(.*?\))? +==", text[text.index(after) :], re.MULTILINE)


def checked(config: Path) -> tuple[list[str], list[str]]:
    """Return the invariants and the properties a configuration asks for."""
    invariants, _, properties = config.read_text().partition("\nPROPERTIES")
    return invariants.partition("\nINVARIANTS")[2].split(), properties.split()


def defect(config: Path) -> str:
    return re.search(r'Defect = "(\w+)"', config.read_text())[1]


def test_the_specification_states_exactly_these_invariants_and_promises():
    assert definitions("Comity", "(* What always holds *)") == [*INVARIANTS, "EveryCallEnds"]
    assert definitions("Breaker")[-1] == "BreakerEventuallyProbes"
    assert definitions("Handoff", "(* What always holds *)")[:2] == [*OF_HANDOFFS, "EveryHandoffEnds"]


def test_every_invariant_and_promise_has_a_configuration_that_breaks_it_and_nothing_else_has():
    assert {config.stem.partition("-")[0] for config in BROKEN} == {*INVARIANTS, *OF_HANDOFFS, *OF_WORKFLOWS, *LIVENESS}


@pytest.mark.parametrize("config", BROKEN, ids=lambda config: config.stem)
def test_a_broken_configuration_leaves_one_rule_out_and_asks_for_what_that_breaks(config):
    name = config.stem.partition("-")[0]
    invariants, properties = checked(config)
    assert name in (*invariants, *properties)
    assert name in (*INVARIANTS, *OF_HANDOFFS, *OF_WORKFLOWS) or properties == [
        name
    ]  # TLC does not name the property that failed
    assert defect(config) != "none"


def test_every_rule_of_the_specification_is_left_out_somewhere():
    text = "".join((SPEC / f"{module}.tla").read_text() for module in ("Comity", "Breaker", "Handoff", "Workflow"))
    rules = set(re.findall(r'(?:Holds|Refuses)\("(\w+)"|Defect [=#] "(\w+)"', text))
    assert {one or other for one, other in rules} == {defect(config) for config in BROKEN}


def test_what_must_hold_is_asked_with_every_rule_in_place():
    configs = {name: SPEC / f"{name}.cfg" for name in SOUND}
    assert {config.stem for config in SPEC.glob("*.cfg")} == set(configs)
    assert {defect(config) for config in configs.values()} == {"none"}
    for name in ("small", "wide", "ends", "large"):
        assert checked(configs[name])[0] == list(INVARIANTS), name
    assert checked(configs["ends"])[1] == checked(configs["answers"])[1] == ["EveryCallEnds"]
    assert checked(configs["breaker"])[1] == ["BreakerEventuallyProbes"]
    for name in ("handoff", "delivery"):
        assert checked(configs[name]) == (list(OF_HANDOFFS), ["EveryHandoffEnds"]), name


def test_the_small_world_is_large_enough_to_mean_something():
    text = (SPEC / "small.cfg").read_text()
    assert len(re.search(r"Agents = \{(.*)\}", text)[1].split(",")) >= 3
    assert len(re.search(r"Nodes = \{(.*)\}", text)[1].split(",")) >= 2
    assert "Ask <- Deep" in text
    assert "<<1, 1, 1, 1>>" in (SPEC / "Scenarios.tla").read_text().partition("Deep ==")[2].partition("Wide ==")[0]


def test_everything_that_must_be_reachable_has_a_configuration_that_says_it_is_not():
    traps = {
        name.removeprefix("Never") for name in (*definitions("Scenarios"), *definitions("Handoff")) if name.startswith("Never")
    }
    assert {config.stem for config in (SPEC / "reach").glob("*.cfg")} == traps
    for config in (SPEC / "reach").glob("*.cfg"):
        assert checked(config) == ([f"Never{config.stem}"], [])
        assert defect(config) == "none"


def test_the_trace_checker_names_its_rules_as_the_specification_does():
    text = (SPEC / "trace_check.py").read_text()
    rules = set(re.findall(r'"((?:[A-Z][a-z]+){2,}|Tick)"', text))
    assert rules >= {"NoDeadlock", "SettledOnce", "AuditComplete", "EveryCallEnds", "TimeOut", "RecordLate", "Tick"}
    assert rules <= set(definitions("Comity"))


def test_the_trace_checker_knows_every_record_limit_and_code_of_the_code():
    trace_check = load(SPEC / "trace_check.py")
    # A resumed call needs no row of its own, and a cut of the audit is about rows, not about a call.
    assert set(trace_check.KINDS.values()) == {*(str(kind) for kind in Kind), "resumed"} - {"cut"}
    assert set(trace_check.ACTIONS) == {*trace_check.KINDS.values(), "crash"}
    assert Limits.__struct_fields__ == trace_check.LIMITS
    assert set(trace_check.FOUNDED) <= set(CODES)
