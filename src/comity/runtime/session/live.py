"""A session in memory, with its vault and the ended calls that are not saved in it yet."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

import msgspec

from comity.core.envelope.envelope import Reply, Request
from comity.core.journal.records import StoredSession
from comity.core.redaction import Vault
from comity.core.session import session as core
from comity.core.session.conversation import TURNS_CHARS_MAX, TURNS_MAX
from comity.core.session.parts import Parts, read
from comity.core.session.session import Change, Session
from comity.errors import UnavailableError
from comity.runtime.session.standing import Standing

# Size of the ended calls that are not saved yet: no more than the conversation would keep of them.
ENDED_BYTES_MAX: Final = 2 * TURNS_CHARS_MAX
ENDED_MAX: Final = TURNS_MAX // 2
UNCOUNTED_BYTES: Final = ENDED_BYTES_MAX // 2 // ENDED_MAX  # a smaller request is not counted
SEPARATOR: Final = "\x1f"  # cannot occur in a name
UNSEALED: Final = (-1, b"")


class Noted(NamedTuple):
    """A session before and after the ended calls that are not saved yet, and the changes of these calls."""

    before: Session
    session: Session
    changes: list[Change]


class Kept(NamedTuple):
    """What a session keeps of a call with a long reply, instead of the reply."""

    told: core.Say | None
    answer: core.Answer


Ended = tuple[Request, Reply | Kept, int]  # and the time of its end
Answered = tuple[Request, Reply | Kept]


class Live:
    """A session in memory, with its vault."""

    __slots__ = (
        "answers", "ended", "ended_bytes", "is_gone", "is_stored", "noted", "noted_at", "parts", "sealed",
        "session", "standing", "used_at", "vault", "vault_saved",
        "vault_version",
    )  # fmt: skip

    def __init__(
        self,
        session: Session,
        parts: Parts | None = None,
        vault: Vault | None = None,
        vault_version: int = 0,
        noted_at: int = 0,
        *,
        is_stored: bool = True,
    ) -> None:
        self.session = session
        self.parts = parts or Parts()  # the rows that hold it in the store
        self.is_stored = is_stored  # the store has it, or will
        self.is_gone = False  # it was erased: code that still refers to it must not save it again
        self.noted_at = noted_at  # when its use was last recorded
        self.used_at = max(session.used_at, noted_at)
        self.vault = vault
        self.vault_version = vault_version
        self.vault_saved = 0 if vault is None else len(vault)
        self.ended_bytes = 0  # size of the larger requests and replies in `ended`
        self.sealed = UNSEALED  # the encrypted vault, and its number of values
        # Ended calls that are not in `session` yet: users' calls without a message, and the newest of each capability.
        self.ended: deque[Ended] | None = None
        self.answers: dict[tuple[str, str], Answered] | None = None
        self.noted: Noted | None = None
        self.standing = Standing()  # unsaved changes, where several nodes write the session

    @property
    def key(self) -> str:
        """The name it is stored under."""
        return key_of(self.session.tenant_id, self.session.id)


def read_stored(stored: StoredSession, session_id: str) -> tuple[Session, Parts]:
    """Return a session with its parts. Raises `UnavailableError` if it cannot be read."""
    try:
        return read(stored.head, stored.rows)
    except (msgspec.MsgspecError, ValueError) as error:  # one unreadable session must not affect others
        message = f"the session {session_id!r} cannot be read: {error}; erase it, or bring back a copy of the store"
        raise UnavailableError(message, code="STORE_UNAVAILABLE", retryable=False) from None


def key_of(tenant_id: str, session_id: str) -> str:
    """Return the name a session is stored under."""
    return f"{tenant_id}{SEPARATOR}{session_id}"


def kept(request: Request, reply: Reply, at_ms: int = 0) -> Kept:
    return Kept(core.told(request, reply, at_ms), core.answered(request, reply))


def size_of(ended: Ended) -> int:
    """Return the size of an ended call; a short reply does not count."""
    request, reply, _ = ended
    if not isinstance(reply, Kept):
        return len(request.body)
    return len(request.body) + core.RESULT_CHARS_MAX + (0 if reply.told is None else len(reply.told.text))


def drop_older(live: Live, ended: deque[Ended]) -> None:
    """Drop the oldest unsaved calls, down to a quarter of `ENDED_BYTES_MAX`; their answers stay."""
    left = live.ended_bytes = 0  # recounted: some calls have left the deque, small ones were not counted
    for one in reversed(ended):
        size = size_of(one)
        if left and live.ended_bytes + size > ENDED_BYTES_MAX // 4:
            break
        left += 1
        live.ended_bytes += size
    live.answers = live.answers or {}
    while len(ended) > left:
        request, reply, _ = ended.popleft()
        known = live.answers.get((request.target, request.capability))
        if known is None or known[0].created_at <= request.created_at:
            live.answers[request.target, request.capability] = (request, reply)
