"""What is written down about calls, as values. An engine stores them; the order in which they are appended is the truth.

Audit rows are made from these records where they are stored, off the path of the call.
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
    """A call was admitted; with this record it survives the process that admitted it."""

    request: Request
    at_ms: int
    node_id: str
    note: str = ""  # what was hidden from the callee, what it was shown in clear, and which constraints warned


class Refused(Struct, frozen=True, gc=False):
    """A call was refused; nothing else happened."""

    request: Request
    reply: Reply
    at_ms: int
    note: str = ""  # why, without personal data


class Settled(Struct, frozen=True, gc=False):
    """A call ended. Replaces its `Accepted`: the request's content is no longer needed."""

    request: Request
    reply: Reply
    at_ms: int
    node_id: str = ""  # where it was, if that is not the node that says so
    reply_bytes: int = 0  # of the data of the reply, where they are many


class Late(Struct, frozen=True, gc=False):
    """A result came after its call had settled."""

    request: Request
    reply: Reply
    at_ms: int


class Paused(Struct, frozen=True, gc=False):
    """A call waits for a person: it stays open, belongs to no node, and is run again when the answer is there."""

    request: Request
    reply: Reply
    at_ms: int


class Noted(Struct, frozen=True, gc=False):
    """Something was found in a call under way, or its code ran on after its end; nothing else changed."""

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

    An agent's state that was saved under a token is left out if the address was claimed under a greater one.
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
    """Return the key of a document that belongs to another one, or what the keys of all of them begin with."""
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
    """Return a session with what is on its way to the store, in the order it was appended."""
    version, head, rows = (0, b"", {}) if found is None else (found.version, found.head, dict(found.rows))
    for one in unwritten:
        if one.kind is Document.SESSION and one.key == key and one.version > version:
            version, head = one.version, one.data
        elif one.kind is Document.PART and part_of(one.key)[0] == key:
            rows[part_of(one.key)[1]] = one.data
    return StoredSession(version, head, sorted((one, data) for one, data in rows.items() if data)) if version else None


class Resumed(Struct, frozen=True, gc=False):
    """An open call is run by another node from now on. That it was accepted is on record already."""

    request: Request
    node_id: str
    at_ms: int


CallRecord = Accepted | Refused | Settled | Late | Paused | Noted
Record = CallRecord | Saved | Resumed
RUNS_ON: Final = "its code ran on after it had ended"  # what the audit notes of such a call
PAUSED_AT: Final = "(paused)"  # where a call is open that waits for a person
HANDED_AT: Final = "(handed off)"  # where a call is open that lies in the queue or that a receiver works on, on any node

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
    """Return what the audit says about a record, as JSON; `parties` is what it says of the request, if known already."""
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
    # Most calls are of no workflow but their own, and cost nothing; a row that says nothing of either is as it always was.
    cost = None if kind is Accepted or kind is Noted else record.reply.usage.cost  # type: ignore[union-attr]
    is_of_another = request.correlation_id != request.root_id and request.correlation_id
    if is_of_another or cost is not None:
        said = (*said, names.of(request.correlation_id) if is_of_another else None)  # its name may be a person's
        said = said if cost is None else (*said, cost)
    return _encode(said)


def parties_of(record: CallRecord, names: Pseudonyms) -> bytes:
    """Return what the audit says of a record's request, as the inside of a JSON array: the same from first to last."""
    request = record.request
    source, target, capability, session_id = request.source, request.target, request.capability, request.session_id
    chain = " ".join(request.chain) if request.chain else ""
    if type(record) is Refused:  # whatever the caller took for a name
        target, capability = _told(target, names), names.of(capability)
    elif "/" in target:  # names are the registry's, keys are anybody's
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
    """Return an address as it may stand in the audit: its key is often a user's."""
    name, slash, key = address.partition("/")
    return f"{names.of(name)}/{names.of(key)}" if slash else names.of(name)


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


def stored(record: Accepted | Settled | Paused | Resumed, node_id: str) -> StoredCall:
    """Return what is kept of a call: the request while it is open, the reply once it is settled."""
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


def held_at(record: Accepted | Settled | Paused | Resumed, node_id: str) -> str:
    """Return where a call is that this node recorded: on this node, paused, or handed off to a receiver."""
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
        # What an agent knows and passes on may be more when its tree is run again; what it asks must be the same.
        context = request.context if request.parent_id is None else None
        said = (request.message, request.objective, context, request.expected_output, request.history)
        return zlib.crc32(_encode(said), found)
    return found


def is_same(request: Request, other: Request) -> bool:
    """Return whether two requests under one id are one."""
    return (request.tenant_id, request.user_id, fingerprint(request)) == (other.tenant_id, other.user_id, fingerprint(other))
