"""Generated envelopes: for each dialect the canonical values it can say."""

from __future__ import annotations

from hypothesis import strategies as st
from msgspec import Raw

from comity.core.call.limits import TIMEOUT_MS_CEILING, Limits
from comity.core.document.payload import pack
from comity.core.envelope.confidence import Band, representative
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
)
from comity.core.envelope.usage import Usage
from comity.dialects import call_agent, contextcore, delegation, kdap
from comity.dialects.reading.document import UNSTATED_CONFIDENCE
from comity.errors import CODES

NOW_MS = 1_760_000_000_000

# Sampling is what keeps ten thousand envelopes affordable; the pools hold what breaks parsers.
WORD_POOL = [
    "a",
    "ANL",
    "byte-doc",
    "agent/key",
    "ünï",
    "0",
    "null",
    "-1",
    "x" * 200,
    "{a}",
    "a: b",
    '"q"',
    "user-456",
    "é\u0301",
    "日本",
]
TEXT_POOL = [
    "text",
    "two\nlines",
    "tab\there",
    "NO_CODE here",
    "A_CODE: told",
    "TARGET_FAILED: said",
    "AgentBusy: later",
    "a, b",
    "💡",
]
WORDS = st.sampled_from(WORD_POOL)
MAYBE_WORDS = st.sampled_from([None, *WORD_POOL])
WORDS_OR_EMPTY = st.sampled_from(["", *WORD_POOL])
WORD_TUPLES = st.sampled_from([(), ("A",), ("A", "B"), ("ünï", "null", "agent/key")])
SAID = st.sampled_from(TEXT_POOL)
TEXTS = st.sampled_from(["", *TEXT_POOL])
TEXT_TUPLES = st.sampled_from([(), ("text",), ("",), ("two\nlines", "A_CODE: told"), ("a, b", "")])
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6) | TEXTS
ANY_SAID = ANY_TEXT.filter(bool)
LINE_TUPLES = st.sampled_from([("text",), ("a, b", "💡"), ("A_CODE: told", "ends."), ("Nothing for June", "Nothing for July")])
OBJECT_POOL = [
    {},
    {"a": 1},
    {"": None},
    {"inputs": {}},
    {"value": [1, {"b": []}]},
    {"cash_flows": [-100, 60.5], "rate": 0.1, "ok": True},
]
VALUE_POOL = [None, False, 0, 1.0, -1, 2**53, 2**70, 1e300, "", "text", "null", [], [None], [[1], "two"], [{"a": [{}]}]]
JSON = st.sampled_from(VALUE_POOL + OBJECT_POOL)
OBJECTS = st.sampled_from(OBJECT_POOL)
TIMEOUTS = st.sampled_from([0, 1, 15_000, 30_000, 300_000, TIMEOUT_MS_CEILING])
CALL_TIMEOUTS = st.sampled_from([0, 1, 15_000, 30_000, 300_000])
TIMES = st.sampled_from([0, 1, NOW_MS, NOW_MS + 1, 253_402_300_799_999])
CONFIDENCES = st.integers(0, 1_000_000).map(lambda millionths: millionths / 1_000_000)
DURATIONS = st.sampled_from([0.0, 0.25, 1.0, 245.0, 1e9])


def body(inputs):
    return Raw(pack(inputs, path="inputs", bytes_max=1_000_000))


# --- canonical ----------------------------------------------------------------------------------------------------------

_BARE = Reference(source_id="r-1", owner_scope="receipt")
_RATED = [Reference(source_id="", relevance=0.0), Reference(source_id="r-2", owner_scope="x", relevance=0.25)]
REFERENCE_TUPLES = st.sampled_from([(), (_BARE,), (_BARE, Reference(source_id=""))])
SOURCE_TUPLES = st.sampled_from([(), (_BARE,), tuple(_RATED)])
KDAP_PRIORITIES = st.sampled_from([Priority.HIGH, Priority.NORMAL, Priority.LOW])
PRIORITIES = st.sampled_from(list(Priority))
CAPABILITIES = st.sampled_from(["ANL_NPV", "x"])
STATES = st.sampled_from([str(state) for state in contextcore.State])
TRACES = st.sampled_from([{}, {"contextcore.result_trace_id": "trace-xyz"}])
EXPECTED = st.sampled_from(
    [None, ExpectedOutput(), ExpectedOutput(type="report", fields=("a", "")), ExpectedOutput(fields=("b",))]
)
SMALL = st.integers(0, 9)
DEPTHS = st.integers(0, 32)


def without_default(background):
    return None if background == Background() else background


@st.composite
def kdap_requests(draw):
    source = draw(MAYBE_WORDS)
    background = Background(
        original_request=draw(TEXTS),
        workflow_position=draw(TEXTS),
        prior_agents=draw(WORD_TUPLES),
        prior_outputs=draw(OBJECTS),
        decisions=draw(TEXT_TUPLES),
        constraints=draw(OBJECTS),
        facts=draw(TEXT_TUPLES),
        references=draw(SOURCE_TUPLES),
        intermediate_results=draw(JSON),
        history_ref=draw(TEXTS),
        extra={f"kdap.mine.{key}": value for key, value in draw(OBJECTS).items()},
    )
    return Request(
        request_id=draw(WORDS),
        target=draw(WORDS),
        capability=draw(CAPABILITIES),
        user_id=draw(WORDS),
        limits=kdap.LIMITS,
        deadline_at=NOW_MS + draw(TIMEOUTS),
        source=source,
        chain=(source,) if source else (),
        body=body(draw(OBJECTS)),
        priority=draw(KDAP_PRIORITIES),
        correlation_id=draw(WORDS_OR_EMPTY),
        session_id=draw(WORDS_OR_EMPTY),
        context=without_default(background),
    )


@st.composite
def delegation_requests(draw):
    source = draw(MAYBE_WORDS)
    depth = 1 + draw(SMALL) if source else 0
    background = Background(
        hints=draw(TEXT_TUPLES),
        facts=draw(TEXT_TUPLES),
        references=draw(REFERENCE_TUPLES),
        intermediate_results=draw(JSON),
    )
    return Request(
        request_id=draw(WORDS),
        target=draw(WORDS),
        capability="message",
        user_id=draw(WORDS),
        limits=Limits(depth_max=draw(DEPTHS), fan_out_max=3, timeout_ms=15_000, tokens_max=draw(SMALL)),
        deadline_at=NOW_MS + draw(TIMEOUTS),
        created_at=draw(TIMES),
        source=source,
        chain=(delegation.UNKNOWN_ANCESTOR,) * (depth - 1) + ((source,) if source else ()),
        body=body(draw(OBJECTS)),
        objective=draw(TEXTS),
        message=draw(TEXTS),
        session_id=draw(WORDS_OR_EMPTY),
        parent_session_id=draw(MAYBE_WORDS),
        context=without_default(background),
    )


@st.composite
def call_agent_requests(draw):
    chain = draw(WORD_TUPLES)
    return Request(
        request_id="r-1",
        target=draw(WORDS),
        capability="message",
        user_id="u-1",
        limits=call_agent.LIMITS,
        deadline_at=NOW_MS + draw(CALL_TIMEOUTS),
        source=chain[-1] if chain else None,
        chain=chain,
        message=draw(ANY_SAID),
    )


@st.composite
def contextcore_requests(draw):
    source = draw(MAYBE_WORDS)
    created_at = draw(TIMES)
    metadata = {}
    if (state := draw(STATES)) != "pending":
        metadata["contextcore.status"] = state
    metadata |= draw(TRACES)
    return Request(
        request_id=draw(WORDS),
        target=draw(WORDS),
        capability=draw(CAPABILITIES),
        user_id="u-1",
        limits=contextcore.LIMITS,
        deadline_at=(created_at or NOW_MS) + draw(TIMEOUTS),
        created_at=created_at,
        source=source,
        chain=(source,) if source else (),
        body=body(draw(OBJECTS)),
        message=draw(TEXTS),
        priority=draw(PRIORITIES),
        expected_output=draw(EXPECTED),
        metadata=metadata,
    )


# An error whose code says that input is needed is a question, not an error.
CODED = st.sampled_from([*(code for code in CODES if code != "CALL_NEEDS_INPUT"), "MY_OWN_CODE"])
MESSAGES = st.sampled_from(
    ["it broke", "A_CODE: told", "AgentBusy: later", "two\nlines", "TARGET_FAILED: x"]
) | ANY_TEXT.filter(bool)


ERRORS = st.builds(Error.of, CODED, MESSAGES)
BAND_CONFIDENCES = st.sampled_from([representative(band) for band in Band])
KDAP_STATUSES = st.sampled_from([Status.SUCCESS, Status.PARTIAL, Status.ERROR, Status.TIMEOUT, Status.NEEDS_INPUT])
DELEGATION_STATUSES = st.sampled_from([Status.SUCCESS, Status.PARTIAL, Status.ERROR, Status.NEEDS_INPUT])
PLAIN_STATUSES = st.sampled_from([Status.SUCCESS, Status.ERROR, Status.NEEDS_INPUT])
STATUSES = st.sampled_from(list(Status))
MAYBE_OBJECTS = st.sampled_from([None, *OBJECT_POOL])
BOOLEANS = st.booleans()
SACP_METADATA = st.sampled_from([{}, {"sacp.status": "completed"}])


@st.composite
def kdap_replies(draw):
    status = draw(KDAP_STATUSES)
    has_result = status not in {Status.ERROR, Status.NEEDS_INPUT}
    error = draw(ERRORS) if status in {Status.ERROR, Status.TIMEOUT} else None
    sure = draw(BAND_CONFIDENCES)
    rest = draw(OBJECTS)
    warnings = draw(TEXT_TUPLES)
    return Reply(
        status=status,
        request_id=draw(TEXTS),
        data=draw(MAYBE_OBJECTS) if has_result else {} if rest else None,
        message=error.message if error else draw(SAID) if status is Status.NEEDS_INPUT else "",
        confidence=sure if status in UNSTATED_CONFIDENCE or rest else None,
        warnings=warnings or ("text",) if status is Status.PARTIAL else warnings,
        error=error,
        duration_ms=draw(DURATIONS),
        metadata={"kdap.metadata": rest} if rest else {},
    )


ARTIFACT_TUPLES = st.sampled_from(
    [
        (),
        (Artifact(type="json", value={"a": [1]}, label="sum"), Artifact(type="file", value="f.jpg")),
        (Artifact(type="id", value=None),),
    ]
)


@st.composite
def delegation_replies(draw):
    status = draw(DELEGATION_STATUSES)
    return Reply(
        status=status,
        request_id=draw(WORDS),
        source=draw(WORDS),
        summary=draw(TEXTS),
        message=draw(TEXTS),
        data=draw(JSON),
        artifacts=draw(ARTIFACT_TUPLES),
        new_facts=draw(TEXT_TUPLES),
        sources=draw(SOURCE_TUPLES),
        usage=Usage(prompt_tokens=draw(SMALL), completion_tokens=draw(SMALL)),
        duration_ms=draw(DURATIONS),
        session_id=draw(WORDS_OR_EMPTY),
        confidence=draw(CONFIDENCES),
        requires_followup=draw(BOOLEANS),
        warnings=draw(LINE_TUPLES) if status is Status.PARTIAL else (),
        error=draw(ERRORS) if status is Status.ERROR else None,
    )


@st.composite
def call_agent_replies(draw):
    match draw(PLAIN_STATUSES):
        case Status.SUCCESS:
            return Reply.success(message=draw(ANY_TEXT))
        case Status.NEEDS_INPUT:
            return Reply.needs_input(draw(ANY_TEXT))
        case _:
            error = draw(ERRORS)
            return Reply(status=Status.ERROR, error=error, message=error.message)


@st.composite
def contextcore_replies(draw):
    status = draw(STATUSES)
    error = draw(ERRORS) if status not in {*UNSTATED_CONFIDENCE, Status.NEEDS_INPUT} else None
    return Reply(
        status=status,
        request_id=draw(WORDS),
        data=draw(JSON),
        message=error.message if error else draw(SAID) if status is Status.NEEDS_INPUT else "",
        confidence=UNSTATED_CONFIDENCE.get(status),
        warnings=draw(LINE_TUPLES) if status is Status.PARTIAL else (),
        error=error,
        metadata=draw(TRACES),
    )


@st.composite
def sacp_replies(draw):
    status = draw(PLAIN_STATUSES)
    message = draw(ANY_TEXT)
    return Reply(
        status=status,
        thought=draw(TEXTS),
        data=draw(OBJECTS),
        message=message,
        confidence=UNSTATED_CONFIDENCE.get(status),
        error=Error.of("TARGET_FAILED", message) if status is Status.ERROR else None,
        next_step_hint=draw(TEXTS),
        metadata=draw(SACP_METADATA) if status is Status.SUCCESS else {},
    )


REQUESTS = {
    "kdap": kdap_requests(),
    "delegation": delegation_requests(),
    "call_agent": call_agent_requests(),
    "contextcore": contextcore_requests(),
}
REPLIES = {
    "kdap": kdap_replies(),
    "delegation": delegation_replies(),
    "call_agent": call_agent_replies(),
    "contextcore": contextcore_replies(),
    "sacp": sacp_replies(),
}
