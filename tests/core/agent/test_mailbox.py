"""The mailbox: urgent first, in order within a priority, and nobody waits for ever."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.core.agent.mailbox import TURNS, Mailbox
from comity.core.envelope.envelope import Priority

ROUND = sum(TURNS.values())
priorities = st.sampled_from(Priority)
# None takes; anything else is offered at that priority.
steps = st.lists(st.none() | priorities, max_size=200)


def drain(mailbox: Mailbox[str]) -> list[str]:
    taken = []
    while (item := mailbox.take()) is not None:
        taken.append(item)
    return taken


def test_the_most_urgent_goes_first():
    mailbox: Mailbox[str] = Mailbox()
    for priority in reversed(Priority):
        mailbox.offer(priority.value, priority)
    assert drain(mailbox) == ["critical", "high", "normal", "low"]


def test_an_empty_mailbox_gives_nothing():
    mailbox: Mailbox[str] = Mailbox()
    assert mailbox.take() is None
    mailbox.offer("a", Priority.LOW)
    assert drain(mailbox) == ["a"]
    assert mailbox.take() is None
    assert len(mailbox) == 0


@pytest.mark.parametrize("priority", Priority)
def test_calls_of_one_priority_keep_their_order(priority):
    mailbox: Mailbox[str] = Mailbox()
    names = [f"{number:03}" for number in range(100)]
    for name in names:
        mailbox.offer(name, priority)
    assert drain(mailbox) == names


def test_one_round_gives_every_priority_its_turns():
    mailbox: Mailbox[str] = Mailbox()
    for _ in range(100):
        for priority in Priority:
            mailbox.offer(priority.value, priority)
    first = [mailbox.take() for _ in range(ROUND)]
    assert {priority: first.count(priority.value) for priority in Priority} == TURNS
    assert [mailbox.take() for _ in range(ROUND)] == first


def test_the_more_urgent_has_the_more_turns():
    turns = [TURNS[priority] for priority in Priority]
    assert turns == sorted(set(turns), reverse=True)
    assert turns[-1] >= 1


def bound(priority: Priority, ahead: int) -> int:
    """Takes within which an item is taken that has `ahead` before it in its lane: the round under way, then full rounds."""
    return ROUND * (ahead // TURNS[priority] + 2) - 1


@given(steps, priorities, st.data())
def test_nobody_starves_while_others_keep_arriving(before, priority, data):
    mailbox: Mailbox[object] = Mailbox()
    ahead = 0
    for step in before:
        if step is None:
            ahead -= mailbox.take() is priority
        else:
            mailbox.offer(step, step)
            ahead += step is priority
    mailbox.offer("mine", priority)
    rivals = data.draw(st.lists(priorities, min_size=1, max_size=3))
    taken: list[object] = []
    while "mine" not in taken and len(taken) < bound(priority, ahead):
        for rival in rivals:  # as many as are taken, or more, for ever
            mailbox.offer(rival, rival)
        taken.append(mailbox.take())
    assert "mine" in taken


@pytest.mark.parametrize("priority", Priority)
def test_the_next_call_of_a_priority_waits_for_fewer_than_two_rounds(priority):
    """The worst case: its last turn of a round has just been used, and then everybody arrives."""
    mailbox: Mailbox[str] = Mailbox()
    for _ in range(TURNS[priority]):
        mailbox.offer("earlier", priority)
        mailbox.take()
    mailbox.offer("mine", priority)
    for rival in Priority:
        for _ in range(0 if rival is priority else 2 * ROUND):
            mailbox.offer("rival", rival)
    assert drain(mailbox).index("mine") < 2 * ROUND - 1


@given(steps)
def test_everything_offered_is_taken_once(sequence):
    mailbox: Mailbox[int] = Mailbox()
    offered, taken = [], []
    for number, step in enumerate(sequence):
        if step is None:
            item = mailbox.take()
            assert (item is None) == (len(offered) == len(taken))
            taken += [] if item is None else [item]
        else:
            mailbox.offer(number, step)
            offered.append(number)
        assert len(mailbox) == len(offered) - len(taken)
    assert sorted(taken + drain(mailbox)) == offered


@given(st.lists(priorities, min_size=1, max_size=30), st.data())
def test_what_is_removed_is_never_taken(offered, data):
    mailbox: Mailbox[int] = Mailbox()
    for number, priority in enumerate(offered):
        mailbox.offer(number, priority)
    gone = data.draw(st.integers(0, len(offered) - 1))
    assert mailbox.remove(gone, offered[gone])
    assert len(mailbox) == len(offered) - 1
    assert not mailbox.remove(gone, offered[gone])
    assert len(mailbox) == len(offered) - 1
    assert sorted(drain(mailbox)) == [number for number in range(len(offered)) if number != gone]


def test_what_was_taken_cannot_be_removed():
    mailbox: Mailbox[str] = Mailbox()
    mailbox.offer("a", Priority.HIGH)
    assert mailbox.take() == "a"
    assert not mailbox.remove("a", Priority.HIGH)
    assert len(mailbox) == 0
