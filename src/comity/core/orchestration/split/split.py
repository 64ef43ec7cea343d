"""A request of several parts as a plan: rules find the parts and their order, a classifier may confirm them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from comity.core.orchestration import hidden
from comity.core.orchestration.split.clause import is_inside, is_unfinished, main_clause
from comity.core.orchestration.split.connectives import (
    BOUNDARY,
    EARLIER,
    STRONG,
    WHEN,
    Link,
    Piece,
    followed,
    headed,
    items,
    masked,
    sentences,
    without_back_phrase,
)
from comity.core.orchestration.split.formal import evened, lead_in
from comity.core.orchestration.split.objects import at_once, objects
from comity.core.orchestration.split.order import ordered
from comity.core.orchestration.split.plan import Part, Plan
from comity.core.orchestration.split.reference import is_about_the_same, refers_back
from comity.core.orchestration.split.reversal import reversed_parts
from comity.core.orchestration.split.verbs import (
    AMBIGUOUS,
    AUXILIARIES,
    DETERMINERS,
    LOOKING,
    PAIRING,
    PARTICLES,
    VERBS,
    WH,
    is_condition,
    lemma,
    starts_like_a_clause,
    tokens,
    without_politeness,
)
from comity.core.orchestration.split.work import names_its_matter

PARTS_MAX: Final = 20  # of one request; what follows stays in the last part
TEXT_MAX: Final = 4_000  # characters that are looked at
CONNECTIVES_MAX: Final = 60  # of one sentence that are looked at: each looks at all that stands before it
AHEAD_MAX: Final = 300  # characters behind a connective by which it is judged
SURE: Final = 0.5  # from this confidence on a classifier's word counts
_LEADING: Final = re.compile(r"^(?:and|but)\s+(?!then\b)", re.IGNORECASE)
_FIRST: Final = re.compile(
    r"^(?:first\s+things\s+first|first(?:ly)?(?!\s+(?:question|thing|task|point|request))(?:\s+of\s+all|\s+off)?|initially|at\s+first|for\s+starters|in\s+a\s+first\s+step|to\s+(?:begin|start)\s+with|start\s+by|begin\s+by|begin\s+with(?=\s+\w+ing\b)|as\s+a\s+first\s+step)\b[\s,:]*",
    re.IGNORECASE,
)

_ASKED_FOR: Final = re.compile(
    r"^(?P<verb>(?:i|we)(?:'d|\s+would|\s+also)*\s+(?:need|want|like)|give\s+(?:me|us)|get\s+(?:me|us)|prepare|produce|provide|create|make|write|draft|build|"
    r"generate|(?P<proposed>suggest|recommend|design)|show\s+(?:me|us)|send\s+(?:me|us))\s+(?:both\s+)?(?:an?|the|my|our|two|three)\s+\w+",
    re.IGNORECASE,
)
_THING: Final = re.compile(r"^an?\s+[\w-]+\s+\w+", re.IGNORECASE)
_OTHER_THING: Final = re.compile(r"^(?:an?|the|my|our)\s+[\w-]+\s+\w+", re.IGNORECASE)  # behind "also"
_BOTH: Final = re.compile(r"\bboth\s+(?P<one>[\w'’-]+(?:\s+[\w'’-]+){0,2})(?<!s)\s*$", re.IGNORECASE)
_OF_ITS_OWN: Final = re.compile(r"\b(?:for|of|about|to|on)\b", re.IGNORECASE)
_HOLDING: Final = re.compile(r"\b(?:with|between|including|containing|comparing|that|which|featuring|from)\b", re.IGNORECASE)

_HAVING: Final = re.compile(
    r"^(?:have|get)\s+(?!not\b|been\b|never\b|already\b|since\b)(?:(?!you\b|we\b|i\b|they\b)(?:[\w'’-]+\s+){1,4}?\w+(?:ed|en|t|d)\b"
    r"|(?!you\b|we\b|i\b|they\b)(?:the\s+|our\s+|my\s+)?[\w'’-]+\s+(?P<verb>[a-z]+)\s)",
    re.IGNORECASE,
)
_MIND: Final = re.compile(r"^(?:would|do)\s+you\s+mind\s+(?=\w+ing\b)", re.IGNORECASE)
_GERUND: Final = re.compile(r"(^|\b(?:and|then|or)\s+(?:then\s+)?|,\s*)(\w+ing)\b", re.IGNORECASE)
_HAS_NOT: Final = re.compile(r"\s*ha(?:ve|s)\s+(?:not|no|never|already|been|only|just)\b", re.IGNORECASE)
_QUOTE: Final = re.compile(r"\s*[\"'“‘]")
_LISTED: Final = re.compile(r",\s*((?:[\w'’-]+\s*){1,3})$")
_COMMA: Final = re.compile(r",(?!\d)")
_SAY: Final = re.compile(r"\s*say\s+(?:\d|about|around|by\b)", re.IGNORECASE)  # for example
_THEN_LATER: Final = re.compile(r"[,;]\s*(?:and\s+)?(?:then\b|once\b|after\b|if\s+(?:both|all|they)\b)", re.IGNORECASE)
_LONE: Final = re.compile(r"\s*([\w-]+)\s*,")
_PREDICATE: Final = re.compile(
    r"^\w+\s+(?:(?:since|been|not|also|still|already|never|now)\b|\w+(?:ed|ly|ing)\b)", re.IGNORECASE
)
_MAIN: Final = re.compile(r",|\s(?=(?:we|you)\s(?:should|must|need\sto)\b)", re.IGNORECASE)  # where a main clause may begin
_TROUBLE: Final = re.compile(
    r"^(?:my|our|the|i)\b.*(?:n't|\b(?:not|cannot|never|wrong|broken|missing|stuck|down|fails?))\b", re.IGNORECASE
)
_MANNER: Final = re.compile(
    r"^\s*(?:(?:explain|justify|state|give)\s+(?:it|why|your\s+\w+)\s*[.!?]?|keep\s+(?:it|them|this|that|the|my|our)\s.{2,60}|(?:be|make\s+it)\s+(?:(?:a\s+(?:bit|little)|more|less|slightly)\s+)?\w+\s*[.!]?)$",
    re.IGNORECASE,
)
_IN_ORDER: Final = re.compile(
    r"\b(?:in (?:this|that|the following) order|order of|sequence|procedure|steps?|in order|in turn|one after)\b", re.IGNORECASE
)

_SHOWN: Final = tuple([verb, whom] for verb in ("tell", "show", "let") for whom in ("me", "us"))
_SUBJECTS: Final = frozenset({"which", "who", "what", "how"})

Rank = Callable[[str], tuple[str, float]]  # the intent of a text, and the confidence in it


def split(text: str, rank: Rank | None = None) -> Plan:
    """Return the parts of a request and their order.

    rank: the intent of a text and the confidence in it. Neighbours that a weak connective parts and that have the same intent
        stay one part.
    """
    text, values = hidden.named(text)
    head, rest = text[:TEXT_MAX], text[TEXT_MAX:]
    pieces = pieces_of(head)
    if rank is not None:
        pieces = _confirmed(pieces, lambda said: rank(hidden.restored(said, values)))
    kept, more = pieces[:PARTS_MAX], pieces[PARTS_MAX:]
    parts = list(ordered(kept).parts)
    if parts:  # what follows is no reason for an order: each pair of parts would be looked through for it
        parts[-1] = Part(" ".join([parts[-1].text, *(one.text for one in more)]) + rest, parts[-1].after)
    return Plan(tuple(Part(hidden.restored(part.text, values), part.after) for part in parts))


def pieces_of(text: str) -> list[Piece]:
    """Return the parts of a request as they stand, each with how it hangs on the one before it."""
    if under := headed(text):
        heading, body = under
        found = pieces_of(body)
        if _IN_ORDER.search(heading):
            for piece in found[1:]:
                piece.link = Link.THEN
        return found
    listed = items(text)
    if listed is not None and 2 * sum(starts_like_a_clause(one, is_strong=True) for one in listed[1]) > len(listed[1]):
        return _of_list(*listed)
    pieces: list[Piece] = []
    was_first = False
    for sentence in sentences(text):
        if pieces and EARLIER.match(sentence):
            pieces[-1:] = _moved_before(pieces[-1], EARLIER.sub("", sentence))
            continue
        opened = _FIRST.match(without_politeness(sentence))
        found = _of_sentence(sentence)
        if not found:
            continue
        is_asked = _stands(found[0].text, is_strong=found[0].link in STRONG or was_first)
        if pieces and not is_asked and not (found[0].link is Link.ALSO and _TROUBLE.match(found[0].text)):
            _join(pieces, found)  # no request of its own: what it says belongs to what stands before it
        elif len(pieces) == 1 and not _stands(pieces[0].text, is_strong=True):
            found[0].text = f"{pieces[0].text} {found[0].text}"
            pieces = found
        else:
            if was_first and found[0].link is Link.SENTENCE:
                found[0].link = Link.THEN
            pieces += found
        was_first = was_first or opened is not None
    return pieces


def _of_list(intro: str, found: list[str], is_steps: bool) -> list[Piece]:
    is_chain = is_steps or bool(_IN_ORDER.search(intro)) or any(refers_back(one, "") for one in found[1:])
    pieces = [Piece(one, Link.NUMBERED if is_chain else Link.SENTENCE) for one in found]
    return [*(pieces_of(intro) if _is_request(intro) else []), *pieces]


def _moved_before(last: Piece, text: str) -> list[Piece]:
    """Return what is to be done before the last piece, then that piece."""
    earlier = _cuts(text)
    if not earlier:
        return [last]
    earlier[0].link, last.link = last.link, Link.THEN
    return [*earlier, last]


def _join(pieces: list[Piece], found: list[Piece]) -> None:
    pieces[-1].text = f"{pieces[-1].text} {found[0].text}"
    pieces += found[1:]


def _is_request(intro: str) -> bool:
    words = tokens(intro)
    return (
        starts_like_a_clause(intro)
        and not intro.endswith(":")
        and not {"following", "these", "things", "tasks", "steps"} & set(words)
    )


def _of_sentence(sentence: str) -> list[Piece]:
    sentence = _without_gerunds(evened(sentence, without_politeness(sentence)))
    turned = reversed_parts(sentence)
    if turned is not None:
        early, late = turned
        first, second = _cuts(early), _cuts(late)
        second[0].link = Link.THEN
        return [*first, *second]
    if beside := _beside(sentence):
        return beside
    told = lead_in(sentence)
    if told is not None and not _stands(told[0], is_strong=True) and not is_condition(told[0]):
        found = _of_sentence(told[1])
        found[0].text = f"{told[0]}{found[0].text}"
        return found
    return _of_one_verb(sentence) or _cuts(sentence)


def _without_gerunds(sentence: str) -> str:
    """Return "would you mind checking the list and sending it" as "check the list and send it", another sentence as it is."""
    mind = _MIND.match(sentence)
    if mind is None:
        return sentence
    return _GERUND.sub(lambda found: f"{found[1]}{lemma(found[2].lower()) or found[2]}", sentence[mind.end() :])


def _beside(sentence: str) -> list[Piece]:
    tasks = at_once(sentence)
    if tasks is None:
        return []
    one, other = (_cuts(task) for task in tasks)
    other[0].link = Link.ALSO
    return [*one, *other]


def _of_one_verb(sentence: str) -> list[Piece]:
    return [Piece(_tidy(text), link) for text, link in objects(sentence)]


def _cuts(sentence: str) -> list[Piece]:
    """Return the parts of one sentence: a cut holds where both sides stand alone."""
    pieces: list[Piece] = []
    start, link, verb = 0, Link.SENTENCE, ""
    at, searched = 0, masked(sentence)
    for _ in range(CONNECTIVES_MAX):
        found = BOUNDARY.search(searched, at)
        if found is None:
            break
        at = max(found.start() + len(found.group().rstrip(" ,")), found.start() + 1)  # its comma may begin the next connective
        kind = Link(next(name for name, value in found.groupdict().items() if value is not None))
        left, right = sentence[start : found.start()], sentence[found.end() : found.end() + AHEAD_MAX]
        if not left.strip(" ,"):
            if kind in STRONG and not pieces:
                link, start = kind, found.end()
            continue
        left = verb + left
        is_second = kind in {Link.AND, Link.ALSO} and _is_second_thing(
            left, right, _OTHER_THING if kind is Link.ALSO else _THING
        )
        if is_second or _is_cut(left, right, kind, found.group(), is_first=not pieces):
            pieces.append(Piece(left, link))
            start, link, verb = found.end(), kind, _asked_by(left) if is_second else ""
    pieces.append(Piece(verb + sentence[start:], link))
    return [piece for one in pieces for piece in _followed(one) if tokens(piece.text)]


def _followed(piece: Piece) -> list[Piece]:
    first, *later = followed(piece.text) or [piece.text]
    one, *beside = _of_one_verb(first) or [Piece(_tidy(first), piece.link)]
    one.link = piece.link
    return [one, *beside, *(Piece(_tidy(text), Link.THEN) for text in later)]


def _tidy(text: str) -> str:
    return _FIRST.sub("", text.strip(" ,;:\t\n–—-")).strip()


def _is_cut(left: str, right: str, kind: Link, connective: str, *, is_first: bool) -> bool:
    """Return whether a connective parts two requests."""
    is_strong = kind in STRONG
    if _QUOTE.match(right) and not is_strong:
        return False  # a name of something: "the difference between 'save' and 'save as'"
    is_lone = not is_first and "," in connective and left.strip().lower() in VERBS - AMBIGUOUS  # "fix it, deploy, and tell Bo"
    if not (is_lone or _stands(left, is_strong=False)) or not _begins(right, kind):
        return False
    said, told = tokens(without_politeness(_FIRST.sub("", left.strip()))), tokens(without_politeness(right))
    if kind is Link.THEN and is_condition(without_politeness(left)) and "then" in connective.lower():
        return False  # if …, then …
    if is_inside(left, right, connective):
        return False
    if kind is Link.AND and (both := _BOTH.search(left)) and not starts_like_a_clause(both["one"]):
        return False  # "that cover both theft and water damage"
    if is_strong:
        return True
    if len(said) == 2 and said[1] in VERBS and told[0] in VERBS and "," not in connective:
        return False  # "grant read and write access"
    if _is_last_of_list(left, told, connective):
        return False
    if (
        said[0] in _SUBJECTS
        and not AUXILIARIES & set(said[1:6])
        and (told[0] not in WH | AUXILIARIES or _PREDICATE.match(right))
    ):
        return False  # a second predicate: "which campaigns reached 10,000 people and cost less than 2 cents"
    is_asked_anew = ";" in connective and (told[0].endswith("'s") or bool(AUXILIARIES & set(told[1:3])))
    if (
        told[0] in WH
        and not is_asked_anew
        and not _is_condition_of_more(right)
        and (_has_subordinate(said) or said[0] not in WH | AUXILIARIES)
    ):
        return False  # "tell me what it costs and why it matters"
    if _HAS_NOT.match(right):
        return False  # "members who joined in May and have not paid"
    if told[0] in AUXILIARIES and said[0] not in WH | AUXILIARIES and not _is_caused(without_politeness(right)):
        return False
    if told[0] in WH and not WHEN.match(right) and is_about_the_same(right):
        return False  # "who should attend the meeting and what is its agenda?"
    if _MANNER.match(right):
        return False  # how to do it: "and keep it short"
    if (
        PAIRING & set(said[:2])
        and told[0] in AMBIGUOUS - {"draft"}
        and len(said) <= 3
        and told[1:2] != [*DETERMINERS & set(told[1:2])]
    ):  # "compare price and rate"
        return False
    if said[-1:] == ["ahead"] or (said[0] in {"go", "try", "come"} and len(said) <= 2):  # "go ahead and"
        return False
    is_found = told[0] in {"find", "identify"} and not names_its_matter(right)
    is_shown = is_found or told[0] in {"say", "explain", "see"} or told[:2] in _SHOWN
    is_told = told[0] in {"highlight", "list", "note", "show", "point"} and bool(WH & set(told[1:3]))
    if said[0] == "compare" and is_told and "," not in connective:
        return False  # "compare the versions and highlight what changed"
    is_one_look = said[0] in LOOKING and is_shown and "," not in connective and kind is Link.AND
    return not is_one_look or refers_back(right, "")


def _is_last_of_list(left: str, told: list[str], connective: str) -> bool:
    """Return whether "and" ends a list of nouns: "summarise the pros, cons and open questions"."""
    found = _LISTED.search(left)
    return bool(
        found and "," not in connective and told[1:2] and told[1] not in DETERMINERS and not starts_like_a_clause(found[1])
    )


def _is_caused(text: str) -> bool:
    """Return whether a text asks for what another person is to do: "have it signed", "have Nina approve the draft"."""
    found = _HAVING.match(text)
    return found is not None and (found["verb"] is None or found["verb"].lower() in VERBS)


def _is_second_thing(left: str, right: str, thing: re.Pattern[str]) -> bool:
    """Return whether two things are asked for by one verb: "I need a forecast of sales and a persona for students"."""
    asked = _ASKED_FOR.match(without_politeness(left))
    if not asked or not thing.match(right) or _HOLDING.search(left):
        return False
    return asked["proposed"] is None or bool(_OF_ITS_OWN.search(left))  # "suggest a name and a slogan for the shop" is one


def _is_condition_of_more(text: str) -> bool:
    """Return whether a text begins with a condition, and a clause follows it: "when it is in, call me"."""
    return bool(WHEN.match(text)) and ("," in text or bool(main_clause(text)))


def _asked_by(text: str) -> str:
    """Return the words by which the first of two things is asked for."""
    asked = _ASKED_FOR.match(without_politeness(text))
    return f"{asked['verb']} " if asked else ""


def _has_subordinate(words: list[str]) -> bool:
    return any(word in WH or word in {"whether", "if"} for word in words[1:])


def _stands(text: str, *, is_strong: bool) -> bool:
    """Return whether a text is a request of its own."""
    bare = _FIRST.sub("", without_back_phrase(without_politeness(_LEADING.sub("", text.lstrip()))))
    words = tokens(bare)
    if not words or (len(words) == 1 and not is_strong):
        return False
    if len(words) == 2 and (words[0] in AUXILIARIES or words[1] in PARTICLES | {"me", "us"}) and not is_strong:
        return False  # "could you", "clean up"
    if _FIRST.match(without_politeness(text)) and words[0].endswith("ing"):
        return True  # "start by comparing the offers"
    if starts_like_a_clause(bare, is_strong=True):
        return True
    if main_clause(text):
        return True
    opening, *after = _MAIN.split(bare, maxsplit=1)  # "for the launch, recommend channels"
    if is_unfinished(opening):
        return False  # "our intern wants to learn how to write, test and deploy an app"
    return bool(after) and starts_like_a_clause(after[0], is_strong=True)


def _begins(text: str, kind: Link) -> bool:
    """Return whether what follows a connective begins a request of its own."""
    if re.match(r"\s*(?:otherwise|else)\b", text, re.IGNORECASE) or _SAY.match(text):
        return False  # the other half of a condition
    if kind is Link.AND and (lone := _LONE.match(text)) and lone[1].lower() in AMBIGUOUS:
        return False  # an item of a list of nouns: "with date, place, prices"
    if starts_like_a_clause(text, is_strong=kind in STRONG):
        return True
    words = tokens(without_politeness(text))
    if kind is Link.ALSO and words and words[0].endswith("ing") and lemma(words[0]):
        return True  # "as well as ordering a taxi"
    if not words:
        return False
    if kind is Link.AND and (next_step := _THEN_LATER.search(text)):
        text = text[: next_step.start()]  # "from Ann and from Bob, then compare them"
    after = without_back_phrase(text)
    if after != text.lstrip() and starts_like_a_clause(after):
        return True
    if main_clause(text):
        return True
    said, *later = _COMMA.split(text, maxsplit=1)  # "once received, complete the form", "on that basis, list the risks"
    if not later or words[0] in {"while", "the", "a", "an", "our", "my"} or lemma(words[0]):
        return False
    return (bool(WHEN.match(said)) or refers_back(said, "")) and starts_like_a_clause(later[0], is_strong=True)


def _confirmed(pieces: list[Piece], rank: Rank) -> list[Piece]:
    """Return the pieces, neighbours of one intent joined where a weak connective parts them."""
    kept: list[Piece] = []
    known: list[tuple[str, float]] = []
    for piece in pieces:
        intent, sure = rank(piece.text)
        if kept and piece.link is Link.AND and sure >= SURE and known[-1][1] >= SURE and known[-1][0] == intent:
            kept[-1].text = f"{kept[-1].text} and {piece.text}"
            continue
        kept.append(piece)
        known.append((intent, sure))
    return kept
