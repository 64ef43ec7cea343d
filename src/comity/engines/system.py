"""Real time and real randomness."""

from __future__ import annotations

import os
import random
import time
from typing import Final

_RANDOM_DIGITS: Final = 18  # of a UUID of version 7, which has time, version and variant in the others
_POOL_BYTES: Final = 256 * _RANDOM_DIGITS // 2


class SystemClock:
    """The monotonic clock, anchored to the epoch when it was made: a jump of the wall clock moves no deadline."""

    __slots__ = ("_offset",)

    def __init__(self) -> None:
        self._offset = time.time_ns() - time.monotonic_ns()

    def now_ns(self) -> int:
        """Return nanoseconds since the epoch."""
        return self._offset + time.monotonic_ns()


class SystemIds:
    """Time-ordered UUIDs (version 7) and W3C trace ids. They must be unique, not secret."""

    __slots__ = ("_at", "_bits", "_digits", "_ms", "_plain", "_prefix", "_random")

    def __init__(self) -> None:
        self._random = random.Random()  # noqa: S311  seeded by the system; ids are no secrets
        self._bits = self._random.getrandbits
        self._ms = 0  # and how it is written: many ids are made within one millisecond
        self._prefix = self._plain = ""
        self._digits, self._at = "", 0  # random ones, made many at a time

    def new_request(self, now_ms: int) -> tuple[str, str]:
        """Return a UUID whose first 48 bits are the time, and its digits as trace id, so that one leads to the other."""
        if now_ms != self._ms:
            self._ms, self._plain = now_ms, f"{now_ms:012x}7"
            self._prefix = f"{self._plain[:8]}-{self._plain[8:12]}-7"
        at = self._at
        if at == len(self._digits):
            self._digits, at = self._random.randbytes(_POOL_BYTES).hex(), 0
        self._at = at + _RANDOM_DIGITS
        high, low = self._digits[at : at + 3], self._digits[at + 3 : at + _RANDOM_DIGITS]
        return f"{self._prefix}{high}-8{low[:3]}-{low[3:]}", f"{self._plain}{high}8{low}"

    def trace_id(self) -> str:
        """Return 32 hex digits, not all zero."""
        return f"{self._bits(128) | 1:032x}"

    def span_id(self) -> str:
        """Return 16 hex digits, not all zero."""
        return f"{self._bits(64) | 1:016x}"

    def entropy(self) -> bytes:
        """Return 16 bytes nobody can guess."""
        return os.urandom(16)

    def chance(self) -> float:
        """Return a number from 0 to below 1."""
        return self._random.random()
