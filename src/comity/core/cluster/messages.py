"""The messages between nodes. Any message may be lost, late, duplicated or reordered, so each is self-contained.

A node sends `Ask` until the call is acknowledged, then `Inquire` now and then until it is answered. The request id makes every
repetition idempotent: the same id joins the running call or is answered from the store.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from comity.core.call.ledger import Loan
from comity.core.cluster.deadlock import Fact
from comity.core.envelope.envelope import Reply, Request
from comity.core.journal.terms import Bound, Fence


class _Message(Struct, frozen=True, gc=False, tag=str.lower):
    pass


class Ask(_Message, frozen=True):
    """Run this call. `caller` is the fencing token of the calling agent."""

    request: Request
    caller: Fence | None = None
    loan: Loan | None = None  # None for a user's call, which has its own limits
    bounds: tuple[Bound, ...] = ()  # call limits of the subtrees it is in
    is_fresh: bool = False  # the first Ask under a newly generated id
    is_watched: bool = False  # send its events as `Happened`


class Borrow(_Message, frozen=True):
    """Request for a larger loan; `has` is the current loan, which tells a repetition from a new request."""

    request_id: str
    has: Loan


class Lend(_Message, frozen=True):
    """The whole loan of this call from now on. `to` is the loan in the `Borrow` that this answers."""

    request_id: str
    loan: Loan
    to: Loan | None = None  # None from a node of an earlier version


class Inquire(_Message, frozen=True):
    """Request for the state of this call."""

    request_id: str


class Cancel(_Message, frozen=True):
    """No caller waits for this call any more."""

    request_id: str
    why: str


class Taken(_Message, frozen=True):
    """Acknowledgement: the call runs here."""

    request_id: str
    is_root: bool = False


class Answer(_Message, frozen=True):
    """The call has ended, durably where the store is durable."""

    request_id: str
    reply: Reply


class Paused(_Message, frozen=True):
    """The call waits for the approval with this id, and its whole tree is to pause."""

    request_id: str
    approval_id: str


class Happened(_Message, frozen=True):
    """An event of a watched call or of a call below it. `number` counts from 1; a lost event is not repeated."""

    request_id: str  # of the call in `Ask`
    number: int
    kind: str
    at_ms: int
    of: tuple[str, str | None, str, str]  # the event's call: request id, parent id, target and capability
    data: Any = None
    text: str = ""


class Unknown(_Message, frozen=True):
    """The call is unknown here; send `Ask` again."""

    request_id: str


class Moved(_Message, frozen=True):
    """This node does not hold the agent; find the holder."""

    request_id: str


class Unhosted(_Message, frozen=True):
    """This node does not host the agent."""

    request_id: str


class Look(_Message, frozen=True):
    """Deadlock probe: which calls do these wait for, transitively?"""

    probe_id: int
    call_ids: tuple[str, ...]


class Seen(_Message, frozen=True):
    """The facts that answer a `Look`."""

    probe_id: int
    facts: tuple[Fact, ...]


Message = Ask | Borrow | Lend | Inquire | Cancel | Taken | Answer | Paused | Happened | Unknown | Moved | Unhosted | Look | Seen

encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Message).decode


def decode(raw: bytes) -> Message | None:
    """Return the message, or None if it cannot be decoded: then it counts as lost."""
    try:
        message: Message = _decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return message
