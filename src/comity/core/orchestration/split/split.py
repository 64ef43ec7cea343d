"""A request of several parts as a plan: rules find the parts and their order, a classifier may confirm them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from comity.core.orchestration.split.connectives import (
    BOUNDARY,
    EARLIER,
    STRONG,
    WHEN,
    Link,
    followed,
    has_same_antecedent,
    is_about_the_same,
    is_chain,
    is_next_in_line,
    is_repeated,
    items,
    masked,
    refers_back,
    refers_to_one,
    sentences,
    speaks_of_the_known,
    without_back_phrase,
)
from comity.core.orchestration.split.objects import at_once, objects
from comity.core.orchestration.split.plan import Part, Plan
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

PARTS_MAX: Final = 20  # of one request; what follows stays in the last part
TEXT_MAX: Final = 4_000  # characters that are looked at
SURE: Final = 0.5  # from this confidence on a classifier's word counts
_LEADING: Final = re.compile(r"^(?:and|but)\s+(?!then\b)", re.IGNORECASE)
_FIRST: Final = re.compile(
    r"^(?:first\s+things\s+first|first(?:ly)?(?!\s+(?:question|thing|task|point|request))(?:\s+of\s+all|\s+off)?|initially|at\s+first|for\s+starters|in\s+a\s+first\s+step|to\s+(?:begin|start)\s+with|start\s+by|begin\s+by|begin\s+with(?=\s+\w+ing\b)|as\s+a\s+first\s+step)\b[\s,:]*",
    re.IGNORECASE,
)

_ASKED_FOR: Final = re.compile(
    r"^(?:(?:i|we)(?:'d|\s+would|\s+also)*\s+(?:need|want|like)|give\s+(?:me|us)|get\s+(?:me|us)|prepare|produce|provide|create|make|write|draft|build|"
    r"generate|(?P<proposed>suggest|recommend|design)|show\s+(?:me|us)|send\s+(?:me|us))\s+(?:both\s+)?(?:an?|the|my|our|two|three)\s+\w+",
    re.IGNORECASE,
)
_THING: Final = re.compile(r"^an?\s+[\w-]+\s+\w+", re.IGNORECASE)
_OF_ITS_OWN: Final = re.compile(r"\b(?:for|of|about|to|on)\b", re.IGNORECASE)
_HOLDING: Final = re.compile(r"\b(?:with|between|including|containing|comparing|that|which|featuring|from)\b", re.IGNORECASE)

_HAVING: Final = re.compile(
    r"^(?:have|get)\s+(?:(?:it|them|this|that|these|those|the\s+\w+|both)\s+\w+(?:ed|en|t|d)\b"
    r"|(?!you\b|we\b|i\b|they\b)(?:the\s+|our\s+|my\s+)?[\w'’-]+\s+(?P<verb>[a-z]+)\s)",
    re.IGNORECASE,
)
# Verbs of one object, or of one person's task: what follows "and" is another of them.
_UNFINISHED: Final = re.compile(
    r"\b(?:to|can|could|should|must|will|would|may|might)\s+((?:\w+\s*,\s*)*\w+)\s*,?$", re.IGNORECASE
)
_TOLD_TO: Final = re.compile(
    r"(?:^|\b(?=\w+ing\b))(?:tell|ask|instruct|allow|teach|train|advise)(?:ing)?\s+(?:[\w'’-]+\s+){1,4}?to\s+\w+", re.IGNORECASE
)
_HOW_TO: Final = re.compile(r"^(?:how|where|when)\s+(?:do|can|could|should|would|might)\s+(?:i|we|you|one)\b", re.IGNORECASE)
_PREDICATE: Final = re.compile(
    r"^\w+\s+(?:(?:since|been|not|also|still|already|never|now)\b|\w+(?:ed|ly|ing)\b)", re.IGNORECASE
)
_ALTERNATIVES: Final = re.compile(r"\s\bor\b[^?]*\?$", re.IGNORECASE)
_MAIN: Final = re.compile(r",|\s(?=(?:we|you)\s(?:should|must|need\sto)\b)", re.IGNORECASE)  # where a main clause may begin
_TROUBLE: Final = re.compile(
    r"^(?:my|our|the|i)\b.*(?:n't|\b(?:not|cannot|never|wrong|broken|missing|stuck|down|fails?))\b", re.IGNORECASE
)
_MANNER: Final = re.compile(
    r"^\s*(?:(?:explain|justify|state|give)\s+(?:it|why|your\s+\w+)\s*[.!?]?|keep\s+(?:it|them|this|that)\s.{2,60}|(?:be|make\s+it)\s+\w+\s*[.!]?)$",
    re.IGNORECASE,
)
_IN_ORDER: Final = re.compile(r"\b(?:in (?:this|that|the following) order|steps?|in order|in turn|one after)\b", re.IGNORECASE)

_SHOWN: Final = tuple([verb, whom] for verb in ("tell", "show", "let") for whom in ("me", "us"))
_SUBJECTS: Final = frozenset({"which", "who", "what", "how"})

Rank = Callable[[str], tuple[str, float]]  # the intent of a text, and the confidence in it


@dataclass(slots=True)
class _Piece:
    """A part that was found, and how it hangs on the one before."""

    text: str
    link: Link


def split(text: str, rank: Rank | None = None) -> Plan:
    """Return the parts of a request and their order.

    rank: the intent of a text and the confidence in it. Neighbours that a weak connective parts and that have the same intent
        stay one part.
    """
    head, rest = text[:TEXT_MAX], text[TEXT_MAX:]
    pieces = _pieces(head)
    if rank is not None:
        pieces = _confirmed(pieces, rank)
    kept, more = pieces[:PARTS_MAX], pieces[PARTS_MAX:]
    if kept and (more or rest):
        kept[-1].text = " ".join([kept[-1].text, *(one.text for one in more)]) + rest
    return _ordered(kept)


def _pieces(text: str) -> list[_Piece]:
    listed = items(text)
    if listed is not None and 2 * sum(starts_like_a_clause(one, is_strong=True) for one in listed[1]) > len(listed[1]):
        return _of_list(*listed)
    pieces: list[_Piece] = []
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


def _of_list(intro: str, found: list[str], is_steps: bool) -> list[_Piece]:
    is_chain = is_steps or bool(_IN_ORDER.search(intro)) or any(refers_back(one, "") for one in found[1:])
    pieces = [_Piece(one, Link.NUMBERED if is_chain else Link.SENTENCE) for one in found]
    return [*(_pieces(intro) if _is_request(intro) else []), *pieces]


def _moved_before(last: _Piece, text: str) -> list[_Piece]:
    """Return what is to be done before the last piece, then that piece."""
    earlier = _cuts(text)
    if not earlier:
        return [last]
    earlier[0].link, last.link = last.link, Link.THEN
    return [*earlier, last]


def _join(pieces: list[_Piece], found: list[_Piece]) -> None:
    pieces[-1].text = f"{pieces[-1].text} {found[0].text}"
    pieces += found[1:]


def _is_request(intro: str) -> bool:
    words = tokens(intro)
    return (
        starts_like_a_clause(intro)
        and not intro.endswith(":")
        and not {"following", "these", "things", "tasks", "steps"} & set(words)
    )


def _of_sentence(sentence: str) -> list[_Piece]:
    turned = reversed_parts(sentence)
    if turned is not None:
        early, late = turned
        first, second = _cuts(early), _cuts(late)
        second[0].link = Link.THEN
        return [*first, *second]
    return _beside(sentence) or _of_one_verb(sentence) or _cuts(sentence)


def _beside(sentence: str) -> list[_Piece]:
    tasks = at_once(sentence)
    if tasks is None:
        return []
    one, other = (_cuts(task) for task in tasks)
    other[0].link = Link.ALSO
    return [*one, *other]


def _of_one_verb(sentence: str) -> list[_Piece]:
    return [_Piece(_tidy(text), link) for text, link in objects(sentence)]


def _cuts(sentence: str) -> list[_Piece]:
    """Return the parts of one sentence: a cut holds where both sides stand alone."""
    pieces: list[_Piece] = []
    start, link = 0, Link.SENTENCE
    at, searched = 0, masked(sentence)
    while found := BOUNDARY.search(searched, at):
        at = max(found.start() + len(found.group().rstrip(" ,")), found.start() + 1)  # its comma may begin the next connective
        kind = Link(next(name for name, value in found.groupdict().items() if value is not None))
        left, right = sentence[start : found.start()], sentence[found.end() :]
        if not left.strip(" ,"):
            if kind in STRONG and not pieces:
                link, start = kind, found.end()
            continue
        if _is_cut(left, right, kind, found.group(), is_first=not pieces):
            pieces.append(_Piece(left, link))
            start, link = found.end(), kind
    pieces.append(_Piece(sentence[start:], link))
    return [piece for one in pieces for piece in _followed(one) if tokens(piece.text)]


def _followed(piece: _Piece) -> list[_Piece]:
    first, *later = followed(piece.text) or [piece.text]
    one, *beside = _of_one_verb(first) or [_Piece(_tidy(first), piece.link)]
    one.link = piece.link
    return [one, *beside, *(_Piece(_tidy(text), Link.THEN) for text in later)]


def _tidy(text: str) -> str:
    return _FIRST.sub("", text.strip(" ,;:\t\n–—-")).strip()


def _is_cut(left: str, right: str, kind: Link, connective: str, *, is_first: bool) -> bool:
    """Return whether a connective parts two requests."""
    is_strong = kind in STRONG
    if kind in {Link.AND, Link.ALSO} and _is_second_thing(left, right):
        return True
    is_lone = not is_first and "," in connective and left.strip().lower() in VERBS - AMBIGUOUS  # "fix it, deploy, and tell Bo"
    if not (is_lone or _stands(left, is_strong=False)) or not _begins(right, kind):
        return False
    said, told = tokens(without_politeness(_FIRST.sub("", left.strip()))), tokens(without_politeness(right))
    if kind is Link.THEN and is_condition(without_politeness(left)) and "then" in connective.lower():
        return False  # if …, then …
    if _is_one_clause(left, right, said, told, connective):
        return False
    if is_strong:
        return True
    if (
        said[0] in _SUBJECTS
        and not AUXILIARIES & set(said[1:6])
        and (told[0] not in WH | AUXILIARIES or _PREDICATE.match(right))
    ):
        return False  # a second predicate: "which campaigns reached 10,000 people and cost less than 2 cents"
    if told[0] in WH and not WHEN.match(right) and (_has_subordinate(said) or said[0] not in WH | AUXILIARIES):
        return False  # "tell me what it costs and why it matters"
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
    is_shown = told[0] in {"say", "explain", "see", "find", "identify"} or told[:2] in _SHOWN
    return not (said[0] in LOOKING and is_shown and "," not in connective and kind is Link.AND and not refers_back(right, ""))


def _is_one_clause(left: str, right: str, said: list[str], told: list[str], connective: str) -> bool:
    """Return whether a verb that follows a connective has its subject or its object in the clause on the other side."""
    if told[0] in WH | AUXILIARIES:
        return False
    is_then = "then" in connective.lower()
    if not is_then and (found := _UNFINISHED.search(left)) and found[1].islower() and lemma(tokens(found[1])[0]):
        return True  # verbs of one object: "what does it cost to build and maintain the platform"
    if said[0] in _SUBJECTS | AUXILIARIES and _ALTERNATIVES.search(right):
        return True  # "what comes first, paying or saving?"
    if "," in connective:
        return False
    if without_politeness(right) != right.strip():
        return False
    return bool(_HOW_TO.match(left) or (not is_then and _TOLD_TO.search(without_politeness(left))))


def _is_caused(text: str) -> bool:
    """Return whether a text asks for what another person is to do: "have it signed", "have Nina approve the draft"."""
    found = _HAVING.match(text)
    return found is not None and (found["verb"] is None or found["verb"].lower() in VERBS)


def _is_second_thing(left: str, right: str) -> bool:
    """Return whether two things are asked for by one verb: "I need a forecast of sales and a persona for students"."""
    asked = _ASKED_FOR.match(without_politeness(left))
    if not asked or not _THING.match(right) or _HOLDING.search(left):
        return False
    return asked["proposed"] is None or bool(_OF_ITS_OWN.search(left))  # "suggest a name and a slogan for the shop" is one


def _has_subordinate(words: list[str]) -> bool:
    return any(word in WH or word in {"whether", "if"} for word in words[1:])


def _stands(text: str, *, is_strong: bool) -> bool:
    """Return whether a text is a request of its own."""
    bare = _FIRST.sub("", without_back_phrase(without_politeness(_LEADING.sub("", text.lstrip()))))
    words = tokens(bare)
    if not words or (len(words) == 1 and not is_strong):
        return False
    if len(words) == 2 and (words[0] in AUXILIARIES or words[1] in PARTICLES) and not is_strong:
        return False  # "could you", "clean up"
    if _FIRST.match(without_politeness(text)) and words[0].endswith("ing"):
        return True  # "start by comparing the offers"
    if starts_like_a_clause(bare, is_strong=True):
        return True
    _, *after = _MAIN.split(bare, maxsplit=1)  # "for the launch, recommend channels"
    return bool(after) and starts_like_a_clause(after[0], is_strong=True)


def _begins(text: str, kind: Link) -> bool:
    """Return whether what follows a connective begins a request of its own."""
    if re.match(r"\s*(?:otherwise|else)\b", text, re.IGNORECASE):
        return False  # the other half of a condition
    if starts_like_a_clause(text, is_strong=kind in STRONG):
        return True
    words = tokens(without_politeness(text))
    if not words:
        return False
    after = without_back_phrase(text)
    if after != text.lstrip() and starts_like_a_clause(after):
        return True
    said, comma, after = text.partition(",")  # "once received, complete the form", "on that basis, list the risks"
    is_back = bool(WHEN.match(said)) or refers_back(said, "")
    return (
        bool(comma) and is_back and words[0] != "while" and not lemma(words[0]) and starts_like_a_clause(after, is_strong=True)
    )


def _confirmed(pieces: list[_Piece], rank: Rank) -> list[_Piece]:
    """Return the pieces, neighbours of one intent joined where a weak connective parts them."""
    kept: list[_Piece] = []
    known: list[tuple[str, float]] = []
    for piece in pieces:
        intent, sure = rank(piece.text)
        if kept and piece.link is Link.AND and sure >= SURE and known[-1][1] >= SURE and known[-1][0] == intent:
            kept[-1].text = f"{kept[-1].text} and {piece.text}"
            continue
        kept.append(piece)
        known.append((intent, sure))
    return kept


def _ordered(pieces: list[_Piece]) -> Plan:
    """Return the plan: each piece waits for the group before it, for all, or for none."""
    parts: list[Part] = []
    group: list[int] = []  # places of the parts beside which the next one stands
    base: tuple[int, ...] = ()  # what the group waits for
    for at, piece in enumerate(pieces):
        if is_repeated(piece.text, pieces[0].text):
            for one in pieces[1 : at + 1]:
                one.link = Link.THEN
    if is_chain([one.text for one in pieces]) and all(one.link in {Link.AND, Link.SENTENCE} for one in pieces):
        for one in pieces:
            one.link = Link.THEN
    for at, piece in enumerate(pieces):
        before = " ".join(one.text for one in pieces[:at])
        is_back = at > 0 and (refers_back(piece.text, before) or is_next_in_line(piece.text, pieces[at - 1].text))
        if is_back and piece.link is Link.SENTENCE and _are_questions(pieces[at - 1].text, piece.text):
            is_back = False  # "Who is the CFO of Siemens? What was their revenue?"
        if is_back and piece.link is Link.AND and base and _has_its_antecedent(pieces, at):
            is_back = False  # "then send it to Ana and file it": both speak of what stands before them
        if piece.link is Link.LAST and at:
            base, group = tuple(_ends(parts)), [at]
        elif at and (piece.link in {Link.THEN, Link.NUMBERED} or (is_back and piece.link is not Link.ALSO)):
            is_one = piece.link in {Link.AND, Link.SENTENCE} and len(group) > 1 and refers_to_one(piece.text)
            base, group = ((at - 1,) if is_one else tuple(group)), [at]
        elif piece.link is Link.AND and at > 1 and pieces[at - 1].link is Link.AND and base and speaks_of_the_known(piece.text):
            base, group = (
                tuple(group),
                [at],
            )  # the chain goes on: "shortlist suppliers, ask them for samples and score the samples"
        elif piece.link is Link.AND:
            group.append(at)
        else:
            base, group = (), [*group, at] if not base else [at]
        parts.append(Part(piece.text, base))
    return Plan(tuple(parts))


def _are_questions(one: str, other: str) -> bool:
    """Return whether two texts are questions, the other about what the one speaks of and not about its answer."""
    first = (*tokens(without_politeness(one))[:1], *tokens(without_politeness(other))[:1])
    return all(word in WH for word in first) and is_about_the_same(other)


def _has_its_antecedent(pieces: list[_Piece], at: int) -> bool:
    return has_same_antecedent(pieces[at].text, pieces[at - 1].text, " ".join(one.text for one in pieces[: at - 1]))


def _ends(parts: list[Part]) -> list[int]:
    """Return the places of the parts that no other part waits for."""
    waited = {at for part in parts for at in part.after}
    return [at for at in range(len(parts)) if at not in waited]
