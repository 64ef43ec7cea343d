"""Errors as one text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.core.call.limits import WARNINGS_MAX
from comity.core.envelope.envelope import Error
from comity.dialects.reading.fault import lines_of, read_fault, text_of

WORDS = {"AgentBusy": "AGENT_BUSY"}
CODES = st.sampled_from(["TARGET_FAILED", "AGENT_BUSY", "MY_OWN"])
PARTS = st.lists(
    st.sampled_from(["TARGET_FAILED", "AgentBusy", "AGENT_BUSY", "MY_OWN", "A_" + "Z" * 126, ": ", ":", "a", "\n", "Other"]),
    max_size=5,
).map("".join)


@given(PARTS)
def test_a_text_is_written_as_it_was_read(text):
    fault = read_fault(text, usual="TARGET_FAILED", words=WORDS)
    assert text_of(fault.error, usual="TARGET_FAILED", words=WORDS, prefix=fault.prefix) == text


@given(CODES, PARTS)
def test_code_and_message_come_back(code, message):
    text = text_of(Error.of(code, message), usual="TARGET_FAILED", words=WORDS)
    error, prefix = read_fault(text, usual="TARGET_FAILED", words=WORDS)
    assert (error, prefix) == (Error.of(code, message), None)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("plain", "TARGET_FAILED"),
        ("AgentBusy: x", "AGENT_BUSY"),
        ("MY_OWN: x", "MY_OWN"),
        ("Error: x", "TARGET_FAILED"),
        ("ERROR: x", "TARGET_FAILED"),
        (f"A_{'Z' * 126}: x", f"A_{'Z' * 126}"),
        (f"A_{'Z' * 127}: x", "TARGET_FAILED"),
    ],
)
def test_only_a_code_or_a_word_of_the_dialect_before_the_colon_counts(text, code):
    assert read_fault(text, usual="TARGET_FAILED", words=WORDS).error.code == code


def test_a_kept_prefix_is_dropped_once_the_error_is_another():
    other = Error.of("MY_OWN", "x")
    assert text_of(other, usual="TARGET_FAILED", words=WORDS, prefix="AGENT_BUSY") == "MY_OWN: x"


def test_the_code_table_says_whether_a_retry_helps():
    assert read_fault("AgentBusy: x", usual="TARGET_FAILED", words=WORDS).error.retryable


def test_lines_are_warnings_while_there_is_room():
    assert lines_of("a\nb") == ("a", "b")
    assert len(lines_of("\n" * (WARNINGS_MAX - 1))) == WARNINGS_MAX
    assert lines_of("\n" * WARNINGS_MAX) == ("\n" * WARNINGS_MAX,)
