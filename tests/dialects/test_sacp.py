"""SACP replies and the object for what nobody could read."""

from __future__ import annotations

import pytest
from dialect_vectors import document_of
from msgspec.structs import replace

from comity.core.envelope.envelope import Reply, Status
from comity.core.model.reply import canonical
from comity.core.model.reply import read as read_text
from comity.dialects import sacp
from comity.errors import CallerError

REPLY = document_of("sacp", "reply_sum")


def problems_of(document):
    with pytest.raises(CallerError) as caught:
        sacp.decode_reply(document)
    assert caught.value.code == "ENVELOPE_MALFORMED"
    return {problem.path for problem in caught.value.facts["problems"]}


def test_the_reply_of_the_seed_means_what_it_says():
    reply = sacp.decode_reply(REPLY)
    assert (reply.status, reply.data, reply.message) == (Status.SUCCESS, {"result": 10}, "The result is 10.")
    assert reply.thought == "I need to calculate the sum. 5+5 is 10."


def test_the_four_fields_are_required_and_others_allowed():
    assert problems_of({"confidence": 1}) == {"thought", "status", "data", "message"}


def test_fields_that_the_protocol_does_not_know_are_kept_and_written_again():
    document = REPLY | {"confidence": 0.9, "answer": {"a": [1]}}
    reply = sacp.decode_reply(document)
    assert reply.metadata["sacp.extra"] == {"confidence": 0.9, "answer": {"a": [1]}}
    assert sacp.encode_reply(reply) == document


def test_the_reply_of_a_model_that_could_not_be_read_is_written_as_the_fallback_object():
    reply = replace(canonical(read_text("no JSON at all")), thought="")  # as its caller sees it
    assert sacp.encode_reply(reply) == sacp.fallback("no JSON at all")


@pytest.mark.parametrize(
    ("field", "wrong"),
    [("status", "needs_input"), ("data", [1]), ("data", None), ("thought", None)],
)
def test_a_wrong_word_or_type_is_named(field, wrong):
    assert problems_of(REPLY | {field: wrong}) == {field}


def test_completed_is_a_success_that_stays_completed():
    reply = sacp.decode_reply(REPLY | {"status": "completed"})
    assert (reply.status, reply.metadata) == (Status.SUCCESS, {"sacp.status": "completed"})
    assert sacp.encode_reply(reply)["status"] == "completed"


def test_work_sent_back_is_an_error_that_says_what_to_change_and_stays_so():
    document = REPLY | {"status": "retry_with_instruction", "message": "Give the amounts in euros."}
    reply = sacp.decode_reply(document)
    assert (reply.status, reply.error.code, reply.message) == (Status.ERROR, "TARGET_SENT_BACK", "Give the amounts in euros.")
    assert sacp.encode_reply(reply) == document


def test_a_failure_is_an_error_with_its_data():
    reply = sacp.decode_reply(REPLY | {"status": "failure"})
    assert (reply.error.code, reply.error.message, reply.data) == ("TARGET_FAILED", "The result is 10.", {"result": 10})


def test_the_fallback_object_is_that_of_the_seed_and_of_the_ladder():
    document = sacp.fallback("The actual raw text from the LLM...")
    assert document == document_of("sacp", "reply_fallback")
    reading = read_text("not JSON at all")
    assert sacp.fallback("not JSON at all") == {
        "thought": reading.thought, "status": reading.status, "data": reading.data, "message": reading.message,
    }  # fmt: skip


def test_the_fallback_object_is_an_unreadable_answer():
    reply = sacp.decode_reply(sacp.fallback("hello"))
    assert (reply.status, reply.error.code, reply.degraded) == (Status.ERROR, "OUTPUT_VALIDATION_FAILED", True)
    assert not sacp.decode_reply(REPLY | {"status": "failure"}).degraded


def test_a_partial_result_is_not_called_a_success():
    document = sacp.encode_reply(Reply.partial({"a": 1}, warnings=["half is missing"]))
    assert (document["status"], document["data"], document["message"]) == ("failure", {"a": 1}, "half is missing")


def test_data_is_always_an_object():
    assert sacp.encode_reply(Reply.success([1]))["data"] == {"value": [1]}
    assert sacp.encode_reply(Reply.success())["data"] == {}


def test_a_failure_speaks_for_itself_where_nobody_else_does():
    reply = Reply.failure("it broke")
    assert sacp.encode_reply(reply)["message"] == "it broke"
