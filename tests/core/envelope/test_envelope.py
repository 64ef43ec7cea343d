"""The envelope: what is sent is what arrives, what makes no sense cannot be made, and who must act is told by its class."""

from __future__ import annotations

import json
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from comity.core.call.limits import (
    CHAIN_MAX,
    ERROR_CHARS_MAX,
    HINTS_MAX,
    INPUTS_BYTES_MAX,
    MESSAGE_BYTES_MAX,
    NAME_CHARS_MAX,
    WARNINGS_MAX,
    Limits,
)
from comity.core.document.payload import Problem
from comity.core.envelope.codec import decode_reply, decode_request
from comity.core.envelope.envelope import (
    Artifact,
    Background,
    Error,
    ExpectedOutput,
    Priority,
    Reference,
    Reply,
    Request,
    Status,
    context_problems,
    encode,
    is_id,
    reply_problems,
)
from comity.core.envelope.usage import Usage
from comity.errors import CODES, CallerError, RefusedError, TargetError, UnavailableError

REQUEST = Request("r1", "ANL", "ANL_NPV", "u1", Limits(), 2_000, body=Raw(b'{"rate":0.1}'))
REPLY = Reply.success({"npv": 1.5}, request_id="r1")


# --- there and back -----------------------------------------------------------------------------------------------------

ids = st.text(st.characters(categories=["L", "N"], include_characters="-_./@ "), min_size=1, max_size=12).filter(is_id)
texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)
numbers = st.floats(allow_nan=False, allow_infinity=False)
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
mappings = st.dictionaries(texts, documents, max_size=3)
many = st.lists(texts, max_size=3).map(tuple)
references = st.lists(st.builds(Reference, source_id=texts, owner_scope=texts, relevance=st.none() | numbers), max_size=2)
limits = st.builds(Limits, depth_max=st.integers(0, CHAIN_MAX), tokens_max=st.none() | st.integers(0))
backgrounds = st.builds(
    Background,
    original_request=texts,
    workflow_position=texts,
    prior_agents=many,
    prior_outputs=mappings,
    decisions=many,
    constraints=mappings,
    assumptions=many,
    facts=many,
    references=references.map(tuple),
    intermediate_results=documents,
    hints=many,
    history_ref=texts,
    extra=mappings,
)
requests = st.builds(
    Request,
    ids,
    ids,
    ids,
    ids,
    limits,
    st.integers(0),
    st.integers(0),
    source=st.none() | ids,
    chain=st.lists(ids, max_size=4).map(tuple),
    body=mappings.map(lambda value: Raw(msgspec.json.encode(value))),
    objective=texts,
    message=texts,
    priority=st.sampled_from(Priority),
    root_id=ids,
    parent_id=st.none() | ids,
    correlation_id=ids,
    tenant_id=ids,
    session_id=ids,
    parent_session_id=st.none() | ids,
    context=st.none() | backgrounds,
    expected_output=st.none() | st.builds(ExpectedOutput, type=texts, fields=many, bytes_max=st.none() | st.integers(0)),
    trace_id=ids,
    span_id=ids,
    parent_span_id=ids,
    history=st.sampled_from(["none", "summary", "full"]) | st.integers(0),
    fingerprint=st.none() | st.integers(0, 2**32 - 1),
    metadata=mappings,
)
errors = st.builds(
    Error,
    code=st.sampled_from(sorted(CODES)) | ids,
    message=texts,
    retryable=st.booleans(),
    advice=texts,
    retry_after_ms=st.none() | st.integers(0),
    problems=st.lists(st.builds(Problem, texts, texts), max_size=2).map(tuple),
)
replies = st.builds(
    Reply,
    status=st.sampled_from(Status),
    data=documents,
    message=texts,
    confidence=st.floats(0, 1),
    warnings=st.lists(texts, min_size=1, max_size=3).map(tuple),
    error=errors,
    usage=st.builds(Usage, prompt_tokens=st.integers(0), completion_tokens=st.integers(0), calls=st.integers(0)),
    request_id=ids,
    duration_ms=st.floats(0, 1e9),
    degraded=st.booleans(),
    source=texts,
    session_id=texts,
    summary=texts,
    thought=texts,
    next_step_hint=texts,
    requires_followup=st.booleans(),
    artifacts=st.lists(st.builds(Artifact, type=texts, value=documents, label=texts), max_size=2).map(tuple),
    new_facts=many,
    sources=references.map(tuple),
    metadata=mappings,
)


@given(requests)
def test_a_request_arrives_as_it_was_sent(request):
    arrived = decode_request(encode(request))
    for field in Request.__struct_fields__:
        if field != "body":
            assert getattr(arrived, field) == getattr(request, field)
    assert arrived.inputs == request.inputs
    assert encode(arrived) == encode(request)


@given(replies)
def test_a_reply_arrives_as_it_was_sent(reply):
    assert decode_reply(encode(reply)) == reply
    assert reply_problems(reply) == ()


def test_every_field_that_is_not_its_default_travels_under_its_own_name():
    assert json.loads(encode(REQUEST)) == {
        "request_id": "r1",
        "target": "ANL",
        "capability": "ANL_NPV",
        "user_id": "u1",
        "limits": json.loads(msgspec.json.encode(Limits())),
        "deadline_at": 2_000,
        "inputs": {"rate": 0.1},
    }


def test_the_wire_words_are_those_of_the_design():
    assert [str(status) for status in Status] == [
        "success",
        "partial",
        "needs_input",
        "refused",
        "error",
        "timeout",
        "cancelled",
    ]
    assert [str(priority) for priority in Priority] == ["critical", "high", "normal", "low"]


def test_an_envelope_cannot_be_changed():
    for envelope, field in ((REQUEST, "target"), (REPLY, "status"), (Error.of("A_B", "x"), "code"), (Background(), "hints")):
        with pytest.raises(AttributeError):
            setattr(envelope, field, "other")


def test_inputs_are_a_fresh_copy_each_time():
    REQUEST.inputs["rate"] = 9
    assert REQUEST.inputs == {"rate": 0.1}


def test_the_depth_of_a_call_is_the_number_of_agents_above_it():
    assert REQUEST.depth == 0
    assert msgspec.structs.replace(REQUEST, chain=("ORC", "CST")).depth == 2


# --- replies ------------------------------------------------------------------------------------------------------------

WRONG = Error.of("TARGET_FAILED", "it did not work")


@pytest.mark.parametrize("status", [Status.SUCCESS, Status.PARTIAL])
@pytest.mark.parametrize("confidence", [None, -0.01, 1.01, math.nan, math.inf, "high", [1]])
def test_a_result_carries_a_confidence_from_zero_to_one(status, confidence):
    with pytest.raises(ValueError, match="carries a confidence from 0 to 1"):
        Reply(status=status, confidence=confidence, warnings=("w",))
    for allowed in (0, 0.0, 1, 1.0):
        assert Reply(status=status, confidence=allowed, warnings=("w",)).ok


def test_a_partial_result_says_what_is_missing():
    with pytest.raises(ValueError, match="at least one warning"):
        Reply(status=Status.PARTIAL, confidence=0.5)
    assert Reply.partial({}, warnings=["half"]).warnings == ("half",)


@pytest.mark.parametrize("status", [Status.ERROR, Status.REFUSED, Status.TIMEOUT, Status.CANCELLED])
def test_what_failed_carries_an_error(status):
    with pytest.raises(ValueError, match=f"a {status} reply carries an error"):
        Reply(status=status)
    assert not Reply(status=status, error=WRONG).ok


def test_a_question_needs_neither():
    question = Reply.needs_input("which year?", data={"known": 1})
    assert (question.status, question.message, question.data, question.ok) == (
        Status.NEEDS_INPUT,
        "which year?",
        {"known": 1},
        False,
    )


def test_the_makers_of_replies_make_what_they_say():
    assert Reply.success().confidence == 1.0
    assert Reply.success(1, confidence=0.7, summary="s").summary == "s"
    failure = Reply.failure("no data", code="DATA_MISSING_REQUIRED_INPUT")
    assert failure.error is not None
    assert (failure.status, failure.error.code, failure.message) == (Status.ERROR, "DATA_MISSING_REQUIRED_INPUT", "no data")


def test_unwrapping_a_result_gives_its_data():
    assert Reply.success([1]).unwrap() == [1]
    assert Reply.partial([1], warnings=["half"]).unwrap() == [1]


@pytest.mark.parametrize("code", CODES)
def test_unwrapping_a_failure_raises_the_family_of_its_code(code):
    problems = (Problem("inputs.a", "is wrong"),)
    error = Error.of(code, "why", retry_after_ms=5, problems=problems)
    with pytest.raises(CODES[code].family) as caught:
        Reply(status=Status.ERROR, error=error, request_id="r1").unwrap()
    raised = caught.value
    assert (raised.code, raised.message, raised.retryable, raised.retry_after_ms) == (code, "why", CODES[code].retryable, 5)
    assert raised.facts == {"problems": problems, "request_id": "r1"}


def test_unwrapping_tells_what_the_error_says_about_a_retry_not_what_its_code_would():
    for retryable in (True, False):
        error = Error.of("CALL_TIMEOUT", "why", retryable=retryable)
        with pytest.raises(UnavailableError) as caught:
            Reply(status=Status.TIMEOUT, error=error).unwrap()
        assert caught.value.retryable is retryable


def test_unwrapping_an_agents_own_code_blames_the_agent():
    with pytest.raises(TargetError) as caught:
        Reply.failure("why", code="WEATHER_TOO_BAD").unwrap()
    assert (caught.value.code, caught.value.retryable) == ("WEATHER_TOO_BAD", False)


def test_unwrapping_a_question_asks_the_caller():
    with pytest.raises(CallerError, match="which year") as caught:
        Reply.needs_input("which year?").unwrap()
    assert caught.value.code == "CALL_NEEDS_INPUT"
    assert not isinstance(caught.value, RefusedError)


# --- errors that travel -------------------------------------------------------------------------------------------------


def test_an_error_takes_retryable_and_advice_from_the_table_unless_given():
    error = Error.of("AGENT_BUSY", "full")
    assert (error.retryable, error.advice) == (True, CODES["AGENT_BUSY"].advice)
    assert Error.of("AGENT_BUSY", "full", retryable=False).retryable is False
    own = Error.of("WEATHER_TOO_BAD", "rain")
    assert (own.code, own.retryable, own.advice) == ("WEATHER_TOO_BAD", False, "")


@pytest.mark.parametrize("text", ["a\ud800b", "\udfff" * 3, "é\ud800" * ERROR_CHARS_MAX, "x" * (ERROR_CHARS_MAX + 1)])
def test_whatever_an_exception_says_its_error_can_be_written_down(text):
    error = Error.of("TARGET_CRASHED", text)
    assert len(error.message) <= ERROR_CHARS_MAX
    assert msgspec.json.decode(msgspec.json.encode(error), type=Error) == error


def test_a_message_that_can_be_written_down_is_left_as_it_is():
    for text in ("plain", "é → 安 😀", "two\nlines", "x" * ERROR_CHARS_MAX):
        assert Error.of("TARGET_CRASHED", text).message == text


@pytest.mark.parametrize("code", ["", "\ud800", "A\nB", "x" * (NAME_CHARS_MAX + 1)])
def test_a_code_that_is_no_name_is_a_plain_failure(code):
    assert Error.of(code, "why").code == "TARGET_FAILED"


# --- what a program makes by hand -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"message": "x" * (MESSAGE_BYTES_MAX + 1)}, "message"),
        ({"message": 7}, "message"),
        ({"thought": "\ud800"}, "thought"),
        ({"next_step_hint": "\ud800"}, "next_step_hint"),
        ({"warnings": ("fine", "\ud800")}, "warnings[1]"),
        ({"warnings": (7,)}, "warnings[0]"),
        ({"warnings": ("w",) * (WARNINGS_MAX + 1)}, "warnings"),
        ({"metadata": {"a": [1, object()]}}, "metadata.a[1]"),
        ({"metadata": {"a": math.nan}}, "metadata.a"),
        ({"metadata": [1]}, "metadata"),
        ({"artifacts": (Artifact(type="json", value={"x": object()}),)}, "artifacts[0].value.x"),
        ({"artifacts": (Artifact(type="json", value=math.inf),)}, "artifacts[0].value"),
        ({"artifacts": ({"type": "json"},)}, "artifacts[0].value"),
        ({"new_facts": ("\x00",)}, "new_facts[0]"),
        ({"summary": None}, "summary"),
        ({"error": Error(code="A_B", message="\ud800")}, "error.message"),
        ({"requires_followup": "yes"}, "requires_followup"),
    ],
)
def test_a_reply_that_could_not_be_stored_and_read_again_is_found_where_it_is_made(wrong, path):
    assert [problem.path for problem in reply_problems(Reply.success(1, **wrong))] == [path]


def test_the_data_of_a_reply_is_checked_as_a_document_of_its_own():
    assert reply_problems(Reply.success(object())) == ()


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"prior_outputs": {"a": object()}}, "context.prior_outputs.a"),
        ({"prior_outputs": {"a": math.nan}}, "context.prior_outputs.a"),
        ({"facts": ("\ud800",)}, "context.facts[0]"),
        ({"facts": (7,)}, "context.facts[0]"),
        ({"facts": "one fact"}, "context.facts"),
        ({"hints": None}, "context.hints"),
        ({"hints": ("h",) * (HINTS_MAX + 1)}, "context.hints"),
        ({"original_request": "x" * INPUTS_BYTES_MAX}, "context"),
        ({"references": ({"source": 1},)}, "context.references[0].source"),
    ],
)
def test_a_background_that_could_not_be_stored_and_read_again_is_found_where_it_is_made(wrong, path):
    assert [problem.path for problem in context_problems(Background(**wrong))] == [path]
    assert context_problems(Background(facts=("a",), intermediate_results={"n": None})) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", True),
        ("Ann Smith", True),
        (Status.ERROR, True),
        ("", False),
        ("a\n", False),
        (7, False),
        (None, False),
        (type("Text", (str,), {})("a"), False),  # no encoder knows it
    ],
)
def test_an_id_is_printable_text(text, expected):
    assert is_id(text) is expected
    assert is_id("x" * 5, 5)
    assert not is_id("x" * 6, 5)


@pytest.mark.parametrize("code", ["oops no category", "oops", "OOPS", "Oops_It", "A__B", "_A_B", "", 5, None, "A_" + "B" * 200])
def test_a_code_that_names_no_category_is_mapped_and_stays_visible(code):
    reply = Reply.failure("it broke", code=code)
    assert reply.error.code == "TARGET_FAILED"
    assert reply.error.message.endswith("it broke")
    if code:
        assert str(code)[:100] in reply.error.message or "(" in reply.error.message
    assert reply.message == "it broke"


@pytest.mark.parametrize("code", ["MY_OWN", "DATA_MISSING_REQUIRED_INPUT", "A1_2B"])
def test_an_agents_own_code_of_the_right_form_stays(code):
    assert Reply.failure("it broke", code=code).error.code == code
