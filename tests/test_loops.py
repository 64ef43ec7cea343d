"""A test that leaves an event loop open, or the number of a lock that it closed, is the one that fails."""

from __future__ import annotations

import sys
from pathlib import Path

import warm

CONFTEST = """
import loops
from loops import pytest_runtest_teardown
pytest_configure = loops.watch_loops
"""
TESTS = """
import asyncio, os, threading, pytest

async def nothing(): pass

@pytest.fixture(scope="module")
def running():
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(nothing(), loop).result()
    yield
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()

@pytest.mark.parametrize("n", [1, 2])
def test_runs(running, n): asyncio.run(nothing())

def test_leaves(): asyncio.new_event_loop().run_until_complete(nothing())

def test_is_innocent(): import gc; gc.collect()

@pytest.mark.parametrize("is_closed", [True, False])
def test_locks(tmp_path, is_closed):
    from comity.engines.sqlite import liveness
    file = liveness.enter(tmp_path / "x.lock")
    os.close(file) if is_closed else liveness.leave(tmp_path / "x.lock", file)
"""


def test_a_loop_that_is_left_open_fails_its_own_test_and_one_that_a_fixture_runs_does_not(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    path = f"pythonpath={Path(__file__).parent / 'support'}"
    words = ["-q", "--disable-plugin-autoload", "-p", "no:cacheprovider", "-W", "error", "-o", path]
    ran = warm.run([sys.executable, "-m", "pytest", *words], cwd=tmp_path)
    assert "ERROR test_it.py::test_leaves" in ran.stdout, ran.stdout
    assert "\n1 event loops were left open\n" in ran.stdout
    assert "ERROR test_it.py::test_locks[True]" in ran.stdout
    assert "\nthe locks of 1 stores were closed, and their numbers kept\n" in ran.stdout
    assert "6 passed, 2 errors" in ran.stdout
