"""KDAP requests and responses: fields, defaults, and what each status requires."""

from __future__ import annotations

import pytest
from dialect_vectors import document_of, text_of
from msgspec.structs import replace

from comity.core.call.limits import ERROR_CHARS_MAX, NAME_CHARS_MAX, TIMEOUT_MS_CEILING
from comity.core.envelope.confidence import Band, band
from comity.core.envelope.envelope import Background, Priority, Reference, Reply, Status
from comity.dialects import kdap
from comity.errors import CallerError

NOW_MS = 1_760_000_000_000
MINIMAL = document_of("kdap", "request_fields")
SUCCESS = document_of("kdap", "reply_success")


def problems_of(function, *arguments, **options):
    with pytest.raises(CallerError) as caught:
        function(*arguments, **options)
    assert caught.value.code == "ENVELOPE_MALFORMED"
    return {problem.path: problem.message for problem in caught.value.facts["problems"]}


def read(document, **options):
    return kdap.decode_request(document, now_ms=NOW_MS, **({"user_id": "u-1"} | options))


def test_the_request_of_the_seed_means_what_it_says():
    request = kdap.decode_request(text_of("kdap", "request_npv.txt"), now_ms=NOW_MS)
    assert (request.source, request.chain, request.target, request.capability) == ("CST", ("CST",), "ANL", "ANL_NPV")
    assert request.inputs == {"cash_flows": [-100000, 25000, 35000, 45000, 55000], "discount_rate": 0.12, "periods": "annual"}
    assert (request.user_id, request.session_id) == ("user-456", "sess-789")
    assert request.deadline_at == NOW_MS + 15_000
    assert request.context == Background(extra={"kdap.engagement_type": "business_case"})


def test_what_a_request_leaves_out_has_the_defaults_of_the_seed():
    request = read(MINIMAL)
    assert request.priority is Priority.NORMAL
    assert request.deadline_at == NOW_MS + 30_000
    assert (request.correlation_id, request.session_id, request.context) == ("", "", None)


def test_a_default_that_was_left_out_is_written_once_it_has_changed():
    request = read(MINIMAL)
    assert "priority" not in kdap.encode_request(request, now_ms=NOW_MS)
    later = kdap.encode_request(replace(request, priority=Priority.LOW), now_ms=NOW_MS + 1)
    assert (later["priority"], later["timeout_ms"]) == ("LOW", 29_999)


def test_a_passed_deadline_leaves_no_time():
    assert kdap.encode_request(read(MINIMAL), now_ms=NOW_MS + 99_999)["timeout_ms"] == 0


def test_the_context_feeds_the_fields_that_have_its_words():
    context = {
        "prior_agents": ["ORC"],
        "facts": ["likes tea"],
        "references": [{"source_id": "d-1", "relevance": 0.5}],
        "decisions": [],
        "hints": "not a list",
        "session_id": "s-1",
    }
    background = read(MINIMAL | {"context": context}).context
    assert background == Background(
        prior_agents=("ORC",),
        facts=("likes tea",),
        references=(Reference(source_id="d-1", relevance=0.5),),
        extra={"kdap.decisions": [], "kdap.hints": "not a list"},
    )


def test_a_word_of_ours_is_left_alone_where_our_field_would_change_it():
    context = {"references": [{"source_id": "d-1", "relevance": None}], "user_id": "u-1"}
    request = read(MINIMAL | {"context": context})
    assert request.context == Background(extra={"kdap.references": context["references"]})
    assert kdap.encode_request(request, now_ms=NOW_MS)["context"] == context


def test_a_user_is_taken_from_the_context_first():
    assert read(MINIMAL | {"context": {"user_id": "u-2"}}, user_id="u-1").user_id == "u-2"
    assert read(MINIMAL, user_id="u-1").user_id == "u-1"


def test_a_request_without_any_user_is_malformed():
    assert problems_of(read, MINIMAL, user_id=None).keys() == {"context.user_id"}
    assert problems_of(read, MINIMAL | {"context": {"user_id": 5}}).keys() == {"context.user_id"}


def test_a_user_who_asks_is_the_source_user():
    request = read(MINIMAL | {"source_agent": "USER"})
    assert (request.source, request.chain) == (None, ())
    assert kdap.encode_request(request, now_ms=NOW_MS)["source_agent"] == "USER"


def test_every_problem_of_a_request_is_named_with_its_path():
    found = problems_of(
        read,
        {"source_agent": "", "target_agent": 5, "inputs_json": [], "priority": "CRITICAL", "timeout_ms": -1, "depth": 3},
    )
    assert found.keys() == {
        "source_agent", "target_agent", "capability_code", "request_id", "inputs_json", "priority", "timeout_ms", "depth",
    }  # fmt: skip
    assert found["priority"] == "must be one of HIGH, NORMAL, LOW"
    assert found["request_id"] == "is required and missing"
    assert "is not a field here" in found["depth"]


def test_a_problem_never_repeats_a_value():
    assert "secret" not in str(problems_of(read, MINIMAL | {"priority": "secret", "timeout_ms": "secret"}))


@pytest.mark.parametrize("timeout_ms", [TIMEOUT_MS_CEILING + 1, 1.5, True])
def test_a_timeout_is_a_whole_number_of_milliseconds_within_a_day(timeout_ms):
    assert problems_of(read, MINIMAL | {"timeout_ms": timeout_ms}).keys() == {"timeout_ms"}


def test_bounds_of_the_envelope_are_reported_in_the_words_of_the_dialect():
    assert problems_of(read, MINIMAL | {"target_agent": "x" * 300}).keys() == {"target_agent"}
    assert problems_of(read, MINIMAL | {"context": {"hints": ["x"] * 65}}).keys() == {"context.hints"}


@pytest.mark.parametrize("status", ["SUCCESS", "PARTIAL"])
def test_a_result_must_say_how_sure_it_is(status):
    document = {"request_id": "r-1", "status": status, "result_json": {}, "warnings": ["half"]}
    assert problems_of(kdap.decode_reply, document).keys() == {"confidence_level"}


def test_a_partial_result_must_say_what_is_limited():
    document = SUCCESS | {"status": "PARTIAL"}
    assert problems_of(kdap.decode_reply, document).keys() == {"warnings"}
    assert problems_of(kdap.decode_reply, document | {"warnings": []}).keys() == {"warnings"}


def test_an_error_must_say_what_happened_and_has_no_result():
    document = {"request_id": "r-1", "status": "ERROR", "result_json": {"npv": 1}}
    assert problems_of(kdap.decode_reply, document).keys() == {"error_message", "result_json"}
    assert kdap.decode_reply(document | {"error_message": "no", "result_json": {}}).data == {}


def test_a_result_has_no_error():
    document = SUCCESS | {"error_code": "X_Y", "error_message": "no"}
    assert problems_of(kdap.decode_reply, document).keys() == {"error_code", "error_message"}


def test_a_timeout_keeps_what_was_done_by_then():
    reply = kdap.decode_reply({"request_id": "r-1", "status": "TIMEOUT", "result_json": {"half": 1}, "warnings": ["rest"]})
    assert (reply.status, reply.data, reply.warnings) == (Status.TIMEOUT, {"half": 1}, ("rest",))
    assert (reply.error.code, reply.error.retryable) == ("CALL_TIMEOUT", True)


def test_an_error_without_a_code_is_the_targets():
    document = {"request_id": "r-1", "status": "ERROR", "result_json": None, "error_message": "no"}
    reply = kdap.decode_reply(document)
    assert (reply.error.code, reply.message) == ("TARGET_FAILED", "no")
    assert kdap.encode_reply(reply) == document
    assert kdap.encode_reply(replace(reply, metadata={}))["error_code"] == "TARGET_FAILED"


@pytest.mark.parametrize("confidence", [0.0, 0.39, 0.4, 0.59, 0.6, 0.849, 0.85, 1.0])
def test_a_confidence_comes_back_in_its_band(confidence):
    reply = kdap.decode_reply(kdap.encode_reply(Reply.success({}, confidence=confidence)))
    assert band(reply.confidence) is band(confidence)
    assert kdap.encode_reply(reply)["confidence_level"] in set(Band)


def test_what_is_no_object_is_wrapped_since_a_result_is_always_one():
    assert kdap.encode_reply(Reply.success([1, 2]))["result_json"] == {"value": [1, 2]}
    assert kdap.encode_reply(Reply.success(message="hello"))["result_json"] == {"message": "hello"}
    assert kdap.encode_reply(Reply.success())["result_json"] is None


def test_partial_data_of_an_error_is_not_sent_as_its_result():
    document = kdap.encode_reply(Reply.failure("no", data={"half": 1}))
    assert document["result_json"] is None
    kdap.decode_reply(document)


def test_the_time_a_response_took_is_its_duration():
    reply = kdap.decode_reply(SUCCESS)
    assert reply.duration_ms == 245.0
    assert reply.metadata == {"capability_version": 1.0}
    assert kdap.encode_reply(replace(reply, duration_ms=1.5))["metadata"]["processing_time_ms"] == 1.5


@pytest.mark.parametrize("odd", [0, -1, True, "fast", None, 2**53, 10**18])
def test_a_processing_time_that_is_no_duration_is_kept_as_it_is(odd):
    document = SUCCESS | {"metadata": {"processing_time_ms": odd}}
    reply = kdap.decode_reply(document)
    assert reply.duration_ms == 0.0
    assert kdap.encode_reply(reply) == document


def test_bytes_hold_json_or_a_block():
    assert kdap.decode_reply(text_of("kdap", "reply_partial.txt").encode()) == kdap.decode_reply(
        text_of("kdap", "reply_partial.json").encode()
    )
    assert problems_of(kdap.decode_reply, b"RESPONSE\n\xff") == {"$": "is not valid UTF-8"}


def test_what_other_dialects_left_in_the_context_is_not_sent():
    request = replace(read(MINIMAL), context=Background(extra={"kdap.mine": 1, "sacp.theirs": 2}), metadata={})
    assert kdap.encode_request(request, now_ms=NOW_MS)["context"] == {"user_id": "u-1", "mine": 1}


def test_a_block_of_another_kind_is_refused():
    message = problems_of(kdap.decode_request, text_of("kdap", "reply_success.txt"), now_ms=NOW_MS)["$"]
    assert message == "is a block headed RESPONSE, not REQUEST"


def test_texts_in_blocks_are_exactly_the_text_fields_of_the_forms():
    for heading, form in ((kdap.Heading.REQUEST, kdap.RequestForm), (kdap.Heading.RESPONSE, kdap.ResponseForm)):
        texts = kdap._HEADINGS[heading]
        kinds = {name: str(kind) for name, kind in form.__annotations__.items() if name != "written"}
        assert texts.lists | texts.sentences == {name for name, kind in kinds.items() if kind.startswith("tuple[str")}
        others = {name for name, kind in kinds.items() if kind.startswith(("dict", "Milliseconds"))}
        assert texts.lines == kinds.keys() - others - texts.lists - texts.sentences


@pytest.mark.parametrize(
    ("told", "path"),
    [
        ({"error_code": "x" * (NAME_CHARS_MAX + 1)}, "error_code"),
        ({"error_code": "A\tB"}, "error_code"),
        ({"error_message": "x" * (ERROR_CHARS_MAX + 1)}, "error_message"),
    ],
)
def test_an_error_that_an_envelope_has_no_room_for_is_refused_and_not_cut(told, path):
    document = {"request_id": "r", "status": "ERROR", "result_json": None, "error_code": "A_B", "error_message": "why"}
    assert kdap.decode_reply(document).error.code == "A_B"
    with pytest.raises(CallerError) as refused:
        kdap.decode_reply(document | told)
    assert [problem.path for problem in refused.value.facts["problems"]] == [path]


@pytest.mark.parametrize("code", ["oops no category", "OOPS", "input_validation_failed"])
def test_an_error_code_that_names_no_category_is_no_error_code(code):
    document = {"request_id": "r", "status": "ERROR", "result_json": None, "error_code": code, "error_message": "m"}
    assert list(problems_of(kdap.decode_reply, document)) == ["error_code"]


@pytest.mark.parametrize(
    ("written", "warnings"),
    [
        (
            "[Benchmark data from 2023, may not reflect current conditions]",
            ["Benchmark data from 2023, may not reflect current conditions"],
        ),
        ("[\n  Share is unknown,\n  Growth, from 2023, is old\n]", ["Share is unknown", "Growth, from 2023, is old"]),
        ("[\n  Share is unknown\n  Growth is old,\n]", ["Share is unknown", "Growth is old"]),
        ('["Share, unknown", "Growth is old"]', ["Share, unknown", "Growth is old"]),
        ("[2023]", ["2023"]),
        ("[]", []),
    ],
)
def test_a_comma_inside_a_line_of_warnings_is_part_of_the_sentence(written, warnings):
    block = f"RESPONSE\n\nrequest_id: r\nstatus: SUCCESS\nconfidence_level: HIGH\nresult_json: {{}}\nwarnings: {written}\n"
    assert list(kdap.decode_reply(block).warnings) == warnings
