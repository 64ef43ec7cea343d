"""Tests in several processes that are forked once all tests are collected: `--forks N`. See ADR 178.

Each process takes the tests of one file after the other; the process that was started tells of all of them.
"""

from __future__ import annotations

import itertools
import math
import mmap
import os
import signal
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

import pytest

_INDEX_BYTES = 4
_TOOK = "forks/took"  # in pytest's cache: the seconds that each file took


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--forks", type=int, default=0, metavar="N", help="run the tests in N processes that are forked")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run all tests in forked processes, if there are to be some."""
    option = session.config.option
    if not option.forks or option.collectonly or session.testsfailed:
        return None
    files = [[*some] for _, some in itertools.groupby(range(len(session.items)), lambda at: session.items[at].path)]
    todo, fill = os.pipe()  # one queue for all processes: a read takes the next file
    os.write(fill, b"".join(at.to_bytes(_INDEX_BYTES, "big") for at in _longest_first(session, files)))
    os.close(fill)
    running = mmap.mmap(-1, _INDEX_BYTES * option.forks)  # the test that each process runs: which it was if the process dies
    workers: dict[Connection, tuple[int, int]] = {}
    for number in range(option.forks):
        ours, theirs = Pipe(duplex=False)
        if not (pid := _fork()):
            _work(session, _taken(files, todo), theirs, running, number)
        theirs.close()
        workers[ours] = pid, number
    os.close(todo)
    try:
        _tell(session, workers, running)
    finally:
        for pid, _ in workers.values():  # of those that are left if this was interrupted
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return True


def _longest_first(session: pytest.Session, files: list[list[int]]) -> list[int]:
    """Return the files in an order in which no process is busy for long when the others are done.

    How long a file takes is known from an earlier run. Of the others the last come first: their folders hold the longest tests.
    """
    cache = getattr(session.config, "cache", None)
    took = {} if cache is None else cache.get(_TOOK, {})
    return sorted(range(len(files)), key=lambda at: (-took.get(_file(session.items[files[at][0]].nodeid), math.inf), -at))


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _fork() -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads that a test file may have started are not used by another
        return os.fork()


def _taken(files: list[list[int]], todo: int) -> Iterator[int]:
    while taken := os.read(todo, _INDEX_BYTES):
        yield from files[int.from_bytes(taken, "big")]


# --- in a forked process ---


class _Sender:
    """Sends what is told of a test at its end."""

    def __init__(self, config: pytest.Config, pipe: Connection) -> None:
        self._config = config
        self._pipe = pipe
        self._told: list[dict[str, Any]] = []
        self._tells_all = config.option.durations is not None or config.option.xmlpath is not None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self._tells_all or report.when == "call" or not report.passed:
            self._told.append(self._config.hook.pytest_report_to_serializable(config=self._config, report=report))

    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._pipe.send((nodeid, location, self._told))
        self._told = []


def _work(session: pytest.Session, taken: Iterator[int], pipe: Connection, running: mmap.mmap, number: int) -> None:
    """Run tests until none is left, and end this process."""
    plugins = session.config.pluginmanager
    capture: Any = plugins.getplugin("capturemanager")
    code = 1
    try:
        plugins.unregister(name="terminalreporter")
        plugins.register(_Sender(session.config, pipe))
        capture.stop_global_capturing()  # its files are those of all processes
        capture.start_global_capturing()
        at = next(taken, None)
        while at is not None:
            following = next(taken, None)
            running[number * _INDEX_BYTES : (number + 1) * _INDEX_BYTES] = at.to_bytes(_INDEX_BYTES, "big")
            after = None if following is None else session.items[following]
            session.config.hook.pytest_runtest_protocol(item=session.items[at], nextitem=after)
            at = following
        code = 0
    except BaseException:  # noqa: BLE001  this process must not go on as if it were the one that was started
        capture.stop_global_capturing()
        traceback.print_exc()
    finally:
        pipe.close()
        os._exit(code)


# --- in the process that was started ---


def _tell(session: pytest.Session, workers: dict[Connection, tuple[int, int]], running: mmap.mmap) -> None:
    """Pass on what the processes send until all have ended; a test of which nothing was sent has failed."""
    hook, untold = session.config.hook, {item.nodeid: item for item in session.items}
    took: Counter[str] = Counter()
    while workers:
        for pipe in wait([*workers]):
            assert isinstance(pipe, Connection)
            try:
                nodeid, location, told = pipe.recv()
            except EOFError:
                pid, number = workers.pop(pipe)
                pipe.close()
                if code := os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
                    at = int.from_bytes(running[number * _INDEX_BYTES : (number + 1) * _INDEX_BYTES], "big")
                    item = session.items[at]
                    if untold.pop(item.nodeid, None):
                        hook.pytest_runtest_logreport(report=_failed(item, f"its process ended with {code}"))
                continue
            untold.pop(nodeid, None)
            for one in told:
                report = hook.pytest_report_from_serializable(config=session.config, data=one)
                took[_file(nodeid)] += report.duration
                hook.pytest_runtest_logreport(report=report)
            hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
    if (cache := getattr(session.config, "cache", None)) is not None:
        cache.set(_TOOK, cache.get(_TOOK, {}) | {name: round(seconds, 3) for name, seconds in took.items()})
    for item in untold.values():
        hook.pytest_runtest_logreport(report=_failed(item, "it was not run, because its process ended"))


def _failed(item: pytest.Item, why: str) -> pytest.TestReport:
    return pytest.TestReport(item.nodeid, item.location, {}, "failed", f"{item.nodeid}: {why}", "call")
