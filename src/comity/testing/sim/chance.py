"""Everything a seed decides comes from streams with names, so that one more draw in one of them shifts no other."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import time
from collections.abc import Iterator
from typing import Any, Final

from comity.engines.clock import SystemIds
from comity.testing.sim.loop import SimLoop

EPOCH_NS: Final = 1_700_000_000_000_000_000


def stream(seed: int, name: str) -> random.Random:
    """Return the stream of a name: the same for the same seed in every process."""
    return random.Random(f"{seed}:{name}")  # noqa: S311  chance that can be repeated is the point


class SimClock:
    """The clock of one simulated process: ahead or behind, and it may jump forward; never backward, as the port asks."""

    __slots__ = ("_loop", "offset_ns")

    def __init__(self, loop: SimLoop, offset_ns: int = 0) -> None:
        self._loop = loop
        self.offset_ns = offset_ns

    def now_ns(self) -> int:
        """Return nanoseconds since the epoch, as this process takes them."""
        return EPOCH_NS + self.offset_ns + round(self._loop.time() * 1e9)


class SimIds(SystemIds):
    """Ids as the real ones are made, from the seed."""

    __slots__ = ()

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._random = chance
        self._bits = chance.getrandbits

    def entropy(self) -> bytes:
        """Return 16 bytes."""
        return self._random.randbytes(16)


@contextlib.contextmanager
def replaced(*twins: tuple[object, str, Any]) -> Iterator[None]:
    """Let twins stand where attributes of these names are, until the end."""
    originals = [getattr(where, name) for where, name, _ in twins]
    for where, name, twin in twins:
        setattr(where, name, twin)
    try:
        yield
    finally:
        for (where, name, _), original in zip(twins, originals, strict=True):
            setattr(where, name, original)


@contextlib.contextmanager
def sealed(seed: int, loop: SimLoop) -> Iterator[None]:
    """Give code that does not ask its ports the time and chance of the simulation all the same.

    A net, not a wall: `datetime.now()` reads the clock in C, and a name bound when a module was imported escapes.
    """
    chance = stream(seed, "sealed")

    def seconds() -> float:
        return EPOCH_NS / 1e9 + loop.time()

    def nanoseconds() -> int:
        return EPOCH_NS + round(loop.time() * 1e9)

    twins = (
        (time, "time", seconds),
        (time, "monotonic", loop.time),
        (time, "perf_counter", loop.time),
        (time, "time_ns", nanoseconds),
        (time, "monotonic_ns", nanoseconds),
        (time, "perf_counter_ns", nanoseconds),
        (os, "urandom", chance.randbytes),
        (random, "_urandom", chance.randbytes),
    )
    state = random.getstate()
    was_collecting = gc.isenabled()
    gc.disable()  # when it runs depends on everything allocated before, and it may run code
    random.seed(f"{seed}:random")
    try:
        with replaced(*twins):
            yield
    finally:
        random.setstate(state)
        if was_collecting:
            gc.enable()
