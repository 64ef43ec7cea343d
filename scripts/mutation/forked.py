"""Try defects in forked copies of one process that has collected the tests: a defect costs its tests and no start.

A defect inside a function takes the place of the function's code in the copy. One that matters on import is tried in a process
of its own, whose import finds the changed file.
"""

from __future__ import annotations

import gc
import os
import resource
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import NamedTuple

import pytest

from mutation.defects import Mutant
from mutation.reach import ROOT, SOURCE, Reach, block_at

WALL_S_MAX = 240  # of one defect: a defect that hangs is noticed
STILL_S_MAX = 15  # of one test, beside `STILL_SHARE` times what it takes without a defect
STILL_SHARE = 20
IDLE_S_MAX = 15  # of one test that uses no CPU: it waits for what never comes
FILES_MAX = 24  # of tests that a process of its own collects for one defect: those of other rooms notice some
_IMPORT = """
import importlib.machinery as m, importlib.util as u, pathlib, sys, pytest
class Loader(m.SourceFileLoader):
    def get_code(self, fullname): return compile(pathlib.Path({changed!r}).read_text(), self.path, "exec", dont_inherit=True)
class Finder:
    def find_spec(self, name, path=None, target=None):
        return u.spec_from_file_location(name, {path!r}, loader=Loader(name, {path!r})) if name == {name!r} else None
sys.meta_path.insert(0, Finder())
sys.path.insert(0, {root!r})
sys.exit(pytest.main({arguments!r}))
"""


class Outcome(NamedTuple):
    """What became of a defect: killed by which test, hung, or survived how many tests; and its CPU time."""

    word: str
    test: str
    tests: int
    cpu_s: float


def functions_by_code() -> dict[tuple[str, str, int], list[FunctionType]]:
    """Return the functions of this process, by the file, name and line of their code."""
    gc.unfreeze()
    found: dict[tuple[str, str, int], list[FunctionType]] = {}
    for thing in gc.get_objects():
        if type(thing) is FunctionType:  # isinstance asks the object, and tests hold some that raise
            found.setdefault(_key(thing.__code__), []).append(thing)
    gc.freeze()
    return found


def _key(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def changed_codes(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]] | None:
    """Return pairs of code that differ, or None where code that runs on import differs."""
    pairs: list[tuple[CodeType, CodeType]] = []

    def compare(first: CodeType, second: CodeType) -> bool:
        """Return whether the code itself is the same, not counting the functions in it."""
        inner = [(one, two) for one, two in zip(first.co_consts, second.co_consts, strict=False) if isinstance(one, CodeType)]
        if len(first.co_consts) != len(second.co_consts) or any(not isinstance(two, CodeType) for _, two in inner):
            return False
        for one, two in inner:
            if one != two:
                is_class_or_import = compare(one, two)
                if not is_class_or_import or one.co_flags & 0x2:  # CO_NEWLOCALS: a function; a class body has none
                    pairs.append((one, two))
        plain = [[const for const in code.co_consts if not isinstance(const, CodeType)] for code in (first, second)]
        return first.co_code == second.co_code and repr(plain[0]) == repr(plain[1]) and first.co_names == second.co_names

    if not compare(old, new):
        return None
    if any(not one.co_flags & 0x2 for one, _ in pairs):
        return None
    return iter(pairs)


class Forker:
    """A pytest plugin that tries defects instead of running the tests."""

    def __init__(self, mutants: list[Mutant], reach: Reach, cpu_s: float, told: Callable[[int, Mutant, Outcome], None]) -> None:
        self._mutants, self._reach, self._cpu_s, self._told = mutants, reach, cpu_s, told
        self._sound: dict[str, bool] = {}
        self._items: dict[str, pytest.Item] = {}
        self._functions: dict[tuple[str, str, int], list[FunctionType]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = {item.nodeid: item for item in session.items}
        self._functions = functions_by_code()
        for number, mutant in enumerate(self._mutants, 1):
            self._told(number, mutant, self._outcome(mutant))
        return True

    def _outcome(self, mutant: Mutant) -> Outcome:
        block = block_at(mutant.file, mutant.line)
        is_late = block is not None and block not in self._reach.on_import
        tests = [test for test in self._reach.tests_of(mutant.file, block, self._cpu_s) if test in self._items]
        tests = [test for test in tests if self._sound.get(test, True)]
        swap = self._swap(mutant) if is_late else None
        began = _cpu_s()
        while tests:
            if swap is None:
                word, test = self._try_in_process(mutant, tests)
            else:
                word, test = self._try_forked(tests, swap)
            if word != "killed" or not test or self._is_sound(test):
                return Outcome(word, test, len(tests), _cpu_s() - began)
            tests.remove(test)
        return Outcome("survived", "", 0, _cpu_s() - began)

    def _swap(self, mutant: Mutant) -> list[tuple[FunctionType, CodeType]] | None:
        path = str(SOURCE / mutant.file)
        pairs = changed_codes(_compiled((SOURCE / mutant.file).read_text(), path), _compiled(mutant.code, path))
        swap: list[tuple[FunctionType, CodeType]] = []
        for old, new in pairs or ():
            swap += [(function, new) for function in self._functions.get(_key(old), ()) if function.__code__ == old]
        if any(len(function.__code__.co_freevars) != len(new.co_freevars) for function, new in swap):
            return None
        return swap or None

    def _is_sound(self, test: str) -> bool:
        """Return whether a test passes in a copy without a defect."""
        if test not in self._sound:
            self._sound[test] = self._try_forked([test], [])[0] == "survived"
            if not self._sound[test]:
                print(f"     {test} fails without a defect and does not count", flush=True)
        return self._sound[test]

    def _try_forked(self, tests: list[str], swap: Iterable[tuple[FunctionType, CodeType]]) -> tuple[str, str]:
        sys.stdout.flush()
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            self._run_in_child([self._items[test] for test in tests], swap, writing)
        os.close(writing)
        return _read_verdict(child, reading, {test: self._reach.seconds_of(test) for test in tests})

    def _run_in_child(self, items: list[pytest.Item], swap: Iterable[tuple[FunctionType, CodeType]], writing: int) -> None:
        code = 3
        try:
            os.setpgid(0, 0)
            limit = int(3 * self._cpu_s + 30)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nowhere, stream)
            items[0].config.pluginmanager.unregister(name="terminalreporter")
            for function, new in swap:
                function.__code__ = new
            for item, following in zip(items, [*items[1:], None], strict=True):
                failed: list[str] = []
                watcher = _Watcher(failed)
                item.config.pluginmanager.register(watcher)
                os.write(writing, f"{item.nodeid}\n".encode())
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                item.config.pluginmanager.unregister(watcher)
                if failed:
                    os.write(writing, b"FAILED\n")
                    os._exit(1)
            os.write(writing, b"PASSED\n")
            code = 0
        except BaseException:  # noqa: BLE001  also SystemExit: the copy must not go on as the runner
            traceback.print_exc()
        finally:
            os._exit(code)

    def _try_in_process(self, mutant: Mutant, tests: list[str]) -> tuple[str, str]:
        files = list(dict.fromkeys(test.split("::")[0] for test in tests))[:FILES_MAX]
        tests = [test for test in tests if test.split("::")[0] in files]
        while tests:
            ran = _run_alone(mutant.file, mutant.code, tests)
            if ran is None:
                return "hung", ""
            if ran.returncode == 0:
                break
            lines = [line.split(" ")[1] for line in ran.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
            named = [line for line in lines[:1] if line in tests]  # none if the file cannot be imported, or its id has a blank
            noticed = named[0] if named else tests[0]
            control = _run_alone(mutant.file, (SOURCE / mutant.file).read_text(), named or tests)
            if control is not None and control.returncode == 0:
                return "killed", noticed
            print(f"     {noticed} fails without a defect and does not count", flush=True)
            tests.remove(noticed)
        return "survived", ""


def _run_alone(file: str, code: str, tests: list[str]) -> subprocess.CompletedProcess[str] | None:
    """Run tests in a process of their own whose import finds other code for a file; None if they hang."""
    changed, program = (ROOT / f".mutate/{name}-{os.getpid()}.py" for name in ("changed", "program"))
    changed.write_text(code)
    arguments = ["-x", "--tb=no", "-rfE", "-p", "no:xdist", "-p", "no:cacheprovider", *tests]
    name = "comity." + file.removesuffix(".py").replace("/", ".")
    program.write_text(
        _IMPORT.format(changed=str(changed), path=str(SOURCE / file), name=name, arguments=arguments, root=str(ROOT))
    )
    command = [sys.executable, str(program)]
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=WALL_S_MAX, check=False)
    except subprocess.TimeoutExpired:
        return None


class _Watcher:
    def __init__(self, failed: list[str]) -> None:
        self._failed = failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.append(report.nodeid)


def _read_verdict(child: int, reading: int, seconds: dict[str, float]) -> tuple[str, str]:
    """Return what a copy said: killed by the last test it named, survived, or hung. `seconds` is what each test takes."""
    said, began = b"", time.monotonic()
    heard = active = began
    used = 0
    still_s = float(STILL_S_MAX)
    while not (is_hung := _is_hung(began, heard, active, still_s)):
        if select.select([reading], [], [], 1.0)[0]:
            piece, heard = os.read(reading, 65536), time.monotonic()
            said += piece
            still_s = STILL_S_MAX + STILL_SHARE * seconds.get(said.decode().splitlines()[-1] if said else "", 0.0)
            if not piece or piece.endswith((b"FAILED\n", b"PASSED\n")):
                break
        if (now_used := _ticks(child)) > used + 1 or heard > active:
            used, active = now_used, time.monotonic()
    os.close(reading)
    _kill_group(child)
    os.waitpid(child, 0)
    lines = said.decode().splitlines()
    if lines and lines[-1] == "PASSED":
        return "survived", ""
    if lines and lines[-1] == "FAILED":
        return "killed", lines[-2]
    return ("hung" if is_hung else "killed"), lines[-1] if lines else ""


def _is_hung(began: float, heard: float, active: float, still_s: float) -> bool:
    now = time.monotonic()
    return now - began >= WALL_S_MAX or now - heard >= still_s or now - active >= IDLE_S_MAX


def _ticks(group: int) -> int:
    """Return the CPU time of the processes of a group, in ticks of the system's clock: a test may wait for one it started."""
    found = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[2]) == group:
            found += sum(map(int, fields[11:15]))
    return found


def _compiled(code: str, path: str) -> CodeType:
    compiled: CodeType = compile(code, path, "exec", dont_inherit=True)
    return compiled


def _kill_group(child: int) -> None:
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(child, signal.SIGKILL)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def try_all(mutants: list[Mutant], reach: Reach, cpu_s: float, told: Callable[[int, Mutant, Outcome], None]) -> None:
    """Try each defect, and tell what became of it as soon as it is known."""
    files = {test.split("::")[0] for m in mutants for test in reach.tests_of(m.file, block_at(m.file, m.line), cpu_s)}
    arguments = ["--rootdir", str(ROOT), "-p", "no:xdist", "-p", "no:cacheprovider"]
    sys.path.insert(0, str(ROOT))
    code = pytest.main(
        [*arguments, *(str(ROOT / file) for file in sorted(files))], plugins=[Forker(mutants, reach, cpu_s, told)]
    )
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise RuntimeError(f"the tests could not be collected: {code}")
