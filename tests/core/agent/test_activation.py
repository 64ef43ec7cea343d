"""The life of an activation: every event in every state."""

from __future__ import annotations

from itertools import product

import pytest

from comity.core.agent.activation import TRANSITIONS, Event, State, advance

# DESIGN §6: inactive → activating → active → deactivating; an activation that fails is none.
WAYS = {
    (State.INACTIVE, Event.ACTIVATE): State.ACTIVATING,
    (State.ACTIVATING, Event.READY): State.ACTIVE,
    (State.ACTIVATING, Event.FAIL): State.INACTIVE,
    (State.ACTIVE, Event.DEACTIVATE): State.DEACTIVATING,
    (State.DEACTIVATING, Event.GONE): State.INACTIVE,
}


@pytest.mark.parametrize(("state", "event"), list(product(State, Event)))
def test_every_event_in_every_state_does_what_the_design_says(state, event):
    if (state, event) in WAYS:
        assert advance(state, event) is WAYS[state, event]
    else:
        with pytest.raises(KeyError):
            advance(state, event)


def test_the_table_names_every_state():
    assert list(TRANSITIONS) == list(State)


def test_an_agent_is_activated_only_after_the_last_activation_is_gone():
    before_activating = {state for state, events in TRANSITIONS.items() if State.ACTIVATING in events.values()}
    assert before_activating == {State.INACTIVE}
    assert Event.ACTIVATE not in TRANSITIONS[State.DEACTIVATING]


@pytest.mark.parametrize("state", State)
def test_every_state_can_serve_calls_again(state):
    reached = {state}
    while more := {after for one in reached for after in TRANSITIONS[one].values()} - reached:
        reached |= more
    assert State.ACTIVE in reached
