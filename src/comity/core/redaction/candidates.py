"""The places of a text that may hold a value, in the order in which they are judged.

Most detectors search for their own shape. A number that counts only under a label is looked for the other way round: words are
looked up once for all such detectors, and only the detectors that the words before a number may name try their shape there. A
text full of numbers that belong to no person would otherwise be tried, and judged, at each of them by each detector.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from operator import itemgetter
from typing import Final, TypeAlias

from msgspec import Struct

from comity.core.document.slices import Sliced
from comity.core.redaction.behind import BEHIND_CHARS, labels_behind, may_name_behind
from comity.core.redaction.detector import Detector, PatternDetector
from comity.core.redaction.labelled import LabelledDetector
from comity.core.redaction.shapes import CONTEXT_CHARS, NUMBER_CHARS_MAX

# Where a value with a digit near its beginning may begin: "(089) 1234", "AB 123456", "BNC LRA 84D52", "September 3, 1984";
# not inside "12.3.84".
_NUMBER: Final = re.compile(
    r"(?<![A-Za-z0-9_])(?=[+(]{0,2}[^\W\d_]{0,10}\.?[- ]?(?:[A-Z]{3}[ ])?[0-9])(?:(?<![0-9][-./])[^\W_]|[(+])"
)
_NUMBER_LOOKS_CHARS = 24  # how far right of where it begins this pattern looks
_UP_TO_DIGIT: Final = re.compile("(?s:.*)(?<![A-Za-z])[0-9]")  # but that of a word: "CVV2"
_DIGITS: Final = re.compile("(?<![A-Za-z])[0-9]+")  # the same, each run of them
_REST_OF_VALUE: Final = re.compile(r"\A[A-Za-z]+")  # which the digit before the words may belong to
_OPENING = frozenset("+(")
_NAMERS_KEPT = 4096
_VALUE_CHARS = 48  # of a value that has its label behind it
_NUMBERS_CHARS = 256  # searched for numbers in a slice of work


class Span(Struct, frozen=True, gc=False):
    """One value found: where it stands, and by which detector."""

    start: int
    end: int
    detector: Detector


# What candidates are sorted by: where it begins, the priority, the longest first, the name; and the detector.
Candidate: TypeAlias = tuple[int, int, int, str, Detector]
_SORTED_BY = itemgetter(0, 1, 2, 3)
_BuiltIn: TypeAlias = PatternDetector | LabelledDetector
_BUILT_IN = (PatternDetector, LabelledDetector)


_Named: TypeAlias = tuple[_BuiltIn, ...]


class Plan:
    """How some detectors are searched with, and which of them the words before a number name.

    Such words are remembered, because those of a text come again.
    """

    __slots__ = ("_kept", "numbered", "outside", "searching")

    def __init__(self, detectors: Iterable[Detector]) -> None:
        self.outside: list[Detector] = []  # which say nothing of how far they look
        self.searching: list[_BuiltIn] = []
        self.numbered: list[_BuiltIn] = []
        for detector in detectors:
            if not isinstance(detector, _BUILT_IN):
                self.outside.append(detector)
            elif detector.is_number:
                self.numbered.append(detector)
            else:
                self.searching.append(detector)
        self._kept: dict[tuple[str, _Named], tuple[_Named, bool]] = {}

    def named_by(self, words: str, earlier: _Named) -> tuple[_Named, bool]:
        """Return the detectors that words before a number name, and whether they do so themselves.

        Words that only join a number to what is before them name what named the number before, `earlier`.
        """
        known = self._kept.get((words, earlier))
        if known is None:
            named = tuple(detector for detector in self.numbered if detector.may_be_named(words))
            joint = _REST_OF_VALUE.sub("", words, count=1)
            joined = tuple(detector for detector in earlier if detector not in named and detector.may_join(joint))
            known = named + joined, bool(named)
            if len(self._kept) < _NAMERS_KEPT:
                self._kept[words, earlier] = known
        return known


class Candidates:
    """The candidates of one stretch, sorted, in batches of those that begin in a few thousand characters.

    A pattern is tried at every place of a batch and looks past its end as far as it ever looks, so batches join to exactly
    what one search of the whole stretch gives.
    """

    __slots__ = ("_alone", "_base", "_end", "_floor", "_later", "_left", "_named", "_named_at", "_place", "_plan")

    def __init__(self, alone: str, base: int, begin: int, left: str, plan: Plan) -> None:
        self._alone, self._plan = alone, plan
        self._base, self._place, self._end = base, begin - base, len(alone)
        self._floor = self._place
        self._left = left[-CONTEXT_CHARS:]  # the words before the stretch, with hidden values in them
        self._named: _Named = ()  # at the last number
        self._named_at = 0  # where the last label, or the last value under it, may end
        self._later: list[Candidate] = []  # found already, and beginning behind the batch
        for detector in plan.outside:
            self._add(self._later, detector, detector.spans(self._alone, self._place))

    @property
    def is_done(self) -> bool:
        """Whether there is no further batch."""
        return self._place >= self._end

    def all(self) -> list[Candidate]:
        """Return all candidates of a stretch that is short enough to be searched at once."""
        found, stop = self._later, self._end
        starts: dict[str, list[int]] = {}
        for detector in self._plan.searching:
            self._search(detector, starts, stop, found)
        if self._plan.numbered:
            self._add_named_behind(found, stop, stop)
            self._add_numbers(found, self._place, stop, stop)
        if len(found) > 1:
            found.sort(key=_SORTED_BY)
        return found

    def next(self, slice_chars: int) -> Sliced[list[Candidate]]:
        """Return the next batch, with a pause after each detector and after each few numbers."""
        stop = min(self._place + slice_chars, self._end)
        found = self._later
        starts: dict[str, list[int]] = {}  # where matches may begin, by the pattern of their first character
        for detector in self._plan.searching:
            yield
            self._search(detector, starts, stop, found)
        if self._plan.numbered:
            yield
            end_max = min(self._end, stop + NUMBER_CHARS_MAX)
            self._add_named_behind(found, stop, end_max)
            for place in range(self._place, stop, _NUMBERS_CHARS):
                yield
                self._add_numbers(found, place, min(place + _NUMBERS_CHARS, stop), end_max)
        self._place, self._later = stop, []
        if stop < self._end:  # a shape may begin here and its value in the next batch
            border = self._base + stop
            self._later = [candidate for candidate in found if candidate[0] >= border]
            found = [candidate for candidate in found if candidate[0] < border]
        found.sort(key=_SORTED_BY)
        return found

    def _search(self, detector: _BuiltIn, starts: dict[str, list[int]], stop: int, found: list[Candidate]) -> None:
        """Add what one detector finds by its shape; detectors with the same first character share where they begin."""
        if isinstance(detector, PatternDetector) and detector.first:
            places = starts.get(detector.first)
            if places is None:
                places = starts[detector.first] = detector.starts(self._alone, self._place, stop)
            if places:
                self._add(found, detector, detector.spans_from(self._alone, places, stop))
        else:
            self._add(found, detector, detector.spans(self._alone, self._place, stop))

    def _add(self, found: list[Candidate], detector: Detector, spans: Iterable[tuple[int, int]]) -> None:
        base = self._base
        for first, last in spans:
            found.append((base + first, detector.priority, -base - last, detector.name, detector))

    def _add_named_behind(self, found: list[Candidate], stop: int, end_max: int) -> None:
        """Add the numbers that end where the label of their kind may stand behind them."""
        text = self._alone
        if not may_name_behind(text[self._place : end_max + BEHIND_CHARS]):
            return
        for end, label in labels_behind(text, self._place, end_max):
            named, _ = self._plan.named_by(label, ())
            places = [one.start() for one in _NUMBER.finditer(text, max(self._place, end - _VALUE_CHARS), end)] if named else ()
            for detector in named:
                for place in places:
                    span = detector.span_at(text, place, end)
                    if span is not None and span[1] == end and place < stop:
                        self._add(found, detector, (span,))

    def _add_numbers(self, found: list[Candidate], begin: int, stop: int, end_max: int) -> None:
        """Add the numbers that begin in a part of the batch and that the words before them name."""
        text, floor, left, base = self._alone, self._floor, self._left, self._base
        named_by, named, named_at = self._plan.named_by, self._named, self._named_at
        ends = [run.end() for run in _DIGITS.finditer(text, max(begin - CONTEXT_CHARS, floor), stop)]
        ends.append(stop)
        run = digit = 0  # the digits to come, and where the last ones end
        for start in _NUMBER.finditer(text, begin, min(stop + _NUMBER_LOOKS_CHARS, end_max)):
            place = start.start()
            if place >= stop:
                break
            # The words behind the last digit decide. Where they only join, the label may stand before an earlier value of a
            # list, but not with more between than is looked at when a value is judged.
            while ends[run] <= place:
                digit = ends[run]
                run += 1
            words_begin = max(floor, place - CONTEXT_CHARS, digit)
            words = text[words_begin:place]
            if words[-1:] in _OPENING:
                words = words.rstrip("+(")  # which belong to the number: it may begin there too
            if left and words_begin == floor:
                words = _last_words(left + words)
            named, is_label = named_by(words, named if place - named_at <= CONTEXT_CHARS else ())
            if is_label:
                named_at = place
            for detector in named:
                if span := detector.span_at(text, place, end_max):
                    found.append((base + span[0], detector.priority, -base - span[1], detector.name, detector))
                    named_at = max(named_at, span[1])
        self._named, self._named_at = named, named_at


def _last_words(text: str) -> str:
    digit = _UP_TO_DIGIT.match(text)
    return text if digit is None else text[digit.end() :]
