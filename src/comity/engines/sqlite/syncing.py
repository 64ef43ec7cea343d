"""When a commit is synced to the disk: inside its transaction, right after it, or with the next one.

A process that is alone lets SQLite sync inside the transaction (`synchronous=FULL`). Processes that share a store would wait
for each other's syncs then. They commit at `synchronous=NORMAL`, end the transaction, and sync the write-ahead log themselves
before their waiters are resolved, so the next process writes meanwhile. Others can read a commit before it is synced: ADR 150
says why no answer rests on it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Final

from comity.core.handoff.queue import Step
from comity.core.journal.records import Document, Saved
from comity.engines.sqlite.judging import Written, each
from comity.engines.sqlite.turns import Turns


class Sync(Enum):
    """When the write-ahead log is synced."""

    WITHIN = "FULL"  # inside the transaction, by SQLite
    AFTER = "after"  # by this process, before its waiters are resolved
    LATER = "later"  # with a later commit: a power failure may lose it


# A process reads these only for calls whose records it writes and syncs afterwards, before any caller gets a reply.
_OF_CALLS: Final = frozenset({Document.STATE, Document.SESSION, Document.PART, Document.USE, Document.VAULT, Document.FENCE})


class Syncing:
    """The syncs of one process's writer."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._is_full = True  # as `connect` leaves the connection

    @contextmanager
    def commit(self, connection: sqlite3.Connection, records: Sequence[Written]) -> Iterator[None]:
        """Context manager for one transaction under the write lock; on exit it is synced if it must survive a power failure."""
        with self._turns:
            sync = sync_of(records, is_shared=self._turns.is_shared())
            if self._is_full is not (sync is Sync.WITHIN):  # within a transaction the level cannot be changed
                connection.execute(f"PRAGMA synchronous = {'NORMAL' if self._is_full else 'FULL'}")
                self._is_full = not self._is_full
            yield
        if sync is Sync.AFTER:
            self._turns.sync()


def sync_of(records: Sequence[Written], *, is_shared: bool) -> Sync:
    """Return when the commit of a batch is to be synced."""
    steps = [one for one in records if type(one) is Step]
    if steps:
        is_lasting = len(steps) < len(records) or any(one.needs_sync for one in steps)
        return Sync.WITHIN if is_lasting else Sync.LATER
    if is_shared and all(type(one) is not Saved or one.kind in _OF_CALLS for one in each(records)):
        return Sync.AFTER
    return Sync.WITHIN
