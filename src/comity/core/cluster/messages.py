"""What nodes say to each other. Any message may be lost, late, doubled or overtaken: each says all it needs by itself.

A node asks another to run a call and repeats that until the call is taken, then inquires now and then until it is answered. The
request id makes every repetition harmless: the same id joins the call under way or is answered from the store.
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
    """Run this call. `caller` is the token under which the agent that makes it is held."""

    request: Request
    caller: Fence | None = None
    loan: Loan | None = None  # None for a call by a user, which has its limits for itself
    bounds: tuple[Bound, ...] = ()  # on how many calls the trees it stands in may make
    is_fresh: bool = False  # asked for the first time, under an id that was made a moment ago
    is_watched: bool = False  # tell what happens in it, as `Happened`


class Borrow(_Message, frozen=True):
    """What was set aside for this call is used up: may it have more? `has` tells a repetition from a new wish."""

    request_id: str
    has: Loan


class Lend(_Message, frozen=True):
    """That is all that is set aside for this call from now on. `to` is what the call had when it asked for more."""

    request_id: str
    loan: Loan
    to: Loan | None = None  # None from a node of an earlier version


class Inquire(_Message, frozen=True):
    """What has become of this call?"""

    request_id: str


class Cancel(_Message, frozen=True):
    """No caller waits for this call any more."""

    request_id: str
    why: str


class Taken(_Message, frozen=True):
    """The call is here."""

    request_id: str
    is_root: bool = False


class Answer(_Message, frozen=True):
    """The call has ended, durably where the store is durable."""

    request_id: str
    reply: Reply


class Paused(_Message, frozen=True):
    """The call waits for a person, who is asked under this id, and the whole tree it stands in is to wait with it."""

    request_id: str
    approval_id: str


class Happened(_Message, frozen=True):
    """A step of a call that is watched, or of one below it. `number` counts from 1; a step that is lost is not repeated."""

    request_id: str  # that was asked for
    number: int
    kind: str
    at_ms: int
    of: tuple[str, str | None, str, str]  # the call it is a step of: its id, its caller's, target and capability
    data: Any = None
    text: str = ""


class Unknown(_Message, frozen=True):
    """The call is not here; ask again in full."""

    request_id: str


class Moved(_Message, frozen=True):
    """This node does not hold the agent; find out who does."""

    request_id: str


class Unhosted(_Message, frozen=True):
    """This node has no such agent at all."""

    request_id: str


class Look(_Message, frozen=True):
    """Whom do these calls wait for, and those in turn?"""

    probe_id: int
    call_ids: tuple[str, ...]


class Seen(_Message, frozen=True):
    """That is what this node knows."""

    probe_id: int
    facts: tuple[Fact, ...]


Message = Ask | Borrow | Lend | Inquire | Cancel | Taken | Answer | Paused | Happened | Unknown | Moved | Unhosted | Look | Seen

encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Message).decode


def decode(raw: bytes) -> Message | None:
    """Return the message, or None if it cannot be read: it counts as lost."""
    try:
        message: Message = _decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return message
