"""A session as it is stored: what is read again is what was saved, and a change costs what it adds."""

from __future__ import annotations

import gc

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.core.session import session as core
from comity.core.session.parts import HEAD_BYTES_MAX, ROW_CHARS, ROW_ENTRIES_MAX, Parts, Row, read
from comity.core.session.session import FACTS_MAX, OUTPUTS_MAX, Session, apply, entry_of

EMPTY = Session(id="s", tenant_id="t", user_id="u", created_at=1, used_at=1)
KEYS = st.sampled_from(["a", "b", "c"])
TEXTS = st.text("xy", max_size=3) | st.sampled_from(["long " * 500, "longer " * 3_000])
CHANGES = st.one_of(
    st.builds(core.Say, role=st.sampled_from(["user", "A"]), text=TEXTS, task=TEXTS),
    st.builds(core.Answer, agent=KEYS, result=KEYS, value=TEXTS, said=st.tuples(st.builds(core.Say, role=KEYS, text=TEXTS))),
    st.builds(core.Learn, key=KEYS, value=TEXTS, source=KEYS, confidence=st.sampled_from([0.5, 1.0])),
    st.builds(core.Decide, text=TEXTS),
    st.builds(core.Assume, text=TEXTS),
    st.builds(core.Constrain, key=KEYS, value=TEXTS),
    st.builds(core.Place, position=TEXTS, step=st.integers(0, 3)),
    st.builds(core.Produce, agent=KEYS, key=KEYS, value=TEXTS),
    st.builds(core.Keep, agent=KEYS, data=st.dictionaries(KEYS, TEXTS)),
    st.builds(core.Summarise, text=TEXTS),
)


class Stored:
    """A session with the head and the rows that a store has of it."""

    def __init__(self) -> None:
        self.session, self.parts = EMPTY, Parts()
        self.head, self.rows, self.bytes = b"", {}, 0

    def change(self, *changes: core.Change, save: bool = True) -> None:
        for change in changes:
            made = apply(self.session, change, based_on=self.session.version, now_ms=self.session.version)
            assert not isinstance(made, core.Conflict)
            self.session = made
            self.parts.touch([entry] if (entry := entry_of(change)) is not None else [])
        if save:
            self.save()

    def save(self) -> None:
        self.head, rows = self.parts.save(self.session)
        self.bytes = len(self.head) + sum(len(data) for _, data in rows)
        self.rows |= dict(rows)
        self.rows = {number: data for number, data in self.rows.items() if data}

    def read(self) -> tuple[Session, Parts]:
        return read(self.head, sorted(self.rows.items()))


def as_stored(session: Session) -> bytes:
    """Return all of a session; order of keys aside, which a key that went and came again may change."""
    return msgspec.json.encode(session, order="sorted")


@given(st.lists(st.tuples(CHANGES, st.sampled_from(["save", "wait", "read again"])), max_size=30))
def test_what_is_read_is_what_was_saved_whatever_changed_and_however_often_it_was_read(changes):
    stored = Stored()
    for change, then in changes:
        stored.change(change, save=then != "wait")
        if then == "read again":
            stored.session, stored.parts = stored.read()
    stored.save()
    again, parts = stored.read()
    assert as_stored(again) == as_stored(stored.session)
    assert [again.turns, list(again.facts)] == [stored.session.turns, list(stored.session.facts)]
    assert parts.size == stored.parts.size == len(stored.head) + sum(map(len, stored.rows.values()))


@given(st.lists(CHANGES, max_size=12), st.lists(CHANGES, max_size=12))
def test_changes_that_were_made_elsewhere_are_found_by_comparing(first, second):
    stored, other = Stored(), Stored()
    stored.change(*first)
    other.session, other.parts = stored.read()
    for change in second:
        made = apply(other.session, change, based_on=other.session.version, now_ms=9)
        assert not isinstance(made, core.Conflict)
        other.session = made
    other.parts.compare(other.session)
    other.rows = dict(stored.rows)
    other.save()
    assert as_stored(other.read()[0]) == as_stored(other.session)


@pytest.mark.parametrize("many", [100, 3_000])
def test_a_change_writes_what_it_adds_however_long_the_session_is(many):
    stored = Stored()
    for number in range(many):
        stored.change(
            core.Learn(f"k{number}", "v" * 100, "A"),
            core.Decide(f"d{number}" * 10),
            core.Produce("A", f"o{number}", "z" * 100),
            core.Say("user", f"{number} " * 20),
            save=number % 10 == 9,
        )
    written = []
    for number in range(30):
        stored.change(core.Say("user", f"{number} " * 20))
        written.append(stored.bytes)
    assert max(written) < 2 * HEAD_BYTES_MAX
    assert sum(written) < 30 * HEAD_BYTES_MAX


def test_what_a_session_keeps_no_longer_has_no_row():
    stored = Stored()
    for number in range(FACTS_MAX + OUTPUTS_MAX + 1_100):
        stored.change(core.Learn(f"k{number}", "v" * 40, "A"), core.Produce("A", f"o{number}", 1), core.Say("user", "x" * 300))
    kept = len(stored.session.facts) + len(stored.session.prior_outputs)
    turns = sum(len(msgspec.json.decode(row).get("turns", ())) for row in stored.rows.values())
    assert kept <= len(stored.rows) - rows_of(stored, "turns") + 60 <= kept + 70  # those in the head aside
    assert len(stored.session.turns) - 15 <= turns <= len(stored.session.turns)
    assert set(stored.session.written) == {f"fact {one}" for one in stored.session.facts} | {
        f"output {one}" for one in stored.session.prior_outputs
    }
    assert as_stored(stored.read()[0]) == as_stored(stored.session)


@given(st.lists(st.tuples(st.integers(1, 90), st.sampled_from(["", "y" * 40, "y" * 900])), min_size=2, max_size=25))
def test_turns_share_rows_and_none_is_lost_when_the_older_half_goes(changes):
    stored = Stored()
    for many, text in changes:
        stored.change(core.Answer("", said=tuple(core.Say("user", f"{one}{text}") for one in range(many))))
        again, parts = stored.read()
        assert again.turns == stored.session.turns
        assert parts.size == stored.parts.size
        assert rows_of(stored, "turns") <= len(changes) * 24  # of some four thousand characters each
        if not many % 3:
            stored.session, stored.parts = again, parts


def test_a_thousand_calls_without_words_are_a_few_dozen_rows():
    stored = Stored()
    stored.change(core.Answer("", said=tuple(core.Say("user", f"Inputs: {one}") for one in range(1_000))))
    assert rows_of(stored, "turns") == -(-1_000 // ROW_ENTRIES_MAX)
    stored.change(core.Say("user", "x" * 5_000))
    assert len(stored.session.turns) == len(stored.read()[0].turns) == 500
    assert rows_of(stored, "turns") <= -(-500 // ROW_ENTRIES_MAX) + 2  # one of them shortened, one new


@pytest.mark.parametrize(("chars", "shared"), [(ROW_CHARS // 4, 4), (ROW_CHARS // 4 + 1, 3)])
def test_long_turns_share_a_row_up_to_its_characters(chars, shared):
    stored = Stored()
    stored.change(core.Answer("", said=tuple(core.Say("user", "x" * chars) for _ in range(20))))
    stored.change(core.Say("user", "x" * 5_000))
    counts = [len(msgspec.json.decode(row).get("turns", ())) for row in stored.rows.values()]
    assert (max(counts), sum(counts)) == (shared, 21)


def rows_of(stored: Stored, field: str) -> int:
    return sum(field in msgspec.json.decode(row) for row in stored.rows.values())


def test_a_fact_that_is_known_already_drops_no_other():
    session = EMPTY
    for number in range(FACTS_MAX):
        session = apply(session, core.Learn(f"k{number}", 1, "A"), based_on=session.version, now_ms=1)
    session = apply(session, core.Learn("k5", 2, "A"), based_on=session.version, now_ms=2)
    assert (len(session.facts), session.facts["k0"].value, session.facts["k5"].value) == (FACTS_MAX, 1, 2)


def test_a_session_of_which_a_row_is_missing_is_not_read():
    stored = Stored()
    stored.change(core.Say("user", "x" * 5_000), core.Decide("yes"))
    stored.rows.pop(1)
    with pytest.raises(ValueError, match="2 of its 3 rows"):
        stored.read()


def test_a_session_as_earlier_versions_stored_it_is_read_and_gets_rows_with_its_next_change():
    whole = {
        "id": "s", "tenant_id": "t", "user_id": "u", "created_at": 1, "used_at": 5, "parent_id": "", "version": 9,
        "original_request": "hello", "turns": [{"role": "user", "text": "hello " * 900, "at_ms": 1}], "turns_dropped": 3,
        "summary": "", "facts": {"k": {"value": 1, "source": "A", "confidence": 1.0, "at_ms": 2}}, "decisions": ["go"],
        "constraints": {}, "assumptions": [], "workflow_position": "", "workflow": {}, "prior_agents": ["A"],
        "prior_outputs": {"o": 1}, "private": {"A": {"p": 1}}, "written": {"fact k": 4, "output o": 5},
    }  # fmt: skip
    stored = Stored()
    stored.head = msgspec.json.encode(whole)
    stored.session, stored.parts = stored.read()
    assert (stored.session.turns_chars, stored.session.written, stored.parts.row_bytes) == (
        5_400, {"fact k": 4, "output o": 5}, 0,
    )  # fmt: skip
    before = stored.session
    stored.change(core.Say("user", "more"))
    assert len(stored.head) < 300
    assert as_stored(stored.read()[0]) == as_stored(stored.session)
    assert stored.session.turns[:-1] == before.turns


def test_the_garbage_collector_does_not_walk_through_the_rows_of_sessions():
    """A node with 4,000 sessions keeps 150,000 of them: as tuples they were three quarters of a full collection."""
    assert not gc.is_tracked(Row(1, 2))
