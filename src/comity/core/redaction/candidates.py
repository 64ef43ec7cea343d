"""The places of a text that may hold a value, in the order in which they are judged.

Most detectors search for their own shape. A number that counts only under a label is looked for the other way round: words are
looked up once for all such detectors, and only the detectors that the words before a number may name try their shape there. A
text full of numbers that belong to no person would otherwise be tried, and judged, at each of them by each detector.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Final, TypeAlias

from msgspec import Struct

from comity.core.document.slices import Sliced
from comity.core.redaction.detector import Detector, PatternDetector
from comity.core.redaction.labelled import LabelledDetector
from comity.core.redaction.shapes import CONTEXT_CHARS, NUMBER_CHARS_MAX

# Where a value with a digit near its beginning may begin: "(089) 1234", "AB 123456", "BNC LRA 84D52", "September 3, 1984";
# not inside "12.3.84".
_NUMBER: Final = re.compile(
    r"(?<![A-Za-z0-9_])(?=[+(]{0,2}[^\W\d_]{0,10}\.?[- ]?(?:[A-Z]{3}[ ])?[0-9])(?:(?<![0-9][-./])[^\W_]|[(+])"
)
_UP_TO_DIGIT: Final = re.compile("(?s:.*)(?<![A-Za-z])[0-9]")  # but that of a word: "CVV2"
_DIGITS: Final = re.compile("(?<![A-Za-z])[0-9]+")  # the same, each run of them
_REST_OF_VALUE: Final = re.compile(r"\A[A-Za-z]+")  # which the digit before the words may belong to
_OPENING = frozenset("+(")
_NAMERS_KEPT = 4096
_LONG_CHARS = 512  # a batch that takes longer than a short slice of work
_NUMBERS_IN_SLICE = 64


class Span(Struct, frozen=True, gc=False):
    """One value found: where it stands, and by which detector."""

    start: int
    end: int
    detector: Detector


Candidate: TypeAlias = tuple[int, int, int, str, Span]  # what they are sorted by, and the candidate
_SORTED_BY = itemgetter(0, 1, 2, 3)
_BuiltIn: TypeAlias = PatternDetector | LabelledDetector


_Named: TypeAlias = tuple[_BuiltIn, ...]


class Namers:
    """Which of some detectors words before a number may name; remembered, because the words of a text come again."""

    __slots__ = ("_detectors", "_kept")

    def __init__(self, detectors: Sequence[_BuiltIn]) -> None:
        self._detectors = detectors
        self._kept: dict[tuple[str, _Named], tuple[_Named, bool]] = {}

    def of(self, words: str, earlier: _Named) -> tuple[_Named, bool]:
        """Return the detectors that words name, and whether they do so themselves.

        Words that only join a number to what is before them name what named the number before, `earlier`.
        """
        known = self._kept.get((words, earlier))
        if known is None:
            named = tuple(detector for detector in self._detectors if detector.may_be_named(words))
            joint = _REST_OF_VALUE.sub("", words, count=1)
            joined = tuple(detector for detector in earlier if detector not in named and detector.may_join(joint))
            known = named + joined, bool(named)
            if len(self._kept) < _NAMERS_KEPT:
                self._kept[words, earlier] = known
        return known


NamersOf: TypeAlias = dict[tuple[str, ...], Namers]  # by the names of the detectors


class Candidates:
    """The candidates of one stretch, sorted, in batches of those that begin in a few thousand characters.

    A pattern is tried at every place of a batch and looks past its end as far as it ever looks, so batches join to exactly
    what one search of the whole stretch gives.
    """

    __slots__ = (
        "_alone",
        "_base",
        "_end",
        "_floor",
        "_later",
        "_left",
        "_named",
        "_named_at",
        "_namers",
        "_numbered",
        "_place",
        "_searching",
        "_slice_chars",
    )

    def __init__(
        self, alone: str, base: int, begin: int, left: str, detectors: Sequence[Detector], slice_chars: int, namers: NamersOf
    ) -> None:
        self._alone, self._slice_chars = alone, slice_chars
        self._base, self._place, self._end = base, begin - base, len(alone)
        self._floor = self._place
        self._left = left[-CONTEXT_CHARS:]  # the words before the stretch, with hidden values in them
        self._named: _Named = ()  # at the last number
        self._named_at = 0  # where the last label, or the last value under it, may end
        self._later: list[Candidate] = []  # found already, and beginning behind the batch
        self._searching: list[_BuiltIn] = []
        self._numbered: list[_BuiltIn] = []
        for detector in detectors:
            if not isinstance(detector, PatternDetector | LabelledDetector):  # it says nothing of how far it looks
                self._later += _sorted(self._base, detector, detector.spans(self._alone, self._place))
            elif detector.is_number:
                self._numbered.append(detector)
            else:
                self._searching.append(detector)
        names = tuple(detector.name for detector in self._numbered)
        self._namers = namers.get(names) or namers.setdefault(names, Namers(self._numbered))

    @property
    def is_done(self) -> bool:
        """Whether there is no further batch."""
        return self._place >= self._end

    def next(self) -> Sliced[list[Candidate]]:
        """Return the next batch, with a pause after each detector that searches a long one."""
        stop = min(self._place + self._slice_chars, self._end)
        found = self._later
        base, place = self._base, self._place
        is_long = stop - place > _LONG_CHARS
        starts: dict[str, list[int]] = {}  # where matches may begin, by the pattern of their first character
        for detector in self._searching:
            if is_long:
                yield
            if isinstance(detector, PatternDetector) and detector.first:
                if detector.first not in starts:
                    starts[detector.first] = detector.starts(self._alone, place, stop)
                spans = detector.spans_from(self._alone, starts[detector.first], stop)
            else:
                spans = detector.spans(self._alone, place, stop)
            for first, last in spans:
                found.append(_candidate(base, detector, first, last))
        if self._numbered:
            yield from self._add_numbers(found, stop)
        self._place, self._later = stop, []
        if stop < self._end:  # a shape may begin here and its value in the next batch
            border = self._base + stop
            self._later = [candidate for candidate in found if candidate[0] >= border]
            found = [candidate for candidate in found if candidate[0] < border]
        found.sort(key=_SORTED_BY)
        return found

    def _add_numbers(self, found: list[Candidate], stop: int) -> Sliced[None]:
        text, end_max = self._alone, min(self._end, stop + NUMBER_CHARS_MAX)
        behind = [detector for detector in self._numbered if detector.may_be_named_behind(text, self._place, end_max)]
        for detector in behind:
            found += _sorted(self._base, detector, detector.spans(text, self._place, stop))
        floor, namers, named_at = self._floor, self._namers, self._named_at
        runs = _DIGITS.finditer(text, max(self._place - CONTEXT_CHARS, floor), end_max)
        run, digit = next(runs, None), 0  # the digits to come, and where the last ones end
        for number, start in enumerate(_NUMBER.finditer(text, self._place, end_max), 1):
            place = start.start()
            if place >= stop:
                break
            if number % _NUMBERS_IN_SLICE == 0:
                yield
            # The words behind the last digit decide. Where they only join, the label may stand before an earlier value of a
            # list, but not with more between than is looked at when a value is judged.
            begin = max(place - CONTEXT_CHARS, floor)
            while run is not None and run.end() <= place:
                digit = run.end()
                run = next(runs, None)
            words = text[max(begin, digit) : place]
            if words[-1:] in _OPENING:
                words = words.rstrip("+(")  # which belong to the number: it may begin there too
            earlier = self._named if place - named_at <= CONTEXT_CHARS else ()
            if digit <= begin == floor and self._left:
                words = _last_words(self._left + words)
            named, is_label = namers.of(words, earlier)
            self._named = named
            if is_label:
                named_at = place
            for detector in named:
                if (not behind or detector not in behind) and (span := detector.span_at(text, place, end_max)):
                    found.append(_candidate(self._base, detector, *span))
                    named_at = max(named_at, span[1])
        self._named_at = named_at


def _last_words(text: str) -> str:
    digit = _UP_TO_DIGIT.match(text)
    return text if digit is None else text[digit.end() :]


def _sorted(base: int, detector: Detector, spans: Iterable[tuple[int, int]]) -> list[Candidate]:
    return [_candidate(base, detector, first, last) for first, last in spans]


def _candidate(base: int, detector: Detector, first: int, last: int) -> Candidate:
    start = base + first
    return start, detector.priority, -last, detector.name, Span(start, base + last, detector)
