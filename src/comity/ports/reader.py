"""The read port of the console and the command line: lists, trees and live rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from comity.core.handoff.machine import Handoff, State
from comity.core.journal.audit import Row
from comity.core.journal.records import StoredCall
from comity.core.reading import AuditFilter, Bucket, CallFilter, CallRow, Page, Traffic
from comity.core.reading.page import ROWS_DEFAULT
from comity.core.session.session import Session


class Reader(Protocol):
    """Read-only lists, paged by cursor, equal on every engine.

    Pages are newest first. A cursor is opaque, and holds while rows are added and removed. Any method may raise
    `UnavailableError` STORE_UNAVAILABLE, and those that take a cursor `CallerError` for a cursor that no page gave.
    """

    @property
    def is_aside(self) -> bool:
        """Whether reading waits for a disk: then it is done in another thread than the event loop's, one at a time."""
        ...

    @property
    def is_whole(self) -> bool:
        """Whether lists and counts are of all calls; False while an index of a long audit is made, see `catch_up`."""
        ...

    def catch_up(self) -> bool:
        """Build a bounded part of the index behind lists; return whether it is complete."""
        ...

    def close(self) -> None:
        """Close the reader."""
        ...

    def head_id(self) -> int:
        """Return the id of the newest audit row; 0 if there is none."""
        ...

    def rows_after(self, after_id: int, limit: int) -> list[Row]:
        """Return audit rows after an id, in order: what live views follow."""
        ...

    def rows(self, *, root_id: str) -> list[Row]:
        """Return the audit rows of one call tree, in order."""
        ...

    def audit_page(self, wanted: AuditFilter, cursor: str | None = None, limit: int = ROWS_DEFAULT) -> Page[Row]:
        """Return audit rows that match a filter; if few match, a page may be short although more follow."""
        ...

    def call(self, request_id: str) -> StoredCall | None:
        """Return an accepted call, or None."""
        ...

    def call_row(self, request_id: str) -> CallRow | None:
        """Return one call as it is listed."""
        ...

    def call_rows(self, request_ids: Iterable[str]) -> list[CallRow]:
        """Return calls as they are listed, in the order of their ids; an unknown call is left out."""
        ...

    def calls_page(self, wanted: CallFilter, cursor: str | None = None, limit: int = ROWS_DEFAULT) -> Page[CallRow]:
        """Return the calls that match a filter."""
        ...

    def tree(self, root_id: str, limit: int) -> list[CallRow]:
        """Return a call and everything below it, in the order in which they began."""
        ...

    def histogram(self, wanted: CallFilter, since: int | None, until: int, buckets: int) -> list[Bucket]:
        """Return the number of calls per status in each of `buckets` equal time ranges.

        Without `since`, the first range begins with the newest thousand calls.
        """
        ...

    def traffic(self, since: int, tenant_id: str | None) -> Traffic:
        """Return which agent called which since a time, and how often calls were refused, among the newest calls."""
        ...

    def sessions_page(
        self, *, tenant_id: str | None = None, user_id: str | None = None, cursor: str | None = None, limit: int = ROWS_DEFAULT
    ) -> Page[Session]:
        """Return sessions, the latest used first."""
        ...

    def handoffs_page(
        self,
        *,
        states: Collection[State] = ...,
        target: str | None = None,
        tenant_id: str | None = None,
        cursor: str | None = None,
        limit: int = ROWS_DEFAULT,
    ) -> Page[Handoff]:
        """Return handoffs."""
        ...
