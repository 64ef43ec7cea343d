"""How far apart commits are. A commit costs as much as dozens of calls, so calls that end soon after one share the next.

The distance is half of what the last commit took, since that is what a shared commit saves: where commits are quick, or few
calls come, a call that is open for long makes no other call wait. While several users write, the last commit may have been long
by the burst or the document of one of them, for which the others have waited already. Then the shortest of the latest
commits counts, and only where a commit serves many callers; records that a commit left to the next one wait no longer.
"""

from __future__ import annotations

from collections import deque
from typing import Final

GATHER_S: Final = 0.005  # how long records are gathered while a caller waits for them, at most
COMMITS_COMPARED: Final = 16  # the shortest of them tells what a commit takes by itself
CALLERS_MANY: Final = 8  # for so many callers, one commit less is worth a wait, also while users wait for each other


class Spacing:
    """The latest commits of one journal, in seconds of the loop's clock."""

    __slots__ = ("_begun_s", "_ended_s", "_has_left", "_took_s", "served")

    def __init__(self) -> None:
        self._begun_s = self._ended_s = 0.0  # of the last commit
        self._has_left = False  # whether it left records of users who had more than their share
        self._took_s: deque[float] = deque(maxlen=COMMITS_COMPARED)
        self.served = 0  # callers that waited for it

    def begin(self, now_s: float, served: int, *, has_left: bool) -> None:
        """Note that a commit begins, for so many callers."""
        self._begun_s, self.served, self._has_left = now_s, served, has_left

    def end(self, now_s: float) -> None:
        """Note that the commit has ended."""
        self._ended_s = now_s
        self._took_s.append(now_s - self._begun_s)

    def delay_s(self, now_s: float, *, is_shared: bool) -> float:
        """Return how long the next commit is to wait; `is_shared` tells whether several users write."""
        distance_s = min((self._ended_s - self._begun_s) / 2, GATHER_S)
        if is_shared:
            is_worth_it = self.served >= CALLERS_MANY and not self._has_left
            distance_s = min(distance_s, min(self._took_s) / 2) if is_worth_it else 0.0
        return max(self._ended_s + distance_s - now_s, 0.0)
