"""One search of one text: its candidates judged from left to right, and the stretches between values searched again.

A short stretch is searched at once. In a long one there are pauses, after a batch of candidates was found and after a few of
them were judged; both ways lead through the same steps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from comity.core.document.slices import Sliced
from comity.core.redaction.behind import BEHIND_CHARS
from comity.core.redaction.candidates import Candidate, Candidates, Plan, Span
from comity.core.redaction.detector import Before, Detector, PatternDetector
from comity.core.redaction.labelled import LabelledDetector
from comity.core.redaction.shapes import CONTEXT_CHARS, SKELETON_CHARS, WALL

# Each round finds values that only another value's digits had kept from being seen. More than two were never seen; the bound
# keeps a scan linear whatever the text.
ROUNDS_MAX: Final = 6
VALUE_CHARS_MIN: Final = 3  # no detector finds a shorter value; between values of a dense text there is mostly less
SHORT_CHARS: Final = 256  # a text, or a stretch of one, that is searched at once
SLICE_ITEMS: Final = 16  # candidates judged or gaps searched in a slice of work
_JOINT = r"[,;/|\s]{0,3}[ ]{0,16}(?:(?:and|or|&)\s)?"
_LIST_OF_WALLS = re.compile(f"{WALL}(?:{_JOINT}{WALL})+")
_OPEN_LIST = re.compile(rf"{WALL}{_JOINT}\Z")
_JOINT_CHARS = 24
_WINDOW_CHARS_KEPT, _WINDOWS_KEPT, _JUDGEMENTS_KEPT = 512, 1000, 4096

_Place: TypeAlias = tuple[int, str]  # where the last hidden stretch ends, and the words before that
_Won: TypeAlias = tuple[Span, _Place, _Place]  # a value, and the place before and behind it


class Wall(Struct, frozen=True, gc=False):
    """A stretch that is already a token or a mask: it is not looked into, and ends what stands beside it."""

    start: int
    end: int


class Hints(Protocol):
    """Which detectors could find something in a text, and how much of a long one is searched between two pauses."""

    @property
    def slice_chars(self) -> int: ...

    def relevant(self, text: str) -> Sliced[Sequence[Detector]]:
        """Return the detectors that could find something, with pauses."""

    def relevant_in_short(self, text: str) -> Sequence[Detector] | None:
        """Return the detectors that could find something, at once; None if not even their quick test says so."""


class Memory:
    """What one scan of a text or a document has worked out and will need again: the values of a dense one stand alike."""

    __slots__ = ("barren", "before", "latest", "lengths", "plans", "relevant")

    def __init__(self) -> None:
        self.barren: set[tuple[str, str]] = set()  # words before a gap and the gap, in which nothing was found
        self.relevant: dict[str, Plan | None] = {}
        self.latest: tuple[str, Plan | None] = "", None  # the text about to be scanned, and what could find something in it
        self.before: dict[tuple[str, str], Before] = {}
        self.lengths: dict[tuple[str, str, str, str], int] = {}
        self.plans: dict[tuple[int, ...], Plan] = {}

    def plan(self, detectors: Sequence[Detector] | None) -> Plan | None:
        """Return how to search with some detectors of the scanner; None if there are none."""
        if not detectors:
            return None
        key = tuple(map(id, detectors))
        return self.plans.get(key) or self.plans.setdefault(key, Plan(detectors))


class Search:
    """One scan of one text: the stretches hidden so far, in order, and the rules for adding to them.

    Every stretch between two hidden ones is searched as if it stood alone, and again after a value was found in it, until
    nothing more comes up. A second redaction sees the same stretches between tokens, so it finds nothing: that, and that
    context is judged with values hidden, is what makes redaction idempotent. It also finds a value that runs into another.
    """

    __slots__ = ("begin", "found", "hints", "memory", "short_chars", "skeleton", "start", "text")

    def __init__(self, hints: Hints, text: str, start: int, left: str, memory: Memory) -> None:
        self.hints, self.text, self.start, self.memory = hints, text, start, memory
        self.short_chars = min(SHORT_CHARS, hints.slice_chars)
        self.found: list[Span] = []
        self.begin = start  # where the last hidden stretch ends
        self.skeleton = skeleton(left)  # the words before that, with hidden stretches in them as `WALL`

    def pass_by(self, item: Span | Wall) -> None:
        """Take a stretch as hidden: what stands behind it is read as if there were a `WALL` in its place."""
        begin = max(self.begin, item.start - SKELETON_CHARS)
        words = self.skeleton + self.text[begin : item.start]
        opened = _OPEN_LIST.search(words, max(0, len(words) - _JOINT_CHARS))
        self.skeleton = words[-SKELETON_CHARS:] + WALL if opened is None else words[: opened.start() + 1]
        self.begin = item.end

    def between(self, begin: int, end: int, rounds: int = ROUNDS_MAX) -> Sliced[None]:
        """Hide the values in `text[begin:end]`, whose borders are hidden stretches or the ends of the text."""
        if end - begin <= self.short_chars:
            self.between_short(begin, end, rounds)
            return
        if rounds == 0:
            return
        window = self.skeleton + self.text[begin:end]
        latest, plan = self.memory.latest
        if latest != window or end - begin < len(self.text) - self.start:
            plan = self.memory.plan((yield from self.hints.relevant(window)))
        if plan is None:
            return
        won: list[_Won] = []
        current: Span | None = None
        known = self.begin, self.skeleton
        candidates = self._candidates(begin, end, plan)
        while not candidates.is_done:
            batch = yield from candidates.next(self.hints.slice_chars)
            for first in range(0, len(batch), SLICE_ITEMS):
                yield
                current = self._judged(batch[first : first + SLICE_ITEMS], current, end, won)
        if current is not None:
            self._win(current, won)
        self.begin, self.skeleton = known  # they are hidden for good only once the gaps before them have been searched again
        for number, (span, before, behind) in enumerate(won, 1):
            if span.start - begin > self.short_chars:
                yield from self.between(begin, span.start, rounds - 1)
            elif span.start - begin >= VALUE_CHARS_MIN:
                self.between_short(begin, span.start, rounds - 1)
            self._hide(span, before, behind)
            begin = span.end
            if number % SLICE_ITEMS == 0:
                yield
        if won:
            yield from self.between(begin, end, rounds - 1)

    def between_short(self, begin: int, end: int, rounds: int = ROUNDS_MAX) -> None:
        """Do what `between` does with a short stretch, at once."""
        if end - begin < VALUE_CHARS_MIN or rounds == 0:
            return
        gap = self.skeleton, self.text[begin:end]
        is_gap = end - begin < len(self.text) - self.start
        if is_gap and gap in self.memory.barren:
            return
        plan = self._plan("".join(gap), is_gap=is_gap)
        if plan is None:
            return
        won: list[_Won] = []
        known = self.begin, self.skeleton
        current = self._judged(self._candidates(begin, end, plan).all(), None, end, won)
        if current is not None:
            self._win(current, won)
        self.begin, self.skeleton = known
        if not won:
            if begin > self.start and len(self.memory.barren) < _JUDGEMENTS_KEPT:
                self.memory.barren.add(gap)
            return
        for span, before, behind in won:
            if span.start - begin >= VALUE_CHARS_MIN:
                self.between_short(begin, span.start, rounds - 1)
            self._hide(span, before, behind)
            begin = span.end
        if end - begin >= VALUE_CHARS_MIN:
            self.between_short(begin, end, rounds - 1)

    def _plan(self, window: str, *, is_gap: bool) -> Plan | None:
        """Return how to search a short stretch; what stands between the values of a dense text is often the same."""
        if not is_gap:
            latest, plan = self.memory.latest
            return plan if latest == window else self.memory.plan(self.hints.relevant_in_short(window))
        kept = self.memory.relevant
        if window in kept:
            return kept[window]
        plan = self.memory.plan(self.hints.relevant_in_short(window))
        if len(window) <= _WINDOW_CHARS_KEPT and len(kept) < _WINDOWS_KEPT:
            kept[window] = plan
        return plan

    def _candidates(self, begin: int, end: int, plan: Plan) -> Candidates:
        base = 0 if begin == self.start else begin
        return Candidates(self.text[base:end], base, begin, self.skeleton, plan)

    def _judged(self, candidates: list[Candidate], current: Span | None, end: int, won: list[_Won]) -> Span | None:
        """Add the candidates that fit and win, but for the last one, which is returned: a later candidate may beat it.

        Each is judged with those that won before it hidden.
        """
        text = self.text
        before, before_start = "", -1
        for start, priority, negative_end, _, detector in candidates:
            stop = -negative_end
            if current is not None:
                if start >= current.end:
                    self._win(current, won)
                    current = None
                    before_start = -1
                elif not _beats(priority, stop - start, current):
                    continue
            if start != before_start:
                before, before_start = self.context(start), start
            after = text[stop : min(end, stop + BEHIND_CHARS)]
            if isinstance(detector, LabelledDetector):
                if length := self._length(detector, text[start:stop], before, after):
                    current = Span(start, start + length, detector)
            elif self._fits(detector, text[start:stop], before, after):
                current = Span(start, stop, detector)
        return current

    def _win(self, span: Span, won: list[_Won]) -> None:
        before = self.begin, self.skeleton
        self.pass_by(span)
        won.append((span, before, (self.begin, self.skeleton)))

    def _hide(self, span: Span, before: _Place, behind: _Place) -> None:
        """Hide a value for good; `behind` holds if nothing more was found shortly before it."""
        self.found.append(span)
        if before == (self.begin, self.skeleton):
            self.begin, self.skeleton = behind
        else:
            self.pass_by(span)

    def _fits(self, detector: Detector, value: str, before: str, after: str) -> bool:
        if not isinstance(detector, PatternDetector):
            return detector.fits(before, after)
        if detector.judged_by is not None:
            detector = detector.judged_by(value)
        if detector.word not in before:
            return False
        kept, key = self.memory.before, (detector.name, before)
        said = kept.get(key)
        if said is None:
            said = detector.read_before(before)
            if len(kept) < _JUDGEMENTS_KEPT:
                kept[key] = said
        return detector.fits_after(said, after)

    def _length(self, detector: LabelledDetector, value: str, before: str, after: str) -> int:
        kept, key = self.memory.lengths, (detector.name, value, before, after)
        length = kept.get(key)
        if length is None:
            length = detector.judge(value, before, after)
            if len(kept) < _JUDGEMENTS_KEPT:
                kept[key] = length
        return length

    def context(self, end: int) -> str:
        """Return the words before `end` that may name a value there: a list of values counts as one."""
        words = self.text[max(self.begin, end - CONTEXT_CHARS) : end]
        return words if len(words) == CONTEXT_CHARS else (self.skeleton + words)[-CONTEXT_CHARS:]


def skeleton(left: str) -> str:
    """Return the end of a text whose values are hidden, with a list of them as one: it may name what follows."""
    return (_LIST_OF_WALLS.sub(WALL, left) if left.count(WALL) > 1 else left)[-SKELETON_CHARS:]


def _beats(priority: int, chars: int, holder: Span) -> bool:
    """Priority first, then length; the holder started earlier and keeps the rest."""
    if priority != holder.detector.priority:
        return priority < holder.detector.priority
    return chars > holder.end - holder.start
