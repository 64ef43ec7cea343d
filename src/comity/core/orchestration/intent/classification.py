"""What a classification says: the primary intent with its route and confidence, and what else the request asks for."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

from comity.core.orchestration.intent.classifier import Ranking

THRESHOLD: Final = 0.6  # a confidence below it asks; the least that counts as MEDIUM
LEAD: Final = 0.25  # a second intent whose score is this near to the first is a valid route too
OPTIONS_MAX: Final = 3


class Route(Struct, frozen=True):
    """An agent and the capability of it that serves an intent."""

    target: str
    capability: str


class Classification(Struct, frozen=True, kw_only=True):
    """What a user wants, how sure that is, and which agent can do it."""

    primary: str
    confidence: float
    route: Route
    secondary: tuple[str, ...] = ()
    secondary_routes: tuple[Route, ...] = ()
    marks: tuple[str, ...] = ()  # how the document was written


class Verdict(StrEnum):
    """What to do with a ranking."""

    ROUTE = "route"
    CLARIFY = "clarify"  # one question: which of these
    OFFER = "offer"  # several routes are valid: two or three options
    DECLINE = "decline"  # no intent fits


def judge(ranking: Ranking, threshold: float = THRESHOLD) -> Verdict:
    """Return what a ranking calls for: a text out of scope is declined, a clear one routed, two close ones offered."""
    if not ranking.best or not ranking.is_in_scope:
        return Verdict.DECLINE
    if ranking.confidence >= threshold:
        return Verdict.ROUTE
    return Verdict.OFFER if len(close(ranking)) > 1 else Verdict.CLARIFY


def close(ranking: Ranking) -> tuple[str, ...]:
    """Return the intents whose scores are near the best one's, at most three."""
    if not ranking.scores:
        return ()
    first = ranking.scores[0]
    return tuple(
        name for name, score in zip(ranking.best, ranking.scores, strict=True) if first - score <= LEAD * max(abs(first), 0.1)
    )[:OPTIONS_MAX]
