"""The page on dialects names every field and every word, and shows every default there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from comity.core.envelope.envelope import Priority, Status
from comity.dialects import DIALECTS, call_agent, contextcore, delegation, kdap, kdap_routing, sacp

PAGE = (Path(__file__).parents[2] / "docs" / "dialects.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
FORMS = {
    "kdap": (kdap.RequestForm, kdap.ResponseForm, kdap_routing.HandoffForm, kdap_routing.IntentForm, kdap_routing.TargetForm),
    "delegation": (
        delegation.RequestForm,
        delegation.ConstraintsForm,
        delegation.HandoffDataForm,
        delegation.ReferenceForm,
        delegation.ResponseForm,
        delegation.ArtifactForm,
        delegation.SourceForm,
        delegation.TokenUsageForm,
    ),
    "call_agent": (call_agent.RequestForm, call_agent.CallContextForm, call_agent.ReplyForm),
    "contextcore": (contextcore.RequestForm, contextcore.ExpectedOutputForm, contextcore.ReplyForm),
    "sacp": (sacp.ReplyForm,),
}


@pytest.mark.parametrize("name", DIALECTS)
def test_every_field_of_a_dialect_is_on_the_page(name):
    named = {part for word in re.findall(r"`([\w.]+)`", SECTIONS[name]) for part in word.split(".")}
    assert {field for form in FORMS[name] for field in form.__struct_fields__} <= named


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
