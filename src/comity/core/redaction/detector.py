"""What a detector is: where in a text a kind of personal data may stand, and which words around it must or must not be there.

Shape and checksum are judged by `spans`, the surroundings by `fits`; they are apart because the surroundings are judged left
to right, with every value found so far already hidden (see `scan`). An outside recogniser implements `Detector` directly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto
from functools import cache
from typing import Protocol

from comity.core.redaction.behind import BEHIND_HINT, label_behind
from comity.core.redaction.beside import is_called, is_said_of_thing, is_things
from comity.core.redaction.joining import is_joint, is_said
from comity.core.redaction.joints import all_readings, as_words
from comity.core.redaction.shapes import (
    COUNTED,
    HOW_MANY,
    SHAPE_CHARS_MAX,
    TRAILING_WINDOW,
    Context,
    LatePattern,
    compile_all,
    foreign_label_start,
)

_FIRST_CHARS_MAX = 64  # how far right of where it begins a pattern of a first character looks


class Category(StrEnum):
    """Which part of a person's life the data belongs to."""

    FINANCIAL = "financial"
    GOVERNMENT = "government"
    CONTACT = "contact"
    ADDRESS = "address"
    NETWORK = "network"
    SECRET = "secret"  # noqa: S105  a category


class Need(StrEnum):
    """What a shape needs from the words around it before it counts."""

    NOTHING = "nothing"  # the shape or its checksum is proof enough
    NO_FOREIGN_LABEL = "no_foreign_label"  # unless a nearer word says it is an order, a version, an amount, …
    CONTEXT = "context"  # only beside a word that names it, and nothing else nearer


class Before(Enum):
    """What the words before a value say of it."""

    EXCLUDED = auto()  # it is something else
    ENOUGH = auto()  # nothing, and nothing is needed
    OWN_LABEL = auto()
    FOREIGN_LABEL = auto()
    THING = auto()  # the word for a thing stands right before it, which no list knows
    NO_LABEL = auto()


class Detector(Protocol):
    """One kind of personal data.

    `hint` is a pattern, in the syntax of Rust's regex crate, that matches every text and every JSON document in which the
    detector could find anything: it is what lets clean text pass for microseconds. `None` means there is none, and
    every text is then scanned. `spans` must be a pure function of the text and yield values of at most `VALUE_CHARS_MAX`
    characters.
    """

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def category(self) -> Category: ...
    @property
    def priority(self) -> int: ...
    @property
    def hint(self) -> str | None: ...

    def spans(self, text: str, start: int = 0) -> Iterator[tuple[int, int]]:
        """Yield every place at or after `start` that has the shape, overlapping ones too, in order of their start."""

    def fits(self, before: str, after: str) -> bool:
        """Return whether the surroundings let a value count; in `before`, values found earlier are already hidden."""

    def names(self, key: str) -> bool:
        """Return whether a JSON key, as plain words, says that its value is of this kind."""


@dataclass(frozen=True, slots=True, eq=False)  # compared as what it is: of each there is one
class PatternDetector:
    """A detector made of one pattern; its group `value`, where there is one, is the value."""

    name: str
    type: str
    category: Category
    priority: int  # of two overlapping values the lower number wins
    pattern: LatePattern
    hint: str | None
    first: str = ""  # a pattern of the one character with which every match begins, in both cases: no other place is tried
    accept: Callable[[str], int] = len  # how many leading characters of the shape are a valid value; 0 for none
    need: Need = Need.NOTHING
    context: Context | None = None
    word: str = ""  # a part that every label has: a value without it before is not looked at further
    reach: int = 32  # characters allowed between the context word and the value
    not_after: LatePattern | None = None  # what the text before, values in it hidden, may not end with
    not_near: LatePattern | None = None  # words before that say what else it is
    not_beside: LatePattern | None = None  # what the words behind begin with where they say what else it is
    keys: LatePattern | None = None  # what a JSON key must end with for a number under it; as its words if None
    trailing: bool = False  # whether the context word may also follow: "123456789 is my SSN"
    alone: bool = False  # whether a value without a label may not stand right beside the word for a thing
    siblings: bool = False  # whether a value of the same shape that is no personal data makes the next one none either
    shape_chars_max: int = SHAPE_CHARS_MAX  # how far right of where it begins to match the pattern looks
    heads: bool = True  # whether the head of a column may be the context
    is_number: bool = False  # whether the value needs context, and its first word has a digit in it
    judged_by: Callable[[str], PatternDetector] | None = None  # what judges the words around a value, if that depends on it
    group: str | int = field(init=False)  # which of the pattern is the value
    has_gap: bool = field(init=False)  # whether the pattern holds words between label and value, as its group `gap`

    def __post_init__(self) -> None:
        object.__setattr__(self, "group", "value" if "(?P<value>" in self.pattern.pattern else 0)
        object.__setattr__(self, "has_gap", "(?P<gap>" in self.pattern.pattern)
        if self.is_number and self.hint is not None:  # which tells by the label that stands before
            object.__setattr__(self, "hint", f"{self.hint}|{BEHIND_HINT}")

    def prepare(self) -> None:
        """Compile the patterns that are otherwise compiled on first use."""
        compile_all(self.pattern, self.not_after, self.not_near, self.not_beside, self.keys)
        _compiled(self.first)
        if self.context is not None:
            self.context.prepare()

    def spans(self, text: str, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, int]]:
        """Try every start before `stop`, also inside a shape seen already: a find must not depend on where a scan began."""
        stop = len(text) if stop is None else stop
        if self.first:
            yield from self.spans_from(text, self.starts(text, start, stop), stop)
            return
        end_max = stop + self.shape_chars_max
        search, accept, group = self.pattern.compiled.search, self.accept, self.group
        while (match := search(text, start, end_max)) and match.start() < stop:
            begin, end = match.span(group)
            if (length := accept(text[begin:end])) and (not self.has_gap or is_said(match["gap"])):
                yield begin, begin + length
            start = match.start() + 1

    def starts(self, text: str, start: int, stop: int) -> list[int]:
        """Return the places before `stop` at which a match may begin; detectors with the same `first` have the same places."""
        found = [match.start() for match in _compiled(self.first).finditer(text, start, stop + _FIRST_CHARS_MAX)]
        while found and found[-1] >= stop:
            found.pop()
        return found

    def spans_from(self, text: str, starts: list[int], stop: int) -> list[tuple[int, int]]:
        """Return the values whose shapes begin at some places."""
        end_max = stop + self.shape_chars_max
        match_at, accept, group = self.pattern.compiled.match, self.accept, self.group
        found: list[tuple[int, int]] = []
        for place in starts:
            if match := match_at(text, place, end_max):
                begin, end = match.span(group)
                if (length := accept(text[begin:end])) and (not self.has_gap or is_said(match["gap"])):
                    found.append((begin, begin + length))
        return found

    def span_at(self, text: str, place: int, end_max: int) -> tuple[int, int] | None:
        """Return the value that begins at a place, if there is one."""
        match = self.pattern.compiled.match(text, place, end_max)
        length = 0 if match is None else self.accept(match.group())
        return (place, place + length) if length else None

    def may_be_named(self, words: str) -> bool:
        """Return False only if the words before a number do not name its kind."""
        if self.context is None:
            return False
        return any(self.context.end_in(one) >= 0 for one in all_readings(as_words(words)))

    def may_join(self, words: str) -> bool:
        """Return False only if nothing before these words can name the kind of a number behind them."""
        return is_joint(words)

    def fits(self, before: str, after: str) -> bool:
        """The nearest label wins: "SSN on file. Order 123456789" is an order number."""
        return self.fits_after(self.read_before(before), after)

    def read_before(self, before: str) -> Before:
        """Return what the words before a value say of it, whatever the value is and whatever follows."""
        if self.not_after is not None and self.not_after.ends(before):
            return Before.EXCLUDED
        if self.need is Need.NOTHING:
            return Before.ENOUGH
        if "?" in before and HOW_MANY.search(before):
            return Before.EXCLUDED
        words = as_words(before)
        if self.alone and is_things(before, "") and self._nearest_label(words) is not Before.OWN_LABEL:
            return Before.THING if foreign_label_start(words) < 0 else Before.FOREIGN_LABEL
        if self.not_near is not None and self.not_near.compiled.search(words):
            return Before.EXCLUDED
        said = self._nearest_label(words)
        if said is Before.NO_LABEL and self.need is Need.NO_FOREIGN_LABEL and self._has_sibling(before):
            return Before.FOREIGN_LABEL
        return said

    def _has_sibling(self, before: str) -> bool:
        """Return whether a value of the same shape stands in clear shortly before.

        It was judged to be the number of a thing, so a value without a label of its own is one too: "part 03-1234-5678
        superseded by 03-1234-5679".
        """
        is_torn = self.not_after
        return self.siblings and any(is_torn is None or not is_torn.ends(before[:at]) for at, _ in self.spans(before, 1))

    def fits_after(self, said: Before, after: str) -> bool:
        """Return whether a value counts of which `said` stands before it and `after` behind it."""
        if said is Before.EXCLUDED or said is Before.ENOUGH:
            return said is Before.ENOUGH
        if COUNTED.match(after) or (self.not_beside is not None and self.not_beside.compiled.match(after)):
            return False
        if said is Before.THING:
            return is_called(after)
        if said is not Before.NO_LABEL:
            return said is Before.OWN_LABEL
        if self.need is Need.NO_FOREIGN_LABEL:
            return not (self.alone and is_things("", after)) and not is_said_of_thing(after)
        if self.trailing and self._follows(after):
            return True
        label = label_behind(after)
        return bool(label) and self.read_before(label) is Before.OWN_LABEL

    def names(self, key: str) -> bool:
        """Read the key as the words before its value."""
        before = f"{key}: "
        if self.context is None or not any(map(self.context.may_be_in, all_readings(before))):
            return False
        if self.keys is not None and not self.keys.compiled.search(key):
            return False
        if self.not_near is not None and self.not_near.compiled.search(before):
            return False
        return self._nearest_label(before) is Before.OWN_LABEL

    def names_column(self, head: str) -> bool:
        """Return whether the head of a column says that its cells are of this kind."""
        return self.heads and self.need is Need.CONTEXT and self.read_before(f"{head}: ") is Before.OWN_LABEL

    def value_in(self, cell: str, _head: str) -> tuple[int, int] | None:
        """Return where the value stands in a cell of a column that names it."""
        for start, end in self.spans(cell):
            if self.fits_after(Before.OWN_LABEL, cell[end:]):
                return start, end
        return None

    def _nearest_label(self, before: str) -> Before:
        said = self._label_right_before(before)
        if said is Before.NO_LABEL:
            for shorter in all_readings(before)[1:]:
                said = self._label_right_before(shorter)
                if said is not Before.NO_LABEL:
                    break
        return said

    def _label_right_before(self, before: str) -> Before:
        foreign_start = foreign_label_start(before)
        own_end = -1 if self.context is None else self.context.end_in(before)
        if own_end > foreign_start and len(before) - own_end <= self.reach and is_joint(before[own_end:]):
            return Before.OWN_LABEL
        return Before.NO_LABEL if foreign_start < 0 else Before.FOREIGN_LABEL

    def _follows(self, after: str) -> bool:
        window = TRAILING_WINDOW.match(after)
        return self.context is not None and window is not None and self.context.end_in(window.group()) >= 0


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
