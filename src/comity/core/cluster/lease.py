"""The life of a node's hold on one address, and how leases are granted: which node may run an agent, under which token.

A node keeps all its leases with one beat. One that stops without a word loses what it held once its time is over. A holder that
was only paused or cut off may still believe in it: each grant carries a token greater than all before it for that address, and
the store refuses what is written under an older one. The lease makes two holders unlikely, the token makes the former one
harmless.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

# How long the leases of a node last without a beat, and how often it beats.
LEASE_MS: Final = 5_000
RENEW_MS: Final = LEASE_MS // 3


class Lease(Struct, frozen=True, gc=False):
    """Which node holds an address. `left_ms` counts from the answer of the lease service: no two clocks need to agree."""

    address: str
    holder: str
    token: int
    left_ms: int


class Grant(Struct, frozen=True, gc=False):
    """What a lease service remembers of an address, for ever: its token never goes back."""

    holder: str  # empty once it was given back
    token: int


class LeaseTable:
    """The leases of all nodes. Times are those of the one clock that the caller reads."""

    def __init__(self, lease_ms: int = LEASE_MS) -> None:
        self._lease_ms = lease_ms
        self._grants: dict[str, Grant] = {}
        self._until: dict[str, int] = {}  # by node: until when it counts as alive

    def keep(self, node_id: str, *, now_ms: int) -> int | None:
        """Take the beat of a node and return how long it counts.

        None for a node whose time was over: everything it held is free, and it begins anew.
        """
        was_over = self._until.get(node_id, now_ms + 1) <= now_ms
        self._until[node_id] = now_ms + self._lease_ms
        if not was_over:
            return self._lease_ms
        for address, grant in self._grants.items():
            if grant.holder == node_id:
                self._grants[address] = Grant("", grant.token)
        return None

    def acquire(self, address: str, node_id: str, *, now_ms: int) -> Lease | None:
        """Return who holds the address now: the node that asks, if it was free or its holder's time is over.

        A holder that asks again, because the answer was lost, keeps its token. None for a node whose own time is over.
        """
        self._until.setdefault(node_id, now_ms + self._lease_ms)
        if self._left_ms(node_id, now_ms) <= 0:
            return None
        held = self.find(address, now_ms=now_ms)
        if held is not None:
            return held
        before = self._grants.get(address)
        token = 1 if before is None else before.token + 1
        self._grants[address] = Grant(node_id, token)
        return Lease(address, node_id, token, self._left_ms(node_id, now_ms))

    def find(self, address: str, *, now_ms: int) -> Lease | None:
        """Return who holds an address."""
        held = self._grants.get(address)
        left_ms = 0 if held is None or not held.holder else self._left_ms(held.holder, now_ms)
        return None if held is None or left_ms <= 0 else Lease(address, held.holder, held.token, left_ms)

    def release(self, lease: Lease) -> None:
        """Free an address; a lease that was lost already changes nothing."""
        if self._grants.get(lease.address) == Grant(lease.holder, lease.token):
            self._grants[lease.address] = Grant("", lease.token)

    def expire(self, address: str) -> None:
        """Free an address as if the time of its holder were over; the holder is not told."""
        held = self._grants.get(address)
        if held is not None:
            self._grants[address] = Grant("", held.token)

    def bury(self, node_id: str, *, now_ms: int) -> None:
        """Let the time of a node be over now; it is not told."""
        self._until[node_id] = now_ms

    def _left_ms(self, node_id: str, now_ms: int) -> int:
        return self._until.get(node_id, now_ms) - now_ms


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
    LOST = "lost"
    RELEASED = "released"


TRANSITIONS: dict[State, dict[Event, State]] = {
    State.UNKNOWN: {Event.ASK: State.ASKING},
    State.ASKING: {Event.GRANTED: State.HELD, Event.DENIED: State.ELSEWHERE, Event.FAILED: State.UNKNOWN},
    State.HELD: {Event.LOST: State.UNKNOWN, Event.RELEASED: State.UNKNOWN},
    # Where it was last is where to send; once that node does not answer or the lease has run out, the service is asked again.
    State.ELSEWHERE: {Event.ASK: State.ASKING, Event.LOST: State.UNKNOWN},
}


def advance(state: State, event: Event) -> State | None:
    """Return the next state, or None where the event comes too late to mean anything."""
    return TRANSITIONS[state].get(event)
