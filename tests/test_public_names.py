"""The public names: a tested list by module, each importable, each typed; docs and examples import nothing else."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import comity

ROOT = Path(__file__).parents[1]

# What programs may import. A name is added here when the docs show it, and taken away with a line in the changelog.
PUBLIC = {
    "comity.orchestrator": {"EmbeddingRanker", "ModelRanker", "OfflineRanker", "Orchestrator", "Ranker", "templates"},
    "comity": set(comity.__all__),
    "comity.agents.model.providers": {"openai_compatible", "resolve"},
    "comity.cli.main": {"main"},
    "comity.client": {"AsyncClient", "Client"},
    "comity.contextcore.insights": {"InsightEmitter", "InsightQuerier"},
    "comity.core.agent.breaker": {"Policy"},
    "comity.core.call.guardrail": {"redact_failures"},
    "comity.core.tracing.span": {"Span"},
    "comity.core.tracing.telemetry": {"Settings"},
    "comity.dialects": {"DIALECTS", "convert"},
    "comity.engines.clock": {"SystemClock"},
    "comity.engines.files.guidance": {"GuidanceFile", "GuidanceResponder"},
    "comity.engines.memory.engine": {"MemoryCluster"},
    "comity.engines.sqlite.spans.store": {"SpanStore"},
    "comity.errors": {"CallerError", "ComityError", "RefusedError", "TargetError", "UnavailableError"},
    "comity.ports": set(import_module("comity.ports").__all__),
    "comity.ports.observer": {"Observer"},
    "comity.remote": {"RemoteAgent", "remote_agents"},
    "comity.testing": set(import_module("comity.testing").__all__),
    "comity.testing.contracts": set(import_module("comity.testing.contracts").__all__),
    "comity.testing.scripted": {"Step"},
}


def imports_of(text: str) -> set[tuple[str, str]]:
    """Return the imported names with their modules; by text, since examples in docs may leave parts out."""
    found = re.findall(r"^\s*from (comity[\w.]*) import (?:\(([^)]*)\)|([^\n#(]*))", text, re.MULTILINE)
    return {(module, name.split()[0]) for module, *names in found for name in "".join(names).split(",") if name.strip()}


def shown() -> list[tuple[str, str]]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    texts = [(page.name, block) for page in pages for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)]
    return texts + [(path.name, path.read_text()) for path in sorted((ROOT / "examples").rglob("*.py"))]


def test_every_public_name_is_there_and_listed():
    assert sorted(comity.__all__) == sorted(comity._MODULES)
    for name in comity.__all__:
        assert getattr(comity, name).__name__ == name
        assert name in dir(comity)


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_of_a_module_can_be_imported(module):
    found = import_module(module)
    assert [name for name in sorted(PUBLIC[module]) if not hasattr(found, name)] == []


def test_docs_and_examples_import_public_names_alone():
    others = {(where, *one) for where, text in shown() for one in imports_of(text) if one[1] not in PUBLIC.get(one[0], set())}
    assert others == set()
