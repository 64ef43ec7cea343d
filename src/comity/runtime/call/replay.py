"""The same request id again: the first outcome is returned, and another request under it is refused.

Of two nodes that are asked for the same at one moment, one runs it: the one whose record the store takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from comity.core.call.admission import Refused
from comity.core.envelope.envelope import Reply, Request
from comity.core.journal.records import PAUSED_AT, StoredCall, fingerprint
from comity.errors import UnavailableError
from comity.ports import Journal

# The root of every run of a workflow is a call of this agent, under the key of the node that began it: that address is held by
# one node, so that another node can take its runs over. The agent is in no registry, so that nothing else can call it.
WORKFLOW: Final = "comity.workflow"


MeetsOpen = Callable[[Request, StoredCall, str], Refused | None]  # see `Placement.meets_open`


def is_run(address: str) -> bool:
    """Return whether the calls at an address are runs of workflows."""
    return address.partition("/")[0] == WORKFLOW


class Runs(Protocol):
    """Takes up runs of workflows that a node which is gone left open."""

    def adopt(self, request: Request, leftovers: dict[str, Request]) -> None:
        """Take up a run, given its root and the calls below it that were open."""
        ...

    def has(self, run_id: str) -> bool:
        """Return whether this node drives a run, or waits for what it waits for."""
        ...

    def forget_waiting(self) -> None:
        """Wait for no run that is not in memory: another node may hold it."""
        ...

    def sweep(self) -> None:
        """See to what other processes sent, to timers and to schedules."""
        ...


def known(request: Request, journal: Journal, meets_open: MeetsOpen) -> Reply | Refused | None:
    """Return what a store has under a request's id: its reply, or why it cannot be had now; None if it may be run."""
    stored = journal.call(request.request_id)
    if stored is None:
        return None
    owner = (stored.tenant_id, stored.user_id, stored.fingerprint)
    if owner != (request.tenant_id, request.user_id, fingerprint(request)):
        return reused(request)
    if stored.reply is not None and (stored.settled_at is not None or stored.node_id == PAUSED_AT):
        return stored.reply
    return meets_open(request, stored, journal.node_id)


def count_begun(journal: Journal, request: Request) -> int:
    """Return how many calls an earlier run began below a call; if the store cannot say, as many as there may be."""
    try:
        return journal.begun(request)
    except UnavailableError:
        return request.limits.calls_max


def reused(request: Request) -> Refused:
    """Return the refusal of an id that belongs to another request."""
    return Refused("IDENTITY_REQUEST_ID_REUSED", f"request_id {request.request_id!r} belongs to another request")
