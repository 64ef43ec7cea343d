"""Objects in a text that look like a reply and are none: the example a model was shown, its prompt, what it only mentions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any, Final

from comity.core.model.reply.fields import FIELDS, Draft, Said, Status
from comity.core.model.reply.places import Span, objects_in
from comity.core.model.reply.tolerant import Budget

EXAMPLE: Final = Said("Three boxes of twelve are 36.", Status.SUCCESS, {"pieces": 36}, "There are 36 pieces.")
"""The example that an agent without a data schema is shown; see `comity.core.model.sacp_prompt`."""
PLACEHOLDER: Final = "…"  # what stands for a text in an example

_PLACEHOLDERS: Final = frozenset({PLACEHOLDER, "...", ""})
_INTRO_CHARS_MAX: Final = 300
_OUTRO_CHARS_MAX: Final = 40
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-ZÄÖÜÀ-Ý])")
_FENCE_LINE = re.compile(r"(?:`{3,}|~{3,})[ \t]*[\w+.\-]*\s*\Z|`\Z")
# Words by which a text says that what comes is an example, and by which it says that it only follows one.
_EXAMPLE = re.compile(
    r"\b(?:for example|examples?|e\.g\.|for instance|sample|such as|(?:would|could|might|should) look like"
    r"|beispiel\w*|z\.\s?b\.|ejemplos?|exemples?|esempi[oi]?|exemplos?|voorbeeld\w*)(?!\w)|例えば|例如|例:|例：|пример",
    re.IGNORECASE,
)
_FOLLOWS = re.compile(
    r"\b(?:following|according to|based on|matching|as in|in line with|as per|per|from|(?:of|like|in|to|with|by)"
    r" (?:the|your|this|that|my))\b[^.!?\n]{0,40}\bexample",
    re.IGNORECASE,
)
_MENTIONS = re.compile(
    r"\b(?:(?:could|might|would|should i|shall i|was going to|wanted to|do not|don't|won't|cannot|can't|must not)"
    r"\s+(?:\w+\s+){0,2}(?:say|said|reply|replied|answer|answered|return|write|send)|instead of|draft)\b[^.!?\n]{0,60}\Z",
    re.IGNORECASE,
)
# Words of another person or program: the object is what they said, not what the model answers.
_SAID_BY_OTHERS = re.compile(
    r"\b(?:user|customer|client|sender|attacker|caller|page|website|e-?mail|ticket|he|she|they|someone)\s+(?:\w+\s+){0,2}"
    r"(?:wrote|writes|said|says|asked|asks|wants?|wanted|told|tells|sent|sends|pasted|instruct\w*)\b[^.!?\n]{0,60}\Z",
    re.IGNORECASE,
)
_QUOTATION_MARKS: Final = {'"': '"', "'": "'", "“": "”", "„": "“", "«": "»", "‘": "’"}
_TAKES_BACK = re.compile(
    r"[\s`\"')\]]*(?:\?|[.,;:—–-]*\s*(?:no\b|not\b|but\b|wrong\b|wait\b|however\b|scratch that\b|never ?mind\b"
    r"|that(?:'s| is| was) (?:wrong|not)\b|is (?:wrong|not)\b|would be (?:wrong|a lie)\b))",
    re.IGNORECASE,
)
_QUOTED_LINE = re.compile(r"(?:\A|\n)[ \t]*>[^\n]*\Z")


def is_example(said: Said, examples: Iterable[Said], *, is_cut: bool) -> bool:
    """Return whether everything that a reply says was taken from an example, or is a placeholder for it."""
    if not said.thought and not said.message and not said.data:
        return False
    if said.message in _PLACEHOLDERS and said.thought in _PLACEHOLDERS and (said.message or said.thought):
        return True
    return any(_is_from(said, one, is_cut=is_cut) for one in examples)


def _is_from(said: Said, example: Said, *, is_cut: bool) -> bool:
    texts = ((said.thought, example.thought), (said.message, example.message))
    if not all(not text or text == shown or (is_cut and shown.startswith(text)) for text, shown in texts):
        return False
    if is_cut:
        return all(name in example.data and _is_begun(value, example.data[name]) for name, value in said.data.items())
    return not said.data or said.data == example.data


def _is_begun(value: Any, shown: Any) -> bool:
    """Return whether a value may be the beginning of one in an example."""
    return bool(value == shown) or type(value) is type(shown)


def replies_in(prompt: str, budget: Budget) -> list[Said]:
    """Return the objects in a prompt that would be taken for a reply."""
    if "status" not in prompt:
        return []
    found = (Draft(parsed.value).reply(None) for _, parsed, _ in objects_in(prompt, 64, budget) if _may_reply(parsed.value))
    return [said for said in found if said is not None]


def _may_reply(value: Any) -> bool:
    return isinstance(value, dict) and len(FIELDS & value.keys()) > 1


def is_shown_as_example(text: str, start: int) -> bool:
    """Return whether the words before an object say that it is an example, or its line is marked as a quotation."""
    if not text.lstrip().startswith(">") and _QUOTED_LINE.search(text, max(0, start - _INTRO_CHARS_MAX), start):
        return True
    intro = _intro(text, start)
    return _EXAMPLE.search(intro) is not None and not _FOLLOWS.search(intro)


def is_only_mentioned(text: str, start: int, end: int) -> bool:
    """Return whether the words around an object make it doubtful that it is meant: a quotation, or taken back at once."""
    if _QUOTED_LINE.search(text, max(0, start - _INTRO_CHARS_MAX), start):
        return True
    intro = _intro(text, start)
    if _MENTIONS.search(intro) or _SAID_BY_OTHERS.search(intro) or _is_in_quotation_marks(text, start, end):
        return True
    return _TAKES_BACK.match(text, end, end + _OUTRO_CHARS_MAX) is not None


def _is_in_quotation_marks(text: str, start: int, end: int) -> bool:
    """Return whether an object is quoted within a sentence; a reply that is quoted as a whole has no words around it."""
    if start == 0 or end >= len(text) or _QUOTATION_MARKS.get(text[start - 1]) != text[end]:
        return False
    return any(map(str.isalpha, text[max(0, start - _INTRO_CHARS_MAX) : start - 1]))


def is_part_of_code(text: str, start: int, fences: Collection[Span]) -> bool:
    """Return whether an object stands in a fence after something else: then it is a value in a program."""
    return any(first <= start < last and text[first:start].strip() for first, last in fences)


def _intro(text: str, start: int) -> str:
    """Return the last sentence before a place, without the line that opens a fence."""
    before = _FENCE_LINE.sub("", text[max(0, start - _INTRO_CHARS_MAX) : start].rstrip()).rstrip()
    line = before[max(before.rfind("\n"), before.rfind("}")) + 1 :]  # words before another object belong to that one
    return _SENTENCE_END.split(line)[-1]
