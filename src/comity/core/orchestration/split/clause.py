"""Clauses of a request: where the main clause begins, and whether a verb belongs to the clause before its connective."""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from comity.core.orchestration.split.connectives import WHEN
from comity.core.orchestration.split.formal import FORMAL, is_statement_like
from comity.core.orchestration.split.verbs import (
    AMBIGUOUS,
    AUXILIARIES,
    DETERMINERS,
    PREPOSITIONS,
    RARE,
    VERBS,
    WH,
    lemma,
    starts_like_a_clause,
    tokens,
    without_politeness,
)

ADVERBIAL_WORDS_MAX: Final = 9  # of what may stand before the verb of a main clause without a comma
_WORDS: Final = re.compile(r"\S+")
_ADVERBIAL: Final = re.compile(
    r"^\s*(?:(?:and|but|then|so)\s+)*(?:from|with|using|for|in|on|out\s+of|of|given|among|against|to(?=\s+(?-i:[A-Z]))"
    r"|(?:if|once|when|after|as\s+soon\s+as|provided|assuming|should)\s+"
    r"(?:so|not|yes|no|it|that|this|they|those|these|both|all|everything|everyone|any|there|you|we|one|neither|none)\b)\s*",
    re.IGNORECASE,
)
_ALONE: Final = {
    "this",
    "that",
    "these",
    "those",
    "it",
    "them",
    "both",
    "all",
    "any",
    "each",
    "another",
    "two",
    "three",
    "ten",
    "so",
}
_OPEN: Final = (DETERMINERS | PREPOSITIONS | {"or", "you", "we", "they", "i"}) - _ALONE  # a verb does not follow such a word

_MODAL: Final = r"(?:can|could|should|must|will|would|may|might)"
_UNFINISHED: Final = re.compile(rf"\b(to|{_MODAL})\s+((?:\w+\s*,\s*)*\w+)\s*,?$", re.IGNORECASE)
_TOLD_TO: Final = re.compile(
    r"(?:^|\b(?=\w+ing\b))(?:tell|ask|instruct|allow|teach|train|advise)(?:ing)?\s+(?:[\w'’-]+\s+){1,4}?to\s+\w+",
    re.IGNORECASE,
)
_HOW_TO: Final = re.compile(
    rf"^(?:(?:how|where|when)\s+(?:do|{_MODAL})\s+(?:i|we|you|one)\b"
    r"|(?:how|what|which)\b.*\b(?:i|we|you|one|it|takes?|needed|required)\b.*\bto\s+\w+)",
    re.IGNORECASE,
)
_NEEDED_TO: Final = re.compile(
    r"\b(?:how|what|which)\b[^,;]*\b(?:need|needs|have|has|takes?|required|needed|wants?)\s+to\s+\w+", re.IGNORECASE
)
_ASSUMED: Final = re.compile(
    r"\b(?:assuming|supposing|given|provided|imagine|suppose)\s+(?:that\s+)?[a-z]+\s+[^,;]+$", re.IGNORECASE
)
_MEANT_TO: Final = re.compile(  # "write a script to fetch the rates and mail them to me"
    r"\b(?:an?|the|my)\s+(?:[\w-]+\s+)?(?:reminder|request|instructions?|permission|invitation|option|alarm|rule|script|macro|bot|function|"
    r"program|tool|app|query|way|chance)\s+(?:to|that|which)\s+\w+[^,;]*$",
    re.IGNORECASE,
)
_TELL_WHICH: Final = re.compile(r"\b(?:tell\s+(?:me|us)|know|say|find\s+out)\s+(?:which|who|what)\b[^,;]*$", re.IGNORECASE)
_MAY_I: Final = re.compile(r"^(?:can|could|may|should|am|do)\s+i\b", re.IGNORECASE)
_CAUSED: Final = re.compile(
    r"^have\s+(?!you\b|we\b|i\b|they\b)(?:[\w'’-]+\s+){1,3}?(?P<verb>[a-z]+)\s+(?:the|an?|my|our)\s", re.IGNORECASE
)
_ON_IT: Final = re.compile(r"^\s*[a-z]+\s+(?:(?:up|out|off|down)\s+)?(?:it|them)\b", re.IGNORECASE)
_TURNING: Final = frozenset({"convert", "turn", "change", "transform", "switch", "export"})
_ALTERNATIVES: Final = re.compile(r"\s\bor\b[^?]*\?$", re.IGNORECASE)
_RELATIVE: Final = r"\s(?:who|that|which|where|whose\s+\w+|so\s+that|so)\s+(?:(?:i|we|they|people|guests|you)\s+)?"
_ABLE: Final = re.compile(rf"{_RELATIVE}{_MODAL}\s+(?:(?:both|also|either|not)\s+)?[a-z]+\b[^,;:.?!]*$", re.IGNORECASE)
_DOES: Final = re.compile(r"s\s(?:who|that|which)\s+(?P<verb>[a-z]+)\b[^,;:.?!]*$", re.IGNORECASE)
_OF_MANY: Final = re.compile(r"s\b[^,;:.?!]*\s(?:who|that|which)\s+[a-z]+\b[^,;:.?!]*$", re.IGNORECASE)
_STATIVE: Final = frozenset(
    [
        "include",
        "offer",
        "accept",
        "cost",
        "contain",
        "support",
        "allow",
        "require",
        "have",
        "provide",
        "serve",
        "fit",
        "cover",
        "weigh",
    ]
)
_MODALS: Final = frozenset({"can", "could", "should", "will", "would", "may", "might"})
_SAYING: Final = re.compile(
    r"\b(?:say(?:ing)?|stat(?:e|ing)|explain(?:ing)?|announc(?:e|ing)|mention(?:ing)?|remind(?:ing)?|inform(?:ing)?|tell(?:ing)?|warn(?:ing)?|not(?:e|ing)|since|because|when|if)\b",
    re.IGNORECASE,
)
_SHOWN_HOW: Final = re.compile(r"\b(?:explain|show|teach|describe)\b[^,;]*\bhow\s+to\s+\w+[^,;]*$", re.IGNORECASE)
_WAITING: Final = re.compile(r"\b(?:wait|waiting)\s+(?:for|until)\s[^,;]+$", re.IGNORECASE)
_ENDS_WITH_VERB: Final = re.compile(r"\b(?:who|that|which|how|where)\s(?:[\w-]+\s+)*?(?P<verb>[a-z]+)$", re.IGNORECASE)
_ARTICLES: Final = frozenset({"the", "a", "an", "my", "our", "your", "his", "her", "its", "their", "this"})
_OTHERS: Final = re.compile(r"^\s*[a-z]+\s+(?:them|him|her|me|us|the\s+(?:one|best|top|first))\b", re.IGNORECASE)


def main_clause(text: str) -> str:
    """Return a text from its main clause on, without the phrase or the condition before it; empty if there is no such clause.

    "From the top ten pick two", "if so reserve it", "once that's all confirmed add it to my calendar".
    """
    found = _ADVERBIAL.match(text)
    if not found:
        return ""
    last = tokens(found.group())[-1]
    for word in islice(_WORDS.finditer(text, found.end()), ADVERBIAL_WORDS_MAX):
        said = word.group().strip(",;:").lower()
        if last not in _OPEN and said in VERBS and starts_like_a_clause(text[word.start() :]):
            return text[word.start() :]
        last = said
    return ""


def is_unfinished(text: str) -> bool:
    """Return whether a text ends with a verb whose object is still to come: "what does it cost to build"."""
    found = _UNFINISHED.search(text)
    if found is None or not found[2].islower():
        return False
    verb = tokens(found[2])[0]
    if verb.endswith("ing") or _WAITING.search(text):
        return False  # "according to rating", "wait for the error rate to settle"
    is_other_form = verb in AMBIGUOUS and tokens(text)[0] in _TURNING  # "convert it to text"
    return found[1].lower() != "to" or (bool(lemma(verb) or verb in RARE) and not is_other_form)


def is_inside(left: str, right: str, connective: str) -> bool:
    """Return whether a verb that follows a connective has its subject or its object in the clause on the other side."""
    left = FORMAL.sub("", left.strip(), count=1)
    if _SHOWN_HOW.search(left) and "," not in connective and _ON_IT.match(right):
        return True  # "explain how to put the phone on silent and switch it off"
    said, told = tokens(without_politeness(left)), tokens(without_politeness(right))
    if not said or not told:
        return False
    if said[0] in WH and told[0] in _MODALS and told[1:2] and told[1] in VERBS | RARE:
        return True  # "which of the volunteers have a licence and can drive the bus?"
    if told[0] in WH | AUXILIARIES:
        return False
    is_statement = is_statement_like(right.strip()) and ";" not in connective
    if (
        is_statement
        and starts_like_a_clause(left)
        and not is_statement_like(without_politeness(left))
        and FORMAL.sub("", right.strip()) == right.strip()
    ):
        return (
            _SAYING.search(left.rpartition(";")[2]) is not None
        )  # "write a notice that dogs must be led and the gate should be closed"
    is_then = "then" in connective.lower()
    is_whole = "," in connective and (
        WHEN.match(right) or not DETERMINERS.isdisjoint(told[1:2])
    )  # "…who will come, scale the recipe"
    is_asked = without_politeness(right) != right.strip()  # "could you …"
    if not is_then and not is_whole and not is_asked and is_unfinished(left):
        return True  # verbs of one object: "what does it cost to build and maintain the platform"
    if said[0] in WH | AUXILIARIES and _ALTERNATIVES.search(right):
        return True  # "what comes first, paying or saving?"
    if is_asked:
        return False
    if "," in connective:
        return False
    if _MAY_I.match(left) and right.rstrip().endswith("?"):
        return True  # "can I cancel a ticket and get the money back?"
    if _TELL_WHICH.search(left) and right.rstrip().endswith("?"):
        return True  # "can you tell me which branches open late and offer parking?"
    if said[0] in WH | AUXILIARIES and not without_politeness(left).rstrip().endswith("?") and right.rstrip().endswith("?"):
        return True  # a second predicate of one question: "which carriers can collect late and deliver early?"
    caused = _CAUSED.match(without_politeness(left))
    if caused and caused["verb"].lower() in VERBS and _ON_IT.match(right):
        return True  # "have the courier collect the parcel and leave it with the neighbour"
    return bool(
        _HOW_TO.match(left)
        or _ASSUMED.search(left)
        or _MEANT_TO.search(left)
        or _NEEDED_TO.search(left)
        or _is_in_relative(left, right)
        or (not is_then and _TOLD_TO.search(without_politeness(left)))
    )


def _is_in_relative(left: str, right: str) -> bool:
    """Return whether a relative clause goes on: "someone who can tune a piano and repair its pedals"."""
    if _OTHERS.match(right):
        return False  # its subject is not done to itself: "find those who can help and invite them"
    if _ABLE.search(left):
        return True
    found = _ENDS_WITH_VERB.search(left)
    if found and found["verb"].lower() in VERBS | RARE and tokens(left)[-2] not in _ARTICLES:
        return True  # "how hospitals train and retain nurses"
    if tokens(right)[0] in _STATIVE and _OF_MANY.search(left):
        return True  # "hotels that allow pets and include breakfast"
    found = _DOES.search(left)
    words = tokens(right)
    return bool(found and lemma(found["verb"].lower()) == found["verb"].lower() and words[1:2] and words[1] in _SPARE)


_SPARE: Final = frozenset(
    {"before", "after", "by", "on", "in", "at", "to", "from", "for", "with", "within", "until", "late", "early"}
)
