"""Waiting for notifications (*rings*) of the handoff queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Self

from comity.errors import UnavailableError

Arm = Callable[[int | None], None]  # sets the timer that reads the queue, in ms


def closed() -> UnavailableError:
    """Return the error that a waiter gets on a node that closes."""
    return UnavailableError("this node, or the manager or receiver, has been closed", code="NODE_CLOSED")


class Ear:
    """A subscription to topics, active from `__enter__`, so no ring is missed between reading the queue and waiting."""

    __slots__ = ("_arm", "_ears", "_error", "_host", "_is_rung", "_topics", "_waiter", "due_at")

    def __init__(
        self, arm: Arm, ears: dict[str, tuple[Ear, ...]], topics: tuple[str, ...], host: dict[Ear, None] | None
    ) -> None:
        self.due_at: int | None = None  # when the waiter must be woken at the latest
        self._arm = arm
        self._host = host  # the ears of a manager or receiver, closed with it; None for the ear of a call
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
        """Return a future that the next ring resolves; at `due_at` the node reads the queue anyway.

        Raises the error of `fail` if no ring will come any more.
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
        """Resolve the waiter's future, or the next waiter's at once."""
        if self._waiter is None or self._waiter.done():
            self._is_rung = True
        else:
            self._waiter.set_result(None)

    def fail(self, error: Exception) -> None:
        """Fail the waiter, or the next one; not the ear of a call, which ends otherwise or resumes after a restart."""
        if self._host is None:
            return
        self._error = error
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)
