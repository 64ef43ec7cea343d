"""Where a request may be cut: connectives, ends of sentences, items of a list; and how each one orders its parts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from comity.core.orchestration.split.verbs import starts_like_a_clause, tokens


class Link(StrEnum):
    """How a part hangs on what stands before it."""

    THEN = "then"  # waits for the group before it
    LAST = "last"  # waits for everything before it
    ALSO = "also"  # independent of what stands before it
    AND = "and"  # beside its neighbour, unless it refers back
    SENTENCE = "sentence"  # independent, unless it refers back
    NUMBERED = "numbered"  # a step


@dataclass(slots=True)
class Piece:
    """A part that was found, and how it hangs on the one before."""

    text: str
    link: Link


STRONG: Final = frozenset({Link.THEN, Link.LAST, Link.ALSO, Link.NUMBERED})

_THEN: Final = (
    r"(?:and\s*,?\s+|but\s+)?(?:(?:only\s+)?then(?!\s+(?:separately|independently))|(?:the|your)\s+(?:next|second|third)\s+step\s+is\s+to|in\s+a\s+(?:second|third|next)\s+step|"
    r"so(?:\s+that)?\s+(?:you|we)\s+can|after(?:\s+that|wards?|\s+this|\s+which(?:\s+(?:you|we))?)|subsequently|thereafter|whereupon|following\s+(?:that|which)|(?:up)?on\s+completion(?=\s*,)|upon\s+which|from\s+there|"
    r"next(?=\s*,|\s+(?:up|please|{verb}))|(?:once|when|as\s+soon\s+as)\s+(?:(?:you|we)(?:'re|\s+are|'ve|\s+have)\s+(?:done|finished|got\s+"
    r"(?:it|that|them))|(?:you|we)\s+have\s+(?:it|that|them|both|all|those|these|the\s+(?:answers?|results?|numbers|figures))|"
    r"you\s+(?:know|see)\s+(?:it|that|them|this|the\s+(?:answers?|results?))|(?:that|this|it|which)(?:'s|\s+is|\s+has\s+been)\s+(?:done|finished|complete|completed|ready|in|clear|through|settled|decided|known|"
    r"sorted|fixed|agreed|over|confirmed|approved|signed|paid|sent|received|cleared|checked|booked|verified|accepted)|"
    r"done|finished|complete|completed|ready)(?:\s+with\s+(?:that|it|this))?|"
    r"(?:once|when|as\s+soon\s+as|after)\s+(?:both|all|they|everyone|everybody)(?:\s+of\s+(?:them|these|those))?\s+(?:have|has|are)\s+"
    r"(?:[a-z]+(?:ed|en)|done|ready|in|back|there)|with\s+that\s+(?:done|in\s+hand)|second(?:ly)?(?=\s*,|\s+{verb})|"
    r"third(?:ly)?(?=\s*,|\s+{verb})|fourth(?:ly)?(?=\s*,|\s+{verb})|as\s+(?:a|the)\s+(?:second|third|next|following)\s+step)"
)
_LAST: Final = (
    r"(?:and\s*,?\s+)?(?:finally|lastly|last\s+but\s+not\s+least|last(?=\s*,)|at\s+the\s+end|to\s+(?:finish|conclude|wrap\s+up)|in\s+the\s+end|"
    r"as\s+(?:a|the)\s+(?:last|final)\s+step)"
)
_ALSO: Final = (
    r"(?:and\s*,?\s+|but\s+)?(?:(?:then\s+|quite\s+|completely\s+|entirely\s+)?(?:separately|independently)(?:\s+(?:from|of)\s+(?:that|this|it))?(?:\s+and\s+unrelated(?:\s+to\s+(?:that|this|it))?)?|also|in\s+addition|additionally|(?:and\s+)?unrelated(?:ly|\s+to\s+(?:that|this))|likewise|on\s+(?:an?\s+)?(?:entirely\s+|completely\s+|totally\s+)?(?:another|separate|different|unrelated|other)\s+(?:note|matter|subject|topic)|besides(?:\s+that)?|meanwhile|in\s+parallel|in\s+the\s+mean(?:time|while)|while\s+(?:that|this|it)(?:'s|\s+is)\s+(?:going\s+on|running|happening|in\s+progress|under\s+way)|"
    r"at\s+the\s+same\s+time|simultaneously|while\s+(?:you\s+are|you're)\s+(?:at\s+it|doing\s+that)|on\s+top(?:\s+of\s+that)?|apart\s+from\s+that|"
    r"furthermore|moreover|plus|as\s+well\s+as|and\s+on\s+the\s+side|oh\s*,?\s*and|another\s+thing)"
)
_VERB: Final = r"(?:[a-z]+)\s+(?:the|a|an|our|my|it|them|this|that|these|those|us|me|her|him)\b"
BOUNDARY: Final = re.compile(
    rf"""(?P<then>(?:\s*[,;–—-]+\s*|\s+|^)(?:{_THEN.replace("{verb}", _VERB)})\b\s*,?\s*)
    |(?P<last>(?:\s*[,;–—-]+\s*|\s+|^)(?:{_LAST})\b\s*,?\s*)
    |(?P<also>(?:\s*[,;–—-]+\s*|\s+|^)(?:{_ALSO})\b\s*,?\s*)
    |(?P<and>\s*,\s*(?:and|but|so)\s+|\s+and\s*,\s*|\s+(?:and|&)\s+|\s*;\s*|\s+[–—+-]\s+|\s*,\s*)""".replace("\n    ", ""),
    re.IGNORECASE,
)
_FOLLOWED: Final = re.compile(r"\s*,?\s+(?:and\s+)?(?:which\s+is\s+)?followed\s+by\s+", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"(?<=[.?!])[\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9a-z])|\n+")
_ABBREVIATED: Final = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|mr|mrs|ms|dr|no|inc|ltd|corp|co|st|approx|fig|q|u\.s|jan|feb|mar|apr|aug|sept?|oct|nov|dec)|(?<!['’])\b[a-z])\.$",
    re.IGNORECASE,
)
_COMPANY: Final = re.compile(r"\b(?:etc|inc|ltd|corp|co|[a-z])\.$", re.IGNORECASE)  # ends a sentence as often
_ITEM: Final = re.compile(
    r"(?:^|(?<=[\s:;,.]))(?:(?P<letter>\(?[a-h]\))|"
    r"(?P<step>step\s+\d{1,2}\s*[:.)-]|\(?\d{1,2}[.):](?!\d))|(?P<bullet>(?<![^\n])[ \t]*[-*•]))\s+",
    re.IGNORECASE,
)
_ITEMS_MIN: Final = 2
_HEADED: Final = re.compile(r"^(?P<heading>[^:.?!\n]{2,80}):\s+(?P<body>\S.*)$", re.DOTALL)
_SUM_UP: Final = re.compile(
    r"\b(?:following|these|things|tasks|steps|jobs|errands|order|sequence|actions|to-dos|favou?rs|questions)\b", re.IGNORECASE
)
WHEN: Final = re.compile(
    r"^\s*(?:and\s+)?(?:if|unless|provided|when|once|after|as\s+soon\s+as|upon|following)\s", re.IGNORECASE
)
_QUOTED: Final = re.compile(r"\"[^\"]{1,400}\"|“[^”]{1,400}”|\([^()]{1,400}\)|(?<!\w)'[^']{1,400}'(?!\w)")
_REWORDED: Final = re.compile(
    r"^[^:.?!\n]*\b(?:translate|rewrite|reword|rephrase|proofread|paraphrase|correct|sentence|text|message|phrase|paragraph|headline|caption)"
    r"\b[^:.?!\n]*:\s",
    re.IGNORECASE,
)
EARLIER: Final = re.compile(
    r"^(?:but\s+)?(?:before\s+(?:that|this|doing\s+(?:so|that))|prior\s+to\s+(?:that|this)|beforehand|but\s+first|first\s+though)\b\s*,?\s*",
    re.IGNORECASE,
)
_MANY: Final = (
    r"(?:numbers|figures|segments|personas|channels|values|scenarios|options|points|groups|topics|names|candidates|items|risks|"
    r"customers|ideas|projections|estimates)"
)
ONE_THING: Final = (
    r"(?:analysis|number|figure|value|list|forecast|plan|summary|report|memo|draft|segment|persona|mix|information|data|estimate|"
    r"ranking|framework|projection|brief|recommendation|assessment|comparison|map|table|deck)"
)
_BACK_PHRASE: Final = re.compile(
    r"^(?:(?:and|then|so)\s+)*(?:for\s+(?:each|every|all)\s+of\s+(?:them|these|those|the\s+[a-z]+)"
    r"|(?:based|depending|building|relying|drawing|using|from|with|given|in\s+light\s+of|taking|by\s+means\s+of)\s+(?:(?:up)?on\s+)?"
    rf"(?:(?:that|this)\s+{ONE_THING}|(?:these|those)\s+{_MANY}|that|this|it|them|these|those|both"
    r"|(?:the|those|these|its|their)\s+(?:[a-z]+\s+){0,2}?(?:results?|findings?|outcomes?|outputs?|answers?|"
    r"insights?|conclusions?|numbers|figures|values?|segments?|analysis)))\s*,?\s+",
    re.IGNORECASE,
)


def masked(text: str) -> str:
    """Return a text of the same length in which nothing quoted, in brackets or given to be reworded can be cut."""
    given = _REWORDED.match(text)
    kept = text[: given.end()] if given else text
    return _QUOTED.sub(lambda found: "x" * len(found.group()), kept) + "x" * (len(text) - len(kept))


def without_back_phrase(text: str) -> str:
    """Return a text without a beginning such as "based on that"."""
    return _BACK_PHRASE.sub("", text.lstrip(), count=1)


def headed(text: str) -> tuple[str, str] | None:
    """Return the heading of a request and what stands under it, "The tasks for today are: …"; None if it has no heading."""
    found = _HEADED.match(masked(text))
    if not found:
        return None
    heading, body = text[: found.end("heading")], text[found.start("body") :]
    is_heading = _SUM_UP.search(heading) or not starts_like_a_clause(heading)
    return (
        (heading, body)
        if is_heading and starts_like_a_clause(body, is_strong=True) and not body.startswith(("'", '"'))
        else None
    )


def followed(text: str) -> list[str]:
    """Return a text cut at every "followed by"."""
    return [piece for piece in _FOLLOWED.split(text) if piece.strip()]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text; an abbreviation does not end one, nor does a full stop in quotation marks."""
    found: list[str] = []
    start, hidden = 0, _QUOTED.sub(lambda quoted: "x" * len(quoted.group()), text)
    for end in [*_SENTENCE.finditer(hidden), None]:
        piece = text[start : end.start() if end else len(text)]
        start = end.end() if end else start
        is_abbreviated = (
            bool(found) and _ABBREVIATED.search(found[-1]) and not (_COMPANY.search(found[-1]) and _begins_anew(piece))
        )
        if found and (is_abbreviated or not tokens(piece)):
            found[-1] = f"{found[-1]} {piece}"
        elif tokens(piece):
            found.append(piece)
    return found


def _begins_anew(piece: str) -> bool:
    return piece[:1].isupper() and bool(_BACK_PHRASE.match(piece) or BOUNDARY.match(piece) or starts_like_a_clause(piece))


def items(text: str) -> tuple[str, list[str], bool] | None:
    """Return what stands before a list, its items, and whether they are steps; None if there is no list.

    Items are steps if they are called so, or if they have numbers and nothing stands before them.
    """
    marks = list(_ITEM.finditer(text))
    if len(marks) < _ITEMS_MIN:
        return None
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    found = [text[mark.end() : end].strip(" \t\n,;") for mark, end in zip(marks, ends, strict=True)]
    numbers = [int(digits) for mark in marks if mark["step"] for digits in re.findall(r"\d+", mark["step"])]
    if numbers and numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return None  # figures in a sentence, not numbers of items
    letters = "".join(re.findall(r"[a-h]", "".join(mark["letter"] or "" for mark in marks).lower()))
    if not "abcdefgh".startswith(letters):
        return None
    intro = text[: marks[0].start()].strip(" \t\n:")
    is_steps = any(mark["step"] and mark["step"].lower().startswith("step") for mark in marks)
    is_numbered = bool(numbers) and not intro and not any(one.endswith("?") for one in found)
    return intro, [one for one in found if one], is_steps or is_numbered
