"""`comity sim` plays seeds, says what it reached and what it did not, and shows one seed as it went."""

from __future__ import annotations

import json
import re

import pytest

APP = "workloads.scenarios:CAMPAIGN"


@pytest.fixture(autouse=True)
def scenarios(monkeypatch):
    """The project's own scenarios, where no other are named."""
    monkeypatch.setenv("COMITY_APP", APP)


def test_the_scenarios_are_those_that_the_caller_names(comity, monkeypatch):
    ran = comity("sim", "--app", "app:make")
    assert ran.code == 2
    assert "app:make is a function, not a Campaign" in ran.err
    monkeypatch.delenv("COMITY_APP")
    ran = comity("sim")
    assert ran.code == 2
    assert "Name a `comity.testing.Campaign` with --app module:attribute" in ran.err
    assert comity("sim", "--app", APP, "--scenario", "list").code == 0


def test_a_long_run_plays_one_node_and_several_and_names_what_it_never_reached(comity):
    ran = comity("sim", "--seeds", "10", "--complete")
    assert ran.code == 1  # so few seeds do not reach everything
    told = re.search(r"10 seeds, ([\d,]+) calls, at least (\d+) in each; .* calls/s", ran.out)
    assert told is not None
    assert int(told[2]) >= 100
    assert re.search(r"\d+  calls of a dead node taken up", ran.out)  # one node
    assert re.search(r"\d+  lease takeover", ran.out)  # several
    assert re.search(r"\d+  handoff re-delivered", ran.out)
    assert "never reached: refusal TOOL_UNKNOWN" in ran.out  # each fiftieth seed provokes it
    assert "Nothing that must hold was broken" in ran.out


def test_a_seed_of_the_long_run_is_the_seed_of_the_scenario_whose_turn_it_is(comity):
    def digest(*more: str) -> str:
        return json.loads(comity("sim", "--json", *more).out)["digest"]

    assert digest("--seed", "2") == digest("--seed", "2", "--scenario", "nodes")
    assert digest("--seed", "3") == digest("--seed", "3", "--scenario", "mesh")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (("--seeds", "0"), "--seeds"),
        (("--seed", "1", "--faults", "NodeCrsh:1"), "did you mean NodeCrash"),
        (("--seed", "1", "--faults", "NodeCrash"), "such as NodeCrash:3"),
        (("--faults", "NodeCrash:1"), "Name it with --seed"),
        (("--scenario", "nothing"), "no scenario 'nothing'"),
    ],
)
def test_what_cannot_be_played_is_wrong_usage(comity, wrong, told):
    ran = comity("sim", *wrong)
    assert ran.code == 2
    assert told in ran.err


def test_many_seeds_and_the_list_are_documents_too(comity):
    told = json.loads(comity("sim", "--scenario", "mesh", "--seeds", "2", "--complete", "--json").out)
    assert told["seeds"] == 2
    assert told["calls"] >= 2 * told["calls_least"] >= 200
    assert told["failures"] == []
    assert any(one.startswith("fault ") for one in told["missing"])
    assert all(count for name in ("faults", "marks", "transitions") for count in told[name].values())
    assert "mesh" in json.loads(comity("sim", "--scenario", "list", "--json").out)["scenarios"]
