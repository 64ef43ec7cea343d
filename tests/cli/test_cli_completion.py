"""Completion scripts know every command, verb and option, and a shell can use them."""

import subprocess

import pytest

from comity.cli.commands.completion import SHELLS
from comity.cli.main import COMMANDS, build_parser, leaves, options


def complete(script, *words):
    """Return what bash offers after these words."""
    quoted = " ".join(f"'{word}'" for word in words)
    code = f"{script}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _comity; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    ran = subprocess.run(["bash", "--norc", "-c", code], capture_output=True, text=True, check=True, timeout=30)  # noqa: S607
    assert ran.stderr == ""
    return set(ran.stdout.split())


def test_bash_completes_commands_verbs_and_options(comity):
    script = comity("completion", "bash").out
    assert complete(script, "comity", "a") == {"agents", "approvals", "ask", "audit"}
    assert complete(script, "comity", "audit", "") >= {"list", "verify"}
    assert complete(script, "comity", "guidance", "set", "f") == {"focus"}
    assert complete(script, "comity", "--store", "w.db", "calls", "--li") == {"--limit"}
    assert complete(script, "comity", "completion", "") >= set(SHELLS)
    assert complete(script, "comity", "call", "ANL", "--st") == {"--store"}


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_and_option_is_in_the_script(comity, shell):
    script = comity("completion", shell).out
    for leaf in leaves(build_parser()):
        for word in (*leaf.prog.split()[1:], *(name.lstrip("-") for name in options(leaf) if name.startswith("--"))):
            assert word in script
    assert set(COMMANDS) <= set(script.replace('"', " ").replace("'", " ").split())


def test_an_unknown_shell_is_wrong_usage(comity):
    ran = comity("completion", "tcsh")
    assert ran.code == 2
    assert "unknown shell" in ran.err
