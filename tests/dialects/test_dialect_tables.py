"""All words for status, priority and confidence, both ways: each maps, and what comes back is written down here."""

from __future__ import annotations

from importlib import import_module

import pytest
from msgspec.structs import replace

from comity.core.call.limits import Limits
from comity.core.envelope.confidence import Band, representative
from comity.core.envelope.envelope import Error, Priority, Reply, Request, Status
from comity.dialects import DIALECTS, delegation, kdap

NOW_MS = 1_760_000_000_000

# What a document says → the canonical status.
READ = {
    ("kdap", "SUCCESS"): Status.SUCCESS,
    ("kdap", "PARTIAL"): Status.PARTIAL,
    ("kdap", "ERROR"): Status.ERROR,
    ("kdap", "TIMEOUT"): Status.TIMEOUT,
    ("delegation", "success"): Status.SUCCESS,
    ("delegation", "partial"): Status.PARTIAL,
    ("delegation", "failed"): Status.ERROR,
    ("call_agent", "text"): Status.SUCCESS,
    ("call_agent", "error"): Status.ERROR,
    ("contextcore", "completed"): Status.SUCCESS,
    ("contextcore", "failed"): Status.ERROR,
    ("contextcore", "timeout"): Status.TIMEOUT,
    ("contextcore", "input_required"): Status.NEEDS_INPUT,
    ("contextcore", "cancelled"): Status.CANCELLED,
    ("contextcore", "rejected"): Status.REFUSED,
    ("contextcore", "pending"): None,
    ("contextcore", "accepted"): None,
    ("contextcore", "in_progress"): None,
    ("sacp", "success"): Status.SUCCESS,
    ("sacp", "failure"): Status.ERROR,
    ("sacp", "clarification_needed"): Status.NEEDS_INPUT,
    ("sacp", "completed"): Status.SUCCESS,
    ("sacp", "retry_with_instruction"): Status.ERROR,
}

# The canonical status → what a document says, and the status that comes back from it.
WRITTEN = {
    "kdap": {
        Status.SUCCESS: ("SUCCESS", Status.SUCCESS),
        Status.PARTIAL: ("PARTIAL", Status.PARTIAL),
        Status.NEEDS_INPUT: ("ERROR", Status.NEEDS_INPUT),
        Status.REFUSED: ("ERROR", Status.ERROR),
        Status.ERROR: ("ERROR", Status.ERROR),
        Status.TIMEOUT: ("TIMEOUT", Status.TIMEOUT),
        Status.CANCELLED: ("ERROR", Status.ERROR),
    },
    "delegation": {
        Status.SUCCESS: ("success", Status.SUCCESS),
        Status.PARTIAL: ("partial", Status.PARTIAL),
        Status.NEEDS_INPUT: ("failed", Status.NEEDS_INPUT),
        Status.REFUSED: ("failed", Status.ERROR),
        Status.ERROR: ("failed", Status.ERROR),
        Status.TIMEOUT: ("failed", Status.ERROR),
        Status.CANCELLED: ("failed", Status.ERROR),
    },
    "call_agent": {
        Status.SUCCESS: ("text", Status.SUCCESS),
        Status.PARTIAL: ("text", Status.SUCCESS),
        Status.NEEDS_INPUT: ("error", Status.NEEDS_INPUT),
        Status.REFUSED: ("error", Status.ERROR),
        Status.ERROR: ("error", Status.ERROR),
        Status.TIMEOUT: ("error", Status.ERROR),
        Status.CANCELLED: ("error", Status.ERROR),
    },
    "contextcore": {
        Status.SUCCESS: ("completed", Status.SUCCESS),
        Status.PARTIAL: ("completed", Status.PARTIAL),
        Status.NEEDS_INPUT: ("input_required", Status.NEEDS_INPUT),
        Status.REFUSED: ("rejected", Status.REFUSED),
        Status.ERROR: ("failed", Status.ERROR),
        Status.TIMEOUT: ("timeout", Status.TIMEOUT),
        Status.CANCELLED: ("cancelled", Status.CANCELLED),
    },
    "sacp": {
        Status.SUCCESS: ("success", Status.SUCCESS),
        Status.PARTIAL: ("failure", Status.ERROR),
        Status.NEEDS_INPUT: ("clarification_needed", Status.NEEDS_INPUT),
        Status.REFUSED: ("failure", Status.ERROR),
        Status.ERROR: ("failure", Status.ERROR),
        Status.TIMEOUT: ("failure", Status.ERROR),
        Status.CANCELLED: ("failure", Status.ERROR),
    },
}

MODULES = {name: import_module(f"comity.dialects.{name}") for name in DIALECTS}

REPLIES = {
    Status.SUCCESS: Reply.success({"a": 1}),
    Status.PARTIAL: Reply.partial({"a": 1}, warnings=["half"]),
    Status.NEEDS_INPUT: Reply.needs_input("which?"),
    Status.REFUSED: Reply(status=Status.REFUSED, error=Error.of("LIMIT_DEPTH_EXCEEDED", "too deep")),
    Status.ERROR: Reply.failure("it broke"),
    Status.TIMEOUT: Reply(status=Status.TIMEOUT, error=Error.of("CALL_TIMEOUT", "too late")),
    Status.CANCELLED: Reply(status=Status.CANCELLED, error=Error.of("CALL_CANCELLED", "withdrawn")),
}


def word_of(document):
    return document.get("status", next(iter(document)))


@pytest.mark.parametrize("name", DIALECTS)
def test_every_status_word_of_a_dialect_has_its_meaning(name):
    module = MODULES[name]
    assert {str(word): status for word, status in module.STATUS_READ.items()} == {
        word: status for (dialect, word), status in READ.items() if dialect == name
    }
    words = getattr(module, "Status", None) or getattr(module, "State", None) or ("text", "error")
    assert set(module.STATUS_READ) == set(words)


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("status", Status)
def test_every_canonical_status_is_written_and_comes_back(name, status):
    dialect = DIALECTS[name]
    document = dialect.encode_reply(REPLIES[status])
    assert (word_of(document), dialect.decode_reply(document).status) == WRITTEN[name][status]


@pytest.mark.parametrize("name", ["kdap", "delegation", "call_agent"])
@pytest.mark.parametrize("status", [Status.REFUSED, Status.CANCELLED, Status.TIMEOUT])
def test_where_the_status_is_lost_the_code_still_tells(name, status):
    dialect = DIALECTS[name]
    assert dialect.decode_reply(dialect.encode_reply(REPLIES[status])).error.code == REPLIES[status].error.code


PRIORITY_READ = {
    ("kdap", "HIGH"): Priority.HIGH,
    ("kdap", "NORMAL"): Priority.NORMAL,
    ("kdap", "LOW"): Priority.LOW,
    ("contextcore", "critical"): Priority.CRITICAL,
    ("contextcore", "high"): Priority.HIGH,
    ("contextcore", "normal"): Priority.NORMAL,
    ("contextcore", "medium"): Priority.NORMAL,
    ("contextcore", "low"): Priority.LOW,
}
PRIORITY_WRITTEN = {
    "kdap": {Priority.CRITICAL: "HIGH", Priority.HIGH: "HIGH", Priority.NORMAL: "NORMAL", Priority.LOW: "LOW"},
    "contextcore": {priority: str(priority) for priority in Priority},
}
REQUEST = Request(request_id="r-1", target="A", capability="x", user_id="u-1", limits=Limits(), deadline_at=NOW_MS + 1)


@pytest.mark.parametrize("name", PRIORITY_WRITTEN)
def test_every_priority_maps_both_ways(name):
    dialect = DIALECTS[name]
    for priority in Priority:
        document = dialect.encode_request(replace(REQUEST, priority=priority), now_ms=NOW_MS)
        assert document["priority"] == PRIORITY_WRITTEN[name][priority]
    assert {str(word) for word in MODULES[name].Priority} == {word for dialect, word in PRIORITY_READ if dialect == name}
    for (owner, word), priority in PRIORITY_READ.items():
        if owner == name:
            read = dialect.decode_request(document | {"priority": word}, now_ms=NOW_MS, user_id="u-1")
            assert read.priority is priority
            assert dialect.encode_request(read, now_ms=NOW_MS)["priority"] == word


@pytest.mark.parametrize("band", Band)
def test_every_confidence_level_of_kdap_maps_both_ways(band):
    document = {"request_id": "r-1", "status": "SUCCESS", "result_json": {}, "confidence_level": str(band)}
    reply = kdap.decode_reply(document)
    assert reply.confidence == representative(band)
    assert kdap.encode_reply(reply) == document


@pytest.mark.parametrize(("confidence", "percent"), [(0.0, 0), (0.57, 57), (0.85, 85), (0.123, 12.3), (1.0, 100)])
def test_confidence_in_a_delegation_is_percent(confidence, percent):
    document = delegation.encode_reply(Reply.success(confidence=confidence))
    assert document["confidence"] == percent
    assert delegation.decode_reply(document).confidence == confidence
