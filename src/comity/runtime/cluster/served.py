"""`Served`: a call that other nodes wait for, with those nodes and their fencing tokens of the caller."""

from __future__ import annotations

import asyncio

from comity.core.journal.terms import Fence
from comity.runtime.call.call import Call


class Served:
    """A call that another node waits for."""

    __slots__ = ("askers", "call", "caller", "task")

    def __init__(self) -> None:
        self.askers: dict[str, int] = {}  # node id to its fencing token of the caller; 0 for a user's call
        self.caller: Fence | None = None  # the newest of these tokens
        self.call: Call | None = None
        self.task: asyncio.Future[None] | None = None  # done once it is answered

    def note(self, asker: str, caller: Fence | None) -> None:
        """Note the asking node and its fencing token; the latest is the most likely to wait still."""
        self.askers.pop(asker, None)
        self.askers[asker] = _token(caller)
        if _token(caller) > _token(self.caller):
            self.caller = caller
            if self.call is not None:
                self.call.way.caller = caller

    def note_inquiry(self, asker: str) -> None:
        """Note a node that inquires about a call, which it may have sent before this node restarted."""
        known = self.askers.pop(asker, None)
        self.askers[asker] = known if known is not None else 0 if self.caller is None else -1

    def may_cancel(self, asker: str) -> bool:
        """Return whether a node asked for the call with the newest fencing token of its caller."""
        return self.askers.get(asker, -1) >= _token(self.caller)

    @property
    def asker(self) -> str:
        """The node that asked last."""
        return next(reversed(self.askers))


def _token(fence: Fence | None) -> int:
    return 0 if fence is None else fence.token
