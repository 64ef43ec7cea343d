"""One document on stdout, whatever happens."""

import json
import sys

import pytest

from comity.cli.exits import CliError, Exit
from comity.cli.output import SHOWN_CHARS_MAX, Output, cut, program, runnable


def test_an_error_after_the_document_is_told_beside_it(capsys):
    out = Output(is_json=True, has_color=False)
    out.document({"endpoint": "here"})
    out.error(CliError(Exit.NO_RESULT, "the disk is full"))
    told = capsys.readouterr()
    assert json.loads(told.out) == {"endpoint": "here"}
    assert told.err == "error: the disk is full\n"


@pytest.mark.parametrize(
    ("started", "shown"),
    [
        (".venv/bin/comity", ".venv/bin/comity"),
        ("my tools/comity", "'my tools/comity'"),
        ("/lib/comity/__main__.py", f"{sys.executable} -m comity"),
        ("/lib/pytest/__main__.py", "comity"),
        ("/usr/bin/pytest", "comity"),
    ],
)
def test_a_command_in_a_hint_is_written_as_the_shell_can_run_it(tmp_path, monkeypatch, started, shown):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [started])
    hint = "`comity agents --app comity.demo:agents` lists them.\ncomity show last"
    assert runnable(hint) == f"`{shown} agents --app comity.demo:agents` lists them.\n{shown} show last"
    (tmp_path / "comity").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "comity").chmod(0o755)
    assert program(started) == "comity"


def test_a_long_value_is_cut_and_says_how_long_it_is():
    assert cut("x" * SHOWN_CHARS_MAX) == "x" * SHOWN_CHARS_MAX
    assert cut("x" * 900_000) == f"{'x' * SHOWN_CHARS_MAX}… (900,000 characters)"
