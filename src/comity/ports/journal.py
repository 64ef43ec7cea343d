"""The journal of an engine: records in order, on terms, and read back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from comity.core.envelope.envelope import Request
from comity.core.journal.audit import Pseudonyms, Row, Tell, Verdict
from comity.core.journal.records import Document, Record, StoredCall, StoredSession
from comity.core.journal.retention import Retention, Sweep
from comity.core.journal.terms import Terms
from comity.errors import UnavailableError

Then = Callable[[Exception | None], None]


class Journal(Protocol):
    """Where records go, in order, and where they are read back.

    `append` never waits. Records of one `append` become durable together or not at all. `then` is called in the event loop once
    they and all that they may build on are durable, or with the error that stopped the journal; after an error nothing is
    accepted. They build on what was appended before them, unless all of it is about calls and sessions of other users. An
    append without records waits for everything before it.

    An append on terms is checked against the store, also against what other nodes wrote, in the same step in which it is
    written. Where they do not hold nothing of it is written, `then` is called with `StaleLeaseError` or `CallChangedError`,
    and the journal goes on. What such an append amounts to, `core.journal.terms.taken` says.
    """

    @property
    def node_id(self) -> str:
        """Name of this holder of the journal, new each time it is opened."""
        ...

    names: Pseudonyms  # how names stand in the audit; set by the node, which has the key, before it appends anything

    forgot: Callable[[Sequence[str]], None] | None  # told the keys of sessions for which an engine had no room; set by the node

    @property
    def failure(self) -> UnavailableError | None:
        """Why nothing is accepted any more, once that is so: it stays so until the node is restarted."""
        ...

    @property
    def is_idle(self) -> bool:
        """Whether everything that was appended is durable."""
        ...

    @property
    def is_awaited(self) -> bool:
        """Whether a caller waits until something that was appended is durable."""
        ...

    @property
    def keeps_json(self) -> bool:
        """Whether it keeps replies as JSON alone: then the data of a `Settled` record's reply may be `msgspec.Raw`."""
        ...

    def open(self) -> None:
        """Make ready. Raises `UnavailableError` if the store cannot be used."""
        ...

    async def close(self) -> None:
        """Make everything durable and let go."""
        ...

    def append(self, records: Sequence[Record], then: Then | None = None, terms: Terms | None = None) -> None:
        """Write records after all earlier ones, if the terms hold."""
        ...

    def call(self, request_id: str) -> StoredCall | None:
        """Return a call by id."""
        ...

    def calls(self, *, limit: int) -> list[StoredCall]:
        """Return calls by users, newest first."""
        ...

    def abandoned(self) -> list[StoredCall]:
        """Return open calls whose node is gone, and make them this node's own."""
        ...

    def open_roots(self) -> list[StoredCall]:
        """Return the open calls by users that no person is asked about, whichever node runs them, oldest first."""
        ...

    def begun(self, request: Request) -> int:
        """Return how many calls below this one were accepted, ended or not, as of the last commit."""
        ...

    def take_paused(self, root_id: str) -> list[StoredCall]:
        """Return the open calls of a paused tree and make them this node's own; nothing if another node was first."""
        ...

    def load(self, kind: Document, key: str) -> tuple[int, bytes] | None:
        """Return version and data of a document."""
        ...

    def load_written(self, kind: Document, key: str) -> tuple[int, bytes] | None:
        """Return version and data of a document as it was last written, without what is on its way."""
        ...

    def load_session(self, key: str, *, is_written: bool = False) -> StoredSession | None:
        """Return a session as of one moment; with `is_written` as it was last written, without what is on its way."""
        ...

    def list_documents(self, kind: Document, limit: int | None = None) -> list[tuple[str, bytes]]:
        """Return the documents of a kind with their keys, in order of keys, at most `limit`."""
        ...

    def documents_below(self, kind: Document, key: str) -> list[tuple[str, bytes]]:
        """Return the documents of a kind that belong to the one under `key` (see `records.below`), in order of keys."""
        ...

    def erase(self, tenant_id: str, session_id: str) -> int:
        """Remove a session's documents, calls and replies for good and return how many; the audit stays whole."""
        ...

    def remove(self, kind: Document, key: str) -> bool:
        """Remove a document for good; return whether there was one. Nothing of it may be on its way to the store."""
        ...

    def sessions_of(self, tenant_id: str, user_id: str) -> set[str]:
        """Return the ids of the sessions in which a user called or handed work off, also of calls that named none."""
        ...

    @property
    def prunes_aside(self) -> bool:
        """Whether a sweep may be stepped through in another thread than the event loop's, and should be, since it waits."""
        ...

    def prune(self, retention: Retention, now_ms: int) -> Sweep:
        """Remove what is kept no longer, a slice with each step; spans aside. What is still needed stays."""
        ...

    def rows(self, *, after_id: int = 0, limit: int | None = None, root_id: str | None = None) -> list[Row]:
        """Return audit rows in order."""
        ...

    def verify(self, tell: Tell | None = None) -> Verdict:
        """Check the whole audit chain; `tell` is called as the check goes on, in the thread that checks."""
        ...
