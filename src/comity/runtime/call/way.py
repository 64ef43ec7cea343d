"""How a call goes where several nodes share the work: here under a lease, or to the node that holds its agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct

from comity.core.call.ledger import Loan
from comity.core.envelope.envelope import Request
from comity.core.journal.terms import Bound, Fence, Terms


class Way(Struct, eq=False, gc=False):
    """How a call goes where several nodes share the work."""

    fence: Fence | None = None  # the token under which its agent is held here; None if it goes to another node
    node_id: str = ""  # that node
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

    def note_end(self) -> None:
        """Add to sessions what the end of the call means to them: the store has it."""
        notes, self.notes = self.notes, ()
        for note in notes:
            note()

    def to_end(self, request_id: str) -> Terms:
        """Return the terms on which a call and everything below it ends."""
        return Terms(fences=() if self.fence is None else (self.fence,), open=(request_id,), ends=request_id)
