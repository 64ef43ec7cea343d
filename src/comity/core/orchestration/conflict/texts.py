"""Words and sentences: the same category in another form, the same name in another order, the same sentence turned round."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any, Final

from comity.core.orchestration.conflict.aliases import ALIASES, FIELD_ALIASES, STATUSES
from comity.core.orchestration.conflict.identifiers import same_code
from comity.core.orchestration.conflict.opposites import OPPOSITES
from comity.core.orchestration.conflict.persons import TITLES, is_initialled, is_name, of_name, same_person, without_umlauts
from comity.core.orchestration.conflict.statuses import common_status, status
from comity.core.orchestration.conflict.synonyms import PASTS, are_synonyms, replaced, root
from comity.core.orchestration.conflict.wording import arabic

SAYS_MORE: Final = "one says more than the other"
SENTENCE_WORDS: Final = 5  # from here on a text is a sentence, not a category

MISSING: Final = frozenset(
    {"", "-", "--", "—", "?", "n/a", "na", "none", "null", "nil", "unknown", "tbd", "tba", "tbc", "not available", "not known",
     "no data", "not specified", "unspecified", "undefined", "not applicable", "missing", "not given", "not disclosed",
     "pending", "nan", "unavailable", "to be determined", "to be confirmed", "to be announced", "to be decided",
     "data unavailable", "not reported", "not stated", "not provided", "not mentioned", "not found", "not determined",
     "undetermined", "not yet known", "not yet available", "not assigned", "unassigned", "no information", "no answer",
     "to be named", "price on request", "on request", "date to follow", "to follow", "not yet decided", "not yet determined",
     "not recorded", "not set", "blank", "empty", "no value", "unclear", "not sure", "don't know", "not yet assigned",
     "no idea", "insufficient data", "not measured", "yet to be decided", "yet to be determined", "still unknown",
     "information not available", "no data available", "not listed", "no record", "cannot be determined", "nobody knows"}
)  # fmt: skip
_YES: Final = frozenset(
    {
        "yes",
        "true",
        "y",
        "on",
        "correct",
        "affirmative",
        "enabled",
        "agreed",
        "ja",
        "oui",
        "si",
        "yep",
        "sure",
        "of course",
        "certainly",
        "definitely",
        "absolutely",
        "indeed",
        "✓",
        "✔",
    }
)
_NO: Final = frozenset(
    {
        "no",
        "false",
        "n",
        "off",
        "incorrect",
        "negative",
        "disabled",
        "nein",
        "non",
        "nope",
        "not yet",
        "not at all",
        "certainly not",
        "by no means",
        "✗",
        "✘",
    }
)
_LEGAL_WORDS: Final = (
    "inc ltd limited gmbh corp corporation llc plc co company ag sa bv nv kg the se oy ab spa srl pty incorporated"
)
_LEGAL: Final = frozenset(_LEGAL_WORDS.split())
_GENDER: Final = re.compile(r"(?:^|_)(?:gender|sex)$")
_DEGREES_WORDS: Final = (
    "very extremely not non slightly partially partly semi less more medium low high un mostly never no pre post anti "
    "ex former vice deputy north south east west new old upper lower mid junior senior"
)
_DEGREES: Final = frozenset(_DEGREES_WORDS.split())
STOP: Final = frozenset(
    {"the", "a", "an", "of", "to", "in", "on", "for", "by", "with", "at", "from", "as", "is", "are", "was", "were", "be",
     "been", "being", "it", "its", "this", "that", "these", "those", "and", "or", "we", "you", "they", "i", "our", "your",
     "their", "will", "would", "should", "could", "can", "may", "might", "must", "has", "have", "had", "do", "does",
     "did", "so", "very", "than", "then", "there", "here", "into", "about", "please", "go", "went", "gone", "goes",
     "going", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "some", "several", "many", "few",
     "yet", "already", "since", "because"}
)  # fmt: skip
FINITE: Final = frozenset(
    {"is", "are", "was", "were", "will", "should", "has", "have", "had", "increased", "decreased", "rises", "grows", "falls",
     "improved", "declined", "dropped", "exceeded", "doubled"}
)  # fmt: skip


_UMLAUT: Final = re.compile("[äöüß]", re.IGNORECASE)
_LEGAL_ROOTS: Final = frozenset(map(root, _LEGAL))
_UNNAMED: Final = _LEGAL | _LEGAL_ROOTS | TITLES | frozenset(map(root, TITLES))
_DEGREE_ROOTS: Final = _DEGREES | frozenset(map(root, _DEGREES))
_DIGITS: Final = {
    word: str(at) for at, word in enumerate(("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"), 1)
}
_JOINED: Final = re.compile(r"\s*[,;](?!\d)\s*(?:and\s+|&\s*)?|\s+(?:and|&)\s+", re.IGNORECASE)
_ROOT_MIN: Final = 4  # letters that two forms of a word share
NAME_WORDS: Final = 4
TRUTH_WORDS: Final = 4
_BESIDE_TRUTH: Final = frozenset(
    map(root, STOP | {"fully", "currently", "now", "still", "already", "all", "formally", "officially"})
)
_SAYS_NOT: Final = frozenset(map(root, ["not", "no", "never", "without", "isn't", "wasn't", "hasn't", "no longer"]))
_SO_WORDS: Final = (
    "granted given approved accepted covered included active enabled valid allowed permitted possible available present "
    "obtained signed confirmed verified complete passed required mandatory compulsory needed received authorised certified "
    "registered supported guaranteed met satisfied fulfilled true compliant eligible secured provided attached ready open "
    "working installed incl including inclusive"
)
_NOT_SO_WORDS: Final = (
    "withheld denied refused rejected declined lapsed expired revoked excluded inactive disabled invalid forbidden prohibited "
    "banned impossible unavailable absent missing unsigned unconfirmed unverified incomplete failed optional voluntary "
    "unnecessary cancelled unsupported unmet breached violated false ineligible withdrawn closed broken lacking pending "
    "uninsured uncovered unregistered uncertified outstanding excl excluding exclusive"
)
_SAID_SO: Final = frozenset(map(root, _SO_WORDS.split()))
_SAID_NOT: Final = frozenset(map(root, _NOT_SO_WORDS.split()))
LIST_CHARS_MAX: Final = 300
ITEM_WORDS: Final = 3
_NONE: Final = re.compile(
    r"^(?:(?:none|nil|nothing)(?: (?:known|reported|recorded|found|identified|so far|at present|yet))?"
    r"|no (?:known |reported |recorded |open |outstanding )?(?P<what>[a-z]+(?: [a-z]+)?)"
    r"(?: (?:were |was |have been |has been )?(?:known|reported|recorded|found|identified|observed|noted|seen|detected))?)$"
)
_ENDLESS_WORDS: Final = (
    "lifetime|for life|unlimited|no limit|without limit|indefinite|indefinitely|forever|infinite|permanent|limitless|perpetual|"
    "open-ended|never|never expires|no end date"
)
_ENDLESS: Final = frozenset(_ENDLESS_WORDS.split("|"))
_SPACES: Final = re.compile(r"[\s_]+")
_SIGN: Final = re.compile(r"(?:(?<=\w)[+#-]+)?$")
_JOINT: Final = re.compile(r"(?<=[a-z])-(?=[a-z])|[ '.]")
WORD: Final = re.compile(r"[^\W_]+(?:[.'’-][^\W_]+)*|\d+(?:[.,]\d+)*%?")


def plain(text: str) -> str:
    """Return a text in small letters, without accents, odd spaces and signs at its ends."""
    return _plain_short(text) if len(text) <= LIST_CHARS_MAX else _plain(text)


def _plain(text: str) -> str:
    bare = text.casefold()
    if not bare.isascii():
        folded = unicodedata.normalize("NFKD", bare)
        bare = "".join(one for one in folded if not unicodedata.combining(one)).replace("’", "'")
    return _SPACES.sub(" ", bare).strip(" .,;:!?\"'")


_plain_short: Final = lru_cache(maxsize=64)(_plain)  # one pair asks for the same two texts up to forty times


def is_missing(text: str) -> bool:
    """Return whether a text says that nothing is known."""
    return plain(text) in MISSING or text.strip() in MISSING


def say_none(left: Any, right: Any) -> bool:
    """Return whether both values say that there are none: "none known" and "no known allergies", an empty list."""
    said = [_NONE.match(plain(value)) if isinstance(value, str) else None for value in (left, right)]
    is_none = [
        found is not None or (isinstance(value, list) and not value) for found, value in zip(said, (left, right), strict=True)
    ]
    return all(is_none) and not all(found and found["what"] for found in said)  # "no parking" is not "no smoking"


def is_endless(value: Any) -> bool:
    """Return whether a text says that there is no end or limit."""
    return isinstance(value, str) and plain(value) in _ENDLESS


def truth(text: str) -> bool | None:
    """Return what a word for yes or no means; None for any other text."""
    word = plain(text)
    first = word.split(",")[0].split(" - ")[0]
    return True if word in _YES or first in {"yes", "true"} else False if word in _NO or first in {"no", "false"} else None


def is_answer(text: str) -> bool:
    """Return whether a text is yes or no, true or false."""
    return plain(text) in {"yes", "no", "true", "false", "y", "n"}


def is_so(text: str) -> bool | None:
    """Return whether a word such as "granted" or "lapsed" says that a thing is so; None for any other text."""
    words = [word for word in _stems(text) if word not in _BESIDE_TRUTH]
    if not 0 < len(words) <= TRUTH_WORDS:
        return None
    negations = sum(word in _SAYS_NOT for word in words)
    said = [word in _SAID_SO for word in words if word in _SAID_SO or word in _SAID_NOT]
    return (said[0] != bool(negations % 2)) if said else False if words[0] in _SAYS_NOT else None


def same_or_opposite(one: str, other: str) -> bool | None:
    """Return whether one or two words mean the same, "granted" and "approved", or the opposite; None if neither is known."""
    first, second = (_stems(text) for text in (one, other))
    is_negated = "not" in second
    second = tuple(word for word in second if word != "not")
    if len(first) != 1 or len(second) != 1:
        return None
    if first == second:
        return not is_negated
    is_opposite = second[0] in OPPOSITES.get(first[0], ()) or bool(denied({first[0]}, {second[0]}))
    return is_negated if is_opposite else None


def polarity(text: str, name: str) -> bool | None:
    """Return whether a text says yes or no to the question that a field's name asks: "cannot be recycled" to `recyclable`.

    The text must share a word with the name, or describe what is had where the name is `has_…`.
    """
    words = WORD.findall(plain(text))
    about = [word for word in name.split("_") if len(word) >= _ROOT_MIN]
    is_about = any(word[:_ROOT_MIN] == other[:_ROOT_MIN] for word in words for other in about)
    if not is_about and not name.startswith(("has_", "have_")):
        return None
    return not any(
        word in {"no", "not", "never", "none", "cannot", "without", "pending", "awaiting"} or word.endswith("n't")
        for word in words
    )


def items(text: str) -> list[str]:
    """Return the items of a list in words, "red, blue and green"; none for any other text."""
    if len(text) > LIST_CHARS_MAX:
        return []
    found = [one.strip() for one in _JOINED.split(text.strip(" .")) if one.strip()]
    is_list = len(found) > 1 and all(len(one.split()) <= ITEM_WORDS for one in found)
    return found if is_list and not any(word in FINITE or word in PASTS for word in WORD.findall(plain(text))) else []


_DOTTED: Final = re.compile(r"\b(?:[a-z]{1,2}\.)+[a-z]{1,3}\b")  # b.sc, u.s.a


def _undotted(found: re.Match[str]) -> str:
    return found.group().replace(".", "")


@lru_cache(maxsize=64)
def _stems(text: str) -> tuple[str, ...]:
    return tuple(
        word if word[0].isdigit() else _DIGITS.get(word) or root(word)
        for word in WORD.findall(_DOTTED.sub(_undotted, replaced(plain(text).replace("-", " ")).replace("/", " ")))
    )


_IP: Final = re.compile(r"(?:ip )?(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?P<rest>[:/]\d+)?", re.IGNORECASE)


def address(text: str) -> str | None:
    """Return an e-mail address, an IP address or a link as it is compared; None for any other text."""
    bare = text.strip()
    if re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", bare):
        return bare.casefold()
    if found := _IP.fullmatch(bare):
        return ".".join(str(int(part)) for part in found.groups()[:4]) + (found["rest"] or "")
    if re.match(r"^(?:https?://|www\.)\S+$", bare, re.IGNORECASE):
        rest = re.sub(r"^(?:https?://)?(?:www\.)?", "", bare, flags=re.IGNORECASE)
        host, slash, path = rest.partition("/")
        return f"{host.casefold()}{slash}{path}".rstrip("/")
    return None


def host(text: str) -> str | None:
    """Return a link without its scheme as it is compared, `acme.example`; None for any other text."""
    return address(f"https://{text.strip()}") if re.fullmatch(r"[\w-]+(?:\.[\w-]+)+(?:/\S*)?", text.strip()) else None


def alias(text: str, name: str) -> str:
    """Return the word that stands for a text in the field `name`: Germany for `DE` in a country, medium for `M` in a size."""
    said = _DOTTED.sub(_undotted, plain(text))
    for fields, aliases in FIELD_ALIASES:
        if fields.search(name):
            known = aliases.get(said.replace("-", " "))
            return known or (status(said, aliases) if fields in STATUSES else said)
    return ALIASES.get(said, said)


def same_category(left: str, right: str, name: str = "") -> tuple[bool, str]:
    """Return whether two short texts of the field `name` say the same thing, and by which rule."""
    if _GENDER.search(name):
        return left.strip().casefold()[:1] == right.strip().casefold()[:1], "gender"
    if is_endless(left) and is_endless(right):
        return True, "no end"
    one, other = alias(arabic(left), name), alias(arabic(right), name)
    if one == other or _JOINT.sub("", one) == _JOINT.sub("", other):
        return True, "same words"
    if _UMLAUT.search(left + right) and without_umlauts(one) == without_umlauts(other):
        return True, "same name without umlauts"
    if _SIGN.search(one)[0] != _SIGN.search(other)[0]:  # type: ignore[index]  # matches any text: A and A+
        return False, "different signs"
    first, second = _stems(one), _stems(other)
    if is_name(left) and is_name(right) and _LEGAL_ROOTS.isdisjoint([*first, *second]):
        first, second = tuple(of_name(one)), tuple(of_name(other))  # Eva Lang is not Eva Lange
    if first == second or "".join(first) == "".join(second):
        return True, "same words in another form"
    if same_code(left, right) or common_status(one, other):
        return True, "same words in another form"
    is_named = is_name(left) or is_name(right)
    if not is_named and len(first) == len(second) and all(are_synonyms(*pair) for pair in zip(first, second, strict=True)):
        return True, "words that mean the same"
    if ("," in left or "," in right) and Counter(first) == Counter(second) and len(first) <= NAME_WORDS:
        return True, "same name in another order"
    if same_or_opposite(one, other) or same_or_opposite(other, one):
        return True, "the opposite denied"
    if same_person(left, right, name):
        return True, "same name of a person"
    if _is_initials(left, right) or _is_initials(right, left):
        return True, "initials"
    bare, other_bare = ([word for word in words if word not in _UNNAMED] for words in (first, second))
    is_umlaut = bool(_UMLAUT.search(left + right))
    if bare and (
        bare == other_bare or (is_umlaut and without_umlauts(" ".join(bare)) == without_umlauts(" ".join(other_bare)))
    ):
        return True, "same name"
    if is_initialled(bare, other_bare) or is_initialled(other_bare, bare):
        return True, "same name with an initial"
    small, large = sorted((set(bare), set(other_bare)), key=len)
    if (
        small
        and small < large
        and not (large - small) & _DEGREE_ROOTS
        and not any(word.isdigit() or word == "#" for word in large - small)
    ):
        return True, SAYS_MORE
    return False, "different words"


def _is_initials(short: str, full: str) -> bool:
    """Return whether a text such as HR stands for the first letters of another."""
    letters = short.strip().replace(".", "").replace("&", "")
    words = [word for word in WORD.findall(plain(full).replace("-", " ")) if word not in STOP]
    return letters.isupper() and 2 <= len(letters) == len(words) and letters.casefold() == "".join(word[0] for word in words)


def is_sentence(text: str) -> bool:
    """Return whether a text is more than a name or a category."""
    said = WORD.findall(plain(text))
    is_order = len(said) > 1 and said[0] in {"do", "don't", "never"}  # "do not invest"
    return (
        is_order or len(said) >= SENTENCE_WORDS or (len(said) > 1 and any(word in FINITE or word in PASTS for word in said[1:]))
    )


def denied(said: AbstractSet[str], told: AbstractSet[str]) -> set[tuple[str, str]]:
    """Return the words of two sets of which one denies the other: "safe" and "unsafe"."""
    found = {(word, f"{prefix}{word}") for word in said for prefix in _DENYING if f"{prefix}{word}" in told}
    return found | {(f"{prefix}{word}", word) for word in told for prefix in _DENYING if f"{prefix}{word}" in said}


_DENYING: Final = ("un", "in", "im", "il", "ir", "non", "dis", "mis")
