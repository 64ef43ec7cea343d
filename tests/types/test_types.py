"""Every call by function has the type that `samples.py` says, in mypy and in pyright; the benchmarks fit the package."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SAMPLES = Path(__file__).with_name("samples.py")
LINES = SAMPLES.read_text().splitlines()
WRONG = {number for number, line in enumerate(LINES, 1) if line.endswith("# wrong")}
REVEALS = {number: line.rpartition("# reveals ")[2] for number, line in enumerate(LINES, 1) if "# reveals " in line}


def of_mypy():
    command = [sys.executable, "-m", "mypy", "--show-error-codes", "--no-pretty", str(SAMPLES)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    told = re.findall(r"samples\.py:(\d+): (error|note): (.*)", ran.stdout)
    revealed = {int(line): text for line, kind, text in told if kind == "note" and text.startswith("Revealed type")}
    return {int(line) for line, kind, _ in told if kind == "error"}, revealed


def of_pyright():
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, str(SAMPLES)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = [(one["range"]["start"]["line"] + 1, one) for one in json.loads(ran.stdout)["generalDiagnostics"]]
    revealed = {line: one["message"] for line, one in found if one["severity"] == "information"}
    return {line for line, one in found if one["severity"] == "error"}, revealed


def plain(text):
    """Return the type in what a checker says, without modules, quotes and the ways in which checkers differ."""
    kind = re.search(r'"([^"]*)"\.?$', text)[1]
    kind = re.sub(r"\b(builtins|typing|comity(\.\w+)*|samples|tests(\.\w+)*)\.", "", kind)
    return re.sub(r"^def (.*)", r"\1", kind)


@pytest.mark.types
@pytest.mark.parametrize("checker", [of_mypy, of_pyright])
def test_calls_by_function_are_typed(checker):
    wrong, revealed = checker()
    assert wrong == WRONG
    assert {line: plain(text) for line, text in revealed.items()} == REVEALS


@pytest.mark.types
def test_benchmarks_use_names_and_signatures_that_exist():
    """No test runs them: one had stopped at a constructor's new signature."""
    benchmarks = [
        str(one) for one in sorted((ROOT / "bench").glob("*.py")) if one.stem != "peers"
    ]  # it imports other frameworks
    command = [sys.executable, "-m", "mypy", "--check-untyped-defs", "--show-error-codes", "--no-pretty", *benchmarks]
    ran = subprocess.run(command, cwd=ROOT, env=os.environ | {"MYPYPATH": "bench"}, capture_output=True, text=True, check=False)
    broken = re.compile(r"\[(attr-defined|call-arg|name-defined|import-not-found)\]$")
    assert [line for line in ran.stdout.splitlines() if broken.search(line)] == []
