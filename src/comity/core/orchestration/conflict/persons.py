"""Names of people: titles, initials, the family name first, a short first name."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import Final

from comity.core.orchestration.conflict.aliases import NICKNAMES

_TITLE_WORDS: Final = (
    "mr mrs ms dr prof professor sir miss mx madam dame captain capt col colonel rev hon judge phd md esq mba msc bsc dipl ing "
    "herr frau lord lady sgt lt engr mme cpa rn dds doctor"
)
TITLES: Final = frozenset(_TITLE_WORDS.split())
_SUFFIXES: Final = frozenset({"jr", "sr", "ii", "iii", "iv", "junior", "senior"})
_PARTICLES: Final = frozenset(
    [
        "van",
        "von",
        "de",
        "der",
        "den",
        "del",
        "della",
        "di",
        "da",
        "dos",
        "du",
        "la",
        "le",
        "el",
        "al",
        "bin",
        "ibn",
        "ter",
        "ten",
        "y",
        "e",
    ]
)
_PERSON: Final = re.compile(
    r"(?:^|_)(?:owner|manager|contact|doctor|physician|author|approver|reviewer|assignee|lead|leader|head|director|name|person|"
    r"employee|candidate|patient|customer|client|chair|speaker|signatory|buyer|seller|ceo|cfo|cto|coo|president|editor|driver|"
    r"teacher|tenant|landlord|witness|winner|host|agent|inspector|engineer|supervisor|coach|by)$"
)
_MOST_WORDS: Final = 5


def of_name(text: str) -> list[str]:
    """Return the words of a person's name, a short first name in full: Bob is Robert."""
    words = re.findall(r"[^\W_]+(?:['’-][^\W_]+)*", text)
    first, *rest = ("st" if word in {"saint", "sankt"} else word for word in words)
    return [NICKNAMES.get(first, first), *rest]


def is_name(text: str) -> bool:
    """Return whether a text is the name of a person: two words or three, each with a capital."""
    words = text.split()
    return 2 <= len(words) <= 3 and all(word[:1].isupper() and word[1:2].islower() for word in words)


def without_umlauts(text: str) -> str:
    """Return a text in which ae, oe and ue are a, o and u."""
    return re.sub(r"(?<=[aou])e", "", text)


def is_initialled(short: list[str], full: list[str]) -> bool:
    """Return whether two names of as many words are the same, but for words of which one has the first letter only."""
    if len(short) != len(full) or len(short) < 2:
        return False
    pairs = list(zip(short, full, strict=True))
    has_initial = any(len(one) == 1 and other != one for one, other in pairs)
    return has_initial and all(one == other or (len(one) == 1 and other.startswith(one)) for one, other in pairs)


def same_person(left: str, right: str, field: str) -> bool:
    """Return whether two texts are the name of one person: "Okafor, Lena", "OKAFOR Lena" and "Dr. L. Okafor"."""
    one, other = _words(left), _words(right)
    if len(one) < 2 or len(other) < 2:
        return False
    short, full = sorted((one, other), key=len)
    if len(short) < len(full) and short[-1] == full[-1] and not {*full} & _SUFFIXES:
        full = [full[0], *full[len(full) - len(short) + 1 :]]  # without the names in the middle
    if short == full or is_initialled(short, full) or is_initialled(full, short):
        return True
    turned = [full[-1], *full[:-1]]
    if is_initialled(short, turned) or is_initialled([short[-1], *short[:-1]], full):
        return True  # Watanabe K.
    is_turned = _PERSON.search(field) or any(word.isupper() and len(word) > 2 for word in (left + " " + right).split())
    return bool(is_turned) and Counter(one) == Counter(other)


def _words(text: str) -> list[str]:
    """Return the words of a name, the given name first, without titles; none if the text is no name."""
    if len(text) > 60 or any(letter.isdigit() for letter in text):
        return []
    parts = [_untitled(part) for part in text.split(",")]
    parts = [part for part in parts if part]
    if not 1 <= len(parts) <= 2:
        return []
    if len(parts) == 2:
        parts = parts if set(parts[1]) <= _SUFFIXES else parts[::-1]
    words = [word for part in parts for word in part]
    return [NICKNAMES.get(words[0], words[0]), *words[1:]] if 2 <= len(words) <= _MOST_WORDS else []


def _untitled(text: str) -> list[str]:
    """Return the words of a part of a name in small letters without accents and titles; none if one has no capital."""
    bare = unicodedata.normalize("NFKD", re.sub(r"\((?:[^()]*)\)", "", text).replace("Ph.D", "PhD").replace("M.D", "MD"))
    bare = re.sub(r"(?<=[^\W\d_])['’](?=[^\W\d_])", "", bare)
    words = re.findall(r"[^\W_]+(?:-[^\W_]+)*", "".join(one for one in bare if not unicodedata.combining(one)))
    if not all(word[0].isupper() or word in _PARTICLES for word in words):
        return []
    return [part for word in words if word.lower() not in TITLES for part in word.lower().split("-")]
