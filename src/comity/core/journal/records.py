"""The records of the journal, as values. An engine stores them in the order in which they are appended.

The engine makes audit rows from these records when it stores them, off the call path.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from comity.core.envelope.envelope import Reply, Request
from comity.core.journal.audit import Kind, Pseudonyms, thought_note


class Accepted(Struct, frozen=True, gc=False):
    """A call was admitted; with this record it can be resumed after a crash."""

    request: Request
    at_ms: int
    node_id: str
    note: str = ""  # for the audit: types hidden from the callee or shown in clear, and constraints that warned


class Refused(Struct, frozen=True, gc=False):
    """A call was refused; nothing else happened."""

    request: Request
    reply: Reply
    at_ms: int
    note: str = ""  # why, without personal data


class Settled(Struct, frozen=True, gc=False):
    """A call settled. Replaces its `Accepted`: the request's content is dropped."""

    request: Request
    reply: Reply
    at_ms: int
    node_id: str = ""  # the node that ran it, if not this one
    reply_bytes: int = 0  # size of the reply's data, if it is large


class Late(Struct, frozen=True, gc=False):
    """A result came after its call had settled."""

    request: Request
    reply: Reply
    at_ms: int


class Paused(Struct, frozen=True, gc=False):
    """A call waits for an approval: it stays open, belongs to no node, and is replayed when a person has answered."""

    request: Request
    reply: Reply
    at_ms: int


class Noted(Struct, frozen=True, gc=False):
    """A note on a running call, or on code that ran on after its call's end; nothing else changed."""

    request: Request
    note: str
    at_ms: int


class Document(StrEnum):
    """What is kept beside calls and the audit."""

    STATE = "state"  # of an agent, by tenant and address; see `state_key`
    SESSION = "session"  # by tenant and id: its head, see `core.session.parts`
    PART = "part"  # of a session, a row beside its head; see `part_key`. One without data is removed
    USE = "use"  # of a session, by tenant and id: when it was last used, as the version
    VAULT = "vault"  # of a session, encrypted
    APPROVAL = "approval"  # by id
    MEMORY = "memory"  # of a user, by tenant and user; what it says is encrypted
    FENCE = "fence"  # by address: its newest token, as the version
    WORKFLOW = "workflow"  # a definition with its parts, by content hash
    RUN = "run"  # of a workflow, by id
    RUN_EVENT = "run_event"  # of a run, by its id and a number; see `below`
    RUN_SIGNAL = "run_signal"  # to a run from another process, by its id and a number
    SCHEDULE = "schedule"  # of a workflow, by name

    __hash__ = str.__hash__  # an enum's own is slow, and documents are found by kind and key


DEFAULT_TENANT: Final = "default"
_PART_SEPARATOR: Final = "\x1e"  # in no id, and no key of a session begins with another and this
_SEPARATOR: Final = "\x1f"  # in no id: they are printable


class Saved(Struct, frozen=True, gc=False):
    """A document of some kind under a key; a higher version replaces a lower one.

    An agent's state with a fencing token is dropped if the address was claimed with a greater token.
    """

    kind: Document
    key: str
    version: int
    data: bytes
    token: int = 0
    used_at: int | None = None  # of a session: when it was last used, as far as the document says

    @property
    def address(self) -> str:
        """Return the address of the agent whose state this is."""
        return self.key.rpartition(_SEPARATOR)[2]


def below(key: str, name: str = "") -> str:
    """Return the key of a document that belongs to the one under `key`; without a name, the prefix of all such keys."""
    return f"{key}{_SEPARATOR}{name}"


def part_key(session_key: str, number: int) -> str:
    """Return the key of a row of a session: in the order of their numbers."""
    return f"{session_key}{_PART_SEPARATOR}{number:012d}"


def part_of(key: str) -> tuple[str, int]:
    """Return the key of the session that a row belongs to, and the number of the row."""
    session_key, _, number = key.rpartition(_PART_SEPARATOR)
    return session_key, int(number)


def part_range(session_key: str) -> tuple[str, str]:
    """Return the first key that a row of a session may have, and the first key after all of them."""
    return f"{session_key}{_PART_SEPARATOR}", f"{session_key}{_SEPARATOR}"


def state_key(tenant_id: str, address: str) -> str:
    """Return the key of an agent's state: a tenant's own. That of the tenant `default` is the address itself."""
    return address if tenant_id == DEFAULT_TENANT else f"{tenant_id}{_SEPARATOR}{address}"


class StoredSession(NamedTuple):
    """A session as the store has it: the version of its head, the head, and its rows by number, in order."""

    version: int
    head: bytes
    rows: list[tuple[int, bytes]]


def with_unwritten(found: StoredSession | None, key: str, unwritten: Iterable[Saved]) -> StoredSession | None:
    """Return a session with pending writes applied, in the order of their appends."""
    version, head, rows = (0, b"", {}) if found is None else (found.version, found.head, dict(found.rows))
    for one in unwritten:
        if one.kind is Document.SESSION and one.key == key and one.version > version:
            version, head = one.version, one.data
        elif one.kind is Document.PART and part_of(one.key)[0] == key:
            rows[part_of(one.key)[1]] = one.data
    return StoredSession(version, head, sorted((one, data) for one, data in rows.items() if data)) if version else None


class Resumed(Struct, frozen=True, gc=False):
    """Another node runs an open call from now on; its `Accepted` record exists already."""

    request: Request
    node_id: str
    at_ms: int


CallRecord = Accepted | Refused | Settled | Late | Paused | Noted
Record = CallRecord | Saved | Resumed
RUNS_ON: Final = "its code ran on after it had ended"  # the audit note on such a call
# What the column of the node says of an open call that no node holds; `StoredCall.state` reads it.
PAUSED_AT: Final = "(paused)"
HANDED_AT: Final = "(handed off)"

_encode = msgspec.json.Encoder().encode
_KINDS: Final = {
    Accepted: Kind.ADMITTED.value,
    Refused: Kind.REFUSED.value,
    Settled: Kind.SETTLED.value,
    Late: Kind.LATE.value,
    Paused: Kind.PAUSED.value,
    Noted: Kind.NOTED.value,
}


def entry(record: CallRecord, names: Pseudonyms, parties: bytes | None = None) -> bytes:
    """Return the audit entry of a record, as JSON; `parties` is the entry's part about the request, if known already."""
    if parties is None:
        parties = parties_of(record, names)
    kind, request = type(record), record.request
    said: tuple[Any, ...]
    if kind is Accepted or kind is Noted:
        said = (_KINDS[kind], record.at_ms, Raw(parties), None, None, None, None, None, record.note)  # type: ignore[union-attr]
    else:
        reply: Reply = record.reply  # type: ignore[union-attr]
        error, usage = reply.error, reply.usage
        said = (
            _KINDS[kind],
            record.at_ms,
            Raw(parties),
            1 if error is None else 0,
            reply.status,
            None if error is None else error.code,
            reply.duration_ms,
            usage.prompt_tokens + usage.completion_tokens,
            record.note if kind is Refused else thought_note(reply.thought) if reply.thought else "",  # type: ignore[union-attr]
        )
    # Most calls have neither a workflow's id nor a cost; their rows omit both fields, as in older versions.
    cost = None if kind is Accepted or kind is Noted else record.reply.usage.cost  # type: ignore[union-attr]
    is_of_another = request.correlation_id != request.root_id and request.correlation_id
    if is_of_another or cost is not None:
        said = (*said, names.of(request.correlation_id) if is_of_another else None)  # its name may be a person's
        said = said if cost is None else (*said, cost)
    return _encode(said)


def parties_of(record: CallRecord, names: Pseudonyms) -> bytes:
    """Return the entry's part about the request, as the inside of a JSON array; equal for all records of a call."""
    request = record.request
    source, target, capability, session_id = request.source, request.target, request.capability, request.session_id
    chain = " ".join(request.chain) if request.chain else ""
    if type(record) is Refused:  # names of a refused request are unchecked
        target, capability = _told(target, names), names.of(capability)
    elif "/" in target:  # agent names come from the registry, keys from callers
        target = _told(target, names)
    if source is not None and "/" in source:
        source = _told(source, names)
    if "/" in chain:
        chain = " ".join(_told(one, names) for one in request.chain)
    named = (
        request.request_id,
        request.root_id,
        request.parent_id,
        source,
        target,
        capability,
        names.of(request.tenant_id),
        names.of(request.user_id),
        session_id if session_id == request.root_id else names.of(session_id),
        names.digest(request.objective) if request.objective else "",
        chain,
    )
    return _encode(named)[1:-1]


def _told(address: str, names: Pseudonyms) -> str:
    """Return an address for the audit; its key is pseudonymized, since it is often a user's name."""
    name, slash, key = address.partition("/")
    return f"{names.of(name)}/{names.of(key)}" if slash else names.of(name)


class StoredState(StrEnum):
    """The state of a stored call."""

    OPEN = "open"  # a node runs it, or resumes it
    PAUSED = "paused"  # it waits for an approval; no node holds it
    HANDED_OFF = "handed off"  # it is queued, or a receiver works on it
    SETTLED = "settled"


class StoredCall(Struct, frozen=True, gc=False, array_like=True):
    """A call as the store knows it; `reply` is None while it is open, `request` is None once it is settled."""

    request_id: str
    root_id: str
    parent_id: str | None
    tenant_id: str
    user_id: str
    session_id: str
    target: str
    capability: str
    objective: str
    fingerprint: int
    created_at: int
    deadline_at: int
    settled_at: int | None
    node_id: str
    request: Request | None
    reply: Reply | None

    @property
    def state(self) -> StoredState:
        """The state of the call; for an open call it is derived from the column of its node."""
        return StoredState.SETTLED if self.settled_at is not None else _STATES.get(self.node_id, StoredState.OPEN)


def stored(record: Accepted | Settled | Paused | Resumed, node_id: str) -> StoredCall:
    """Return the stored call of a record: with the request while it is open, with the reply once it is settled."""
    request, kind = record.request, type(record)
    is_settled = kind is Settled
    return StoredCall(
        request.request_id,
        request.root_id,
        request.parent_id,
        request.tenant_id,
        request.user_id,
        request.session_id,
        request.target,
        request.capability,
        request.objective,
        fingerprint(request),
        request.created_at,
        request.deadline_at,
        record.at_ms if is_settled else None,
        node_id if is_settled else held_at(record, node_id),
        None if is_settled else request,
        record.reply if is_settled or kind is Paused else None,  # type: ignore[union-attr]
    )


_STATES: Final = {PAUSED_AT: StoredState.PAUSED, HANDED_AT: StoredState.HANDED_OFF}


def held_at(record: Accepted | Settled | Paused | Resumed, node_id: str) -> str:
    """Return the node column for a record: this node's id, paused, or handed off."""
    kind = type(record)
    if kind is Accepted and record.node_id == HANDED_AT:  # type: ignore[union-attr]
        return HANDED_AT
    return PAUSED_AT if kind is Paused else node_id


def fingerprint(request: Request) -> int:
    """Return a checksum that tells two requests under one id apart; against mistakes, not against malice."""
    if request.fingerprint is not None:
        return request.fingerprint
    found = zlib.crc32(request.body, zlib.crc32(f"{request.target}\n{request.capability}".encode()))
    if (
        request.message
        or request.objective
        or (request.context is not None and request.parent_id is None)
        or request.expected_output is not None
        or (request.history != "full" and (request.history != "none" or request.parent_id is None))  # not what is usual
    ):
        # On replay an agent may pass on more context than before; the rest of its request must be the same.
        context = request.context if request.parent_id is None else None
        said = (request.message, request.objective, context, request.expected_output, request.history)
        return zlib.crc32(_encode(said), found)
    return found


def is_same(request: Request, other: Request) -> bool:
    """Return whether two requests under one id are the same request."""
    return (request.tenant_id, request.user_id, fingerprint(request)) == (other.tenant_id, other.user_id, fingerprint(other))
