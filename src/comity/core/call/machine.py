"""The life of one call. This file owns its state machine; `docs/machines.md` is drawn from the table.

A call is admitted, queued, run, and settled once; a call whose agent is held by another node is sent there instead. Cancel and
timeout settle it while it is queued, runs or was sent; no event leaves `settled`, so a late result cannot change the outcome. A
call that waits for an approval is paused with its tree, and resumes when a person has answered.
"""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """The state of a call."""

    ADMITTED = "admitted"
    QUEUED = "queued"
    RUNNING = "running"
    SENT = "sent"
    PAUSED = "paused"
    SETTLED = "settled"

    __hash__ = str.__hash__  # an enum's own is slow, and every step looks into the table


class Event(StrEnum):
    """What can happen to a call."""

    QUEUE = "queue"
    START = "start"
    SEND = "send"
    FINISH = "finish"
    PAUSE = "pause"
    CANCEL = "cancel"
    EXPIRE = "expire"

    __hash__ = str.__hash__


# Bare names for the path of a call: before Python 3.12, looking a member up in its class costs ten times as much.
ADMITTED, QUEUED, RUNNING, SENT, PAUSED, SETTLED = State
QUEUE, START, SEND, FINISH, PAUSE, CANCEL, EXPIRE = Event

TRANSITIONS: dict[State, dict[Event, State]] = {
    # A long request is scanned for PII in this state, and its tree may be paused or end meanwhile.
    State.ADMITTED: {
        Event.QUEUE: State.QUEUED,
        Event.SEND: State.SENT,
        Event.PAUSE: State.PAUSED,
        Event.CANCEL: State.SETTLED,
        Event.EXPIRE: State.SETTLED,
    },
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
    # Paused if the node that runs it lost the agent: its caller looks for the agent again.
    State.SENT: {
        Event.FINISH: State.SETTLED,
        Event.PAUSE: State.PAUSED,
        Event.CANCEL: State.SETTLED,
        Event.EXPIRE: State.SETTLED,
    },
    # The whole tree waits for an approval. It leaves memory, and is resumed under the same ids.
    State.PAUSED: {Event.QUEUE: State.QUEUED},
    State.SETTLED: {},
}


def advance(state: State, event: Event) -> State | None:
    """Return the next state, or None if the event is invalid; for a settled call that means the event is late."""
    return TRANSITIONS[state].get(event)
