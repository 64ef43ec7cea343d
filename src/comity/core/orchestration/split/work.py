"""Pieces of work: whether the parts of a request are its steps by their verbs, and whether a part has a matter of its own."""

from __future__ import annotations

import re
from typing import Final

from comity.core.orchestration.split.verbs import VERBS, tokens, without_politeness

# Verbs by their stage in a piece of work: bring something, work on it, make something of it, hand it over.
_BRINGING: Final = """
load fetch pull import collect gather extract download scan read scrape retrieve parse transcribe export query open review
merge locate interview grab capture obtain
"""
_WORKING: Final = """
clean remove normalise normalize deduplicate dedupe distil summarise summarize sort group cluster aggregate filter tabulate
visualise visualize fit condense sum total drop validate extract highlight count spot flag detect identify rank pick select
shortlist score classify categorise categorize tally average prioritise prioritize isolate pinpoint annotate screen redesign
"""
_RECKONING: Final = """
calculate compute add analyse analyze check compare evaluate estimate code commit apply fix install repair correct update
translate convert figure work match reconcile assess refine negotiate tidy adjust rename compress record enter log revise edit
"""
_MAKING: Final = """
draft write rewrite print plot chart produce build prepare create report recommend propose design decide compile
"""
_CLOSING: Final = """
verify confirm proofread export sign send publish submit share open file cancel close deploy release archive post notify
inform email place upload circulate forward
"""
# Verbs that begin a piece of work, and verbs whose answer the next part may use.
_BEGINNING: Final = "determine measure debug take find get translate assess screen inspect test"
_LOOKING_UP: Final = """
find determine check identify look review investigate calculate establish work figure take research analyse analyze examine
"""
# Verbs that need a source: what they single out stands in something.
_SINGLING_OUT: Final = """
spot flag highlight extract tabulate total sum average tally classify categorise categorize screen isolate pinpoint shortlist
rank filter aggregate deduplicate dedupe prioritise prioritize identify detect
"""
_RUNNING: Final = (
    "book order pay cancel renew call ring buy water feed turn switch close start send reply remind invite hire move"
)
_BROUGHT: Final = frozenset(_BRINGING.split())
_BEGUN: Final = _BROUGHT | frozenset(_BEGINNING.split())
_LOOKED_UP: Final = _BROUGHT | frozenset(_LOOKING_UP.split())
_WORKED_ON: Final = frozenset(_WORKING.split())
_SINGLED_OUT: Final = frozenset(_SINGLING_OUT.split())
_ERRANDS: Final = frozenset(_RUNNING.split())
# What is read or fetched is used by the next part; a study is reported; a figure is entered.
_TAKEN_IN: Final = frozenset(
    ["read", "study", "skim", "load", "fetch", "retrieve", "download", "gather", "collect", "locate", "obtain", "scrape",
     "extract", "transcribe", "parse", "ascertain"]
)  # fmt: skip
_STUDIED: Final = frozenset(["analyse", "analyze", "examine", "inspect", "investigate", "research", "evaluate", "assess"])
_TOLD_OF: Final = frozenset(
    ["present", "report", "recommend", "explain", "propose", "suggest", "summarise", "summarize", "advise", "conclude"]
)
_RECKONED: Final = frozenset(["calculate", "compute", "determine", "estimate", "measure", "count", "total", "reconcile"])
_ENTERED: Final = frozenset(["post", "record", "enter", "submit", "file", "report", "log", "pay", "add", "adjust"])
_ROOT_MIN: Final = 4  # letters
_UNTOPICAL: Final = """
with from that this what which when where whether have into about their them they there been were will would should could also
then more most each every after before time year month week today tomorrow please need team people last next list report date
"""
_TOPICLESS: Final = frozenset(_UNTOPICAL.split()) | {""}
_FOUND: Final = frozenset({"find", "locate", "look", "identify"})
_STEPS_MIN: Final = 2  # after the first
_STAGE: Final = {
    verb: stage for stage, verbs in ((3, _CLOSING), (2, _MAKING), (1, _RECKONING), (1, _WORKING)) for verb in verbs.split()
}
_NAME: Final = (  # months and days of the week are none
    r"(?<!^)\b(?!(?:Jan|Febr)uary|March|April|May|June|July|August|(?:Sept|Nov|Dec)ember|October|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)"
    r"[A-Z][a-z]"
)
OTHER_MATTER: Final = re.compile(rf"\b(?:our|my)\b|(?<![\w.,])(?!(?:19|20)\d\d\b)\d+(?![\d.,]*\s?%)|{_NAME}", re.MULTILINE)
_NAMED: Final = re.compile(rf"\d|{_NAME}", re.MULTILINE)
_NEW_THING: Final = re.compile(r"^\W*[a-z]+\s+(?:up\s+)?(?:an?|some|new|more|another|two|three)\s", re.IGNORECASE)
_COMPLEMENT: Final = re.compile(r"\b(?:for|about|on|of|at|in|from)\s", re.IGNORECASE)
_ASKED: Final = re.compile(
    r"^\W*(?:determine|work\s+out|figure\s+out|find\s+out|see|check|verify|confirm|decide|establish|tell\s+(?:me|us)|recommend|advise|"
    r"suggest|explain|list|describe|outline|note|test)\s+(?:me\s+|us\s+)?"
    r"(?:what|which|who|whose|how|why|whether|if|that|where|when)(?:['’]\w+)?\b(?!.*(?:['’]\s|\babout\b|\bfor\b))(?:\s+\S+){0,6}$",
    re.IGNORECASE,
)
_CONCLUDED: Final = re.compile(  # "recommend a winner"
    r"^\W*(?:recommend|suggest|propose|pick|choose|select|name|declare)\s+(?:an?|one|two|three|\d+)(?:\s+[\w'’-]+)?\W*$",
    re.IGNORECASE,
)
_INFORMED: Final = re.compile(
    r"^\W*(?:inform|notify|alert|warn|advise)\s+(?:the|all|each|every)\s+[a-z]+\b(?!\s+to\b)", re.IGNORECASE
)
_BARE: Final = re.compile(  # a noun with nothing but an adjective: "the bottlenecks", "the eligible studies", "mismatches"
    r"^(?:(?:the|any|all)\s+)?(?:(?:two|three|four|five|first|second|last|next|main|key|best|worst|top|old|new|wrong|right|missing|most|"
    r"[a-z]+(?:able|ible|al|ic|ive|ous|est|ed|ful|less|ant|ent|ing))\s+){0,2}[a-z]{3,}$",
    re.IGNORECASE,
)
_BARE_OBJECT: Final = re.compile(  # "update the balance", "send a receipt", "upload the archive to SharePoint"
    r"^\W*[a-z]+\s+(?:the|an?)\s+(?:(?:short|brief|quick|final|new)\s+)?[a-z]+(?:\s+(?:to|for)\s+(?:the\s+)?\w+)?\W*$",
    re.IGNORECASE,
)


def stage_of(verb: str) -> int:
    """Return the stage of a piece of work at which a verb stands; 0 for a verb of no stage."""
    return _STAGE.get(verb, 0)


def names_its_matter(text: str) -> bool:
    """Return whether a part names a thing of its own: a name, a figure, "our", "a new courier"."""
    new = _NEW_THING.match(text)
    return bool(OTHER_MATTER.search(text) or (new and _COMPLEMENT.search(text, new.end())))


def is_alike(text: str, last: str) -> bool:
    """Return whether two parts have the same verb: as a rule they do one thing to two others."""
    verb = tokens(without_politeness(text))[:1]
    return verb == tokens(without_politeness(last))[:1] and not VERBS.isdisjoint(verb)


def is_about_its_topic(text: str, last: str) -> bool:
    """Return whether a part speaks of a thing that the part before it names, and of no other.

    "Pull the sales by region and find the region that declines most".
    """
    said, before = tokens(without_politeness(text)), tokens(without_politeness(last))
    if names_its_matter(text) or VERBS.isdisjoint(said[:1]):
        return False
    return bool({_root(word) for word in said[1:]} & {_root(word) for word in before[1:]} - _TOPICLESS)


def _root(word: str) -> str:
    """Return a noun without its plural; the empty root of what is no noun or too short."""
    bare = word.removesuffix("'s")
    root = bare[:-3] + "y" if bare.endswith("ies") else bare[:-1] if bare.endswith("s") and not bare.endswith("ss") else bare
    return root if len(root) >= _ROOT_MIN else ""


def carries_on(text: str) -> bool:
    """Return whether a part can be the next step of a chain: it names no matter of its own, or makes something for the user."""
    if not names_its_matter(text):
        return True
    verb = "".join(tokens(without_politeness(text))[:1])
    return stage_of(verb) > 0 and not _NAMED.search(text)


def makes_something(text: str) -> bool:
    """Return whether the object of a part is new: "draft a memo"."""
    return bool(_NEW_THING.match(text))


def is_drawn_from(text: str, last: str, *, is_told: bool) -> bool:
    """Return whether a part asks, decides or tells what follows from what the part before it looks up.

    "Take stock of the cellar and work out what is running low", "find the cause of the delay and inform the customer".
    """
    looked = tokens(without_politeness(last))
    if not looked or looked[0] not in _LOOKED_UP | _TAKEN_IN | _STUDIED | _RECKONED:
        return False
    if "there" in tokens(text) and looked[0] in _FOUND:
        return True  # "locate a tool library and reserve a drill there"
    if names_its_matter(text) and not (looked[0] in _TAKEN_IN and makes_something(text) and not OTHER_MATTER.search(text)):
        return False
    verb = "".join(tokens(without_politeness(text))[:1])
    if is_told:
        pass  # the request says its order by itself: "collect the costs and estimate the benefits, then write the case"
    elif (
        looked[0] in _TAKEN_IN or (looked[0] in _STUDIED and verb in _TOLD_OF) or (looked[0] in _RECKONED and verb in _ENTERED)
    ):
        return verb in VERBS
    return bool(_ASKED.match(text) or _CONCLUDED.match(text) or _INFORMED.match(text))


def is_next_in_line(text: str, last: str, *, is_listed: bool) -> bool:
    """Return whether a part takes something out of what stands before it: "load the file, remove the outliers".

    Verbs that sort, count or single out need a source; where neither a name nor a complement tells it, it stands before.
    """
    worked, brought = tokens(without_politeness(text)), tokens(without_politeness(last))
    if not brought or not worked[1:] or names_its_matter(text):
        return False
    is_out = worked[1] == "out"  # "pull out the dates"
    if worked[0] not in _WORKED_ON and not is_out:
        return False
    rest = worked[2:] if is_out else worked[1:]
    if brought[0] in _BROUGHT and (
        rest[:1] in (["the"], ["any"], ["all"], ["every"]) or (len(rest) == 1 and rest[0].endswith("s"))
    ):
        return True
    return is_listed and worked[0] in _SINGLED_OUT and brought[0] not in _ERRANDS and bool(_BARE.match(" ".join(rest)))


def is_chain(texts: list[str]) -> bool:
    """Return whether parts bring something, work on it and make something of it, and none names a matter of its own."""
    verbs = ["".join(tokens(without_politeness(text))[:1]) for text in texts]
    stages = [stage_of(verb) for verb in verbs[1:]]
    if len(stages) < _STEPS_MIN or stages != sorted(stages) or 0 in stages:
        return False
    if verbs[0] in _BEGUN and len(set(stages)) > 1:
        return not any(OTHER_MATTER.search(text) for text in texts[1:])
    is_rising = 0 < stage_of(verbs[0]) <= stages[0] < stages[-1]
    return is_rising and all(_BARE_OBJECT.match(text) for text in texts[1:])
