"""The built-in orchestrator: understands what users ask for, and has it done by the agents of its node."""

from comity.agents.orchestrator.orchestrator import Orchestrator
from comity.agents.orchestrator.rankers import EmbeddingRanker, ModelRanker, OfflineRanker, Ranker

__all__ = ["EmbeddingRanker", "ModelRanker", "OfflineRanker", "Orchestrator", "Ranker"]
