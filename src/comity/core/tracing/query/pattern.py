"""RE2 pattern text to a tree, refusing what RE2 refuses."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, replace
from enum import StrEnum

PATTERN_CHARACTERS_MAX = 1_000
REPEAT_MAX = 1_000
NESTING_MAX = 50

_LAST = 0x10FFFF
_Ranges = tuple[tuple[int, int], ...]
_DIGIT: _Ranges = ((48, 57),)
_WORD: _Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE: _Ranges = ((9, 10), (12, 13), (32, 32))
_PERL = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_POSIX: dict[str, _Ranges] = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": _DIGIT,
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": _WORD,
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}
_CONTROL = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_CATEGORIES = frozenset(
    "C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs".split()  # noqa: SIM905
)
_HEX = frozenset("0123456789abcdefABCDEF")
_NAME_CHARACTERS = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")


class PatternError(ValueError):
    """The text is not a pattern RE2 accepts, or asks for more than this engine gives."""


class Assertion(StrEnum):
    """Places that hold no character."""

    TEXT_START = "\\A"
    TEXT_END = "\\z"
    LINE_START = "(?m)^"
    LINE_END = "(?m)$"
    WORD_BOUNDARY = "\\b"
    NO_WORD_BOUNDARY = "\\B"


@dataclass(frozen=True, slots=True)
class Characters:
    """One character out of ranges and Unicode categories (a name, and whether it is turned round)."""

    ranges: _Ranges = ()
    categories: tuple[tuple[str, bool], ...] = ()
    negated: bool = False
    fold: bool = False

    def in_category(self, character: str) -> bool:
        if not self.categories:
            return False
        category = unicodedata.category(character)
        return any(category.startswith(name) is not inverted for name, inverted in self.categories)


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other; no parts is the empty text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Any of the branches."""

    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """Between `least` and `most` times; no `most` is without end."""

    node: Node
    least: int
    most: int | None


Node = Characters | Assertion | Sequence | Choice | Repeat


@dataclass(frozen=True, slots=True)
class _Flags:
    fold: bool = False
    lines: bool = False
    dot_all: bool = True


def parse_pattern(pattern: str) -> Node:
    """Return the tree of a pattern, or raise `PatternError`."""
    if len(pattern) > PATTERN_CHARACTERS_MAX:
        raise PatternError(f"a pattern has at most {PATTERN_CHARACTERS_MAX} characters")
    reader = _Reader(pattern)
    node = reader.choice(_Flags(), 0)
    if reader.at < len(pattern):
        raise PatternError("unexpected )")
    return node


class _Reader:
    __slots__ = ("at", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def sees(self, start: str) -> bool:
        return self.text.startswith(start, self.at)

    def take(self) -> str:
        if self.at >= len(self.text):
            raise PatternError("the pattern ends too early")
        self.at += 1
        return self.text[self.at - 1]

    def choice(self, flags: _Flags, depth: int) -> Node:
        if depth > NESTING_MAX:
            raise PatternError(f"groups nest at most {NESTING_MAX} deep")
        branches: list[Node] = []
        parts: list[Node] = []
        while self.at < len(self.text) and not self.sees(")"):
            if self.sees("|"):
                self.at += 1
                branches.append(Sequence(tuple(parts)))
                parts = []
            elif (switched := self._switch(flags)) is not None:
                flags = switched
            elif self.sees("\\Q"):
                parts.extend(self._quoted(flags))
            else:
                parts.append(self._repeated(self._atom(flags, depth)))
        branches.append(Sequence(tuple(parts)))
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def _switch(self, flags: _Flags) -> _Flags | None:
        """Take `(?flags)`, which changes the rest of the group it stands in; leave anything else alone."""
        if not self.sees("(?"):
            return None
        end = self.at + 2
        while end < len(self.text) and self.text[end] in "imsU-":
            end += 1
        if self.text[end : end + 1] != ")" or end == self.at + 2:
            return None
        switched = _switched(flags, self.text[self.at + 2 : end])
        self.at = end + 1
        return switched

    def _quoted(self, flags: _Flags) -> list[Node]:
        end = self.text.find("\\E", self.at + 2)
        body = self.text[self.at + 2 : end if end >= 0 else len(self.text)]
        self.at = end + 2 if end >= 0 else len(self.text)
        literals = [_literal(ord(character), flags) for character in body]
        return [*literals[:-1], self._repeated(literals[-1])] if literals else []

    def _repeated(self, node: Node) -> Node:
        repeated = False
        while self.at < len(self.text):
            bounds = self._bounds()
            if bounds is None:
                break
            if repeated:
                raise PatternError("a repetition cannot be repeated")
            repeated = True
            if self.sees("?"):
                self.at += 1  # lazy: the same texts match
            node = Repeat(node, *bounds)
        return node

    def _bounds(self) -> tuple[int, int | None] | None:
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        character = self.text[self.at]
        if character in simple:
            self.at += 1
            return simple[character]
        if character != "{":
            return None
        end = self.text.find("}", self.at)
        low, comma, high = self.text[self.at + 1 : max(end, 0)].partition(",")
        if not _is_number(low) or (high and not _is_number(high)):
            return None  # as in RE2, a brace that bounds nothing is itself
        least = int(low)
        most = (int(high) if high else None) if comma else least
        if least > REPEAT_MAX or (most is not None and not least <= most <= REPEAT_MAX):
            raise PatternError(f"{{{low}{comma}{high}}} is no repeat count up to {REPEAT_MAX}")
        self.at = end + 1
        return least, most

    def _atom(self, flags: _Flags, depth: int) -> Node:
        character = self.take()
        match character:
            case "(":
                return self._group(flags, depth)
            case "[":
                return self._class(flags)
            case ".":
                return Characters(((0, _LAST),)) if flags.dot_all else Characters(((10, 10),), negated=True)
            case "^":
                return Assertion.LINE_START if flags.lines else Assertion.TEXT_START
            case "$":
                return Assertion.LINE_END if flags.lines else Assertion.TEXT_END
            case "\\":
                return self._escape(flags)
            case "*" | "+" | "?":
                raise PatternError(f"{character} repeats nothing")
        return _literal(ord(character), flags)

    def _group(self, flags: _Flags, depth: int) -> Node:
        if self.sees("?"):
            self.at += 1
            flags = self._group_flags(flags)
        node = self.choice(flags, depth + 1)
        if not self.sees(")"):
            raise PatternError("a group is not closed")
        self.at += 1
        return node

    def _group_flags(self, flags: _Flags) -> _Flags:
        for opening in ("P<", "<"):
            if self.sees(opening):
                end = self.text.find(">", self.at)
                name = self.text[self.at + len(opening) : max(end, 0)]
                if not name or not _NAME_CHARACTERS.issuperset(name):
                    raise PatternError("a group name is made of letters, digits and _")
                self.at = end + 1
                return flags
        end = self.text.find(":", self.at)
        words = self.text[self.at : max(end, self.at)]
        if end < 0 or not set(words) <= set("imsU-"):
            raise PatternError("RE2 has no such group")
        self.at = end + 1
        return _switched(flags, words)

    def _escape(self, flags: _Flags) -> Node:
        character = self.take()
        assertions = {
            "A": Assertion.TEXT_START,
            "z": Assertion.TEXT_END,
            "b": Assertion.WORD_BOUNDARY,
            "B": Assertion.NO_WORD_BOUNDARY,
        }
        if character in assertions:
            return assertions[character]
        found = self._class_escape(character)
        if isinstance(found, int):
            return _literal(found, flags)
        return replace(found, fold=flags.fold)

    def _class_escape(self, character: str) -> int | Characters:
        """Return what an escape stands for inside or outside a class: one character, or a set of them."""
        if ranges := _PERL.get(character.lower()):
            return Characters(ranges if character.islower() else _complement(ranges))
        if character in "pP":
            return self._category(inverted=character == "P")
        if character in _CONTROL:
            return _CONTROL[character]
        if character == "x":
            return self._hexadecimal()
        if character in "01234567":
            return self._octal(character)
        if character.isascii() and not character.isalnum():
            return ord(character)
        raise PatternError(f"\\{character} is not an escape")

    def _category(self, *, inverted: bool) -> Characters:
        name = self.take()
        if name == "{":
            end = self.text.find("}", self.at)
            if end < 0:
                raise PatternError("a category is not closed")
            name = self.text[self.at : end]
            self.at = end + 1
        if name.startswith("^"):
            name, inverted = name[1:], not inverted
        if name == "Any":
            return Characters() if inverted else Characters(((0, _LAST),))
        if name not in _CATEGORIES:
            raise PatternError(f"\\p{{{name}}} is not a Unicode category known here")
        return Characters(categories=((name, inverted),))

    def _hexadecimal(self) -> int:
        if self.sees("{"):
            end = self.text.find("}", self.at)
            digits = self.text[self.at + 1 : max(end, 0)]
            self.at = end + 1
        else:
            digits = self.text[self.at : self.at + 2]
            self.at += 2
            if len(digits) < 2:
                raise PatternError("\\x takes two digits")
        if not 0 < len(digits) <= 8 or not _HEX.issuperset(digits) or int(digits, 16) > _LAST:
            raise PatternError("\\x takes hexadecimal digits")
        return int(digits, 16)

    def _octal(self, first: str) -> int:
        digits = first
        while len(digits) < 3 and self.at < len(self.text) and self.text[self.at] in "01234567":
            digits += self.take()
        if first != "0" and len(digits) == 1:
            raise PatternError("RE2 has no backreferences")
        return int(digits, 8)

    def _class(self, flags: _Flags) -> Characters:
        negated = self.sees("^")
        self.at += negated
        ranges: list[tuple[int, int]] = []
        categories: list[tuple[str, bool]] = []
        first = True
        while first or not self.sees("]"):
            first = False
            found = self._class_item()
            if isinstance(found, Characters):
                ranges.extend(found.ranges)
                categories.extend(found.categories)
                continue
            last = found
            if self.sees("-") and not self.sees("-]"):
                self.at += 1
                upper = self._class_item()
                if not isinstance(upper, int) or upper < found:
                    raise PatternError("a range runs from a lower character to a higher one")
                last = upper
            ranges.append((found, last))
        self.at += 1
        return Characters(_merged(ranges), tuple(categories), negated, flags.fold)

    def _class_item(self) -> int | Characters:
        if self.sees("[:"):
            end = self.text.find(":]", self.at)
            name = self.text[self.at + 2 : max(end, 0)]
            inverted = name.startswith("^")
            if end >= 0:
                ranges = _POSIX.get(name.removeprefix("^"))
                if ranges is None:
                    raise PatternError(f"[:{name}:] is not a class")
                self.at = end + 2
                return Characters(_complement(ranges) if inverted else ranges)
        if self.at >= len(self.text):
            raise PatternError("a class is not closed")
        character = self.take()
        return self._class_escape(self.take()) if character == "\\" else ord(character)


def _literal(code: int, flags: _Flags) -> Characters:
    return Characters(((code, code),), fold=flags.fold)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 6


def _switched(flags: _Flags, words: str) -> _Flags:
    on, dash, off = words.partition("-")
    if "-" in off or (dash and not off):
        raise PatternError(f"(?{words}) sets no flags")
    for letters, value in ((on, True), (off, False)):
        if "i" in letters:
            flags = replace(flags, fold=value)
        if "m" in letters:
            flags = replace(flags, lines=value)
        if "s" in letters:
            flags = replace(flags, dot_all=value)
    return flags


def _complement(ranges: _Ranges) -> _Ranges:
    gaps, lowest = [], 0
    for low, high in ranges:
        if low > lowest:
            gaps.append((lowest, low - 1))
        lowest = high + 1
    return (*gaps, (lowest, _LAST)) if lowest <= _LAST else tuple(gaps)


def _merged(ranges: list[tuple[int, int]]) -> _Ranges:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return tuple(merged)
