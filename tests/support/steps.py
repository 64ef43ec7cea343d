"""How much work a function does, counted and not timed: the same on every machine, however loaded it is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

GROWTH_MAX = 1.25  # of the steps per character, where the text is four times as long
STEPS_MAX = 3_000_000


def count_steps(function: Callable[[], object], steps_max: int = STEPS_MAX) -> int:
    """Return how many lines of Python run while `function` does; fail once they exceed `steps_max`.

    The work inside one call of C code, such as a search with a regular expression, is one step: what hangs there is ended by
    the suite's time limit for a test.
    """
    steps = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal steps
        steps += event == "line"
        assert steps <= steps_max, f"more than {steps_max:,} steps"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return steps


def grows_no_faster_than_the_text(read: Callable[[str], object], text: str, start: str = "") -> bool:
    """Return whether four times as much of `text` takes about four times as many steps to read; a square would be sixteen."""
    read(start + text)  # what is done once in a process
    short, long = (count_steps(lambda times=times: read(start + text * times)) for times in (1, 4))
    return long <= 4 * GROWTH_MAX * short
