"""Conflicts between results: typed comparisons of values, and of the claims of two results field by field."""

from comity.core.orchestration.conflict.compare import claims, compare
from comity.core.orchestration.conflict.fields import Claim
from comity.core.orchestration.conflict.finding import Finding, Relation, Rules

__all__ = ["Claim", "Finding", "Relation", "Rules", "claims", "compare"]
