"""Routing errors, counted per intent: misroutes, clarifications, refusals, and requests that nothing served."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

NONE: Final = "(none)"  # where no intent fitted
INTENTS_MAX: Final = 1_000


class Outcome(StrEnum):
    """What became of a request."""

    ROUTED = "routed"
    MISROUTED = "misrouted"  # the user corrected the route
    CLARIFIED = "clarified"  # the user was asked which
    REFUSED = "refused"  # the route was right and the call was refused
    FAILED = "failed"
    DECLINED = "declined"  # nothing serves it
    REPEATED = "repeated"  # already presented: referred to, not run


Counts = dict[str, dict[str, int]]


def count(counts: Counts, intent: str, outcome: Outcome) -> None:
    """Add one outcome of an intent to the counts."""
    if intent in counts or len(counts) < INTENTS_MAX:
        row = counts.setdefault(intent, {})
        row[outcome.value] = row.get(outcome.value, 0) + 1


def report(counts: Counts) -> dict[str, Any]:
    """Return the counts with the share of each kind of routing error, the worst intents first."""
    rows: list[dict[str, Any]] = []
    for intent, row in counts.items():
        routed = row.get(Outcome.ROUTED, 0)
        asked = routed + row.get(Outcome.CLARIFIED, 0) + row.get(Outcome.DECLINED, 0)
        rows.append({
            "intent": intent,
            **{outcome.value: row.get(outcome.value, 0) for outcome in Outcome},
            "misroute_share": round(row.get(Outcome.MISROUTED, 0) / routed, 4) if routed else 0.0,
            "clarify_share": round(row.get(Outcome.CLARIFIED, 0) / asked, 4) if asked else 0.0,
        })  # fmt: skip
    rows.sort(key=lambda one: (-one["misrouted"], -one["clarified"], -one["refused"], one["intent"]))
    totals = {outcome.value: sum(row.get(outcome.value, 0) for row in counts.values()) for outcome in Outcome}
    return {"intents": rows, "totals": totals}
