"""The engine that answers hints: it knows the digits, letters and spaces of all scripts, and nothing of a text that is none."""

import runpy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import SchemaValidator, core_schema

from comity.core.redaction import DETECTORS, shapes
from comity.core.redaction.scan import DEFAULT_SCANNER

PATTERNS = (
    r"\d",
    r"\D",
    r"\s",
    r"\S",
    r"\w",
    r"\W",
    r"[,\s]x",
    r"[^\w]x",
    r"(?-u:\b)\d{2}",
    r"\\d",
    r"[\w&&[^a]]x",
    r"[[a1]x]",
)


@given(st.text(st.sampled_from("a1_,x\\d \u00a0\u0085\ufeff\u0661\u0430\u200d\u0301\n"), max_size=6))
def test_a_pattern_means_what_it_means_in_rust(text):
    for pattern in PATTERNS:
        rust = SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex", strict=True))
        assert shapes.compile_test(pattern)(text) is rust.isinstance_python(text), pattern


def test_a_pattern_that_only_rust_can_read_is_answered_too():
    assert shapes.compile_test(r"(?-u:\d)x")("1x")
    assert not shapes.compile_test(r"(?-u:\d)x")("\u0661x")


@pytest.mark.parametrize("text", ["\ud800", "plain \udfff"])
def test_a_text_that_is_no_unicode_may_hold_anything(text):
    assert DEFAULT_SCANNER.may_find(text)


def test_the_benchmark_has_a_hostile_text_for_each_detector():
    """A detector without one may take time that grows faster than the text, and no measurement would show it."""
    names = runpy.run_path(str(Path(__file__).parents[3] / "bench/redaction.py"))["HOSTILE"].keys()
    assert {detector.name for detector in DETECTORS} - names == set()
