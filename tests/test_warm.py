"""A program in a fork of the tests' process does what it does in a new interpreter."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import warnings

import pytest
import warm

from comity import Node

SAYS = "import os, sys; print(sys.argv[1:], os.getcwd(), sorted(os.environ), __name__)"


@pytest.mark.parametrize("form", ["-c", "-m", "script"])
def test_a_program_has_the_words_the_folder_the_environment_and_the_name_it_was_started_with(tmp_path, form):
    (tmp_path / "says_it.py").write_text(SAYS)
    words = {"-c": ["-c", SAYS], "-m": ["-m", "says_it"], "script": ["says_it.py"]}[form]
    ran = warm.run([sys.executable, *words, "a", "b c"], cwd=tmp_path, env={"ONLY": "this"})
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == f"['a', 'b c'] {tmp_path} ['ONLY'] __main__\n"


@pytest.mark.parametrize(
    ("program", "code", "said"),
    [
        ("raise SystemExit(3)", 3, ""),
        ("raise SystemExit", 0, ""),
        ("raise SystemExit('no')", 1, "no\n"),
        ("1 / 0", 1, "ZeroDivisionError: division by zero\n"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, ""),
        ("import warnings; warnings.warn('odd', ResourceWarning)", 0, ""),
    ],
)
def test_a_program_ends_as_the_interpreter_ends_it(program, code, said):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ran = warm.run([sys.executable, "-c", program])
    assert ran.returncode == code
    assert ran.stderr.endswith(said)
    assert bool(ran.stderr) is bool(said)


def test_a_program_has_no_open_files_of_the_test_but_those_that_it_is_passed():
    ours, theirs = os.pipe()
    try:
        program = "import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))"
        with warm.start([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, pass_fds=[theirs]) as process:
            found = process.stdout.read()
    finally:
        os.close(ours)
        os.close(theirs)
    assert found == f"{sorted({0, 1, 2, theirs, min({3, 4} - {theirs})})}\n"  # and the folder that is listed


def test_a_program_may_run_a_node_though_the_test_runs_one():
    program = "import asyncio\nfrom comity import Node\nasync def go():\n async with Node(): print('ran')\nasyncio.run(go())"
    node = Node(lag_ms=None)
    with asyncio.Runner() as runner:
        runner.run(node.start())
        ran = warm.run([sys.executable, "-c", program])
        runner.run(node.close())
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "ran\n", "")
