"""Decides which calls end with a call, each by which event and with which reply.

`runtime/call/settle.py` carries out each end, the deepest first, and appends all of them together.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from comity.core.call import unfinished
from comity.core.call.machine import CANCEL, EXPIRE, Event
from comity.core.call.tree import Branch
from comity.core.envelope.envelope import Error, Reply, Status

B = TypeVar("B", bound=Branch)


class End(NamedTuple, Generic[B]):
    """The end of one call."""

    call: B
    event: Event
    reply: Reply


def settle(call: B, event: Event, reply: Reply, now_ms: int) -> list[End[B]]:
    """Return the ends of a call and all calls below it, the deepest first, the call itself last.

    A call below it whose own deadline has passed times out with its partial data; any other is cancelled.
    """
    ends: list[End[B]] = []
    for child in call.waits_for:
        if event is EXPIRE and child.request.deadline_at <= now_ms:
            ends += settle(child, EXPIRE, unfinished.timed_out(child), now_ms)
        else:
            gone = Error.of("CALL_CANCELLED", f"{call.request.target}, which made this call, has ended")
            ends += settle(child, CANCEL, Reply(status=Status.CANCELLED, error=gone), now_ms)
    ends.append(End(call, event, reply))
    return ends
