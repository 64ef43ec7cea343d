"""Leases of addresses and their fencing tokens: which node may run an agent.

One heartbeat renews all leases of a node. A node that stops loses its leases when they expire. A suspended or partitioned
holder may still believe that it holds one: each grant of an address has a greater fencing token than all before, and the store
refuses records with an older one. The lease makes two holders unlikely, the token makes the former holder harmless.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

# How long leases last without a heartbeat, and the interval of heartbeats.
LEASE_MS: Final = 5_000
RENEW_MS: Final = LEASE_MS // 3


class Lease(Struct, frozen=True, gc=False):
    """The holder of an address. `left_ms` counts from the answer of the lease service, so clocks need not agree."""

    address: str
    holder: str
    token: int
    left_ms: int


class Grant(Struct, frozen=True, gc=False):
    """What a lease service stores of an address, for ever: its token never decreases."""

    holder: str  # empty once it is released
    token: int


class LeaseTable:
    """The leases of all nodes. All times are of one clock."""

    def __init__(self, lease_ms: int = LEASE_MS) -> None:
        self._lease_ms = lease_ms
        self._grants: dict[str, Grant] = {}
        self._until: dict[str, int] = {}  # by node: until when it counts as alive

    def keep(self, node_id: str, *, now_ms: int) -> int | None:
        """Take a node's heartbeat and return for how many ms it is valid.

        Return None if it came too late: the node's leases have expired, and it starts without any.
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
        """Grant a free or expired lease to the asking node; return the current lease of the address.

        A holder that asks again, because the answer was lost, keeps its token. Return None if the asking node has expired.
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
        """Return the current lease of an address, or None."""
        held = self._grants.get(address)
        left_ms = 0 if held is None or not held.holder else self._left_ms(held.holder, now_ms)
        return None if held is None or left_ms <= 0 else Lease(address, held.holder, held.token, left_ms)

    def release(self, lease: Lease) -> None:
        """Release a lease; a lost lease changes nothing."""
        if self._grants.get(lease.address) == Grant(lease.holder, lease.token):
            self._grants[lease.address] = Grant("", lease.token)

    def expire(self, address: str) -> None:
        """Free an address as if its lease had expired; the holder is not notified."""
        held = self._grants.get(address)
        if held is not None:
            self._grants[address] = Grant("", held.token)

    def bury(self, node_id: str, *, now_ms: int) -> None:
        """Expire all leases of a node now; it is not notified."""
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
    # Calls go to the last known holder; if it does not answer or the lease has expired, the lease service is asked again.
    State.ELSEWHERE: {Event.ASK: State.ASKING, Event.LOST: State.UNKNOWN},
}


def advance(state: State, event: Event) -> State | None:
    """Return the next state, or None if the event is invalid in this state, as a late one is."""
    return TRANSITIONS[state].get(event)
