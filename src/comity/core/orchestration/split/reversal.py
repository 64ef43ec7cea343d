"""Requests that name the later thing first: before you X, Y · X after Y · once you have Y, X · do not X until Y."""

from __future__ import annotations

import re
from typing import Final

from comity.core.orchestration.split.verbs import (
    AUXILIARIES,
    OBJECTS,
    VERBS,
    WH,
    lemma,
    starts_like_a_clause,
    tokens,
    without_politeness,
)

_DOER: Final = r"(?:having\s+|you(?:'ve|\s+have|\s+had|'re|\s+are|\s+will|'ll)?\s+(?:already\s+|first\s+|just\s+|been\s+)?)"
_WHEN: Final = r"(?:after|once|when|as\s+soon\s+as|following|upon|on(?=\s+(?:completion|receipt|approval)\s+of\b))"
_ASKING: Final = WH | AUXILIARIES
_NOT: Final = r"(?:please\s+)?(?:do\s+not|don't|never)"
# Each pattern names the half to be done first `early`; the second value says which half is the main clause.
_PATTERNS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), main)
    for pattern, main in (
        (r"^(?:but\s+)?(?:before|prior\s+to)\s+(?P<late>[^,]+),\s*(?P<early>.+)$", "early"),
        (rf"^(?:only\s+)?{_WHEN}\s+(?P<early>[^,]+),\s*(?P<late>.+)$", "late"),
        (rf"^only\s+{_WHEN}\s+(?P<early>.+?),?\s+(?:should|may|can|must|do)\s+(?:you|we)\s+(?P<late>.+)$", "both"),
        (r"^(?P<early>having\s+[^,]+),\s*(?P<late>.+)$", "late"),
        (r"^(?P<late>(?:hold|delay|postpone|defer|pause|stop)\s.+?)\s*,?\s+until\s+(?P<early>.+)$", "late"),
        (rf"^{_NOT}\s+(?P<late>.+?)\s*,?\s+(?:until|before|unless)\s+(?P<early>.+)$", "late"),
        (rf"^(?P<late>.+?)\s*,?\s+(?:but\s+)?(?:only\s+)?{_WHEN}\s+(?P<early>.+)$", "late"),
        (r"^(?P<late>.+?)\s*[,;–—-]*\s+but\s+(?:first|before\s+that)\s*,?\s*(?P<early>.+)$", "both"),
        (r"^(?P<late>.+?)\s*[,;–—-]*\s+but\s+(?P<early>.+?)\s+(?:first|beforehand)[.!]?$", "both"),
        (r"^(?P<early>.+?)\s*,?\s+(?:but\s+)?(?:before|prior\s+to)\s+(?P<late>.+)$", "early"),
    )
)
_ENDS: Final = (
    r"(?:complete|finishe|succeed|end|close|clear|arrive|passe|land|expire|respond|replie|launche)s?|"
    r"(?:comes?\s+(?:in|back)|goes\s+live)"
)
_ACTS: Final = (
    r"[a-z]{2,}(?<![us])s\s+(?:the|an?|our|my|your|it|them|us|to|on|in|from|with|back|off|up|out|that|their|its|his|her)"
)
_MADE_BY_WORK: Final = re.compile(  # a task named by its noun: "following the risk assessment"
    r"^(?:the\s+|your\s+|our\s+)?(?:[\w'’-]+\s+){0,3}?(?:approval|receipt|completion|assessment|analysis|review|audit|check|scan|inspection|evaluation|"
    r"calculation|simulation|comparison|validation|verification|reconciliation|translation)(?:\s+(?:of|by|from)\s.+)?$",
    re.IGNORECASE,
)
_TOLD: Final = re.compile(
    r"^(?:(?:let|tell|notify|inform|alert|remind|ping|email|call|text)\s+(?:me|us)|explain|describe|outline)\b", re.IGNORECASE
)
_TOLD_WORDS: Final = 3  # "let me know"
_ENDED: Final = re.compile(
    r"\b(?:has|have)\s+(?:been\s+)?[a-z]+(?:ed|en|t|d|ne)\b|\b(?:is|are)\s+(?:done|complete|finished|ready)\b", re.IGNORECASE
)
_STATE: Final = re.compile(
    rf"^(?:the|our|my|all|both|every|each|a|an)\s+(?:[\w'’-]+\s+){{1,5}}?(?:(?:is|are|has|have)(?:\s+been)?\s+"
    rf"(?:[a-z]+ed|done|complete|ready|written|sent|paid|built|set\s+up|through|back|over|final|available|live|known|online|closed|open|in|dry|empty)|{_ENDS}|{_ACTS})\b",
    re.IGNORECASE,
)
_NAMED: Final = re.compile(
    rf"^[A-Z]\w+(?:\s[A-Z]\w+)?(?:(?:\s(?:has|have)|['’]s)\s(?:[a-z]+ed|done|written|sent|paid|built|found|made)|\s(?-i:{_ACTS}|[a-z]{{3,}}(?<![us])s$))\b"
)
_GOVERNS: Final = re.compile(
    r"^we\s+[a-z]+\s+(?:(?:to|on|into|for|with|off|up)\s+)?(?:the|an?|it|them|our|my|this|that|these|those)\b", re.IGNORECASE
)
_OURS: Final = re.compile(r"^we\s+", re.IGNORECASE)  # "before we sign the contract"
_ADVERB: Final = re.compile(r"^(?:first|already|just|also|then|even|ever)\s+", re.IGNORECASE)


def reversed_parts(text: str) -> tuple[str, str] | None:
    """Return the two halves of a request in the order in which they are to be done; None if nothing in it turns them round."""
    bare = without_politeness(text)
    for pattern, main in _PATTERNS:
        found = pattern.match(bare)
        if not found:
            continue
        early, late = found["early"].strip(" ,"), found["late"].strip(" ,.")
        if late.endswith(";"):
            continue  # the condition belongs to what follows it
        done, then = _task(early, is_main=main != "late", is_early=True), _task(late, is_main=main != "early", is_early=False)
        connective = bare[found.end("late") if found.start("late") < found.start("early") else 0 : found.start("early")]
        if (
            done
            and then
            and not (_TOLD.match(then) and (len(tokens(then)) <= _TOLD_WORDS or _is_event(done)))
            and tokens(then if main == "late" else done)[0] not in WH  # "which licences do we need before opening a bar?"
            and not ("when" in connective.lower() and _OURS.match(early))  # an event: "when we leave the house"
            and not (
                _STATE.match(done)
                and (tokens(then)[0] in _ASKING or ("when" in connective.lower() and not _ENDED.search(done)))
            )
        ):
            return done, then
    return None


def _is_event(text: str) -> bool:
    return bool(_STATE.match(text) or _NAMED.match(text))


def _task(text: str, *, is_main: bool, is_early: bool) -> str:
    """Return a half as a request: the main clause as it is, the other without its doer; empty if it asks for nothing."""
    if is_main and starts_like_a_clause(text, is_strong=True):
        return text
    bare = re.sub(rf"^{_DOER}", "", text, flags=re.IGNORECASE)
    bare = _ADVERB.sub("", bare)
    words = tokens(bare)
    if _is_event(bare):
        return bare  # what another person or a machine does: "the auditor has signed the report"
    if is_main:
        return ""
    if is_early and _MADE_BY_WORK.match(bare):
        return bare
    if words[:1] in (["know"], ["understand"]):
        return ""
    if len(words) < 2 or (words[0].endswith("s") and not words[0].endswith("ss")):
        return ""
    has_doer = bare != text
    if (doer := _OURS.match(text)) and words[1:2] and words[1] in VERBS and _GOVERNS.match(bare):
        return text[doer.end() :]
    is_gerund = words[0].endswith("ing") and bool(lemma(words[0]) or words[1] in OBJECTS)
    return bare if is_gerund or (has_doer and lemma(words[0])) else ""
