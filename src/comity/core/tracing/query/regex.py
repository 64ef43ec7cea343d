"""Regular expressions as Go and Tempo understand them: RE2 syntax, anchored at both ends, in linear time.

Python's `re` backtracks, so one attribute value could hold a query for ever, and its classes differ from RE2's (`\\d` is any
Unicode digit, `.` stops at a line end). This is a small automaton instead: the pattern becomes states, and the sets of
states a text passes through are remembered, so a text costs one dictionary look-up per character once it is warm.

As in Tempo, `.` matches a line end too. Unicode categories (`\\p{Lu}`) are known, scripts (`\\p{Greek}`) are not.
"""

from __future__ import annotations

from bisect import bisect_right

from comity.core.tracing.query.pattern import Assertion, Characters, Node, PatternError, Repeat, Sequence, parse_pattern

STATES_MAX = 10_000
TRANSITIONS_MAX = 50_000
REMEMBERED_TEXTS_MAX = 4_096
REMEMBERED_CHARS_MAX = 1_000_000  # of those texts
CHARACTERS_KEPT_MAX = 16  # whose ways through all states are remembered
REMEMBERED_STATES_MAX = 200_000  # in all sets together: about 16 MB

_WORD_CHARACTERS = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")
_ACCEPT = 0
_States = frozenset[int]
_Step = tuple[Characters, int] | tuple[Assertion, int] | tuple[int, ...]


class Regex:
    """A compiled pattern; raises `PatternError`. `matches` depends on the text alone, the memory only makes it fast.

    One query compiles its own and keeps it to itself: the memory is not shared between threads.
    """

    __slots__ = (
        "_accepting", "_cached", "_chars", "_closed", "_closures", "_ids", "_known", "_next", "_sets", "_start", "_states",
        "_steps", "_texts", "_walks", "pattern",
    )  # fmt: skip

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        node = parse_pattern(pattern)
        self._steps: list[_Step] = [()]  # state 0 accepts
        self._start = self._emit(node, _ACCEPT)
        self._texts: dict[str, bool] = {}
        self._walks = any(step and isinstance(step[0], Assertion) for step in self._steps)
        self._ids: dict[_States, int] = {}
        self._sets: list[_States] = []
        self._accepting: list[bool] = []
        self._known: list[dict[str, int]] = []
        self._cached = self._chars = self._states = 0
        self._closures: dict[int, _States] = {}  # what a state leads to without a character
        self._closed = 0  # states in them
        self._next: dict[str, dict[int, int]] = {}  # where each state goes on by a character; of few characters at a time

    def matches(self, text: str) -> bool:
        """Return whether the whole text matches."""
        found = self._texts.get(text)
        if found is None:
            found = self._walk(text) if self._walks else self._run(text)
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

    def _closure(self, states: set[int]) -> _States:
        todo, seen = list(states), set(states)
        while todo:
            step = self._steps[todo.pop()]
            if step and isinstance(step[0], int):
                fresh = [state for state in step if isinstance(state, int) and state not in seen]
                seen.update(fresh)
                todo.extend(fresh)
        return frozenset(seen)

    def _numbered(self, states: _States) -> int:
        found = self._ids.get(states)
        if found is None:
            found = self._ids[states] = len(self._sets)
            self._sets.append(states)
            self._states += len(states)
            self._accepting.append(_ACCEPT in states)
            self._known.append({})
        return found

    def _run(self, text: str) -> bool:
        current = self._numbered(self._closure({self._start}))
        for character in text:
            following = self._known[current].get(character)
            if following is None:
                reached = self._stepped(self._sets[current], character)
                if self._cached > TRANSITIONS_MAX or self._states > REMEMBERED_STATES_MAX:
                    self._forget()
                    following = self._numbered(reached)
                else:
                    following = self._known[current][character] = self._numbered(reached)
                    self._cached += 1
            current = following
        return self._accepting[current]

    def _forget(self) -> None:
        self._cached = self._states = 0
        for memory in (self._ids, self._sets, self._accepting, self._known):
            memory.clear()

    def _stepped(self, states: _States, character: str) -> _States:
        following = self._next.get(character)
        if following is None:
            if len(self._next) >= CHARACTERS_KEPT_MAX:
                self._next.clear()
            following = self._next[character] = self._taking(character)
        reached = {following[state] for state in following.keys() & states}
        if self._closed <= REMEMBERED_STATES_MAX:
            return frozenset().union(*map(self._closure_of, reached))
        return self._closure(reached)

    def _taking(self, character: str) -> dict[int, int]:
        """Return the states that take a character, each with the one it leads to."""
        taken: dict[Characters, bool] = {}
        following: dict[int, int] = {}
        for state, step in enumerate(self._steps):
            if step and isinstance(step[0], Characters):
                if step[0] not in taken:
                    taken[step[0]] = has(step[0], character)
                if taken[step[0]]:
                    assert isinstance(step[1], int)
                    following[state] = step[1]
        return following

    def _closure_of(self, state: int) -> _States:
        found = self._closures.get(state)
        if found is None:
            found = self._closure({state})
            self._closed += len(found)
            if self._closed <= REMEMBERED_STATES_MAX:
                self._closures[state] = found
        return found

    # matching with assertions: what may follow depends on the neighbours, so nothing is remembered

    def _walk(self, text: str) -> bool:
        states = {self._start}
        for at, character in enumerate(text):
            before = text[at - 1] if at else ""
            states = set(self._stepped(self._asserted(states, before, character), character))
            if not states:
                return False
        return _ACCEPT in self._asserted(states, text[-1:], "")

    def _asserted(self, states: set[int], before: str, after: str) -> _States:
        seen = set(self._closure(states))
        todo = list(seen)
        while todo:
            step = self._steps[todo.pop()]
            if step and isinstance(step[0], Assertion) and _holds(step[0], before, after):
                assert isinstance(step[1], int)
                fresh = self._closure({step[1]}) - seen
                seen |= fresh
                todo.extend(fresh)
        return frozenset(seen)


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
