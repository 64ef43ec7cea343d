"""One set of insights, five views of it: for an executive, a manager, a developer, an operator and an agent.

People see what is meant for humans or for both, agents what is meant for agents or for both, and no reader what was superseded
or has expired. A view is a plain document; the agent's is text as well, typed YAML under a token cap (`agent_text`).

How urgent an insight is follows from what it is: an unresolved blocker is critical, a risk is high, the rest is normal.

What leaves the agent's text first when the cap is tight, in this order:
1. rationale, evidence and links of insights that are not blockers, least important insight first;
2. those insights themselves, least important first: by type in the order of `RANKED`, then by confidence, then by age;
3. rationale, evidence and links of blockers; then their summaries, cut to `SUMMARY_CHARS` and then to `SUMMARY_CHARS_MIN`;
4. the oldest blockers. How many of each were left out is always said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from comity.core.document.payload import Problem
from comity.core.insight.insight import Audience, Evidence, Insight, Type, current, for_audience, time_text
from comity.core.model.tokens import estimate
from comity.core.tracing.query.ast import quote

DAY_MS: Final = 86_400_000
HIGH_CONFIDENCE: Final = 0.9
SUMMARY_CHARS: Final = 120
SUMMARY_CHARS_MIN: Final = 40


class Budget(NamedTuple):
    """What an operation usually costs in tokens, and the most it may."""

    typical_tokens: int
    tokens_max: int | None


READ_GUIDANCE: Final = Budget(200, 500)
QUERY_INSIGHTS: Final = Budget(500, 1000)
WRITE_INSIGHT: Final = Budget(50, None)
READ_FULL_CONTEXT: Final = Budget(800, 2000)

# Most important first, for an agent that can be told only a few.
RANKED: Final = (
    Type.BLOCKER,
    Type.DECISION,
    Type.RISK,
    Type.QUESTION,
    Type.RECOMMENDATION,
    Type.LESSON,
    Type.DISCOVERY,
    Type.ANALYSIS,
    Type.PROGRESS,
    Type.OTHER,
)


class View(StrEnum):
    """Who looks."""

    EXECUTIVE = "executive"
    MANAGER = "manager"
    DEVELOPER = "developer"
    OPERATOR = "operator"
    AGENT = "agent"


class AlertThreshold(StrEnum):
    """From which urgency on an insight is an alert."""

    CRITICAL_ONLY = "critical_only"
    CRITICAL_HIGH = "critical_high"
    ALL = "all"


class Format(StrEnum):
    """How much is shown of each insight."""

    DETAILED = "detailed"
    STANDARD = "standard"
    MINIMAL = "minimal"


class Cadence(StrEnum):
    """How long a reporting period is."""

    DAILY = "daily"
    WEEKLY = "weekly"
    MONTHLY = "monthly"
    QUARTERLY = "quarterly"


class Backend(StrEnum):
    """Where an agent likes to look further."""

    TEMPO = "tempo"
    LOKI = "loki"
    K8S_API = "k8s_api"


PERIOD_DAYS: Final = {Cadence.DAILY: 1, Cadence.WEEKLY: 7, Cadence.MONTHLY: 30, Cadence.QUARTERLY: 91}
_ALERTS: Final = {
    AlertThreshold.CRITICAL_ONLY: (Type.BLOCKER,),
    AlertThreshold.CRITICAL_HIGH: (Type.BLOCKER, Type.RISK),
    AlertThreshold.ALL: RANKED,
}


class Settings(Struct, frozen=True, kw_only=True):
    """What one audience of a project has asked for."""

    dashboard_id: str = ""
    summary_fields: tuple[str, ...] = ()
    alert_threshold: AlertThreshold = AlertThreshold.CRITICAL_HIGH
    reporting_cadence: Cadence = Cadence.WEEKLY
    preferred_format: Format = Format.STANDARD
    max_context_tokens: int = READ_FULL_CONTEXT.tokens_max or 0
    preferred_query_backend: Backend | None = None

    def capped(self, tokens_max: int) -> Settings:
        """Return the settings with a token cap of at most this."""
        return replace(self, max_context_tokens=min(self.max_context_tokens, tokens_max))


DEFAULTS: Final = {
    View.EXECUTIVE: Settings(alert_threshold=AlertThreshold.CRITICAL_ONLY, preferred_format=Format.MINIMAL),
    View.MANAGER: Settings(),
    View.DEVELOPER: Settings(preferred_format=Format.DETAILED),
    View.OPERATOR: Settings(alert_threshold=AlertThreshold.ALL, preferred_format=Format.DETAILED),
    View.AGENT: Settings(),
}

# settings


_Word = TypeVar("_Word", bound=StrEnum)


def parse_settings(document: Any) -> tuple[dict[View, Settings], tuple[Problem, ...]]:
    """Return the settings of every audience in a ProjectContext's `personalization`, and what is wrong with them.

    What is missing or cannot be read is as in `DEFAULTS`.
    """
    problems: list[Problem] = []
    spec = _mapping(_mapping(document, "document", problems).get("spec"), "spec", problems)
    path = "spec.personalization"
    raw = _mapping(spec.get("personalization"), path, problems)
    problems += [Problem(f"{path}.{name}", f"must be one of {', '.join(View)}") for name in raw if name not in tuple(View)]
    found = {view: _settings(_mapping(raw.get(view), f"{path}.{view}", problems), view, problems) for view in View}
    return found, tuple(problems)


def _settings(raw: Mapping[str, Any], view: View, problems: list[Problem]) -> Settings:
    path, default = f"spec.personalization.{view}", DEFAULTS[view]
    known = {
        "dashboardId", "summaryFields", "alertThreshold", "reportingCadence", "preferredFormat", "maxContextTokens",
        "preferredQueryBackend",
    }  # fmt: skip
    problems += [
        Problem(f"{path}.{name}", f"is not known; use {', '.join(sorted(known))}") for name in raw if name not in known
    ]

    def word(name: str, otherwise: _Word) -> _Word:
        value = raw.get(name, otherwise)
        if value in tuple(type(otherwise)):
            return type(otherwise)(value)
        problems.append(Problem(f"{path}.{name}", f"must be one of {', '.join(type(otherwise))}"))
        return otherwise

    fields = raw.get("summaryFields", [])
    if not isinstance(fields, list) or not all(isinstance(one, str) for one in fields):
        problems.append(Problem(f"{path}.summaryFields", "must be a list of texts"))
        fields = []
    tokens = raw.get("maxContextTokens", default.max_context_tokens)
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 1:
        problems.append(Problem(f"{path}.maxContextTokens", "must be a number of tokens above 0"))
        tokens = default.max_context_tokens
    dashboard_id = raw.get("dashboardId", "")
    if not isinstance(dashboard_id, str):
        problems.append(Problem(f"{path}.dashboardId", "must be text"))
        dashboard_id = ""
    return Settings(
        dashboard_id=dashboard_id,
        summary_fields=tuple(fields),
        alert_threshold=word("alertThreshold", default.alert_threshold),
        reporting_cadence=word("reportingCadence", default.reporting_cadence),
        preferred_format=word("preferredFormat", default.preferred_format),
        max_context_tokens=tokens,
        preferred_query_backend=word("preferredQueryBackend", Backend.TEMPO) if "preferredQueryBackend" in raw else None,
    )


def _mapping(raw: Any, path: str, problems: list[Problem]) -> Mapping[str, Any]:
    if raw is None:
        return {}
    if isinstance(raw, Mapping):
        return raw
    problems.append(Problem(path, "must be a mapping"))
    return {}


# views


def render(
    view: View,
    insights: Iterable[Insight],
    *,
    settings: Settings,
    now_ms: int,
    window_ms: int,
    facts: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the view of the insights of a time window. `facts` are what `summary_fields` may name."""
    for_whom = Audience.AGENT if view is View.AGENT else Audience.HUMAN
    shown = for_audience(current(insights, now_ms=now_ms), for_whom)
    recent = [insight for insight in shown if insight.created_at > now_ms - window_ms]
    # An unresolved blocker matters however old it is.
    blockers = [insight for insight in shown if insight.type is Type.BLOCKER]
    document: dict[str, Any] = {"audience": str(view), "as_of": _time_text(now_ms), "total": len(recent)}
    if settings.dashboard_id:
        document["dashboard_id"] = settings.dashboard_id
    if settings.summary_fields:
        document["summary"] = {name: (facts or {}).get(name) for name in settings.summary_fields}
    if view is View.AGENT:
        ranked = sorted(_with(recent, blockers), key=_rank)
        if settings.preferred_query_backend is not None:
            document["query_backend"] = str(settings.preferred_query_backend)
        return document | {"insights": [describe(insight, Format.DETAILED) for insight in ranked]}
    alerts = [insight for insight in _with(recent, blockers) if insight.type in _ALERTS[settings.alert_threshold]]
    document["alerts"] = [describe(insight, settings.preferred_format) for insight in sorted(alerts, key=_rank)]
    return document | _VIEWS[view](recent, blockers, settings, now_ms, window_ms)


def _executive(recent: list[Insight], blockers: list[Insight], _: Settings, now_ms: int, window_ms: int) -> dict[str, Any]:
    middle = now_ms - window_ms // 2
    later = Counter(insight.type for insight in recent if insight.created_at > middle)
    earlier = Counter(insight.type for insight in recent if insight.created_at <= middle)
    return {
        "decisions": sum(insight.type is Type.DECISION for insight in recent),
        "unresolved_blockers": len(blockers),
        "by_type": _counted(insight.type for insight in recent),
        # The second half of the window against the first.
        "trend": {str(kind): later[kind] - earlier[kind] for kind in Type if later[kind] or earlier[kind]},
    }


def _manager(recent: list[Insight], blockers: list[Insight], settings: Settings, now_ms: int, window_ms: int) -> dict[str, Any]:
    period_ms = PERIOD_DAYS[settings.reporting_cadence] * DAY_MS
    periods = []
    for at in range(-(-window_ms // period_ms)):
        end = now_ms - at * period_ms
        within = [insight for insight in recent if end - period_ms < insight.created_at <= end]
        periods.append({"until": _time_text(max(end, 0)), "total": len(within), "by_type": _counted(i.type for i in within)})
    return {
        "by_type": _counted(insight.type for insight in recent),
        "by_agent": {
            agent: _counted(insight.type for insight in recent if insight.agent_id == agent)
            for agent in sorted({insight.agent_id for insight in recent})
        },
        "high_confidence": sum(insight.confidence > HIGH_CONFIDENCE for insight in recent),
        "agents_active": len({insight.agent_id for insight in recent}),
        "unresolved_blockers": len(blockers),
        "cadence": str(settings.reporting_cadence),
        "periods": periods,
    }


def _developer(recent: list[Insight], blockers: list[Insight], settings: Settings, _now: int, _window: int) -> dict[str, Any]:
    found = sorted(_with(recent, blockers), key=lambda insight: (-insight.created_at, insight.id))
    return {"insights": [describe(insight, settings.preferred_format) for insight in found]}


def _operator(
    recent: list[Insight], blockers: list[Insight], settings: Settings, now_ms: int, _window_ms: int
) -> dict[str, Any]:
    kinds = {"blockers": (Type.BLOCKER,), "risks": (Type.RISK,), "in_progress": (Type.PROGRESS,)}
    found = _with(recent, blockers)
    signals = [item for insight in found for item in insight.evidence if item.type in ("trace", "log_query", "metric_query")]
    expiring = [insight for insight in recent if insight.expires_at is not None and insight.expires_at <= now_ms + DAY_MS]
    return {
        name: [describe(insight, settings.preferred_format) for insight in found if insight.type in types]
        for name, types in kinds.items()
    } | {
        "signals": [_evidence(item) for item in dict.fromkeys(signals)],
        "expiring_within_a_day": [insight.id for insight in expiring],
        "last_seen": {
            agent: _time_text(max(insight.created_at for insight in recent if insight.agent_id == agent))
            for agent in sorted({insight.agent_id for insight in recent})
        },
    }


_VIEWS: Final[dict[View, Callable[[list[Insight], list[Insight], Settings, int, int], dict[str, Any]]]] = {
    View.EXECUTIVE: _executive,
    View.MANAGER: _manager,
    View.DEVELOPER: _developer,
    View.OPERATOR: _operator,
}


def describe(insight: Insight, how: Format) -> dict[str, Any]:
    """Return an insight as a document, without what it does not have."""
    found: dict[str, Any] = {"id": insight.id, "type": insight.type_name, "summary": insight.summary}
    if how is Format.MINIMAL:
        return found
    found |= {
        "confidence": insight.confidence,
        "agent": insight.agent_id,
        "created_at": _time_text(insight.created_at),
        "applies_to": list(insight.applies_to),
        "category": insight.category,
        "refs": [f"{item.type}:{item.ref}" for item in insight.evidence],
    }
    if how is Format.DETAILED:
        del found["refs"]
        found |= {
            "session": insight.session_id,
            "rationale": insight.rationale,
            "evidence": [_evidence(item) for item in insight.evidence],
            "links": [{"trace": link.trace_id, "span": link.span_id, "is": link.relationship} for link in insight.links],
            "supersedes": insight.supersedes,
            "expires_at": "" if insight.expires_at is None else _time_text(insight.expires_at),
            "trace": insight.trace_id,
        }
    return {name: value for name, value in found.items() if value not in ("", [])}


def _evidence(item: Evidence) -> dict[str, Any]:
    pairs = {"type": item.type, "ref": item.ref, "description": item.description, "query": item.query}
    return {name: value for name, value in pairs.items() if value}


def _with(recent: list[Insight], blockers: list[Insight]) -> list[Insight]:
    return [*(insight for insight in recent if insight.type is not Type.BLOCKER), *blockers]


def _rank(insight: Insight) -> tuple[int, float, int, str]:
    importance = 0.0 if insight.type is Type.BLOCKER else -insight.confidence
    return RANKED.index(insight.type), importance, -insight.created_at, insight.id


def _counted(types: Iterable[Type]) -> dict[str, int]:
    counts = Counter(types)
    return {str(kind): counts[kind] for kind in Type if counts[kind]}


def _time_text(at_ms: int) -> str:
    return time_text(at_ms, "seconds")


# the agent's text


def agent_text(
    insights: Iterable[Insight],
    *,
    settings: Settings,
    now_ms: int,
    window_ms: int,
    count_tokens: Callable[[str], int] = estimate,
) -> str:
    """Return the agent's view as YAML of at most `settings.max_context_tokens`, or empty if not even its head fits."""
    document = render(View.AGENT, insights, settings=settings, now_ms=now_ms, window_ms=window_ms)
    found = document.pop("insights")
    blockers = [one for one in found if one["type"] == Type.BLOCKER]
    others = [one for one in found if one["type"] != Type.BLOCKER]
    draft = _Draft(document, settings.max_context_tokens, count_tokens)
    for form in (_full, _brief, _short):
        kept = [form(one) for one in blockers]
        if draft.fits(kept, omitted=(0, len(others))):
            return draft.filled(kept, others)
    return draft.shortened([_short(one) for one in blockers], len(others))


class _Draft:
    """The text while it is decided what stands in it."""

    def __init__(self, head: Mapping[str, Any], tokens_max: int, count_tokens: Callable[[str], int]) -> None:
        self._head = "".join(f"{name}: {_scalar(value)}\n" for name, value in head.items() if not isinstance(value, dict))
        self._tokens_max = tokens_max
        self._count = count_tokens

    def text(self, lines: Sequence[str], omitted: tuple[int, int]) -> str:
        body = "".join(f"- {line}\n" for line in lines)
        found = (
            f"{self._head}omitted: {{blockers: {omitted[0]}, others: {omitted[1]}}}\ninsights:{'' if lines else ' []'}\n{body}"
        )
        return found if lines or self._count(found) <= self._tokens_max else ""

    def fits(self, lines: Sequence[str], omitted: tuple[int, int]) -> bool:
        found = self.text(lines, omitted)
        return bool(found) and self._count(found) <= self._tokens_max

    def shortened(self, lines: list[str], others: int) -> str:
        """Return the text with as many of the first lines as fit."""
        count = self._most(len(lines), lambda number: (lines[:number], (len(lines) - number, others)))
        return self.text(lines[:count], (len(lines) - count, others))

    def filled(self, kept: list[str], others: list[dict[str, Any]]) -> str:
        """Return the text with as many others as fit in brief, and then as many of these in full, most important first."""
        briefs, fulls = [_brief(one) for one in others], [_full(one) for one in others]
        count = self._most(len(others), lambda number: (kept + briefs[:number], (0, len(others) - number)))
        omitted = (0, len(others) - count)
        full = self._most(count, lambda number: (kept + fulls[:number] + briefs[number:count], omitted))
        return self.text(kept + fulls[:full] + briefs[full:count], omitted)

    def _most(self, limit: int, draft: Callable[[int], tuple[list[str], tuple[int, int]]]) -> int:
        low, high = 0, limit
        while low < high:
            middle = (low + high + 1) // 2
            if self.fits(*draft(middle)):
                low = middle
            else:
                high = middle - 1
        return low


def _full(one: Mapping[str, Any]) -> str:
    return _scalar(one)


def _brief(one: Mapping[str, Any]) -> str:
    return _scalar({"id": one["id"], "type": one["type"], "confidence": one["confidence"], "summary": _cut(one, SUMMARY_CHARS)})


def _short(one: Mapping[str, Any]) -> str:
    return _scalar({"id": one["id"], "type": one["type"], "summary": _cut(one, SUMMARY_CHARS_MIN)})


def _cut(one: Mapping[str, Any], chars_max: int) -> str:
    text: str = one["summary"]
    return text if len(text) <= chars_max else f"{text[: chars_max - 1]}…"


def _scalar(value: Any) -> str:
    """Return a value in YAML's flow style; texts are always quoted, so none can be taken for anything else."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            text = repr(value)
            # YAML takes 1e-05 for a text; it wants a point.
            return text.replace("e", ".0e") if "e" in text and "." not in text else text
        case str():
            return quote(value)
        case Mapping():
            return f"{{{', '.join(f'{name}: {_scalar(inner)}' for name, inner in value.items())}}}"
    return f"[{', '.join(_scalar(inner) for inner in value)}]"
