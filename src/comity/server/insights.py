"""Insights over HTTP: what agents found out and still holds, as a list or as one audience likes to see it."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from comity.contextcore.insights import InsightQuerier
from comity.core.insight import views
from comity.core.insight.given import range_ms
from comity.core.insight.insight import Insight
from comity.core.insight.views import View
from comity.server.auth import tenant_of
from comity.server.problem import unknown
from comity.server.routes import Ask

LIMIT_MAX: Final = 500


class InsightQuery(Struct, frozen=True):
    """Which insights are wanted. `range` is a duration such as 24h or 7d; `all` also shows what was superseded or expired."""

    type: str | None = None
    agent: str | None = None
    session: str | None = None
    project: str | None = None
    range: str = "7d"
    limit: Annotated[int, Meta(ge=1, le=LIMIT_MAX)] = 100
    all: bool = False


class Insights(Struct, frozen=True):
    """Insights, newest first; `problems` names spans that claim to be insights and cannot be read."""

    items: list[Insight]
    next: str | None = None
    problems: tuple[str, ...] = ()


class ViewQuery(Struct, frozen=True):
    """How far a view looks back, and of which project."""

    project: str | None = None
    range: str = "24h"


class Personal(Struct, frozen=True):
    """A view: for agents a text within its token budget, for people a document."""

    audience: str
    text: str
    document: dict[str, Any]


async def find(ask: Ask) -> Insights:
    """Return insights of the sender's tenant."""
    query: InsightQuery = ask.query
    querier = await _querier(ask)

    def read() -> list[Insight]:
        return querier.query(
            project_id=query.project,
            insight_type=query.type,
            agent_id=query.agent,
            session_id=query.session,
            time_range=query.range,
            limit=query.limit,
            is_current=not query.all,
        )

    return Insights(await asyncio.to_thread(read), None, querier.problems)


async def show(ask: Ask) -> Personal:
    """Return what agents found out as one audience likes to see it."""
    name, query = ask.params["audience"], ask.query
    if name not in list(View):
        raise unknown("audience", name)
    view, window_ms, now_ms = View(name), range_ms(query.range), ask.state.now_ms()
    querier = await _querier(ask)
    found = await asyncio.to_thread(lambda: querier.query(project_id=query.project, time_range=None, limit=0))
    settings = views.parse_settings({})[0][view]
    text = ""
    if view is View.AGENT:
        text = views.agent_text(found, settings=settings, now_ms=now_ms, window_ms=window_ms)
    document = views.render(view, found, settings=settings, now_ms=now_ms, window_ms=window_ms)
    return Personal(view.value, text, document)


async def _querier(ask: Ask) -> InsightQuerier:
    node = ask.state.node
    await node.flush_spans()
    return InsightQuerier(node.spans.of_tenant(tenant_of(ask.principal, None)))
