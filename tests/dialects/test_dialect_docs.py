"""The page on dialects names every field and every word, and shows every default there is."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

import comity.dialects
from comity.core.envelope.envelope import Priority, Status
from comity.dialects import DIALECTS, call_agent, contextcore, delegation, kdap, sacp
from comity.dialects.reading.form import Form

PAGE = (Path(__file__).parents[2] / "docs" / "dialects.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
MODULES = [import_module(f"comity.dialects.{one.name}") for one in iter_modules(comity.dialects.__path__)]


def forms_of(name: str) -> list[type]:
    """Return the forms of a dialect's documents: those in its module, and in the modules whose names begin with its own."""
    own = [
        module for module in MODULES if module.__name__.rpartition(".")[2].split("_")[: len(name.split("_"))] == name.split("_")
    ]
    return [one for module in own for one in vars(module).values() if isinstance(one, type) and is_form(one, module.__name__)]


def is_form(one: type, module: str) -> bool:
    return issubclass(one, Form) and one.__module__ == module


@pytest.mark.parametrize("name", DIALECTS)
def test_every_field_of_a_dialect_is_on_the_page(name):
    named = {part for word in re.findall(r"`([\w.]+)`", SECTIONS[name]) for part in word.split(".")}
    assert {field for form in forms_of(name) for field in form.__struct_fields__} <= named


@pytest.mark.parametrize(
    ("name", "field", "default"),
    [
        ("kdap", "timeout_ms", kdap.RequestForm.__struct_defaults__[1]),
        ("delegation", "constraints.max_tokens", 1200),
        ("delegation", "constraints.max_depth", delegation.LIMITS.depth_max + 1),
        ("delegation", "constraints.deadline_ms", delegation.LIMITS.timeout_ms),
        ("call_agent", "timeout_ms", call_agent.TIMEOUT_MS_DEFAULT),
        ("contextcore", "timeout_ms", contextcore.LIMITS.timeout_ms),
    ],
)
def test_every_figure_on_the_page_is_that_of_the_code(name, field, default):
    row = next(line for line in SECTIONS[name].splitlines() if line.startswith(f"| `{field}`"))
    assert row.rstrip(" |").endswith(str(default))


def test_every_word_for_status_and_priority_is_on_the_page():
    words = SECTIONS["Words"]
    assert all(f"`{word}`" in words for word in (*Status, *Priority))
    for vocabulary in (kdap.Status, delegation.Status, contextcore.State, sacp.Status, kdap.Priority, contextcore.Priority):
        assert all(re.search(rf"\b{word}\b", words) for word in vocabulary)
    assert all(word in words for word in call_agent.ERROR_WORDS)


def test_what_each_decoder_asks_for_is_on_the_page():
    for name, dialect in DIALECTS.items():
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |"))
        assert dialect.asks <= set(re.findall(r"`(\w+)`", row))
