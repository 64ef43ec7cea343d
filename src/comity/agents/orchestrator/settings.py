"""How an orchestrator works: what it was declared with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from comity.agents.orchestrator.rankers import OfflineRanker, Ranker
from comity.core.orchestration.aggregate import Strategy
from comity.core.orchestration.intent.classification import THRESHOLD

FRESH_MS = 60 * 60 * 1000  # how long an analysis that was presented is referred to instead of being run again


@dataclass(frozen=True, slots=True)
class Settings:
    """What `Orchestrator` was given; see there."""

    id: str = "ORC"
    can_call: frozenset[str] | None = None
    threshold: float = THRESHOLD
    ranker: Ranker = field(default_factory=OfflineRanker)
    strategy: str = "merge"
    options: dict[str, Any] = field(default_factory=dict)
    custom: dict[str, Strategy] = field(default_factory=dict)
    synthesiser: str = ""
    fresh_ms: int = FRESH_MS
