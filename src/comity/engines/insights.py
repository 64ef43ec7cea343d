"""Emitting and querying insights on a span store, with the calls of the ContextCore protocol.

    emitter = InsightEmitter(store, project_id="checkout-service", agent_id="claude-code", session_id="session-abc123")
    emitter.emit_decision(summary="…", confidence=0.92, audience="both", evidence=[{"type": "adr", "ref": "ADR-015"}])
    for decision in InsightQuerier(store).query(project_id="checkout-service", insight_type="decision", time_range="24h"):
        print(decision.summary)

An insight is stored when `emit` returns, and goes to the collector that the environment names, as a node's spans do. Nothing is
cached between queries, so what was emitted is found at once. Without a store the spans of the default one are used, which is
`COMITY_STORE` or `./comity.db`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self, Unpack

from comity.core.insight import insight as insights
from comity.core.insight.given import Asked, EvidenceGiven, LinkGiven, Search, composed
from comity.core.insight.insight import Audience, Insight, Type
from comity.core.insight.views import QUERY_INSIGHTS, Settings, agent_text
from comity.core.model.tokens import estimate
from comity.core.tracing.links import read_span_id, read_trace_id
from comity.core.tracing.naming import Mode
from comity.core.tracing.span import Attributes
from comity.core.tracing.telemetry import PROVIDER, ExportStats, settings_from
from comity.core.tracing.telemetry import Settings as Telemetry
from comity.engines.clock import SystemClock, SystemIds
from comity.engines.otlp.shared import FLUSH_S, exporter_for
from comity.engines.sqlite.spans.path import default_spans
from comity.engines.tempo import TempoStore
from comity.ports import Clock, Ids, SpanSink, SpanSource, ambient
from comity.version import VERSION

_MS_NS = 10**6


class InsightEmitter:
    """Writes the insights of one agent in one project."""

    def __init__(
        self,
        store: SpanSink | None = None,
        *,
        project_id: str,
        agent_id: str,
        session_id: str = "",
        provider: str = "",
        mode: Mode | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
        resource: Attributes | None = None,
        tenant_id: str = "default",
        more: Attributes | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        """Emit for an agent. `more` are further attributes of every insight's span.

        `telemetry` says what a node's says: where else spans go, under which names. Without it the environment does.
        """
        self.store = default_spans() if store is None else store
        settings = settings_from(os.environ, version=VERSION) if telemetry is None else telemetry
        self._exporter = exporter_for(settings)
        self.project_id = project_id
        self.agent_id = agent_id
        self.session_id = session_id
        self.provider = provider
        self.mode = settings.origin.mode if mode is None else mode
        self._clock = clock or SystemClock()
        self._ids = ids or SystemIds()
        self._resource = _resource(settings, agent_id, project_id) if resource is None else resource
        self._more = {} if tenant_id == "default" else {"comity.tenant.id": tenant_id}
        self._more |= more or {}

    def emit(
        self,
        insight_type: Type | str,
        *,
        summary: str,
        confidence: float,
        audience: Audience | str = Audience.BOTH,
        rationale: str = "",
        evidence: EvidenceGiven = (),
        links: Iterable[LinkGiven] = (),
        supersedes: str = "",
        expires_at: int | str | None = None,
        applies_to: Iterable[str] = (),
        category: str = "",
        trace_id: str = "",
        parent_id: str | None = None,
    ) -> Insight:
        """Store an insight and return it. It stands under the current span, or under the one whose ids are given.

        A link is an OpenTelemetry `SpanContext` or `Link`, a `Support`, or a mapping with `trace_id` and `span_id`.
        """
        if trace_id:
            trace_id = read_trace_id(trace_id)
        elif (here := ambient.current()) is not None:
            trace_id, parent_id = here.trace_id, parent_id or here.span_id
        parent_id = read_span_id(parent_id, "parent_id") if parent_id else None
        given = composed(
            insight_type,
            ids={
                "id": f"insight-{self._ids.span_id()[:12]}",
                "trace_id": trace_id or self._ids.trace_id(),
                "span_id": self._ids.span_id(),
            },
            created_at=self._clock.now_ns() // _MS_NS,
            audience=audience,
            evidence=evidence,
            links=links,
            expires_at=expires_at,
            applies_to=applies_to,
            summary=summary,
            confidence=confidence,
            project_id=self.project_id,
            agent_id=self.agent_id,
            session_id=self.session_id,
            provider=self.provider,
            rationale=rationale,
            supersedes=supersedes,
            category=category,
        )
        span = insights.to_span(given, mode=self.mode, parent_id=parent_id, resource=self._resource, more=self._more)
        self.store.ingest([span])
        if self._exporter is not None:
            self._exporter.offer([span])
        return given

    @property
    def export(self) -> ExportStats:
        """How sending to the collector goes; shared by all emitters of this process that send to the same one."""
        return ExportStats() if self._exporter is None else self._exporter.stats

    def flush(self, timeout_s: float = FLUSH_S) -> bool:
        """Wait until the collector has everything emitted so far; return whether it has. A program that ends waits too."""
        return self._exporter is None or self._exporter.flush(timeout_s)

    def close(self) -> None:
        """Wait until the collector has everything, or its time is over. The store belongs to its opener."""
        self.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def emit_decision(self, *, summary: str, confidence: float, **fields: Any) -> Insight:
        """Say what was decided."""
        return self.emit(Type.DECISION, summary=summary, confidence=confidence, **fields)

    def emit_recommendation(self, *, summary: str, confidence: float, **fields: Any) -> Insight:
        """Say what should be done."""
        return self.emit(Type.RECOMMENDATION, summary=summary, confidence=confidence, **fields)

    def emit_blocker(self, *, summary: str, confidence: float = 1.0, **fields: Any) -> Insight:
        """Say what stops the work, until an insight supersedes this one."""
        return self.emit(Type.BLOCKER, summary=summary, confidence=confidence, **fields)

    def emit_discovery(self, *, summary: str, confidence: float, **fields: Any) -> Insight:
        """Say what was found."""
        return self.emit(Type.DISCOVERY, summary=summary, confidence=confidence, **fields)

    def emit_analysis(self, *, summary: str, confidence: float, **fields: Any) -> Insight:
        """Say what it means."""
        return self.emit(Type.ANALYSIS, summary=summary, confidence=confidence, **fields)

    def emit_question(self, *, summary: str, confidence: float = 1.0, **fields: Any) -> Insight:
        """Say what is not known."""
        return self.emit(Type.QUESTION, summary=summary, confidence=confidence, **fields)

    def emit_risk(self, *, summary: str, confidence: float, **fields: Any) -> Insight:
        """Say what may go wrong."""
        return self.emit(Type.RISK, summary=summary, confidence=confidence, **fields)

    def emit_progress(self, *, summary: str, confidence: float = 1.0, **fields: Any) -> Insight:
        """Say how far the work is."""
        return self.emit(Type.PROGRESS, summary=summary, confidence=confidence, **fields)

    def emit_lesson(self, *, summary: str, category: str, confidence: float = 0.9, **fields: Any) -> Insight:
        """Say what to do differently next time."""
        return self.emit(Type.LESSON, summary=summary, category=category, confidence=confidence, **fields)


class InsightQuerier:
    """Reads insights of every emitter and every mode. What was superseded or has expired is left out."""

    def __init__(self, store: SpanSource | None = None, *, tempo_url: str | None = None, clock: Clock | None = None) -> None:
        """Ask a store, or a Tempo by its address, or the spans beside the default store."""
        self.store: SpanSource
        if store is not None:
            self.store = store
        elif tempo_url is not None:
            self.store = TempoStore(tempo_url)
        else:
            self.store = default_spans()
        self._clock = clock or SystemClock()
        self.problems: tuple[str, ...] = ()

    def query(self, **asked: Unpack[Asked]) -> list[Insight]:
        """Return insights, newest first, of the last 24 hours unless `time_range` says otherwise; see `Asked`.

        Spans that claim to be insights and cannot be read are left out; `problems` says then what is wrong with each.
        """
        store = self.store
        search = Search(
            lambda query, start_ns, limit: store.find(query, start_ns=start_ns, limit=limit),
            self._now_ms(),
            is_far=store.is_far,
        )
        found = search.run(**asked)
        self.problems = search.problems
        return found

    def query_text(
        self,
        *,
        tokens_max: int = QUERY_INSIGHTS.tokens_max or 0,
        count_tokens: Callable[[str], int] = estimate,
        **asked: Unpack[Asked],
    ) -> str:
        """Return what a query finds for agents as YAML, within the protocol's token budget; `asked` is as for `query`."""
        now_ms, asked["limit"] = self._now_ms(), 0
        return agent_text(
            self.query(**asked),
            settings=Settings(max_context_tokens=tokens_max),
            now_ms=now_ms,
            window_ms=now_ms,
            count_tokens=count_tokens,
        )

    def get_blockers(self, project_id: str) -> list[Insight]:
        """Return what still blocks the project, however old."""
        return self.query(project_id=project_id, insight_type=Type.BLOCKER, time_range=None, limit=0)

    def get_recent_decisions(self, project_id: str, *, time_range: str = "7d", min_confidence: float = 0.8) -> list[Insight]:
        """Return the decisions of the last time one can rely on."""
        return self.query(
            project_id=project_id, insight_type=Type.DECISION, time_range=time_range, min_confidence=min_confidence
        )

    def get_lessons(self, project_id: str, *, time_range: str = "30d", category: str | None = None) -> list[Insight]:
        """Return what was learned."""
        return self.query(project_id=project_id, insight_type=Type.LESSON, time_range=time_range, category=category)

    def _now_ms(self) -> int:
        return self._clock.now_ns() // _MS_NS


def _resource(settings: Telemetry, agent_id: str, project_id: str) -> Attributes:
    """Return who sends: what the environment says, else the agent."""
    resource = dict(settings.origin.resource)
    if resource.get("service.name") == PROVIDER:  # the environment does not name the service
        resource["service.name"] = agent_id
    return resource | {"project.id": project_id}
