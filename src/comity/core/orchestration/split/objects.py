"""Requests that say two tasks at once, or one verb for several objects: each task and each object is a part."""

from __future__ import annotations

import re
from typing import Final

from comity.core.orchestration import hidden
from comity.core.orchestration.split.connectives import Link, masked
from comity.core.orchestration.split.verbs import PAIRING, PREPOSITIONS, VERBS, starts_like_a_clause, tokens, without_politeness

# Two tasks at once, the first as a noun or a gerund: "while you're checking the stock, draft the offer".
_BESIDE: Final = re.compile(
    r"^(?:whil(?:e|st)\s+(?:(?:you\s+are|you're|you(?=\s+[a-z]+\s+(?:the|our|my|an?)\b))\s+|(?=(?:the\s+|our\s+)?[\w'’-]+\s+[a-z]+s\s+(?:the|our|my|an?)\s))|(?:at\s+the\s+same\s+time\s+as\s+(?:(?:you\s+are|you\'re)\s+)?|besides|apart\s+from|aside\s+from|in\s+addition\s+to|alongside|along\s+with|together\s+with|as\s+well\s+as)\s*)"
    r"(?!that\b|this\b|it\b|at\s+it|doing\s+that)(?P<one>[^,]{3,200}),\s*(?P<other>.+)$",
    re.IGNORECASE | re.DOTALL,
)
_WHILE: Final = re.compile(
    r"\s*,?\s+while\s+(?:also\s+|simultaneously\s+)?(?=[a-z]+ing\b|[a-z]+\s+[a-z]+s\s+(?:the|our|my|an?)\s|(?:someone|somebody)(?:\s+else)?\s+[a-z]+s\s|the\s+(?:[\w-]+\s+){1,3}(?:is|are)\s+(?:asked|requested|invited|directed)\s|you\s+(?!are\b|were\b|can\b|wait\b)|you(?:'re|\s+are)\s+[a-z]+ing\b(?!\s+(?:at|that)\b))(?:you(?:'re|\s+are)?\s+)?",
    re.IGNORECASE,
)
_TOGETHER: Final = r"(?:in\s+parallel|at\s+the\s+same\s+time|at\s+once|simultaneously|concurrently|side\s+by\s+side)"
_AT_ONCE: Final = re.compile(
    rf"\s*,?\s+(?:all\s+|both\s+)?{_TOGETHER}\s*[.!]?$|^{_TOGETHER}\s*,?\s+",
    re.IGNORECASE,
)
_LISTED: Final = re.compile(
    r"\s*,?\s+and\s+(?:also|separately)\s+|\s*,\s*and\s+|\s*,?\s+(?:as\s+well\s+as|along\s+with|plus)\s+|\s*,\s*|\s+(?:and|\+|&)\s+",
    re.IGNORECASE,
)
_THINGS: Final = re.compile(
    r"^(?P<lead>(?:i|we)(?:'d|\s+would)?\s+(?:need|want|like)|give\s+(?:me|us)|get\s+(?:me|us)|prepare|send\s+me|need)?\s*"
    r"(?:(?:(?:these|the\s+following|two|three|four|five|several)\s+)+(?:things|items|documents|deliverables|outputs)|in\s+one\s+go|all\s+in\s+one)(?:\s+please)?(?:\s*:|\s+[–—-])\s*"
    r"(?P<things>.+)$",
    re.IGNORECASE,
)
_OF_A_DAY: Final = re.compile(r"^(?:today|tonight|tomorrow|yesterday|this\s+\w+|next\s+\w+|last\s+\w+)['’]s\s", re.IGNORECASE)
_NOUN: Final = re.compile(r"^(?:an?|the|our|my|one|two|three|four)\s+\w", re.IGNORECASE)
_SECOND_OBJECT: Final = re.compile(  # "calculate the NPV first, then the IRR"
    r"^(?P<verb>[a-z]+)\s+(?P<one>[^,;]{2,80}?)(?:\s+first)?\s*,\s*(?:and\s+)?then\s+(?P<other>(?:[\w'’-]+\s*){1,5})[.!?]?$",
    re.IGNORECASE,
)
# One verb, two things, each with a complement of its own: "find a hotel in Turin and a train from Milan".
_WITH_OWN: Final = r"(?:[\w'’-]+\s+){1,4}?(?:for|in|of|from|on|at|to|about)\s+[^,;:.?!]{2,60}"
_ASKED_FOR: Final = re.compile(
    r"^(?P<verb>(?:find\s+out|find|know|provide|obtain|get|book|order|fetch|pull|request|arrange|reserve|buy|prepare|write|draft|create|check|make|schedule|design|look\s+up)"
    r"(?:\s+(?:me|us))?|(?:i|we)(?:'d|\s+would|\s+hereby|\s+also)*\s+(?:need|want|like|request|require)(?:\s+to\s+(?:know|see|have))?|(?:i'm|we're)\s+(?:after|looking\s+for)|(?:give|send|show|tell)\s+(?:me|us))\s+",
    re.IGNORECASE,
)
_THING_OF_ITS_OWN: Final = re.compile(
    rf"^(?:(?:an?|the|my|our|one|two|three|four)\s+{_WITH_OWN}|one\s+(?:for|in|from|on|at|to)\s+[^,;:.?!]{{2,60}}|[a-z]+s\s+(?:for|in|from|on|at|to)\s+[^,;:.?!]{{2,60}})[.!?]?$",
    re.IGNORECASE,
)
_TWO_ENDS: Final = re.compile(  # "send the lease to Ann and the keys to Bob", "ask Jo for the number and Ravi for the date"
    r"^(?P<verb>(?P<whom>ask)|[a-z]+)\s+"
    r"(?P<one>(?:[\w'’-]+\s+){1,4}?(?P<prep>to|for|in|at|from|on)\s+[^,;:.?!]{2,40}?)\s*,?\s+and\s+"
    r"(?P<other>(?!(?:the\s+)?(?:rest|others?)\b)(?:the\s+(?:[\w'’-]+\s+){1,3}?|(?-i:[A-Z])[\w'’-]+\s+|(?(whom)[a-z]+\s+|(?!)))(?P=prep)\s+[^,;:.?!]{2,60})[.!?]?$",
    re.IGNORECASE,
)
_TWO_RECIPIENTS: Final = re.compile(  # "write to the bank about the loan and to the council about the drain"
    r"^(?P<verb>[a-z]+)\s+(?P<one>(?P<prep>to|with)\s+[^,;]+?\s(?:about|regarding|for|on)\s[^,;]+?)\s*,?\s+and\s+"
    r"(?P<other>(?P=prep)\s+[^,;]+?\s(?:about|regarding|for|on)\s[^,;]+)$",
    re.IGNORECASE,
)
_LEAD: Final = re.compile(
    r"^(?:(?P<asked>what(?:'s|\s+is|\s+are)|how\s+(?:big|high|large)\s+(?:is|are)|(?:i|we)\s+(?:need|want))|[a-z]+(?:\s+(?:me|us|out|up))*)\s+",
    re.IGNORECASE,
)
THINGS_CHARS_MAX: Final = 200  # of a request that may ask for several things by one verb
THINGS_MAX: Final = 5
BARE_WORDS_MAX: Final = 4  # of a thing that no verb asks for: "net present value and payback"
_FRACTIONS: Final = frozenset({"half", "quarter", "third"})  # "for two and a half hours"
_HELD: Final = re.compile(r"\b(?:with|between|including|that|which|who|where|their|its|and|so)\b", re.IGNORECASE)


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
        things = _LISTED.split(found["things"].replace(";", ","))
        if len(things) > 1 and all(_NOUN.match(one) or _OF_A_DAY.match(one) for one in things):
            return [(f"{found['lead'] or 'get'} {one}", Link.AND if at else Link.SENTENCE) for at, one in enumerate(things)]
    alone = _AT_ONCE.sub("", bare)
    if (found := _ASKED_FOR.match(bare)) and (each := _of_each(found["verb"], _LISTED.split(bare[found.end() :]))):
        return each
    verb = tokens(alone)[:1]
    if not verb or verb[0] not in VERBS:
        return []
    if (found := _SECOND_OBJECT.match(masked(bare))) and _is_object(found["other"]):
        name, one, other = (bare[slice(*found.span(group))] for group in ("verb", "one", "other"))
        return [(f"{name} {one}", Link.SENTENCE), (f"{name} {other}", Link.THEN)]
    if (
        verb[0] not in PAIRING
        and (found := _TWO_ENDS.match(bare) or _TWO_RECIPIENTS.match(bare))
        and _are_apart(found["one"], found["other"])
    ):
        return [(f"{found['verb']} {found['one']}", Link.SENTENCE), (f"{found['verb']} {found['other']}", Link.AND)]
    things = _LISTED.split(alone)
    if (
        alone != bare
        and len(things) > 1
        and "then" not in tokens(alone)
        and not any(starts_like_a_clause(one) for one in things[1:])
    ):
        return [(things[0], Link.SENTENCE), *((f"{verb[0]} {one}", Link.AND) for one in things[1:])]
    return []


def things(text: str) -> list[str]:
    """Return a request for each of the things that one verb, or no verb, asks for, "the NPV and the IRR"; none for one thing.

    Whether they are served apart is not told by the words: the caller asks a classifier.
    """
    text, values = hidden.named(text)
    bare = without_politeness(text).rstrip(" .?!")
    lead = _LEAD.match(bare)
    verb = tokens(bare)[:1]
    if not verb or len(text) > THINGS_CHARS_MAX or verb[0] in PAIRING:
        return []
    is_led = lead is not None and (lead["asked"] is not None or verb[0] in VERBS)
    asked = lead.group() if lead is not None and is_led else ""
    each = [one for one in _LISTED.split(bare[len(asked) :]) if one.strip()]
    if not is_led and any(len(tokens(one)) > BARE_WORDS_MAX or starts_like_a_clause(one) for one in each):
        return []
    return [hidden.restored(f"{asked}{one}", values) for one in each] if 1 < len(each) <= THINGS_MAX else []


def _of_each(verb: str, things: list[str]) -> list[tuple[str, Link]]:
    """Return a request for each of several things, none of which shares its complement or its article with another."""
    if len(things) < 2 or not all(_THING_OF_ITS_OWN.match(one) for one in things) or not _are_apart(*things):
        return []
    if not all(_NOUN.match(one) for one in things[1:]):
        return []  # "a forecast of sales and costs for two years"
    if len(things) == 2 and len({tokens(one)[0] in {"the", "my", "our"} for one in things}) > 1:
        return []  # "a list of the guests and the reasons for coming"
    return [(f"{verb} {one}", Link.AND if at else Link.SENTENCE) for at, one in enumerate(things)]


def _are_apart(*things: str) -> bool:
    """Return whether nothing holds several things together: no word for all of them, no common end."""
    words = [tokens(one) for one in things]
    is_other = len({one[-1] for one in words}) == len(words) and not any(one[1] in _FRACTIONS for one in words)
    return is_other and not _HELD.search(" ".join(things)) and not any(starts_like_a_clause(one) for one in things[1:])


def _is_object(text: str) -> bool:
    return tokens(text)[0] not in PREPOSITIONS | {"back"} and not starts_like_a_clause(text, is_strong=True)
