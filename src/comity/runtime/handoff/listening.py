"""Waiting for what the handoff queue rings about."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Self

from comity.errors import UnavailableError

Arm = Callable[[int | None], None]  # see that the node looks at the queue at such a time, in ms


def closed() -> UnavailableError:
    """Return the error that a waiter gets on a node that closes."""
    return UnavailableError("this node, or the manager or receiver, has been closed", code="NODE_CLOSED")


class Ear:
    """Hears of some topics from the moment it is entered, so that nothing is missed between looking and waiting."""

    __slots__ = ("_arm", "_ears", "_error", "_host", "_is_rung", "_topics", "_waiter", "due_at")

    def __init__(
        self, arm: Arm, ears: dict[str, tuple[Ear, ...]], topics: tuple[str, ...], host: dict[Ear, None] | None
    ) -> None:
        self.due_at: int | None = None  # when the waiter expects to be woken at the latest
        self._arm = arm
        self._host = host  # those of one manager or receiver, which end with it; None for an ear that ends with its call
        self._error: Exception | None = None
        self._ears = ears
        self._topics = topics
        self._is_rung = False
        self._waiter: asyncio.Future[None] | None = None

    def __enter__(self) -> Self:
        for topic in self._topics:
            others = self._ears.get(topic)
            self._ears[topic] = (self,) if others is None else (*others, self)
        if self._host is not None:
            self._host[self] = None
        return self

    def __exit__(self, *_: object) -> None:
        if self._host is not None:
            del self._host[self]
        for topic in self._topics:
            ears = self._ears.pop(topic)
            if len(ears) > 1:
                self._ears[topic] = tuple(ear for ear in ears if ear is not self)

    def wait(self, due_at: int | None) -> asyncio.Future[None]:
        """Return what to wait for until something is heard; `due_at` is when the node has to look at the queue anyway.

        Raises why nothing will be heard any more.
        """
        if self._error is not None:
            raise self._error
        self._arm(due_at)
        self.due_at = due_at
        waiter = self._waiter = asyncio.get_running_loop().create_future()
        if self._is_rung:
            self._is_rung = False
            waiter.set_result(None)
        return waiter

    def ring(self) -> None:
        """Wake the waiter, or the next one."""
        if self._waiter is None or self._waiter.done():
            self._is_rung = True
        else:
            self._waiter.set_result(None)

    def fail(self, error: Exception) -> None:
        """Fail the waiter, or the next one; not a call, which gets its error when it ends, and may go on after a restart."""
        if self._host is None:
            return
        self._error = error
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)
