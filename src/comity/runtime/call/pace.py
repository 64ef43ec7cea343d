"""The pace of what can wait: bursts of one user, long texts and calls that end by one deadline have half of the loop, together.

Each of them works in small steps. When their steps have taken some time, none of them begins for as long again. In that rest
the loop is idle or serves ordinary calls, and the thread that writes to the store gets the interpreter without waiting for it:
a loop with many short turns gives the interpreter up in each of them and takes it back before a waiting thread wakes.
"""

from __future__ import annotations

from typing import Final

BUSY_S: Final = 0.001  # of steps, until the next rest
REST_S: Final = 0.002  # at most: a step may have been long because another program had the processor


class Pace:
    """When the next step of what can wait may begin; one per node. All times are those of the loop."""

    __slots__ = ("_busy_s", "_until_s")

    def __init__(self) -> None:
        self._busy_s = 0.0  # since the last rest
        self._until_s = 0.0  # the end of the rest

    def spend(self, busy_s: float, now_s: float) -> None:
        """Note a step that took so long and has just ended."""
        self._busy_s += busy_s
        if self._busy_s >= BUSY_S:
            self._until_s = now_s + min(self._busy_s, REST_S)
            self._busy_s = 0.0

    def rest_s(self, now_s: float) -> float:
        """Return how long the next step has to wait; 0 if it may begin."""
        return max(self._until_s - now_s, 0.0)
