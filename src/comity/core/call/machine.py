"""The life of one call. This file owns its state machine; `docs/machines.md` is drawn from the table.

A call is admitted, waits for its place, runs, and settles once; one whose agent is held by another node is sent there instead.
Cancel and expiry settle it while it waits, runs or is away; nothing leaves settled, so a late result finds no way to change the
outcome. A call that waits for a person is paused with its tree, and goes on when there is an answer.
"""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Where a call is."""

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
    # A long request is looked through while it is admitted, and its tree may be put aside or end meanwhile.
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
    # Put aside when the node that runs it lost its agent: its caller looks for the agent anew.
    State.SENT: {
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
