"""Whether a part of a request needs what an earlier part gives: pronouns, results named again, steps of one piece of work."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from comity.core.orchestration.split.connectives import ONE_THING, WHEN
from comity.core.orchestration.split.formal import ASKED
from comity.core.orchestration.split.verbs import GOING_ON, VERBS, lemma, tokens, without_politeness
from comity.core.orchestration.split.work import OTHER_MATTER

_RESULTS: Final = r"(?:results?|findings?|outcomes?|outputs?|conclusions?|insights?|answers?|totals?)"
_PERIODS: Final = r"(?:years?|months?|weeks?|quarters?|times?|days?|mornings?|afternoons?|evenings?|summers?|seasons?)"
_OWN: Final = rf"(?:{_PERIODS}|campaign|project|product|company|market|region|team)"  # the user's, no result
_DONE_WITH: Final = (
    r"(?:turn|put|use|send|share|do|make|present|show|email|mail|forward|summari[sz]e|translate|format|write|save|take|explain|submit|"
    r"publish|convert|compare|discuss|review)"
)
_TAKEN: Final = r"(?:choose|pick|select|book|buy|take|keep|order|recommend)"
_BACK_WORDS: Final = re.compile(
    "|".join(
        rf"\b(?:{pattern})\b".replace(" ", r"\s+")
        for pattern in (
            r"it|them|they|its|their|both|thereof|therewith|therefrom|thereto|accordingly|so [a-z]+ed",
            r"him(?! an?\b)|each(?=\W*$)",
            r"her(?= (?:to|the|for|about|in|on|with|that|if|when|by|from|as|back)\b|\W*$)",
            r"(?:why|how|when|where|who)(?=\W*$)",
            r"(?:for|to|of|per|in) (?:each|every) [a-z]+|(?:of|about|on|with|for) any [a-z]+",
            r"(?:that|this) (?:many|much|sum|amount|quantity|number|date|price|rate|order|list|person|one)",
            r"that day|which ones?",
            rf"(?:in|on|for|at|during|over) that {_PERIODS}|(?:in|on|for|at|over) the same (?!time)[a-z]+",
            r"your (?:corrections|edits|changes|comments|notes|suggestions|calculations?|assessment|analysis)",
            r"the (?:corrected|revised|updated|edited|reworked|shortened) (?:version|text|copy|file|draft)",
            r"that (?:fits?|match(?:es)?|suits?|works?|meets? (?:it|them|this))(?=\W*$)",
            r"the (?:[a-z]+ )?[a-z]+s? (?:responsible|affected|concerned|involved|in question|at fault)",
            r"(?:the )?(?:matching|corresponding|respective|resulting) [a-z]+",
            r"the (?:appropriate|necessary|relevant|required) [a-z]+",
            r"the (?:effects?|impact|consequences?|implications?)(?= on|\W*$)",
            r"to (?:match|suit|fit|reflect (?:it|that|this))(?=\W*$)|(?:in line|along) with (?:it|that|this|them)",
            rf"(?:the|those|these|its|your|any|all) (?:[a-z]+ )?(?:{_RESULTS}|above|winners?|former|latter)",
            r"(?:based|depending|building|relying|drawing) (?:up)?on (?:that|this|it|these|those|the)",
            rf"(?:from|with|of|on|using|for|to|into|about|after|in|around) (?:that|this|these|those)(?! {_OWN})",
            rf"{_DONE_WITH} (?:me |us )?(?:that|this|these|those|everything|all)(?! {_PERIODS})",
            rf"(?:that|this) {ONE_THING}",
            r"the (?:same|best|top|worst|cheapest|strongest|weakest|highest|lowest) (?:ones?|two|three|four|five|six|ten|\d+)",
            r"each (?:one|of them)|for each(?! [a-z])|whatever|one of them|the first one",
            r"if (?:so|not|any|necessary|there (?:is|are) (?:any|one|some))|in that case|from there|inside it",
            r"(?:these|those)(?=\W*$)|the (?:[a-z]+ )?[a-z]+ ones?",
            rf"(?:these|those) (?!{_OWN}\b)[a-z]+s",
            r"the (?:figure|number|value|amount)(?! of| for)",
            r"(?:you|we) (?:find|found|identify|identified|spot|spotted|come across|discover|discovered)",
            rf"{_TAKEN} the (?:best|worst|[a-z]{{3,}}est|winner|top (?:one|two|three|\d+))(?!\s+(?!ones?\b)[a-z])",
            r"(?:pick|choose|select|keep|take|recommend) one(?! [a-z])",
            r"the (?:[a-z]{2,}(?<!t)est|best|worst|winner|rest)(?=\W*$)",
            r"what (?:you|we) (?:have )?(?:find|found|learn(?:ed|t)?|see|saw|get|got|discover(?:ed)?|come up with)",
        )
    ),
    re.IGNORECASE,
)
_DELIVERED: Final = re.compile(
    r"^(?:\W*)(?:send|email|mail|forward|post|upload|submit|share|present|publish|report\s+back|save|store|export|deploy|install|release|circulate|distribute|ship)\s+(?:to|with|by|as|back|in|on|for)\b",
    re.IGNORECASE,
)
_NOTIFIED: Final = re.compile(  # that it is done; what else is said would follow
    r"^\W*(?:let\s+(?:[\w'’-]+\s+){1,3}know|(?:notify|inform|alert)(?:\s+[\w'’-]+){1,3})\W*$", re.IGNORECASE
)
_BARE_PLURAL: Final = re.compile(
    r"\b(?:request|get|collect|write|create|generate|make|draw|build|draft|gather|find|order|take)\s+([a-z]{3,}s)\b",
    re.IGNORECASE,
)
_NEW: Final = re.compile(r"\b(?:an?|some|any|every|each)\s+((?:[a-z-]+\s+){0,2}[a-z-]+)", re.IGNORECASE)
_KNOWN: Final = re.compile(r"\b(?:the|that|this)\s+((?:[a-z-]+\s?){1,3})", re.IGNORECASE)
_MENTIONED: Final = re.compile(r"\b(?:into|by|and|for|of)\s+([a-z]{3,}s)\b")
_DOCUMENTS: Final = frozenset(  # verbs of requests that are things as well
    {"report", "plan", "forecast", "brief", "draft", "list", "model", "estimate", "design", "budget", "quote", "invoice", "map",
     "chart", "survey", "test"}
)  # fmt: skip
_RESULTS_OF: Final = {  # what a verb of requests makes
    "add": "total sum", "allocate": "allocation", "analyse": "analysis", "approve": "approval",
    "arrange": "appointment booking", "assess": "assessment",
    "book": "appointment booking reservation confirmation tickets", "calculate": "calculation", "cancel": "refund",
    "cluster": "clusters",
    "compare": "comparison difference", "convert": "conversion", "describe": "description", "diagnose": "diagnosis",
    "evaluate": "evaluation", "explain": "explanation", "group": "groups", "measure": "measurements readings",
    "pay": "receipt payment", "photograph": "photos pictures", "pick": "choice", "project": "projection", "rank": "ranking",
    "rate": "rating ratings", "recommend": "recommendation recommendations", "record": "recording",
    "register": "registration", "reserve": "reservation booking confirmation", "schedule": "appointment", "score": "scores",
    "segment": "segments", "simulate": "simulation", "sum": "total", "summarise": "summary",
    "transcribe": "transcript text", "translate": "translation", "upload": "link",
}  # fmt: skip
_ONE: Final = re.compile(r"\b(?:it|its)\b", re.IGNORECASE)
_MADE_LENGTH_MIN: Final = 4
_HANDLED: Final = re.compile(  # what such a verb is done to stays as it was
    r"^\W*(?:send|email|mail|forward|file|post|upload|submit|share|publish|save|store|archive|print|show|present|attach|copy)\b",
    re.IGNORECASE,
)
_UNBOUND: Final = re.compile(  # a part of what stands before it: "flag anything unusual", "rank the ones that qualify"
    r"^\W*[a-z]+\s+(?:(?:up|out|down|off)\s+)?(?:anything|whatever|any\s+[a-z]+|the\s+ones?|only\s+(?:the|those)|each|those|which\s+(?:ones?|of|are|is)"
    r"|every\s+[a-z]+\s+(?:[a-z]+ed|found|that|with|you))\b",
    re.IGNORECASE,
)
_SOURCE: Final = re.compile(r"\bany\s+[a-z]+\s+from\s+(?!it\b|them\b|that\b|this\b|those\b|these\b)", re.IGNORECASE)
_PRODUCT: Final = re.compile(  # what a part gives, named by a noun of no matter: "the marks", "the resulting text"
    r"\b(?:the|this|that|these|those|your)\s+(?:(?:[a-z]+(?:ed|ing|al)|new|main|net|full|best|worst|top)\s+)?"
    r"(?:text|gist|essence|highlights|takeaways|file|output|figures?|numbers?|marks?|scores?|grades?|differences?|divergences?|deviations?|variances?|discrepanc(?:y|ies)|errors?|issues?|problems?|gaps?|changes"
    r"|translation|transcript|summary|shortlist|recommendations?|suggestions?|responses?|replies|options|matches|averages?|percentages?"
    r"|surplus|remainder|excess|shortfall|trends?|patterns?|culprits?|cause|solution|reasons?|selection|calculations?)\b"
    r"(?!\s+(?:of|for|from|about|in|with|between)\b|['’]s|\s+(?!to\b|since\b|as\b|by\b|on\b|and\b|into\b|accordingly\b|back\b)[a-z]+(?<!ed)(?<!ly)\b)",
    re.IGNORECASE,
)
_ANSWER: Final = re.compile(  # to what stands before it
    r"^\W*[a-z]+\s+(?:replacements|substitutes|alternatives|spares)\W*$|^\W*[a-z]+\s+(?:an?|some|possible)\s+(?:[a-z]+\s+){0,2}?(?:answer|reply|response|solution|remedy|fix|fixes|solutions|conclusion|follow-up|workaround"
    r"|alternatives?|improvements?|verdict|copy|backup|screenshot)\W*$",
    re.IGNORECASE,
)
_WITHIN: Final = re.compile(  # a pronoun for something that the same part names: "pay Dad the 80 I owe him"
    r"(?<=\s)(?:(?:(?:the|an?|my|our)\s+[\w'’-]+|(?-i:[A-Z])[\w'’-]+)\s[^,;]{0,60}?\b(?:i|we|you|he|she)\s+(?:[a-z'’]+\s+){1,4}?(?:it|him|her)"
    r"|(?:the|my|our)\s+[\w'’-]+s\s[^,;]{0,60}?\b(?:i|we|you|he|she)\s+(?:[a-z'’]+\s+){1,4}?them)\b",
    re.IGNORECASE,
)
_EXPLETIVE: Final = re.compile(  # "it" that stands for nothing: "if it's going to rain"
    r"\bit(?:'s|\s+is|'ll|\s+will|\s+was)\s+(?:going\s+to\s+)?(?:be\s+)?(?:rain|snow|freez|sunny|windy|too\s+late|worth|possible|cheaper|better|best|necessary|safe|time)\w*"
    r"|\bwith\s+(?:[\w'’-]+\s+){1,3}(?:on|in|inside)\s+it\b|\bin\s+for\s+its\b",
    re.IGNORECASE,
)
_ITS: Final = re.compile(r"\b(?:its|their)\b", re.IGNORECASE)
_OWN_RESULTS: Final = re.compile(
    r"^\W*(?:get|give|find|show|fetch|look\s+up|tell|send)\s+(?:me\s+|us\s+)?the\s+([a-z]+)\s+(?:results?|scores?|answers?)\W*$",
    re.IGNORECASE,
)
_EXTREME: Final = re.compile(  # of the things that stand before it: "redesign the slowest step"
    r"^\W*(?!(?:is|are|was|were|who|what|get|book|order|renew)\b)[a-z]+\s+the\s+(?:first|main|last|most\s+[a-z]+"
    r"|(?!latest|nearest|earliest|rest|test|request|interest|guest|west|east|harvest)[a-z]{2,}est)\s+[a-z]+\W*$",
    re.IGNORECASE,
)
_THERE: Final = re.compile(
    r"^\W*(?!(?:what|how|who|when|where|which|is|are|do|does|can)\b)[a-z]+\s+(?:(?!an?\b).*\bthere\W*$|.+\bthere\s+(?:for|on|at|from|by|with|next|tomorrow|tonight|this)\b)",
    re.IGNORECASE,
)
_THEIR_OWN: Final = re.compile(  # "ask Vienna for their timetable"
    r"(?<=\s)(?-i:[A-Z])\w+\s(?:[a-z]+\s+){0,2}(?:for|about|on|of|with|to)\s+(?:their|his|her|its)\b", re.IGNORECASE
)
_THEIRS: Final = re.compile(r"\btheir\b", re.IGNORECASE)
_THEIR_ANSWERS: Final = re.compile(
    r"\b(?:their|his|her)\s+(?:[a-z]+\s+)?(?:answers?|repl(?:y|ies)|responses?|feedback|comments|input|quotes?|offers?|bids?|changes)\b",
    re.IGNORECASE,
)
_HAS_BEEN: Final = re.compile(
    r"\b(?:has|have|was|were)\s+(?:been\s+)?[a-z]+(?:ed|t|n)\b", re.IGNORECASE
)  # "that it has been sent"
_POINTED: Final = re.compile(r"\b(?:it|them|they|its)\b", re.IGNORECASE)
_RESULT: Final = re.compile(r"\bthe\s+(?:result|outcome|answer|output|total)\b|\byour\s+(?:findings|notes)\b", re.IGNORECASE)
_EACH: Final = re.compile(r"\beach(?:\s+(?:one|of\s+them))?\W*$|\beach\s+one\b|\b(?:those|any)\W*$", re.IGNORECASE)
_PRONOUN: Final = re.compile(r"\b(?:it|them|they|its|their)\b", re.IGNORECASE)
_PLURAL: Final = re.compile(r"\b[a-z]{3,}(?<!s)s\b", re.IGNORECASE)


def refers_back(text: str, before: str) -> bool:
    """Return whether a part needs the results of what stands before it."""
    if (own := _OWN_RESULTS.match(text)) and before and own[1].lower() not in before.lower():
        return False  # "pay the gas bill and get me the football results"
    return bool(
        _is_lone_verb(text)
        or (WHEN.match(text) and "," in text)
        or GOING_ON.match(text)
        or _BACK_WORDS.search(_THEIR_OWN.sub("", _WITHIN.sub("", _EXPLETIVE.sub("", _by_its_doer(text)))))
        or (_UNBOUND.match(text) and not OTHER_MATTER.search(text) and not _SOURCE.search(text))
        or _PRODUCT.search(text)
        or _EXTREME.match(text)
        or _THERE.match(text)
        or _ANSWER.match(text)
        or _DELIVERED.match(text)
        or _NOTIFIED.match(text)
        or _names_what_was_made(text, before)
    )


def _by_its_doer(text: str) -> str:
    """Return a text without the pronouns that stand for the one who is asked: "the museum is asked to lower its fees"."""
    return _ITS.sub("", text) if ASKED.match(text) else text


def is_repeated(text: str, before: str) -> bool:
    """Return whether a part does again what an earlier part does: "measure it, change it, measure it again"."""
    words = tokens(without_politeness(text))
    return "again" in words and words[0] in tokens(before)


def points_at_one(text: str) -> bool:
    """Return whether a part has a pronoun for a thing or for each of several things."""
    return bool(
        _POINTED.search(text) or _RESULT.search(text) or _EACH.search(text) or _DELIVERED.match(text) or _is_lone_verb(text)
    )


def _is_lone_verb(text: str) -> bool:
    """Return whether a part is a verb whose object stands before it: "deploy"."""
    words = tokens(text)
    return len(words) == 1 and bool(lemma(words[0]))


def refers_to_one(text: str) -> bool:
    """Return whether a part refers to the part just before it alone."""
    return bool(_ONE.search(text))


def is_about_the_same(question: str) -> bool:
    """Return whether a question points at a thing by a pronoun and at no result: "who approved it?"."""
    return bool(_PRONOUN.search(question)) and not _BACK_WORDS.search(_PRONOUN.sub("", question))


def has_same_antecedent(text: str, last: str, before: str) -> bool:
    """Return whether a part refers to what the part just before it refers to, not to what that part makes.

    "Send it to Ana and file it", "rank the vendors and check their references", "request a quote and check their references".
    """
    is_back = refers_back(last, before)
    if _NOTIFIED.match(text) and not is_back:
        return True  # "then book the room and notify the guests"
    if _HANDLED.match(last) and is_back and _POINTED.search(text):
        return not _HAS_BEEN.search(text) and not _THEIR_ANSWERS.search(text)
    return (
        bool(_THEIRS.search(text))
        and not _POINTED.search(text)
        and not _THEIR_ANSWERS.search(text)
        and (is_back or not _PLURAL.search(last))
    )


def _verbs_of(text: str) -> set[str]:
    """Return the verbs of the parts of a text, and of their purposes: "use the plan to estimate the area"."""
    words = [tokens(without_politeness(part)) for part in text.split(";")]
    said = {one[0] for one in words if one} | {after for one in words for to, after in pairwise(one) if to == "to"}
    return said & VERBS


def _names_what_was_made(text: str, before: str) -> bool:
    """Return whether a part speaks of "the memo" after a part that makes "a memo", or of "the summary" after "summarise"."""
    if (handled := _HANDLED.match(text)) and tokens(text[handled.end() :])[1:2] in [
        tokens(one)[:1] for one in _KNOWN.findall(before)
    ]:
        return True  # "sign the contract and send the contract to Bo"
    made = {word for phrase in _NEW.findall(before) for word in tokens(phrase) if len(word) >= _MADE_LENGTH_MIN}
    made |= {word.lower() for word in _BARE_PLURAL.findall(before)}  # "request samples"
    made |= {word.lower() for word in _MENTIONED.findall(before)}  # "sort them into bugs and wishes"
    made |= {f"{word}s" for word in made}  # "log every bug and assign the bugs"
    known = {word for phrase in _KNOWN.findall(text) for word in tokens(phrase)}
    if {word for word in made & known if not lemma(word) or word in _DOCUMENTS}:
        return True
    verbs = _verbs_of(before)
    if any(word in verbs or (word.endswith("ed") and lemma(word) in verbs) for word in known):
        return True  # "flag mismatches and send the flagged items", "forecast July and with the forecast plan the shifts"
    done = {lemma(word).replace("ize", "ise").replace("lyze", "lyse") for word in tokens(before)}
    made_by = {result for verb in done for result in _RESULTS_OF.get(verb, "").split()}
    return any(word in made_by or word.removesuffix("s") in made_by or f"{word[:-3]}y" in made_by for word in known)
