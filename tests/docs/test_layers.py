"""The script that proves the layers sees what it forbids."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def layers():
    found = importlib.util.spec_from_file_location("check_layers", ROOT / "scripts" / "check_layers.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def ascents(layers, name: str, text: str) -> list[str]:
    known = {"engines.clock", "runtime.call.path", "node.node", "core.call.limits"}
    return [module for _, module in layers.ascents(name, layers.imports(ast.parse(text), known))]


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("runtime.call.path", "from comity.core.call.limits import Limits", []),
        ("runtime.call.path", "from comity.engines.clock import SystemClock", ["engines.clock"]),
        ("engines.clock", "from comity.runtime.call import path", ["runtime.call.path"]),
        ("runtime.call.path", "def late():\n    import comity.node.node", ["node.node"]),
        ("runtime.call.path", "if TYPE_CHECKING:\n    from comity.node.node import Node", ["node.node"]),
        ("runtime.call.path", "from comity import Node", [""]),
        ("loading", "from comity import Node", []),
        ("core.call.limits", "from comity.somewhere import x", ["somewhere"]),
    ],
)
def test_an_import_that_points_up_or_to_a_sibling_is_found(layers, name, text, found):
    assert ascents(layers, name, text) == found


@pytest.mark.parametrize(
    ("edges", "cycles"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"b"}, "b": {"a"}, "c": {"a"}}, [["a", "b"]]),
        ({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"e"}, "e": {"d"}}, [["a", "b", "c"], ["d", "e"]]),
    ],
)
def test_modules_that_reach_each_other_are_one_cycle(layers, edges, cycles):
    assert layers.knots(edges) == cycles


def test_a_pure_floor_is_neither_async_nor_reads_files(layers):
    text = "async def late():\n    open('x')"
    assert [says for _, says in layers.impurities(ast.parse(text), "core")] == [
        "core is pure and is async",
        "core is pure and calls open",
    ]
