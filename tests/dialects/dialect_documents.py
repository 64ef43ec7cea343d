"""Generated documents of every dialect, with and without what may be left out."""

from __future__ import annotations

from dialect_strategies import (
    ANY_SAID,
    ANY_TEXT,
    CODED,
    CONFIDENCES,
    DURATIONS,
    JSON,
    OBJECTS,
    SAID,
    TEXTS,
    TIMEOUTS,
    WORDS,
)
from hypothesis import strategies as st

from comity.core.envelope.confidence import Band
from comity.core.model.reply import FALLBACK_THOUGHT
from comity.dialects import call_agent, contextcore, delegation, kdap
from comity.errors import CODES

TIME_TEXTS = st.sampled_from(
    [
        "2025-10-09T12:00:00.000Z",
        "2025-10-09T12:00:00Z",
        "2025-10-09 12:00+02:00",
        "1970-01-01T00:00:00.000Z",
        "2025-10-09T12:00:00.123456",
    ]
)
PERCENTS = st.integers(0, 100) | st.integers(0, 10_000).map(lambda hundredths: hundredths / 100)
# A context may hold anything under any name, our own names among them.
CONTEXTS = st.dictionaries(
    st.sampled_from(["facts", "hints", "references", "prior_outputs", "engagement_type", "form"]), JSON, max_size=2
)
LISTS = st.lists(TEXTS, max_size=2)
REFERENCE_DOCUMENTS = st.fixed_dictionaries({"owner_scope": TEXTS, "source_id": TEXTS})

REQUESTS = {
    "kdap": st.fixed_dictionaries(
        {
            "source_agent": WORDS | st.just("USER"),
            "target_agent": WORDS,
            "capability_code": WORDS.filter(lambda w: len(w) < 128),
            "request_id": WORDS,
            "inputs_json": OBJECTS,
        },
        optional={
            "priority": st.sampled_from([str(priority) for priority in kdap.Priority]),
            "timeout_ms": TIMEOUTS,
            "context": st.builds(
                lambda ids, rest: ids | rest,
                st.fixed_dictionaries({}, optional={"session_id": WORDS, "user_id": WORDS}),
                CONTEXTS,
            ),
            "correlation_id": st.just("") | WORDS,
        },
    ),
    "delegation": st.fixed_dictionaries(
        {
            "request_id": WORDS,
            "origin_employee": WORDS | st.just("user"),
            "target_employee": WORDS,
            "user_id": WORDS,
            "parent_session_id": st.just("") | WORDS,
            "objective": TEXTS,
            "input": TEXTS,
            "constraints": st.fixed_dictionaries(
                {},
                optional={
                    "max_tokens": st.sampled_from([0, 1200, 9]),
                    "max_depth": st.integers(1, 33),
                    "deadline_ms": TIMEOUTS,
                },
            ),
            "context_hints": LISTS,
            "handoff_data": st.fixed_dictionaries(
                {},
                optional={
                    "facts": LISTS,
                    "references": st.lists(REFERENCE_DOCUMENTS, max_size=1),
                    "intermediate_results": JSON | st.builds(lambda value: {"inputs": value}, JSON),
                },
            ),
        },
        optional={
            "child_session_id": st.none() | WORDS,
            "current_depth": st.integers(0, 3),
            "created_at": TIME_TEXTS,
            "version": st.just("1.0"),
        },
    ),
    "call_agent": st.fixed_dictionaries(
        {"agent_id": WORDS, "message": ANY_SAID},
        optional={"timeout_ms": st.sampled_from([0, 30_000, 300_000, 300_001, 2**60])},
    ),
    "contextcore": st.fixed_dictionaries(
        {"id": WORDS, "from_agent": WORDS | st.just("user"), "to_agent": WORDS, "capability_id": st.just("x"), "task": TEXTS},
        optional={
            "inputs": OBJECTS,
            "expected_output": st.fixed_dictionaries({}, optional={"type": TEXTS, "fields": LISTS}),
            "priority": st.sampled_from([str(priority) for priority in contextcore.Priority]),
            "timeout_ms": TIMEOUTS,
            "status": st.sampled_from([str(state) for state in contextcore.State]),
            "created_at": TIME_TEXTS,
            "result_trace_id": WORDS,
        },
    ),
}


def _kdap_reply(status):
    result = st.sampled_from([None, {}]) if status == "ERROR" else st.none() | OBJECTS
    required = {"request_id": TEXTS, "status": st.just(status), "result_json": result}
    optional = {"metadata": st.just({"processing_time_ms": 245}) | OBJECTS}
    levels = st.sampled_from([str(band) for band in Band])
    if status in {"SUCCESS", "PARTIAL"}:
        required["confidence_level"] = levels
    else:
        optional |= {"confidence_level": levels, "error_code": CODED | st.just("CALL_NEEDS_INPUT"), "error_message": SAID}
    if status == "ERROR":
        required["error_message"] = optional.pop("error_message")
    if status == "PARTIAL":
        required["warnings"] = st.lists(TEXTS, min_size=1, max_size=2)
    else:
        optional["warnings"] = LISTS
    return st.fixed_dictionaries(required, optional=optional)


def _delegation_reply(status):
    optional = {
        "artifacts": st.lists(
            st.fixed_dictionaries(
                {"type": st.sampled_from([str(kind) for kind in delegation.ArtifactType]), "value": JSON},
                optional={"label": TEXTS | st.just("data")},
            ),
            max_size=2,
        ),
        "new_facts": LISTS,
        "used_sources": st.lists(
            st.fixed_dictionaries({"owner_scope": TEXTS, "source_id": TEXTS}, optional={"relevance": CONFIDENCES}), max_size=1
        ),
        "duration_ms": DURATIONS,
        "child_session_id": st.just("") | WORDS,
        "confidence": PERCENTS,
        "requires_followup": st.booleans(),
        "error": st.just("") if status == "success" else TEXTS | st.just("CALL_NEEDS_INPUT: why?"),
    }
    counts = st.integers(0, 9)
    usage = st.fixed_dictionaries({"prompt": counts, "completion": counts, "total": counts})
    required = {
        "request_id": WORDS,
        "target_employee": WORDS,
        "summary": TEXTS,
        "result": TEXTS | st.just("why?"),
        "token_usage": usage,
    }
    return st.fixed_dictionaries(required | {"status": st.just(status)}, optional=optional)


def _contextcore_reply(state):
    required = {"id": TEXTS, "status": st.just(state)}
    optional = {"result": JSON, "result_trace_id": WORDS, "reason": TEXTS}
    if state in {"failed", "input_required"}:
        required["reason"] = optional.pop("reason").filter(bool)
    return st.fixed_dictionaries(required, optional=optional)


REPLIES = {
    "kdap": st.one_of(*(_kdap_reply(str(status)) for status in kdap.Status)),
    "delegation": st.one_of(*(_delegation_reply(str(status)) for status in delegation.Status)),
    "call_agent": st.fixed_dictionaries({"text": ANY_TEXT})
    | st.fixed_dictionaries(
        {"error": TEXTS | st.builds("{}: {}".format, st.sampled_from([*call_agent.ERROR_WORDS, *CODES]), ANY_TEXT)}
    ),
    "contextcore": st.one_of(
        *(_contextcore_reply(str(state)) for state, status in contextcore.STATUS_READ.items() if status is not None)
    ),
    "sacp": st.fixed_dictionaries(
        {
            "thought": TEXTS | st.just(FALLBACK_THOUGHT),
            "status": st.sampled_from(["success", "failure", "clarification_needed", "completed"]),
            "data": OBJECTS | st.just({"raw_output": "text"}),
            "message": TEXTS,
        },
        optional={"next_step_hint": TEXTS},
    ),
}
