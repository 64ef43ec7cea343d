"""The circuit breaker of one capability of one agent.

Closed: calls pass and consecutive failures count. Open: calls are turned away until `open_ms` has gone. Half-open: at most
`probes` calls pass; as many successes close it, one failure opens it again. A probe that ends as neither (cancelled, refused)
gives its place back, so that the breaker can never be stuck half-open.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class State(StrEnum):
    """What the breaker lets through."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Event(StrEnum):
    """What can happen to a breaker, guards already decided."""

    THRESHOLD_REACHED = "threshold_reached"
    TRIPPED = "tripped"
    COOLED_DOWN = "cooled_down"
    PROBE_FAILED = "probe_failed"
    PROBES_PASSED = "probes_passed"


TRANSITIONS: dict[State, dict[Event, State]] = {
    State.CLOSED: {Event.THRESHOLD_REACHED: State.OPEN, Event.TRIPPED: State.OPEN},
    State.OPEN: {Event.COOLED_DOWN: State.HALF_OPEN, Event.TRIPPED: State.OPEN},
    State.HALF_OPEN: {
        Event.PROBE_FAILED: State.OPEN,
        Event.TRIPPED: State.OPEN,
        Event.PROBES_PASSED: State.CLOSED,
    },
}


class Policy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a breaker opens and how it recovers."""

    failures_max: int = 5
    open_ms: int = 30_000
    probes: int = 2

    def __post_init__(self) -> None:
        if self.failures_max < 1 or self.open_ms < 1 or self.probes < 1:
            raise ValueError("a breaker needs failures_max, open_ms and probes of at least 1")


class Breaker:
    """One breaker. Time comes in with every verb."""

    __slots__ = ("_failures", "_passed", "_policy", "_probing", "_reopens_at", "_time", "state")

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.state = State.CLOSED
        self._failures = 0  # consecutive, while closed
        self._reopens_at = 0
        self._time = 0  # how often it was half-open
        self._probing = 0  # probes under way, while half-open
        self._passed = 0  # probes that succeeded, while half-open

    def retry_after_ms(self, now_ms: int) -> int | None:
        """Return None if a call may pass now, else how long to wait."""
        match self.state:
            case State.CLOSED:
                return None
            case State.OPEN:
                left = self._reopens_at - now_ms
                return left if left > 0 else None
            case State.HALF_OPEN:
                # Places for probes are taken; one of them will end and decide.
                return None if self._probing + self._passed < self._policy.probes else 1_000

    def enter(self, now_ms: int) -> int:
        """Take note that a call passes; return for which half-open time it is a probe, 0 for none.

        Call only after `retry_after_ms` gave None. What is returned comes back with how the call ended: a probe of an earlier
        half-open time says nothing about this one.
        """
        if self.state is State.OPEN and now_ms >= self._reopens_at:
            self._move(Event.COOLED_DOWN)
            self._time += 1
        if self.state is not State.HALF_OPEN:
            return 0
        self._probing += 1
        return self._time

    def succeeded(self, *, probe: int) -> None:
        """The call gave a result."""
        if self.state is State.CLOSED:
            self._failures = 0
        elif self._is_waited_for(probe):
            self._probing -= 1
            self._passed += 1
            if self._passed >= self._policy.probes:
                self._move(Event.PROBES_PASSED)
                self._failures = 0

    def failed(self, now_ms: int, *, probe: int, trips: bool = False) -> None:
        """The call failed; `trips` means that trying again is pointless until someone repairs it."""
        if trips:
            self._open(Event.TRIPPED, now_ms)
        elif self.state is State.CLOSED:
            self._failures += 1
            if self._failures >= self._policy.failures_max:
                self._open(Event.THRESHOLD_REACHED, now_ms)
        elif self._is_waited_for(probe):
            self._open(Event.PROBE_FAILED, now_ms)

    def released(self, *, probe: int) -> None:
        """The call ended without saying anything about the capability's health."""
        if self._is_waited_for(probe):
            self._probing -= 1

    def _is_waited_for(self, probe: int) -> bool:
        return self.state is State.HALF_OPEN and probe == self._time

    def _open(self, event: Event, now_ms: int) -> None:
        self._move(event)
        self._failures = self._probing = self._passed = 0
        self._reopens_at = now_ms + self._policy.open_ms

    def _move(self, event: Event) -> None:
        self.state = TRANSITIONS[self.state][event]
