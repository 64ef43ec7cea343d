"""TraceQL queries for insights. They stand apart, so that a program that asks for none does not load TraceQL."""

from __future__ import annotations

from collections.abc import Iterable

from comity.core.insight.insight import LEGACY_NAMES, OTEL_NAMES, Audience, Type, audiences
from comity.core.tracing.query.ast import Expression, Query
from comity.core.tracing.query.builder import either, spans, where


def query(
    *,
    project_id: str | None = None,
    types: Iterable[Type] = (),
    agent_id: str | None = None,
    session_id: str | None = None,
    audience: Audience | None = None,
    min_confidence: float | None = None,
    category: str | None = None,
    applies_to: str | None = None,
    insight_id: str | None = None,
    is_superseding: bool = False,
) -> Query:
    """Return the TraceQL query for insights, whatever mode they were emitted in; `str()` of it is its text.

    `is_superseding` asks for those that supersede another: with them it can be told which of some insights still hold.
    """
    kinds = [str(kind) for kind in types]
    conditions: list[Expression] = [
        where("span.insight.type", "=", kinds) if kinds else where("span.insight.type", "!=", None),
    ]
    equal = {
        "span.project.id": project_id,
        "span.insight.category": category,
        "span.insight.applies_to": applies_to,
        "span.insight.id": insight_id,
    }
    conditions += [where(name, "=", value) for name, value in equal.items() if value is not None]
    if is_superseding:
        conditions.append(where("span.insight.supersedes", "!=", None))
    for field, value in (("agent_id", agent_id), ("session_id", session_id)):
        if value is not None:
            conditions.append(either(*(where(f"span.{names[field]}", "=", value) for names in (LEGACY_NAMES, OTEL_NAMES))))
    if audience is not None:
        conditions.append(where("span.insight.audience", "=", [str(one) for one in audiences(audience)]))
    if min_confidence is not None and min_confidence > 0:
        # Some emitters write 1.0 as the integer 1, and TraceQL compares attributes by type.
        at_least = where("span.insight.confidence", ">=", float(min_confidence))
        conditions.append(either(at_least, where("span.insight.confidence", "=", 1)) if min_confidence <= 1 else at_least)
    return spans(*conditions).build()
