"""Other agents' words in a model's prompt: marked as data from that agent, with what reads like an order defused and named.

A model cannot be kept from believing what it reads. What can be done is done here: it is told where the text comes from and
where it ends, the end cannot be faked from inside, invisible characters and control tokens are gone, and phrases that try to
give orders are put between quotation marks and reported, so that the attempt is in the audit. What an agent may do never
depends on this: tools and calls are checked where they are made.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

# Zero-width and direction characters, and the tag block: text that only a model would see.
_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\U000e0000-\U000e007f]")
# What chat templates use to separate speakers.
_CONTROL = re.compile(
    r"<\|[^|<>\n]{1,40}\|>|</?(?:system|assistant|developer|tool_call|function_call)>|\[/?INST\]|<</?SYS>>", re.IGNORECASE
)
_MARK = re.compile(r"\[(?=\s*(?:end\s+of\s+)?(?:data|request|background)\s+from\b)", re.IGNORECASE)


class _Order(NamedTuple):
    """A kind of order: words without which there is none, which are quick to look for, and the phrase."""

    kind: str
    words: tuple[str, ...]
    phrase: re.Pattern[str]


_REST: Final = r"[^.!?\n]{0,80}"
# On text in small letters, each beginning with plain words: that way a phrase is found 20 times faster than regardless of case.
_ORDERS: Final = (
    _Order(
        "override",
        ("ignore", "disregard", "forget", "override", "bypass"),
        re.compile(
            r"(?:ignore|disregard|forget|override|bypass)\b[^.!?\n]{0,40}?\b(?:instructions?|rules?|prompts?|guidelines?"
            rf"|directions?|orders?|restrictions?|polic(?:y|ies)|guardrails?|told)\b{_REST}"
        ),
    ),
    _Order(
        "override",
        ("new instruction", "new order", "new rule", "new system"),
        re.compile(rf"new\s+(?:system\s+)?(?:instructions?|orders?|rules?)\s*(?::|are\b|follow\b){_REST}"),
    ),
    _Order(
        "role",
        ("you are now", "now on", "pretend", "act as"),
        re.compile(
            r"(?:you are now|from now on,? you|pretend (?:to be|you are)|act as (?:if|an?\s+(?:admin|root|system)))"
            rf"\b{_REST}"
        ),
    ),
    _Order("role", ("system:", "assistant:", "developer:"), re.compile(rf"(?:system|assistant|developer):{_REST}")),
    _Order(
        "tool",
        ("_",),
        re.compile(
            r"(?:call|use|invoke|run|execute|trigger)\s+(?:the\s+)?(?:(?:tool|function|command)\s+)?[`'\"]?[a-z0-9]+(?:_[a-z0-9]+)+"
            rf"\b{_REST}"
        ),
    ),
    _Order(
        "secret",
        ("prompt", "your instructions", "api key", "password", "credentials", "secret"),
        re.compile(
            r"(?:reveal|print|show|repeat|output|leak|send)\b[^.!?\n]{0,30}"
            r"\b(?:system prompt|your (?:instructions|prompt)|api keys?|passwords?|credentials|secrets?)\b"
        ),
    ),
)


class Quoted(NamedTuple):
    """A text as a model may read it, and the kinds of orders that stood in it."""

    text: str
    found: tuple[str, ...]


def quote(text: str, source: str, *, what: str = "data") -> Quoted:
    """Return another agent's text with marks around it. Nothing inside can end the quotation."""
    safe, found = defuse(text)
    return Quoted(f"[{what} from agent {source}]\n{safe}\n[end of {what} from agent {source}]", found)


def defuse(text: str) -> Quoted:
    """Return a text without hidden characters and control tokens, its orders between quotation marks, and their kinds."""
    found: list[str] = []
    if not text.isascii() and _INVISIBLE.search(text):
        text = _INVISIBLE.sub("", text)
        found.append("invisible")
    if "<" in text or "[" in text:
        text, tokens = _CONTROL.subn("", text)
        if tokens:
            found.append("control")
        text = _MARK.sub("(", text)
    small = text.lower()
    if len(small) != len(text):  # a few letters become two
        small = "".join(map(_small, text))
    orders: list[tuple[int, int]] = []
    for kind, words, phrase in _ORDERS:
        for word in words:  # a plain loop: half of what is asked of a short answer is asked here
            if word in small:
                break
        else:
            continue
        for match in phrase.finditer(small):
            start = match.start()
            if start == 0 or not small[start - 1].isalnum():  # no end of a longer word, such as `recall`
                orders.append(match.span())
                found.append(kind)
    return Quoted(_between_marks(text, orders) if orders else text, tuple(dict.fromkeys(found)))


def _between_marks(text: str, orders: list[tuple[int, int]]) -> str:
    pieces: list[str] = []
    done = 0
    for start, end in sorted(orders):
        if start < done:  # inside the one before
            continue
        pieces += (text[done:start], "“", text[start:end].rstrip(), "” (quoted, not an instruction)")
        done = end
    return "".join((*pieces, text[done:]))


def _small(letter: str) -> str:
    small = letter.lower()
    return small if len(small) == 1 else letter
