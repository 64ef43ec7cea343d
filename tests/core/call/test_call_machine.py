"""The life of a call: every event in every state."""

from __future__ import annotations

from itertools import product

import pytest

from comity.core.call.machine import TRANSITIONS, Event, State, advance

# DESIGN §6: admitted → queued → running → settled, or sent to the node that holds the agent; cancel and expiry from any of these but settled. A tree that waits for a
# person is in no node's memory, so nothing happens to it but that it is taken up again.
WAYS = {
    (State.ADMITTED, Event.QUEUE): State.QUEUED,
    (State.QUEUED, Event.START): State.RUNNING,
    (State.QUEUED, Event.PAUSE): State.PAUSED,
    (State.RUNNING, Event.FINISH): State.SETTLED,
    (State.RUNNING, Event.PAUSE): State.PAUSED,
    (State.PAUSED, Event.QUEUE): State.QUEUED,
    (State.ADMITTED, Event.SEND): State.SENT,
    (State.ADMITTED, Event.PAUSE): State.PAUSED,
    (State.SENT, Event.FINISH): State.SETTLED,
    (State.SENT, Event.PAUSE): State.PAUSED,
}


@pytest.mark.parametrize(("state", "event"), list(product(State, Event)))
def test_every_event_in_every_state_does_what_the_design_says(state, event):
    if event in {Event.CANCEL, Event.EXPIRE}:
        expected = None if state in {State.SETTLED, State.PAUSED} else State.SETTLED
    else:
        expected = WAYS.get((state, event))
    assert advance(state, event) is expected


def test_nothing_leaves_settled():
    assert {advance(State.SETTLED, event) for event in Event} == {None}


def test_the_table_names_every_state():
    assert list(TRANSITIONS) == list(State)


@pytest.mark.parametrize("state", State)
def test_every_state_can_still_settle_or_has(state):
    reached = {state}
    while more := {after for one in reached for after in TRANSITIONS[one].values()} - reached:
        reached |= more
    assert State.SETTLED in reached


def test_the_words_are_those_of_the_wire():
    assert [str(state) for state in State] == ["admitted", "queued", "running", "sent", "paused", "settled"]
