"""Words and sentences: the same category in another form, the same name in another order, the same sentence turned round."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import Final

from comity.core.orchestration.intent.stems import stem

SENTENCE_WORDS: Final = 5  # from here on a text is a sentence, not a category
SAME_SENTENCE: Final = 0.5  # of their content words two sentences share if they are about the same

MISSING: Final = frozenset(
    {"", "-", "--", "—", "?", "n/a", "na", "none", "null", "nil", "unknown", "tbd", "tba", "tbc", "not available", "not known",
     "no data", "not specified", "unspecified", "undefined", "not applicable", "missing", "not given", "not disclosed",
     "pending", "nan", "unavailable", "to be determined", "to be confirmed", "to be announced", "to be decided",
     "data unavailable", "not reported", "not stated", "not provided", "not mentioned", "not found", "not determined",
     "undetermined", "not yet known", "not yet available", "not assigned", "unassigned", "no information", "no answer"}
)  # fmt: skip
_YES: Final = frozenset({"yes", "true", "y", "on", "correct", "affirmative", "enabled", "agreed", "ja", "oui", "si"})
_NO: Final = frozenset({"no", "false", "n", "off", "incorrect", "negative", "disabled", "nein", "non"})
_LEGAL: Final = frozenset(
    {
        "inc",
        "ltd",
        "limited",
        "gmbh",
        "corp",
        "corporation",
        "llc",
        "plc",
        "co",
        "company",
        "ag",
        "sa",
        "bv",
        "nv",
        "kg",
        "the",
        "se",
        "oy",
        "ab",
        "spa",
        "srl",
        "pty",
        "incorporated",
    }
)
_TITLES: Final = frozenset({"mr", "mrs", "ms", "dr", "prof", "professor", "sir", "miss"})
_ALIASES: Final = {
    "us": "united states", "usa": "united states", "u.s.": "united states", "u.s.a.": "united states",
    "united states of america": "united states",
    "america": "united states", "uk": "united kingdom", "u.k.": "united kingdom", "great britain": "united kingdom",
    "uae": "united arab emirates",
    "eu": "european union", "nyc": "new york city", "holland": "netherlands", "the netherlands": "netherlands",
    "deutschland": "germany", "de": "germany", "fr": "france", "es": "spain", "nl": "netherlands", "ch": "switzerland",
    "jp": "japan", "cn": "china", "br": "brazil", "gb": "united kingdom", "pl": "poland", "dk": "denmark", "fi": "finland",
    "pt": "portugal", "gr": "greece", "ie": "ireland", "mx": "mexico", "kr": "south korea", "tr": "turkey",
    "mon": "monday", "tue": "tuesday", "tues": "tuesday", "wed": "wednesday", "thu": "thursday", "thurs": "thursday",
    "fri": "friday", "sat": "saturday", "sun": "sunday", "euro": "eur", "euros": "eur", "€": "eur", "pound sterling": "gbp",
    "pounds": "gbp", "£": "gbp", "us dollar": "usd", "us dollars": "usd", "yen": "jpy",
    "swiss franc": "chf", "swiss francs": "chf",
}  # fmt: skip
_LANGUAGES: Final = {
    "en": "english", "de": "german", "fr": "french", "es": "spanish", "it": "italian", "pt": "portuguese", "nl": "dutch",
    "pl": "polish", "sv": "swedish", "da": "danish", "no": "norwegian", "fi": "finnish", "cs": "czech", "ru": "russian",
    "uk": "ukrainian", "tr": "turkish", "el": "greek", "ar": "arabic", "he": "hebrew", "hi": "hindi", "zh": "chinese",
    "ja": "japanese", "ko": "korean", "deutsch": "german", "français": "french", "español": "spanish",
}  # fmt: skip
_LANGUAGE: Final = re.compile(r"(?:^|_)(?:lang|language|languages|locale)$")
_NEGATIONS: Final = frozenset(
    {
        "not",
        "no",
        "never",
        "without",
        "neither",
        "nor",
        "cannot",
        "hardly",
        "lacks",
        "lack",
        "fails",
        "isn't",
        "aren't",
        "won't",
        "don't",
        "doesn't",
        "didn't",
        "can't",
        "shouldn't",
        "wasn't",
        "weren't",
        "couldn't",
        "wouldn't",
        "hasn't",
        "haven't",
    }
)
_DEGREES: Final = frozenset(
    {
        "very",
        "extremely",
        "not",
        "non",
        "slightly",
        "partially",
        "partly",
        "semi",
        "less",
        "more",
        "medium",
        "low",
        "high",
        "un",
        "mostly",
        "never",
        "no",
        "pre",
        "post",
        "anti",
        "ex",
        "former",
        "vice",
        "deputy",
        "north",
        "south",
        "east",
        "west",
        "new",
        "old",
        "upper",
        "lower",
        "mid",
        "junior",
        "senior",
    }
)
_STOP: Final = frozenset(
    {"the", "a", "an", "of", "to", "in", "on", "for", "by", "with", "at", "from", "as", "is", "are", "was", "were", "be",
     "been", "being", "it", "its", "this", "that", "these", "those", "and", "or", "we", "you", "they", "i", "our", "your",
     "their", "will", "would", "should", "could", "can", "may", "might", "must", "has", "have", "had", "do", "does",
     "did", "so", "very", "than", "then", "there", "here", "into", "about", "please", "go", "went", "gone", "goes",
     "going", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "some", "several", "many", "few"}
)  # fmt: skip
_SHORT: Final = {
    "st": "street", "rd": "road", "ave": "avenue", "blvd": "boulevard", "sq": "square", "dept": "department",
    "mgmt": "management",
    "intl": "international", "govt": "government", "univ": "university", "mgr": "manager", "asst": "assistant",
}  # fmt: skip
_FINITE: Final = frozenset(
    {"is", "are", "was", "were", "will", "should", "has", "have", "had", "increased", "decreased", "rises", "grows", "falls",
     "improved", "declined", "dropped", "exceeded", "doubled"}
)  # fmt: skip
_OPPOSITES: Final = """
accept approve agree | reject decline refuse deny disapprove
safe secure | unsafe dangerous insecure risky hazardous
up upward upwards increase rise grow climb gain expand improve higher raise surge | down downward downwards decrease fall shrink
  drop decline loss contract worsen lower reduce cut plunge
profit profitable gain | loss unprofitable deficit
positive favourable favorable | negative unfavourable unfavorable adverse
high higher highest maximum | low lower lowest minimum
buy purchase | sell
pass succeed success successful | fail failure unsuccessful failed
possible feasible viable | impossible infeasible unviable unfeasible
legal lawful allowed permitted compliant | illegal unlawful forbidden prohibited banned noncompliant
open | closed shut
active enabled on | inactive disabled off
available | unavailable
above over exceeds exceeded | below under
more | less fewer
better best outperform outperformed | worse worst underperform underperformed
strong | weak
early earlier before ahead | late later after behind
recommend advise endorse | avoid discourage oppose against
proceed continue launch start begin | stop halt abandon cancel end pause
enter | exit leave
hire | fire dismiss
support favour favor | oppose resist
cheap inexpensive affordable | expensive costly
fast quick | slow
hot warm | cold cool
win won | lose lost
include included | exclude excluded
optimistic bullish | pessimistic bearish
overvalued | undervalued
complete completed finished done | incomplete unfinished pending
ready | unready
valid correct right true | invalid incorrect wrong false
full | empty
public | private
internal | external
majority most | minority
always | never
stable steady flat unchanged constant | unstable volatile collapse plunge surge soar rise fall increase decrease grow shrink
  drop
likely | unlikely
healthy | sick unhealthy
guilty | innocent
present | absent
all everyone | none nobody
accelerate quicken | decelerate slow ease
tighten | loosen ease
gain win | lose
confirm | deny refute dispute
major | minor
mandatory required compulsory | optional voluntary
small | large big
easy simple | hard difficult complex
surplus | deficit shortage
enough sufficient adequate | insufficient inadequate
satisfied happy | dissatisfied unhappy
import | export
inflow | outflow
"""


def _opposed() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for line in _OPPOSITES.replace("\n  ", " ").strip().splitlines():
        left, right = ([stem(word) for word in side.split()] for side in line.split("|"))
        for one, others in [*((word, right) for word in left), *((word, left) for word in right)]:
            found.setdefault(one, set()).update(others)
    return found


_PASTS: Final = {
    "fell": "fall", "fallen": "fall", "rose": "rise", "risen": "rise", "grew": "grow", "grown": "grow", "shrank": "shrink",
    "rising": "rise", "losing": "lose",
    "sold": "sell", "bought": "buy", "won": "win", "lost": "lose", "began": "begin", "went": "go", "gone": "go",
}  # fmt: skip
OPPOSITES: Final = _opposed()
_CAUSE: Final = re.compile(r"\b(?:(?<=ed )by|(?<=en )by|led by|built by|due to|because of|owing to)\b", re.IGNORECASE)
_SIGN: Final = re.compile(r"(?:(?<=\w)[+-]+)?$")
_WORD: Final = re.compile(r"[^\W_]+(?:[.'’-][^\W_]+)*|\d+(?:[.,]\d+)*%?")


def plain(text: str) -> str:
    """Return a text in small letters, without accents, odd spaces and signs at its ends."""
    folded = unicodedata.normalize("NFKD", text.casefold())
    bare = "".join(one for one in folded if not unicodedata.combining(one)).replace("’", "'")
    return re.sub(r"[\s_]+", " ", bare).strip(" .,;:!?\"'")


def is_missing(text: str) -> bool:
    """Return whether a text says that nothing is known."""
    return plain(text) in MISSING or text.strip() in MISSING


def truth(text: str) -> bool | None:
    """Return what a word for yes or no means; None for any other text."""
    word = plain(text)
    return True if word in _YES else False if word in _NO else None


def _stems(text: str) -> list[str]:
    return [
        word if word[0].isdigit() else stem(_spelt(word))
        for word in _WORD.findall(plain(text).replace("-", " ").replace("/", " "))
    ]


def _spelt(word: str) -> str:
    """Return a word in one of its two English spellings, an irregular past in its present."""
    if word in _PASTS or word in _SHORT:
        return _PASTS.get(word) or _SHORT[word]
    for british, american in (
        ("our", "or"),
        ("ise", "ize"),
        ("isation", "ization"),
        ("ising", "izing"),
        ("ised", "ized"),
        ("tre", "ter"),
        ("lled", "led"),
        ("lling", "ling"),
    ):
        if word.endswith(british) and len(word) > len(british) + 2:
            return word[: -len(british)] + american
    return word


def address(text: str) -> str | None:
    """Return an e-mail address or link as it is compared; None for any other text."""
    bare = text.strip()
    if re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", bare):
        return bare.casefold()
    if re.match(r"^(?:https?://|www\.)\S+$", bare, re.IGNORECASE):
        rest = re.sub(r"^(?:https?://)?(?:www\.)?", "", bare, flags=re.IGNORECASE)
        host, slash, path = rest.partition("/")
        return f"{host.casefold()}{slash}{path}".rstrip("/")
    return None


def same_category(left: str, right: str, name: str = "") -> tuple[bool, str]:
    """Return whether two short texts of the field `name` say the same thing, and by which rule."""
    aliases = _LANGUAGES if _LANGUAGE.search(name) else _ALIASES
    one, other = (aliases.get(plain(text), plain(text)) for text in (left, right))
    if one == other or one.replace(" ", "") == other.replace(" ", ""):
        return True, "same words"
    if _SIGN.search(one)[0] != _SIGN.search(other)[0]:  # type: ignore[index]  # matches any text: A and A+
        return False, "different signs"
    first, second = _stems(one), _stems(other)
    if first == second or "".join(first) == "".join(second):
        return True, "same words in another form"
    if ("," in left or "," in right) and Counter(first) == Counter(second) and len(first) == 2:
        return True, "same name in another order"
    if _is_initials(left, right) or _is_initials(right, left):
        return True, "initials"
    bare, other_bare = ([word for word in words if word not in _LEGAL | _TITLES] for words in (first, second))
    if bare and bare == other_bare:
        return True, "same name"
    if _is_initialled(bare, other_bare) or _is_initialled(other_bare, bare):
        return True, "same name with an initial"
    small, large = sorted((set(bare), set(other_bare)), key=len)
    if (
        small
        and small < large
        and not (large - small) & _DEGREES
        and not any(word.isdigit() or word == "#" for word in large - small)
    ):
        return True, "one says more than the other"
    return False, "different words"


def _is_initials(short: str, full: str) -> bool:
    """Return whether a text such as HR stands for the first letters of another."""
    letters = short.strip().replace(".", "")
    words = [word for word in _WORD.findall(plain(full).replace("-", " ")) if word not in _STOP]
    return letters.isupper() and 2 <= len(letters) == len(words) and letters.casefold() == "".join(word[0] for word in words)


def _is_initialled(short: list[str], full: list[str]) -> bool:
    if len(short) != len(full) or len(short) < 2:
        return False
    pairs = list(zip(short, full, strict=True))
    has_initial = any(len(one) == 1 and other != one for one, other in pairs)
    return has_initial and all(one == other or (len(one) == 1 and other.startswith(one)) for one, other in pairs)


def is_sentence(text: str) -> bool:
    """Return whether a text is more than a name or a category."""
    said = _WORD.findall(plain(text))
    return len(said) >= SENTENCE_WORDS or (len(said) > 1 and any(word in _FINITE or word in _PASTS for word in said[1:]))


def turned_round(left: str, right: str) -> str:
    """Return why two sentences contradict each other: a negation or an opposite; empty if they do not."""
    one, other = _content(left), _content(right)
    shared, every = one & other, one | other
    opposed = {(word, against) for word in one - other for against in OPPOSITES.get(word, ()) if against in other - one}
    opposed |= {(word, against) for word in one - other for against in other - one if _is_denied(word, against)}
    told = {word for pair in opposed for word in pair}
    base = len(every - told)
    likeness = len(shared) / base if base else 1.0
    if likeness < SAME_SENTENCE:
        return ""
    negations = abs(_negations(left) - _negations(right)) % 2
    if opposed and not negations:
        return f"opposites: {' / '.join(min(opposed))}"
    if negations and not opposed:
        return "a negation"
    return ""


def _is_denied(word: str, other: str) -> bool:
    return any(
        other == f"{prefix}{word}" or word == f"{prefix}{other}"
        for prefix in ("un", "in", "im", "il", "ir", "non", "dis", "mis")
    )


def _content(text: str) -> set[str]:
    words = _WORD.findall(plain(text).replace("-", " "))
    return {stem(_spelt(word)) for word in words if word not in _STOP and word not in _NEGATIONS and not word[0].isdigit()}


def _negations(text: str) -> int:
    return sum(word in _NEGATIONS or word.endswith("n't") for word in _WORD.findall(plain(text)))


def similarity(left: str, right: str) -> float:
    """Return the share of content words that two sentences have in common."""
    one, other = _content(left), _content(right)
    return len(one & other) / len(one | other) if one | other else 1.0


def exchanged(left: str, right: str) -> str:
    """Return the one word in which two sentences differ where both are months, weekdays or names; empty if there is none."""
    said, told = (re.findall(r"[^\W_]+", text) for text in (left, right))
    if len(said) != len(told):
        return ""
    pairs = [(one, other) for one, other in zip(said[1:], told[1:], strict=True) if one.casefold() != other.casefold()]
    if len(pairs) != 1 or said[0].casefold() != told[0].casefold():
        return ""
    is_named = all(word[0].isupper() and word[1:].islower() for word in pairs[0])
    return " / ".join(pairs[0]) if is_named else ""


def attributed(left: str, right: str) -> str:
    """Return the two doers or causes that two sentences name for the same thing; empty if there are none."""
    one, other = _CAUSE.split(left, maxsplit=1), _CAUSE.split(right, maxsplit=1)
    if len(one) < 2 or len(other) < 2 or _content(one[0]) != _content(other[0]) or _content(one[1]) & _content(other[1]):
        return ""
    return f"{plain(one[1])} / {plain(other[1])}"


def figures(text: str) -> list[str]:
    """Return the figures in a sentence, each with the sign or word that goes with it."""
    return re.findall(
        r"[$€£]?\d+(?:[.,]\d+)*(?:\s?(?:%|percent|per cent|k|m|bn|million|billion|thousand)\b|\s?%)?", text, re.IGNORECASE
    )
