"""The pace of what can wait: bursts of one user, long texts and calls that end by one deadline stand back for other users.

Each of them works in small steps. While a user who makes few calls has just called, their steps have a seventh of the loop
(deadlines half of it, since ends must not be late): in the rests the loop serves that call, and the thread that writes to the
store gets the interpreter without waiting for it. A loop with many short turns gives the interpreter up in each of them and
takes it back before a waiting thread wakes. Where one user is alone, or all users make many calls, no call would gain by a
rest, and none is made. See ADR 189.
"""

from __future__ import annotations

from typing import Final, TypeAlias

BUSY_S: Final = 0.001  # of steps, until the next rest
STAND_BACK: Final = 6  # times as long as the steps is the rest
REST_S: Final = 0.010  # at most: a step may have been long because another program had the processor
PRESSED_S: Final = 0.008  # so long a call that entered is taken to be under way
LOOK_S: Final = 0.001  # how often it is asked during a rest whether such a call still is
FEW: Final = 20  # calls that a user with few calls makes in `WINDOW_S`
WINDOW_S: Final = 0.5

User: TypeAlias = tuple[str, str]  # tenant and id


class Pace:
    """When the next step of what can wait may begin; one per node. All times are those of the loop."""

    __slots__ = ("_busy_s", "_counts", "_counts_from_s", "_pressed_until_s", "_until_s")

    def __init__(self) -> None:
        self._busy_s = 0.0  # since the last rest
        self._until_s = 0.0  # the end of the rest
        self._pressed_until_s = 0.0  # the latest call of a user with few calls is taken to be under way until then
        self._counts: dict[User, int] = {}  # calls of each user
        self._counts_from_s = 0.0

    def spend(self, busy_s: float, now_s: float) -> None:
        """Note a step that took so long and has just ended."""
        self._busy_s += busy_s
        if self._busy_s >= BUSY_S:
            self._until_s = now_s + min(self._busy_s * STAND_BACK, REST_S)
            self._busy_s = 0.0

    def rest_s(self, now_s: float) -> float:
        """Return how long to wait until the next step may begin, or until this is to be asked again; 0 if it may begin."""
        return min(self._until_s - now_s, LOOK_S) if now_s < self._until_s and self.is_pressed(now_s) else 0.0

    def is_pressed(self, now_s: float) -> bool:
        """Return whether a user with few calls called a moment ago."""
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
        """Return whether a user made few calls of late."""
        return self._counts.get(user, 0) <= FEW
