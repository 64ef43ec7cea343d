"""Preconditions of a journal append: stale leaseholders are rejected; a call is opened and settled at most once across nodes.

A store knows the newest fencing token of every address. An append may name the tokens it was made under and the calls it
depends on; the store checks them in the transaction that writes it. Ending a call ends every open call below it, whichever node
runs it. The store also enforces `calls_max` over all runs of a tree: accounts on several nodes may forget calls from before a
restart, the store does not.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct, json

from comity.core.envelope.envelope import Error, Reply, Request, Status
from comity.core.journal.records import Accepted, Document, Record, Resumed, Saved, Settled, StoredCall
from comity.errors import CallChangedError, ComityError, DocumentChangedError, RefusedError, StaleLeaseError


class Fence(Struct, frozen=True, gc=False):
    """The fencing token with which a node holds an address."""

    address: str
    token: int


class Bound(Struct, frozen=True, array_like=True, gc=False):
    """The limit on the number of calls of a (sub)tree, its top call included."""

    request_id: str
    root_id: str
    calls_max: int


class Version(Struct, frozen=True, array_like=True, gc=False):
    """The version of a document that an append is based on: 0 if there was none.

    Two nodes may give different documents the same number, so `checksum` tells them apart; 0 compares the number alone.
    """

    kind: Document
    key: str
    version: int
    checksum: int = 0


def checksum(data: bytes) -> int:
    """Return a number that tells two documents of one version apart; never 0."""
    return zlib.crc32(data) or 1


class _Owned(Struct, frozen=True):
    """The owner fields of a stored session."""

    user_id: str


_decode_owned = json.Decoder(_Owned).decode
_ABSENT: Final = (0, b"")


class Terms(Struct, frozen=True, kw_only=True, gc=False):
    """The preconditions of an append; if one does not hold, nothing is written, and `then` gets the error."""

    fences: tuple[Fence, ...] = ()  # no greater fencing token of these addresses exists
    unknown: str = ""  # a call that no node has accepted
    unsettled: str = ""  # a call that has not ended, if there is one
    open: tuple[str, ...] = ()  # calls that were accepted and have not ended
    ended: str = ""  # a call that was accepted and has ended
    session: tuple[str, str] | None = None  # a session, by its key, that belongs to no user or to this user
    documents: tuple[Version, ...] = ()  # documents that still have these versions
    within: tuple[Bound, ...] = ()  # trees that may make one call more, unless the `unsettled` one was accepted before
    ends: str = ""  # a call whose whole tree, on every node, ends with this append


def claim(fence: Fence, node_id: str) -> Saved:
    """Return the record that makes a token the newest of an address; append it before any record under that token."""
    return Saved(Document.FENCE, fence.address, fence.token, node_id.encode())


def breach(
    terms: Terms,
    is_open: Callable[[str], bool | None],
    begun: Callable[[Bound], int],
    document: Callable[[Document, str], tuple[int, bytes] | None],
) -> ComityError | None:
    """Return the error of the first term that does not hold, or None.

    The functions read the store: whether a call is open (None if it was never accepted), how many calls were accepted below
    a call, and version and data of a document.
    """
    for fence in terms.fences:
        newest, _ = document(Document.FENCE, fence.address) or _ABSENT
        if newest > fence.token:
            what = f"{fence.address} was claimed under token {newest}; this was written under {fence.token}"
            return StaleLeaseError(what, address=fence.address, token=fence.token, newest=newest)
    if terms.unknown and is_open(terms.unknown) is not None:
        return _changed(terms.unknown, "is known already")
    if terms.unsettled and is_open(terms.unsettled) is False:
        return _changed(terms.unsettled, "has ended")
    for request_id in terms.open:
        if not is_open(request_id):
            return _changed(request_id, "is not open")
    if terms.ended and is_open(terms.ended) is not False:
        return _changed(terms.ended, "has not ended")
    for one in terms.documents:
        version, data = document(one.kind, one.key) or _ABSENT
        if version != one.version or (one.checksum and version and checksum(data) != one.checksum):
            what = f"the {one.kind} {one.key!r} is at version {version}; this was made from {one.version}"
            return DocumentChangedError(what, kind=str(one.kind), key=one.key, version=version)
    stored = None if terms.session is None else document(Document.SESSION, terms.session[0])
    if terms.session is not None and stored is not None and _decode_owned(stored[1]).user_id != terms.session[1]:
        return RefusedError("the session belongs to another user, who named it at the same moment", code="IDENTITY_MISMATCH")
    for bound in terms.within if is_open(terms.unsettled) is None else ():
        if begun(bound) + 2 > bound.calls_max:  # itself, those below it, and one more
            what = f"the tree of {bound.request_id} has used up its calls_max of {bound.calls_max}, earlier runs included"
            return RefusedError(what, code="BUDGET_CALLS_EXHAUSTED")
    return None


def _changed(request_id: str, what: str) -> CallChangedError:
    return CallChangedError(f"the call {request_id} {what}", request_id=request_id)


def is_below(request_id: str, above: str) -> bool:
    """Return whether an id is that of a call below another, over any number of hops: `r.1` and `r#1` are below `r`."""
    return len(request_id) > len(above) and request_id.startswith(above) and request_id[len(above)] in ".#"


def counts_below(call: StoredCall, above: Request | Bound) -> bool:
    """Return whether a stored call counts against the budget of a call above it; refusals and tool uses do not."""
    return (
        call.root_id == above.root_id
        and is_below(call.request_id, above.request_id)
        and "#" not in call.request_id[len(above.request_id) :]
        and (call.reply is None or call.reply.status is not Status.REFUSED)
    )


def taken(
    records: Sequence[Record], terms: Terms, is_open: Callable[[str], bool | None], below: Iterable[Request]
) -> list[Record]:
    """Return the records of an append whose terms hold, adjusted to the store.

    Ends of calls that are not open are dropped: the writer may not know yet that the call was refused or has ended. Ends of
    the open calls `below` an ending call are added. An `Accepted` of a known call, whose agent moved, becomes `Resumed`.
    """
    kept: list[Record] = []
    beginning: dict[str, None] = {}
    ending: dict[str, None] = {}
    end: Settled | None = None
    for record in records:
        if type(record) is Settled:
            request_id = record.request.request_id
            if not is_open(request_id) and request_id not in beginning:
                continue
            ending[request_id] = None
            end = record if request_id == terms.ends else end
        elif type(record) is Accepted:
            request_id = record.request.request_id
            if is_open(request_id):
                kept.append(Resumed(record.request, record.node_id, record.at_ms))
                continue
            beginning[request_id] = None
        kept.append(record)
    if end is not None:
        root_id = end.request.root_id  # users choose the ids of roots, and `r.1` may be one
        kept += (
            ended_with(end, request) for request in below if request.root_id == root_id and request.request_id not in ending
        )
    return kept


def ended_with(end: Settled, request: Request) -> Settled:
    """Return the end of a call whose caller ends by `end`."""
    if end.reply.status is Status.TIMEOUT and request.deadline_at <= end.at_ms:
        status, error = Status.TIMEOUT, Error.of("CALL_TIMEOUT", "it did not end before its deadline")
    else:
        status, error = Status.CANCELLED, Error.of("CALL_CANCELLED", f"{end.request.target}, for which it was made, has ended")
    return Settled(request, Reply(status=status, error=error, request_id=request.request_id, source=request.target), end.at_ms)
