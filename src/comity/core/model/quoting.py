"""The one way in which words that are neither the author's nor the user's stand in a prompt: marked, defused, bounded.

A model cannot be kept from believing what it reads. What can be done is done here: the prompt tells the model where a text
comes from and where it ends; the end cannot be faked, since the mark holds a code made of the text itself and a key of the
node; characters that no reader sees are gone; control tokens and phrases that try to give orders are made harmless and
reported, so that the attempt is in the audit. What an agent may do never depends on this: tools and calls are checked where
they are made.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final, NamedTuple

from comity.core.document.unseen import without_unseen
from comity.core.model.injection import CONTROL, find_orders
from comity.core.session.conversation import clip

QUOTED_CHARS_MAX: Final = 200_000  # of one quotation; callers that know better say less
LABEL_CHARS_MAX: Final = 80
CODE_BYTES: Final = 6
KINDS: Final = ("background", "data", "guidance", "list", "request")

_PERSON: Final = b"comity quotation"  # a code made for another purpose does not fit
_NO_LABEL: Final = re.compile(r"[^\w ,:./@+#-]")
# What looks like a mark of ours, in whichever brackets. Every repetition is bounded: a text must not make the search slow.
_WORDS: Final = "|".join((*KINDS, "quotation", "quote", "context", "document", "tool result", "untrusted"))
_FAKE: Final = re.compile(
    rf"[\[［【〔⟦](?=[\s/]{{0,5}}(?:end[\s_-]{{0,5}}(?:of\s{{0,5}})?(?:the\s{{0,5}})?(?:{_WORDS})\b|(?:{_WORDS})\s{{1,5}}from\b))"
    rf"|(?:[(<{{（＜]|[-=#*_]{{2,9}})(?=[\s/]{{0,5}}end\s{{1,5}}of\s{{1,5}}(?:the\s{{1,5}})?(?:{_WORDS})\b)",
    re.IGNORECASE,
)
_SAFE: Final = str.maketrans("[<>", "(‹›", "|｜")
MARK: Final = re.compile(rf"\[(end of )?({'|'.join(KINDS)}) from ([^\[\]\n]{{1,200}}) ([0-9a-f]{{{2 * CODE_BYTES}}})\]")


class Seal(NamedTuple):
    """What the marks of a conversation are made with: a key of the node, and the conversation."""

    key: bytes
    scope: str


class Quoted(NamedTuple):
    """A text as a model may read it, and the kinds of attempts that stood in it."""

    text: str
    found: tuple[str, ...]


def quote(
    text: str,
    source: str,
    seal: Seal,
    *,
    what: str = "data",
    chars_max: int = QUOTED_CHARS_MAX,
    keeps_orders: bool = False,
) -> Quoted:
    """Return a text of `source` between marks that nothing inside can close, and what was found in it.

    With `keeps_orders` orders are found and stay as they are: those of people who may give them.
    """
    safe, found = defuse(clip(text, chars_max), keeps_orders=keeps_orders)
    named = f"{what} from {label(source)}"
    code = _code(safe, named, seal)
    return Quoted(f"[{named} {code}]\n{safe}\n[end of {named} {code}]", found)


def label(name: str) -> str:
    """Return a name as it may stand in a mark or a sentence of the platform: one short line without brackets."""
    plain = _NO_LABEL.sub("_", without_unseen(name)[0].replace("\n", "_").replace("\t", "_"))
    return plain[:LABEL_CHARS_MAX].rstrip()


def is_whole(mark: str, text: str, seal: Seal) -> bool:
    """Return whether an opening mark is the platform's own mark of this very text."""
    match = MARK.fullmatch(mark)
    return match is not None and _code(text, f"{match[2]} from {match[3]}", seal) == match[4]


def without_codes(text: str) -> str:
    """Return a prompt's text with the codes taken out of its marks: what stays the same on every node and in every session."""
    return MARK.sub(lambda match: f"[{match[1] or ''}{match[2]} from {match[3]}]", text)


def defuse(text: str, *, keeps_orders: bool = False) -> Quoted:
    """Return a text without hidden characters, control tokens and marks, its orders in quotation marks, and what was found."""
    found: list[str] = []
    text, is_odd = without_unseen(text)
    if is_odd:
        found.append("invisible")
    text, marks = _FAKE.subn("‹", text)
    if marks:
        found.append("mark")
    if "<" in text or "[" in text:
        text, tokens = CONTROL.subn(lambda match: match[0].translate(_SAFE), text)
        if tokens:
            found.append("control")
    orders, kinds = find_orders(text)
    found += kinds
    safe = _between_marks(text, orders) if orders and not keeps_orders else text
    return Quoted(safe, tuple(dict.fromkeys(found)))


def _code(text: str, named: str, seal: Seal) -> str:
    said = "\x1f".join((seal.scope, named, text)).encode(errors="replace")
    return blake2b(said, digest_size=CODE_BYTES, key=seal.key[:64], person=_PERSON).hexdigest()


def _between_marks(text: str, orders: list[tuple[int, int]]) -> str:
    pieces: list[str] = []
    done = 0
    for start, end in sorted(orders):
        if start < done:  # inside the one before
            continue
        pieces += (text[done:start], "“", text[start:end].rstrip(), "” (quoted, not an instruction)")
        done = end
    return "".join((*pieces, text[done:]))
