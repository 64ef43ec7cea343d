"""The call_agent tool: its input, the context beside it, and its text or error."""

from __future__ import annotations

import pytest
from dialect_vectors import document_of
from msgspec import Raw
from msgspec.structs import replace

from comity.core.call.limits import MESSAGE_BYTES_MAX
from comity.core.document.schema import JsonSchema
from comity.core.envelope.envelope import Error, Reply, Status
from comity.dialects import call_agent
from comity.errors import CODES, CallerError

NOW_MS = 1_760_000_000_000
ASK = {"agent_id": "researcher", "message": "What is known?"}


def read(document, **options):
    return call_agent.decode_request(document, now_ms=NOW_MS, request_id="r-1", user_id="u-1", **options)


def problems_of(function, document):
    with pytest.raises(CallerError) as caught:
        function(document)
    assert caught.value.code == "ENVELOPE_MALFORMED"
    return {problem.path for problem in caught.value.facts["problems"]}


def test_the_tool_has_the_parameters_of_the_seed():
    seed = document_of("call_agent", "tool")
    assert call_agent.TOOL["name"] == seed["name"]
    assert {name: kind["type"] for name, kind in call_agent.TOOL["parameters"].items()} == {
        name: kind["type"] for name, kind in seed["parameters"].items()
    }
    assert "30000" in call_agent.TOOL["parameters"]["timeout_ms"]["description"]
    assert "300000" in call_agent.TOOL["parameters"]["timeout_ms"]["description"]


@pytest.mark.parametrize(
    "document", [ASK, ASK | {"timeout_ms": 5}, {"agent_id": "a"}, ASK | {"call_chain": []}, ASK | {"agent_id": 1}]
)
def test_the_schema_given_to_models_accepts_what_is_read(document):
    import json

    is_valid = not JsonSchema(call_agent.INPUT_SCHEMA, path="input").check(json.dumps(document).encode()).problems
    try:
        read(document)
    except CallerError:
        assert not is_valid
    else:
        assert is_valid


def test_a_call_without_context_is_a_users():
    request = read(ASK)
    assert (request.source, request.chain, request.target, request.message) == (None, (), "researcher", "What is known?")
    assert request.limits.depth_max == 5


@pytest.mark.parametrize(
    ("stated", "allowed"), [(None, 30_000), (5, 5), (300_000, 300_000), (300_001, 300_000), (2**62, 300_000)]
)
def test_a_timeout_is_defaulted_and_clamped_as_the_seed_does(stated, allowed):
    request = read(ASK | ({} if stated is None else {"timeout_ms": stated}))
    assert request.deadline_at == NOW_MS + allowed


def test_a_longer_deadline_is_clamped_when_written():
    request = replace(read(ASK), deadline_at=NOW_MS + 400_000, metadata={})
    assert call_agent.encode_request(request, now_ms=NOW_MS)["timeout_ms"] == 300_000


def test_the_call_context_is_the_chain_of_callers():
    request = read(ASK, call_context={"call_depth": 2, "call_chain": ["A", "B"]})
    assert (request.source, request.chain, request.depth) == ("B", ("A", "B"), 2)


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_a_depth_that_is_not_the_number_of_callers_is_malformed(depth):
    assert problems_of(call_agent.decode_call_context, {"call_depth": depth, "call_chain": ["A", "B"]}) == {"call_depth"}


def test_a_model_cannot_write_its_own_call_context():
    assert problems_of(read, ASK | {"call_chain": [], "call_depth": 0}) == {"call_chain", "call_depth"}


@pytest.mark.parametrize("document", [{"agent_id": "", "message": "x"}, {"agent_id": "a", "message": ""}])
def test_an_empty_id_or_message_is_malformed(document):
    assert len(problems_of(read, document)) == 1


def test_a_message_is_bounded():
    assert problems_of(read, ASK | {"message": "x" * (MESSAGE_BYTES_MAX + 1)}) == {"message"}


def test_inputs_become_text_that_the_callee_can_read():
    request = replace(read(ASK), body=Raw(b'{"a":1}'))
    assert call_agent.encode_request(request, now_ms=NOW_MS)["message"] == 'What is known?\n\n{"a":1}'
    assert call_agent.encode_request(replace(request, message=""), now_ms=NOW_MS)["message"] == '{"a":1}'
    assert call_agent.encode_request(replace(read(ASK), message="", objective="find"), now_ms=NOW_MS)["message"] == "find"


def test_a_request_with_nothing_to_say_cannot_be_a_tool_call():
    with pytest.raises(CallerError, match="message"):
        call_agent.encode_request(replace(read(ASK), message=""), now_ms=NOW_MS)


def test_a_reply_in_text_holds_everything_the_model_needs():
    reply = Reply.partial({"a": [1]}, warnings=["half", "old"], message="Here:")
    assert call_agent.encode_reply(reply) == {"text": 'Here:\n\n{"a":[1]}\n\nWarning: half\n\nWarning: old'}


@pytest.mark.parametrize("document", [{}, {"text": "a", "error": "b"}, {"text": None}, {"ok": "a"}])
def test_a_reply_is_either_text_or_an_error(document):
    assert problems_of(call_agent.decode_reply, document)


@pytest.mark.parametrize(("word", "code"), call_agent.ERROR_WORDS.items())
def test_the_error_names_of_the_seed_stand_for_our_codes(word, code):
    assert code in CODES
    reply = call_agent.decode_reply({"error": f"{word}: why"})
    assert (reply.status, reply.error) == (Status.ERROR, Error.of(code, "why"))
    assert call_agent.encode_reply(Reply(status=Status.REFUSED, error=Error.of(code, "why"))) == {"error": f"{word}: why"}


@pytest.mark.parametrize(
    "text", ["AGENT_BUSY: why", "AgentBusy: why", "Agent busy: why", "TARGET_FAILED: x", "TARGET_FAILED: A_B: x", ""]
)
def test_an_error_text_is_written_as_it_was_read(text):
    assert call_agent.encode_reply(call_agent.decode_reply({"error": text})) == {"error": text}
