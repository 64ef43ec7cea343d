"""Idempotency by request id: a repeated request returns the first reply; a different request under the same id is refused.

If two nodes get the same request at once, the node whose `Accepted` record the store takes runs it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from comity.core.call.admission import Refused
from comity.core.envelope.envelope import Reply, Request
from comity.core.journal.records import StoredCall, StoredState, fingerprint
from comity.errors import UnavailableError
from comity.ports import Journal

# The root of every workflow run is a call of this agent, with the node that began it as key. The lease of that address lets
# another node take the runs over. The agent is in no registry, so nothing else can call it.
WORKFLOW: Final = "comity.workflow"


MeetsOpen = Callable[[Request, StoredCall, str], Refused | None]  # see `Placement.meets_open`


def is_run(address: str) -> bool:
    """Return whether the calls at an address are runs of workflows."""
    return address.partition("/")[0] == WORKFLOW


class Runs(Protocol):
    """Resumes workflow runs that a dead node left open."""

    def adopt(self, request: Request, leftovers: dict[str, Request]) -> None:
        """Resume a run, given its root request and the open calls below it (by request id)."""
        ...

    def has(self, run_id: str) -> bool:
        """Return whether this node executes a run, or watches for the event that the run waits for."""
        ...

    def forget_waiting(self) -> None:
        """Stop watching for events of runs that are not in memory: another node may hold them."""
        ...

    def sweep(self) -> None:
        """Process messages of other processes, due timers and due schedules."""
        ...


def known(request: Request, journal: Journal, meets_open: MeetsOpen) -> Reply | Refused | None:
    """Return the stored reply of a request's id, a refusal if the id is taken or in progress, or None if it may run."""
    stored = journal.call(request.request_id)
    if stored is None:
        return None
    owner = (stored.tenant_id, stored.user_id, stored.fingerprint)
    if owner != (request.tenant_id, request.user_id, fingerprint(request)):
        return reused(request)
    if stored.reply is not None and stored.state in {StoredState.SETTLED, StoredState.PAUSED}:
        return stored.reply
    return meets_open(request, stored, journal.node_id)


def count_begun(journal: Journal, request: Request) -> int:
    """Return how many calls an earlier run began below a call; `calls_max` if the store cannot be read."""
    try:
        return journal.begun(request)
    except UnavailableError:
        return request.limits.calls_max


def reused(request: Request) -> Refused:
    """Return the refusal of an id that belongs to another request."""
    return Refused("IDENTITY_REQUEST_ID_REUSED", f"request_id {request.request_id!r} belongs to another request")
