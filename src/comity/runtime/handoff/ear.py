"""Waiting for what the handoff queue rings about."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Self

Arm = Callable[[int | None], None]  # see that somebody looks at the queue at such a time, in ms


class Ear:
    """Hears of some topics from the moment it is entered, so that nothing is missed between looking and waiting."""

    __slots__ = ("_arm", "_ears", "_is_rung", "_topics", "_waiter")

    def __init__(self, arm: Arm, ears: dict[str, tuple[Ear, ...]], topics: tuple[str, ...]) -> None:
        self._arm = arm
        self._ears = ears
        self._topics = topics
        self._is_rung = False
        self._waiter: asyncio.Future[None] | None = None

    def __enter__(self) -> Self:
        for topic in self._topics:
            others = self._ears.get(topic)
            self._ears[topic] = (self,) if others is None else (*others, self)
        return self

    def __exit__(self, *_: object) -> None:
        for topic in self._topics:
            ears = self._ears.pop(topic)
            if len(ears) > 1:
                self._ears[topic] = tuple(ear for ear in ears if ear is not self)

    def wait(self, due_at: int | None) -> asyncio.Future[None]:
        """Return what to wait for until something is heard; `due_at` is when somebody has to look at the queue anyway."""
        self._arm(due_at)
        waiter = self._waiter = asyncio.get_running_loop().create_future()
        if self._is_rung:
            self._is_rung = False
            waiter.set_result(None)
        return waiter

    def ring(self) -> None:
        """Wake who waits, or will."""
        if self._waiter is None or self._waiter.done():
            self._is_rung = True
        else:
            self._waiter.set_result(None)
