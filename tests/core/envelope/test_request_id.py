"""Ids that callers choose for calls: none of them is one that a node makes."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from comity.core.envelope.envelope import is_id
from comity.core.envelope.request_id import below, chosen_id_problem, chosen_part
from comity.core.handoff.holder import result_session
from comity.core.journal.terms import is_below

words = st.text(alphabet="ab-_:/ .#\n", max_size=6)


@example("r", "r.1")
@example("r", "r#1")
@given(words, words)
def test_no_chosen_id_stands_below_another(above: str, chosen: str) -> None:
    if not chosen_id_problem(chosen):
        assert is_id(chosen)
        assert not is_below(chosen, above)


@pytest.mark.parametrize("chosen", ["order-17", "a_b", "ann@shop:7", "550e8400-e29b-41d4-a716-446655440000", "ä/1"])
def test_what_people_use_as_ids_can_be_chosen(chosen: str) -> None:
    assert chosen_id_problem(chosen) == ""


@pytest.mark.parametrize("chosen", [None, 5, "", "a\n", "a" * 300])
def test_what_cannot_name_anything_cannot_be_chosen(chosen: object) -> None:
    assert "printable" in chosen_id_problem(chosen)


@pytest.mark.parametrize("chosen", ["+4915112345678", "+49 (151) 123-456-78"])
def test_a_phone_number_cannot_be_chosen_and_an_order_number_can(chosen: str) -> None:
    assert "phone number" in chosen_id_problem(chosen)
    assert chosen_id_problem(chosen.lstrip("+")) == ""


def test_nobody_can_name_the_session_that_hides_what_a_receiver_says() -> None:
    assert not is_id(result_session("job"))


def test_the_id_that_an_agent_outside_chose_is_that_of_its_own_call_and_of_nothing_below_it() -> None:
    chosen = below("r.1", "order-17")
    assert chosen_part(chosen) == "order-17"
    assert [chosen_part(one) for one in (f"{chosen}.1", f"{chosen}#1", f"{chosen}.1#2", "r.1", "r#1", "r")] == [""] * 6
    assert chosen_part(below(chosen, "other")) == "other"
