"""Real time and real randomness."""

from __future__ import annotations

import os
import random
import time
from typing import Final

_POOLED: Final = 256  # random tails of ids that are made at a time
_TAIL_BYTES: Final = 9


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

    __slots__ = ("_bits", "_ms", "_prefix", "_random", "_tails")

    def __init__(self) -> None:
        self._random = random.Random()  # noqa: S311  seeded by the system; ids are no secrets
        self._bits = self._random.getrandbits
        self._ms = 0  # and how it is written: many ids are made within one millisecond
        self._prefix = ""
        self._tails: list[str] = []

    def new_request(self, now_ms: int) -> tuple[str, str]:
        """Return the digits of a UUID whose first 48 bits are the time, as request id and as trace id."""
        if now_ms != self._ms:
            self._ms, self._prefix = now_ms, f"{now_ms:012x}7"
        if not self._tails:
            digits = self._random.randbytes(_TAIL_BYTES * _POOLED).hex()
            step = _TAIL_BYTES * 2
            self._tails = [f"{digits[at : at + 3]}8{digits[at + 3 : at + step]}" for at in range(0, len(digits), step)]
        found = self._prefix + self._tails.pop()
        return found, found

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
