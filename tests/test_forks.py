"""Tests in forked processes: what each of them told is told once, and a process that dies takes no failure with it."""

from __future__ import annotations

import re
import subprocess
import sys

import forks

OF_A_USER = {
    "test_one.py": """
import os

def test_passes():
    print("not shown")

def test_fails():
    os.system("echo said by a child")
    assert 1 == 2
""",
    "test_two.py": """
import os, pytest

@pytest.fixture(scope="module", autouse=True)
def once():
    yield
    with open("teardowns", "a") as file:
        file.write("torn down\\n")

@pytest.mark.xfail(strict=True)
def test_is_expected_to_fail():
    assert False

def test_is_skipped():
    pytest.skip("no need")

@pytest.fixture
def broken():
    yield
    raise ValueError("in the teardown")

def test_passes_before_its_teardown(broken): ...
""",
    "test_three.py": """
import os, signal

def test_dies():
    os.kill(os.getpid(), signal.SIGKILL)

def test_is_never_run(): ...
""",
}


def test_every_test_is_told_once_also_if_its_process_died(tmp_path):
    for name, text in OF_A_USER.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {forks.__file__.removesuffix('forks.py')}\n")
    (tmp_path / "conftest.py").write_text("from forks import pytest_addoption, pytest_runtestloop\n")
    command = [sys.executable, "-m", "pytest", "-q", "--forks", "2", "--disable-plugin-autoload", "-p", "no:cacheprovider"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    told = ran.stdout
    assert ran.returncode == 1
    assert "3 failed, 2 passed, 1 skipped, 1 xfailed, 1 error in" in told
    assert sorted(re.findall(r"^(?:FAILED|ERROR) (\S+)", told, re.MULTILINE)) == [
        "test_one.py::test_fails",
        "test_three.py::test_dies",
        "test_three.py::test_is_never_run",
        "test_two.py::test_passes_before_its_teardown",
    ]
    assert ("said by a child" in told, "not shown" in told) == (True, False)
    assert "test_dies: its process ended with -9" in told
    assert "test_is_never_run: it was not run, because its process ended" in told
    assert (tmp_path / "teardowns").read_text() == "torn down\n"
