"""The life of a node's hold on one address, and how leases are granted: who may run an agent, for how long, under which token.

A lease is time-limited, so a node that stopped without a word loses what it held. A holder that was only paused or cut off may
still believe in it: each grant carries a token greater than all before it for that address, and the store refuses what is
written under an older one. The lease makes two holders unlikely, the token makes the former one harmless.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

# How long a lease lasts without being renewed, and how often its holder renews it.
LEASE_MS: Final = 5_000
RENEW_MS: Final = LEASE_MS // 3


class Lease(Struct, frozen=True, gc=False):
    """Who holds an address. `left_ms` counts from the answer of the lease service: no two clocks need to agree."""

    address: str
    holder: str
    token: int
    left_ms: int


class Grant(Struct, frozen=True, gc=False):
    """What a lease service remembers of an address, for ever: its token never goes back. Times are the service's own."""

    holder: str  # empty once it was given back
    token: int
    expires_at: int


def acquire(held: Grant | None, holder: str, *, now_ms: int, lease_ms: int) -> Grant:
    """Return what stands after `holder` asked: its own grant, or the one that somebody else still has.

    A holder that asks again, because the answer was lost, keeps its token. Everybody else gets a greater one than ever before.
    """
    if held is None:
        return Grant(holder, 1, now_ms + lease_ms)
    if not held.holder or held.expires_at <= now_ms:
        return Grant(holder, held.token + 1, now_ms + lease_ms)
    return Grant(holder, held.token, now_ms + lease_ms) if held.holder == holder else held


def renew(held: Grant | None, holder: str, token: int, *, now_ms: int, lease_ms: int) -> Grant | None:
    """Return the grant with its time extended, or None: it has run out, and only asking anew helps."""
    if held is None or (held.holder, held.token) != (holder, token) or held.expires_at <= now_ms:
        return None
    return Grant(holder, token, now_ms + lease_ms)


def release(held: Grant | None, holder: str, token: int) -> Grant | None:
    """Return what stands after a holder gave its grant back; one that was lost already changes nothing."""
    if held is None or (held.holder, held.token) != (holder, token):
        return held
    return Grant("", token, 0)


class State(StrEnum):
    """What a node knows about its hold on an address."""

    UNKNOWN = "unknown"
    ASKING = "asking"
    HELD = "held"
    ELSEWHERE = "elsewhere"


class Event(StrEnum):
    """What can happen to a hold."""

    ASK = "ask"
    GRANTED = "granted"
    DENIED = "denied"
    FAILED = "failed"
    RENEWED = "renewed"
    LOST = "lost"
    RELEASED = "released"


TRANSITIONS: dict[State, dict[Event, State]] = {
    State.UNKNOWN: {Event.ASK: State.ASKING},
    State.ASKING: {Event.GRANTED: State.HELD, Event.DENIED: State.ELSEWHERE, Event.FAILED: State.UNKNOWN},
    State.HELD: {Event.RENEWED: State.HELD, Event.LOST: State.UNKNOWN, Event.RELEASED: State.UNKNOWN},
    # Where it was last is where to send; once that node does not answer or the lease has run out, the service is asked again.
    State.ELSEWHERE: {Event.ASK: State.ASKING, Event.LOST: State.UNKNOWN},
}


def advance(state: State, event: Event) -> State | None:
    """Return the next state, or None where the event comes too late to mean anything."""
    return TRANSITIONS[state].get(event)
