"""How a call goes: here without a lease on a node alone, here under a lease, or to the node that holds its agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from comity.core.call.ledger import Loan
from comity.core.envelope.envelope import Request
from comity.core.journal.terms import Bound, Fence, Terms


class Way(Struct, eq=False, gc=False):
    """How a call goes where several nodes share the work; `LOCAL` is the way of every call on a node alone."""

    fence: Fence | None = None  # the token under which its agent is held here; None if it goes to another node
    node_id: str = ""  # the node it is sent to; empty if it runs here
    on_terms: bool = True  # what it does is recorded on the terms of a lease
    caller: Fence | None = None  # the token under which the agent that makes it is held, here or elsewhere
    is_served: bool = False  # another node waits for it
    loop: tuple[str, ...] = ()  # that it would close, as far as other nodes could tell
    bounds: tuple[Bound, ...] = ()  # on how many calls the trees it stands in may make, each narrower than the one before
    loan: Loan | None = None  # set aside for what is below it, by the node that asks for it
    borrowing: asyncio.Future[None] | None = None  # more was asked for; its waiters await this
    is_moved: bool = False  # it left this node without having ended
    is_recorded: bool = False  # the store has accepted it
    is_fresh: bool = False  # its id is new: no node has heard of it before
    notes: tuple[Callable[[], None], ...] = ()  # what its end adds to sessions in memory, once the store has taken that end

    def bounds_below(self, request: Request) -> tuple[Bound, ...]:
        """Return the bounds of what a call that goes this way makes in turn."""
        calls_max = request.limits.calls_max
        if self.bounds and self.bounds[-1].calls_max <= calls_max:
            return self.bounds
        return (*self.bounds, Bound(request.request_id, request.root_id, calls_max))

    def below(self, request: Request) -> Way:
        """Return the way of a call that is waited for, and recorded, by the agent of `request`, which goes this way."""
        return Way(fence=self.fence, caller=self.fence, bounds=self.bounds_below(request))

    def at_end(self, notes: tuple[Callable[[], None], ...]) -> None:
        """Keep what the end of the call adds to sessions until the store has taken that end."""
        self.notes = notes

    def note_moved(self) -> None:
        """Note that the call left this node without having ended."""
        self.is_moved = True

    def note_end(self) -> None:
        """Add to sessions what the end of the call means to them: the store has it."""
        notes, self.notes = self.notes, ()
        for note in notes:
            note()

    def to_end(self, request_id: str) -> Terms:
        """Return the terms on which a call and everything below it ends."""
        return Terms(fences=() if self.fence is None else (self.fence,), open=(request_id,), ends=request_id)


class _Local(Way, frozen=True, eq=False, gc=False):  # type: ignore[misc]  # no dataclass: a frozen struct may
    """The way of a call that no other node takes part in. All such calls share it, so it keeps nothing."""

    def bounds_below(self, request: Request) -> tuple[Bound, ...]:  # noqa: ARG002
        """Return none: the account of the tree counts on a node alone."""
        return ()

    def below(self, request: Request) -> Way:  # noqa: ARG002
        """Return itself."""
        return self

    def at_end(self, notes: tuple[Callable[[], None], ...]) -> None:
        """Add to sessions what the end of the call means to them: no other node can end it."""
        for note in notes:
            note()

    def note_moved(self) -> None:
        """Note nothing: the call was put aside with its tree."""

    def note_end(self) -> None:
        """Note nothing: `at_end` did."""


LOCAL: Final = _Local(on_terms=False, is_fresh=True)
