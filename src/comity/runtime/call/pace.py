"""Throttles background work (bursts of one user, long texts, many timeouts at one deadline) in favour of other users' calls.

Background work runs in small steps. While a user with few calls has just called, the steps get a seventh of the loop's time
(timeouts get half of it: they must not be late). In the rests between steps the loop serves that call, and the thread that
writes to the store gets the GIL: a loop with many short turns releases the GIL in each, but takes it back before a waiting
thread wakes. If one user is alone, or all users make many calls, there are no rests. See ADR 189.

The texts of a user who sends few of them are not background work: one page does not wait for the megabytes of others. See
ADR 232.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from comity.core.envelope.envelope import Request

BUSY_S: Final = 0.001  # steps run this long in total between two rests
STAND_BACK: Final = 6  # a rest is this many times as long as the steps before it
REST_S: Final = 0.010  # longest rest: a step may have been long because another process had the CPU
PRESSED_S: Final = 0.008  # a call is assumed to be in progress this long after it entered
LOOK_S: Final = 0.001  # how often a rest checks whether such a call is still in progress
FEW: Final = 20  # a user with at most this many calls in `WINDOW_S` has few calls
WINDOW_S: Final = 0.5
LITTLE_S: Final = 0.005  # a user whose recent steps took at most this long has little work; each window halves what is counted
FORGOTTEN: Final = 10  # after this many windows without a step nothing is left of what was counted

User: TypeAlias = tuple[str, str]  # tenant and id


def user_of(request: Request) -> User:
    """Return the user that a request is for."""
    return request.tenant_id, request.user_id


class Pace:
    """Decides when the next step of background work may begin; one per node. All times are those of the loop."""

    __slots__ = ("_busy_s", "_counts", "_counts_from_s", "_pressed_until_s", "_until_s", "_worked_from_s", "_worked_s")

    def __init__(self) -> None:
        self._busy_s = 0.0  # since the last rest
        self._until_s = 0.0  # the end of the rest
        self._pressed_until_s = 0.0  # the latest call of a user with few calls is taken to be under way until then
        self._counts: dict[User, int] = {}  # calls of each user
        self._counts_from_s = 0.0
        self._worked_s: dict[User, float] = {}  # how long steps of each user took recently
        self._worked_from_s = 0.0

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

    def note_work(self, user: User, busy_s: float, now_s: float) -> None:
        """Note that a step of a user's work has just ended and took `busy_s`: background work, if the user has much of it."""
        if (windows := int((now_s - self._worked_from_s) / WINDOW_S)) > 0:
            left = {other: worked_s / 2**windows for other, worked_s in self._worked_s.items()} if windows < FORGOTTEN else {}
            self._worked_s = {other: worked_s for other, worked_s in left.items() if worked_s > LITTLE_S / 2}
            self._worked_from_s = now_s
        self._worked_s[user] = self._worked_s.get(user, 0.0) + busy_s
        if not self.has_little(user):
            self.spend(busy_s, now_s)

    def has_little(self, user: User) -> bool:
        """Return whether a user's recent steps took at most `LITTLE_S`."""
        return self._worked_s.get(user, 0.0) <= LITTLE_S
