"""What people look at of a node without a store: the same lists, from what the node keeps in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from comity.core.handoff.machine import Handoff, State
from comity.core.journal.audit import Row
from comity.core.journal.records import Document, StoredCall
from comity.core.reading import AuditFilter, Bucket, CallFilter, CallRow, Page, Traffic, read_cursor, write_cursor
from comity.core.reading.page import ROWS_DEFAULT
from comity.core.session import parts
from comity.core.session.session import Session
from comity.engines.memory.journal import MemoryJournal
from comity.engines.sqlite.call_index import CallIndex


class MemoryReader:
    """A view of a journal in memory. Used in the event loop, as the journal is."""

    is_aside = False
    is_whole = True

    def __init__(self, journal: MemoryJournal) -> None:
        self._journal = journal
        self._index = CallIndex(None)

    def close(self) -> None:
        """Let go of the index."""
        self._index.close()

    def head_id(self) -> int:
        """Return the id of the newest audit row; 0 if there is none."""
        return self._journal.head_id

    def rows_after(self, after_id: int, limit: int) -> list[Row]:
        """Return audit rows after an id, in order."""
        return self._journal.rows(after_id=after_id, limit=limit)

    def rows(self, *, root_id: str) -> list[Row]:
        """Return the audit rows of one call tree, in order."""
        return self._journal.rows(root_id=root_id)

    def call(self, request_id: str) -> StoredCall | None:
        """Return what is kept of an accepted call."""
        return self._journal.call(request_id)

    def calls_page(self, wanted: CallFilter, cursor: str | None = None, limit: int = ROWS_DEFAULT) -> Page[CallRow]:
        """Return the calls that a filter lets pass, newest first."""
        return self._caught_up().calls(wanted, cursor, limit)

    def call_row(self, request_id: str) -> CallRow | None:
        """Return one call as it is listed."""
        return self._caught_up().call(request_id)

    def call_rows(self, request_ids: Iterable[str]) -> list[CallRow]:
        """Return calls as they are listed, in the order of their ids; an unknown call is left out."""
        index = self._caught_up()
        return [found for one in request_ids if (found := index.call(one)) is not None]

    def tree(self, root_id: str, limit: int) -> list[CallRow]:
        """Return a call and everything below it, in the order in which they began."""
        return self._caught_up().tree(root_id, limit)

    def histogram(self, wanted: CallFilter, since: int | None, until: int, buckets: int) -> list[Bucket]:
        """Return how many calls of each status began in each span."""
        return self._caught_up().histogram(wanted, since, until, buckets)

    def traffic(self, since: int, tenant_id: str | None) -> Traffic:
        """Return which agent called which since a time, and how often calls were refused."""
        return self._caught_up().traffic(since, tenant_id)

    def audit_page(self, wanted: AuditFilter, cursor: str | None = None, limit: int = ROWS_DEFAULT) -> Page[Row]:
        """Return audit rows that a filter lets pass, newest first."""
        below = None if cursor is None else int(read_cursor(cursor, int)[0])
        kept = self._journal.rows(root_id=wanted.root_id)
        found = [row for row in reversed(kept) if (below is None or row.id < below) and wanted.passes(row)]
        return Page(found[:limit], write_cursor(found[limit - 1].id) if len(found) > limit else None)

    def sessions_page(
        self, *, tenant_id: str | None = None, user_id: str | None = None, cursor: str | None = None, limit: int = ROWS_DEFAULT
    ) -> Page[Session]:
        """Return sessions, the latest used first."""
        stored = [self._journal.load_session(key) for key, _ in self._journal.list_documents(Document.SESSION)]
        kept = [parts.read(one.head, one.rows)[0] for one in stored if one is not None]
        wanted = [one for one in kept if tenant_id in {None, one.tenant_id} and user_id in {None, one.user_id}]
        wanted.sort(key=_place_of, reverse=True)
        if cursor is not None:
            place = read_cursor(cursor, int, str)
            wanted = [one for one in wanted if _place_of(one) < place]
        found = [one for one in wanted if one.id.isprintable()]
        return Page(found[:limit], write_cursor(*_place_of(found[limit - 1])) if len(found) > limit else None)

    def handoffs_page(
        self,
        *,
        states: Collection[State] = tuple(State),
        target: str | None = None,
        tenant_id: str | None = None,
        cursor: str | None = None,
        limit: int = ROWS_DEFAULT,
    ) -> Page[Handoff]:
        """Return handoffs, newest first."""
        kept = self._journal.handoffs.find(states=states, limit=2**31)
        wanted = [one for one in kept if tenant_id in {None, one.request.tenant_id}]
        wanted = [one for one in wanted if target in {None, one.lane.rpartition("\x1f")[2]}]
        if cursor is not None:
            (last,) = read_cursor(cursor, str)
            ids = [one.id for one in wanted]
            wanted = wanted[ids.index(last) + 1 :] if last in ids else []
        return Page(wanted[:limit], write_cursor(wanted[limit - 1].id) if len(wanted) > limit else None)

    def catch_up(self) -> bool:
        """Return True: lists take in what is new as they are asked."""
        return True

    def _caught_up(self) -> CallIndex:
        self._index.catch_up(self.rows_after, self._journal.first_id)
        return self._index


def _place_of(session: Session) -> tuple[int, str]:
    return session.used_at, f"{session.tenant_id}\x1f{session.id}"
