"""Requests that name the later thing first: before you X, Y · X after Y · once you have Y, X · do not X until Y."""

from __future__ import annotations

import re
from typing import Final

from comity.core.orchestration.split.verbs import AUXILIARIES, WH, lemma, starts_like_a_clause, tokens, without_politeness

_DOER: Final = r"(?:you(?:'ve|\s+have|\s+had|'re|\s+are|\s+will|'ll)?\s+(?:already\s+|first\s+|just\s+|been\s+)?)"
_WHEN: Final = r"(?:after|once|when|as\s+soon\s+as)"
_ASKING: Final = WH | AUXILIARIES
_NOT: Final = r"(?:please\s+)?(?:do\s+not|don't|never)"
# Each pattern names the half to be done first `early`; the second value says which half is the main clause.
_PATTERNS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), main)
    for pattern, main in (
        (r"^(?:but\s+)?(?:before|prior\s+to)\s+(?P<late>[^,]+),\s*(?P<early>.+)$", "early"),
        (rf"^(?:only\s+)?(?:{_WHEN}|having)\s+(?P<early>[^,]+),\s*(?P<late>.+)$", "late"),
        (r"^(?P<late>(?:hold|delay|postpone|defer|pause|stop)\s.+?)\s*,?\s+until\s+(?P<early>.+)$", "late"),
        (rf"^{_NOT}\s+(?P<late>.+?)\s*,?\s+(?:until|before|unless)\s+(?P<early>.+)$", "late"),
        (rf"^(?P<late>.+?)\s*,?\s+(?:but\s+)?(?:only\s+)?{_WHEN}\s+(?P<early>.+)$", "late"),
        (r"^(?P<late>.+?)\s*[,;–—-]*\s+but\s+(?:first|before\s+that)\s*,?\s*(?P<early>.+)$", "both"),
        (r"^(?P<early>.+?)\s*,?\s+(?:but\s+)?(?:before|prior\s+to)\s+(?P<late>.+)$", "early"),
    )
)
_STATE: Final = re.compile(
    r"^(?:the|our|my|all|both|every|each|a|an)\s+(?:[\w'’-]+\s+){1,5}?(?:is|are|has|have)(?:\s+been)?\s+"
    r"(?:[a-z]+ed|done|complete|ready|written|sent|paid|built|set\s+up|through|back|over)\b",
    re.IGNORECASE,
)
_NAMED: Final = re.compile(r"^[A-Z]\w+(?:\s[A-Z]\w+)?\s(?:has|have)\s(?:[a-z]+ed|done|written|sent|paid|built|found|made)\b")
_ADVERB: Final = re.compile(r"^(?:first|already|just|also|then|even|ever)\s+", re.IGNORECASE)


def reversed_parts(text: str) -> tuple[str, str] | None:
    """Return the two halves of a request in the order in which they are to be done; None if nothing in it turns them round."""
    bare = without_politeness(text)
    for pattern, main in _PATTERNS:
        found = pattern.match(bare)
        if not found:
            continue
        early, late = found["early"].strip(" ,"), found["late"].strip(" ,.")
        done, then = _task(early, is_main=main != "late"), _task(late, is_main=main != "early")
        connective = bare[found.end("late") if found.start("late") < found.start("early") else 0 : found.start("early")]
        if done and then and not (_STATE.match(done) and (tokens(then)[0] in _ASKING or "when" in connective.lower())):
            return done, then
    return None


def _task(text: str, *, is_main: bool) -> str:
    """Return a half as a request: the main clause as it is, the other without its doer; empty if it asks for nothing."""
    if is_main:
        return text if starts_like_a_clause(text, is_strong=True) else ""
    bare = re.sub(rf"^{_DOER}", "", text, flags=re.IGNORECASE)
    bare = _ADVERB.sub("", bare)
    words = tokens(bare)
    if _STATE.match(bare) or _NAMED.match(bare):
        return bare  # what another person or a machine does: "the auditor has signed the report"
    if words[:1] in (["know"], ["understand"]):
        return ""
    if len(words) < 2 or (words[0].endswith("s") and not words[0].endswith("ss")):
        return ""
    has_doer = bare != text
    is_gerund = words[0].endswith("ing") and bool(lemma(words[0]))
    return bare if is_gerund or (has_doer and lemma(words[0])) else ""
