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
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import msgspec

from comity.core.document.checks import UNREADABLE, take
from comity.core.insight import insight as insights
from comity.core.insight.insight import Audience, Evidence, Insight, Type
from comity.core.insight.views import QUERY_INSIGHTS, Settings, agent_text
from comity.core.model.tokens import estimate
from comity.core.tracing.links import read_link, read_span_id, read_trace_id
from comity.core.tracing.naming import Mode
from comity.core.tracing.query import Query
from comity.core.tracing.query.values import parse_duration
from comity.core.tracing.span import Attributes
from comity.core.tracing.telemetry import PROVIDER, ExportStats, settings_from
from comity.core.tracing.telemetry import Settings as Telemetry
from comity.engines.clock import SystemClock, SystemIds
from comity.engines.otlp.shared import FLUSH_S, exporter_for
from comity.engines.sqlite.spans.path import default_spans
from comity.engines.tempo import TempoStore
from comity.errors import CallerError
from comity.ports import Clock, Ids, SpanSink, SpanSource
from comity.runtime.tracing import ambient
from comity.version import VERSION

LIMIT_DEFAULT: Final = 100
TIME_RANGE_DEFAULT: Final = "24h"
_MS_NS = 10**6
_encode = msgspec.json.Encoder().encode

_Word = TypeVar("_Word", bound=StrEnum)
LinkGiven = Any  # an OpenTelemetry `SpanContext` or `Link`, a `Support`, a mapping of ids, or a traceparent
EvidenceGiven = Iterable[Evidence | Mapping[str, str]]


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
        fields = {
            "id": f"insight-{self._ids.span_id()[:12]}",
            "type": word(Type, insight_type, "insight_type"),
            "summary": summary,
            "confidence": confidence,
            "project_id": self.project_id,
            "agent_id": self.agent_id,
            "created_at": self._clock.now_ns() // _MS_NS,
            "audience": word(Audience, audience, "audience"),
            "session_id": self.session_id,
            "provider": self.provider,
            "rationale": rationale,
            "evidence": evidence_of(evidence),
            "links": [insights.support(read_link(one)) for one in listed(links, "links")],
            "supersedes": supersedes,
            "expires_at": _time(expires_at),
            "applies_to": listed(applies_to, "applies_to"),
            "category": category,
            "trace_id": trace_id or self._ids.trace_id(),
            "span_id": self._ids.span_id(),
        }
        given = _insight(fields)
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

    def query(
        self,
        *,
        project_id: str | None = None,
        insight_type: Type | str | Iterable[Type | str] | None = None,
        agent_id: str | None = None,
        session_id: str | None = None,
        audience: Audience | str | None = None,
        min_confidence: float | None = None,
        time_range: str | None = TIME_RANGE_DEFAULT,
        limit: int = LIMIT_DEFAULT,
        applies_to: str | None = None,
        category: str | None = None,
        is_current: bool = True,
    ) -> list[Insight]:
        """Return insights, newest first. `time_range` is a duration such as `24h` or `7d`; None means all times.

        Spans that claim to be insights and cannot be read are left out; `problems` says then what is wrong with each.
        """
        now_ms = self._now_ms()
        types = _types(insight_type)
        asked = insights.query(
            project_id=project_id,
            types=() if Type.OTHER in types else types,
            agent_id=agent_id,
            session_id=session_id,
            audience=None if audience is None else word(Audience, audience, "audience"),
            min_confidence=min_confidence,
            category=category,
            applies_to=applies_to,
        )
        since_ms = None if time_range is None else now_ms - range_ms(time_range)
        # How many traces are asked for, 0 for all. Each is a request where spans are far away, and some are not current.
        pages = (4 * limit, 32 * limit, 0) if limit and self.store.is_far else (0,)
        for page in pages:
            found, is_all = self._found(asked, since_ms, now_ms, page, is_current=is_current)
            found = [one for one in found if not types or one.type in types]
            if is_all or len(found) >= limit:
                break
        return sorted(found, key=lambda one: (-one.created_at, one.id))[: limit or None]

    def _found(
        self, asked: Query, since_ms: int | None, now_ms: int, page: int, *, is_current: bool
    ) -> tuple[list[Insight], bool]:
        """Return what a query finds in at most `page` traces (0: in all), and whether there is no more."""
        found, is_all, self.problems = self._read(asked, since_ms, page)
        if is_current and found:
            # What supersedes one of these may be of another type or agent, so it is looked for apart from them.
            projects = sorted({one.project_id for one in found})
            successors = [
                one
                for name in projects
                for one in self._read(insights.query(project_id=name, is_superseding=True), since_ms)[0]
            ]
            alive = {(one.project_id, one.id) for one in insights.current([*successors, *found], now_ms=now_ms)}
            found = [one for one in insights.current(found, now_ms=now_ms) if (one.project_id, one.id) in alive]
        return [one for one in found if since_ms is None or one.created_at >= since_ms], is_all

    def query_text(
        self,
        *,
        tokens_max: int = QUERY_INSIGHTS.tokens_max or 0,
        count_tokens: Callable[[str], int] = estimate,
        **asked: Any,
    ) -> str:
        """Return what a query finds for agents as YAML, within the protocol's token budget; `asked` is as for `query`."""
        now_ms = self._now_ms()
        return agent_text(
            self.query(**asked | {"limit": 0}),
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

    def _read(self, asked: Query, since_ms: int | None, page: int = 0) -> tuple[list[Insight], bool, tuple[str, ...]]:
        start_ns = None if since_ms is None else since_ms * _MS_NS
        spans = self.store.find(asked, start_ns=start_ns, limit=page)
        found, problems = insights.read_spans(spans)
        return found, not page or len({span.trace_id for span in spans}) != page, tuple(problems)

    def _now_ms(self) -> int:
        return self._clock.now_ns() // _MS_NS


def _resource(settings: Telemetry, agent_id: str, project_id: str) -> Attributes:
    """Return who sends: what the environment says, else the agent."""
    resource = dict(settings.origin.resource)
    if resource.get("service.name") == PROVIDER:  # the environment does not name the service
        resource["service.name"] = agent_id
    return resource | {"project.id": project_id}


def _insight(fields: dict[str, Any]) -> Insight:
    try:
        return insights.decode(_encode(fields))
    except (TypeError, *UNREADABLE):  # it cannot be written, or not be read again: the longer way says where
        return take(fields, "insight", insights.decode)


def listed(given: Any, field: str) -> list[Any]:
    """Return what was given as a list, or raise `CallerError`."""
    if isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping)):
        return list(given)
    raise CallerError(f"{field} is a {type(given).__name__}; it must be a list", field=field)


def evidence_of(given: EvidenceGiven) -> tuple[Evidence, ...]:
    """Return evidence from values or from mappings with `type`, `ref` and optionally `description` and `query`."""
    found = []
    for item in listed(given, "evidence"):
        if isinstance(item, Evidence):
            found.append(item)
            continue
        is_known = isinstance(item, Mapping) and item.keys() <= set(Evidence.__struct_fields__)
        if not is_known or "type" not in item or "ref" not in item:
            raise CallerError("evidence has a type, a ref, and may have a description and a query", field="evidence")
        found.append(Evidence(**item))
    return tuple(found)


def range_ms(text: str) -> int:
    """Return a time range such as `2h` or `7d` in milliseconds."""
    found = parse_duration(text.strip())
    if found is None or found <= 0:
        raise CallerError(f"{text!r} is not a time range; write 2h, 24h or 7d", field="time_range")
    return int(found) // _MS_NS


def _types(given: Type | str | Iterable[Type | str] | None) -> list[Type]:
    if given is None:
        return []
    several = [given] if isinstance(given, str) else given
    return [word(Type, one, "insight_type") for one in several]


def word(words: type[_Word], given: str, field: str) -> _Word:
    """Return a word of a kind; raises `CallerError` that names the field and the words there are."""
    if given not in tuple(words):
        raise CallerError(f"{field} is {given!r}; use one of {', '.join(words)}", field=field)
    return words(given)


def _time(given: int | str | None) -> int | None:
    if not isinstance(given, str):
        return given
    if (at := insights.parse_time(given)) is None:
        raise CallerError(f"{given!r} is not a time such as 2024-03-31T00:00:00Z", field="expires_at")
    return at
