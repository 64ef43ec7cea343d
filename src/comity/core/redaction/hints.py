"""The quick test: whether a text can hold personal data at all, and of which kinds.

It is asked of every request and reply, so it must cost next to nothing. The hints of all detectors are a few patterns for the
linear-time regex engine of jsonschema-rs; the standard library needs as long for a single character class, and cannot promise
linear time.

The engine builds the states of a pattern as it reads texts. A hint with a gap ("a label, anything, a digit") stays half
matched to the end of a text once its label was seen, so in one pattern each such label multiplies the states of all other
hints: no process comes to an end of building them. Hints are therefore put into families that multiply little, each a pattern
of its own, and within a family all labels of one value share a gap. See ADR 156.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Final, TypeAlias

from msgspec import Struct

from comity.core.document.slices import Sliced
from comity.core.redaction.detector import Category, Detector
from comity.core.redaction.normal import ODD_HINT
from comity.core.redaction.shapes import HINT_GAP, alternatives_of, compile_test
from comity.core.redaction.split import SPLIT_HINT

Test: TypeAlias = Callable[[str], bool]

_HINTS_IN_GROUP: Final = 5  # tested together before each is tested alone: in a text mostly none of them matches
_MASK_HINT: Final = r"\*{4}[A-Za-z0-9@]"  # a mask ends a run of digits that hints would take for one
_ONLY_DIGITS: Final = re.compile(r"(?:\(\?:)?\[0-9\](?:\{[2-4]\})?\)?")
_DIGIT_FIRST: Final = re.compile(r"(?:\(\?:)*\[(?:0-9|2-6)\]")
has_digit: Final = compile_test("[0-9]")

_SHAPES, _WORDS, _DIGITS, _REST = "shapes", "words", "digits", "rest"
_NUMBERED: Final = frozenset({Category.CONTACT, Category.FINANCIAL})  # whose numbers behind a gap are families of their own


class Hint(Struct, frozen=True, gc=False):
    """One alternative of the pattern that matches wherever some detectors could find something."""

    pattern: str
    places: tuple[int, ...]  # of its detectors, among all


_Group: TypeAlias = tuple[Test, list[tuple[Test, tuple[int, ...]]]]


class Family:
    """Hints that are tested together; their tests are made on first use."""

    def __init__(self, name: str, hints: list[Hint]) -> None:
        self.needs_digit = name == _DIGITS or name in _NUMBERED  # no hint of this family matches a text without a digit
        self.patterns = [
            *_joined(hint.pattern for hint in hints),
            *((_MASK_HINT, ODD_HINT, SPLIT_HINT) if name == _SHAPES else ()),
        ]
        self.members = hints

    def prepare(self) -> None:
        """Make the tests that are otherwise made on first use."""
        _ = self.test, self.groups

    @cached_property
    def test(self) -> Test:
        """The test that says whether one of the hints matches a text."""
        return compile_test(_any_of(self.patterns))

    @cached_property
    def groups(self) -> list[_Group]:
        """The hints in small groups, each with a test for all of it."""
        groups: list[_Group] = []
        for first in range(0, len(self.members), _HINTS_IN_GROUP):
            members = self.members[first : first + _HINTS_IN_GROUP]
            alone = [(compile_test(one.pattern), one.places) for one in members]
            groups.append((compile_test(_any_of(_joined(one.pattern for one in members))), alone))
        return groups


def relevant(families: Iterable[Family], text: str) -> set[int]:
    """Return the places of the detectors of some families whose hints match a text."""
    found: set[int] = set()
    for family in families:
        for test, members in family.groups:
            if test(text):
                for test_one, places in members:
                    if test_one(text):
                        found.update(places)
    return found


def relevant_sliced(families: Iterable[Family], text: str) -> Sliced[set[int]]:
    """Return what `relevant` does, with a pause before each test."""
    found: set[int] = set()
    for family in families:
        for test, members in family.groups:
            yield
            for test_one, places in members if test(text) else ():
                yield
                if test_one(text):
                    found.update(places)
    return found


def families_of(detectors: Iterable[Detector]) -> list[Family]:
    """Return the hints of all detectors in families."""
    # By family and pattern, which detectors may share. Shapes also hold masks, odd characters and values in parts, whatever the
    # detectors.
    found: dict[str, dict[str, list[int]]] = {_SHAPES: {}}
    for place, detector in enumerate(detectors):
        for pattern in _alternatives(detector.hint or ""):
            found.setdefault(_family(pattern, detector), {}).setdefault(pattern, []).append(place)
    families = [Family(name, [Hint(one, tuple(places)) for one, places in hints.items()]) for name, hints in found.items()]
    return sorted(families, key=lambda family: family.needs_digit)  # those that every text has to pass come first


def _family(pattern: str, detector: Detector) -> str:
    """Return the name of the family of a hint: hints that are often half matched at the same time are in different families."""
    _, gap, value = pattern.partition(HINT_GAP)
    if not gap:
        return _WORDS if "(?i:" in pattern else _SHAPES
    if _ONLY_DIGITS.fullmatch(value):
        return _DIGITS
    is_number = _DIGIT_FIRST.match(value) and detector.category in _NUMBERED
    return detector.category if is_number else _REST


def _alternatives(hint: str) -> Iterator[str]:
    """Yield a hint whole, or its outermost alternatives if one of them has a gap."""
    if HINT_GAP not in hint:
        if hint:
            yield hint
        return
    yield from alternatives_of(hint)


def _joined(patterns: Iterable[str]) -> list[str]:
    """Return patterns with all labels of one value as one pattern, so that they share a gap."""
    labels: dict[str, dict[str, None]] = {}
    others: dict[str, None] = {}
    for pattern in patterns:
        label, gap, value = pattern.partition(HINT_GAP)
        if gap:
            labels.setdefault(value, {})[label] = None
        else:
            others[pattern] = None
    return [*others, *(f"(?:{_any_of(before)}){HINT_GAP}(?:{value})" for value, before in labels.items())]


def _any_of(patterns: Iterable[str]) -> str:
    return "|".join(f"(?:{pattern})" for pattern in patterns)
