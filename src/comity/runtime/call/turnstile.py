"""Fair entry: while other users call too, the calls that one user makes at once enter a few at a time.

A burst of one user would otherwise be one long turn of the loop and one large commit, for which the calls of all others wait.
A user who is alone, or makes few calls at a time, never waits here: the call path asks only while calls are under way and
another user called a moment ago. Nothing is known of a call before it enters: a call that is cancelled in the line leaves no
record, and its time runs from the moment it was made.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, TypeAlias

from comity.core.envelope.envelope import Request

# Calls of one user that enter in one turn of the loop, and in one round of the calls that wait, and how long a round takes.
ENTER_MOST: Final = 8
ROUND_S: Final = 0.003
# How long after the calls of two users a node counts as shared.
SHARED_NS: Final = 1_000_000_000

User: TypeAlias = tuple[str, str]  # tenant and id


class Turnstile:
    """Where the calls of users enter one node."""

    __slots__ = ("_entered", "_is_due", "_lines", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._entered: dict[User, int] = {}  # in this turn of the loop
        self._lines: dict[User, deque[asyncio.Future[None]]] = {}
        self._is_due = False  # a round is to begin by itself

    def enter(self, request: Request) -> asyncio.Future[None] | None:
        """Let a user's call enter at once, or return what it has to wait for."""
        user = (request.tenant_id, request.user_id)
        entered = self._entered.get(user, 0)
        if entered < ENTER_MOST and user not in self._lines:
            if not self._entered:
                self._loop.call_soon(self._entered.clear)
            self._entered[user] = entered + 1
            return None
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._lines.setdefault(user, deque()).append(waiter)
        if not self._is_due:
            self._is_due = True
            self._loop.call_later(ROUND_S, self._begin_round)
        return waiter

    def _begin_round(self) -> None:
        for user, line in list(self._lines.items()):
            count = 0
            while line and count < ENTER_MOST:
                waiter = line.popleft()
                if not waiter.done():  # its caller has not given up
                    waiter.set_result(None)
                    count += 1
            if not line:
                del self._lines[user]
        self._is_due = bool(self._lines)
        if self._is_due:
            self._loop.call_later(ROUND_S, self._begin_round)
