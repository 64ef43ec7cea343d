"""KDAP's handoff context and intent classification."""

from __future__ import annotations

from pathlib import Path

import pytest
from dialect_vectors import document_of, text_of
from hypothesis import given
from hypothesis import strategies as st

from comity.core.envelope.envelope import Background
from comity.core.orchestration.intent import Classification, Route
from comity.dialects import convert
from comity.dialects.kdap_routing import (
    HandoffContext,
    decode_handoff_context,
    decode_intent,
    encode_handoff_context,
    encode_intent,
)
from comity.errors import CallerError

texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=4)
objects = st.dictionaries(texts, st.integers(-9, 9) | texts, max_size=2)
lists = st.lists(texts, max_size=2)


def test_the_handoff_context_of_the_seed_is_background():
    context = decode_handoff_context(text_of("kdap", "handoff_market_entry.txt"))
    assert context.session_id == "sess-789"
    assert context.background == Background(
        original_request="Help me build a business case for market entry",
        workflow_position="Step 3 of 5 (Financial Analysis)",
        prior_agents=("ORC", "CST"),
        prior_outputs={"cst_framework": "market_entry_assessment", "cst_scenarios": ["conservative", "base", "aggressive"]},
        constraints={"budget_range": [1000000, 5000000], "timeline": "18_months", "risk_tolerance": "moderate"},
    )


def test_the_intent_of_the_seed_names_routes():
    assert decode_intent(text_of("kdap", "intent_projection.txt")) == Classification(
        primary="financial_projection",
        confidence=0.85,
        route=Route("ANL", "ANL_PROJECTION"),
        secondary=("document_generation",),
        secondary_routes=(Route("DOC", "DOC_GENERATE"),),
    )


@pytest.mark.parametrize(
    ("decode", "name", "missing"),
    [(decode_handoff_context, "handoff_market_entry", "session_id"), (decode_intent, "intent_projection", "primary_intent")],
)
def test_a_missing_and_an_unknown_field_are_named(decode, name, missing):
    document = document_of("kdap", name)
    del document[missing]
    with pytest.raises(CallerError) as caught:
        decode(document | {"mood": "good"})
    assert {problem.path for problem in caught.value.facts["problems"]} == {missing, "mood"}


def test_a_handoff_context_is_bounded_in_size():
    with pytest.raises(CallerError, match="context"):
        decode_handoff_context({"session_id": "s", "original_request": "x" * 1024 * 1024})


def test_an_intent_is_not_surer_than_certain():
    with pytest.raises(CallerError, match="intent_confidence"):
        decode_intent(document_of("kdap", "intent_projection") | {"intent_confidence": 85})


@given(
    st.fixed_dictionaries(
        {"session_id": texts.filter(bool), "original_request": texts},
        optional={"workflow_position": texts, "prior_agents": lists, "prior_outputs": objects, "constraints": objects},
    )
)
def test_a_handoff_context_is_written_as_it_was_read(document):
    context = decode_handoff_context(document)
    assert encode_handoff_context(context) == document


@given(
    st.fixed_dictionaries(
        {"primary_intent": texts, "intent_confidence": st.floats(0, 1), "target_agent": texts, "target_capability": texts},
        optional={"secondary_intents": lists},
    ),
    st.none() | st.fixed_dictionaries({"agent": texts, "capability": texts}),
)
def test_an_intent_is_written_as_it_was_read(document, target):
    if target is not None:
        document = document | {"secondary_targets": [target] * len(document.get("secondary_intents", ()))}
    assert encode_intent(decode_intent(document)) == document


@given(texts.filter(bool), st.builds(Background, original_request=texts, prior_agents=lists.map(tuple), constraints=objects))
def test_background_comes_back_from_a_handoff_context(session_id, background):
    context = HandoffContext(session_id, background)
    assert decode_handoff_context(encode_handoff_context(context)) == context


@pytest.mark.parametrize(
    ("name", "kind"), [("handoff_market_entry.txt", "handoff_context"), ("intent_projection.txt", "intent_classification")]
)
def test_an_orchestrators_document_is_converted_to_its_json_form_and_read_again(name, kind):
    text = (Path(__file__).parent / "vectors" / "kdap" / name).read_text()
    outcome = convert(text, "kdap", "kdap")
    assert outcome.kind == kind
    assert convert(outcome.document, "kdap", "kdap").document == outcome.document
    with pytest.raises(CallerError, match="no words"):
        convert(text, "kdap", "sacp")


@pytest.mark.parametrize(
    "targets", [[{"agent": "DOC", "capability": "DOC_GENERATE"}] * 2, [{"agent": "DOC", "capability": "X"}] * 3]
)
def test_a_secondary_intent_has_one_target(targets):
    with pytest.raises(CallerError) as caught:
        decode_intent(document_of("kdap", "intent_projection") | {"secondary_targets": targets})
    assert [problem.path for problem in caught.value.facts["problems"]] == ["secondary_targets"]
