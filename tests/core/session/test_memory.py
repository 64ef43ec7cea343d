"""What is remembered of a user: one fact a key, what people corrected stands, bounded by count and size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.core.model.tokens import estimate
from comity.core.session import memory as core
from comity.core.session.memory import CHARS_MAX, FACT_CHARS_MAX, FACTS_MAX, Fact, Memory, Note


def fact(text, confidence=0.8, at_ms=1, source="byte", **more):
    return Fact("", text, source, confidence, at_ms, **more)


def learnt(*facts):
    memory = Memory()
    for one in facts:
        memory = core.learn(memory, (one,))
    return memory


def told(memory):
    return [(one.id, one.text) for one in memory.facts]


def test_facts_are_kept_in_order_under_ids_that_are_never_given_twice():
    memory = learnt(fact("a"), fact("b"))
    memory = core.learn(core.forget(memory, fact_id="m2"), (fact("c"),))
    assert told(memory) == [("m1", "a"), ("m3", "c")]


def test_the_same_fact_again_is_one_fact_of_its_first_source_and_best_confidence():
    (one,) = learnt(fact("a", 0.9, 1, "byte"), fact("a", 0.5, 7, "prime", session_id="t")).facts
    assert (one.id, one.source, one.confidence, one.at_ms, one.session_id) == ("m1", "byte", 0.9, 7, "t")


@pytest.mark.parametrize(("first", "second", "stays"), [(0.8, 0.8, "6"), (0.8, 0.9, "6"), (0.8, 0.7, "5")])
def test_a_later_fact_of_the_same_key_replaces_one_that_was_no_surer(first, second, stays):
    memory = learnt(fact("Budget: 5", first), fact("budget: 6", second))
    assert [one.value for one in memory.facts] == [stays]


def test_what_a_person_corrected_no_agent_changes():
    memory = core.correct(learnt(fact("budget: 5", 1.0)), "m1", "budget: 7", by="ann", now_ms=9)
    memory = core.learn(memory, (fact("budget: 5", 1.0), fact("budget: 8", 1.0)))
    (one,) = memory.facts
    assert (one.text, one.source, one.confidence, one.at_ms) == ("budget: 7", "ann", 1.0, 9)
    assert core.correct(memory, "m9", "x", by="ann", now_ms=9) is None


@pytest.mark.parametrize(("text", "key", "value"), [
    ("Tax year: 2024", "tax_year", "2024"),
    ("home-country: Canada, since 2019", "home_country", "Canada, since 2019"),
    ("the user files taxes in Canada", "", "the user files taxes in Canada"),
    ("see http://example.com", "", "see http://example.com"),
    ("this is a very long sentence that only happens to end in a colon: so", "", None),
])  # fmt: skip
def test_a_fact_that_reads_as_key_and_value_can_be_asked_for(text, key, value):
    one = fact(text)
    assert (one.key, one.value) == (key, text if value is None else value)
    assert (learnt(one).find(key) is not None) is bool(key)


def test_keys_are_found_however_they_are_written():
    memory = learnt(fact("Tax year: 2024"))
    assert all(memory.find(key) for key in ("tax_year", "Tax Year", "TAX-YEAR"))
    assert memory.find("year") is None


def test_what_was_reported_in_a_session_goes_with_it():
    memory = learnt(fact("a", session_id="s"), fact("b", session_id="t"), fact("a", session_id="t"), fact("c", session_id="s"))
    assert [one.text for one in core.forget(memory, session_id="s").facts] == ["b", "a"]


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 9)), max_size=8), st.integers(0, 3))
def test_beyond_the_bound_the_least_sure_and_oldest_go_and_are_counted(told_facts, extra):
    facts = [fact(f"f{number}", confidence, at_ms) for number, (confidence, at_ms) in enumerate(told_facts)]
    sure = [fact(f"s{number}", 1.0, 99) for number in range(FACTS_MAX - extra)]
    memory = core.learn(Memory(), [*sure, *facts])
    assert len(memory.facts) == min(FACTS_MAX, len(sure) + len(facts))
    assert memory.dropped == max(len(facts) - extra, 0)
    kept = [one for one in memory.facts if one.text.startswith("f")]
    best = sorted(((one.confidence, one.at_ms) for one in facts), reverse=True)[: len(kept)]
    assert sorted(((one.confidence, one.at_ms) for one in kept), reverse=True) == best


def test_what_a_person_put_right_goes_last():
    memory = core.correct(learnt(fact("Tax year: 2024", 0.1, 0)), "m1", "Tax year: 2025", by="ann", now_ms=1)
    memory = core.learn(memory, [fact(f"s{number}", 1.0, 99) for number in range(FACTS_MAX)])
    assert (memory.find("tax year").value, len(memory.facts), memory.dropped) == ("2025", FACTS_MAX, 1)


def test_memory_is_bounded_in_characters_too():
    memory = core.learn(Memory(), [fact(f"{number:04}" + "x" * 2_000) for number in range(100)])
    assert sum(len(one.text) for one in memory.facts) <= CHARS_MAX
    assert all(len(one.text) == FACT_CHARS_MAX for one in memory.facts)
    assert memory.dropped == 100 - len(memory.facts)


def test_the_surest_facts_are_offered_under_a_token_budget_and_the_rest_is_counted():
    memory = learnt(*(fact(f"fact number {number}", number / 10) for number in range(1, 10)))
    lines, left = core.offered(memory, tokens_max=60)
    assert lines[-1] == "fact number 9 (source byte, confidence 0.9, 1970-01-01)"
    assert sum(map(estimate, lines)) <= 60
    assert (len(lines), left) == (4, 5)
    assert core.offered(Memory()) == ((), 0)


def noted(text, note_id, agent="ORC"):
    return Note(note_id, text, agent, 5, "s1", {"intent": "a"})


def test_a_second_note_about_a_text_replaces_the_first_of_its_agent_only():
    memory = core.note(core.note(core.note(Memory(), noted("Do it", "1")), noted("do it", "2", "OTHER")), noted("DO IT", "3"))
    assert [(one.agent, one.id) for one in memory.notes] == [("OTHER", "2"), ("ORC", "3")]
    assert core.drop_note(memory, "ORC", "2") == memory
    assert [one.id for one in core.drop_note(memory, "ORC", "3").notes] == ["2"]


def test_the_oldest_note_of_an_agent_goes_when_it_has_too_many():
    memory = core.note(Memory(), noted("of another", "other", "OTHER"))
    for at in range(core.NOTES_MAX + 1):
        memory = core.note(memory, noted(f"text {at}", str(at)))
    assert [memory.notes[0].id, memory.notes[1].id, len(memory.notes)] == ["other", "1", core.NOTES_MAX + 1]
