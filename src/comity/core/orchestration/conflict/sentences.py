"""Sentences: the same one in other words, turned round, or with another doer, cause or figure."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Final

from comity.core.orchestration.conflict.opposites import OPPOSITES
from comity.core.orchestration.conflict.synonyms import PASTS, are_exclusive, are_synonyms, replaced, root
from comity.core.orchestration.conflict.texts import FINITE, STOP, WORD, denied, plain
from comity.core.orchestration.conflict.wording import in_digits

_ASKED_WORDS: Final = "need required necessary further more additional recommend advise suggest"
_ASKED: Final = frozenset(map(root, _ASKED_WORDS.split()))
_STOPPING: Final = frozenset(
    map(
        root,
        [
            "cancel",
            "stop",
            "halt",
            "delay",
            "postpone",
            "defer",
            "freeze",
            "abandon",
            "suspend",
            "scrap",
            "drop",
            "reject",
            "avoid",
            "refuse",
            "end",
            "terminate",
            "ban",
            "block",
        ],
    )
)
_BEFORE_OBJECT: Final = frozenset({"to", "from", "by", "with", "in", "at", "of", "on", "the", "a", "an", "for"})
_JOINING: Final = frozenset({"and", "or", "the", "a", "an", "with"})
_BEFORE_SUBJECT: Final = frozenset({"the", "our", "their", "your", "a", "an"})
_PASSIVE: Final = re.compile(
    r"^(?P<object>[^,;]+?) (?:is|are|was|were|has been|have been|will be|should be|must be) "
    r"(?:\w+ly )?(?P<verb>\w+) by (?P<doer>.+)$"
)
_CAUSE: Final = re.compile(
    r"\b(?:(?<=ed )by|(?<=en )by|led by|built by|due to|because(?: of)?|owing to|"
    r"(?:came|comes|come|stems|stemmed|resulted|originated) from|"
    r"(?:goes|went|belongs|assigned|awarded) to)\b",
    re.IGNORECASE,
)
_CONCEDED: Final = re.compile(
    r"\b(?:although|even though|though|despite|in spite of|regardless of|notwithstanding)\b", re.IGNORECASE
)
_ANY_CAUSE: Final = frozenset(map(root, ["error", "fault", "problem", "failure", "issue", "defect", "bug", "cause", "mistake"]))
PHRASE_WORDS: Final = 3  # content words of a phrase in which two sentences differ
SAME_AS_PART: Final = 0.6  # of the words of the shorter sentence, if at least SHARED_WORDS are shared
SHARED_WORDS: Final = 3
TINY_WORDS: Final = 2
PREDICATE_WORDS: Final = 12  # of a sentence that says one thing
BEGINNING: Final = 5  # letters by which two forms of a word are told to be one
SAME_SENTENCE: Final = 0.5  # of their content words two sentences share if they are about the same
_UNITS: Final = (
    r"%|percent|per cent|k|m|bn|million|billion|thousand|seconds?|minutes?|hours?|days?|weeks?|months?|years?|"
    r"km|kilometres?|miles?|metres?|kg|kilos?|tonnes?|litres?|euros?|dollars?|pounds?"
)
_FIGURE: Final = re.compile(
    r"(?:\b(?:at least|at most|(?:no |not )?(?:less|more|fewer) than|up to|over|under)\s+)?"
    rf"[$€£]?\b\d+(?:[.,]\d+)*(?:\s?(?:{_UNITS})\b|\s?%)?",
    re.IGNORECASE,
)
_EVERY: Final = re.compile(r"\bevery (?=(?:second|minute|hour|day|week|month|year)\b)", re.IGNORECASE)
_ONE: Final = re.compile(r"\bone\b(?! (?:hundred|thousand|million|billion))", re.IGNORECASE)
_NEGATIONS_WORDS: Final = (
    "not no never nobody none nothing avoid avoids avoided avoiding "
    "without neither nor cannot hardly lacks lack fails isn't aren't won't don't doesn't didn't can't "
    "shouldn't wasn't weren't couldn't wouldn't hasn't haven't"
)
_NEGATIONS: Final = frozenset(_NEGATIONS_WORDS.split())


def turned_round(left: str, right: str) -> str:
    """Return why two sentences contradict each other: a negation or an opposite; empty if they do not."""
    one, other = _content(left), _content(right)
    shared, every = _kept(left) & _kept(right), one | other
    opposed = _opposed(one - other, other - one)
    told = {word for pair in opposed for word in pair}
    negations = abs(_negations(left) - _negations(right)) % 2
    base = (
        min(len(one - told), len(other - told))
        if opposed or (negations and (len(shared) > 1 or min(len(one), len(other)) == 1))
        else len(every)
    )
    likeness = len(shared) / base if base else float(not shared)
    if likeness < SAME_SENTENCE:
        return ""
    if opposed and not negations:
        return "" if _is_other_way_round(left, right) else f"opposites: {' / '.join(min(opposed))}"
    if negations and not opposed:
        return "a negation"
    return ""


def reversed_advice(left: str, right: str) -> str:
    """Return the two opposite things that two pieces of advice about one thing say; empty if they do not."""
    one, other = _content(left), _content(right)
    opposed = _opposed(one - other, other - one)
    if opposed and _kept(left) & _kept(right) and not abs(_negations(left) - _negations(right)) % 2:
        return f"opposites: {' / '.join(min(opposed))}"
    if not opposed and abs(_negations(left) - _negations(right)) % 2:  # "hire a nurse" against "no more nurses are needed"
        short = min((words - _ASKED for words in (one, other)), key=len)
        if short and len({word[:BEGINNING] for word in short} & _kept(left) & _kept(right)) > SAME_SENTENCE * len(short):
            return "a negation"
    for said, told in ((left, right), (right, left)):  # "launch it" against "delay the launch"
        first = next((root(word) for word in WORD.findall(replaced(plain(said))) if word not in STOP), "")
        if first in _STOPPING and not _content(told) & _STOPPING and not _negations(said) and not _negations(told):
            about = {word[:BEGINNING] for word in _content(said) - {first}}
            if about and len(about & _kept(told)) >= SAME_SENTENCE * len(about):
                return f"{first} / {plain(told)}"
    return ""


@lru_cache(maxsize=16)
def _content(text: str) -> frozenset[str]:
    words = WORD.findall(replaced(plain(text).replace("-", " ")))
    return frozenset(root(word) for word in words if word not in STOP and word not in _NEGATIONS and not word[0].isdigit())


@lru_cache(maxsize=8)
def _negations(text: str) -> int:
    return sum(word in _NEGATIONS or word.endswith("n't") for word in WORD.findall(replaced(plain(text))))


def are_alike(left: str, right: str) -> bool:
    """Return whether two sentences are about the same: they share half of their words, or one has almost all of the other's."""
    one, other = _kept(left), _kept(right)
    shared, every = len(one & other), len(one | other)
    if abs(_negations(left) - _negations(right)) % 2:  # "unsafe" is "not safe"
        said, told = _content(left), _content(right)
        turned = len(_opposed(said - told, told - said))
        shared, every = shared + turned, every - turned
    if shared >= SAME_SENTENCE * every:
        return True
    return shared >= SHARED_WORDS and shared >= SAME_AS_PART * min(len(one), len(other))


def only(left: str, right: str) -> str:
    """Return what one sentence has beyond another that says "only"; empty if neither or both say so."""
    for one, other in ((left, right), (right, left)):
        if "only" in WORD.findall(plain(one)) and "only" not in WORD.findall(plain(other)):
            more = _content(other) - _content(one)
            return f"only / {min(more)}" if more else ""
    return ""


def shared_words(left: str, right: str) -> int:
    """Return how many words that say what they are about two sentences have in common."""
    return len(_kept(left) & _kept(right))


def are_tiny(left: str, right: str) -> bool:
    """Return whether two sentences that have a word in common say no more than one thing about it."""
    return max(len(_kept(left)), len(_kept(right))) <= TINY_WORDS


def other_predicate(left: str, right: str) -> str:
    """Return the two things that short sentences with one beginning go on to say, if they have no word in common; or none.

    "The hotel was empty" and "The hotel turned guests away"; "Take the tablet with food" and "Take the tablet on waking".
    """
    said, told = (WORD.findall(plain(text)) for text in (left, right))
    if max(len(said), len(told)) > PREDICATE_WORDS:
        return ""
    same = [one == other for one, other in zip(said, told, strict=False)]
    start = same.index(False) if False in same else len(same)
    rests = [" ".join(words[start:]) for words in (said, told)]
    one, other = (_content(rest) for rest in rests)
    if not _content(" ".join(said[:start])) or not one or not other or _kept(rests[0]) & _kept(rests[1]):
        return ""
    if any(are_synonyms(word, against) for word in one for against in other):
        return ""
    is_denied = abs(_negations(left) - _negations(right)) % 2 and _opposed(one, other)  # "rejected", "not supported"
    return "" if is_denied else " / ".join(rests)


def _is_other_way_round(left: str, right: str) -> bool:
    """Return whether two comparisons have their sides changed: "A is faster than B", "B is slower than A"."""
    sides = [[_content(side) for side in plain(text).split(" than ")] for text in (left, right)]
    if any(len(one) != 2 or not one[0] or not one[1] for one in sides):
        return False
    (one, other), (first, second) = sides
    names = [set(re.findall(r"\b[a-z]\b", plain(text).split(" than ")[1])) for text in (left, right)]
    return bool((other & first and second & one and not other & second) or (names[0] and names[1] and names[0] != names[1]))


@lru_cache(maxsize=16)
def _kept(text: str) -> frozenset[str]:
    """Return the beginnings of the content words, "cancel" of "cancellation", and the numbers."""
    return frozenset({word[:BEGINNING] for word in _content(text)} | set(re.findall(r"\d+(?:[.,]\d+)*", in_digits(text))))


def _opposed(said: AbstractSet[str], told: AbstractSet[str]) -> set[tuple[str, str]]:
    """Return the pairs of words of two sentences that mean the opposite of each other."""
    return {(word, against) for word in said for against in OPPOSITES.get(word, ()) if against in told} | denied(said, told)


def swapped(left: str, right: str) -> str:
    """Return the two words that changed places between sentences which else are the same: who paid whom; empty if none did."""
    said, told = (re.findall(r"[^\W_]+", plain(text)) for text in (left, right))
    places = [at for at, (one, other) in enumerate(zip(said, told, strict=False)) if one != other]
    if len(said) != len(told) or len(places) != 2:
        return ""
    first, last = places
    is_swap = said[first] == told[last] and said[last] == told[first]
    between = set(said[first + 1 : last])
    return f"{said[first]} / {said[last]}" if is_swap and not between <= _JOINING else ""


def exchanged(left: str, right: str) -> str:
    """Return the one word in which two sentences differ where one excludes the other; empty if there is none.

    Words that mean the same do not, nor do adverbs and words such as "the" and "is".
    """
    said, told = (re.findall(r"[^\W_]+", text) for text in (left, right))
    if len(said) != len(told):
        return ""
    places = [at for at, (one, other) in enumerate(zip(said, told, strict=True)) if one.casefold() != other.casefold()]
    if len(places) != 1:
        return ""
    at = places[0]
    one, other = (words[at].casefold() for words in (said, told))
    if are_synonyms(one, other) or (not at and (one.endswith("s") or other.endswith("s"))):
        return ""
    is_letter = any(len(words[at]) == 1 and words[at].isupper() for words in (said, told))  # server A, server B
    is_filler = any(word in STOP or word.endswith("ly") or any(map(str.isdigit, word)) for word in (one, other))
    return "" if is_filler and not is_letter and not are_exclusive(one, other) else f"{said[at]} / {told[at]}"


def other_phrase(left: str, right: str) -> str:
    """Return the two phrases in which sentences differ that else are word for word the same: who did it, or to what; or none.

    A subject stands before the verb, "Fog delayed the flight"; an object behind a preposition or an article at the end.
    """
    said, told = (re.findall(r"[^\W_]+", plain(text)) for text in (left, right))
    same = [one == other for one, other in zip(said, told, strict=False)]
    start = same.index(False) if False in same else len(same)
    same = [one == other for one, other in zip(reversed(said[start:]), reversed(told[start:]), strict=False)]
    end = same.index(False) if False in same else len(same)
    one, other = (words[start : len(words) - end] for words in (said, told))
    behind = said[len(said) - end :]
    is_subject = start <= 1 and not set(said[:start]) - _BEFORE_SUBJECT and len(behind) > 1 and _is_verb(behind[0])
    is_object = not behind and start > 1 and said[start - 1] in _BEFORE_OBJECT
    phrases = [_content(" ".join(words)) for words in (one, other)]
    if (
        not (is_subject or is_object)
        or not all(0 < len(phrase) <= PHRASE_WORDS for phrase in phrases)
        or phrases[0] & phrases[1]
    ):
        return ""
    return f"{' '.join(one)} / {' '.join(other)}"


def _is_verb(word: str) -> bool:
    return word in FINITE or word in PASTS or word.endswith(("ed", "es")) or word in {"will", "must", "can", "may", "shall"}


def _number_at_start(text: str) -> bool:
    word = plain(text).split(" ")[0]
    return word[:1].isdigit() or are_exclusive(word, "zero") or word == "zero"


def done_by_another(left: str, right: str) -> str:
    """Return the two doers of one thing, said once as done by someone and once as what someone does; empty if they are one.

    "Heating is paid by the landlord" and "The tenant pays for heating".
    """
    for one, other in ((left, right), (right, left)):
        found = _PASSIVE.match(plain(one))
        words = WORD.findall(plain(other))
        verbs = [at for at, word in enumerate(words) if found and at and root(word) == root(found["verb"])]
        if found is None or not verbs or _number_at_start(found["doer"]) or _PASSIVE.match(plain(other)):
            continue
        doer, object_ = _content(" ".join(words[: verbs[0]])), _content(" ".join(words[verbs[0] + 1 :]))
        if doer and not doer & _content(found["doer"]) and object_ & _content(found["object"]):
            return f"{found['doer']} / {' '.join(words[: verbs[0]])}"
    return ""


def attributed(left: str, right: str) -> str:
    """Return the two doers or causes that two sentences name for the same thing; empty if there are none."""
    one, other = _CAUSE.split(left, maxsplit=1), _CAUSE.split(right, maxsplit=1)
    if any(map(_number_at_start, (*one[1:], *other[1:]))):
        return ""  # by how much, not by whom
    if len(one) < 2 or len(other) < 2 or _content(one[0]) != _content(other[0]):
        return ""
    causes = [_content(cause) for cause in (one[1], other[1])]
    first, second = (cause - _ANY_CAUSE or cause for cause in causes)  # of "software bug" and "operator error" the first word
    return "" if first & second else f"{plain(one[1])} / {plain(other[1])}"


def conceded(left: str, right: str) -> str:
    """Return what one sentence gives as the cause of a thing that the other says happened in spite of it; empty if nothing."""
    for one, other in ((left, right), (right, left)):
        caused, against = _CAUSE.split(one, maxsplit=1), _CONCEDED.split(other, maxsplit=1)
        if len(caused) < 2 or len(against) < 2 or _CONCEDED.search(one) or _CAUSE.search(other):
            continue
        if _kept(caused[0]) & _kept(against[0]) and _kept(caused[1]) & _kept(against[1]):
            return f"{plain(caused[1])} / {plain(against[1])}"
    return ""


def figures(text: str) -> list[str]:
    """Return the figures in a sentence, each with the bound, sign or unit that goes with it; "one" is no figure."""
    return _FIGURE.findall(in_digits(_EVERY.sub("every 1 ", _ONE.sub("a", text))))
