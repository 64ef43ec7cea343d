"""Where a request may be cut: connectives, ends of sentences, items of a list; and how each one orders its parts."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from comity.core.orchestration.split.verbs import GOING_ON, lemma, starts_like_a_clause, tokens, without_politeness


class Link(StrEnum):
    """How a part hangs on what stands before it."""

    THEN = "then"  # waits for the group before it
    LAST = "last"  # waits for everything before it
    ALSO = "also"  # independent of what stands before it
    AND = "and"  # beside its neighbour, unless it refers back
    SENTENCE = "sentence"  # independent, unless it refers back
    NUMBERED = "numbered"  # a step


STRONG: Final = frozenset({Link.THEN, Link.LAST, Link.ALSO, Link.NUMBERED})

_THEN: Final = (
    r"(?:and\s+|but\s+)?(?:(?:only\s+)?then|(?:the|your)\s+(?:next|second|third)\s+step\s+is\s+to|in\s+a\s+(?:second|third|next)\s+step|"
    r"so(?:\s+that)?\s+(?:you|we)\s+can(?=\s+{verb})|after(?:\s+that|wards?|\s+this|\s+which(?:\s+(?:you|we))?)|subsequently|thereafter|following\s+that|from\s+there|"
    r"next(?=\s*,|\s+(?:up|please|{verb}))|(?:once|when|as\s+soon\s+as)\s+(?:(?:you|we)(?:'re|\s+are|'ve|\s+have)\s+(?:done|finished|got\s+"
    r"(?:it|that|them))|(?:you|we)\s+have\s+(?:it|that|them|both|all|those|these|the\s+(?:answers?|results?|numbers|figures))|"
    r"you\s+(?:know|see)\s+(?:it|that|them|this|the\s+(?:answers?|results?))|(?:that|this|it|which)(?:'s|\s+is|\s+has\s+been)\s+(?:done|finished|complete|completed|ready|in|clear|through|settled|decided|known|"
    r"sorted|fixed|agreed|over)|"
    r"done|finished|complete|completed|ready)(?:\s+with\s+(?:that|it|this))?|"
    r"(?:once|when|as\s+soon\s+as|after)\s+(?:both|all|they|everyone|everybody)(?:\s+of\s+(?:them|these|those))?\s+(?:have|has|are)\s+"
    r"(?:[a-z]+(?:ed|en)|done|ready|in|back|there)|with\s+that\s+(?:done|in\s+hand)|second(?:ly)?(?=\s*,|\s+{verb})|"
    r"third(?:ly)?(?=\s*,|\s+{verb})|fourth(?:ly)?(?=\s*,|\s+{verb})|as\s+(?:a|the)\s+(?:second|third|next|following)\s+step)"
)
_LAST: Final = (
    r"(?:and\s+)?(?:finally|lastly|last\s+but\s+not\s+least|last(?=\s*,)|at\s+the\s+end|to\s+(?:finish|conclude|wrap\s+up)|in\s+the\s+end|"
    r"as\s+(?:a|the)\s+(?:last|final)\s+step)"
)
_ALSO: Final = (
    r"(?:and\s+|but\s+)?(?:also|in\s+addition|additionally|separately|independently|besides(?:\s+that)?|meanwhile|in\s+parallel|in\s+the\s+meantime|"
    r"at\s+the\s+same\s+time|simultaneously|while\s+(?:you\s+are|you're)\s+(?:at\s+it|doing\s+that)|on\s+top(?:\s+of\s+that)?|apart\s+from\s+that|"
    r"furthermore|moreover|plus|as\s+well\s+as|and\s+on\s+the\s+side|oh\s*,?\s*and|another\s+thing)"
)
_VERB: Final = r"(?:[a-z]+)\s+(?:the|a|an|our|my|it|them|this|that|these|those|us|me|her|him)\b"
BOUNDARY: Final = re.compile(
    rf"""(?P<then>(?:\s*[,;–—-]+\s*|\s+|^)(?:{_THEN.replace("{verb}", _VERB)})\b\s*,?\s*)
    |(?P<last>(?:\s*[,;–—-]+\s*|\s+|^)(?:{_LAST})\b\s*,?\s*)
    |(?P<also>(?:\s*[,;–—-]+\s*|\s+|^)(?:{_ALSO})\b\s*,?\s*)
    |(?P<and>\s*,\s*(?:and|but|so)\s+|\s+and\s*,\s*|\s+(?:and|&)\s+|\s*;\s*|\s+[–—]\s+|\s*,\s*)""".replace("\n    ", ""),
    re.IGNORECASE,
)
_FOLLOWED: Final = re.compile(r"\s*,?\s+(?:and\s+)?(?:which\s+is\s+)?followed\s+by\s+", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"(?<=[.?!])[\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9a-z])|\n+")
_ABBREVIATED: Final = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|mr|mrs|ms|dr|no|inc|ltd|corp|co|st|approx|fig|q|u\.s|jan|feb|mar|apr|aug|sept?|oct|nov|dec)|\b[a-z])\.$",
    re.IGNORECASE,
)
_COMPANY: Final = re.compile(r"\b(?:etc|inc|ltd|corp|co)\.$", re.IGNORECASE)  # ends a sentence as often
_ITEM: Final = re.compile(
    r"(?:^|(?<=[\s:;,.]))(?:(?P<letter>\(?[a-h]\))|"
    r"(?P<step>step\s+\d{1,2}\s*[:.)-]|\(?\d{1,2}[.):](?!\d))|(?P<bullet>(?<![^\n])[ \t]*[-*•]))\s+",
    re.IGNORECASE,
)
_ITEMS_MIN: Final = 2


def masked(text: str) -> str:
    """Return a text of the same length in which nothing quoted or in brackets can be cut."""
    return _QUOTED.sub(lambda found: "x" * len(found.group()), text)


def without_back_phrase(text: str) -> str:
    """Return a text without a beginning such as "based on that"."""
    return _BACK_PHRASE.sub("", text.lstrip(), count=1)


def followed(text: str) -> list[str]:
    """Return a text cut at every "followed by"."""
    return [piece for piece in _FOLLOWED.split(text) if piece.strip()]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text; an abbreviation does not end one."""
    found: list[str] = []
    for piece in _SENTENCE.split(text):
        is_abbreviated = (
            bool(found) and _ABBREVIATED.search(found[-1]) and not (_COMPANY.search(found[-1]) and _begins_anew(piece))
        )
        if found and (is_abbreviated or not tokens(piece)):
            found[-1] = f"{found[-1]} {piece}"
        elif tokens(piece):
            found.append(piece)
    return found


def _begins_anew(piece: str) -> bool:
    return piece[:1].isupper() and bool(_BACK_PHRASE.match(piece) or BOUNDARY.match(piece) or starts_like_a_clause(piece))


def items(text: str) -> tuple[str, list[str], bool] | None:
    """Return what stands before a list, its items, and whether they are steps; None if there is no list.

    Items are steps if they are called so, or if they have numbers and nothing stands before them.
    """
    marks = list(_ITEM.finditer(text))
    if len(marks) < _ITEMS_MIN:
        return None
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    found = [text[mark.end() : end].strip(" \t\n,;") for mark, end in zip(marks, ends, strict=True)]
    numbers = [int(digits) for mark in marks if mark["step"] for digits in re.findall(r"\d+", mark["step"])]
    if numbers and numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return None  # figures in a sentence, not numbers of items
    letters = "".join(re.findall(r"[a-h]", "".join(mark["letter"] or "" for mark in marks).lower()))
    if not "abcdefgh".startswith(letters):
        return None
    intro = text[: marks[0].start()].strip(" \t\n:")
    is_steps = any(mark["step"] and mark["step"].lower().startswith("step") for mark in marks)
    is_numbered = bool(numbers) and not intro and not any(one.endswith("?") for one in found)
    return intro, [one for one in found if one], is_steps or is_numbered


WHEN: Final = re.compile(r"^\s*(?:and\s+)?(?:if|when|once|after|as\s+soon\s+as|upon|following)\s", re.IGNORECASE)
_RESULTS: Final = r"(?:results?|findings?|outcomes?|outputs?|conclusions?|insights?|answers?|totals?)"
_PERIODS: Final = r"(?:year|month|week|quarter|time|day|morning|afternoon|evening|summer|season)"
_OWN: Final = rf"(?:{_PERIODS}|campaign|project|product|company|market|region|team)"  # the user's, no result
_DONE_WITH: Final = (
    r"(?:turn|put|use|send|share|do|make|present|show|email|mail|forward|summari[sz]e|translate|format|write|save|take|explain|submit|"
    r"publish|convert|compare|discuss|review)"
)
_MANY: Final = (
    r"(?:numbers|figures|segments|personas|channels|values|scenarios|options|points|groups|topics|names|candidates|items|risks|"
    r"customers|ideas|projections|estimates)"
)
_ONE_THING: Final = (
    r"(?:analysis|number|figure|value|list|forecast|plan|summary|report|memo|draft|segment|persona|mix|information|data|estimate|"
    r"ranking|framework|projection|brief|recommendation|assessment|comparison|map|table|deck)"
)
_TAKEN: Final = r"(?:choose|pick|select|book|buy|take|keep|order|recommend)"
_BACK_WORDS: Final = re.compile(
    "|".join(
        rf"\b(?:{pattern})\b".replace(" ", r"\s+")
        for pattern in (
            r"it|them|they|its|their|both|thereof|therewith|accordingly",
            rf"(?:the|those|these|its|your|any|all) (?:[a-z]+ )?(?:{_RESULTS}|above|winners?|former|latter)",
            r"(?:based|depending|building|relying|drawing) (?:up)?on (?:that|this|it|these|those|the)",
            rf"(?:from|with|of|on|using|for|to|into|about|after|in|around) (?:that|this|these|those)(?! {_OWN})",
            rf"{_DONE_WITH} (?:me |us )?(?:that|this|these|those|everything|all)(?! {_PERIODS})",
            rf"(?:that|this) {_ONE_THING}",
            r"the (?:same|best|top|worst|cheapest|strongest|weakest|highest|lowest) (?:ones?|two|three|four|five|six|ten|\d+)",
            r"each (?:one|of them)|for each(?! [a-z])|whatever|one of them|the first one",
            r"if (?:so|not|any|necessary)|in that case|from there|inside it",
            r"(?:these|those)(?=\W*$)|the (?:[a-z]{2,}er|other) ones?",
            rf"(?:these|those) (?!{_OWN}\b)[a-z]+s",
            r"the (?:figure|number|value|amount)(?! of| for)",
            r"(?:you|we) (?:find|found|identify|identified|spot|spotted|come across|discover|discovered)",
            rf"{_TAKEN} the (?:best|worst|[a-z]{{3,}}est|winner|top (?:one|two|three|\d+))(?!\s+(?!ones?\b)[a-z])",
            r"(?:pick|choose|select|keep|take|recommend) one(?! [a-z])",
            r"what (?:you|we) (?:have )?(?:find|found|learn(?:ed|t)?|see|saw|get|got|discover(?:ed)?|come up with)",
        )
    ),
    re.IGNORECASE,
)
_BACK_PHRASE: Final = re.compile(
    r"^(?:(?:and|then|so)\s+)*(?:for\s+(?:each|every|all)\s+of\s+(?:them|these|those|the\s+[a-z]+)"
    r"|(?:based|depending|building|relying|drawing|using|from|with|given|in\s+light\s+of|taking|by\s+means\s+of)\s+(?:(?:up)?on\s+)?"
    rf"(?:(?:that|this)\s+{_ONE_THING}|(?:these|those)\s+{_MANY}|that|this|it|them|these|those|both"
    r"|(?:the|those|these|its|their)\s+(?:[a-z]+\s+){0,2}?(?:results?|findings?|outcomes?|outputs?|answers?|"
    r"insights?|conclusions?|numbers|figures|values?|segments?|analysis)))\s*,?\s+",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(r"\"[^\"]{1,400}\"|“[^”]{1,400}”|\([^()]{1,400}\)|(?<!\w)'[^']{1,400}'(?!\w)")
EARLIER: Final = re.compile(
    r"^(?:but\s+)?(?:before\s+(?:that|this|doing\s+(?:so|that))|prior\s+to\s+(?:that|this)|beforehand|but\s+first|first\s+though)\b\s*,?\s*",
    re.IGNORECASE,
)
_DELIVERED: Final = re.compile(
    r"^(?:\W*)(?:send|email|mail|forward|post|upload|submit|share|present|publish|report\s+back)\s+(?:to|with|by|as|back)\b",
    re.IGNORECASE,
)
_NOTIFIED: Final = re.compile(  # that it is done; what else is said would follow
    r"^\W*(?:let\s+(?:[\w'’-]+\s+){1,3}know|(?:notify|inform|alert)(?:\s+[\w'’-]+){1,3})\W*$", re.IGNORECASE
)
_CONCLUDED: Final = re.compile(  # of what stands before it, as nothing else is named
    r"^\W*(?:recommend|suggest|propose|pick|choose|select|name|declare|decide\s+on)\s+(?:an?|one|two|three|\d+)(?:\s+[\w'’-]+){0,2}\W*$",
    re.IGNORECASE,
)
_BARE_PLURAL: Final = re.compile(
    r"\b(?:request|get|collect|write|create|generate|make|draw|build|draft|gather|find|order|take)\s+([a-z]{3,}s)\b",
    re.IGNORECASE,
)
_NEW: Final = re.compile(r"\b(?:an?|some|any|every|each)\s+((?:[a-z-]+\s+){0,2}[a-z-]+)", re.IGNORECASE)
_KNOWN: Final = re.compile(r"\b(?:the|that|this)\s+((?:[a-z-]+\s?){1,3})", re.IGNORECASE)
_DOCUMENTS: Final = frozenset(  # verbs of requests that are things as well
    {"report", "plan", "forecast", "brief", "draft", "list", "model", "estimate", "design", "budget", "quote", "invoice", "map",
     "chart", "survey", "test"}
)  # fmt: skip
_RESULT_OF: Final = {  # what a verb of requests makes
    "choice": "pick", "clusters": "cluster", "groups": "group", "total": "sum",
    "allocation": "allocate", "analysis": "analyse", "assessment": "assess", "calculation": "calculate",
    "comparison": "compare", "description": "describe", "evaluation": "evaluate", "explanation": "explain",
    "projection": "project", "ranking": "rank", "rating": "rate", "ratings": "rate", "recommendation": "recommend",
    "recommendations": "recommend", "scores": "score", "segments": "segment", "simulation": "simulate",
    "link": "upload", "recording": "record", "summary": "summarise", "transcript": "transcribe", "translation": "translate",
}  # fmt: skip
_ONE: Final = re.compile(r"\b(?:it|its)\b", re.IGNORECASE)
_MADE_LENGTH_MIN: Final = 4
_HANDLED: Final = re.compile(  # what such a verb is done to stays as it was
    r"^\W*(?:send|email|mail|forward|file|post|upload|submit|share|publish|save|store|archive|print|show|present|attach|copy)\b",
    re.IGNORECASE,
)
# A chain brings something, works on it, and makes something of it: "merge the lists, remove duplicates, print the labels".
_BRINGING: Final = """
load fetch pull import collect gather extract download scan read scrape retrieve parse transcribe export query open review merge
locate interview
"""
_WORKING: Final = """
clean remove normalise normalize deduplicate summarise summarize sort group cluster aggregate filter tabulate visualise
visualize fit condense sum total drop validate extract highlight count spot flag detect identify rank pick select shortlist
score
"""
_RECKONING: Final = "calculate compute add analyse analyze check compare evaluate estimate code commit"
_MAKING: Final = """
draft write print plot chart produce build prepare create report send publish submit share recommend open file cancel
"""
_BROUGHT: Final = frozenset(_BRINGING.split())
_BEGUN: Final = _BROUGHT | {"determine", "measure", "debug"}
_WORKED_ON: Final = frozenset(_WORKING.split())
_RECKONED: Final = _WORKED_ON | frozenset(_RECKONING.split())
_MADE: Final = frozenset(_MAKING.split())
_OTHER_MATTER: Final = re.compile(r"\b(?:our|my)\b|\d|(?<!^)\b[A-Z]", re.MULTILINE)
_THEIRS: Final = re.compile(r"\btheir\b", re.IGNORECASE)
_POINTED: Final = re.compile(r"\b(?:it|them|they|its)\b", re.IGNORECASE)
_PRONOUN: Final = re.compile(r"\b(?:it|them|they|its|their)\b", re.IGNORECASE)
_PLURAL: Final = re.compile(r"\b[a-z]{3,}(?<!s)s\b", re.IGNORECASE)


def refers_back(text: str, before: str) -> bool:
    """Return whether a part needs the results of what stands before it."""
    return bool(
        len(tokens(text)) == 1  # a verb whose object stands before it: "deploy"
        or (WHEN.match(text) and "," in text)
        or GOING_ON.match(text)
        or _BACK_WORDS.search(text)
        or _DELIVERED.match(text)
        or _NOTIFIED.match(text)
        or _names_what_was_made(text, before)
    )


def is_repeated(text: str, before: str) -> bool:
    """Return whether a part does again what an earlier part does: "measure it, change it, measure it again"."""
    words = tokens(without_politeness(text))
    return "again" in words and words[0] in tokens(before)


def refers_to_one(text: str) -> bool:
    """Return whether a part refers to the part just before it alone."""
    return bool(_ONE.search(text))


def is_next_in_line(text: str, last: str) -> bool:
    """Return whether a part works on what the part before it brings: "load the file, remove the outliers"."""
    worked, brought = tokens(text), tokens(without_politeness(last))
    if not brought or brought[0] not in _BROUGHT or not worked[1:]:
        return False
    is_out = worked[1] == "out"  # "pull out the dates"
    rest = worked[2:] if is_out else worked[1:]
    is_theirs = rest[:1] in (["the"], ["any"], ["all"], ["every"]) or (len(rest) == 1 and rest[0].endswith("s"))
    return (worked[0] in _WORKED_ON or is_out) and is_theirs


def is_chain(texts: list[str]) -> bool:
    """Return whether parts bring something, work on it and make something of it, and none names a matter of its own."""
    verbs = ["".join(tokens(without_politeness(text))[:1]) for text in texts]
    stages = [2 if verb in _MADE else 1 if verb in _RECKONED else 0 for verb in verbs[1:]]
    if stages != sorted(stages) or set(stages) != {1, 2} or verbs[0] not in _BEGUN:
        return False
    return not any(_OTHER_MATTER.search(text) for text in texts[1:])


def is_about_the_same(question: str) -> bool:
    """Return whether a question points at a thing by a pronoun and at no result: "who approved it?"."""
    return bool(_PRONOUN.search(question)) and not _BACK_WORDS.search(_PRONOUN.sub("", question))


def speaks_of_the_known(text: str) -> bool:
    """Return whether the object of a part is not new: "report the NPV", "recommend a winner"; not "book a room"."""
    words = tokens(without_politeness(text))
    return words[1:2] in (["the"], ["whatever"], ["all"], ["any"]) or bool(_CONCLUDED.match(text))


def has_same_antecedent(text: str, last: str, before: str) -> bool:
    """Return whether a part refers to what the part just before it refers to, not to what that part makes.

    "Send it to Ana and file it", "rank the vendors and check their references", "request a quote and check their references".
    """
    is_back = refers_back(last, before)
    if _NOTIFIED.match(text) and not is_back:
        return True  # "then book the room and notify the guests"
    if _HANDLED.match(last) and is_back:
        return True
    return bool(_THEIRS.search(text)) and not _POINTED.search(text) and (is_back or not _PLURAL.search(last))


def _names_what_was_made(text: str, before: str) -> bool:
    """Return whether a part speaks of "the memo" after a part that makes "a memo", or of "the summary" after "summarise"."""
    if (handled := _HANDLED.match(text)) and tokens(text[handled.end() :])[1:2] in [
        tokens(one)[:1] for one in _KNOWN.findall(before)
    ]:
        return True  # "sign the contract and send the contract to Bo"
    made = {word for phrase in _NEW.findall(before) for word in tokens(phrase) if len(word) >= _MADE_LENGTH_MIN}
    made |= {word.lower() for word in _BARE_PLURAL.findall(before)}  # "request samples"
    made |= {f"{word}s" for word in made}  # "log every bug and assign the bugs"
    known = {word for phrase in _KNOWN.findall(text) for word in tokens(phrase)}
    if {word for word in made & known if not lemma(word) or word in _DOCUMENTS}:
        return True
    done = {lemma(word).replace("ize", "ise").replace("lyze", "lyse") for word in tokens(before)}
    return any(_RESULT_OF.get(word) in done for word in known if word in _RESULT_OF)
