"""Emitting and querying insights with the calls of the protocol, on a real store."""

import subprocess
import sys

import pytest
import yaml
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Link as OtelLink

from comity.contextcore.insights import InsightEmitter, InsightQuerier
from comity.core.insight.given import range_ms
from comity.core.insight.insight import Audience, Mode, Support, Type
from comity.core.insight.views import QUERY_INSIGHTS
from comity.core.model.tokens import estimate
from comity.core.tracing.span import Span
from comity.engines.files.guidance import GuidanceResponder
from comity.engines.otlp.receive import SpanServer
from comity.engines.sqlite.spans.store import SpanStore
from comity.errors import CallerError

HOUR_NS = 3600 * 10**9


class Clock:
    """Time that moves when told."""

    def __init__(self):
        self.at_ns = 1_700_000_000 * 10**9

    def now_ns(self):
        return self.at_ns

    def pass_hours(self, hours):
        self.at_ns += int(hours * HOUR_NS)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(tmp_path):
    with SpanStore(tmp_path / "spans.db") as opened:
        yield opened


@pytest.fixture
def querier(store, clock):
    return InsightQuerier(store, clock=clock)


@pytest.fixture
def emitter(store, clock):
    return InsightEmitter(
        store, project_id="checkout-service", agent_id="claude-code", session_id="session-abc123", mode=Mode.DUAL, clock=clock
    )


def test_the_seeds_example_runs_from_emitting_to_reading_evidence_back(emitter, querier):
    emitter.emit_decision(
        summary="Selected event-driven architecture for payment processing",
        confidence=0.92,
        audience="both",
        rationale="Lower coupling, better scaling, aligns with ADR-015",
        evidence=[
            {"type": "adr", "ref": "ADR-015-event-driven"},
            {"type": "trace", "ref": "trace-xyz", "description": "Current sync latency 200ms"},
        ],
    )
    (decision,) = querier.query(
        project_id="checkout-service", insight_type="decision", min_confidence=0.8, time_range="24h", limit=10
    )
    assert decision.summary == "Selected event-driven architecture for payment processing"
    assert [(item.type, item.ref, item.description) for item in decision.evidence] == [
        ("adr", "ADR-015-event-driven", ""),
        ("trace", "trace-xyz", "Current sync latency 200ms"),
    ]


@pytest.mark.parametrize("mode", Mode)
def test_what_is_emitted_is_what_is_read_in_every_mode(store, clock, mode):
    emitter = InsightEmitter(store, project_id="p", agent_id="a", session_id="s", provider="anthropic", mode=mode, clock=clock)
    given = emitter.emit(
        "lesson",
        summary="x",
        confidence=1,
        audience="agent",
        rationale="r",
        links=[Support(trace_id="a" * 32, span_id="b" * 16)],
        supersedes="insight-old",
        expires_at="2033-01-01T00:00:00Z",
        applies_to=["src/a", "src/b"],
        category="testing",
    )
    found = InsightQuerier(store, clock=clock).query(agent_id="a", session_id="s", applies_to="src/b", category="testing")
    assert found == [given]


def test_the_protocols_own_queries_find_an_emitted_insight(store, emitter):
    emitter.emit_blocker(summary="no access", audience="agent")
    for text in (
        '{ insight.type = "blocker" && insight.audience =~ "agent|both" }',
        '{ agent.id = "claude-code" && project.id = "checkout-service" }',
        '{ span.gen_ai.agent.id = "claude-code" && span.project.id = "checkout-service" }',
        '{ span.gen_ai.conversation.id = "session-abc123" && span.insight.type = "blocker" }',
    ):
        assert len(store.search(text).traces) == 1, text


@pytest.mark.parametrize("kind", [kind for kind in Type if kind is not Type.OTHER])
def test_every_type_has_a_call_of_its_own(emitter, querier, kind):
    extra = {"category": "c"} if kind is Type.LESSON else {}
    given = getattr(emitter, f"emit_{kind}")(summary="s", confidence=0.5, **extra)
    assert given.type is kind
    assert querier.query(insight_type=kind) == [given]


def test_an_insight_can_be_part_of_a_trace_that_exists(store, emitter):
    given = emitter.emit_progress(summary="half done", trace_id="c" * 32, parent_id="d" * 16)
    (span,) = store.trace("c" * 32)
    assert (span.parent_id, span.attributes["insight.id"]) == ("d" * 16, given.id)


def test_a_blocker_is_gone_once_another_agents_insight_supersedes_it(store, emitter, querier, clock):
    first, second = emitter.emit_blocker(summary="no access"), emitter.emit_blocker(summary="no budget")
    assert {one.id for one in querier.get_blockers("checkout-service")} == {first.id, second.id}
    clock.pass_hours(100)
    other = InsightEmitter(store, project_id="checkout-service", agent_id="o11y", clock=clock)
    other.emit_progress(summary="access granted", supersedes=first.id)
    assert [one.id for one in querier.get_blockers("checkout-service")] == [second.id]
    assert len(querier.query(insight_type="blocker", time_range=None, is_current=False)) == 2


def test_an_expired_insight_is_hidden(emitter, querier, clock):
    emitter.emit_risk(summary="r", confidence=0.5, expires_at=clock.now_ns() // 10**6 + 1000)
    assert len(querier.query(insight_type="risk")) == 1
    clock.at_ns += 1000 * 10**6
    assert querier.query(insight_type="risk") == []
    assert len(querier.query(insight_type="risk", is_current=False)) == 1


def test_the_time_range_the_limit_and_the_order_are_kept(emitter, querier, clock):
    given = []
    for _ in range(5):
        given.append(emitter.emit_discovery(summary="d", confidence=0.5))
        clock.pass_hours(1)
    assert querier.query(time_range="3h") == [given[4], given[3], given[2]]
    assert querier.query(time_range=None, limit=2) == [given[4], given[3]]
    assert len(querier.query(time_range=None, limit=0)) == 5


def test_what_is_for_both_is_found_for_agents_and_for_humans(emitter, querier):
    for one in Audience:
        emitter.emit_discovery(summary=one, confidence=0.5, audience=one)
    assert {one.audience for one in querier.query(audience="agent")} == {Audience.AGENT, Audience.BOTH}
    assert {one.audience for one in querier.query(audience="human")} == {Audience.HUMAN, Audience.BOTH}


def test_recent_decisions_and_lessons_use_their_own_windows(emitter, querier, clock):
    emitter.emit_decision(summary="weak", confidence=0.7)
    strong = emitter.emit_decision(summary="strong", confidence=0.8)
    lesson = emitter.emit_lesson(summary="test first", category="testing")
    clock.pass_hours(6 * 24)
    assert querier.get_recent_decisions("checkout-service") == [strong]
    clock.pass_hours(10 * 24)
    assert querier.get_recent_decisions("checkout-service") == []
    assert querier.get_lessons("checkout-service", category="testing") == [lesson]
    assert querier.get_lessons("checkout-service", category="other") == []


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"insight_type": "rumour"}, "insight_type"),
        ({"audience": "cats"}, "audience"),
        ({"confidence": 2}, "confidence"),
        ({"summary": ""}, "summary"),
        ({"evidence": [{"type": "x"}]}, "evidence"),
        ({"evidence": [{"type": "x", "ref": "y", "colour": "z"}]}, "evidence"),
        ({"expires_at": "soon"}, "expires_at"),
    ],
)
def test_a_wrong_field_is_refused_by_name_and_nothing_is_stored(emitter, store, fields, name):
    good = {"insight_type": "risk", "summary": "s", "confidence": 0.5}
    with pytest.raises(CallerError) as caught:
        emitter.emit(**good | fields)
    assert caught.value.facts["field"] == name
    assert store.count() == 0


@pytest.mark.parametrize(("text", "expected"), [("2h", 7_200_000), ("7d", 604_800_000), ("90m", 5_400_000)])
def test_a_time_range_is_a_duration(text, expected):
    assert range_ms(text) == expected


@pytest.mark.parametrize("text", ["", "soon", "-1h", "0s", "5"])
def test_what_is_no_time_range_is_refused(querier, text):
    with pytest.raises(CallerError, match="time range"):
        querier.query(time_range=text)


def test_the_mode_comes_from_the_environment(store, monkeypatch):
    monkeypatch.setenv("CONTEXTCORE_EMIT_MODE", "otel")
    assert InsightEmitter(store, project_id="p", agent_id="a").mode is Mode.OTEL


def test_a_query_as_text_keeps_the_protocols_budget(emitter, querier):
    for number in range(60):
        emitter.emit_decision(summary=f"finding {number} " * 8, confidence=0.5)
    text = querier.query_text(project_id="checkout-service", insight_type="decision")
    assert QUERY_INSIGHTS.tokens_max * 0.9 < estimate(text) <= QUERY_INSIGHTS.tokens_max
    assert yaml.safe_load(text)["total"] == 60
    assert estimate(querier.query_text(tokens_max=100)) <= 100


def test_an_insight_says_which_tenant_it_is_of_unless_it_is_the_default_one(store):
    for tenant_id in ("default", "t1"):
        InsightEmitter(store, project_id="p", agent_id="a", tenant_id=tenant_id).emit("risk", summary="x", confidence=1)
    assert {span.attributes.get("comity.tenant.id") for span in store.find("{ }")} == {"t1", None}


# --- where they go besides the store ---


@pytest.fixture
def collector(tmp_path, monkeypatch):
    """Another store behind an OTLP listener, which the environment names as the collector."""
    with SpanStore(tmp_path / "collector.db") as there, SpanServer(there, port=0) as server:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.endpoint)
        yield there


@pytest.mark.parametrize("protocol", ["http/protobuf", "http/json"])
def test_an_insight_goes_to_the_collector_that_the_environment_names(store, collector, monkeypatch, protocol):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
    monkeypatch.setenv("COMITY_OTEL_MODE", "otel")
    with InsightEmitter(store, project_id="p", agent_id="claude-code") as emitter:
        given = emitter.emit_decision(summary="s", confidence=0.9)
    assert emitter.export.exported >= 1
    (found,) = InsightQuerier(collector).query(project_id="p")
    assert (found.id, found.trace_id) == (given.id, given.trace_id)
    (span,) = collector.trace(given.trace_id)
    assert span.resource["service.name"] == "shop"
    assert "agent.id" not in span.attributes
    assert store.trace(given.trace_id) == [span]


def test_an_answer_to_a_question_goes_to_the_collector_too(store, collector, tmp_path):
    document = {
        "spec": {"agentGuidance": {"questions": [{"id": "q", "question": "Why?", "priority": "high", "status": "open"}]}}
    }
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(document))
    responder = GuidanceResponder(store, project_id="p", agent_id="a", folder=tmp_path, provider="anthropic")
    given = responder.answer_question("q", answer="Because", confidence=0.9)
    assert responder.flush()
    (span,) = collector.trace(given.trace_id)
    assert span.attributes["gen_ai.provider.name"] == "anthropic"


@pytest.mark.parametrize("variables", [{"OTEL_TRACES_EXPORTER": "none"}, {"OTEL_SDK_DISABLED": "true"}])
def test_an_insight_that_is_not_to_be_sent_is_stored_all_the_same(store, collector, monkeypatch, variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    emitter = InsightEmitter(store, project_id="p", agent_id="a")
    given = emitter.emit_risk(summary="s", confidence=0.9)
    assert emitter.flush()
    assert (len(store.trace(given.trace_id)), collector.trace(given.trace_id)) == (1, [])


def test_a_program_that_ends_has_sent_its_insights(collector, tmp_path):
    program = """
from comity.contextcore.insights import InsightEmitter
InsightEmitter(project_id="checkout-service", agent_id="claude-code").emit_decision(summary="s", confidence=.9)
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path)
    (found,) = InsightQuerier(collector).query(project_id="checkout-service")
    assert found.summary == "s"


@pytest.mark.parametrize(
    "ids",
    [
        {"links": [{"trace_id": "trace-xyz", "span_id": "1"}]},
        {"links": [Support(trace_id="trace-xyz", span_id="1")]},
        {"links": ["trace-xyz"]},
        {"trace_id": "trace-xyz"},
        {"trace_id": "1" * 32, "parent_id": "span-1"},
    ],
)
def test_an_id_that_is_none_is_refused_and_nothing_is_stored(store, emitter, querier, ids):
    with pytest.raises(CallerError, match="hex digits"):
        emitter.emit_risk(summary="s", confidence=0.5, **ids)
    assert querier.query(time_range=None) == []


def test_an_insight_stands_under_the_current_opentelemetry_span_and_links_to_others(store, emitter):
    tracer = TracerProvider().get_tracer("test")
    with tracer.start_as_current_span("earlier") as earlier:
        pass
    with tracer.start_as_current_span("work") as span:
        given = emitter.emit_risk(summary="s", confidence=0.5, links=[earlier.get_span_context(), OtelLink(earlier.context)])
    (stored,) = store.trace(f"{span.context.trace_id:032x}")
    assert (stored.attributes["insight.id"], stored.parent_id) == (given.id, f"{span.context.span_id:016x}")
    assert [link.span_id for link in stored.links] == [f"{earlier.context.span_id:016x}"] * 2


def test_foreign_insights_are_found_and_those_that_cannot_be_read_are_counted(store, querier, clock):
    def foreign(number, **attributes):
        given = {"insight.type": "risk", "insight.summary": "s", "insight.confidence": 0.5, "project.id": "p", **attributes}
        given = {name.replace("__", "."): value for name, value in given.items()}
        at_ns = clock.now_ns()
        return Span(trace_id="1" * 32, span_id=f"{number:016x}", attributes=given, start_ns=at_ns, end_ns=at_ns)

    store.ingest([foreign(1, insight__type="hypothesis"), foreign(2), foreign(3, insight__confidence="high")])
    found = querier.query(project_id="p")
    assert {(one.type_name, one.agent_id) for one in found} == {("hypothesis", "unknown"), ("risk", "unknown")}
    assert len(querier.problems) == 1
    assert "insight.confidence" in querier.problems[0]
    assert [one.type_name for one in querier.query(project_id="p", insight_type="other")] == ["hypothesis"]
