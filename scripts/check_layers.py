"""Dependencies point down only, and deciding does nothing: both rules of the architecture, read off the imports and calls."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent / "src" / "comity"

# Each layer may import itself and what stands below it.
LAYERS = (
    ("errors",),
    ("core",),
    ("dialects",),
    ("ports",),
    ("engines",),
    ("runtime",),
    ("models", "testing", "demo"),
    ("server",),
    ("cli",),
    ("__main__",),
)
HEIGHT = {name: height for height, names in enumerate(LAYERS) for name in names}
PURE = {"errors", "core", "dialects"}
BANNED_MODULES = {
    "asyncio", "logging", "os", "pathlib", "random", "secrets", "shutil", "socket", "sqlite3", "subprocess", "sys", "tempfile",
    "threading", "time", "uuid",
}  # fmt: skip
BANNED_CALLS = {"open", "print", "input", "exec", "eval", "datetime.now", "datetime.utcnow", "datetime.datetime.now"}


def layer_of(module: str) -> str:
    """Return the layer a module `comity.x.y` belongs to."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def imports(tree: ast.AST) -> list[tuple[int, str]]:
    """Return every imported module with its line."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, name.name) for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append((node.lineno, node.module))
    return found


def problems(path: Path, text: str) -> list[str]:
    """Return what is wrong with one file."""
    layer = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if layer == "__init__":
        return []
    if layer not in HEIGHT:
        return [f"{path}: {layer} is in no layer; add it to scripts/check_layers.py"]
    tree = ast.parse(text)
    found = []
    for line, module in imports(tree):
        if module.split(".")[0] == "comity":
            above = layer_of(module)
            if above == "__init__" and HEIGHT[layer] > HEIGHT["runtime"]:
                continue  # the public names, which is what those above the runtime should use
            if above != layer and HEIGHT.get(above, len(LAYERS)) >= HEIGHT[layer]:
                found.append(f"{path}:{line} {layer} imports {module}, which stands above or beside it")
        elif layer in PURE and module.split(".")[0] in BANNED_MODULES:
            found.append(f"{path}:{line} {layer} is pure and imports {module}")
    if layer in PURE:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in BANNED_CALLS:
                found.append(f"{path}:{node.lineno} {layer} is pure and calls {ast.unparse(node.func)}")
            if isinstance(node, (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)):
                found.append(f"{path}:{node.lineno} {layer} is pure and is async")
    return found


def main() -> int:
    """Check every file and print what is wrong."""
    files = sorted(ROOT.rglob("*.py"))
    found = [problem for path in files for problem in problems(path, path.read_text())]
    for problem in found:
        print(problem)
    print(f"layers: {len(files)} files, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
