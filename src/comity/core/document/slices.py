"""Long work that can pause: a generator that yields between slices of about a millisecond and returns its result.

The work itself knows no clock and no loop. A caller that has little to do, or no loop to share, runs it to its end at once.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator
from typing import Final, TypeAlias, TypeVar

A = TypeVar("A")
T = TypeVar("T")
Sliced: TypeAlias = Generator[None, None, T]
# From this size on, reading a document creates enough objects for the garbage collector to run several times.
ONE_GO_BYTES: Final = 32_768


def whole(work: Sliced[T]) -> T:
    """Run sliced work to its end without a pause and return its result."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result


def in_one_go(step: Callable[[A], T], document: A) -> T:
    """Return `step(document)`, with the garbage collector paused: for the one step of long work that cannot be cut.

    The objects of a JSON document form no cycle. Collecting while they are made takes up to twice as long as making them.
    """
    is_on = gc.isenabled()
    gc.disable()
    try:
        return step(document)
    finally:
        if is_on:
            gc.enable()
