"""The clock, and sources of ids and randomness."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Time that never runs backwards, anchored to the epoch."""

    def now_ns(self) -> int:
        """Return nanoseconds since the epoch."""
        ...


class Ids(Protocol):
    """Unique ids and randomness."""

    def new_request(self, now_ms: int) -> tuple[str, str]:
        """Return a new request id, which sorts after those made earlier, and the trace id that goes with it."""
        ...

    def trace_id(self) -> str:
        """Return 32 hex digits."""
        ...

    def span_id(self) -> str:
        """Return 16 hex digits."""
        ...

    def entropy(self) -> bytes:
        """Return 16 unpredictable bytes."""
        ...

    def chance(self) -> float:
        """Return a random number in [0, 1)."""
        ...
