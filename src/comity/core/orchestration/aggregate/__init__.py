"""Aggregation: several replies as one, with confidences, conflicts, what is missing, and a narrative."""

from comity.core.orchestration.aggregate.aggregate import aggregate, synthesis_request
from comity.core.orchestration.aggregate.component import Component
from comity.core.orchestration.aggregate.consensus import Agreement, Conflict, agreement, consensus
from comity.core.orchestration.aggregate.narrative import facts
from comity.core.orchestration.aggregate.strategies import OPTIONS, STRATEGIES, SYNTHESISE, Strategy

__all__ = [
    "OPTIONS", "STRATEGIES", "SYNTHESISE", "Agreement", "Component", "Conflict", "Strategy", "aggregate", "agreement",
    "consensus", "facts", "synthesis_request",
]  # fmt: skip
