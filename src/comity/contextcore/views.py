"""A project's insights as its audiences like to see them, with the call of the ContextCore protocol.

    querier = PersonalizedQuerier(project_id="checkout-service")
    querier.get_insights(audience="executive", time_range="7d")

What an audience likes is in the `personalization` of the project's document; what `summaryFields` name is looked for in its
`spec`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from comity.contextcore.insights import InsightQuerier
from comity.core.guidance import prompt as briefing
from comity.core.insight.given import TIME_RANGE_DEFAULT, range_ms, word
from comity.core.insight.insight import Insight
from comity.core.insight.views import Backend, View, agent_text, parse_settings, render
from comity.core.model.tokens import estimate
from comity.engines.clock import SystemClock
from comity.engines.files.guidance import FOLDER_DEFAULT, GuidanceFile
from comity.ports import Clock, GuidanceSource, SpanSource

TEMPO_URL: Final = "COMITY_TEMPO_URL"
_MS_NS = 10**6


class PersonalizedQuerier:
    """The views of one project. Its document is read when this is made."""

    def __init__(
        self,
        store: SpanSource | None = None,
        *,
        project_id: str,
        folder: str | Path = FOLDER_DEFAULT,
        source: GuidanceSource | None = None,
        facts: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
        tempo_url: str | None = None,
    ) -> None:
        """Show insights of a store, and to agents those of a Tempo where the document prefers that.

        Its address is `tempo_url`, else `COMITY_TEMPO_URL`.
        """
        document, self.guidance, _ = (source or GuidanceFile.of_project(project_id, folder)).read()
        self.project_id = project_id
        self.facts = facts_of(document) | dict(facts or {})
        self.settings, self.problems = parse_settings(document)
        self._clock = clock or SystemClock()
        self.note = ""  # what of the settings cannot be done as they say
        self._querier = self._agents_querier = InsightQuerier(store, clock=self._clock)
        if self.settings[View.AGENT].preferred_query_backend is Backend.TEMPO:
            if url := tempo_url or os.environ.get(TEMPO_URL):
                self._agents_querier = InsightQuerier(tempo_url=url, clock=self._clock)
            else:
                self.note = (
                    f"preferredQueryBackend is tempo, and neither tempo_url nor {TEMPO_URL} says where; the store is asked"
                )

    def get_insights(self, *, audience: View | str, time_range: str = TIME_RANGE_DEFAULT) -> dict[str, Any]:
        """Return an audience's view as a document; the agent's holds what its text has room for."""
        view = word(View, audience, "audience")
        if view is View.AGENT:
            return yaml.safe_load(self.get_agent_text(time_range=time_range)) or {}
        return render(
            view,
            self._all(time_range),
            settings=self.settings[view],
            now_ms=self._now_ms(),
            window_ms=range_ms(time_range),
            facts=self.facts,
        )

    def get_agent_text(
        self,
        *,
        time_range: str = TIME_RANGE_DEFAULT,
        count_tokens: Callable[[str], int] = estimate,
    ) -> str:
        """Return the agent's view as YAML within the project's `maxContextTokens`."""
        return agent_text(
            self._all(time_range, self._agents_querier),
            settings=self.settings[View.AGENT],
            now_ms=self._now_ms(),
            window_ms=range_ms(time_range),
            count_tokens=count_tokens,
        )

    def get_context(self, *, time_range: str = TIME_RANGE_DEFAULT, count_tokens: Callable[[str], int] = estimate) -> str:
        """Return guidance and insights as one text for an agent, within the budget for reading the full context."""
        return briefing.briefing(
            self.guidance,
            self._all(time_range, self._agents_querier),
            settings=self.settings[View.AGENT],
            now_ms=self._now_ms(),
            window_ms=range_ms(time_range),
            count_tokens=count_tokens,
        )

    def _all(self, time_range: str, querier: InsightQuerier | None = None) -> list[Insight]:
        asked = querier or self._querier
        recent = asked.query(project_id=self.project_id, time_range=time_range, limit=0)
        return [*recent, *asked.get_blockers(self.project_id)]

    def _now_ms(self) -> int:
        return self._clock.now_ns() // _MS_NS


def facts_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a ProjectContext says about its project in single values, at the top of `spec` or one level below."""
    spec = document.get("spec")
    parts = spec if isinstance(spec, Mapping) else {}
    found: dict[str, Any] = {}
    for name, value in parts.items():
        if isinstance(value, Mapping) and name not in ("agentGuidance", "personalization"):
            found |= {inner: plain for inner, plain in value.items() if isinstance(plain, str | int | float)}
        elif isinstance(value, str | int | float):
            found[name] = value
    return found
