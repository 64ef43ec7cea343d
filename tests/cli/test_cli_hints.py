"""Suggested commands can be pasted: they start this program, and mean the same store, agents and user."""

import re
import shlex
import sys

import pytest

from comity.cli.main import build_parser, leaves
from comity.cli.ui.examples import EXAMPLES
from comity.cli.ui.hints import program, runnable

OPTIONS = {"--app": "my app:make", "--store": "w.db", "--user": "ada"}


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
    hint = "`comity agents --app comity.demo:agents` lists them. See `comity --help`.\ncomity show last"
    whole = f"`{shown} agents --app comity.demo:agents` lists them. See `{shown} --help`.\n{shown} show last"
    assert runnable(hint, {}) == whole
    (tmp_path / "comity").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "comity").chmod(0o755)
    assert program(started) == "comity"


@pytest.mark.parametrize(
    ("hint", "whole"),
    [
        ("`comity calls` lists more.", "`comity calls --store w.db` lists more."),
        ("See `comity --help`.", "See `comity --help`."),
        ("\ncomity show x", "\ncomity show x --store w.db"),
        ("  comity show x  # this tree", "  comity show x --store w.db  # this tree"),
        ("`comity agents A` shows it.", "`comity agents A --app 'my app:make'` shows it."),
        ("`comity agents --app comity.demo:agents`", "`comity agents --app comity.demo:agents`"),
        ("`comity call A B x=1`", "`comity call A B x=1 --app 'my app:make' --store w.db --user ada`"),
        ("`comity approvals list`", "`comity approvals list --store w.db`"),
        ("`comity approvals grant I`", "`comity approvals grant I --app 'my app:make' --store w.db`"),
        ("`comity guidance show`, or `comity calls`", "`comity guidance show`, or `comity calls --store w.db`"),
        ("Comity is a layer; comity is a word.", "Comity is a layer; comity is a word."),
    ],
)
def test_a_suggested_command_repeats_the_options_it_uses(hint, whole, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert runnable(hint, OPTIONS) == whole


@pytest.mark.parametrize(
    "arguments",
    [
        ["agents"],
        ["agents", "WORK"],
        ["call", "WORK", "GREET", "nme=1"],
        ["call", "NOBODY", "X"],
        ["call", "WORK", "GREET", "name=Bob"],
        ["calls"],
        ["show", "unknown"],
    ],
)
def test_hints_of_a_command_with_an_app_and_a_store_name_them(comity, place, arguments):
    common = ["--app", "app:make", "--store", "other.db"]
    comity("call", "WORK", "GREET", "name=Ann", *common)
    ran = comity(*arguments, *common)
    found = re.findall(r"`comity ([^`]+)`|^ *comity (.+)$", ran.out + ran.err, flags=re.MULTILINE)
    assert found, ran
    for pair in found:
        command = "".join(pair)
        if "--help" not in command:
            assert "--app app:make" in command or "--store other.db" in command, command
        if command.startswith(("agents", "call ")):
            assert "--app app:make" in command


def test_every_command_has_an_example_that_its_parser_takes():
    parser = build_parser()
    assert set(EXAMPLES) == {leaf.prog.removeprefix("comity ") for leaf in leaves(parser)}
    for name, example in EXAMPLES.items():
        words = shlex.split(example.partition(" > ")[0])[1:]
        args, extra = parser.parse_known_args(words)
        assert args.parser.prog == f"comity {name}"
        assert all("=" in word for word in extra), example  # inputs after an option, which the command reads


def test_an_empty_request_suggests_a_request_and_no_option(comity, app):
    ran = comity("ask", "")
    assert "comity ask 'what can you do'" in ran.out + ran.err
    assert "ask 1" not in ran.out + ran.err
