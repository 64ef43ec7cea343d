"""Handoff messages and the updates that end them."""

from __future__ import annotations

import pytest
from dialect_vectors import document_of
from msgspec.structs import replace

from comity.core.envelope.envelope import Error, ExpectedOutput, Priority, Reply, Status
from comity.dialects import contextcore
from comity.errors import CallerError

NOW_MS = 1_760_000_000_000
CREATED_MS = 1_711_843_200_000  # 2024-03-31
CREATE = document_of("contextcore", "request_create")


def read(document):
    return contextcore.decode_request(document, now_ms=NOW_MS, user_id="u-1")


def problems_of(function, document):
    with pytest.raises(CallerError) as caught:
        function(document)
    assert caught.value.code == "ENVELOPE_MALFORMED"
    return {problem.path for problem in caught.value.facts["problems"]}


def test_the_handoff_of_the_seed_means_what_it_says():
    request = read(CREATE)
    assert (request.request_id, request.source, request.target) == ("handoff-1", "orchestrator", "o11y")
    assert (request.capability, request.message) == ("investigate_error", "Find root cause of checkout latency spike")
    assert request.inputs["app_name"] == "checkout-service"
    assert request.expected_output == ExpectedOutput(
        type="analysis_report", fields=("root_cause", "evidence", "recommended_fix")
    )
    assert (request.priority, request.deadline_at) == (Priority.HIGH, NOW_MS + 300_000)


def test_what_a_handoff_leaves_out_has_the_defaults_of_the_seed():
    request = read({"id": "h", "from_agent": "a", "to_agent": "b", "capability_id": "c", "task": "t"})
    assert (request.priority, request.deadline_at - NOW_MS, request.inputs) == (Priority.NORMAL, 300_000, {})
    assert (request.expected_output, request.metadata.get("contextcore.status")) == (None, None)


def test_the_deadline_counts_from_the_creation():
    request = read(CREATE | {"created_at": "2024-03-31T00:00:00Z"})
    assert (request.created_at, request.deadline_at) == (CREATED_MS, CREATED_MS + 300_000)
    assert contextcore.encode_request(request, now_ms=NOW_MS + 5)["timeout_ms"] == 300_000


def test_the_remaining_time_is_written_where_the_creation_is_unknown():
    assert contextcore.encode_request(read(CREATE), now_ms=NOW_MS + 5)["timeout_ms"] == 299_995


def test_medium_is_normal_and_stays_medium_unless_changed():
    request = read(CREATE | {"priority": "medium"})
    assert request.priority is Priority.NORMAL
    assert contextcore.encode_request(request, now_ms=NOW_MS)["priority"] == "medium"
    assert contextcore.encode_request(replace(request, priority=Priority.LOW), now_ms=NOW_MS)["priority"] == "low"


@pytest.mark.parametrize("state", contextcore.State)
def test_the_state_of_a_handoff_is_kept_beside_the_request(state):
    request = read(CREATE | {"status": str(state)})
    assert request.metadata.get("contextcore.status", "pending") == state
    assert contextcore.encode_request(request, now_ms=NOW_MS)["status"] == state


def test_metadata_that_is_no_state_is_not_written_as_one():
    request = replace(read(CREATE), metadata={"contextcore.status": "lost", "contextcore.result_trace_id": 5})
    document = contextcore.encode_request(request, now_ms=NOW_MS)
    assert document["status"] == "pending"
    assert "result_trace_id" not in document


def test_every_problem_of_a_handoff_is_named():
    document = {
        "id": "",
        "from_agent": "a",
        "to_agent": "b",
        "task": 1,
        "expected_output": {"fields": "x", "lines": 3},
        "priority": "urgent",
    }
    assert problems_of(read, document) == {
        "id", "capability_id", "task", "expected_output.fields", "expected_output.lines", "priority",
    }  # fmt: skip


@pytest.mark.parametrize("state", ["pending", "accepted", "in_progress"])
def test_a_handoff_that_has_not_ended_has_no_reply(state):
    assert problems_of(contextcore.decode_reply, {"id": "h", "status": state}) == {"status"}


@pytest.mark.parametrize("state", ["failed", "input_required"])
def test_a_failure_and_a_question_must_be_told(state):
    assert problems_of(contextcore.decode_reply, {"id": "h", "status": state}) == {"reason"}


@pytest.mark.parametrize(
    ("state", "status", "code"),
    [
        ("timeout", Status.TIMEOUT, "CALL_TIMEOUT"),
        ("cancelled", Status.CANCELLED, "CALL_CANCELLED"),
        ("rejected", Status.REFUSED, "ROUTING_NOT_PERMITTED"),
    ],
)
def test_an_end_without_a_reason_has_the_usual_one(state, status, code):
    reply = contextcore.decode_reply({"id": "h", "status": state})
    assert (reply.status, reply.error.code) == (status, code)
    assert contextcore.encode_reply(reply) == {"id": "h", "status": state}
    assert contextcore.encode_reply(replace(reply, metadata={}))["reason"] == reply.error.message
    told = replace(reply, error=Error.of(code, "because"))
    assert contextcore.encode_reply(told) == {"id": "h", "status": state, "reason": "because"}


@pytest.mark.parametrize("reason", ["TARGET_FAILED: said", "MY_OWN: said", "said"])
def test_a_reason_is_written_as_it_was_read(reason):
    document = {"id": "h", "status": "failed", "reason": reason}
    reply = contextcore.decode_reply(document)
    assert reply.message == "said"
    assert contextcore.encode_reply(reply) == document


def test_a_completed_handoff_with_a_reason_is_partial():
    reply = contextcore.decode_reply({"id": "h", "status": "completed", "result": [1], "reason": "no logs\nno traces"})
    assert (reply.status, reply.data, reply.warnings) == (Status.PARTIAL, [1], ("no logs", "no traces"))


def test_an_answer_in_words_is_the_result():
    assert contextcore.encode_reply(Reply.success(message="done", request_id="h"))["result"] == "done"


def test_the_trace_that_holds_the_result_is_kept():
    reply = contextcore.decode_reply(document_of("contextcore", "reply_completed"))
    assert reply.data == {"root_cause": "N+1 database query"}
    assert reply.metadata == {"contextcore.result_trace_id": "trace-xyz"}
