"""In which words a handoff ends, or tells a receiver that it is no longer its own."""

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
        """Where it is."""
        ...

    @property
    def request(self) -> Request:
        """What is to be done."""
        ...


def lost(handoff: Handoff) -> Refused:
    """Return the error for a receiver whose lease has run out."""
    return Refused("HANDOFF_LEASE_LOST", f"the lease on {handoff.id} ran out; another receiver may have it")


def ended(handoff: Handoff) -> Refused:
    """Return the error for a change to a handoff that has ended already."""
    return Refused("HANDOFF_ENDED", f"{handoff.id} has ended: {handoff.state}")


def failure(status: Status, code: str, reason: str) -> Reply:
    """Return the reply of a handoff that ends without a result."""
    error = Error.of(code, reason)
    return Reply(status=status, error=error, message=error.message)


def timeout(handoff: Handoff) -> Reply:
    """Return the reply of a handoff whose time is over."""
    allowed = handoff.request.deadline_at - handoff.request.created_at
    what = f"was {handoff.state} when its {allowed} ms had passed"
    return failure(Status.TIMEOUT, "CALL_TIMEOUT", f"{handoff.request.capability} for {handoff.request.target} {what}")


def late(handoff: Handoff, reply: Reply | None, now_ms: int) -> tuple[Record, ...]:
    """Return the record of a result that comes too late, or from a receiver that lost the handoff: it goes nowhere."""
    if reply is None:
        return ()
    return (Late(handoff.request, replace(reply, request_id=handoff.id, source=handoff.request.target), now_ms),)
