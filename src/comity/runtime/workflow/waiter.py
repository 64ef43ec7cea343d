"""A waiter of a call for code that has no task of its own to wait in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import asyncio

    from comity.runtime.call.call import Call


class Waiter:
    """Calls `then` in the step in which a call is delivered. A future would call it in the next turn of the loop.

    `then` must not start a call: the call that has ended still holds its place.
    """

    __slots__ = ("_then",)

    def __init__(self, then: Callable[[], None]) -> None:
        # Let go once it was called: it may hold the call, and the garbage collector does not look into a call.
        self._then: Callable[[], None] | None = then

    def wait_for(self, call: Call) -> None:
        """Wait until a call is delivered."""
        if call.is_delivered:
            self.set_result(None)
            return
        waiters = call.waiters or []
        waiters.append(cast("asyncio.Future[None]", self))  # of which delivery needs `done` and `set_result`
        call.waiters = waiters

    def done(self) -> bool:
        """Return whether the call was delivered, or the wait was given up."""
        return self._then is None

    def set_result(self, _: None) -> None:
        """Do what waited for the call, which was delivered."""
        then, self._then = self._then, None
        if then is not None:
            then()

    def cancel(self) -> None:
        """Wait no more."""
        self._then = None
