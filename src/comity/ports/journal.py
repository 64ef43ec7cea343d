"""The journal of an engine: ordered, conditional appends, and reads."""

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
    """Appends records in order, and reads them back.

    `append` never waits. Records of one `append` become durable together or not at all. The callback `then` is called in the
    event loop once they and all records they depend on are durable, or with the error that stopped the journal; after that
    nothing is accepted. Records depend on all earlier ones, except those about calls and sessions of other users. An append
    without records waits for everything before it.

    The terms of an append are checked against the store, including records of other nodes, in the transaction that writes it.
    If one does not hold, nothing is written, `then` is called with `StaleLeaseError` or `CallChangedError`, and the journal
    continues. `core.journal.terms.taken` says which records such an append writes.
    """

    @property
    def node_id(self) -> str:
        """The id of this node, new each time the journal is opened."""
        ...

    names: Pseudonyms  # for the audit; set by the node, which has the key, before its first append

    forgot: Callable[[Sequence[str]], None] | None  # callback with keys of sessions that the engine dropped; set by the node

    @property
    def failure(self) -> UnavailableError | None:
        """The error that stopped the journal, or None; it stays until the node is restarted."""
        ...

    @property
    def is_idle(self) -> bool:
        """Whether all appends are durable."""
        ...

    @property
    def is_awaited(self) -> bool:
        """Whether a caller waits for an append to become durable."""
        ...

    @property
    def keeps_json(self) -> bool:
        """Whether it keeps replies only as JSON, so that the data of a `Settled` record's reply may be `msgspec.Raw`."""
        ...

    def open(self) -> None:
        """Open the store. Raises `UnavailableError` if it cannot be used."""
        ...

    async def close(self) -> None:
        """Make everything durable and close the store."""
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
        """Return the open calls of dead nodes, and assign them to this node."""
        ...

    def open_roots(self) -> list[StoredCall]:
        """Return users' open calls that are not paused, on all nodes, oldest first."""
        ...

    def begun(self, request: Request) -> int:
        """Return how many calls below this one were accepted, ended or not, as of the last commit."""
        ...

    def take_paused(self, root_id: str) -> list[StoredCall]:
        """Return the open calls of a paused tree and assign them to this node; nothing if another node was first."""
        ...

    def load(self, kind: Document, key: str) -> tuple[int, bytes] | None:
        """Return version and data of a document."""
        ...

    def load_written(self, kind: Document, key: str) -> tuple[int, bytes] | None:
        """Return version and data of a document, without pending writes."""
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
        """Erase a document; return whether there was one. No write of it may be pending."""
        ...

    def sessions_of(self, tenant_id: str, user_id: str) -> set[str]:
        """Return the session ids of a user's calls and handoffs, implicit sessions included."""
        ...

    @property
    def prunes_aside(self) -> bool:
        """Whether a sweep blocks, and so should run in another thread than the event loop's."""
        ...

    def prune(self, retention: Retention, now_ms: int) -> Sweep:
        """Remove what is past its retention, one slice per step; without spans. What is still needed stays."""
        ...

    def rows(self, *, after_id: int = 0, limit: int | None = None, root_id: str | None = None) -> list[Row]:
        """Return audit rows in order."""
        ...

    def verify(self, tell: Tell | None = None) -> Verdict:
        """Check the whole audit chain; `tell` is called as the check goes on, in the thread that checks."""
        ...
