"""Where a call runs: here, or on the node that holds its agent.

`Placement` answers *here* to everything: that is a node alone. `runtime.cluster.cluster.Cluster` answers *elsewhere* where
another node holds the agent, and writes what calls do on the terms of their leases. The call path reads the placement anew at
each step, so a node that was alone can begin to share the work while calls are under way.
"""

# ruff: noqa: ARG002  a node alone needs nothing of what it is asked about

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
    """A node alone: every call runs here, and nothing needs a lease."""

    # A tree whose question is answered goes on at this node, not where its agent is.
    resumes_here = True
    # Open calls of nodes that are gone are this node's to go on with; no lease says whose they are.
    takes_over = True
    # The journal has the end of a call by the time its reply is there.
    ends_come_first = True

    @property
    def is_open(self) -> bool:
        """Whether it has begun to take part."""
        return True

    # --- life ---

    async def open(self) -> None:
        """Take part."""

    async def leave(self) -> None:
        """Take no more from others."""

    async def close(self) -> None:
        """Give back what is held."""

    def announce(self) -> None:
        """Tell other nodes which agents this one hosts."""

    def release(self, address: str) -> None:
        """Give back an address that has left memory."""

    async def hold(self, address: str) -> bool:
        """Take an address that is no agent's; return whether it is held here now."""
        return True

    def is_held(self, address: str) -> bool:
        """Return whether calls at an address may run here now."""
        return True

    def way_at(self, address: str) -> Way:
        """Return how a call goes at an address that is held here."""
        return LOCAL

    # --- asking: None is *here* ---

    def start_root(
        self, draft: Draft, identity: Identity, request_id: str | None, remote: TraceContext | None, log: EventLog
    ) -> Errand | None:
        """Begin a user's call in the background where its agent is; None if that is for this node to do."""
        return None

    def call_root(
        self, draft: Draft, identity: Identity, request_id: str | None, remote: TraceContext | None = None
    ) -> Coroutine[Any, Any, Reply]:
        """Call for a user where the agent is."""
        raise AssertionError("a node alone calls here")

    def call_under(self, arrival: Arrival, parent: Call, *, is_repeated: bool) -> Coroutine[Any, Any, Reply] | None:
        """Call for a call under way where the agent is; None if that is for this node to do."""
        return None

    def call_for(self, arrival: Arrival, remote: TraceContext | None) -> Coroutine[Any, Any, Reply] | None:
        """Return a call that the node makes for a user, to be awaited, wherever its agent is; None if it is made here."""
        return None

    async def go_on(self, request: Request) -> Reply:
        """Go on with a user's call that was put aside or has moved, wherever its agent is by now."""
        raise AssertionError(f"nothing moves from a node alone: {request.request_id}")

    def withdraw(self, errand: Errand) -> bool:
        """Cancel what was begun in the background; return whether it was still under way."""
        raise AssertionError(f"a node alone sends nothing away: {errand.arrival.request.request_id}")

    def spawn(self, work: Coroutine[Any, Any, object]) -> None:
        """Do something in the background, which ends with this node."""
        raise AssertionError(f"a node alone does {work} itself")

    # --- calls that were begun before ---

    def meets_open(self, request: Request, stored: StoredCall, node_id: str) -> Refused | None:
        """Return why a request is refused under whose id the store has a call that is open; None if it may be run."""
        if stored.node_id != node_id:
            return Refused("AGENT_BUSY", f"request {request.request_id} is under way on another node", 1_000)
        if request.parent_id is None:  # taken up and ended, and its end is not on disk yet
            return Refused("AGENT_BUSY", f"request {request.request_id} is about to end", 1_000)
        return None

    def begun_before(self, request: Request, journal: Journal) -> int:
        """Return how many calls below a root that goes on count as begun already."""
        return count_begun(journal, request)

    # --- what calls do, on which terms: False is *as on a node alone* ---

    def accept(self, call: Call, now_ms: int, note: str) -> None:
        """Record a call that has a way on the terms of its lease."""
        raise AssertionError(f"a node alone needs no lease: {call.request.request_id}")

    def carry(self, call: Call, way: Way) -> None:
        """Send a call to the node that holds its agent."""
        raise AssertionError(f"a node alone sends nothing away: {call.request.request_id}")

    def refusal_terms(self, request: Request) -> Terms | None:
        """Return the terms on which a refusal is recorded."""
        return None

    def ended(self, call: Call, event: Event, records: list[Record]) -> None:
        """Record the end of a call that has a way on the terms of its lease, and deliver it then."""
        raise AssertionError(f"a node alone needs no lease: {call.request.request_id}")

    def late(self, call: Call, reply: Reply) -> bool:
        """Record a late result on the terms of its lease; return whether that was done."""
        return False

    def answered_in_store(self, call: Call) -> bool:
        """End a call whose time is up with the end that another node has stored; return whether there is one."""
        return False

    def top_up(self, call: Call, *, were_there: bool) -> bool:
        """Return whether tokens that were used were there, after borrowing more from the node that lent them."""
        return were_there

    def count_replayed(self, parent: Call, usage: Usage) -> None:
        """Charge a call that an earlier run of its tree made. A node alone did so when it took the tree up."""
