"""What a reading means as a reply."""

from __future__ import annotations

import json

import pytest

from comity.core.call.limits import MESSAGE_BYTES_MAX, REPLY_BYTES_MAX
from comity.core.document.payload import pack
from comity.core.envelope import envelope
from comity.core.envelope.envelope import reply_problems
from comity.core.model.reply import SENT_BACK, TEXT_CHARS_MAX, Status, canonical, read


def said(**changes):
    return json.dumps({"thought": "t", "status": "success", "data": {"a": 1}, "message": "m"} | changes)


@pytest.mark.parametrize(
    ("word", "status", "code", "kept"),
    [
        ("success", envelope.Status.SUCCESS, None, {}),
        ("completed", envelope.Status.SUCCESS, None, {"sacp.status": "completed"}),
        ("failure", envelope.Status.ERROR, "TARGET_FAILED", {}),
        ("clarification_needed", envelope.Status.NEEDS_INPUT, None, {}),
        ("retry_with_instruction", envelope.Status.ERROR, SENT_BACK, {}),
    ],
)
def test_every_status_word_has_its_meaning(word, status, code, kept):
    reply = canonical(read(said(status=word)))
    assert (reply.status, reply.error and reply.error.code, reply.metadata) == (status, code, kept)
    assert (reply.data, reply.message, reply.thought, reply.degraded) == ({"a": 1}, "m", "t", False)


def test_all_words_are_covered():
    assert {canonical(read(said(status=word))).ok for word in Status} == {True, False}


def test_a_reply_with_a_gap_is_partial_and_says_so():
    reply = canonical(read('{"status": "success", "data": {"a": 1}}'))
    assert (reply.status, reply.degraded, reply.confidence) == (envelope.Status.PARTIAL, True, 0.5)
    assert "filled_field" in reply.warnings[0]


def test_nothing_readable_is_the_fallback_and_no_success():
    reply = canonical(read("no idea"))
    assert (reply.status, reply.error.code) == (envelope.Status.ERROR, "OUTPUT_VALIDATION_FAILED")
    assert (reply.data, reply.degraded) == ({"raw_output": "no idea"}, True)


@pytest.mark.parametrize("text", ["é" * MESSAGE_BYTES_MAX, "a" * (MESSAGE_BYTES_MAX + 1)])
def test_a_message_too_long_for_an_envelope_is_cut_and_no_longer_a_success(text):
    reply = canonical(read(said(message=text)))
    assert reply.status is envelope.Status.PARTIAL
    assert text.startswith(reply.message)
    assert not reply_problems(reply)


def test_control_characters_do_not_stop_a_reply():
    assert not reply_problems(canonical(read(said(message="a\x07b", thought="\x00"))))


@pytest.mark.parametrize(
    "text", ['"' * TEXT_CHARS_MAX, "\n" * TEXT_CHARS_MAX, "é" * TEXT_CHARS_MAX, "x" * 999_999 + "😀" * 48_577]
)
def test_the_fallback_of_the_longest_text_fits_into_an_envelope(text):
    data = read(text).data
    assert len(pack(data, path="data", bytes_max=REPLY_BYTES_MAX)) > REPLY_BYTES_MAX // 2
    assert text.startswith(data["raw_output"])


def test_fields_beyond_the_protocol_are_kept_or_said_to_be_dropped():
    kept = canonical(read(said(answer={"b": 2}, confidence=0.9)))
    assert (kept.metadata, kept.warnings, kept.degraded) == ({"sacp.extra": {"answer": {"b": 2}, "confidence": 0.9}}, (), False)
    dropped = canonical(read(said(answer="x" * 100_000)))
    assert dropped.metadata == {}
    assert "fields beyond the protocol were dropped" in dropped.warnings[0]
    assert reply_problems(dropped) == ()
