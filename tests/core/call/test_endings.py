"""What did not come to its own end gets one: calls that a node left open, tools in use when their call ended."""

from __future__ import annotations

from msgspec import Raw

from comity.core.call.endings import at_and_below, interrupted, outlined, unknown_outcomes
from comity.core.call.limits import Limits
from comity.core.envelope.envelope import Request
from comity.core.journal.records import fingerprint

NOW_MS = 1_000


def asked(request_id: str, deadline_at: int = NOW_MS + 1, **more) -> Request:
    return Request(request_id, "A", "DO", "u", Limits(), deadline_at, **more)


def test_a_call_left_open_ends_as_interrupted_or_as_out_of_time_once_its_deadline_has_passed():
    ends = interrupted([asked("a"), asked("b", NOW_MS)], NOW_MS)
    assert [(end.request.request_id, end.reply.error.code) for end in ends] == [
        ("a", "CALL_INTERRUPTED"),
        ("b", "CALL_TIMEOUT"),
    ]


def test_what_stands_below_a_call_is_told_from_its_namesakes():
    assert at_and_below(["r", "r.1", "r.1.2", "r.1#1", "r.10", "q"], "r.1") == ["r.1", "r.1.2", "r.1#1"]


def test_a_tool_in_use_ends_with_an_unknown_outcome():
    (end,) = unknown_outcomes([asked("r#1")], "A", NOW_MS)
    assert (end.reply.error.code, end.reply.request_id, end.at_ms) == ("TOOL_OUTCOME_UNKNOWN", "r#1", NOW_MS)


def test_an_outlined_request_has_the_fingerprint_of_the_whole_one():
    whole = asked("r", body=Raw(b'{"text": "long"}'), message="long")
    short = outlined(whole)
    assert (short.message, bytes(short.body), short.fingerprint) == ("", b"{}", fingerprint(whole))
