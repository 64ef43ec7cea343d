"""Finding personal data in a text: first whether there can be any (`hints`), then which values, left to right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final

from comity.core.document.slices import ONE_GO_BYTES, Sliced, whole
from comity.core.redaction.candidates import Span
from comity.core.redaction.columns import cells_of
from comity.core.redaction.detector import Detector, Need, PatternDetector
from comity.core.redaction.hints import Family, families_of, has_digit, relevant, relevant_sliced
from comity.core.redaction.labelled import LabelledDetector
from comity.core.redaction.normal import Copy, is_odd, is_readable
from comity.core.redaction.search import SLICE_ITEMS, VALUE_CHARS_MIN, Memory, Search, Wall
from comity.core.redaction.shapes import foreign_label_start
from comity.core.redaction.table import DETECTORS

_TABLE_ROUNDS_MAX = 4
_start_of = attrgetter("start")
# A slice of work: one detector's candidates that begin in so many characters. A pattern looks past the end of its stretch, up
# to 832 characters far: shorter stretches are mostly read twice.
_SLICE_CHARS = 2048
# A value of several kinds: patterns inside of rules, and the automata of hints, are built by the first text that needs them.
_SAMPLE = (
    "tel 2345678, mail ann@example.com, SSN 219-09-9999, born 1984-03-12, card 4111 1111 1111 1111, password: hunter2!, my"
    " password is hunter2! and 0171 2345678 is my phone, username: ada_1, user: ada, 12 Elm Street, 10115 Berlin, passport"
    " X1234567, IBAN DE02120300000000202051, PESEL 44051401359, 203.0.113.42, account number 123456789, a n n @ b . c o,"
    " seen at 10.1.2.3, fd00::a:1:2 and 2001:db8::a:1,"
    " call 4165550123\nuser,password\nada,hunter2!\n"
)
_CLEAN_MAX, _CLEAN_BYTES_MAX = 512, 2048
_KEYS_MAX, _KEY_CHARS_KEPT = 2048, 1024
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
        "_is_prepared",
        "_named",
        "_naming",
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
        self._naming = [one for one in self.detectors if not isinstance(one, PatternDetector) or one.context is not None]
        self._families = families_of(self.detectors)
        self._families_without_digit = [family for family in self._families if not family.needs_digit]
        self._hintless = {place for place, detector in enumerate(self.detectors) if detector.hint is None}
        self._clean: set[bytes] = set()  # the latest short documents without a hint: many documents come again
        self._named: dict[str, tuple[Detector, ...]] = {}  # the detectors that JSON keys name, by key
        self._is_prepared = False

    def prepare(self) -> None:
        """Build the tests and patterns that are otherwise built on first use, for which a running loop has no time.

        Only the first call does anything: all nodes of a process share a scanner, and the search takes 12 ms each time.
        """
        if self._is_prepared:
            return
        for detector in self._columned:
            detector.prepare()
        for family in self._families:
            family.prepare()
        if self.is_local:  # an outside recogniser may take long
            self.find(_SAMPLE)
        self._is_prepared = True

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

    def relevant(self, text: str) -> Sliced[Sequence[Detector]]:
        """Return the detectors that could find something in `text`, with pauses if it is long."""
        if len(text) <= self.slice_chars or not is_readable(text):
            return self.relevant_in_short(text) or []
        families: list[Family] = []
        for family in self._families_for(text):
            yield
            if family.test(text):
                families.append(family)
        return self._at((yield from relevant_sliced(families, text)))

    def relevant_in_short(self, text: str) -> Sequence[Detector] | None:
        """Return what `relevant` does, at once, and None where `may_find` returns False."""
        if not is_readable(text):
            return self.detectors
        families = [family for family in self._families_for(text) if family.test(text)]
        return self._at(relevant(families, text)) if families or self._hintless else None

    def _at(self, places: set[int]) -> list[Detector]:
        return [self.detectors[place] for place in sorted(places | self._hintless)]

    def named_by(self, key: str) -> tuple[Detector, ...]:
        """Return the detectors that a JSON key, as plain words, names; documents mostly have keys that others had before."""
        named = self._named.get(key)
        if named is None:
            named = tuple(detector for detector in self._naming if detector.names(key))
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
            if number % SLICE_ITEMS == 0:
                yield
        found = yield from self._find(copy.text, placed, copy.place(start), left, memory)
        spans: list[Span] = []
        for number, span in enumerate(found, 1):
            spans.append(Span(copy.original(span.start), copy.original(span.end), span.detector))
            if number % SLICE_ITEMS == 0:
                yield
        return spans

    def find_short(self, text: str, walls: Sequence[Wall], left: str, memory: Memory) -> list[Span]:
        """Return what `find_sliced` does of a text of at most `SHORT_CHARS` characters, at once."""
        if walls or len(text) > self.slice_chars or _may_hold_table(text) or is_odd(text):
            return whole(self.find_sliced(text, walls, left=left, memory=memory))
        search = Search(self, text, 0, left, memory)
        search.between_short(0, len(text))
        return search.found

    def _find(self, text: str, walls: Sequence[Wall], start: int, left: str, memory: Memory) -> Sliced[list[Span]]:
        """Return the values of named columns and all others. A value may take a border between cells with it, so columns are
        read again once values are hidden."""
        cells: list[Span] = []
        if not _may_hold_table(text):
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
        search = Search(self, text, start, left, memory)
        begin = start
        for number, wall in enumerate(walls, 1):
            if wall.start - begin >= VALUE_CHARS_MIN:
                yield from search.between(begin, wall.start)
            search.pass_by(wall)
            begin = wall.end
            if number % SLICE_ITEMS == 0:
                yield
        yield from search.between(begin, len(text))
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
            if number % SLICE_ITEMS == 0:
                yield
            if cell is None or cell.end - cell.start < VALUE_CHARS_MIN:
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


def _may_hold_table(text: str) -> bool:
    return "\n" in text or "VALUES" in text or "\\n" in text


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


DEFAULT_SCANNER: Final = Scanner(DETECTORS)
