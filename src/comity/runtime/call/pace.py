"""Throttles background work (bursts of one user, long texts, many timeouts at one deadline) in favour of other users' calls.

Background work runs in small steps. While a user with few calls has just called, the steps get a seventh of the loop's time
(timeouts get half of it: they must not be late). In the rests between steps the loop serves that call, and the thread that
writes to the store gets the GIL: a loop with many short turns releases the GIL in each, but takes it back before a waiting
thread wakes. If one user is alone, or all users make many calls, there are no rests. See ADR 189.
"""

from __future__ import annotations

from typing import Final, TypeAlias

BUSY_S: Final = 0.001  # steps run this long in total between two rests
STAND_BACK: Final = 6  # a rest is this many times as long as the steps before it
REST_S: Final = 0.010  # longest rest: a step may have been long because another process had the CPU
PRESSED_S: Final = 0.008  # a call is assumed to be in progress this long after it entered
LOOK_S: Final = 0.001  # how often a rest checks whether such a call is still in progress
FEW: Final = 20  # a user with at most this many calls in `WINDOW_S` has few calls
WINDOW_S: Final = 0.5

User: TypeAlias = tuple[str, str]  # tenant and id


class Pace:
    """Decides when the next step of background work may begin; one per node. All times are those of the loop."""

    __slots__ = ("_busy_s", "_counts", "_counts_from_s", "_pressed_until_s", "_until_s")

    def __init__(self) -> None:
        self._busy_s = 0.0  # since the last rest
        self._until_s = 0.0  # the end of the rest
        self._pressed_until_s = 0.0  # the latest call of a user with few calls is taken to be under way until then
        self._counts: dict[User, int] = {}  # calls of each user
        self._counts_from_s = 0.0

    def spend(self, busy_s: float, now_s: float) -> None:
        """Note that a step has just ended and took `busy_s`."""
        self._busy_s += busy_s
        if self._busy_s >= BUSY_S:
            self._until_s = now_s + min(self._busy_s * STAND_BACK, REST_S)
            self._busy_s = 0.0

    def rest_s(self, now_s: float) -> float:
        """Return 0 if the next step may begin, else the seconds after which to ask again."""
        return min(self._until_s - now_s, LOOK_S) if now_s < self._until_s and self.is_pressed(now_s) else 0.0

    def is_pressed(self, now_s: float) -> bool:
        """Return whether a user with few calls called within the last `PRESSED_S`."""
        return now_s < self._pressed_until_s

    def note_call(self, user: User, now_s: float) -> None:
        """Note a call that enters while others are under way."""
        if now_s - self._counts_from_s > WINDOW_S:
            self._counts.clear()
            self._counts_from_s = now_s
        self._counts[user] = self._counts.get(user, 0) + 1
        if self.has_few(user):
            self._pressed_until_s = now_s + PRESSED_S

    def has_few(self, user: User) -> bool:
        """Return whether a user made at most `FEW` calls in the current window."""
        return self._counts.get(user, 0) <= FEW
