"""Plant small defects in the files that carry promises, one at a time, and print which of them no test notices.

The defects are Cosmic Ray's: a comparison turned around, a condition negated, a constant changed. A sample of them, the same
for the same seed, is tried in copies of this folder; the nearest tests run first, and the wider ones for a defect that survives
them. Defects that change nothing anybody could see are argued in `tests/mutants.toml`, and do not count. None is planted where
it could be no defect: code that is not Python any more, assertions, log lines, what only the type checker reads, how a class
is kept in memory, and the number of a named limit (tests import limits, so that another number is another limit).
"""

from __future__ import annotations

import argparse
import ast
import compileall
import difflib
import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

ROOT = Path(__file__).parent.parent
COPIED = ("src", "tests", "examples", "bench", "docs", "README.md", "pyproject.toml", "Makefile")
OPERATORS = (
    *("AddNot", "ReplaceAndWithOr", "ReplaceOrWithAnd", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "NumberReplacer"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ReplaceUnaryOperator_Delete_Not", "ZeroIterationForLoop"),
    *("ReplaceComparisonOperator_Eq_NotEq", "ReplaceComparisonOperator_NotEq_Eq", "ReplaceComparisonOperator_Is_IsNot"),
    *("ReplaceComparisonOperator_IsNot_Is", "ReplaceComparisonOperator_Lt_LtE", "ReplaceComparisonOperator_LtE_Lt"),
    *("ReplaceComparisonOperator_Gt_GtE", "ReplaceComparisonOperator_GtE_Gt", "ReplaceBinaryOperator_Add_Sub"),
    "ReplaceBinaryOperator_Sub_Add",
)
TIMEOUT_S = 300
# Words of a class header that say how values are kept in memory, or how code must write them: the type checker holds those.
MEMORY = ("gc=False", "frozen=True", "eq=False", "kw_only=True")


class Place(NamedTuple):
    """Where a defect of which kind can be planted: the first such place of the file, the second, and so on."""

    file: str
    operator: str
    occurrence: int


class Mutant(NamedTuple):
    """One defect: where, the lines it changes, and the whole file with it."""

    file: str
    line: int
    before: str
    after: str
    code: str


class Settings(NamedTuple):
    """What `tests/mutants.toml` says: the nearest tests of each file, wider ones, and the defects that change nothing."""

    nearest: dict[str, list[str]]
    wider: list[str]
    argued: set[tuple[str, str, str]]


def settings() -> Settings:
    told = tomllib.loads((ROOT / "tests/mutants.toml").read_text())
    argued = {(one["file"], one["before"], after) for one in told["argued"] for after in one["after"]}
    missing = {test for tests in told["nearest"].values() for test in tests if not (ROOT / test).exists()}
    if missing:
        raise ValueError(f"tests/mutants.toml names tests that are not there: {', '.join(sorted(missing))}")
    return Settings(told["nearest"], told["wider"], argued)


def places(file: str) -> Iterator[Place]:
    """Yield every place of a file where a defect can be planted."""
    code = (ROOT / "src/comity" / file).read_text()
    nodes = list(ast_nodes(get_ast(code)))
    for name in OPERATORS:
        operator = get_operator(f"core/{name}")()
        for occurrence in range(sum(len(list(operator.mutation_positions(node))) for node in nodes)):
            yield Place(file, name, occurrence)


def planted(place: Place) -> Mutant:
    """Return the code of a file with a defect."""
    code = (ROOT / "src/comity" / place.file).read_text()
    changed = mutate_code(code, get_operator(f"core/{place.operator}")(), place.occurrence)
    return Mutant(place.file, *_difference(code, changed), changed)


def sampled(files: list[str], count: int, seed: int) -> list[Mutant]:
    """Return a sample of the defects of files, the same one for the same seed."""
    found = [place for file in files for place in places(file)]
    print(f"{len(found)} defects in {len(files)} files; {min(count, len(found))} are tried", flush=True)
    random.Random(seed).shuffle(found)  # noqa: S311
    idle = {file: set(idle_lines((ROOT / "src/comity" / file).read_text())) for file in files}
    worthy = (mutant for mutant in map(planted, found) if mutant.line not in idle[mutant.file] and _is_defect(mutant))
    return list(itertools.islice(worthy, count))


def _is_defect(mutant: Mutant) -> bool:
    try:
        compile(mutant.code, mutant.file, "exec")
    except SyntaxError:
        return False
    turned = {word: word.replace("False", "True") if "False" in word else word.replace("True", "False") for word in MEMORY}
    return not any(
        mutant.after == mutant.before.replace(word, other) for word, other in turned.items() if word in mutant.before
    )


def idle_lines(code: str) -> Iterator[int]:
    """Yield the lines where another value is no defect: decorators, assertions, log lines, numbers of named limits."""
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Assert() | ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="log")))):
                yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield node.lineno
            case ast.FunctionDef(name="__repr__"):
                yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from (decorator.lineno for decorator in node.decorator_list)
            case ast.Module():
                yield from (statement.lineno for statement in node.body if _is_limit(statement))


def _is_limit(statement: ast.stmt) -> bool:
    """Return whether a statement gives names to numbers alone."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        return False
    numbers = statement.value.values if isinstance(statement.value, ast.Dict) else [statement.value]
    return all(_is_number(part) for number in numbers for part in ast.walk(number))


def _is_number(part: ast.AST) -> bool:
    if isinstance(part, ast.Constant):
        return isinstance(part.value, int | float)
    return isinstance(part, ast.BinOp | ast.Tuple | ast.operator | ast.expr_context)


def _difference(code: str, changed: str) -> tuple[int, str, str]:
    lines, others = code.splitlines(), changed.splitlines()
    for tag, begin, end, first, last in difflib.SequenceMatcher(None, lines, others, autojunk=False).get_opcodes():
        if tag != "equal":
            return begin + 1, " ".join(map(str.strip, lines[begin:end])), " ".join(map(str.strip, others[first:last]))
    raise ValueError("the defect changes no line")


def is_killed(copy: Path, mutant: Mutant, tests: list[str]) -> bool:
    """Return whether a test fails, or hangs, with a defect in its place."""
    place = copy / "src/comity" / mutant.file
    sound = place.read_text()
    place.write_text(mutant.code)
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    variables = {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DEBUG_TEMPROOT": str(copy)}
    try:
        ran = subprocess.run(command, cwd=copy, env=os.environ | variables, capture_output=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return True
    finally:
        place.write_text(sound)
    return ran.returncode != 0  # also where nothing can be imported any more


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=150, help="how many defects are tried (150)")
    parser.add_argument("--seed", type=int, default=1, help="which sample")
    parser.add_argument("--files", default="", help="only files whose path holds this text")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1)), help="copies that run side by side")
    parser.add_argument("--near", action="store_true", help="run the nearest tests alone")
    options = parser.parse_args()
    told = settings()
    sample = sampled([file for file in sorted(told.nearest) if options.files in file], options.sample, options.seed)
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder, ThreadPoolExecutor(options.jobs) as pool:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(options.jobs):
            copies.put(_copied(Path(folder) / str(number)))

        def outcome_of(mutant: Mutant) -> str:
            if (mutant.file, mutant.before, mutant.after) in told.argued:
                return "argued"
            copy = copies.get()
            try:
                if is_killed(copy, mutant, told.nearest[mutant.file]):
                    return "killed"
                return "killed by wider tests" if not options.near and is_killed(copy, mutant, told.wider) else "survived"
            finally:
                copies.put(copy)

        for number, (mutant, outcome) in enumerate(zip(sample, pool.map(outcome_of, sample), strict=True), 1):
            outcomes[outcome] += 1
            if outcome != "killed":
                print(
                    f"{number:4} {outcome}: {mutant.file}:{mutant.line}\n       - {mutant.before}\n       + {mutant.after}",
                    flush=True,
                )
            elif number % 10 == 0:
                print(f"{number:4} tried", flush=True)
    counted = len(sample) - outcomes["argued"]
    killed = outcomes["killed"] + outcomes["killed by wider tests"]
    print(f"killed {killed} of {counted} ({killed / max(counted, 1):.1%}); {dict(outcomes)}")


def _copied(place: Path) -> Path:
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif (ROOT / name).exists():
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, place / name)
    compileall.compile_dir(place / "src", quiet=1)  # once, not for every defect
    return place


if __name__ == "__main__":
    main()
