"""What an agent found out and wants others to know, as a value and as a span.

An insight is a span named `insight.<type>`; its evidence are events, its supporting traces are links. The `insight.*`
attributes are the same in every emission mode. The mode only decides under which names the agent, its session and its model
provider appear: `legacy` writes the old names, `otel` the current GenAI names, `dual` both. Reading takes either.

An insight is *current* until a later one of its project supersedes it or it expires. A blocker is unresolved while it is
current: it is resolved by superseding it, whatever the type of the insight that does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from msgspec import Struct, json

from comity.core.tracing.naming import Mode
from comity.core.tracing.span import INT64_MAX, Attributes, Event, Kind, Link, Span
from comity.errors import CallerError

UNKNOWN_AGENT = "unknown"  # of an insight that says neither its agent nor its service
EVIDENCE_EVENT = "evidence.added"
OPERATION = "insight.emit"
EXPIRES_AT_MAX = 253_402_300_799_999  # the last millisecond of the year 9999, the last that can be written
_MS_NS = 10**6
CREATED_AT_MAX = INT64_MAX // _MS_NS
_NO_ATTRIBUTES: Attributes = {}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Type(StrEnum):
    """What kind of insight it is."""

    DECISION = "decision"
    RECOMMENDATION = "recommendation"
    BLOCKER = "blocker"
    DISCOVERY = "discovery"
    ANALYSIS = "analysis"
    QUESTION = "question"
    RISK = "risk"
    PROGRESS = "progress"
    LESSON = "lesson"
    OTHER = "other"  # a kind for which another program has a word of its own


class Audience(StrEnum):
    """Whom it is for. What is for both is for each."""

    AGENT = "agent"
    HUMAN = "human"
    BOTH = "both"


class Evidence(Struct, frozen=True, kw_only=True):
    """What supports an insight. `type` is a word such as trace, log_query, metric_query, file, commit, pr, adr, doc, task."""

    type: str
    ref: str
    description: str = ""
    query: str = ""


class Support(Struct, frozen=True, kw_only=True):
    """A span in another trace that an insight rests on."""

    trace_id: str
    span_id: str
    relationship: str = "evidence"


class Insight(Struct, frozen=True, kw_only=True):
    """One insight. Times are milliseconds since the epoch; an empty text means it was not given."""

    id: str
    type: Type
    summary: str
    confidence: float
    project_id: str
    agent_id: str
    created_at: int
    audience: Audience = Audience.BOTH
    session_id: str = ""
    provider: str = ""
    rationale: str = ""
    evidence: tuple[Evidence, ...] = ()
    links: tuple[Support, ...] = ()
    supersedes: str = ""
    expires_at: int | None = None
    applies_to: tuple[str, ...] = ()
    category: str = ""
    trace_id: str = ""
    span_id: str = ""
    foreign_type: str = ""  # the word that another program has for its type

    @property
    def type_name(self) -> str:
        """Its type as it was emitted."""
        return self.foreign_type or str(self.type)

    def __post_init__(self) -> None:
        for name in ("id", "summary", "project_id", "agent_id"):
            if not getattr(self, name):
                raise CallerError(f"an insight needs a {name}", field=name)
        if not 0.0 <= self.confidence <= 1.0:
            raise CallerError(f"confidence {self.confidence} is not between 0 and 1", field="confidence")
        if not 0 <= self.created_at <= CREATED_AT_MAX:
            raise CallerError(f"created_at {self.created_at} is not a time in milliseconds", field="created_at")
        if self.expires_at is not None and not 0 <= self.expires_at <= EXPIRES_AT_MAX:
            raise CallerError(f"expires_at {self.expires_at} is not a time in milliseconds", field="expires_at")


# to a span and back

decode = json.Decoder(Insight).decode
LEGACY_NAMES = {"agent_id": "agent.id", "session_id": "agent.session_id", "provider": "gen_ai.system"}
OTEL_NAMES = {"agent_id": "gen_ai.agent.id", "session_id": "gen_ai.conversation.id", "provider": "gen_ai.provider.name"}


def to_span(
    insight: Insight,
    *,
    mode: Mode,
    parent_id: str | None = None,
    resource: Attributes = _NO_ATTRIBUTES,
    more: Attributes = _NO_ATTRIBUTES,
) -> Span:
    """Return the span of an insight that has been given a trace and span id, with some more attributes."""
    assert insight.trace_id, "an insight needs a trace id to become a span"
    assert insight.span_id, "an insight needs a span id to become a span"
    time_ns = insight.created_at * _MS_NS
    return Span(
        trace_id=insight.trace_id,
        span_id=insight.span_id,
        parent_id=parent_id,
        name=f"insight.{insight.type_name}",
        kind=Kind.INTERNAL,
        start_ns=time_ns,
        end_ns=time_ns,
        attributes={**more, **_attributes(insight, mode)},
        resource=resource,
        events=tuple(
            Event(name=EVIDENCE_EVENT, time_ns=time_ns, attributes=_evidence_attributes(evidence))
            for evidence in insight.evidence
        ),
        links=tuple(
            Link(trace_id=link.trace_id, span_id=link.span_id, attributes={"link.relationship": link.relationship})
            for link in insight.links
        ),
    )


def _attributes(insight: Insight, mode: Mode) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "insight.id": insight.id,
        "insight.type": insight.type_name,
        "insight.summary": insight.summary,
        # A whole number would be stored as an integer, which `>= 0.8` does not find.
        "insight.confidence": float(insight.confidence),
        "insight.audience": str(insight.audience),
        "project.id": insight.project_id,
        "insight.rationale": insight.rationale,
        "insight.supersedes": insight.supersedes,
        "insight.expires_at": "" if insight.expires_at is None else time_text(insight.expires_at),
        "insight.applies_to": insight.applies_to,
        "insight.category": insight.category,
    }
    if mode is not Mode.OTEL:
        attributes |= {name: getattr(insight, field) for field, name in LEGACY_NAMES.items()}
    if mode is not Mode.LEGACY:
        attributes |= {name: getattr(insight, field) for field, name in OTEL_NAMES.items()}
        attributes["gen_ai.operation.name"] = OPERATION
    return {name: value for name, value in attributes.items() if value not in ("", ())}


def _evidence_attributes(evidence: Evidence) -> dict[str, Any]:
    optional = {"evidence.description": evidence.description, "evidence.query": evidence.query}
    required = {"evidence.type": evidence.type, "evidence.ref": evidence.ref}
    return required | {name: value for name, value in optional.items() if value}


def from_span(span: Span) -> Insight:
    """Return the insight a span holds, written in any mode by any emitter, or raise `CallerError`.

    A type without a word here is `other`, and one without an agent is its service's: the protocol's list of types is open, and
    other programs leave out what they must not.
    """
    attributes = span.attributes
    audience = _text(attributes, "insight.audience") or Audience.BOTH
    kind = _text(attributes, "insight.type")
    if not kind:
        raise CallerError(f"span {span.span_id} has no text as insight.type")
    is_known = kind in tuple(Type)
    if audience not in tuple(Audience):
        raise CallerError(f"span {span.span_id} has insight.audience {audience!r}; it must be one of {', '.join(Audience)}")
    applies_to = attributes.get("insight.applies_to", ())
    return Insight(
        id=_text(attributes, "insight.id") or span.span_id,
        type=Type(kind) if is_known else Type.OTHER,
        foreign_type="" if is_known else kind,
        summary=_text(attributes, "insight.summary"),
        confidence=_confidence(attributes.get("insight.confidence"), span),
        project_id=_text(attributes, "project.id") or _text(span.resource, "project.id"),
        agent_id=_named(attributes, "agent_id") or _text(span.resource, "service.name") or UNKNOWN_AGENT,
        created_at=span.start_ns // _MS_NS,
        audience=Audience(audience),
        session_id=_named(attributes, "session_id"),
        provider=_named(attributes, "provider"),
        rationale=_text(attributes, "insight.rationale"),
        evidence=tuple(_evidence(event) for event in span.events if event.name == EVIDENCE_EVENT),
        links=tuple(support(link) for link in span.links),
        supersedes=_text(attributes, "insight.supersedes"),
        expires_at=_time(attributes.get("insight.expires_at"), span),
        applies_to=tuple(map(str, applies_to)) if isinstance(applies_to, tuple | list) else (str(applies_to),),
        category=_text(attributes, "insight.category"),
        trace_id=span.trace_id,
        span_id=span.span_id,
    )


def read_spans(found: Iterable[Span]) -> tuple[list[Insight], list[str]]:
    """Return the insights among spans, and why the others that claim to be insights are none."""
    insights, problems = [], []
    for span in found:
        if "insight.type" in span.attributes:
            try:
                insights.append(from_span(span))
            except CallerError as error:
                problems.append(error.message)
    return insights, problems


def _text(attributes: Attributes, name: str) -> str:
    value = attributes.get(name)
    return value if isinstance(value, str) else ""


def _named(attributes: Attributes, field: str) -> str:
    return _text(attributes, OTEL_NAMES[field]) or _text(attributes, LEGACY_NAMES[field])


def _confidence(raw: Any, span: Span) -> float:
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        return float(raw)
    raise CallerError(f"span {span.span_id} has no number as insight.confidence")


def _evidence(event: Event) -> Evidence:
    names = ("type", "ref", "description", "query")
    return Evidence(**{name: _text(event.attributes, f"evidence.{name}") for name in names})


def support(link: Link) -> Support:
    """Return the span that a link leads to, and how the insight rests on it."""
    relationship = _text(link.attributes, "link.relationship") or "evidence"
    return Support(trace_id=link.trace_id, span_id=link.span_id, relationship=relationship)


def time_text(at_ms: int, timespec: str = "milliseconds") -> str:
    """Return milliseconds since the epoch as an ISO 8601 time in UTC; `parse_time` reads it back."""
    return (_EPOCH + timedelta(milliseconds=at_ms)).isoformat(timespec=timespec).replace("+00:00", "Z")


def _time(raw: Any, span: Span) -> int | None:
    """Return a time in milliseconds, from text as we write it or a number of milliseconds."""
    if raw is None:
        return None
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    at = parse_time(raw) if isinstance(raw, str) else None
    if at is None:
        raise CallerError(f"span {span.span_id} has insight.expires_at {raw!r}; it must be a time such as 2024-03-31T00:00:00Z")
    return at


def parse_time(text: str) -> int | None:
    """Return an ISO 8601 time in milliseconds since the epoch, taken as UTC if it names no zone, or None if it is none."""
    try:
        found = datetime.fromisoformat(text)
        aware = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        return None


# which still hold

_Key = tuple[str, str]


def current(insights: Iterable[Insight], *, now_ms: int) -> list[Insight]:
    """Return the insights that are neither superseded nor expired, newest first; of one sent twice the newest.

    Only an insight of the same project supersedes. Where some supersede each other in a circle the newest word counts.
    """
    newest: dict[_Key, Insight] = {}
    for insight in sorted(insights, key=lambda one: (-one.created_at, one.id)):
        newest.setdefault((insight.project_id, insight.id), insight)
    superseded_by: dict[_Key, list[_Key]] = {}
    judged: set[_Key] = set()
    for key, insight in newest.items():
        judged.add(key)
        target = (insight.project_id, insight.supersedes)
        # Only a newer insight can have been superseding already, so only then can this close a circle.
        if insight.supersedes and not (target in judged and _leads_to(key, target, superseded_by)):
            superseded_by.setdefault(target, []).append(key)
    return [
        insight
        for key, insight in newest.items()
        if key not in superseded_by and (insight.expires_at is None or insight.expires_at > now_ms)
    ]


def _leads_to(start: _Key, end: _Key, steps: Mapping[_Key, list[_Key]]) -> bool:
    todo, seen = [start], {start}
    while todo:
        at = todo.pop()
        if at == end:
            return True
        todo += (further := [one for one in steps.get(at, ()) if one not in seen])
        seen.update(further)
    return False


def for_audience(insights: Iterable[Insight], audience: Audience) -> list[Insight]:
    """Return the insights meant for an audience; what is for both is for each."""
    return [insight for insight in insights if insight.audience in audiences(audience)]


def audiences(audience: Audience) -> tuple[Audience, ...]:
    """Return whom the insights are meant for that an audience reads."""
    return (Audience.BOTH,) if audience is Audience.BOTH else (audience, Audience.BOTH)
