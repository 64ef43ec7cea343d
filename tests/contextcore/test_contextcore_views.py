"""One set of insights for five audiences, as the project's document says they like it."""

import random

import pytest
import yaml
from tempo_fake import FakeTempo

from comity.contextcore.insights import InsightEmitter
from comity.contextcore.views import PersonalizedQuerier, facts_of
from comity.core.insight.insight import Insight, Mode, Type, to_span
from comity.core.insight.views import READ_FULL_CONTEXT
from comity.core.model.tokens import estimate
from comity.engines.files.guidance import GuidanceFile, GuidanceReader, GuidanceResponder
from comity.engines.sqlite.spans.store import SpanStore
from comity.errors import CallerError

PROJECT = "checkout-service"
DOCUMENT = """
spec:
  business: {criticality: critical, value: revenue, owners: [ann]}
  sloCompliance: 0.98
  agentGuidance:
    constraints: [{id: api, rule: Leave the API alone, scope: "src/api/**"}]
  personalization:
    executive:
      dashboardId: exec-checkout-overview
      summaryFields: [criticality, value, sloCompliance]
      alertThreshold: critical_only
    manager: {dashboardId: pm-checkout-sprint, reportingCadence: weekly}
    developer: {dashboardId: dev-checkout-detailed, preferredFormat: detailed}
    agent: {preferredQueryBackend: tempo, maxContextTokens: 2000}
"""


class Clock:
    hours = 480_000

    def now_ns(self):
        return self.hours * 3600 * 10**9


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(tmp_path):
    with SpanStore(tmp_path / "spans.db") as opened:
        yield opened


@pytest.fixture
def emitter(store, clock):
    return InsightEmitter(store, project_id=PROJECT, agent_id="claude-code", clock=clock, mode=Mode.DUAL)


@pytest.fixture
def querier(store, clock, tmp_path):
    (tmp_path / f"{PROJECT}.yaml").write_text(DOCUMENT)
    return PersonalizedQuerier(store, project_id=PROJECT, folder=tmp_path, clock=clock)


def test_the_seeds_three_views_and_the_other_two(querier, emitter, clock):
    emitter.emit_decision(summary="Use events", confidence=0.9, evidence=[{"type": "adr", "ref": "ADR-015"}])
    blocker = emitter.emit_blocker(summary="No access")
    clock.hours += 200
    emitter.emit_risk(summary="It may fill", confidence=0.5, evidence=[{"type": "trace", "ref": "t-1"}])
    executive = querier.get_insights(audience="executive", time_range="7d")
    assert executive["summary"] == {"criticality": "critical", "value": "revenue", "sloCompliance": 0.98}
    assert (executive["total"], executive["unresolved_blockers"], executive["dashboard_id"]) == (1, 1, "exec-checkout-overview")
    assert [one["type"] for one in executive["alerts"]] == ["blocker"]
    developer = querier.get_insights(audience="developer", time_range="24h")
    assert [one["summary"] for one in developer["insights"]] == ["It may fill", "No access"]
    assert developer["insights"][0]["evidence"] == [{"type": "trace", "ref": "t-1"}]
    agent = querier.get_insights(audience="agent", time_range="2h")
    assert (agent["insights"][0]["id"], agent["query_backend"]) == (blocker.id, "tempo")
    assert querier.get_insights(audience="manager", time_range="7d")["cadence"] == "weekly"
    assert [one["ref"] for one in querier.get_insights(audience="operator")["signals"]] == ["t-1"]
    with pytest.raises(CallerError, match="audience"):
        querier.get_insights(audience="cats")


def crowd(store, clock, count, blockers):
    chance = random.Random(3)
    now_ms = clock.now_ns() // 10**6
    store.ingest(
        to_span(
            Insight(
                id=f"i{number}",
                type=Type.BLOCKER if number < blockers else chance.choice([Type.DECISION, Type.RISK, Type.LESSON]),
                summary=f"finding {number} " * 6,
                rationale="because " * 20,
                confidence=0.5,
                project_id=PROJECT,
                agent_id="a",
                created_at=now_ms - number,
                trace_id=f"{number:032x}",
                span_id=f"{number + 1:016x}",
            ),
            mode=Mode.DUAL,
        )
        for number in range(1, count + 1)
    )


def test_the_agent_view_of_500_stored_insights_keeps_its_cap_and_every_unresolved_blocker(querier, store, clock):
    crowd(store, clock, 500, blockers=13)
    text = querier.get_agent_text()
    assert estimate(text) <= 2000
    found = yaml.safe_load(text)
    assert {f"i{number}" for number in range(1, 13)} <= {one["id"] for one in found["insights"]}
    assert (found["total"], found["omitted"]["blockers"]) == (500, 0)
    assert found == querier.get_insights(audience="agent")


def test_guidance_and_insights_together_keep_the_budget_of_the_full_context(querier, store, clock):
    crowd(store, clock, 500, blockers=3)
    text = querier.get_context()
    assert READ_FULL_CONTEXT.tokens_max * 0.9 < estimate(text) <= READ_FULL_CONTEXT.tokens_max
    assert "Leave the API alone" in text
    assert "blockers: 0" in text


def test_a_document_from_elsewhere_and_facts_of_ones_own_are_taken(store, clock, tmp_path):
    (tmp_path / "other.yaml").write_text("spec: {personalization: {executive: {summaryFields: [value, slo]}, cats: {}}}")
    querier = PersonalizedQuerier(
        store, project_id=PROJECT, source=GuidanceFile(tmp_path / "other.yaml"), facts={"slo": 1}, clock=clock
    )
    assert querier.get_insights(audience="executive")["summary"] == {"value": None, "slo": 1}
    assert [one.path for one in querier.problems] == ["spec.personalization.cats"]


@pytest.mark.parametrize("document", [{}, {"spec": None}, {"spec": [1]}, {"spec": {"agentGuidance": {"focus": "x"}}}])
def test_a_document_without_facts_has_none(document):
    assert facts_of(document) == {}


def test_the_seeds_own_calls_need_no_store(tmp_path, monkeypatch):
    """Every call of the protocol's guidance and personalization examples, as it is written there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COMITY_STORE", raising=False)
    question = "questions: [{id: q-latency-cause, question: 'Why?', priority: critical}]"
    (tmp_path / ".comity").mkdir()
    (tmp_path / ".comity" / f"{PROJECT}.yaml").write_text(DOCUMENT.replace("constraints:", f"{question}\n    constraints:"))
    reader = GuidanceReader(project_id=PROJECT)
    assert [one.severity for one in reader.get_constraints_for_path("src/api/checkout.py")] == ["blocking"]
    assert [q.question for q in reader.get_open_questions() if q.priority == "critical"] == ["Why?"]
    responder = GuidanceResponder(project_id=PROJECT, agent_id="claude-code")
    responder.answer_question(
        question_id="q-latency-cause",
        answer="Root cause is N+1 database query in payment verification",
        confidence=0.95,
        evidence=[{"type": "trace", "ref": "trace-abc123"}],
    )
    querier = PersonalizedQuerier(project_id=PROJECT)
    assert querier.get_insights(audience="executive", time_range="7d")["total"] == 1
    (found,) = querier.get_insights(audience="developer", time_range="24h")["insights"]
    assert found["evidence"] == [{"type": "trace", "ref": "trace-abc123"}]
    assert len(querier.get_insights(audience="agent", time_range="2h")["insights"]) == 1
    assert (tmp_path / "comity.db.spans").is_file()


# --- where an agent likes to look ---


def test_the_agents_view_is_asked_of_the_backend_that_the_document_prefers(store, emitter, clock, tmp_path, monkeypatch):
    (tmp_path / f"{PROJECT}.yaml").write_text("spec: {personalization: {agent: {preferredQueryBackend: tempo}}}")
    with SpanStore(tmp_path / "there.db") as there:
        elsewhere = InsightEmitter(there, project_id=PROJECT, agent_id="o11y", clock=clock)
        elsewhere.emit_risk(summary="Only in Tempo", confidence=0.5)
        emitter.emit_risk(summary="Only here", confidence=0.5)
        with FakeTempo(there.find("{}")) as fake:
            monkeypatch.setenv("COMITY_TEMPO_URL", fake.url)
            querier = PersonalizedQuerier(store, project_id=PROJECT, folder=tmp_path, clock=clock)
            assert "Only in Tempo" in querier.get_agent_text()
            assert "Only in Tempo" in querier.get_context()
            (shown,) = querier.get_insights(audience="developer")["insights"]
            assert shown["summary"] == "Only here"
            assert querier.note == ""


def test_a_backend_that_nobody_gave_an_address_for_is_said_to_be_missing(store, emitter, clock, tmp_path, monkeypatch):
    monkeypatch.delenv("COMITY_TEMPO_URL", raising=False)
    (tmp_path / f"{PROJECT}.yaml").write_text("spec: {personalization: {agent: {preferredQueryBackend: tempo}}}")
    emitter.emit_risk(summary="Only here", confidence=0.5)
    querier = PersonalizedQuerier(store, project_id=PROJECT, folder=tmp_path, clock=clock)
    assert "Only here" in querier.get_agent_text()
    assert "COMITY_TEMPO_URL" in querier.note
