"""Delegations: depth and budgets, data in artifacts, and errors as text."""

from __future__ import annotations

import pytest
from dialect_vectors import document_of
from msgspec.structs import replace

from comity.core.call.limits import CHAIN_MAX, Limits
from comity.core.envelope.envelope import Artifact, Background, Error, Reference, Reply, Status
from comity.core.envelope.usage import Usage
from comity.dialects import delegation
from comity.errors import CallerError

NOW_MS = 1_760_000_000_000
SIMPLE = document_of("delegation", "request_simple")
FAILED = document_of("delegation", "reply_failed")


def read(document, **options):
    return delegation.decode_request(document, now_ms=NOW_MS, **options)


def problems_of(function, document):
    with pytest.raises(CallerError) as caught:
        function(document)
    assert caught.value.code == "ENVELOPE_MALFORMED"
    return {problem.path for problem in caught.value.facts["problems"]}


def test_a_full_request_means_what_it_says():
    request = read(document_of("delegation", "request_full"))
    assert (request.source, request.target, request.user_id) == ("prime-boss", "byte-doc", "user-1")
    assert (request.parent_session_id, request.session_id) == ("uuid-of-prime-session", "")
    assert (request.objective, request.message) == ("Extract receipt data", "User uploaded receipt.jpg - extract all fields")
    assert request.deadline_at == NOW_MS + 15_000
    assert request.created_at == 1_760_011_200_000
    assert request.context == Background(
        hints=("receipt", "tax", "canadian"),
        facts=("The user lives in Canada",),
        references=(Reference(source_id="r-1", owner_scope="receipt"),),
        intermediate_results=[1, "two", None],
    )


def test_max_depth_2_allows_depth_1():
    limits = read(SIMPLE).limits
    assert (limits.depth_max, limits.fan_out_max, limits.tokens_max) == (1, 3, 1200)


def test_the_document_sets_depth_and_tokens_and_the_caller_the_rest():
    limits = read(SIMPLE | {"constraints": {"max_tokens": 7, "max_depth": 1}}, limits=Limits(calls_max=4, tokens_max=1)).limits
    assert limits == Limits(depth_max=0, tokens_max=7, calls_max=4)


def test_constraints_that_are_left_out_have_the_defaults_of_the_seed():
    request = read(SIMPLE | {"constraints": {}})
    assert (request.limits.tokens_max, request.limits.depth_max, request.deadline_at - NOW_MS) == (1200, 1, 15_000)


@pytest.mark.parametrize(
    ("origin", "stated", "chain"),
    [
        ("prime-boss", None, ("prime-boss",)),
        ("user", None, ()),
        ("prime-boss", 0, ()),
        ("prime-boss", 1, ("prime-boss",)),
        ("byte-doc", 3, ("?", "?", "byte-doc")),
    ],
)
def test_current_depth_is_the_depth_of_the_employee_asked(origin, stated, chain):
    document = SIMPLE | {"origin_employee": origin} | ({} if stated is None else {"current_depth": stated})
    request = read(document)
    assert request.chain == chain
    assert request.source == (chain[-1] if chain else None)
    assert delegation.encode_request(request, now_ms=NOW_MS) == document


def test_depth_is_always_stated_where_the_request_is_ours():
    assert delegation.encode_request(replace(read(SIMPLE), metadata={}), now_ms=NOW_MS)["current_depth"] == 1


@pytest.mark.parametrize(
    ("constraint", "value"), [("max_depth", 0), ("max_depth", CHAIN_MAX + 2), ("max_tokens", -1), ("deadline_ms", "soon")]
)
def test_a_constraint_outside_its_bounds_is_named(constraint, value):
    assert problems_of(read, SIMPLE | {"constraints": {constraint: value}}) == {f"constraints.{constraint}"}


def test_problems_inside_lists_are_named_with_their_place():
    handoff = {"references": [{"owner_scope": "x", "source_id": "y"}, {"owner_scope": 1, "relevance": 2}], "facts": ["a", 2]}
    assert problems_of(read, SIMPLE | {"handoff_data": handoff}) == {
        "handoff_data.references[1].owner_scope",
        "handoff_data.references[1].source_id",
        "handoff_data.references[1].relevance",
        "handoff_data.facts[1]",
    }


def test_inputs_travel_among_the_intermediate_results():
    request = read(SIMPLE | {"handoff_data": {"intermediate_results": {"inputs": {"a": 1}, "intermediate_results": [2]}}})
    assert request.inputs == {"a": 1}
    assert request.context.intermediate_results == [2]
    foreign = read(SIMPLE | {"handoff_data": {"intermediate_results": {"inputs": {"a": 1}, "more": 2}}})
    assert foreign.inputs == {}
    assert foreign.context.intermediate_results == {"inputs": {"a": 1}, "more": 2}


def test_a_request_without_an_objective_names_its_capability():
    request = read(SIMPLE | {"objective": ""}, capability="OCR")
    assert delegation.encode_request(request, now_ms=NOW_MS)["objective"] == ""
    assert delegation.encode_request(replace(request, metadata={}), now_ms=NOW_MS)["objective"] == "OCR"


def test_a_later_version_is_not_guessed_at():
    with pytest.raises(CallerError) as caught:
        read(SIMPLE | {"version": "2.0", "streaming": True})
    assert caught.value.code == "ENVELOPE_VERSION_UNSUPPORTED"
    assert read(SIMPLE | {"version": "1.0"}).message == SIMPLE["input"]
    assert problems_of(read, SIMPLE | {"version": 2}) == {"version"}


def test_a_time_that_is_none_is_named():
    assert problems_of(read, SIMPLE | {"created_at": "yesterday"}) == {"created_at"}


def test_a_full_reply_means_what_it_says():
    reply = delegation.decode_reply(document_of("delegation", "reply_success"))
    assert (reply.status, reply.source, reply.confidence) == (Status.SUCCESS, "byte-doc", 0.57)
    assert (reply.summary, reply.session_id, reply.duration_ms) == ("Read the receipt.", "uuid-of-byte-session", 1840.0)
    assert reply.usage == Usage(prompt_tokens=700, completion_tokens=120)
    assert reply.artifacts[0] == Artifact(type="json", value={"total": 42.1}, label="receipt")
    assert reply.sources[1] == Reference(owner_scope="global", source_id="r-2")


def test_data_is_the_first_artifact_labelled_so():
    document = delegation.encode_reply(Reply.success({"a": 1}, artifacts=(Artifact(type="id", value="x"),)))
    assert document["artifacts"] == [{"type": "json", "value": {"a": 1}, "label": "data"}, {"type": "id", "value": "x"}]
    assert delegation.decode_reply(document | {"artifacts": document["artifacts"][::-1]}).data is None


def test_a_table_labelled_data_stays_an_artifact():
    table = {"type": "table", "value": [[1]], "label": "data"}
    reply = delegation.decode_reply(FAILED | {"artifacts": [table]})
    assert (reply.data, reply.artifacts) == (None, (Artifact(type="table", value=[[1]], label="data"),))


def test_what_is_missing_from_a_partial_reply_stands_in_its_error():
    reply = delegation.decode_reply(document_of("delegation", "reply_partial"))
    assert (reply.status, reply.warnings, reply.confidence) == (Status.PARTIAL, ("No data for June", "No data for July"), 0.6)
    assert reply.error is None


def test_a_partial_reply_that_says_nothing_still_warns():
    silent = document_of("delegation", "reply_partial")
    del silent["error"]
    reply = delegation.decode_reply(silent)
    assert reply.warnings == (delegation.PARTIAL_WARNING,)
    assert delegation.encode_reply(reply) == silent


def test_more_lines_than_warnings_are_one_warning():
    text = "\n".join(map(str, range(101)))
    reply = delegation.decode_reply(document_of("delegation", "reply_partial") | {"error": text})
    assert reply.warnings == (text,)


def test_a_success_has_no_error():
    assert problems_of(delegation.decode_reply, FAILED | {"status": "success"}) == {"error"}


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("Delegation timeout after 5000ms", "CALL_TIMEOUT", "Delegation timeout after 5000ms"),
        ("LIMIT_DEPTH_EXCEEDED: too deep", "LIMIT_DEPTH_EXCEEDED", "too deep"),
        ("TARGET_FAILED: said twice", "TARGET_FAILED", "said twice"),
    ],
)
def test_an_error_may_name_its_code(text, code, message):
    reply = delegation.decode_reply(FAILED | {"error": text})
    assert (reply.error.code, reply.error.message) == (code, message)
    assert delegation.encode_reply(reply)["error"] == text


def test_a_failure_without_a_reason_gives_its_summary_as_one():
    silent = FAILED | {"summary": "Could not read it."}
    del silent["error"]
    reply = delegation.decode_reply(silent)
    assert reply.error == Error.of("TARGET_FAILED", "Could not read it.")
    assert delegation.encode_reply(reply) == silent
    changed = replace(reply, error=Error.of("TARGET_FAILED", "It is a photo of a cat."))
    assert delegation.encode_reply(changed)["error"] == "It is a photo of a cat."


def test_a_question_is_a_failure_that_asks():
    document = delegation.encode_reply(Reply.needs_input("Which receipt?"))
    assert (document["status"], document["error"]) == ("failed", "CALL_NEEDS_INPUT: Which receipt?")
    assert delegation.decode_reply(document) == Reply.needs_input("Which receipt?")


def test_a_total_that_is_no_sum_is_kept():
    document = document_of("delegation", "reply_success") | {"token_usage": {"prompt": 1, "completion": 2, "total": 9}}
    reply = delegation.decode_reply(document)
    assert reply.usage.total_tokens == 3
    assert delegation.encode_reply(reply)["token_usage"]["total"] == 9


@pytest.mark.parametrize("confidence", [-1, 101, "high"])
def test_confidence_is_from_0_to_100(confidence):
    assert problems_of(delegation.decode_reply, FAILED | {"confidence": confidence}) == {"confidence"}


def test_an_artifact_is_of_a_known_type():
    assert problems_of(delegation.decode_reply, FAILED | {"artifacts": [{"type": "poem", "value": 1}]}) == {"artifacts[0].type"}


def test_an_artifact_of_a_type_that_the_protocol_has_not_says_what_it_was():
    artifacts = (Artifact(type="chart", value=[1], label="sales"), Artifact(type="chart", value=2))
    written = delegation.encode_reply(Reply.success(artifacts=artifacts))["artifacts"]
    assert [(one["type"], one["label"]) for one in written] == [("json", "chart: sales"), ("json", "chart")]
