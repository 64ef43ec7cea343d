"""The way of a call: it runs here (on a single node without a lease, else under one), or on the node that holds its agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from comity.core.call.ledger import Loan
from comity.core.envelope.envelope import Request
from comity.core.journal.terms import Bound, Fence, Terms


class Way(Struct, eq=False, gc=False):
    """How a call runs in a cluster; `LOCAL` is the way of every call on a single node."""

    fence: Fence | None = None  # the fencing token of its agent's lease here; None if it goes to another node
    node_id: str = ""  # the node it is sent to; empty if it runs here
    on_terms: bool = True  # its records carry the terms of a lease
    caller: Fence | None = None  # the fencing token of the calling agent, held here or on another node
    is_served: bool = False  # another node waits for it
    loop: tuple[str, ...] = ()  # the deadlock that it would close, as other nodes reported it
    bounds: tuple[Bound, ...] = ()  # call limits of the subtrees it is in, each narrower than the one before
    loan: Loan | None = None  # the budget that the asking node lent to it and the calls below it
    borrowing: asyncio.Event | None = None  # a request for a larger loan; set once it is answered
    is_moved: bool = False  # another node took it over before it settled
    is_recorded: bool = False  # the store has its `Accepted` record
    is_fresh: bool = False  # its id is newly generated, so no node can know it
    notes: tuple[Callable[[], None], ...] = ()  # in-memory session updates, run once the store has taken its end

    def bounds_below(self, request: Request) -> tuple[Bound, ...]:
        """Return the bounds for child calls of a call that goes this way."""
        calls_max = request.limits.calls_max
        if self.bounds and self.bounds[-1].calls_max <= calls_max:
            return self.bounds
        return (*self.bounds, Bound(request.request_id, request.root_id, calls_max))

    def below(self, request: Request) -> Way:
        """Return the way of a child call that the agent of `request`, which goes this way, records and waits for."""
        return Way(fence=self.fence, caller=self.fence, bounds=self.bounds_below(request))

    def at_end(self, notes: tuple[Callable[[], None], ...]) -> None:
        """Keep the session updates of the call's end until the store has taken that end."""
        self.notes = notes

    def note_moved(self) -> None:
        """Note that another node took the call over before it settled."""
        self.is_moved = True

    def note_end(self) -> None:
        """Run the session updates of the call's end: the store has taken it."""
        notes, self.notes = self.notes, ()
        for note in notes:
            note()

    def to_end(self, request_id: str) -> Terms:
        """Return the terms for the records that end a call and all calls below it."""
        return Terms(fences=() if self.fence is None else (self.fence,), open=(request_id,), ends=request_id)


class _Local(Way, frozen=True, eq=False, gc=False):  # type: ignore[misc]  # no dataclass: a frozen struct may
    """The way of every call on a single node. All calls share this object, so it has no state."""

    def bounds_below(self, request: Request) -> tuple[Bound, ...]:  # noqa: ARG002
        """Return none: on a single node the account of the tree counts."""
        return ()

    def below(self, request: Request) -> Way:  # noqa: ARG002
        """Return itself."""
        return self

    def at_end(self, notes: tuple[Callable[[], None], ...]) -> None:
        """Run the session updates now: no other node can end the call."""
        for note in notes:
            note()

    def note_moved(self) -> None:
        """Do nothing: calls do not move from a single node."""

    def note_end(self) -> None:
        """Do nothing: `at_end` ran the updates."""


LOCAL: Final = _Local(on_terms=False, is_fresh=True)
