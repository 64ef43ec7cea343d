"""The life of one call. This file owns its state machine; `docs/machines.md` is drawn from the table.

A call is admitted, waits for its place, runs, and settles once. Cancel and expiry settle it while it waits or runs; nothing
leaves settled, so a late result finds no way to change the outcome. A call that waits for a person is paused with its tree, and
goes on when there is an answer.
"""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Where a call is."""

    ADMITTED = "admitted"
    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    SETTLED = "settled"


class Event(StrEnum):
    """What can happen to a call."""

    QUEUE = "queue"
    START = "start"
    FINISH = "finish"
    PAUSE = "pause"
    CANCEL = "cancel"
    EXPIRE = "expire"


# Bare names for the path of a call: before Python 3.12, looking a member up in its class costs ten times as much.
ADMITTED, QUEUED, RUNNING, PAUSED, SETTLED = State
QUEUE, START, FINISH, PAUSE, CANCEL, EXPIRE = Event

TRANSITIONS: dict[State, dict[Event, State]] = {
    State.ADMITTED: {Event.QUEUE: State.QUEUED, Event.CANCEL: State.SETTLED, Event.EXPIRE: State.SETTLED},
    State.QUEUED: {
        Event.START: State.RUNNING,
        Event.PAUSE: State.PAUSED,
        Event.CANCEL: State.SETTLED,
        Event.EXPIRE: State.SETTLED,
    },
    State.RUNNING: {
        Event.FINISH: State.SETTLED,
        Event.PAUSE: State.PAUSED,
        Event.CANCEL: State.SETTLED,
        Event.EXPIRE: State.SETTLED,
    },
    # The whole tree waits for a person. It leaves memory; when the answer is there it is opened again under the same ids.
    State.PAUSED: {Event.QUEUE: State.QUEUED},
    State.SETTLED: {},
}


def advance(state: State, event: Event) -> State | None:
    """Return the next state, or None where the event cannot happen: for a settled call that is how lateness shows."""
    return TRANSITIONS[state].get(event)
