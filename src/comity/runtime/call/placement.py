"""Where a call runs: on this node, or on the node that holds its agent.

`Placement` is a single node: every call runs here. Its subclass `runtime.cluster.cluster.Cluster` sends a call to the node that
holds its agent, and adds the terms of leases to the records of calls. The call path reads the attribute `placement` at each
step, so a single node can join a cluster while calls are in progress.
"""

# ruff: noqa: ARG002  a single node ignores most arguments

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol

from comity.core.call.admission import Refused
from comity.core.call.machine import Event
from comity.core.envelope.envelope import Reply, Request
from comity.core.envelope.usage import Usage
from comity.core.journal.records import Record, StoredCall
from comity.core.journal.terms import Terms
from comity.core.tracing.trace_context import TraceContext
from comity.ports import Journal
from comity.runtime.call.call import Call
from comity.runtime.call.draft import Arrival, Draft, Identity
from comity.runtime.call.errand import Errand
from comity.runtime.call.events import EventLog
from comity.runtime.call.replay import count_begun
from comity.runtime.call.way import LOCAL, Way


class CallRoot(Protocol):
    """Calls for a user and returns the reply."""

    def __call__(
        self, draft: Draft, identity: Identity, request_id: str | None, remote: TraceContext | None = None
    ) -> Coroutine[Any, Any, Reply]:
        """Return the call, to be awaited."""
        ...


class Placement:
    """A single node: every call runs here, and nothing needs a lease."""

    # A paused tree resumes on the node that got the approval, not on the node that holds its agent.
    resumes_here = True
    # This node resumes open calls of dead nodes without a lease.
    takes_over = True
    # The end of a call is in the journal before its reply is delivered.
    ends_come_first = True

    @property
    def is_open(self) -> bool:
        """Whether `open` has completed."""
        return True

    # --- life ---

    async def open(self) -> None:
        """Join the cluster."""

    async def leave(self) -> None:
        """Accept no more calls from other nodes."""

    async def close(self) -> None:
        """Release all leases."""

    def announce(self) -> None:
        """Tell other nodes which agents this one hosts."""

    def release(self, address: str) -> None:
        """Release the lease of an address whose activation has left memory."""

    async def hold(self, address: str) -> bool:
        """Take the lease of an address without an agent; return whether this node holds it now."""
        raise AssertionError(f"a node alone holds {address}")

    def is_held(self, address: str) -> bool:
        """Return whether calls at an address may run here now."""
        return True

    def way_at(self, address: str) -> Way:
        """Return how a call goes at an address that is held here."""
        return LOCAL

    # --- making calls: None means *run it here* ---

    def start_root(
        self, draft: Draft, identity: Identity, request_id: str | None, remote: TraceContext | None, log: EventLog
    ) -> Errand | None:
        """Start a user's call in the background on the node that holds its agent; return None if that is this node."""
        return None

    def call_root(
        self, draft: Draft, identity: Identity, request_id: str | None, remote: TraceContext | None = None
    ) -> Coroutine[Any, Any, Reply]:
        """Make a user's call on the node that holds its agent and return the reply."""
        raise AssertionError("a node alone calls here")

    def call_under(self, arrival: Arrival, parent: Call, *, is_repeated: bool) -> Coroutine[Any, Any, Reply] | None:
        """Make a child call on the node that holds its agent; return None if that is this node."""
        return None

    def call_for(self, arrival: Arrival, remote: TraceContext | None) -> Coroutine[Any, Any, Reply] | None:
        """Make a call for a user on the node that holds its agent; return None if that is this node."""
        return None

    async def go_on(self, request: Request) -> Reply:
        """Resume a user's call that was paused or has moved, on the node that holds its agent now."""
        raise AssertionError(f"nothing moves from a node alone: {request.request_id}")

    def withdraw(self, errand: Errand) -> bool:
        """Cancel a call started in the background; return whether it was still in progress."""
        raise AssertionError(f"a node alone sends nothing away: {errand.arrival.request.request_id}")

    def spawn(self, work: Coroutine[Any, Any, object]) -> None:
        """Run `work` in a background task, which is cancelled when this node closes."""
        raise AssertionError(f"a node alone does {work} itself")

    # --- calls of an earlier run ---

    def meets_open(self, request: Request, stored: StoredCall, node_id: str) -> Refused | None:
        """Return the refusal of a request whose id belongs to an open call in the store; None if it may run."""
        if stored.node_id != node_id:
            return Refused("AGENT_BUSY", f"request {request.request_id} is under way on another node", 1_000)
        if request.parent_id is None:  # resumed and settled, but its end is not on disk yet
            return Refused("AGENT_BUSY", f"request {request.request_id} is about to end", 1_000)
        return None

    def begun_before(self, request: Request, journal: Journal) -> int:
        """Return how many calls of the earlier run to charge to a resumed root."""
        return count_begun(journal, request)

    # --- records and their terms: False means *as on a single node* ---

    def accept(self, call: Call, now_ms: int, note: str) -> None:
        """Record the acceptance of a call on the terms of its lease."""
        raise AssertionError(f"a node alone needs no lease: {call.request.request_id}")

    def carry(self, call: Call, way: Way) -> None:
        """Send a call to the node that holds its agent."""
        raise AssertionError(f"a node alone sends nothing away: {call.request.request_id}")

    def refusal_terms(self, request: Request) -> Terms | None:
        """Return the terms for the record of a refusal."""
        return None

    def ended(self, call: Call, event: Event, records: list[Record]) -> None:
        """Record the end of a call on the terms of its lease, then deliver its reply."""
        raise AssertionError(f"a node alone needs no lease: {call.request.request_id}")

    def late(self, call: Call, reply: Reply) -> bool:
        """Record a late result on the terms of its lease; return whether that was done."""
        return False

    def answered_in_store(self, call: Call) -> bool:
        """Settle a call past its deadline with the result that another node has stored; return whether there is one."""
        return False

    def top_up(self, call: Call, *, were_there: bool) -> bool:
        """Return whether the budget covers the tokens used, after borrowing more from the lending node if needed."""
        return were_there

    def count_replayed(self, parent: Call, usage: Usage) -> None:
        """Charge a replayed child call. A single node charged it when it resumed the tree."""
