"""The pause between commits. A commit costs as much as dozens of calls, so calls that end soon after one share the next.

The pause is half the duration of the last commit, which is what a shared commit saves: if commits are quick, or calls are few,
nothing waits. While several users write, the last commit may have been long because of one user's burst or document, for which
the others have already waited. Then the shortest of the latest commits counts, and only if a commit serves many callers;
records that a commit left to the next one wait no longer.
"""

from __future__ import annotations

from collections import deque
from typing import Final

GATHER_S: Final = 0.005  # how long records are gathered at most while a caller waits
COMMITS_COMPARED: Final = 16  # the shortest of them is the cost of a commit itself
CALLERS_MANY: Final = 8  # from this many callers on, saving a commit is worth a wait even with several users


class Spacing:
    """The latest commits of one journal, in seconds of the loop's clock."""

    __slots__ = ("_begun_s", "_ended_s", "_has_left", "_took_s", "served")

    def __init__(self) -> None:
        self._begun_s = self._ended_s = 0.0  # of the last commit
        self._has_left = False  # whether it left records of users who had more than their share
        self._took_s: deque[float] = deque(maxlen=COMMITS_COMPARED)
        self.served = 0  # callers that waited for it

    def begin(self, now_s: float, served: int, *, has_left: bool) -> None:
        """Note that a commit begins, and how many callers wait for it."""
        self._begun_s, self.served, self._has_left = now_s, served, has_left

    def end(self, now_s: float) -> None:
        """Note that the commit has ended."""
        self._ended_s = now_s
        self._took_s.append(now_s - self._begun_s)

    def delay_s(self, now_s: float, *, is_shared: bool) -> float:
        """Return how many seconds the next commit waits; `is_shared` is True if several users write."""
        distance_s = min((self._ended_s - self._begun_s) / 2, GATHER_S)
        if is_shared:
            is_worth_it = self.served >= CALLERS_MANY and not self._has_left
            distance_s = min(distance_s, min(self._took_s) / 2) if is_worth_it else 0.0
        return max(self._ended_s + distance_s - now_s, 0.0)
