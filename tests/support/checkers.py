"""The checkers of traces that stand beside the specification."""

from __future__ import annotations

import functools
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

SPEC = Path(__file__).parents[2] / "spec"


@functools.cache
def load_checker(name: str) -> ModuleType:
    """Return a module of `spec/`, which is no package."""
    found = importlib.util.spec_from_file_location(name, SPEC / f"{name}.py")
    assert found is not None
    assert found.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module
