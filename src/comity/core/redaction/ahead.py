"""Which detectors could find something in a short text, asked for the next texts of a list or the next keys at once.

In a list that is full of personal data the hints are tested against many texts joined by line breaks: a third of the time that
such a text takes is spent on testing hints. A detector that could find something in one of the texts is then tried in all of
them, which changes nothing in what is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from comity.core.redaction.detector import Detector
from comity.core.redaction.scan import Scanner

AHEAD_TEXTS: Final = 32
_FOUND_MIN = 16  # values in as many texts before: where values are rare, most texts need no search at all
_TEXT_CHARS_MAX = 64
_DETECTORS_MAX = 4  # to try more of them in each text takes longer than to test the hints


class Ahead:
    """The texts that were looked at together, by the words before them, and which detectors could find something in them."""

    __slots__ = ("_found", "_known", "_scanner")

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner
        self._found = 0
        self._known: dict[str, tuple[frozenset[str], Sequence[Detector] | None]] = {}

    def look(self, windows: Iterable[tuple[str, Any]], found: int) -> None:
        """Test the hints against the texts of the next items, each with the words before it; `found` counts values so far."""
        is_dense, self._found = found - self._found >= _FOUND_MIN, found
        self._known.clear()
        if not is_dense or not self._scanner.is_local:  # another's hint need not match between line breaks
            return
        behind: dict[str, list[str]] = {}
        for left, item in windows:
            if isinstance(item, str) and len(item) <= _TEXT_CHARS_MAX:
                behind.setdefault(left, []).append(item)
        for left, texts in behind.items():
            detectors = self._scanner.relevant_in_short("\n".join([f"{left}{text}" for text in texts]))
            if detectors is None or len(detectors) <= _DETECTORS_MAX:
                self._known[left] = frozenset(texts), detectors

    def relevant(self, left: str, text: str) -> Sequence[Detector] | None:
        """Return the detectors that could find something in a text; None if none can."""
        known = self._known.get(left)
        if known is not None and text in known[0]:
            return known[1]
        return self._scanner.relevant_in_short(left + text)
