"""When to try an implementation again: transient failures only, later each time, never past the deadline."""

from __future__ import annotations

from msgspec import Struct


class Retry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`attempts` counts the first try; jitter is the share of the delay that chance may take away."""

    attempts: int = 1
    delay_ms: int = 100
    multiplier: float = 2.0
    delay_ms_max: int = 5_000
    jitter: float = 0.5

    def __post_init__(self) -> None:
        if not (
            1 <= self.attempts <= 100
            and 0 <= self.delay_ms <= self.delay_ms_max
            and 1 <= self.multiplier <= 100  # more than that, raised to `attempts`, is no longer a number
            and 0 <= self.jitter <= 1
        ):
            raise ValueError(
                "retry needs attempts and multiplier from 1 to 100, 0 <= delay_ms <= delay_ms_max, jitter from 0 to 1"
            )

    def pause_ms(self, failures: int, *, left_ms: float, chance: float) -> float | None:
        """Return how long to wait after `failures` failed attempts, or None if there is no attempt or no time left."""
        pause = self.wait_ms(failures, chance=chance)
        return pause if failures < self.attempts and pause < left_ms else None

    def wait_ms(self, failures: int, *, chance: float) -> float:
        """Return how long to wait after `failures` failed attempts where nothing limits their number."""
        full = min(self.delay_ms * self.multiplier ** (failures - 1), self.delay_ms_max)
        return full * (1 - self.jitter * chance)
