"""Which tests reach which blocks of the files that carry promises, and how long each test takes.

A block is the body of a function, branch, loop or handler. Each gets a statement that notes that it ran; the notes of each test
are kept in `.mutate/reach.json`, and made again for test files that changed since. Run as a program, this file runs tests so.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "src/comity"
MAP = ROOT / ".mutate/reach.json"
_SLOW = ("_kill.py", "_power_cut.py", "_workers.py")  # they start processes, which have no defect
_BODIES = ("body", "orelse", "finalbody")


class Block:
    """One body: its name, which does not depend on lines, and its lines."""

    def __init__(self, name: str, body: list[ast.stmt]) -> None:
        self.name, self.body = name, body
        self.first, self.last = body[0].lineno, body[-1].end_lineno or body[-1].lineno


def blocks(file: str, tree: ast.Module) -> Iterator[Block]:
    """Yield the blocks of a file, outer ones before the inner ones they hold."""
    counts: dict[str, int] = {}

    def walk(node: ast.AST, name: str) -> Iterator[Block]:
        for child in ast.iter_child_nodes(node):
            inner = name
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = f"{name}.{child.name}" if name else child.name
            if name or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                for part in _BODIES:
                    body = getattr(child, part, None)
                    if isinstance(child, ast.ClassDef) or not isinstance(body, list) or not body:
                        continue
                    counts[inner] = counts.get(inner, -1) + 1
                    yield Block(f"{file}:{inner}:{counts[inner]}", body)
            yield from walk(child, inner)

    yield from walk(tree, "")


def block_at(file: str, line: int) -> str | None:
    """Return the name of the innermost block with a line, or None for a line that runs on import."""
    found = None
    for block in blocks(file, ast.parse((SOURCE / file).read_text())):
        if block.first <= line <= block.last:
            found = block.name
    return found


class Reach:
    """What `.mutate/reach.json` says."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.on_import = frozenset(told["on_import"])
        self._tests: dict[str, dict[str, float]] = {}  # by block, and by file: each test with its seconds
        self._seconds: dict[str, float] = {}
        for one in told["tests"].values():
            for test, (seconds, reached) in one["tests"].items():
                self._seconds[test] = seconds
                for block in reached:
                    self._tests.setdefault(block, {})[test] = seconds
                    self._tests.setdefault(block.partition(":")[0], {})[test] = seconds

    def seconds_of(self, test: str) -> float:
        """Return how many seconds of CPU a test takes."""
        return self._seconds.get(test, 0.0)

    def tests_of(self, file: str, block: str | None, cpu_s: float) -> list[str]:
        """Return tests that reach a block, or the file where `block` is None, up to `cpu_s`.

        Near ones come first, the quickest before the others; then those of every other file in turn, as the test that notices
        a defect may be the slowest of a file far away.
        """
        near = "tests/" + str(Path(file).parent)
        ranks: Counter[str] = Counter()
        order: list[tuple[bool, int, float, str]] = []
        tests = self._tests.get(block or file, {})
        if block is None:  # a test that looks at tables and bounds reaches no block
            tests = {test: seconds for test, seconds in self._seconds.items() if test.startswith(near)} | tests
        for seconds, test in sorted((seconds, test) for test, seconds in tests.items()):
            is_far = not test.startswith(near)
            at = test.partition("::")[0]
            ranks[at] += is_far
            order.append((is_far, ranks[at], seconds, test))
        chosen: list[str] = []
        spent = 0.0
        for is_far, _, seconds, test in sorted(order):
            spent += seconds
            if spent > (cpu_s if is_far else cpu_s / 2) and chosen:
                if is_far:
                    break
                spent -= seconds
                continue
            chosen.append(test)
        places = {file: place for place, file in enumerate(dict.fromkeys(test.partition("::")[0] for test in chosen))}
        return sorted(chosen, key=lambda test: places[test.partition("::")[0]])  # what a file sets up is set up once


def reach(files: Sequence[str], folders: Sequence[str]) -> Reach:
    """Return the map, after running the test files that it does not know as they are: all of them for another list of files."""
    told = json.loads(MAP.read_text()) if MAP.exists() else {}
    if told.get("files") != list(files):
        told = {"files": list(files), "tests": {}, "on_import": []}
    found = [test for folder in folders for test in sorted((ROOT / folder).rglob("test_*.py"))]
    found = [test for test in found if not test.name.endswith(_SLOW)]
    digests = {str(test.relative_to(ROOT)): hashlib.sha256(test.read_bytes()).hexdigest() for test in found}
    told["tests"] = {test: known for test, known in told["tests"].items() if digests.get(test) == known["digest"]}
    stale = [test for test in digests if test not in told["tests"]]
    if stale:
        print(f"running {len(stale)} test files once, to see what they reach", flush=True)
        MAP.parent.mkdir(exist_ok=True)
        MAP.write_text(json.dumps(told))
        (MAP.parent / "order.json").write_text(json.dumps({"files": list(files), "digests": {t: digests[t] for t in stale}}))
        variables = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (ROOT / "scripts", ROOT / "src", ROOT)))}
        subprocess.run([sys.executable, "-m", "mutation.reach"], cwd=ROOT, env=variables, check=True)
        told = json.loads(MAP.read_text())
    return Reach(told)


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a file whose blocks note that they ran."""

    def __init__(self, name: str, path: str, numbers: dict[str, int]) -> None:
        super().__init__(name, path)
        self._numbers = numbers

    def get_code(self, fullname: str) -> CodeType | None:
        del fullname
        file = str(Path(self.path).relative_to(SOURCE))
        tree = ast.parse(Path(self.path).read_text())
        for block in list(blocks(file, tree)):
            note = ast.parse(f"__reach__[{self._numbers[block.name]}] = 1").body[0]
            has_doc = isinstance(block.body[0], ast.Expr) and isinstance(block.body[0].value, ast.Constant)
            block.body.insert(1 if has_doc else 0, ast.copy_location(note, block.body[0]))
        return compile(ast.fix_missing_locations(tree), self.path, "exec", dont_inherit=True)


class _Finder:
    """Finds the files that carry promises, before the usual way does."""

    def __init__(self, files: Sequence[str], numbers: dict[str, int]) -> None:
        self._paths = {"comity." + file.removesuffix(".py").replace("/", "."): str(SOURCE / file) for file in files}
        self._numbers = numbers

    def find_spec(
        self, name: str, path: object = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        del path, target
        if name not in self._paths:
            return None
        loader = _Loader(name, self._paths[name], self._numbers)
        return importlib.util.spec_from_file_location(name, self._paths[name], loader=loader)


class _Notes:
    """A pytest plugin that keeps what each test reached."""

    def __init__(self, names: list[str], told: dict[str, Any], digests: dict[str, str]) -> None:
        self._names, self._told, self._digests = names, told, digests

    def _take(self) -> list[str]:
        noted: bytearray = builtins.__reach__  # type: ignore[attr-defined]
        taken = [self._names[n] for n, bit in enumerate(noted) if bit]
        noted[:] = bytes(len(noted))
        return taken

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self) -> None:
        self._told["on_import"] = sorted({*self._told["on_import"], *self._take()})
        for test, digest in self._digests.items():
            self._told["tests"][test] = {"digest": digest, "tests": {}}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        began = time.process_time()
        outcome = yield
        spent = round(time.process_time() - began, 4)
        self._told["tests"][item.nodeid.split("::")[0]]["tests"][item.nodeid] = [spent, self._take()]
        return outcome

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            MAP.write_text(json.dumps(self._told))


def main() -> None:
    order = json.loads((MAP.parent / "order.json").read_text())
    names = [block.name for file in order["files"] for block in blocks(file, ast.parse((SOURCE / file).read_text()))]
    builtins.__reach__ = bytearray(len(names))  # type: ignore[attr-defined]
    numbers = {name: number for number, name in enumerate(names)}
    sys.meta_path.insert(0, _Finder(order["files"], numbers))  # type: ignore[arg-type]
    notes = _Notes(names, json.loads(MAP.read_text()), order["digests"])
    tests = [str(ROOT / test) for test in order["digests"]]
    code = pytest.main(
        ["--rootdir", str(ROOT), "-p", "no:xdist", "-p", "no:cacheprovider", "--tb=line", *tests], plugins=[notes]
    )
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        sys.exit(int(code))


if __name__ == "__main__":
    main()
