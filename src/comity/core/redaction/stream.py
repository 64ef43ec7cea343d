"""Redacting and restoring text that arrives in pieces, with the same result as if it had arrived whole.

A piece may end inside a value, so the end of the text is held back until nothing that follows can change what was found in
it. Plain prose is let go at once, but for its last words; at most `HELD_CHARS_MAX` characters, and one piece, wait;
of a table up to `TABLE_CHARS_MAX`.
"""

from __future__ import annotations

import re
from typing import Final

from comity.core.redaction.candidates import Span
from comity.core.redaction.columns import open_table
from comity.core.redaction.hiding import Finding, replace, walls_in
from comity.core.redaction.policy import DEFAULT_POLICY, Policy
from comity.core.redaction.restore import restore_text
from comity.core.redaction.scan import DEFAULT_SCANNER, Scanner
from comity.core.redaction.search import Wall, skeleton
from comity.core.redaction.shapes import CONTEXT_CHARS, VALUE_CHARS_MAX, WALL
from comity.core.redaction.vault import TOKEN_CHARS_MAX, Vault

HELD_CHARS_MAX: Final = 512
TABLE_CHARS_MAX: Final = 4_096  # of a table, held back until it ends: its heads name what stands in it
_RELEASE_CHARS_MIN = 64  # while values are near, work is done once per this number of characters, not once per character
_SEEN_CHARS = 4  # how far left the patterns look past the start of a value
# No value reaches across so much plain prose: the longest inside one is the three words of a street in small letters.
# Letters with a space after each are no prose.
_PROSE = re.compile(r"(?:(?:[a-z][ ])?[a-z]{2,24}[ ,;]{1,2}){3,}")
_PROSE_CHARS_MIN = 64

assert VALUE_CHARS_MAX + CONTEXT_CHARS < HELD_CHARS_MAX


class StreamRedactor:
    """Redacts one text that is fed in pieces; what it returns, joined, equals `redact_text` of the pieces joined."""

    __slots__ = ("_held", "_left", "_policy", "_scanner", "_seen", "_vault", "found")

    def __init__(self, vault: Vault, policy: Policy = DEFAULT_POLICY, scanner: Scanner = DEFAULT_SCANNER) -> None:
        self._vault, self._policy, self._scanner = vault, policy, scanner
        self._held = ""
        self._seen = ""  # the last characters let go, as they came: patterns look at what touches a value
        self._left = ""  # the last characters let go, values hidden: context is looked for there
        self.found: list[Finding] = []

    def feed(self, piece: str) -> str:
        """Take a piece and return the text that is now safe to pass on, which may be empty."""
        self._held += piece
        end = self._settled()
        return self._release(end) if end > 0 else ""

    def finish(self) -> str:
        """Return the rest; the stream has ended."""
        return self._release(len(self._held))

    def _settled(self) -> int:
        """Return up to where the held text can no longer be changed by what follows."""
        held = self._held
        end = len(held) - HELD_CHARS_MAX
        if end < _RELEASE_CHARS_MIN:
            end = 0
        if not self._scanner.is_local:
            return end
        for prose in _PROSE.finditer(held, end):
            if prose.end() - prose.start() >= _PROSE_CHARS_MIN:
                end = max(end, _start_of_last_words(held, prose.start(), prose.end()))
        table = open_table(held) if end else 0
        return end if end <= table or len(held) - table > TABLE_CHARS_MAX else table

    def _release(self, end: int) -> str:
        text, start = self._seen + self._held, len(self._seen)
        end += start
        walls = [wall for wall in walls_in(text) if wall.start >= start]
        spans = self._scanner.find(text, walls, start=start, left=self._left)
        hidden: list[Span | Wall] = [*spans, *walls]
        end = min((item.start for item in hidden if item.start < end < item.end), default=end)
        hidden = sorted((item for item in hidden if item.end <= end), key=lambda item: item.start)
        done = [span for span in spans if span.end <= end]
        self._left = skeleton(self._left + _hide(text, hidden, start, end))
        released, found = replace(text[:end], done, self._vault, self._policy)
        self.found.extend(found)
        border = hidden[-1].end if hidden else 0  # a hidden value is a border, whatever it ended with
        self._seen, self._held = text[max(border, end - _SEEN_CHARS) : end], text[end:]
        return released[start:]


class StreamRestorer:
    """Restores the tokens of one text that is fed in pieces."""

    __slots__ = ("_held", "_types", "_vault")

    def __init__(self, vault: Vault, types: frozenset[str] | None = None) -> None:
        self._vault, self._types = vault, types
        self._held = ""

    def feed(self, piece: str) -> str:
        """Take a piece and return the text that is now complete; the beginning of a token waits for its end."""
        text = self._held + piece
        opening = text.rfind("[[", max(0, len(text) - TOKEN_CHARS_MAX))
        if opening < 0 or "]]" in text[opening:]:
            opening = len(text) - text.endswith("[")
        self._held = text[opening:]
        return restore_text(text[:opening], self._vault, self._types)

    def finish(self) -> str:
        """Return the rest; the stream has ended."""
        rest, self._held = self._held, ""
        return restore_text(rest, self._vault, self._types)


def _start_of_last_words(text: str, start: int, end: int) -> int:
    """Return where the last two words before `end` begin: they may name what comes, as in "john (at) example.com"."""
    words = text[start:end].rstrip(" ,;")
    for _ in range(2):
        words = words[: words.rfind(" ") + 1].rstrip(" ,;")
    return start + len(words) + 1


def _hide(text: str, hidden: list[Span | Wall], start: int, end: int) -> str:
    pieces: list[str] = []
    for item in hidden:
        pieces += (text[start : item.start], WALL)
        start = item.end
    pieces.append(text[start:end])
    return "".join(pieces)
