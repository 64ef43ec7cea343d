"""The audit trail: append-only rows, each bound to the one before by a hash.

A row records caller, callee, capability, and decision or outcome, without personal data: an objective is stored as a keyed
digest, and so is a user id that is itself personal, such as an e-mail address. Changing, removing or reordering a row breaks
the chain at that row.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

_FRESH = hashlib.sha256()
GENESIS: Final = "0" * 64
_decode = msgspec.json.Decoder(list[Any]).decode


class Kind(StrEnum):
    """What a row records."""

    ADMITTED = "admitted"
    REFUSED = "refused"
    SETTLED = "settled"
    LATE = "late"  # a result that came after the call had settled; recorded, never delivered
    PAUSED = "paused"  # the tree waits for an approval and will be replayed
    NOTED = "noted"  # a note on a running call
    CUT = "cut"  # the chain was truncated; the note names the removed rows and the hash of the last


# A stored row: id, content as JSON, previous hash, hash. The hash covers the stored bytes themselves.
Stored = tuple[int, bytes, str, str]


class Row(NamedTuple):
    """One row of the audit, decoded."""

    id: int
    kind: str
    created_at: int
    request_id: str
    root_id: str
    parent_id: str | None
    origin: str | None
    target: str
    capability: str
    tenant_id: str
    user_id: str
    session_id: str
    objective: str
    chain: str
    success: int | None
    status: str | None
    error_code: str | None
    duration_ms: float | None
    tokens: int | None
    note: str
    correlation_id: str  # of the workflow; the root's id where the call named none
    cost: dict[str, Any] | None  # of the tokens, as `Cost` has it; None where no price was known
    previous_hash: str
    hash: str


ENTRY_FIELDS: Final = Row._fields[1:-2]
_ROOT: Final = ENTRY_FIELDS.index("root_id")
_CORRELATION: Final = ENTRY_FIELDS.index("correlation_id")
_SHORTEST: Final = _CORRELATION  # fields of a row that says neither a workflow nor a cost


# Progress callback of a verification: rows checked, rows in total.
Tell = Callable[[int, int], None]


class Verdict(NamedTuple):
    """Whether a chain is valid; `row_id` is the first invalid row, `reason` says why."""

    ok: bool
    rows: int
    row_id: int | None = None
    reason: str = ""


class Checkpoint(msgspec.Struct, frozen=True, array_like=True):
    """The beginning of a truncated chain.

    The first remaining row is bound to `hash`. The truncation is itself a row of the chain, `noted_in`, so that the checkpoint
    cannot be moved without breaking the chain.
    """

    row_id: int  # the last row that was removed; rows count from 1, so this is also the number of removed rows
    hash: str  # of that row
    noted_in: int
    at_ms: int


START: Final = Checkpoint(0, GENESIS, 0, 0)


def cut_entry(row_id: int, sealed: str, at_ms: int) -> bytes:
    """Return the content of the row that records a truncation: time, last removed row and its hash."""
    note = f"rows 1 to {row_id} were removed; row {row_id} had the hash {sealed}"
    said = {"kind": Kind.CUT.value, "created_at": at_ms, "note": note}
    return msgspec.json.encode([said.get(name, "" if Row.__annotations__[name] == "str" else None) for name in ENTRY_FIELDS])


def checkpoint_seal(body: bytes, key: bytes) -> str:
    """Return the HMAC of a stored checkpoint, which needs the key."""
    return hmac.new(key, body, hashlib.sha256).hexdigest()


def seal(row_id: int, body: bytes, previous_hash: str) -> Stored:
    """Return the stored row with this content, after the row with `previous_hash`.

    `body` is a JSON array of `ENTRY_FIELDS`; the last two are present only if there is a cost or a workflow's own id.
    """
    return row_id, body, previous_hash, link(row_id, body, previous_hash)


def row(stored: Stored) -> Row:
    """Decode a stored row. Raises `ValueError` for a row that cannot be read; `verify` says which."""
    row_id, body, previous_hash, sealed = stored
    try:
        said = _decode(body)
        if len(said) >= _SHORTEST:
            said += [None] * (len(ENTRY_FIELDS) - len(said))
            said[_CORRELATION] = said[_CORRELATION] or said[_ROOT]
        return Row._make((row_id, *said, previous_hash, sealed))
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise ValueError(f"row {row_id} of the audit cannot be read: {error}") from None


def verify(rows: Iterable[Stored], *, first_id: int = 1, previous_hash: str = GENESIS, head: str | None = None) -> Verdict:
    """Walk the chain and name the first row that is missing, out of order or changed; `head` also catches a cut-off end."""
    count = 0
    expected_id = first_id
    after_head: int | None = first_id if head == previous_hash else None
    for row_id, body, previous, sealed in rows:
        if row_id > expected_id:
            return Verdict(False, count, expected_id, f"row {expected_id} is missing")
        if row_id < expected_id:
            return Verdict(False, count, row_id, f"row {row_id} stands twice, or was moved from its place")
        if type(body) is not bytes or link(row_id, body, previous) != sealed:  # an editor may store text instead
            return Verdict(False, count, row_id, f"row {row_id} was changed, or moved from its place")
        if previous != previous_hash:
            return Verdict(False, count, row_id, f"row {row_id} does not follow the row before it")
        previous_hash = sealed
        expected_id += 1
        count += 1
        if sealed == head:
            after_head = expected_id
    if head is not None and previous_hash != head:
        if after_head is not None:
            return Verdict(False, after_head - first_id, after_head, f"row {after_head} was added after the recorded end")
        return Verdict(False, count, expected_id, f"the rows after {expected_id - 1} were cut off, or all were sealed anew")
    return Verdict(True, count)


def walk(rows: Iterable[tuple[int, bytes | None, bytes]], next_id: int, previous: bytes) -> tuple[int, bytes]:
    """Return the id after the last valid row and the hash of that row; the fast path of `verify`.

    `rows` are id, body and hash. `verify` says what is wrong with the row at which this stops.
    """
    sha256 = hashlib.sha256
    for row_id, body, sealed in rows:
        if row_id != next_id or body is None or sha256(b"%d:%b:%b" % (row_id, previous, body)).hexdigest().encode() != sealed:
            break
        previous = sealed
        next_id += 1
    return next_id, previous


def link(row_id: int, body: bytes, previous_hash: str) -> str:
    """Return the hash that binds a row's content to its place."""
    sha = _FRESH.copy()  # cheaper than making one
    sha.update(f"{row_id}:{previous_hash}:".encode() + body)
    return sha.hexdigest()


PSEUDONYM: Final = "hmac:"
_THOUGHT: Final = "thought sha256:"


def thought_note(thought: str) -> str:
    """Return the audit note on a reply's thought: a digest, since free text may be personal."""
    return f"{_THOUGHT}{hashlib.sha256(thought.encode(errors='surrogatepass')).hexdigest()}"


def names_thought(note: str) -> bool:
    """Return whether a row names the digest of a thought."""
    return note.startswith(_THOUGHT)


class Pseudonyms:
    """Replaces names that are themselves personal by a keyed digest for the audit; other names stay.

    Equal names have equal digests, and without the key a name cannot be found by trying. Digests of older versions
    (`sha256:…`, without a key) are not changed.
    """

    __slots__ = ("_key", "of")

    def __init__(self, key: bytes) -> None:
        self._key = key
        # Returns the name, or its digest if it is personal.
        self.of = lru_cache(maxsize=4096)(self._pseudonym)

    def digest(self, text: str) -> str:
        """Return a short digest under which equal texts can be found without storing them."""
        return f"{PSEUDONYM}{hmac.digest(self._key, text.encode(errors='surrogatepass'), 'sha256')[:8].hex()}"

    def _pseudonym(self, name: str) -> str:
        is_opaque = name.isascii() and not ("@" in name or " " in name or _looks_like_a_phone_number(name))
        return name if is_opaque else self.digest(name)


def _looks_like_a_phone_number(text: str) -> bool:
    digits = sum(character.isdigit() for character in text)
    return digits >= 7 and all(character.isdigit() or character in "+-() ." for character in text)
