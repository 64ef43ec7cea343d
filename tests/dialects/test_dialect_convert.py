"""From one dialect to another: what maps, what is lost, and what had to be made up."""

from __future__ import annotations

import inspect

import pytest
from dialect_vectors import ROOT, document_of, names, text_of

from comity.dialects import DIALECTS, Kind, convert
from comity.errors import CallerError

NPV = text_of("kdap", "request_npv.txt")


def lost_of(conversion):
    return {problem.path: problem.message for problem in conversion.lost}


def test_a_kdap_request_becomes_a_delegation():
    conversion = convert(NPV, "kdap", "delegation")
    assert conversion.kind is Kind.REQUEST
    assert conversion.document == {
        "request_id": "sess-789-20250118-143022",
        "origin_employee": "CST",
        "target_employee": "ANL",
        "user_id": "user-456",
        "parent_session_id": "",
        "child_session_id": "sess-789",
        "objective": "ANL_NPV",
        "input": "",
        "constraints": {"max_tokens": 1200, "max_depth": 6, "deadline_ms": 15000},
        "context_hints": [],
        "handoff_data": {"intermediate_results": {"inputs": document_of("kdap", "request_npv")["inputs_json"]}},
        "current_depth": 1,
    }
    assert lost_of(conversion) == {
        "capability_code": "has no field of its own in delegation",
        "context.engagement_type": "has no field of its own in delegation",
    }
    assert set(conversion.assumed) == {"limits.tokens_max", "objective"}
    assert {"request_id", "source_agent", "inputs_json", "timeout_ms", "context.user_id"} <= set(conversion.mapped)


def test_critical_becomes_high_in_kdap_and_is_said_to():
    handoff = document_of("contextcore", "request_create") | {"priority": "critical"}
    conversion = convert(handoff, "contextcore", "kdap", user_id="u-1")
    assert conversion.document["priority"] == "HIGH"
    assert lost_of(conversion)["priority"] == "critical becomes high"
    assert lost_of(conversion)["task"] == "has no field of its own in kdap"


def test_a_user_nobody_named_is_assumed():
    assert convert(document_of("contextcore", "request_create"), "contextcore", "kdap").assumed == ("user_id",)
    assert "user_id" not in convert(NPV, "kdap", "contextcore").assumed
    assert lost_of(convert(NPV, "kdap", "contextcore"))["context.user_id"] == "has no field of its own in contextcore"


def test_a_figure_that_changes_is_shown():
    reply = document_of("delegation", "reply_success")
    assert lost_of(convert(reply, "delegation", "kdap"))["confidence"] == "0.57 becomes 0.5"


def test_a_persons_text_is_never_shown():
    reply = document_of("delegation", "reply_success") | {"result": "my secret", "status": "partial", "error": "two\nsecrets"}
    conversion = convert(reply, "delegation", "sacp")
    assert "secret" not in str(conversion.lost)
    assert lost_of(conversion)["status"] == "partial becomes error"


def test_a_clamped_deadline_is_a_loss():
    conversion = convert(document_of("kdap", "request_npv") | {"timeout_ms": 400_000}, "kdap", "call_agent")
    assert lost_of(conversion)["timeout_ms"] == "does not come back as it was"


def test_a_request_cannot_become_a_reply():
    with pytest.raises(CallerError, match="sacp has only replies"):
        convert(NPV, "kdap", "sacp")


def test_an_unknown_dialect_is_named():
    with pytest.raises(CallerError, match="no dialect 'esperanto'; there are kdap, delegation"):
        convert(NPV, "kdap", "esperanto")


def test_other_blocks_cannot_be_converted():
    with pytest.raises(CallerError, match="handoff_context, for which delegation has no words"):
        convert(text_of("kdap", "handoff_market_entry.txt"), "kdap", "delegation")


VECTORS = names("*/re*.json")


@pytest.mark.parametrize("name", VECTORS)
def test_every_example_converts_to_every_dialect(name):
    source, _, file = name.partition("/")
    text = (ROOT / name).read_text(encoding="utf-8")
    kind = Kind.REQUEST if file.startswith("request_") else Kind.REPLY
    for target, dialect in DIALECTS.items():
        if kind is Kind.REQUEST and dialect.decode_request is None:
            continue
        conversion = convert(text, source, target)
        assert conversion.kind is kind
        assert not set(conversion.mapped) & {problem.path for problem in conversion.lost}
        if source == target:
            assert (conversion.document, conversion.lost) == (document_of(source, file.removesuffix(".json")), ())


@pytest.mark.parametrize("dialect", [dialect for dialect in DIALECTS.values() if dialect.decode_request])
def test_a_dialect_asks_for_what_its_documents_may_leave_unsaid(dialect):
    parameters = inspect.signature(dialect.decode_request).parameters.keys()
    assert dialect.asks == parameters - {"raw", "now_ms", "limits", "call_context"}
