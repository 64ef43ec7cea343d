"""Presidio as an extra: its findings are hidden like our own, and without it the message says what to install."""

from __future__ import annotations

import importlib.util
from typing import NamedTuple

import pytest

from comity.core.redaction import Vault, redact_text, restore_text
from comity.engines.presidio import scanner


class Found(NamedTuple):
    start: int
    end: int


class NameAnalyzer:
    """Stands in for Presidio's engine at its border: `analyze` as Presidio documents it."""

    def analyze(self, *, text, language, entities):
        assert (language, entities) == ("en", ["PERSON"])
        place = text.find("Ann Smith")
        return [Found(place, place + len("Ann Smith"))] if place >= 0 else []


def test_what_presidio_finds_is_hidden_and_restored():
    vault = Vault("abcdefgh")
    text = "Ann Smith pays with 4111 1111 1111 1111"
    hidden = redact_text(text, vault, scanner=scanner(["PERSON"], analyzer=NameAnalyzer()))
    assert {finding.type for finding in hidden.found} == {"PERSON", "CARD"}
    assert "Ann" not in hidden.text
    assert restore_text(hidden.text, vault) == text


def test_without_the_extra_the_error_says_what_to_install():
    if importlib.util.find_spec("presidio_analyzer") is not None:
        pytest.skip("Presidio is installed here")
    with pytest.raises(ModuleNotFoundError, match=r'pip install "\.\[pii\]"'):
        scanner(["PERSON"])
