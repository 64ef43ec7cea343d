"""Lists of calls read from the audit itself, while the index of a long audit is being built.

A page reads only the part of the audit before its cursor, so it costs the same in an audit of any length. If the end of a call
is in a later part, it is read from the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Final, Protocol

from msgspec.structs import replace

from comity.core.journal.audit import Row
from comity.core.journal.records import StoredCall
from comity.core.reading import CallFilter, CallRow, Page, read_cursor, write_cursor
from comity.core.reading.calls import RUNNING
from comity.engines.sqlite.call_index import CallIndex

PART_ROWS: Final = 4_000  # audit rows read at a time
PARTS_MAX: Final = 5  # parts read for one page


class Audit(Protocol):
    """The methods of a store reader that are used here."""

    def head_id(self) -> int:
        """Return the id of the newest audit row; 0 if there is none."""
        ...

    def rows_after(self, after_id: int, limit: int) -> list[Row]:
        """Return audit rows after an id, in order."""
        ...

    def root_rows(self, after_id: int, until_id: int) -> list[Row]:
        """Return the audit rows of roots alone, after an id and up to another, in order."""
        ...

    def rows(self, *, root_id: str) -> list[Row]:
        """Return the audit rows of one call tree, in order."""
        ...

    def root_of(self, request_id: str) -> str | None:
        """Return the id of the root of the tree a call belongs to."""
        ...

    def call(self, request_id: str) -> StoredCall | None:
        """Return an accepted call, or None."""
        ...


class AuditParts:
    """The calls of an audit, without an index."""

    def __init__(self, audit: Audit, first_id: int) -> None:
        self._audit = audit
        self._first_id = first_id

    def page(self, wanted: CallFilter, cursor: str | None, limit: int) -> Page[CallRow]:
        """Return the calls that match a filter, newest first. If few match, a page may be short although more follow."""
        high = self._audit.head_id() if cursor is None else int(read_cursor(cursor, int)[0]) - 1
        found: list[CallRow] = []
        for _ in range(PARTS_MAX):
            low = max(high - PART_ROWS, self._first_id - 1)
            # A tree may have thousands of rows: for a list of roots only theirs are parsed.
            rows = self._audit.root_rows(low, high) if wanted.roots_only else self._audit.rows_after(low, high - low)
            with _folded(rows) as part:
                page = part.calls(wanted, None, limit - len(found))
            found += page.items
            high = low if page.next is None else read_cursor(page.next, int)[0] - 1
            if len(found) >= limit or high < self._first_id:
                break
        return Page([self._ended(one) for one in found], write_cursor(high + 1) if high >= self._first_id else None)

    def newest(self) -> AbstractContextManager[CallIndex]:
        """Return a context manager with an index of the newest calls."""
        return _folded(self._audit.rows_after(max(self._audit.head_id() - PART_ROWS, 0), PART_ROWS))

    def calls(self, request_ids: Iterable[str]) -> list[CallRow]:
        """Return calls by their ids: from the newest rows, or from the rows of their tree."""
        found = []
        with self.newest() as newest:
            for request_id in request_ids:
                row = newest.call(request_id)
                if row is None and (root_id := self._audit.root_of(request_id)) is not None:
                    with _folded(self._audit.rows(root_id=root_id)) as tree:
                        row = tree.call(request_id)
                if row is not None:
                    found.append(self._ended(row))
        return found

    def tree(self, root_id: str, limit: int) -> list[CallRow]:
        """Return a call and everything below it, in the order in which they began."""
        with _folded(self._audit.rows(root_id=root_id)) as tree:
            return tree.tree(root_id, limit)

    def _ended(self, row: CallRow) -> CallRow:
        """Return a row with the end of its call, read from the store if it is in a later part of the audit."""
        stored = self._audit.call(row.request_id) if row.status == RUNNING else None
        if stored is None or stored.reply is None:
            return row
        reply = stored.reply
        return replace(
            row,
            status=str(reply.status),
            error_code=None if reply.error is None else reply.error.code,
            settled_at=row.created_at + round(reply.duration_ms),
            duration_ms=reply.duration_ms,
            tokens=reply.usage.total_tokens,
            cost=reply.usage.cost,
        )


@contextmanager
def _folded(rows: list[Row]) -> Iterator[CallIndex]:
    """Context manager: an in-memory index of the calls in some audit rows."""
    with closing(CallIndex(None)) as index:
        index.take_part(rows)
        yield index
