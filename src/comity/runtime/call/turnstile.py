"""Fair entry: while other users call too, the calls that one user makes at once enter a few at a time.

A burst of one user would otherwise be one long turn of the loop and one large commit, for which the calls of all others wait.
A user who is alone, or makes few calls at a time, never waits here: the call path asks only while calls are under way and
another user called a moment ago. Calls of users and calls that agents make for them are counted alike. Nothing is known of a
call before it enters: a call that is cancelled in the line leaves no record, and its time runs from the moment it was made.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from comity.core.envelope.envelope import Request
from comity.runtime.call.pace import Pace, User

# Calls of one user that enter in one turn of the loop without waiting.
ENTER_MOST: Final = 3
# Calls that wait enter one by one, the users in turn, at the pace of what can wait. Each call has some turns of the loop to
# begin in.
TURNS: Final = 4
# Calls of a line that enter together while no user with few calls waits: the turns of the loop would serve no other call.
TOGETHER: Final = 16
# How long after the calls of two users a node counts as shared.
SHARED_NS: Final = 1_000_000_000


class Turnstile:
    """Where the calls of users enter one node."""

    __slots__ = ("_entered", "_is_due", "_lines", "_loop", "_pace")

    def __init__(self, loop: asyncio.AbstractEventLoop, pace: Pace) -> None:
        self._loop, self._pace = loop, pace
        self._entered: dict[User, int] = {}  # in this turn of the loop
        self._lines: dict[User, deque[asyncio.Future[None]]] = {}  # the user whose turn it is comes first
        self._is_due = False  # a round is to begin by itself

    def enter(self, request: Request) -> asyncio.Future[None] | None:
        """Let a user's call enter at once, or return what it has to wait for."""
        user = (request.tenant_id, request.user_id)
        self._pace.note_call(user, self._loop.time())
        entered = self._entered.get(user, 0)
        if entered < ENTER_MOST and user not in self._lines:
            if not self._entered:
                self._loop.call_soon(self._entered.clear)
            self._entered[user] = entered + 1
            return None
        return self._line_up(user)

    def begin(self, request: Request) -> asyncio.Future[None] | None:
        """Let a call begin that has waited for a place at its agent, or return what it has to wait for.

        Places become free many at a time: of users with many calls, one call begins in a turn of the loop.
        """
        user = (request.tenant_id, request.user_id)
        if (self._entered or self._lines) and not self._pace.has_few(user):
            return self._line_up(user)
        self._loop.call_soon(self._entered.clear)
        self._entered[user] = 1
        return None

    def _line_up(self, user: User) -> asyncio.Future[None]:
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._lines.setdefault(user, deque()).append(waiter)
        if not self._is_due:
            self._is_due = True
            self._go_on(TURNS, self._loop.time())
        return waiter

    def _go_on(self, turns: int, since_s: float) -> None:
        """Let the next call enter after some turns of the loop; the last one entered at `since_s`."""
        if turns:
            self._loop.call_soon(self._go_on, turns - 1, since_s)
            return
        now_s = self._loop.time()
        self._pace.spend(now_s - since_s, now_s)
        self._let_in()

    def _let_in(self) -> None:
        """Let a call enter, after a rest if it is time for one."""
        now_s = self._loop.time()
        if rest_s := self._pace.rest_s(now_s):
            self._loop.call_later(rest_s, self._let_in)
            return
        left = 1 if self._pace.is_pressed(now_s) else TOGETHER
        while self._lines and left:
            user = next(iter(self._lines))
            line = self._lines.pop(user)
            waiter = line.popleft()
            if line:
                self._lines[user] = line  # behind the other users
            if not waiter.done():  # its caller has not given up
                waiter.set_result(None)
                left -= 1
        self._is_due = bool(self._lines)
        if self._is_due:
            self._go_on(TURNS, now_s)
