"""Requests of several parts: what is asked for, and in which order."""

from comity.core.orchestration.split.objects import things
from comity.core.orchestration.split.plan import Part, Plan, Shape
from comity.core.orchestration.split.split import split

__all__ = ["Part", "Plan", "Shape", "split", "things"]
