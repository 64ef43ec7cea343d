"""The circuit breaker of one capability of one agent.

Closed: calls pass; `failures_max` failures in a row open it, and so does a share of `rate_max` failures among at least
`rate_calls_min` calls within `rate_window_ms`. Open: calls are turned away until `open_ms` has gone. Half-open: at most
`probes` calls pass; as many successes close it, one failure opens it again. A probe that ends as neither (cancelled, refused)
gives its place back, so that the breaker can never be stuck half-open.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from msgspec import Struct

SLOTS: Final = 12  # of a window


class State(StrEnum):
    """What the breaker lets through."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Event(StrEnum):
    """What can happen to a breaker, guards already decided."""

    THRESHOLD_REACHED = "threshold_reached"
    RATE_REACHED = "rate_reached"
    TRIPPED = "tripped"
    COOLED_DOWN = "cooled_down"
    PROBE_FAILED = "probe_failed"
    PROBES_PASSED = "probes_passed"


# Bare names for the path of a call; see `core/call/machine.py`.
CLOSED, OPEN, HALF_OPEN = State

TRANSITIONS: dict[State, dict[Event, State]] = {
    State.CLOSED: {Event.THRESHOLD_REACHED: State.OPEN, Event.RATE_REACHED: State.OPEN, Event.TRIPPED: State.OPEN},
    State.OPEN: {Event.COOLED_DOWN: State.HALF_OPEN, Event.TRIPPED: State.OPEN},
    State.HALF_OPEN: {
        Event.PROBE_FAILED: State.OPEN,
        Event.TRIPPED: State.OPEN,
        Event.PROBES_PASSED: State.CLOSED,
    },
}


class Policy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a breaker opens and how it recovers."""

    failures_max: int = 5  # in a row
    open_ms: int = 30_000
    probes: int = 2
    rate_max: float = 0.5  # the share of failures that opens it
    rate_calls_min: int = 20  # the least number of calls for which the share counts
    rate_window_ms: int = 60_000

    def __post_init__(self) -> None:
        if min(self.failures_max, self.open_ms, self.probes, self.rate_calls_min, self.rate_window_ms) < 1:
            raise ValueError("a breaker needs failures_max, open_ms, probes, rate_calls_min and rate_window_ms of at least 1")
        if not 0 < self.rate_max <= 1:
            raise ValueError(f"the rate_max of a breaker lies above 0 and is at most 1, not {self.rate_max!r}")


class Window:
    """How many calls ended in the last `window_ms`, and how many of them failed.

    Counted in `SLOTS` slots of time, so it takes the same memory under any load and forgets a slot at a time, never late.
    """

    __slots__ = ("_ended", "_failed", "_slot", "_slot_ms")

    def __init__(self, window_ms: int) -> None:
        self._slot_ms = max(window_ms // SLOTS, 1)
        self._slot = 0  # the newest, by number since time began
        self._ended = [0] * SLOTS
        self._failed = [0] * SLOTS

    def note(self, now_ms: int, *, failed: bool) -> tuple[int, int]:
        """Count one more end; return how many ended and how many of them failed."""
        slot = now_ms // self._slot_ms
        for gone in range(max(self._slot, slot - SLOTS) + 1, slot + 1):
            self._ended[gone % SLOTS] = self._failed[gone % SLOTS] = 0
        self._slot = max(slot, self._slot)  # a clock that was set back counts into the newest
        self._ended[self._slot % SLOTS] += 1
        self._failed[self._slot % SLOTS] += failed
        return sum(self._ended), sum(self._failed)


class Breaker:
    """One breaker. Time comes in with every verb."""

    __slots__ = ("_failures", "_moved", "_passed", "_probing", "_reopens_at", "_time", "_window", "policy", "state")

    def __init__(self, policy: Policy, moved: Callable[[str, str, str], None] | None = None) -> None:
        self.policy = policy
        self._moved = moved  # told of each step before it is taken: `breaker`, its state, the event
        self.state = State.CLOSED
        self._failures = 0  # consecutive, while closed
        self._window = Window(policy.rate_window_ms)  # while closed
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
                return None if self._probing + self._passed < self.policy.probes else 1_000

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

    def succeeded(self, now_ms: int, *, probe: int) -> None:
        """The call gave a result."""
        if self.state is State.CLOSED:
            self._failures = 0
            self._window.note(now_ms, failed=False)
        elif self._is_waited_for(probe):
            self._probing -= 1
            self._passed += 1
            if self._passed >= self.policy.probes:
                self._move(Event.PROBES_PASSED)
                self._failures = 0
                self._window = Window(self.policy.rate_window_ms)

    def failed(self, now_ms: int, *, probe: int, trips: bool = False) -> None:
        """The call failed; `trips` means that trying again is pointless until the target is repaired."""
        if trips:
            self._open(Event.TRIPPED, now_ms)
        elif self.state is State.CLOSED:
            self._failures += 1
            ended, failed = self._window.note(now_ms, failed=True)
            if self._failures >= self.policy.failures_max:
                self._open(Event.THRESHOLD_REACHED, now_ms)
            elif ended >= self.policy.rate_calls_min and failed >= self.policy.rate_max * ended:
                self._open(Event.RATE_REACHED, now_ms)
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
        self._reopens_at = now_ms + self.policy.open_ms

    def _move(self, event: Event) -> None:
        if self._moved is not None:
            self._moved("breaker", self.state, event)
        self.state = TRANSITIONS[self.state][event]
