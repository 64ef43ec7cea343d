"""The refusals, replies and late records with which a handoff ends."""

from __future__ import annotations

from typing import Protocol

from msgspec.structs import replace

from comity.core.call.refusal import Refused
from comity.core.envelope.envelope import Error, Reply, Request, Status
from comity.core.journal.records import Late, Record


class Handoff(Protocol):
    """The facts of a handoff that its errors and replies are made from."""

    @property
    def id(self) -> str:
        """Its id."""
        ...

    @property
    def state(self) -> str:
        """Its state."""
        ...

    @property
    def request(self) -> Request:
        """Its request."""
        ...


def lost(handoff: Handoff) -> Refused:
    """Return the refusal for a receiver whose lease has expired."""
    return Refused("HANDOFF_LEASE_LOST", f"the lease on {handoff.id} ran out; another receiver may have it")


def ended(handoff: Handoff) -> Refused:
    """Return the refusal for a change to a handoff that has ended."""
    return Refused("HANDOFF_ENDED", f"{handoff.id} has ended: {handoff.state}")


def failure(status: Status, code: str, reason: str) -> Reply:
    """Return the reply of a handoff that ends without a result."""
    error = Error.of(code, reason)
    return Reply(status=status, error=error, message=error.message)


def timeout(handoff: Handoff) -> Reply:
    """Return the reply of a handoff that timed out."""
    allowed = handoff.request.deadline_at - handoff.request.created_at
    what = f"was {handoff.state} when its {allowed} ms had passed"
    return failure(Status.TIMEOUT, "CALL_TIMEOUT", f"{handoff.request.capability} for {handoff.request.target} {what}")


def late(handoff: Handoff, reply: Reply | None, now_ms: int) -> tuple[Record, ...]:
    """Return the record of a result that came too late, or from a receiver that lost its lease; it is not delivered."""
    if reply is None:
        return ()
    return (Late(handoff.request, replace(reply, request_id=handoff.id, source=handoff.request.target), now_ms),)
