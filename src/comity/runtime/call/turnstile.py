"""Fair admission between users: while several users call, a burst of one user enters a few calls at a time.

Otherwise a burst would be one long turn of the loop and one large commit, for which all other users' calls wait. A user who is
alone, or makes few calls at a time, never waits here: the call path uses the turnstile only while calls are in progress and
another user has just called. Root calls and child calls count alike. A call that is cancelled while it waits here leaves no
record; its deadline runs from the moment it was made.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from comity.core.envelope.envelope import Request
from comity.runtime.call.pace import Pace, User, user_of

# Calls of one user that enter per turn of the loop without waiting.
ENTER_MOST: Final = 3
# Waiting calls enter round-robin over users, one at a time and throttled by `Pace`. This many turns of the loop pass between
# two of them, in which the first can begin.
TURNS: Final = 4
# Waiting calls that enter together while no user with few calls has just called: a pause would serve no other call.
TOGETHER: Final = 16
# How long after calls of two different users the node counts as shared.
SHARED_NS: Final = 1_000_000_000


class Turnstile:
    """The entry of all calls to one node."""

    __slots__ = ("_entered", "_is_due", "_lines", "_loop", "_pace")

    def __init__(self, loop: asyncio.AbstractEventLoop, pace: Pace) -> None:
        self._loop, self._pace = loop, pace
        self._entered: dict[User, int] = {}  # in this turn of the loop
        self._lines: dict[User, deque[asyncio.Future[None]]] = {}  # the user whose turn it is comes first
        self._is_due = False  # a callback that lets the next call in is scheduled

    def enter(self, request: Request) -> asyncio.Future[None] | None:
        """Let a call enter at once (None), or return a future to await first."""
        user = user_of(request)
        self._pace.note_call(user, self._loop.time())
        entered = self._entered.get(user, 0)
        if entered < ENTER_MOST and user not in self._lines:
            if not self._entered:
                self._loop.call_soon(self._entered.clear)
            self._entered[user] = entered + 1
            return None
        return self._line_up(user)

    def begin(self, request: Request) -> asyncio.Future[None] | None:
        """Let a call that was queued at its agent begin (None), or return a future to await first.

        Many slots become free at once, so users with many calls begin one call per turn of the loop.
        """
        user = user_of(request)
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
        """Let one call enter (`TOGETHER` if no user is pressed), after a rest if `Pace` asks for one."""
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
                self._lines[user] = line  # at the end: round-robin
            if not waiter.done():  # its caller has not given up
                waiter.set_result(None)
                left -= 1
        self._is_due = bool(self._lines)
        if self._is_due:
            self._go_on(TURNS, now_s)
