"""The checkout-latency investigation runs from beginning to end in two processes, as it is written."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from pathlib import Path

import pytest
import warm
import yaml

from comity.cli.main import main

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "checkout_latency"


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Run the example once, in a folder of its own."""
    folder = tmp_path_factory.mktemp("checkout")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COMITY_", "CONTEXTCORE_", "OTEL_"))}
    done = warm.run([sys.executable, EXAMPLE / "run.py", folder], env=kept)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, done.stdout


def comity(folder, *words):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main([*words, "--store", str(folder / "work.db"), "--json"])
    return json.loads(out.getvalue())


def view(folder, audience):
    return comity(
        folder, "view", "--audience", audience, "--project", "checkout-service", "--guidance", str(folder / "project.yaml")
    )


def test_the_specialist_takes_the_handoff_and_the_orchestrator_gets_the_root_cause(ran):
    _, said = ran
    for words in (
        "orchestrator: handed off",
        "specialist: accepted Find root cause of checkout latency spike",
        "specialist: completed",
        "orchestrator: root cause: N+1 database query in payment verification: 41 queries",
    ):
        assert words in said


def test_the_constraint_of_a_person_kept_the_api_as_it_was(ran):
    folder, said = ran
    assert not (folder / "src" / "api").exists()
    assert (folder / "src" / "payments" / "verify.py").exists()
    assert "specialist: warned: constraint tests" in said
    rows = comity(folder, "audit", "list")["rows"]
    refused = [row for row in rows if row["error_code"] == "GUIDANCE_BLOCKED"]
    assert [(row["target"], row["note"].partition(";")[0]) for row in refused] == [
        ("tool:edit_file", "guidance: blocking no-breaking-changes")
    ]


def test_five_audiences_read_the_result_each_in_its_way(ran):
    folder, said = ran
    for audience in ("executive", "manager", "developer", "operator", "agent"):
        assert f"=== {audience}" in said
        assert view(folder, audience)["total"] == 4
    found = view(folder, "developer")["insights"]
    assert sorted(one["type"] for one in found) == ["analysis", "decision", "discovery", "risk"]
    (discovery,) = [one for one in found if one["type"] == "discovery"]
    assert discovery["evidence"][0]["type"] == "trace"
    assert "forbids touching src/api/checkout.py" in next(one for one in found if one["type"] == "decision")["rationale"]


def test_the_question_is_answered_with_evidence(ran):
    folder, _ = ran
    (question,) = yaml.safe_load((folder / "project.yaml").read_text())["spec"]["agentGuidance"]["questions"]
    assert question["status"] == "answered"
    (answer,) = question["answers"]
    assert (answer["agentId"], [one["type"] for one in answer["evidence"]]) == ("o11y", ["trace", "traceql"])


def test_everything_done_for_the_handoff_is_in_one_trace(ran):
    folder, _ = ran
    found = view(folder, "developer")["insights"]
    traces = {one["trace"] for one in found if one["type"] != "analysis"}
    assert len(traces) == 1
