"""The life of one activation: an agent, or one key of it, brought to memory to serve calls and put away when idle.

`docs/machines.md` is drawn from the table.
"""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Where an activation is."""

    INACTIVE = "inactive"
    ACTIVATING = "activating"
    ACTIVE = "active"
    DEACTIVATING = "deactivating"


class Event(StrEnum):
    """What can happen to an activation."""

    ACTIVATE = "activate"
    READY = "ready"
    FAIL = "fail"
    DEACTIVATE = "deactivate"
    GONE = "gone"


# Bare names for the path of a call: before Python 3.12, looking a member up in its class costs ten times as much.
INACTIVE, ACTIVATING, ACTIVE, DEACTIVATING = State

TRANSITIONS: dict[State, dict[Event, State]] = {
    State.INACTIVE: {Event.ACTIVATE: State.ACTIVATING},
    State.ACTIVATING: {Event.READY: State.ACTIVE, Event.FAIL: State.INACTIVE},
    State.ACTIVE: {Event.DEACTIVATE: State.DEACTIVATING},
    # A call that arrives while the agent is being put away waits for the next activation.
    State.DEACTIVATING: {Event.GONE: State.INACTIVE},
}


def advance(state: State, event: Event) -> State:
    """Return the next state; an event that cannot happen is a bug of the caller."""
    return TRANSITIONS[state][event]
