"""Insights as callers give them and ask for them: words, times and lists in any form that is understood."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, TypedDict, TypeVar

import msgspec

from comity.core.document.checks import UNREADABLE, take
from comity.core.insight.insight import (
    Audience,
    Evidence,
    Insight,
    Type,
    current,
    decode,
    parse_time,
    read_spans,
    support,
)
from comity.core.insight.queries import query
from comity.core.tracing.links import read_link
from comity.core.tracing.query import Query
from comity.core.tracing.query.values import parse_duration
from comity.core.tracing.span import Span
from comity.errors import CallerError

LIMIT_DEFAULT: Final = 100
TIME_RANGE_DEFAULT: Final = "24h"
_MS_NS: Final = 10**6
_encode = msgspec.json.Encoder().encode

_Word = TypeVar("_Word", bound=StrEnum)
LinkGiven = Any  # an OpenTelemetry `SpanContext` or `Link`, a `Support`, a mapping of ids, or a traceparent
EvidenceGiven = Iterable[Evidence | Mapping[str, str]]
Find = Callable[[Query, int | None, int], list[Span]]  # what a query finds, since when (ns), in at most how many traces


class Asked(TypedDict, total=False):
    """What a search is narrowed by."""

    project_id: str | None
    insight_type: Type | str | Iterable[Type | str] | None  # one or several
    agent_id: str | None
    session_id: str | None
    audience: Audience | str | None
    min_confidence: float | None
    time_range: str | None  # a duration such as `24h` or `7d`, 24 hours unless given; None means all times
    limit: int  # 100 unless given; 0 means all
    applies_to: str | None
    category: str | None
    is_current: bool  # False to find also what was superseded or has expired


def composed(
    insight_type: Type | str,
    *,
    ids: Mapping[str, str],
    created_at: int,
    audience: Audience | str,
    evidence: EvidenceGiven,
    links: Iterable[LinkGiven],
    expires_at: int | str | None,
    applies_to: Iterable[str],
    **said: Any,
) -> Insight:
    """Return an insight as a caller gives it: words, times, evidence and links in any form that is understood.

    `ids` are `id`, `trace_id` and `span_id`; `said` are the fields that are taken as they are.
    """
    fields = {
        **said,
        **ids,
        "type": word(Type, insight_type, "insight_type"),
        "created_at": created_at,
        "audience": word(Audience, audience, "audience"),
        "evidence": evidence_of(evidence),
        "links": [support(read_link(one)) for one in listed(links, "links")],
        "expires_at": time_of(expires_at),
        "applies_to": listed(applies_to, "applies_to"),
    }
    return made(fields)


class Search:
    """Finds insights among spans. What was superseded or has expired is left out."""

    def __init__(self, find: Find, now_ms: int, *, is_far: bool = False) -> None:
        self._find = find
        self._now_ms = now_ms
        self._is_far = is_far  # each trace that is read costs a request
        self.problems: tuple[str, ...] = ()  # of spans that claim to be insights and cannot be read

    def run(
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
        """Return insights, newest first."""
        now_ms = self._now_ms
        types = types_of(insight_type)
        asked = query(
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
        pages = (4 * limit, 32 * limit, 0) if limit and self._is_far else (0,)
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
                one for name in projects for one in self._read(query(project_id=name, is_superseding=True), since_ms)[0]
            ]
            alive = {(one.project_id, one.id) for one in current([*successors, *found], now_ms=now_ms)}
            found = [one for one in current(found, now_ms=now_ms) if (one.project_id, one.id) in alive]
        return [one for one in found if since_ms is None or one.created_at >= since_ms], is_all

    def _read(self, asked: Query, since_ms: int | None, page: int = 0) -> tuple[list[Insight], bool, tuple[str, ...]]:
        start_ns = None if since_ms is None else since_ms * _MS_NS
        spans = self._find(asked, start_ns, page)
        found, problems = read_spans(spans)
        return found, not page or len({span.trace_id for span in spans}) != page, tuple(problems)


def made(fields: dict[str, Any]) -> Insight:
    """Return an insight from its fields. Raises `CallerError` for what cannot be one."""
    try:
        return decode(_encode(fields))
    except (TypeError, *UNREADABLE):  # it cannot be written, or not be read again: the longer way says where
        return take(fields, "insight", decode)


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


def types_of(given: Type | str | Iterable[Type | str] | None) -> list[Type]:
    """Return the types that were named; none for all."""
    if given is None:
        return []
    several = [given] if isinstance(given, str) else given
    return [word(Type, one, "insight_type") for one in several]


def word(words: type[_Word], given: str, field: str) -> _Word:
    """Return a word of a kind; raises `CallerError` that names the field and the words there are."""
    if given not in tuple(words):
        raise CallerError(f"{field} is {given!r}; use one of {', '.join(words)}", field=field)
    return words(given)


def time_of(given: int | str | None) -> int | None:
    """Return a point in time, which may be given as text."""
    if not isinstance(given, str):
        return given
    if (at := parse_time(given)) is None:
        raise CallerError(f"{given!r} is not a time such as 2024-03-31T00:00:00Z", field="expires_at")
    return at
