"""Requests that say two tasks at once, or one verb for several objects: each task and each object is a part."""

from __future__ import annotations

import re
from typing import Final

from comity.core.orchestration.split.connectives import Link, masked
from comity.core.orchestration.split.verbs import PREPOSITIONS, VERBS, starts_like_a_clause, tokens, without_politeness

# Two tasks at once, the first as a noun or a gerund: "while you're checking the stock, draft the offer".
_BESIDE: Final = re.compile(
    r"^(?:whil(?:e|st)\s+(?:(?:you\s+are|you're)\s+|(?=(?:the\s+|our\s+)?[\w'’-]+\s+[a-z]+s\s+(?:the|our|my|an?)\s))|(?:besides|apart\s+from|aside\s+from|in\s+addition\s+to|alongside|along\s+with|together\s+with|as\s+well\s+as)\s+)"
    r"(?!that\b|this\b|it\b|at\s+it|doing\s+that)(?P<one>[^,]{3,200}),\s*(?P<other>.+)$",
    re.IGNORECASE | re.DOTALL,
)
_WHILE: Final = re.compile(
    r"\s*,?\s+while\s+(?:also\s+|simultaneously\s+)?(?=[a-z]+ing\b|[a-z]+\s+[a-z]+s\s+(?:the|our|my|an?)\s|you\s+(?!are\b|were\b|can\b|wait\b))(?:you\s+)?",
    re.IGNORECASE,
)
_TOGETHER: Final = r"(?:in\s+parallel|at\s+the\s+same\s+time|at\s+once|simultaneously|concurrently|side\s+by\s+side)"
_AT_ONCE: Final = re.compile(
    rf"\s*,?\s+(?:all\s+|both\s+)?{_TOGETHER}\s*[.!]?$|^{_TOGETHER}\s*,?\s+",
    re.IGNORECASE,
)
_LISTED: Final = re.compile(r"\s*,\s*and\s+|\s*,\s*|\s+and\s+", re.IGNORECASE)
_THINGS: Final = re.compile(
    r"^(?P<lead>(?:i|we)(?:'d|\s+would)?\s+(?:need|want|like)|give\s+(?:me|us)|get\s+(?:me|us)|prepare|send\s+me)\s+"
    r"(?:(?:these|the\s+following|two|three|four|five|several)\s+)+(?:things|items|documents|deliverables|outputs)\s*:\s*(?P<things>.+)$",
    re.IGNORECASE,
)
_NOUN: Final = re.compile(r"^(?:an?|the|our|my)\s+\w", re.IGNORECASE)
_SECOND_OBJECT: Final = re.compile(  # "calculate the NPV first, then the IRR"
    r"^(?P<verb>[a-z]+)\s+(?P<one>[^,;]{2,80}?)(?:\s+first)?\s*,\s*(?:and\s+)?then\s+(?P<other>(?:[\w'’-]+\s*){1,5})[.!?]?$",
    re.IGNORECASE,
)


def at_once(sentence: str) -> tuple[str, str] | None:
    """Return the two tasks of a sentence that says to do one while the other is done; None for any other sentence."""
    bare = without_politeness(sentence)
    if (found := _BESIDE.match(bare)) and starts_like_a_clause(found["other"], is_strong=True):
        return found["one"], found["other"]
    one, *others = _WHILE.split(bare, maxsplit=1)
    return (one, others[0]) if others and starts_like_a_clause(one, is_strong=True) else None


def objects(sentence: str) -> list[tuple[str, Link]]:
    """Return a request for each object of one verb where the sentence counts or orders them; none for any other sentence."""
    bare = without_politeness(sentence)
    if found := _THINGS.match(bare):
        things = _LISTED.split(found["things"])
        if len(things) > 1 and all(_NOUN.match(one) for one in things):
            return [(f"{found['lead']} {one}", Link.AND if at else Link.SENTENCE) for at, one in enumerate(things)]
    alone = _AT_ONCE.sub("", bare)
    verb = tokens(alone)[:1]
    if not verb or verb[0] not in VERBS:
        return []
    if (found := _SECOND_OBJECT.match(masked(bare))) and _is_object(found["other"]):
        name, one, other = (bare[slice(*found.span(group))] for group in ("verb", "one", "other"))
        return [(f"{name} {one}", Link.SENTENCE), (f"{name} {other}", Link.THEN)]
    things = _LISTED.split(alone)
    if alone != bare and len(things) > 1 and not any(starts_like_a_clause(one) for one in things[1:]):
        return [(things[0], Link.SENTENCE), *((f"{verb[0]} {one}", Link.AND) for one in things[1:])]
    return []


def _is_object(text: str) -> bool:
    return tokens(text)[0] not in PREPOSITIONS | {"back"} and not starts_like_a_clause(text, is_strong=True)
