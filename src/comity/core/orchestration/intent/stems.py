"""The words of a text and their stems: the commonest English endings off, numbers as shapes."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from comity.core.orchestration import hidden

WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)?|[$€£%]")
TEXT_MAX: Final = 2_000  # characters of an utterance that are read; what follows adds nothing to its intent
STEM_MIN: Final = 3
_SUFFIXES: Final = (
    ("ies", "y"), ("ing", ""), ("edly", ""), ("ed", ""), ("ly", ""), ("ers", ""), ("er", ""), ("es", ""), ("s", ""),
)  # fmt: skip
_KEPT_WHOLE: Final = frozenset({"this", "was", "has", "is", "its", "us", "does", "yes", "less", "business", "news", "always"})

FUNCTION_WORDS: Final = frozenset(
    {
        "a",
        "an",
        "the",
        "of",
        "to",
        "in",
        "on",
        "for",
        "by",
        "with",
        "at",
        "from",
        "as",
        "is",
        "are",
        "was",
        "were",
        "be",
        "it",
        "its",
        "this",
        "that",
        "these",
        "those",
        "and",
        "or",
        "but",
        "we",
        "you",
        "they",
        "i",
        "he",
        "she",
        "our",
        "your",
        "their",
        "my",
        "me",
        "us",
        "them",
        "will",
        "would",
        "should",
        "could",
        "can",
        "may",
        "do",
        "does",
        "did",
        "have",
        "has",
        "had",
        "what",
        "which",
        "who",
        "how",
        "when",
        "where",
        "why",
        "there",
        "here",
        "so",
        "if",
        "than",
        "then",
        "not",
        "no",
        "any",
        "some",
        "all",
        "please",
        "pleas",
        "thes",
        "som",
        "ther",
        "her",
        "wher",
        "hav",
        "#",
        "|",
        "one",
        "about",
        "into",
        "up",
        "out",
        "am",
        "im",
        "i'm",
        "what's",
    }
)  # fmt: skip  each as `stem` leaves it


def words(text: str) -> list[str]:
    """Return the words of a text in small letters; a hidden value is none."""
    return WORD.findall(hidden.without(text)[:TEXT_MAX].casefold().replace("’", "'"))


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return a word without its commonest English endings; the digits of a number become `#`."""
    if word[0].isdigit():
        return "#" + word.lstrip("0123456789")
    if word in _KEPT_WHOLE or word.endswith("ss"):
        return word
    word = word.removesuffix("'s")
    for suffix, put in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) + len(put) >= STEM_MIN:
            word = word[: len(word) - len(suffix)] + put
            break
    if len(word) > STEM_MIN and word[-1] == word[-2] and word[-1] not in "aeiousl":
        word = word[:-1]
    return word[:-1] if len(word) > STEM_MIN + 1 and word.endswith("e") else word


def stems(text: str) -> tuple[str, ...]:
    """Return the stems of a text in order."""
    return tuple(stem(word) for word in words(text))
