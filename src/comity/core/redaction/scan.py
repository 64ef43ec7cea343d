"""Finding personal data in a text: first whether there can be any, then which values, left to right.

The first question is asked of every request, so it must cost next to nothing. All hints together are one pattern for the
linear-time regex engine of pydantic-core, which reads a kilobyte in under two microseconds; the standard library needs
six for a single character class, and cannot promise linear time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from comity.core.redaction.detector import Detector, PatternDetector
from comity.core.redaction.labelled import LabelledDetector
from comity.core.redaction.normal import ODD_HINT, Copy, is_odd
from comity.core.redaction.shapes import CONTEXT_CHARS, SKELETON_CHARS, WALL, compile_test
from comity.core.redaction.table import DETECTORS

_AFTER_CHARS = 24
# Each round finds values that only another value's digits had kept from being seen. More than two were never seen; the bound
# keeps a scan linear whatever the text.
_ROUNDS_MAX = 6

_VALUE_CHARS_MIN = 3  # no detector finds a shorter value; between values of a dense text there is mostly less
_JOINT = r"[,;/|\s]{0,3}(?:(?:and|or|&)\s)?"
_LIST_OF_WALLS = re.compile(f"{WALL}(?:{_JOINT}{WALL})+")
_OPEN_LIST = re.compile(rf"{WALL}{_JOINT}\Z")
_JOINT_CHARS = 8
_WINDOW_CHARS_KEPT, _WINDOWS_KEPT = 512, 1000
_MASK_HINT = r"\*{4}[A-Za-z0-9@]"  # a mask ends a run of digits that hints would take for one


@dataclass(frozen=True, slots=True)
class Span:
    """One value found: where it stands, and by which detector."""

    start: int
    end: int
    detector: Detector


@dataclass(frozen=True, slots=True)
class Wall:
    """A stretch that is already a token or a mask: it is not looked into, and ends what stands beside it."""

    start: int
    end: int


_BACKSLASH = ord("\\")  # as a number: looking for it does not make Python build a search string


class Scanner:
    """A set of detectors and the one test that says whether any of them could find something."""

    __slots__ = ("_hint", "_test", "detectors", "is_local")

    def __init__(self, detectors: Iterable[Detector]) -> None:
        self.detectors: tuple[Detector, ...] = tuple(sorted(detectors, key=lambda detector: detector.priority))
        # Built-in detectors never join words across a stretch of plain prose, so a stream may let that go at once.
        self.is_local = all(isinstance(detector, PatternDetector | LabelledDetector) for detector in self.detectors)
        hints = dict.fromkeys(detector.hint for detector in self.detectors)
        self._hint = "|".join(f"(?:{hint})" for hint in (*hints, _MASK_HINT, ODD_HINT)) if None not in hints else ""
        self._test: Callable[[str], bool] | None = None  # made on first use

    def may_find(self, text: str) -> bool:
        """Return False only if no detector can find anything in `text`."""
        return compile_test(self._hint)(text) or not _is_readable(text)

    def may_find_in_json(self, raw: bytes) -> bool:
        """Return False only if no detector can find anything in the strings and keys of a JSON document."""
        # An escaped code point may spell any character of a value. Looking for the one byte first is four times faster.
        if _BACKSLASH in raw and b"\\u" in raw:
            return True
        test = self._test
        if test is None:
            test = self._test = compile_test(self._hint)
        return test(raw.decode())

    def relevant(self, text: str) -> list[Detector]:
        """Return the detectors that could find something in `text`."""
        if not _is_readable(text):
            return list(self.detectors)
        return [detector for detector in self.detectors if detector.hint is None or compile_test(detector.hint)(text)]

    def find(self, text: str, walls: Sequence[Wall] = (), *, start: int = 0, left: str = "") -> list[Span]:
        """Return the values that stand in `text` at or after `start`, none overlapping, from left to right.

        `left` is what stands before `start`, with values already found replaced by `WALL`: a JSON key, or the end of the
        text a stream has let go. The characters of `text` before `start` are only looked at, as the left border of a value.
        """
        if not self.may_find(left + text[start:]):
            return []
        if is_odd(text):
            copy = Copy(text)
            walls = [Wall(copy.place(wall.start), copy.place(wall.end)) for wall in walls]
            found = self._find(copy.text, walls, copy.place(start), left)
            return [Span(copy.original(span.start), copy.original(span.end), span.detector) for span in found]
        return self._find(text, walls, start, left)

    def _find(self, text: str, walls: Sequence[Wall], start: int, left: str) -> list[Span]:
        search = _Search(self, text, start, left)
        begin = start
        for wall in walls:
            search.between(begin, wall.start, _ROUNDS_MAX)
            search.hide(wall)
            begin = wall.end
        search.between(begin, len(text), _ROUNDS_MAX)
        return [item for item in search.hidden if isinstance(item, Span)]


class _Search:
    """One scan of one text: the stretches hidden so far, in order, and the rules for adding to them.

    Every stretch between two hidden ones is searched as if it stood alone, and again after a value was found in it, until
    nothing more comes up. A second redaction sees the same stretches between tokens, so it finds nothing: that, and that
    context is judged with values hidden, is what makes redaction idempotent. It also finds a value that runs into another.
    """

    __slots__ = ("begin", "hidden", "known", "scanner", "skeleton", "start", "text")

    def __init__(self, scanner: Scanner, text: str, start: int, left: str) -> None:
        self.scanner, self.text, self.start = scanner, text, start
        self.hidden: list[Span | Wall] = []
        self.known: dict[str, list[Detector]] = {}
        self.begin = start  # where the last hidden stretch ends
        self.skeleton = skeleton(left)  # the words before that, with hidden stretches in them as `WALL`

    def hide(self, item: Span | Wall) -> None:
        """Add a stretch to the hidden ones."""
        self.hidden.append(item)
        self._pass(item)

    def _pass(self, item: Span | Wall) -> None:
        words = self.skeleton + self.text[max(self.begin, item.start - SKELETON_CHARS) : item.start]
        opened = _OPEN_LIST.search(words, max(0, len(words) - _JOINT_CHARS))
        self.skeleton = words[-SKELETON_CHARS:] + WALL if opened is None else words[: opened.start() + 1]
        self.begin = item.end

    def between(self, begin: int, end: int, rounds: int) -> None:
        """Hide the values in `text[begin:end]`, whose borders are hidden stretches or the ends of the text."""
        if end - begin < _VALUE_CHARS_MIN or rounds == 0:
            return
        found = self._resolve(begin, end, self._relevant(self.skeleton + self.text[begin:end]))
        if not found:
            return
        for span in found:
            self.between(begin, span.start, rounds - 1)
            self.hide(span)
            begin = span.end
        self.between(begin, end, rounds - 1)

    def _relevant(self, window: str) -> list[Detector]:
        """Return the detectors that could find something; what stands between the values of a dense text is often the same."""
        known = self.known.get(window)
        if known is None:
            known = self.scanner.relevant(window) if self.scanner.may_find(window) else []
            if len(window) <= _WINDOW_CHARS_KEPT and len(self.known) < _WINDOWS_KEPT:
                self.known[window] = known
        return known

    def _resolve(self, begin: int, end: int, detectors: Sequence[Detector]) -> list[Span]:
        """Return the candidates that fit and win; each is judged with those accepted before it hidden."""
        if not detectors:
            return []
        accepted: list[Span] = []
        current: Span | None = None
        known = self.begin, self.skeleton
        before, before_start = "", -1
        for candidate in self._candidates(begin, end, detectors):
            if current is not None and candidate.start >= current.end:
                accepted.append(current)
                self._pass(current)
                current = None
            if current is not None and not _beats(candidate, current):
                continue
            if candidate.start != before_start:
                before, before_start = self.context(candidate.start), candidate.start
            after = self.text[candidate.end : min(end, candidate.end + _AFTER_CHARS)]
            detector = candidate.detector
            if isinstance(detector, LabelledDetector):
                if length := detector.judge(self.text[candidate.start : candidate.end], before, after):
                    current = Span(candidate.start, candidate.start + length, detector)
            elif detector.fits(before, after):
                current = candidate
        if current is not None:
            accepted.append(current)
        self.begin, self.skeleton = known  # they are hidden for good only once the gaps before them have been searched again
        return accepted

    def _candidates(self, begin: int, end: int, detectors: Sequence[Detector]) -> list[Span]:
        base = 0 if begin == self.start else begin
        alone = self.text[base:end]
        found = [
            Span(base + first, base + last, detector)
            for detector in detectors
            for first, last in detector.spans(alone, begin - base)
        ]
        found.sort(key=lambda span: (span.start, span.detector.priority, -span.end))
        return found

    def context(self, end: int) -> str:
        """Return the words before `end` that may name a value there: a list of values counts as one."""
        words = self.text[max(self.begin, end - CONTEXT_CHARS) : end]
        return words if len(words) == CONTEXT_CHARS else (self.skeleton + words)[-CONTEXT_CHARS:]


def skeleton(left: str) -> str:
    """Return the end of a text whose values are hidden, with a list of them as one: it may name what follows."""
    return (_LIST_OF_WALLS.sub(WALL, left) if left.count(WALL) > 1 else left)[-SKELETON_CHARS:]


def _beats(challenger: Span, holder: Span) -> bool:
    """Priority first, then length; the holder started earlier and keeps the rest."""
    if challenger.detector.priority != holder.detector.priority:
        return challenger.detector.priority < holder.detector.priority
    return challenger.end - challenger.start > holder.end - holder.start


def _is_readable(text: str) -> bool:
    """Return whether the engine can read a text; it calls one with a lone surrogate clean."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


DEFAULT_SCANNER: Final = Scanner(DETECTORS)
