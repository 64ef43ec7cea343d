"""Long work that can pause: a generator that yields between slices of about a millisecond and returns its result.

The work itself knows no clock and no loop. A caller that has little to do, or no loop to share, runs it to its end at once.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Sliced: TypeAlias = Generator[None, None, T]


def whole(work: Sliced[T]) -> T:
    """Run sliced work to its end without a pause and return its result."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result
