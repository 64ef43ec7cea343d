"""Regular expressions as Go and Tempo understand them: RE2 syntax, anchored at both ends, in linear time.

Python's `re` backtracks, so one attribute value could hold a query for ever, and its classes differ from RE2's (`\\d` is any
Unicode digit, `.` stops at a line end). This is a small automaton instead: the pattern becomes states, and the sets of
states a text passes through are remembered, so a text costs one dictionary look-up per character once it is warm.

As in Tempo, `.` matches a line end too. Unicode categories (`\\p{Lu}`) are known, scripts (`\\p{Greek}`) are not.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Self

from comity.core.tracing.query.pattern import Assertion, Characters, Node, PatternError, Repeat, Sequence, parse_pattern

STATES_MAX = 10_000
TRANSITIONS_MAX = 50_000
REMEMBERED_TEXTS_MAX = 4_096
REMEMBERED_CHARS_MAX = 1_000_000  # of those texts
CHARACTERS_KEPT_MAX = 16  # whose ways through all states are remembered
REMEMBERED_BYTES_MAX = 16_000_000  # of all sets together
ALIKE_MOST = 8  # states to which a character leads, for its state to be moved together with others
STATES_PER_STEP = 8  # visited in the time of one step of an expression

_WORD_CHARACTERS = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")
_ACCEPT = 0
_ACCEPTED = 1 << _ACCEPT
_SET_BYTES = 200  # that a set takes beside its states
_Shifts = tuple[tuple[int, int], ...]  # to the left, then to the right
_Step = tuple[Characters, int] | tuple[Assertion, int] | tuple[int, ...]
Spend = Callable[[int], None]


class Regex:
    """A compiled pattern; raises `PatternError`. `matches` depends on the text alone, the memory only makes it fast.

    One query compiles its own and keeps it to itself: the memory is not shared between threads.
    """

    __slots__ = (
        "_accepting", "_asserting", "_bytes", "_cached", "_chars", "_classes", "_closed", "_closures", "_ids", "_known",
        "_moves", "_sets", "_spend", "_start", "_steps", "_taking", "_texts", "pattern",
    )  # fmt: skip

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        node = parse_pattern(pattern)
        self._steps: list[_Step] = [()]  # state 0 accepts
        self._start = self._emit(node, _ACCEPT)
        # A set of states is a number whose bits are the states: moving and joining sets takes no step per state.
        self._asserting = sum(1 << at for at, step in enumerate(self._steps) if step and isinstance(step[0], Assertion))
        self._classes = self._takers()
        self._moves: tuple[list[tuple[int, _Shifts]], int] | None = None  # made with the first text, see `_ways`
        self._begin(None)

    def _begin(self, spend: Spend | None) -> None:
        self._spend = spend
        self._texts: dict[str, bool] = {}
        self._ids: dict[int, int] = {}
        self._sets: list[int] = []
        self._accepting: list[bool] = []
        self._known: list[dict[str, int]] = []
        self._cached = self._chars = self._bytes = 0
        self._closures: dict[int, int] = {}  # what a state leads to without a character
        self._closed = 0  # bytes of them
        self._taking: dict[str, int] = {}  # which states take a character; of few characters at a time

    def metered(self, spend: Spend) -> Self:
        """Return the same pattern with an empty memory, which calls `spend` with the steps of what is not remembered yet.

        What it spends depends on the pattern and the texts alone. `spend` may raise.
        """
        spend(len(self._steps))
        made = object.__new__(type(self))
        made.pattern, made._steps, made._start = self.pattern, self._steps, self._start
        made._asserting, made._classes, made._moves = self._asserting, self._classes, self._ways()
        made._begin(spend)
        return made

    def matches(self, text: str) -> bool:
        """Return whether the whole text matches."""
        found = self._texts.get(text)
        if found is None:
            found = self._walk(text) if self._asserting else self._run(text)
            self._chars += len(text)
            if len(self._texts) >= REMEMBERED_TEXTS_MAX or self._chars > REMEMBERED_CHARS_MAX:
                self._texts.clear()
                self._chars = len(text)
            self._texts[text] = found
        return found

    # building, from the end backwards: each piece gets the state that follows it

    def _state(self, step: _Step) -> int:
        if len(self._steps) >= STATES_MAX:
            raise PatternError("the pattern is too large")
        self._steps.append(step)
        return len(self._steps) - 1

    def _emit(self, node: Node, following: int) -> int:
        match node:
            case Characters():
                return self._state((node, following))
            case Assertion():
                return self._state((node, following))
            case Sequence(parts):
                for part in reversed(parts):
                    following = self._emit(part, following)
                return following
            case Repeat():
                return self._emit_repeat(node, following)
        return self._state(tuple(self._emit(branch, following) for branch in node.branches))

    def _emit_repeat(self, node: Repeat, following: int) -> int:
        if node.most is None:
            loop = self._state(())
            self._steps[loop] = (self._emit(node.node, loop), following)
            start = loop
        else:
            start = following
            for _ in range(node.most - node.least):
                start = self._state((self._emit(node.node, start), following))
        for _ in range(node.least):
            start = self._emit(node.node, start)
        return start

    # matching without assertions: sets of states, remembered

    def _closure(self, states: int, most: int | None = None) -> int:
        """Return a set of states with those it leads to without a character; it may stop once they are more than `most`."""
        todo, seen, count = list(members(states)), states, 0
        visited = len(todo)
        while todo and (most is None or count <= most):
            for state in _free(self._steps[todo.pop()]):
                if not seen >> state & 1:
                    seen |= 1 << state
                    todo.append(state)
                    count += 1
        if self._spend is not None and most is None:
            self._spend((visited + count) // STATES_PER_STEP)
        return seen

    def _numbered(self, states: int) -> int:
        found = self._ids.get(states)
        if found is None:
            found = self._ids[states] = len(self._sets)
            self._sets.append(states)
            self._bytes += _SET_BYTES + states.bit_length() // 8
            self._accepting.append(bool(states & _ACCEPTED))
            self._known.append({})
        return found

    def _run(self, text: str) -> bool:
        current = self._numbered(self._closure(1 << self._start))
        for character in text:
            following = self._known[current].get(character)
            if following is None:
                reached = self._stepped(self._sets[current], character)
                if self._cached > TRANSITIONS_MAX or self._bytes > REMEMBERED_BYTES_MAX:
                    self._forget()
                    following = self._numbered(reached)
                else:
                    following = self._known[current][character] = self._numbered(reached)
                    self._cached += 1
            current = following
        return self._accepting[current]

    def _forget(self) -> None:
        self._cached = self._bytes = 0
        for memory in (self._ids, self._sets, self._accepting, self._known):
            memory.clear()

    def _stepped(self, states: int, character: str) -> int:
        """Return the states after a character, with those that they lead to without one."""
        taking = self._taking.get(character)
        if taking is None:
            if len(self._taking) >= CHARACTERS_KEPT_MAX:
                self._taking.clear()
            taking = self._taking[character] = sum(states for one, states in self._classes if has(one, character))
            if self._spend is not None:
                self._spend(len(self._classes) // 2)
        taken = states & taking
        if not taken:
            return 0
        alike, wide = self._ways()
        reached = 0
        if taken.bit_count() < len(alike):
            wide = taken
        else:
            for group, shifts in alike:
                if at := taken & group:
                    for left, right in shifts:
                        reached |= at << left >> right
        if self._spend is not None:
            self._spend(1 + ((taken & wide).bit_count() + len(alike)) // STATES_PER_STEP + len(self._steps) // 1024)
        for state in members(taken & wide):
            following = self._steps[state][1]
            assert isinstance(following, int)
            if not reached >> following & 1:  # what a state in the set leads to is in it already
                reached |= self._closure_of(following)
        return reached

    def _takers(self) -> list[tuple[Characters, int]]:
        """Return each set of characters that the pattern has, with the states that take one of them."""
        takers: dict[Characters, bytearray] = {}
        for state, step in enumerate(self._steps):
            if step and isinstance(step[0], Characters):
                takers.setdefault(step[0], bytearray(len(self._steps) // 8 + 1))[state >> 3] |= 1 << (state & 7)
        return [(characters, int.from_bytes(states, "little")) for characters, states in takers.items()]

    def _ways(self) -> tuple[list[tuple[int, _Shifts]], int]:
        """Return how states that take a character go on: groups that go on alike, and the set of those that go on to many.

        The copies of a repeated piece go on alike, each seen from its own number. So all of them are moved by a few shifts of
        the whole set, however many copies there are.
        """
        if self._moves is None:
            groups: dict[_Shifts, int] = {}
            wide = 0
            for state, step in enumerate(self._steps):
                if step and isinstance(step[0], Characters):
                    assert isinstance(step[1], int)
                    reached = self._closure(1 << step[1], ALIKE_MOST)
                    if reached.bit_count() > ALIKE_MOST:
                        wide |= 1 << state
                        continue
                    shifts = tuple((max(to - state, 0), max(state - to, 0)) for to in members(reached))
                    groups[shifts] = groups.get(shifts, 0) | 1 << state
            self._moves = [(group, shifts) for shifts, group in groups.items()], wide
        return self._moves

    def _closure_of(self, state: int) -> int:
        found = self._closures.get(state)
        if found is None:
            found = self._closure(1 << state)
            self._closed += _SET_BYTES + found.bit_length() // 8
            if self._closed <= REMEMBERED_BYTES_MAX:
                self._closures[state] = found
        return found

    # matching with assertions: what may follow depends on the neighbours, so nothing is remembered

    def _walk(self, text: str) -> bool:
        states = self._closure(1 << self._start)
        for at, character in enumerate(text):
            before = text[at - 1] if at else ""
            states = self._stepped(self._asserted(states, before, character), character)
            if not states:
                return False
        return bool(self._asserted(states, text[-1:], "") & _ACCEPTED)

    def _asserted(self, states: int, before: str, after: str) -> int:
        """Return a set of states with what it leads to where assertions hold between these two characters."""
        seen, asked = states, 0
        while todo := seen & self._asserting & ~asked:
            asked |= todo
            if self._spend is not None:
                self._spend(todo.bit_count() // STATES_PER_STEP)
            for state in members(todo):
                step = self._steps[state]
                assert isinstance(step[0], Assertion) and isinstance(step[1], int)  # noqa: PT018  as all in `_asserting`
                if _holds(step[0], before, after):
                    seen |= self._closure_of(step[1])
        return seen


def members(states: int) -> Iterator[int]:
    """Return the numbers of the states in a set."""
    while states:
        lowest = states & -states
        yield lowest.bit_length() - 1
        states ^= lowest


def _free(step: _Step) -> tuple[int, ...]:
    """Return where a state leads without a character and whatever stands there."""
    return step if step and isinstance(step[0], int) else ()


def _holds(assertion: Assertion, before: str, after: str) -> bool:
    match assertion:
        case Assertion.TEXT_START:
            return not before
        case Assertion.TEXT_END:
            return not after
        case Assertion.LINE_START:
            return before in ("", "\n")
        case Assertion.LINE_END:
            return after in ("", "\n")
    boundary = (before in _WORD_CHARACTERS) != (after in _WORD_CHARACTERS)
    return boundary is (assertion is Assertion.WORD_BOUNDARY)


def has(characters: Characters, character: str) -> bool:
    """Return whether a set of characters holds one."""
    variants = {character}
    if characters.fold:
        variants |= {character.lower(), character.upper()}
    found = any(_in_ranges(characters.ranges, ord(variant)) for variant in variants if len(variant) == 1)
    return (found or characters.in_category(character)) is not characters.negated


def _in_ranges(ranges: tuple[tuple[int, int], ...], code: int) -> bool:
    at = bisect_right(ranges, (code, 0x110000)) - 1
    return at >= 0 and ranges[at][0] <= code <= ranges[at][1]
