"""The orchestrator: the agent ORC, what ranks intents for it, and the workflow templates."""

from __future__ import annotations

from comity.agents.orchestrator import EmbeddingRanker, ModelRanker, OfflineRanker, Orchestrator, Ranker, templates

__all__ = ["EmbeddingRanker", "ModelRanker", "OfflineRanker", "Orchestrator", "Ranker", "templates"]
