"""The order of the parts of a request: each waits for the parts whose results it needs."""

from __future__ import annotations

import re
from typing import Final

from comity.core.orchestration.split.connectives import Link, Piece
from comity.core.orchestration.split.evidence import is_likely_next
from comity.core.orchestration.split.plan import Part, Plan
from comity.core.orchestration.split.reference import (
    has_same_antecedent,
    is_about_the_same,
    is_repeated,
    points_at_one,
    refers_back,
    refers_to_one,
)
from comity.core.orchestration.split.verbs import AUXILIARIES, WH, tokens, without_politeness
from comity.core.orchestration.split.work import (
    carries_on,
    is_about_its_topic,
    is_alike,
    is_chain,
    is_drawn_from,
    is_next_in_line,
    makes_something,
    names_its_matter,
)

_WEAK: Final = frozenset({Link.AND, Link.SENTENCE})
_TOLD: Final = frozenset({Link.THEN, Link.NUMBERED})
_QUESTION: Final = re.compile(rf"(?:and\s+)?(?:{'|'.join(WH | AUXILIARIES)})\b", re.IGNORECASE)
_OF_SEVERAL: Final = re.compile(r"\b(?:both|all\s+of\s+(?:them|these|those)|the\s+(?:two|results))\b", re.IGNORECASE)
_START: Final = re.compile(r"^(?:start|begin)\s+(?:from|with|at)\s", re.IGNORECASE)
_SAYS_THEN: Final = re.compile(
    r"^(?:[a-z]+(?:['’][a-z]+)?\s+){1,3}then\s+[a-z]+|\b(?:afterwards?|after\s+(?:that|this)|subsequently)\W*$", re.IGNORECASE
)  # "I'd then like a summary", "email Bo afterwards"


def ordered(pieces: list[Piece]) -> Plan:
    """Return the plan: each piece waits for the group before it, for all, or for none."""
    _tie(pieces)
    needs = _needs(pieces)
    parts: list[Part] = []
    group: list[int] = []  # places of the parts beside which the next one stands
    base: tuple[int, ...] = ()  # what the group waits for
    is_told = False  # whether the request says the order of the group, by a word or a number
    for at, piece in enumerate(pieces):
        is_back = needs[at]
        if is_back and piece.link is Link.AND and base and _has_its_antecedent(pieces, at):
            is_back = False  # "then send it to Ana and file it": both speak of what stands before them
        if piece.link is Link.LAST and at:
            base, group, is_told = tuple(_ends(parts)), [at], True
        elif at and (piece.link in _TOLD or (is_back and piece.link is not Link.ALSO)):
            is_one = piece.link in _WEAK and len(group) > 1 and refers_to_one(piece.text)
            base, group, is_told = ((at - 1,) if is_one else tuple(group)), [at], piece.link in _TOLD
        elif piece.link is Link.AND and (not base or is_told or needs[at]):
            group.append(at)
        else:
            base, group, is_told = (), [*group, at] if not base else [at], False
        parts.append(Part(piece.text, base))
    return Plan(tuple(parts))


def _tie(pieces: list[Piece]) -> None:
    """Make steps of pieces that are one piece of work by their verbs, or that repeat the first one."""
    if pieces[1:] and pieces[1].link is Link.AND and _START.match(pieces[0].text):
        pieces[1].link = Link.THEN
    for at, piece in enumerate(pieces):
        if piece.link in _WEAK and at and (_SAYS_THEN.search(piece.text) or _is_waited_for(pieces, at)):
            piece.link = Link.THEN
        if is_repeated(piece.text, pieces[0].text):
            for one in pieces[1 : at + 1]:
                one.link = Link.THEN
    if is_chain([one.text for one in pieces]) and all(one.link in _WEAK for one in pieces):
        for one in pieces:
            one.link = Link.THEN


def _is_waited_for(pieces: list[Piece], at: int) -> bool:
    """Return whether a piece or the one before it says to wait: "stop the job, wait five minutes, start it again"."""
    return any(tokens(without_politeness(one.text))[:1] == ["wait"] for one in pieces[at - 1 : at + 1])


def _needs(pieces: list[Piece]) -> list[bool]:
    """Return for each piece whether it needs what stands before it.

    A list with a step that refers back is a chain: the step before that one and the steps after it belong to it, but for those
    that name a matter of their own.
    """
    needs = [_refers(pieces, at) for at in range(len(pieces))]
    for at in range(1, len(pieces)):
        text, is_weak = pieces[at].text, pieces[at].link is Link.AND and not needs[at]
        is_led = at + 1 < len(pieces) and pieces[at + 1].link is Link.AND and points_at_one(pieces[at + 1].text)
        if (
            is_weak
            and is_led
            and not names_its_matter(text)
            and not makes_something(text)
            and pieces[at - 1].link in {Link.AND, Link.SENTENCE}
        ):
            needs[at] = True  # "convert the file, correct the formatting and send it to me"
        elif is_weak and carries_on(text) and at > 1 and needs[at - 1] and pieces[at - 1].link in _WEAK:
            needs[at] = True  # "find the bug, fix it and write a test"
    return needs


def _refers(pieces: list[Piece], at: int) -> bool:
    if at == 0:
        return False
    text, last = pieces[at].text, pieces[at - 1].text
    if pieces[at].link in _WEAK and _are_questions(last, text):
        return False  # "Who is the CFO of Siemens? What was their revenue?"
    if is_alike(text, last) and not points_at_one(text):
        return False  # "Find the best plumber in Graz. Find the best painter in Linz."
    before = "; ".join(one.text for one in pieces[:at])
    is_listed = pieces[at].link is Link.AND
    is_one_of_both = any(_OF_SEVERAL.search(one.text) for one in pieces[at + 1 :])  # "based on both, draft a plan"
    return (
        refers_back(text, before)
        or is_next_in_line(text, last, is_listed=is_listed)
        or (
            is_listed
            and not is_one_of_both
            and is_likely_next([one.text for one in pieces], at, is_told=is_order_said(pieces, at))
        )
        or (is_listed and (is_drawn_from(text, last, is_told=is_order_said(pieces, at)) or is_about_its_topic(text, last)))
    )


def is_order_said(pieces: list[Piece], at: int) -> bool:
    """Return whether a word says the order of a part, of the one before it or of one behind it: "then", "based on both"."""
    return any(one.link in _TOLD or one.link is Link.LAST for one in pieces[at - 1 :]) or any(
        _OF_SEVERAL.search(one.text) for one in pieces[at:]
    )


def _are_questions(one: str, other: str) -> bool:
    """Return whether two texts are questions, the other about what the one speaks of and not about its answer."""
    return all(_QUESTION.match(without_politeness(text)) for text in (one, other)) and is_about_the_same(other)


def _has_its_antecedent(pieces: list[Piece], at: int) -> bool:
    return has_same_antecedent(pieces[at].text, pieces[at - 1].text, " ".join(one.text for one in pieces[: at - 1]))


def _ends(parts: list[Part]) -> list[int]:
    """Return the places of the parts that no other part waits for."""
    waited = {at for part in parts for at in part.after}
    return [at for at in range(len(parts)) if at not in waited]
