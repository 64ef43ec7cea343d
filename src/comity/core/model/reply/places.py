"""Where in a text a JSON document may stand: inside fences, at each brace that opens an object."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from comity.core.model.reply.repair import Repair
from comity.core.model.reply.tolerant import Broken, Budget, Parsed, parse

# Fences and wrapped items looked at in one text; a reply has one or two.
PLACES_MAX: Final = 64
# Split characters that are joined again; a text with more of them is damaged, not split.
PAIRS_MAX: Final = 10_000

Span = tuple[int, int]

_FENCE_OPENS = re.compile(r"```+[ \t]*[\w+.\-]*[ \t]*(\r?\n)?")
_FENCE_CLOSES = re.compile(r"\n[ \t]*```")
_SPLIT_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_PRINTABLE = bytes(ord("?") if (code < 32 and code not in b"\t\n\r") or code == 127 else code for code in range(256))
# A string that does not close goes on to the end: were it refused, each quote in it would be tried in turn.
_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"?|([{\[])|[}\]]', re.DOTALL)


def objects_in(text: str, depth_max: int, budget: Budget) -> Iterator[tuple[int, Parsed, bool]]:
    """Yield each outermost object with its start, and whether it may be a part of an object that could not be read."""
    is_doubtful = False
    start = text.find("{")
    while start >= 0 and budget.spend():
        outcome = parse(text, start, budget=budget, depth_max=depth_max)
        resume = start + 1
        if isinstance(outcome, Parsed):
            yield start, outcome, is_doubtful
            resume = outcome.end
        elif outcome.has_members:
            end = _end_of_broken(text, outcome, budget)
            is_doubtful = is_doubtful or end is None
            resume = end or resume
        start = text.find("{", resume)


def _end_of_broken(text: str, broken: Broken, budget: Budget) -> int | None:
    """Return where the brackets that were open when reading failed are closed again."""
    depth = broken.depth
    for token in _BRACKET.finditer(text, broken.at):
        if not budget.spend(token.end() - token.start()):
            return None
        if token[1]:
            depth += 1
        elif token[0] in "}]":
            depth -= 1
            if depth == 0:
                return token.end()
    return None


def fences_in(text: str) -> list[Span]:
    """Return where the fenced blocks stand, without their fences; the last one may never close."""
    spans: list[Span] = []
    end = 0
    while len(spans) < PLACES_MAX and (opens := _FENCE_OPENS.search(text, end)):
        start = opens.end()
        if opens[1]:  # a block closes at the start of a line, so that fences inside its strings do not
            closes = _FENCE_CLOSES.search(text, start - 1)
            stop, end = closes.span() if closes else (len(text), len(text))
        else:
            stop = text.find("```", start)
            stop, end = (stop, stop + 3) if stop >= 0 else (len(text), len(text))
        spans.append((start, stop))
    return spans


def mend_surrogates(text: str) -> tuple[str, tuple[Repair, ...]]:
    """Join halves of characters that belong together; others, which no encoding can carry, become question marks."""
    try:
        text.encode()
    except UnicodeEncodeError:
        joined = _SPLIT_PAIR.sub(_join_pair, text, PAIRS_MAX)
        mended = joined.encode("utf-8", "replace").decode()
        return mended, (Repair.SPLIT_SURROGATES if mended == joined else Repair.LONE_SURROGATE,)
    return text, ()


def _join_pair(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16", "surrogatepass").decode("utf-16")


def without_controls(text: str) -> str:
    """Replace the control characters that an envelope refuses."""
    return text.encode("utf-8", "replace").translate(_PRINTABLE).decode()


def unescaped(text: str) -> str:
    """Undo one level of string encoding, in a text whose enclosing quotes may be missing."""
    parts = text.split("\\\\")
    for escape, plain in (('\\"', '"'), ("\\n", "\n"), ("\\r", "\r"), ("\\t", "\t"), ("\\/", "/")):
        parts = [part.replace(escape, plain) for part in parts]
    return "\\".join(parts)
