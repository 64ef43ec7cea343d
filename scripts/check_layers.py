"""Floors, siblings, purity and import cycles: the rules of the architecture, read off the imports and calls.

A floor imports itself and the floors below it. Names that share a floor are siblings and do not import each other. No package
has an import cycle; an import within a function or for type checkers counts. There are no exceptions.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent / "src" / "comity"

FLOORS = (
    ("errors", "version"),
    ("core",),
    ("dialects",),
    ("ports",),
    ("runtime", "engines"),
    ("doors",),
    ("node",),
    ("agents", "client", "contextcore", "loading", "remote", "workflow"),
    ("orchestrator", "testing", "server", "console", "demo"),
    ("cli",),
    ("__main__",),
)
HEIGHT = {name: height for height, names in enumerate(FLOORS) for name in names}
PURE = {"errors", "version", "core", "dialects"}
BANNED_MODULES = {
    "asyncio", "logging", "os", "pathlib", "random", "secrets", "shutil", "socket", "sqlite3", "subprocess", "sys", "tempfile",
    "threading", "time", "uuid",
}  # fmt: skip
BANNED_CALLS = {"open", "print", "input", "exec", "eval", "datetime.now", "datetime.utcnow", "datetime.datetime.now"}


Imports = list[tuple[int, str]]


def floor_of(name: str) -> str:
    """Return the floor of a module, named without `comity.` before it."""
    return name.partition(".")[0]


def name_of(path: Path) -> str:
    """Return the dotted name of a file below `comity`; a package has the name of its folder."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: ast.AST, known: set[str]) -> Imports:
    """Return every module that `tree` imports, with its line; modules of Comity without `comity.` before them."""
    found: Imports = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, name.name) for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            whole = [f"{node.module}.{name.name}" for name in node.names]
            found += [(node.lineno, one if one.removeprefix("comity.") in known else node.module) for one in whole]
    return sorted({(line, module) for line, module in found})


def impurities(tree: ast.AST, floor: str) -> Iterator[tuple[int, str]]:
    """Yield what a pure floor may not do, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in BANNED_CALLS:
            yield node.lineno, f"{floor} is pure and calls {ast.unparse(node.func)}"
        if isinstance(node, (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)):
            yield node.lineno, f"{floor} is pure and is async"


def ascents(name: str, found: Imports) -> Iterator[tuple[int, str]]:
    """Yield the imports of module `name` that point up or to a sibling, each as its line and the imported module."""
    floor = floor_of(name)
    for line, module in found:
        if module == "comity":  # the public names, which is what floors above the node should use
            if HEIGHT[floor] <= HEIGHT["node"]:
                yield line, ""
        elif module.startswith("comity."):
            other = floor_of(module.removeprefix("comity."))
            if other != floor and HEIGHT.get(other, len(FLOORS)) >= HEIGHT[floor]:
                yield line, module.removeprefix("comity.")


def knots(edges: dict[str, set[str]]) -> list[list[str]]:
    """Return the import cycles: every largest set of modules that reach each other, by Tarjan's algorithm."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        number[name] = low[name] = len(number)
        stack.append(name)
        for other in sorted(edges[name]):
            if other not in number:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], number[other])
        if low[name] == number[name]:
            members = stack[stack.index(name) :]
            del stack[-len(members) :]
            if len(members) > 1:
                found.append(sorted(members))

    for name in sorted(edges):
        if name not in number:
            visit(name)
    return found


def problems(files: Iterable[Path]) -> tuple[list[str], list[list[str]]]:
    """Return what is wrong with the files, and the import cycles of each package."""
    trees = {name_of(path): (path, ast.parse(path.read_text())) for path in files if path != ROOT / "__init__.py"}
    found: list[str] = []
    edges: dict[str, set[str]] = defaultdict(set)
    for name, (path, tree) in trees.items():
        floor = floor_of(name)
        if floor not in HEIGHT:
            found.append(f"{path}: {floor} is on no floor; add it to scripts/check_layers.py")
            continue
        modules = imports(tree, set(trees))
        for line, module in ascents(name, modules):
            found.append(f"{path}:{line} {floor} imports {module or 'comity'}, which stands above or beside it")
        edges[name] |= {
            other
            for _, module in modules
            if (other := module.removeprefix("comity.")) in trees and other.split(".")[0] == floor
        } - {name}
        if floor in PURE:
            found += [
                f"{path}:{line} {floor} is pure and imports {module}"
                for line, module in modules
                if floor_of(module) in BANNED_MODULES
            ]
            found += [f"{path}:{line} {says}" for line, says in impurities(tree, floor)]
    cycles = knots(edges)
    found += [f"{', '.join(cycle)} import each other" for cycle in cycles]
    return found, cycles


def main() -> int:
    """Check every file, print what is wrong and how many import cycles there are."""
    files = sorted(ROOT.rglob("*.py"))
    found, cycles = problems(files)
    for problem in found:
        print(problem)
    print(f"layers: {len(files)} files, {len(found)} problems, {len(cycles)} import cycles")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
