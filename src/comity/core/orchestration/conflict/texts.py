"""Words and sentences: the same category in another form, the same name in another order, the same sentence turned round."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import Final

from comity.core.orchestration.conflict.synonyms import OPPOSITES, PASTS, are_exclusive, replaced, root

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
    "munchen": "munich", "koln": "cologne", "wien": "vienna", "roma": "rome", "milano": "milan", "firenze": "florence",
    "venezia": "venice", "napoli": "naples", "torino": "turin", "praha": "prague", "warszawa": "warsaw", "lisboa": "lisbon",
    "kobenhavn": "copenhagen", "bruxelles": "brussels", "brussel": "brussels", "geneve": "geneva", "genf": "geneva",
    "nurnberg": "nuremberg", "sevilla": "seville", "den haag": "the hague", "antwerpen": "antwerp", "athina": "athens",
    "deu": "germany", "fra": "france", "gbr": "united kingdom", "esp": "spain", "ita": "italy", "nld": "netherlands",
    "che": "switzerland", "aut": "austria", "bel": "belgium", "pol": "poland", "swe": "sweden", "nor": "norway",
    "jpn": "japan", "chn": "china", "bra": "brazil", "ind": "india", "can": "canada", "aus": "australia", "mex": "mexico",
}  # fmt: skip
_LANGUAGES: Final = {
    "en": "english", "de": "german", "fr": "french", "es": "spanish", "it": "italian", "pt": "portuguese", "nl": "dutch",
    "pl": "polish", "sv": "swedish", "da": "danish", "no": "norwegian", "fi": "finnish", "cs": "czech", "ru": "russian",
    "uk": "ukrainian", "tr": "turkish", "el": "greek", "ar": "arabic", "he": "hebrew", "hi": "hindi", "zh": "chinese",
    "ja": "japanese", "ko": "korean", "deutsch": "german", "français": "french", "español": "spanish",
}  # fmt: skip
_STATES: Final = {
    "al": "alabama", "ak": "alaska", "az": "arizona", "ar": "arkansas", "ca": "california", "co": "colorado",
    "ct": "connecticut", "de": "delaware", "fl": "florida", "ga": "georgia", "hi": "hawaii", "id": "idaho",
    "il": "illinois", "in": "indiana", "ia": "iowa", "ks": "kansas", "ky": "kentucky", "la": "louisiana", "me": "maine",
    "md": "maryland", "ma": "massachusetts",
    "mi": "michigan", "mn": "minnesota", "ms": "mississippi", "mo": "missouri", "mt": "montana", "ne": "nebraska",
    "nv": "nevada", "nh": "new hampshire", "nj": "new jersey",
    "nm": "new mexico", "ny": "new york", "nc": "north carolina",
    "nd": "north dakota", "oh": "ohio", "ok": "oklahoma", "or": "oregon", "pa": "pennsylvania", "ri": "rhode island",
    "sc": "south carolina", "sd": "south dakota", "tn": "tennessee", "tx": "texas", "ut": "utah", "vt": "vermont",
    "va": "virginia", "wa": "washington", "wv": "west virginia", "wi": "wisconsin", "wy": "wyoming",
}  # fmt: skip
_GENDER: Final = re.compile(r"(?:^|_)(?:gender|sex)$")
_STATE: Final = re.compile(r"(?:^|_)(?:state|province)$")
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
     "going", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "some", "several", "many", "few",
     "yet", "already"}
)  # fmt: skip
_FINITE: Final = frozenset(
    {"is", "are", "was", "were", "will", "should", "has", "have", "had", "increased", "decreased", "rises", "grows", "falls",
     "improved", "declined", "dropped", "exceeded", "doubled"}
)  # fmt: skip


_BEFORE_OBJECT: Final = frozenset({"to", "from", "by", "with", "in", "at", "of", "on", "the", "a", "an", "for"})
_CAUSE: Final = re.compile(
    r"\b(?:(?<=ed )by|(?<=en )by|led by|built by|due to|because of|owing to|"
    r"(?:came|comes|come|stems|stemmed|resulted|originated) from|"
    r"(?:goes|went|belongs|assigned|awarded) to)\b",
    re.IGNORECASE,
)
_UMLAUT: Final = re.compile("[äöüß]", re.IGNORECASE)
_LEGAL_ROOTS: Final = frozenset(map(root, _LEGAL))
_UNNAMED: Final = _LEGAL | _LEGAL_ROOTS | _TITLES | frozenset(map(root, _TITLES))
_DEGREE_ROOTS: Final = _DEGREES | frozenset(map(root, _DEGREES))
_DIGITS: Final = {
    word: str(at) for at, word in enumerate(("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"), 1)
}
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
        word if word[0].isdigit() else _DIGITS.get(word) or root(word)
        for word in _WORD.findall(replaced(plain(text).replace("-", " ")).replace("/", " "))
    ]


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


def host(text: str) -> str | None:
    """Return a link without its scheme as it is compared, `acme.example`; None for any other text."""
    return address(f"https://{text.strip()}") if re.fullmatch(r"[\w-]+(?:\.[\w-]+)+(?:/\S*)?", text.strip()) else None


def same_category(left: str, right: str, name: str = "") -> tuple[bool, str]:
    """Return whether two short texts of the field `name` say the same thing, and by which rule."""
    if _GENDER.search(name):
        return left.strip().casefold()[:1] == right.strip().casefold()[:1], "gender"
    aliases = _LANGUAGES if _LANGUAGE.search(name) else _STATES if _STATE.search(name) else _ALIASES
    one, other = (aliases.get(plain(text), plain(text)) for text in (left, right))
    if one == other or re.sub(r"[ '.]", "", one) == re.sub(r"[ '.]", "", other):
        return True, "same words"
    if _UMLAUT.search(left + right) and _without_umlauts(one) == _without_umlauts(other):
        return True, "same name without umlauts"
    if _SIGN.search(one)[0] != _SIGN.search(other)[0]:  # type: ignore[index]  # matches any text: A and A+
        return False, "different signs"
    first, second = _stems(one), _stems(other)
    if _is_name(left) and _is_name(right) and _LEGAL_ROOTS.isdisjoint([*first, *second]):
        first, second = _WORD.findall(one), _WORD.findall(other)  # Eva Lang is not Eva Lange
    if first == second or "".join(first) == "".join(second):
        return True, "same words in another form"
    if ("," in left or "," in right) and Counter(first) == Counter(second) and len(first) == 2:
        return True, "same name in another order"
    if _is_initials(left, right) or _is_initials(right, left):
        return True, "initials"
    bare, other_bare = ([word for word in words if word not in _UNNAMED] for words in (first, second))
    if bare and bare == other_bare:
        return True, "same name"
    if _is_initialled(bare, other_bare) or _is_initialled(other_bare, bare):
        return True, "same name with an initial"
    small, large = sorted((set(bare), set(other_bare)), key=len)
    if (
        small
        and small < large
        and not (large - small) & _DEGREE_ROOTS
        and not any(word.isdigit() or word == "#" for word in large - small)
    ):
        return True, "one says more than the other"
    return False, "different words"


def _is_name(text: str) -> bool:
    """Return whether a text is the name of a person: two words or three, each with a capital."""
    words = text.split()
    return 2 <= len(words) <= 3 and all(word[:1].isupper() and word[1:2].islower() for word in words)


def _without_umlauts(text: str) -> str:
    return re.sub(r"(?<=[aou])e", "", text)


def _is_initials(short: str, full: str) -> bool:
    """Return whether a text such as HR stands for the first letters of another."""
    letters = short.strip().replace(".", "").replace("&", "")
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
    return len(said) >= SENTENCE_WORDS or (len(said) > 1 and any(word in _FINITE or word in PASTS for word in said[1:]))


def turned_round(left: str, right: str) -> str:
    """Return why two sentences contradict each other: a negation or an opposite; empty if they do not."""
    one, other = _content(left), _content(right)
    shared, every = one & other, one | other
    opposed = {(word, against) for word in one - other for against in OPPOSITES.get(word, ()) if against in other - one}
    opposed |= {(word, against) for word in one - other for against in other - one if _is_denied(word, against)}
    told = {word for pair in opposed for word in pair}
    negations = abs(_negations(left) - _negations(right)) % 2
    base = min(len(one - told), len(other - told)) if opposed or (negations and len(shared) > 1) else len(every)
    likeness = len(shared) / base if base else float(not shared)
    if likeness < SAME_SENTENCE:
        return ""
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
    words = _WORD.findall(replaced(plain(text).replace("-", " ")))
    return {root(word) for word in words if word not in _STOP and word not in _NEGATIONS and not word[0].isdigit()}


def _negations(text: str) -> int:
    return sum(word in _NEGATIONS or word.endswith("n't") for word in _WORD.findall(replaced(plain(text))))


def similarity(left: str, right: str) -> float:
    """Return the share of content words that two sentences have in common."""
    one, other = _content(left), _content(right)
    return len(one & other) / len(one | other) if one | other else 1.0


def exchanged(left: str, right: str) -> str:
    """Return the one word in which two sentences differ where one excludes the other; empty if there is none.

    Names, members of a closed class, and what stands at the end or behind a preposition: "allergic to penicillin".
    """
    said, told = (re.findall(r"[^\W_]+", text) for text in (left, right))
    if len(said) != len(told):
        return ""
    places = [at for at, (one, other) in enumerate(zip(said, told, strict=True)) if one.casefold() != other.casefold()]
    if len(places) != 1:
        return ""
    at = places[0]
    one, other = said[at], told[at]
    pair = f"{one} / {other}"
    if are_exclusive(one.casefold(), other.casefold()):
        return pair
    if all(word[0].isupper() and word[1:].islower() for word in (one, other)):
        return pair if at or not one.endswith("s") else ""
    is_object = (
        at > 1 and said[at - 1].casefold() in _BEFORE_OBJECT and (at + 1 == len(said) or said[at + 1].casefold() in _STOP)
    )
    is_other = (
        root(one.casefold()) != root(other.casefold()) and not one.endswith("ly") and not any(map(str.isdigit, one + other))
    )
    return pair if is_object and is_other else ""


def _number_at_start(text: str) -> bool:
    word = plain(text).split(" ")[0]
    return word[:1].isdigit() or are_exclusive(word, "zero") or word == "zero"


def attributed(left: str, right: str) -> str:
    """Return the two doers or causes that two sentences name for the same thing; empty if there are none."""
    one, other = _CAUSE.split(left, maxsplit=1), _CAUSE.split(right, maxsplit=1)
    if any(map(_number_at_start, (*one[1:], *other[1:]))):
        return ""  # by how much, not by whom
    if len(one) < 2 or len(other) < 2 or _content(one[0]) != _content(other[0]) or _content(one[1]) & _content(other[1]):
        return ""
    return f"{plain(one[1])} / {plain(other[1])}"


def figures(text: str) -> list[str]:
    """Return the figures in a sentence, each with the sign or word that goes with it."""
    return re.findall(
        r"[$€£]?\d+(?:[.,]\d+)*(?:\s?(?:%|percent|per cent|k|m|bn|million|billion|thousand)\b|\s?%)?", text, re.IGNORECASE
    )
