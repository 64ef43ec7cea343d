"""`comity schedule` from end to end: made, listed, paused, resumed and removed in the store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from comity.cli.main import main
from comity.cli.ui.exits import Exit

APP = """
from comity import Agent

calc = Agent("CALC")

@calc.capability("ADD")
async def add(a: float = 0) -> dict:
    return {"sum": a + 1}

agents = [calc]
"""
FLOW = """
workflow: adding
input: {type: object, properties: {a: {type: number}}}
nodes: {plus: {call: CALC/ADD, input: {a: "{{input.a ?? 0}}"}}}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schedule_agents.py").write_text(APP)
    (tmp_path / "flow.yaml").write_text(FLOW)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    capsys.readouterr()
    code = main([*arguments, "--json", "--app", "schedule_agents:agents", "--store", "w.db"])
    printed = capsys.readouterr().out
    return code, json.loads(printed) if printed else None


def test_a_schedule_is_made_listed_paused_resumed_and_removed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, made = told(
        capsys, "schedule", "add", "nightly", "flow.yaml", "a=5", "--cron", "30 2 * * *", "--zone", "Europe/Berlin"
    )
    assert code == Exit.OK
    assert (made["schedule"]["workflow"], made["schedule"]["input"], made["schedule"]["zone"]) == (
        "adding",
        {"a": 5},
        "Europe/Berlin",
    )
    assert told(capsys, "schedule", "pause", "nightly")[1]["schedule"]["is_paused"] is True
    (listed,) = told(capsys, "schedule", "list")[1]["schedules"]
    assert (listed["name"], listed["is_paused"]) == ("nightly", True)
    assert told(capsys, "schedule", "resume", "nightly")[1]["schedule"]["next_at"] == made["schedule"]["next_at"]
    assert told(capsys, "schedule", "remove", "nightly")[0] == Exit.OK
    assert told(capsys, "schedule", "list")[1] == {"schedules": []}
    main(["schedule", "list", "--store", "w.db"])
    assert "comity schedule add" in capsys.readouterr().out


def test_a_table_shows_when_a_schedule_runs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "schedule", "add", "often", "flow.yaml", "--every", "90m")
    main(["schedule", "list", "--store", "w.db"])
    printed = capsys.readouterr().out
    assert "often" in printed
    assert "every 1h30m" in printed


def test_what_is_wrong_is_said_with_its_exit_code(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(
            ["schedule", "add", "x", "flow.yaml", "--cron", "61 * * * *", "--app", "schedule_agents:agents", "--store", "w.db"]
        )
        == Exit.USAGE
    )
    assert "minute '61'" in capsys.readouterr().err
    assert main(["schedule", "pause", "x", "--store", "w.db"]) == Exit.NOT_FOUND
    assert "comity schedule list" in capsys.readouterr().err
