"""Real time and real randomness."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from typing import Final

_NEVER_NS: Final = 1 << 63
_POOLED: Final = 256  # tails of ids that are made at a time
_TAIL_BYTES: Final = 10
# What the first and third byte of a tail say of a UUID, its version and variant; their other halves are as random as the rest.
_VERSION_7: Final = bytes(0x70 | byte & 0x0F for byte in range(256))
_VARIANT: Final = bytes(0x80 | byte & 0x0F for byte in range(256))


class SystemClock:
    """The system's time, the same in every process and right after a suspend or a step forward; it never goes backwards.

    When the system's time is set back, this clock goes on at half speed until the system's time has caught up with it.
    """

    __slots__ = ("_floor_ns", "_steady", "_step", "_wall")

    def __init__(self, wall: Callable[[], int] = time.time_ns, steady: Callable[[], int] = time.monotonic_ns) -> None:
        self._wall = wall
        self._steady = steady
        self._floor_ns = 0  # below which the time was set back: the last one told, and any while this clock goes slower
        self._step: tuple[int, int] | None = None  # since the time was set back: steady time and own time of that moment

    def now_ns(self) -> int:
        """Return nanoseconds since the epoch."""
        now_ns = self._wall()
        if now_ns >= self._floor_ns:  # one comparison: every call asks three times
            self._floor_ns = now_ns
            return now_ns
        return self._slowed(now_ns)

    def _slowed(self, now_ns: int) -> int:
        if self._step is None:
            self._step, self._floor_ns = (self._steady(), self._floor_ns), _NEVER_NS
        since, from_ns = self._step
        own_ns = from_ns + (self._steady() - since) // 2
        if now_ns < own_ns:
            return own_ns
        self._step, self._floor_ns = None, now_ns
        return now_ns


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
            self._ms, self._prefix = now_ms, now_ms.to_bytes(6).hex()  # a format would take four times as long
        if not self._tails:
            tails = bytearray(self._random.randbytes(_TAIL_BYTES * _POOLED))
            tails[::_TAIL_BYTES] = tails[::_TAIL_BYTES].translate(_VERSION_7)
            tails[2::_TAIL_BYTES] = tails[2::_TAIL_BYTES].translate(_VARIANT)
            self._tails = tails.hex(" ", _TAIL_BYTES).split(" ")
        found = self._prefix + self._tails.pop()
        return found, found

    def trace_id(self) -> str:
        """Return 32 hex digits, not all zero."""
        return f"{self._bits(128) | 1:032x}"

    def span_id(self) -> str:
        """Return 16 hex digits, not all zero."""
        return f"{self._bits(64) | 1:016x}"

    def entropy(self) -> bytes:
        """Return 16 unpredictable bytes."""
        return os.urandom(16)

    def chance(self) -> float:
        """Return a number from 0 to below 1."""
        return self._random.random()
