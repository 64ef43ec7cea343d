"""The memory of a user across sessions: facts that agents reported, each with source, confidence and time.

A fact is a sentence. A fact of the form `key: value` can be found by its key, and a later fact with the same key replaces it. A
fact that a person corrected can be changed only by a person. Memory is bounded: the facts of least confidence are dropped
first, of equal ones the oldest, and the number of dropped facts is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from comity.core.model.tokens import estimate
from comity.core.units import MS_PER_S

FACTS_MAX: Final = 200  # of one user
CHARS_MAX: Final = 50_000  # of all of them
FACT_CHARS_MAX: Final = 1_000
NOTES_MAX: Final = 200  # that one agent keeps about one user; the oldest go
REPORTED_MAX: Final = 50  # of one reply; the rest is not kept
OFFERED_TOKENS_MAX: Final = 800  # of memory in a model's background

_KEYED: Final = re.compile(r"\s*([^\W_][\w .\-/]{0,39}?)\s*:\s+(\S.*)", re.DOTALL)
_NO_WORD: Final = re.compile(r"[\W_]+")


class Fact(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One thing known about a user. `source` is the agent that reported it, or the person who corrected it."""

    id: str
    text: str
    source: str
    confidence: float
    at_ms: int
    session_id: str = ""  # in which it was last reported
    request_id: str = ""  # by which call
    is_corrected: bool = False  # by a person

    @property
    def key(self) -> str:
        """Its key; empty for a plain sentence."""
        match = _KEYED.fullmatch(self.text)
        return plain_key(match[1]) if match else ""

    @property
    def value(self) -> str:
        """The text after its key, or the whole sentence."""
        match = _KEYED.fullmatch(self.text)
        return match[2] if match else self.text


class Note(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A private text of an agent about a user, such as a lesson, with labels that hold no words of the user."""

    id: str
    text: str
    agent: str
    at_ms: int
    session_id: str = ""  # in which it was noted
    labels: dict[str, str] = {}


class Memory(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The memory of one user of one tenant, in the order of learning."""

    facts: tuple[Fact, ...] = ()
    made: int = 0  # facts so far, for their ids
    dropped: int = 0  # facts for which there was no room
    notes: tuple[Note, ...] = ()  # no fact: each is for the agent that made it

    def find(self, key: str) -> Fact | None:
        """Return the fact under a key, or None."""
        wanted = plain_key(key)
        return next((one for one in reversed(self.facts) if wanted and one.key == wanted), None)

    def get(self, fact_id: str) -> Fact | None:
        """Return a fact by its id."""
        return next((one for one in self.facts if one.id == fact_id), None)


def plain_key(key: str) -> str:
    """Return a normalized key: lower case, words joined by underscores."""
    return _NO_WORD.sub("_", key.casefold()).strip("_")


def learn(memory: Memory, facts: Iterable[Fact]) -> Memory:
    """Return the memory with facts that an agent reported; their ids are given here."""
    for fact in facts:
        memory = _learn(memory, replace(fact, text=_bounded(fact.text)))
    return _fit(memory)


def correct(memory: Memory, fact_id: str, text: str, *, by: str, now_ms: int) -> Memory | None:
    """Return the memory with a fact corrected by a person, or None if there is no such fact."""
    old = memory.get(fact_id)
    if old is None:
        return None
    new = replace(old, text=_bounded(text), source=by, confidence=1.0, at_ms=now_ms, is_corrected=True)
    return _fit(replace(memory, facts=tuple(new if one is old else one for one in memory.facts)))


def forget(memory: Memory, *, fact_id: str = "", session_id: str = "") -> Memory:
    """Return the memory without a fact, or without the facts last reported in a session."""
    kept = (one for one in memory.facts if one.id != fact_id and (not session_id or one.session_id != session_id))
    return replace(memory, facts=tuple(kept))


def note(memory: Memory, new: Note) -> Memory:
    """Return the memory with a note; it replaces the agent's notes with the same id or text."""
    new = replace(new, text=_bounded(new.text))
    own = [one for one in memory.notes if one.agent == new.agent]
    kept = [one for one in own if one.id != new.id and one.text.casefold() != new.text.casefold()]
    others = (one for one in memory.notes if one.agent != new.agent)
    return replace(memory, notes=(*others, *[*kept, new][-NOTES_MAX:]))


def drop_note(memory: Memory, agent: str, note_id: str) -> Memory:
    """Return the memory without a note of an agent."""
    return replace(memory, notes=tuple(one for one in memory.notes if (one.agent, one.id) != (agent, note_id)))


def offered(memory: Memory, tokens_max: int = OFFERED_TOKENS_MAX) -> tuple[tuple[str, ...], int]:
    """Return the facts of highest confidence as lines for a model, the highest last, and how many did not fit."""
    lines: list[str] = []
    for fact in sorted(memory.facts, key=_worth, reverse=True):
        day = datetime.fromtimestamp(fact.at_ms / MS_PER_S, UTC).date().isoformat()
        line = f"{' '.join(fact.text.split())} (source {fact.source}, confidence {fact.confidence:g}, {day})"
        tokens_max -= estimate(line)
        if tokens_max < 0:
            break
        lines.append(line)
    return tuple(reversed(lines)), len(memory.facts) - len(lines)


def _learn(memory: Memory, new: Fact) -> Memory:
    key = new.key
    for old in memory.facts:
        if old.text == new.text or (key and old.key == key):
            if old.is_corrected or (old.text != new.text and old.confidence > new.confidence):
                return memory  # a person corrected it, or another agent was more confident
            if old.text == new.text:  # reported again: it keeps its first source
                new = replace(new, source=old.source, confidence=max(old.confidence, new.confidence))
            kept = tuple(one for one in memory.facts if one is not old)
            return replace(memory, facts=(*kept, replace(new, id=old.id)))
    number = memory.made + 1
    return replace(memory, facts=(*memory.facts, replace(new, id=f"m{number}")), made=number)


def _fit(memory: Memory) -> Memory:
    chars = sum(len(one.text) for one in memory.facts)
    least = sorted(memory.facts, key=_worth)
    gone = 0
    while len(least) - gone > FACTS_MAX or chars > CHARS_MAX:
        chars -= len(least[gone].text)
        gone += 1
    if not gone:
        return memory
    lost = {one.id for one in least[:gone]}
    return replace(memory, facts=tuple(one for one in memory.facts if one.id not in lost), dropped=memory.dropped + gone)


def _worth(fact: Fact) -> tuple[bool, float, int]:
    return fact.is_corrected, fact.confidence, fact.at_ms


def _bounded(text: str) -> str:
    return text if len(text) <= FACT_CHARS_MAX else f"{text[: FACT_CHARS_MAX - 1]}…"
