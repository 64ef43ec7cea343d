"""Finding personal data in a text: first whether there can be any (`hints`), then which values, left to right."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final, TypeAlias

from msgspec import Struct

from comity.core.document.slices import ONE_GO_BYTES, Sliced, whole
from comity.core.redaction.candidates import Candidates, NamersOf, Span
from comity.core.redaction.columns import cells_of
from comity.core.redaction.detector import Before, Detector, Need, PatternDetector
from comity.core.redaction.hints import Family, families_of, has_digit, relevant
from comity.core.redaction.labelled import LabelledDetector
from comity.core.redaction.normal import Copy, is_odd, is_readable
from comity.core.redaction.shapes import CONTEXT_CHARS, SKELETON_CHARS, WALL, foreign_label_start
from comity.core.redaction.table import DETECTORS

_AFTER_CHARS = 24
# Each round finds values that only another value's digits had kept from being seen. More than two were never seen; the bound
# keeps a scan linear whatever the text.
_ROUNDS_MAX = 6

_TABLE_ROUNDS_MAX = 4
_start_of = attrgetter("start")
_VALUE_CHARS_MIN = 3  # no detector finds a shorter value; between values of a dense text there is mostly less
_JOINT = r"[,;/|\s]{0,3}(?:(?:and|or|&)\s)?"
_LIST_OF_WALLS = re.compile(f"{WALL}(?:{_JOINT}{WALL})+")
_OPEN_LIST = re.compile(rf"{WALL}{_JOINT}\Z")
_JOINT_CHARS = 8
_WINDOW_CHARS_KEPT, _WINDOWS_KEPT, _JUDGEMENTS_KEPT = 512, 1000, 4096
# A slice of work: one detector's candidates that begin in `_SLICE_CHARS` characters, or `_SLICE_ITEMS` candidates judged or
# gaps searched. A pattern looks past the end of its stretch, up to 832 characters far: shorter stretches are mostly read twice.
_SLICE_CHARS, _SLICE_ITEMS = 2048, 16


class Wall(Struct, frozen=True, gc=False):
    """A stretch that is already a token or a mask: it is not looked into, and ends what stands beside it."""

    start: int
    end: int


_CLEAN_MAX, _CLEAN_BYTES_MAX = 512, 2048
_KEYS_MAX, _KEY_CHARS_KEPT = 2048, 128
_BACKSLASH = ord("\\")  # as a number: looking for it does not make Python build a search string


class Scanner:
    """A set of detectors and the one test that says whether any of them could find something.

    `slice_chars` is how much of a long text is searched between two pauses; it changes nothing in what is found.
    """

    __slots__ = (
        "_clean",
        "_columned",
        "_families",
        "_families_without_digit",
        "_hintless",
        "_named",
        "detectors",
        "is_local",
        "slice_chars",
    )

    def __init__(self, detectors: Iterable[Detector], *, slice_chars: int = _SLICE_CHARS) -> None:
        self.slice_chars = slice_chars
        self.detectors: tuple[Detector, ...] = tuple(sorted(detectors, key=lambda detector: detector.priority))
        # Built-in detectors never join words across a stretch of plain prose, so a stream may let that go at once.
        self.is_local = all(isinstance(detector, PatternDetector | LabelledDetector) for detector in self.detectors)
        self._columned = [one for one in self.detectors if isinstance(one, PatternDetector | LabelledDetector)]
        self._families = families_of(self.detectors)
        self._families_without_digit = [family for family in self._families if not family.needs_digit]
        self._hintless = {place for place, detector in enumerate(self.detectors) if detector.hint is None}
        self._clean: set[bytes] = set()  # the latest short documents without a hint: many documents come again
        self._named: dict[str, tuple[Detector, ...]] = {}  # the detectors that JSON keys name, by key

    def prepare(self) -> None:
        """Build the tests and patterns that are otherwise built on first use, for which a running loop has no time."""
        for detector in self._columned:
            detector.prepare()
        for family in self._families:
            family.prepare()

    def may_find(self, text: str) -> bool:
        """Return False only if no detector can find anything in `text`."""
        return not is_readable(text) or self._may_match(text)

    def may_find_in_json(self, raw: bytes) -> bool:
        """Return False only if no detector can find anything in the strings and keys of a JSON document."""
        clean = self._clean
        if raw in clean:
            return False
        # An escaped code point may spell any character of a value. Looking for the one byte first is four times faster.
        if (_BACKSLASH in raw and b"\\u" in raw) or self._may_match(raw.decode()):
            return True
        if len(raw) <= _CLEAN_BYTES_MAX:
            if len(clean) == _CLEAN_MAX:
                clean.clear()
            clean.add(raw)
        return False

    def may_find_in_json_sliced(self, raw: bytes) -> Sliced[bool]:
        """Return what `may_find_in_json` does; in a long document with a pause after each test: 2 µs a kilobyte."""
        if len(raw) <= ONE_GO_BYTES:
            return self.may_find_in_json(raw)
        if _BACKSLASH in raw and b"\\u" in raw:
            return True
        text = raw.decode()
        for family in self._families_for(text):
            if family.test(text):
                return True
            yield
        return bool(self._hintless)

    def _may_match(self, text: str) -> bool:
        """Return whether a hint matches a text, or a detector has none."""
        for family in self._families_for(text):
            if family.test(text):
                return True
        return bool(self._hintless)

    def _families_for(self, text: str) -> list[Family]:
        return self._families if has_digit(text) else self._families_without_digit

    def relevant(self, text: str) -> Sliced[list[Detector]]:
        """Return the detectors that could find something in `text`."""
        if not is_readable(text):
            return list(self.detectors)
        is_long = len(text) > self.slice_chars
        families: list[Family] = []
        for family in self._families_for(text):
            if is_long:
                yield
            if family.test(text):
                families.append(family)
        return (yield from self._members(families, text, is_long=is_long))

    def relevant_in_short(self, text: str) -> list[Detector] | None:
        """Return what `relevant` does, at once, and None where `may_find` returns False."""
        if not is_readable(text):
            return list(self.detectors)
        families = [family for family in self._families_for(text) if family.test(text)]
        return whole(self._members(families, text, is_long=False)) if families or self._hintless else None

    def _members(self, families: list[Family], text: str, *, is_long: bool) -> Sliced[list[Detector]]:
        found = yield from relevant(families, text, is_long=is_long)
        return [self.detectors[place] for place in sorted(found | self._hintless)]

    def named_by(self, key: str) -> tuple[Detector, ...]:
        """Return the detectors that a JSON key, as plain words, names; documents mostly have keys that others had before."""
        named = self._named.get(key)
        if named is None:
            named = tuple(detector for detector in self.detectors if detector.names(key))
            if len(key) <= _KEY_CHARS_KEPT:
                if len(self._named) == _KEYS_MAX:
                    self._named.clear()
                self._named[key] = named
        return named

    def find(self, text: str, walls: Sequence[Wall] = (), *, start: int = 0, left: str = "") -> list[Span]:
        """Return the values that stand in `text` at or after `start`, none overlapping, from left to right.

        `left` is what stands before `start`, with values already found replaced by `WALL`: a JSON key, or the end of the
        text a stream has let go. The characters of `text` before `start` are only looked at, as the left border of a value.
        """
        if not self.may_find(left + text[start:]):
            return []
        return whole(self.find_sliced(text, walls, start=start, left=left))

    def find_sliced(
        self, text: str, walls: Sequence[Wall] = (), *, start: int = 0, left: str = "", memory: Memory | None = None
    ) -> Sliced[list[Span]]:
        """Return what `find` does, of a text in which there may be something, with pauses.

        The texts of one document may share a memory.
        """
        memory = memory or Memory()
        if not is_odd(text):
            return (yield from self._find(text, walls, start, left, memory))
        copy = yield from Copy.of(text)
        placed: list[Wall] = []
        for number, wall in enumerate(walls, 1):
            placed.append(Wall(copy.place(wall.start), copy.place(wall.end)))
            if number % _SLICE_ITEMS == 0:
                yield
        found = yield from self._find(copy.text, placed, copy.place(start), left, memory)
        spans: list[Span] = []
        for number, span in enumerate(found, 1):
            spans.append(Span(copy.original(span.start), copy.original(span.end), span.detector))
            if number % _SLICE_ITEMS == 0:
                yield
        return spans

    def _find(self, text: str, walls: Sequence[Wall], start: int, left: str, memory: Memory) -> Sliced[list[Span]]:
        """Return the values of named columns and all others. A value may take a border between cells with it, so columns are
        read again once values are hidden."""
        cells: list[Span] = []
        if "\n" not in text and "VALUES" not in text and "\\n" not in text:
            return (yield from self._search(text, walls, start, left, memory))
        found: list[Span] = []
        for number in range(_TABLE_ROUNDS_MAX):
            more, things = yield from self._in_columns(text, sorted((*walls, *cells, *found), key=_start_of), start)
            cells += more
            if more or number == 0:
                found = yield from self._search(text, sorted((*walls, *cells), key=_start_of), start, left, memory)
                found = _without(things, found)
            if not cells or not more:
                break
        return sorted((*found, *cells), key=_start_of)

    def _search(self, text: str, walls: Sequence[Wall | Span], start: int, left: str, memory: Memory) -> Sliced[list[Span]]:
        search = _Search(self, text, start, left, memory)
        begin = start
        for number, wall in enumerate(walls, 1):
            yield from search.between(begin, wall.start, _ROUNDS_MAX)
            search.pass_by(wall)
            begin = wall.end
            if number % _SLICE_ITEMS == 0:
                yield
        yield from search.between(begin, len(text), _ROUNDS_MAX)
        return search.found

    def _in_columns(self, text: str, hidden: Sequence[Wall | Span], start: int) -> Sliced[tuple[list[Span], list[Wall]]]:
        """Return the values in the named columns of the tables of a text that are not hidden yet, and the cells of things."""
        namers: dict[str, list[PatternDetector | LabelledDetector]] = {}

        def is_named(head: str) -> bool:
            if head not in namers:
                namers[head] = [one for one in self._columned if one.names_column(head)]
            return bool(namers[head]) or foreign_label_start(head) >= 0

        found: list[Span] = []
        things: list[Wall] = []
        at = 0
        for number, cell in enumerate(cells_of(text, is_named, start), 1):
            if number % _SLICE_ITEMS == 0:
                yield
            if cell is None or cell.end - cell.start < _VALUE_CHARS_MIN:
                continue
            if not namers[cell.head]:
                things.append(Wall(cell.start, cell.end))
                continue
            while at < len(hidden) and hidden[at].end <= cell.start:
                at += 1
            if at < len(hidden) and hidden[at].start < cell.end:
                continue
            for detector in namers[cell.head]:
                if place := detector.value_in(text[cell.start : cell.end], cell.head):
                    found.append(Span(cell.start + place[0], cell.start + place[1], detector))
                    break
        return found, things


class Memory:
    """What one scan of a text or a document has worked out and will need again: the values of a dense one stand alike."""

    __slots__ = ("barren", "before", "latest", "lengths", "namers", "relevant")

    def __init__(self) -> None:
        self.barren: set[tuple[str, str]] = set()  # words before a gap and the gap, in which nothing was found
        self.relevant: dict[str, list[Detector]] = {}
        self.latest: tuple[str, list[Detector]] = "", []  # the text about to be scanned, and what could find something in it
        self.before: dict[tuple[str, str], Before] = {}
        self.lengths: dict[tuple[str, str, str, str], int] = {}
        self.namers: NamersOf = {}


_Place: TypeAlias = tuple[int, str]  # where the last hidden stretch ends, and the words before that


class _Search:
    """One scan of one text: the stretches hidden so far, in order, and the rules for adding to them.

    Every stretch between two hidden ones is searched as if it stood alone, and again after a value was found in it, until
    nothing more comes up. A second redaction sees the same stretches between tokens, so it finds nothing: that, and that
    context is judged with values hidden, is what makes redaction idempotent. It also finds a value that runs into another.
    """

    __slots__ = ("begin", "found", "memory", "scanner", "skeleton", "start", "text")

    def __init__(self, scanner: Scanner, text: str, start: int, left: str, memory: Memory) -> None:
        self.scanner, self.text, self.start, self.memory = scanner, text, start, memory
        self.found: list[Span] = []
        self.begin = start  # where the last hidden stretch ends
        self.skeleton = skeleton(left)  # the words before that, with hidden stretches in them as `WALL`

    def pass_by(self, item: Span | Wall) -> None:
        """Take a stretch as hidden: what stands behind it is read as if there were a `WALL` in its place."""
        words = self.skeleton + self.text[max(self.begin, item.start - SKELETON_CHARS) : item.start]
        opened = _OPEN_LIST.search(words, max(0, len(words) - _JOINT_CHARS))
        self.skeleton = words[-SKELETON_CHARS:] + WALL if opened is None else words[: opened.start() + 1]
        self.begin = item.end

    def between(self, begin: int, end: int, rounds: int) -> Sliced[None]:
        """Hide the values in `text[begin:end]`, whose borders are hidden stretches or the ends of the text."""
        if end - begin < _VALUE_CHARS_MIN or rounds == 0:
            return
        is_gap = end - begin < len(self.text) - self.start
        gap = self.skeleton, self.text[begin:end]
        if is_gap and gap in self.memory.barren:
            return
        detectors = yield from self._relevant("".join(gap), is_gap=is_gap)
        if not detectors:
            return
        found, passed = yield from self._resolve(begin, end, detectors)
        if not found:
            if begin > self.start and end - begin <= _WINDOW_CHARS_KEPT and len(self.memory.barren) < _JUDGEMENTS_KEPT:
                self.memory.barren.add(gap)
            return
        for number, span in enumerate(found, 1):
            if span.start - begin >= _VALUE_CHARS_MIN:
                yield from self.between(begin, span.start, rounds - 1)
            self.found.append(span)
            before, behind = passed[number - 1]
            if before == (self.begin, self.skeleton):  # nothing more was found shortly before it
                self.begin, self.skeleton = behind
            else:
                self.pass_by(span)
            begin = span.end
            if number % _SLICE_ITEMS == 0:
                yield
        if end - begin >= _VALUE_CHARS_MIN:
            yield from self.between(begin, end, rounds - 1)

    def _relevant(self, window: str, *, is_gap: bool) -> Sliced[list[Detector]]:
        """Return the detectors that could find something; what stands between the values of a dense text is often the same."""
        if not is_gap:
            latest, detectors = self.memory.latest
            return detectors if latest == window else (yield from self.scanner.relevant(window))
        kept = self.memory.relevant
        known = kept.get(window)
        if known is None:
            known = (yield from self.scanner.relevant(window)) if self.scanner.may_find(window) else []
            if len(window) <= _WINDOW_CHARS_KEPT and len(kept) < _WINDOWS_KEPT:
                kept[window] = known
        return known

    def _fits(self, detector: Detector, before: str, after: str) -> bool:
        if not isinstance(detector, PatternDetector):
            return detector.fits(before, after)
        if detector.word not in before:
            return False
        kept, key = self.memory.before, (detector.name, before)
        said = kept.get(key)
        if said is None:
            said = detector.read_before(before)
            if len(kept) < _JUDGEMENTS_KEPT:
                kept[key] = said
        return detector.fits_after(said, after)

    def _judge(self, detector: LabelledDetector, value: str, before: str, after: str) -> int:
        kept, key = self.memory.lengths, (detector.name, value, before, after)
        length = kept.get(key)
        if length is None:
            length = detector.judge(value, before, after)
            if len(kept) < _JUDGEMENTS_KEPT:
                kept[key] = length
        return length

    def _resolve(
        self, begin: int, end: int, detectors: Sequence[Detector]
    ) -> Sliced[tuple[list[Span], list[tuple[_Place, _Place]]]]:
        """Return the candidates that fit and win, and the place before and behind each.

        Each is judged with those accepted before it hidden.
        """
        accepted: list[Span] = []
        passed: list[tuple[_Place, _Place]] = []
        current: Span | None = None
        known = self.begin, self.skeleton
        before, before_start = "", -1
        judged = 0
        base = 0 if begin == self.start else begin
        candidates = Candidates(
            self.text[base:end], base, begin, self.skeleton, detectors, self.scanner.slice_chars, self.memory.namers
        )
        while not candidates.is_done:
            for *_, candidate in (yield from candidates.next()):
                judged += 1
                if judged % _SLICE_ITEMS == 0:
                    yield
                if current is not None and candidate.start >= current.end:
                    accepted.append(current)
                    place = self.begin, self.skeleton
                    self.pass_by(current)
                    passed.append((place, (self.begin, self.skeleton)))
                    current = None
                if current is not None and not _beats(candidate, current):
                    continue
                if candidate.start != before_start:
                    before, before_start = self.context(candidate.start), candidate.start
                after = self.text[candidate.end : min(end, candidate.end + _AFTER_CHARS)]
                detector = candidate.detector
                if isinstance(detector, LabelledDetector):
                    if length := self._judge(detector, self.text[candidate.start : candidate.end], before, after):
                        current = Span(candidate.start, candidate.start + length, detector)
                elif self._fits(detector, before, after):
                    current = candidate
            if not candidates.is_done:
                yield
        if current is not None:
            accepted.append(current)
            place = self.begin, self.skeleton
            self.pass_by(current)
            passed.append((place, (self.begin, self.skeleton)))
        self.begin, self.skeleton = known  # they are hidden for good only once the gaps before them have been searched again
        return accepted, passed

    def context(self, end: int) -> str:
        """Return the words before `end` that may name a value there: a list of values counts as one."""
        words = self.text[max(self.begin, end - CONTEXT_CHARS) : end]
        return words if len(words) == CONTEXT_CHARS else (self.skeleton + words)[-CONTEXT_CHARS:]


def _without(things: Sequence[Wall], found: list[Span]) -> list[Span]:
    """Return the values that are not the number of a thing, which the head of its column says: "sku" over 100-22-4512."""
    kept: list[Span] = []
    at = 0
    for span in found:
        while at < len(things) and things[at].end <= span.start:
            at += 1
        detector = span.detector
        needs_no_label = isinstance(detector, PatternDetector) and detector.need is Need.NO_FOREIGN_LABEL
        if not (needs_no_label and at < len(things) and things[at].start <= span.start):
            kept.append(span)
    return kept


def skeleton(left: str) -> str:
    """Return the end of a text whose values are hidden, with a list of them as one: it may name what follows."""
    return (_LIST_OF_WALLS.sub(WALL, left) if left.count(WALL) > 1 else left)[-SKELETON_CHARS:]


def _beats(challenger: Span, holder: Span) -> bool:
    """Priority first, then length; the holder started earlier and keeps the rest."""
    if challenger.detector.priority != holder.detector.priority:
        return challenger.detector.priority < holder.detector.priority
    return challenger.end - challenger.start > holder.end - holder.start


DEFAULT_SCANNER: Final = Scanner(DETECTORS)
