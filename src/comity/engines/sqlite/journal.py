"""The embedded store: SQLite in WAL mode, synced before a commit is acknowledged, one writer thread, group commit.

The event loop gathers records; the writer thread gets a batch, writes it in one transaction and reports back once. So a durable
write costs a share of an fsync, and the loop never waits for the disk. Gathered records and their callbacks belong to the loop
alone; only whole batches and reports cross to the other thread.

Several processes may use one store. After a failed write this journal accepts nothing more, since nothing later may be
acknowledged.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

import msgspec

from comity.core.envelope.envelope import Request
from comity.core.handoff.queue import Step
from comity.core.journal.audit import Row, Tell, Verdict
from comity.core.journal.records import (
    PAUSED_AT,
    Accepted,
    Document,
    Paused,
    Record,
    Saved,
    Settled,
    StoredCall,
    StoredSession,
    below,
    with_unwritten,
)
from comity.core.journal.retention import Retention, Sweep
from comity.core.journal.terms import Terms
from comity.engines.cipher import FRESH_NAMES, audit_key
from comity.engines.sqlite import erasing, person, shares, tables
from comity.engines.sqlite import file as store_file
from comity.engines.sqlite import handoff_rows as handoff_tables
from comity.engines.sqlite import liveness as presence
from comity.engines.sqlite.audit_rows import read_rows, verify_chain
from comity.engines.sqlite.call_rows import readable
from comity.engines.sqlite.checkpoints import Checkpoints
from comity.engines.sqlite.connecting import BUSY_TIMEOUT_MS, connect
from comity.engines.sqlite.files import StoreFiles, database_files
from comity.engines.sqlite.handoffs import SqliteHandoffs
from comity.engines.sqlite.judging import Conditional, Written, count_begun, read_call
from comity.engines.sqlite.liveness import Members
from comity.engines.sqlite.spacing import Spacing
from comity.engines.sqlite.syncing import Syncing
from comity.engines.sqlite.tables import SCHEMA_VERSION
from comity.engines.sqlite.turns import Turns
from comity.errors import UnavailableError
from comity.ports import Then

if TYPE_CHECKING:
    from comity.engines.sqlite.retention import Pruner

__all__ = ["SCHEMA_VERSION", "SqliteJournal", "connect", "read_call", "read_rows", "verify_chain"]

log = logging.getLogger("comity")

FLUSH_S: Final = 0.02  # how long records are gathered at most while no caller waits
# Commits between two checkpoints. A short WAL is overwritten in place, which syncs faster.
CHECKPOINT_COMMITS: Final = 64
# The GIL's switch interval. A commit acquires the GIL a dozen times, and all calls wait for the commit.
SWITCH_S: Final = 0.0005

_Documents = dict[tuple[Document, str], Saved]
_Batch = tuple[list[shares.Group], list[Then]]


class SqliteJournal:
    """A journal in one file."""

    def __init__(self, path: str | Path, node_id: str, *, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> None:
        self.path = Path(path)
        self.node_id = node_id
        self.failure: UnavailableError | None = None  # why nothing is accepted any more
        self.forgot: Callable[[Sequence[str]], None] | None = None  # part of the port; a file forgets nothing
        self.names = FRESH_NAMES  # pseudonyms for the audit; the node sets them from its key
        self._busy_timeout_ms = busy_timeout_ms
        self.members = Members(self.path, node_id)
        self.takes_over = True  # whether it resumes open calls of dead nodes
        self.handoffs = SqliteHandoffs(self.path, node_id, self._reading, self._aside, self._is_alive)
        self._files = StoreFiles()  # of the database
        self._beside = StoreFiles()  # further files of the store (spans, key)
        self._reader: sqlite3.Connection | None = None
        self._writer: sqlite3.Connection | None = None  # of the writer's thread while that runs
        self._thread: threading.Thread | None = None
        self._batches: SimpleQueue[_Batch | None] = SimpleQueue()
        # The rest belongs to the event loop.
        self._groups: list[shares.Group] = []  # records of one append each, and their callback
        self._thens: list[Then] = []  # of these groups
        self._sharing = shares.Sharing()
        self._gathered: _Documents = {}  # documents of the next batch; with `_in_writing`, those not in the file yet
        self._in_writing: _Documents = {}
        self._open = 0  # open calls that this journal accepted, which may settle any moment
        self._is_writing = False  # the writer has a batch and will report
        self._is_written_for = False  # a caller waits for that batch
        self._handed_over_s = 0.0
        self._spacing = Spacing()
        self._timer: asyncio.TimerHandle | None = None
        self._pruner: Pruner | None = None  # used only by `prune`
        self._turns = Turns(lambda: not self.members.is_alone)  # the writer and sweeps take turns
        self._syncing = Syncing(self._turns)  # belongs to the writer's thread

    def _lost(self, error: OSError) -> UnavailableError:
        """Fail the journal: a file of the store, or its folder, is missing or unreadable."""
        if self.failure is None:
            message = f"the store {self.path} is gone: {error}; restart the node once the cause is gone"
            self.failure = UnavailableError(message, code="STORE_UNAVAILABLE", retryable=False)
            log.error("nothing more is accepted: %s", self.failure)
        return self.failure

    @property
    def is_idle(self) -> bool:
        """Whether all appended records are written."""
        return not self._groups and not self._is_writing

    @property
    def is_awaited(self) -> bool:
        """Whether a caller waits for a commit."""
        return self._is_written_for or bool(self._thens)

    @property
    def under_way_s(self) -> float:
        """How long the writer has been writing its batch, in seconds of real time; 0 if it is idle."""
        return time.monotonic() - self._handed_over_s if self._is_writing else 0.0

    # --- opening and closing ---

    def open(self) -> None:
        """Create or check the file and start the writer."""
        with contextlib.ExitStack() as undo:
            try:
                store_file.make_file(self.path)
                writer = undo.enter_context(contextlib.closing(connect(self.path, busy_timeout_ms=self._busy_timeout_ms)))
                tables.prepare(writer)
                reader = connect(self.path, read_only=True, busy_timeout_ms=self._busy_timeout_ms)
                undo.callback(reader.close)
                writer.execute("BEGIN IMMEDIATE")  # of two processes that come at once, one enters after the other
                self.members.enter()
                undo.callback(self.members.leave)
                presence.clear(self.path)
                writer.execute("UPDATE head SET id = id")  # a file that cannot be written opens all the same
                writer.execute("COMMIT")
                self._files = StoreFiles(*database_files(self.path), self.members.path)
                self._turns.open(database_files(self.path)[1])
                undo.callback(self._turns.close)
            except (sqlite3.Error, OSError) as error:
                raise _unavailable(f"cannot open the store {self.path}: {error}") from error
            undo.pop_all()
        self._reader, self._writer = reader, writer
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._write, args=(writer,), name="comity-store", daemon=True)
        self._thread.start()
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_S))

    def watch(self, *paths: Path) -> None:
        """Fail the journal once one of these files, which belong to the store, is removed or replaced."""
        try:
            self._beside.add(*paths)
        except OSError as error:
            raise _unavailable(f"cannot open the store {self.path}: {error}") from error

    def unwatch(self) -> None:
        """Stop watching the files given to `watch`: the code that opened them closes them."""
        self._beside = StoreFiles()

    async def close(self) -> None:
        """Flush the last batch, stop the writer and close the file."""
        if self._thread is None or self._reader is None or self._writer is None:
            return
        if self._groups:
            self._hand_over(whole=True)
        self._batches.put(None)
        if self.failure is None:
            self.failure = _unavailable(f"the store {self.path} is closed")
        try:
            await self._ended.wait()
        finally:
            self._thread.join()
            self._thread = None
            self._turns.close()
            # In this order: the last writable connection to close checkpoints the WAL, and leaves one file.
            self._reader.close()
            self._files.close(self._writer, self.path)
            self._reader = self._writer = None
            self.members.leave()

    # --- gathering, in the event loop ---

    def append(self, records: Sequence[Record | Step], then: Then | None = None, terms: Terms | None = None) -> None:
        """Gather records for the writer; they stay together in one transaction."""
        if self.failure is not None:
            if then is not None:
                then(self.failure)
            return
        if terms is None:
            self._groups.append((records, then))
        else:
            conditional = Conditional(records, terms)  # type: ignore[arg-type]  # a step has terms of its own
            then = None if then is None else conditional.tell(then)
            self._groups.append(((conditional,), then))
        for record in records:
            kind = type(record)
            if kind is Accepted:
                self._open += 1
            elif kind is Settled or kind is Paused:
                if self._open:  # calls accepted before a restart were not counted
                    self._open -= 1
            elif kind is Saved:
                tables.keep_newest(self._gathered, record)  # type: ignore[arg-type]
        if then is not None:
            self._thens.append(then)
        if self._is_writing:
            return
        if not self._thens:
            if self._timer is None:
                self._arm(FLUSH_S)
        elif records and type(records[0]) is Step and not self._open:
            if self._timer is None or self._timer.when() > self._loop.time():
                self._arm(0)  # steps come in bursts: those of one turn of the loop share a commit
        elif not self._gathers:
            self._hand_over()
        elif then is not None and len(self._thens) == 1:
            self._arm_gathering()

    @property
    def _gathers(self) -> bool:
        """Whether more records are likely to come soon: calls are open, or several callers waited for the last commit."""
        return self._open > 0 or self._spacing.served > 1

    def _arm_gathering(self) -> None:
        """Wait a little for calls that may settle any moment."""
        now_s = self._loop.time()
        self._arm(self._spacing.delay_s(now_s, is_shared=self._sharing.is_shared(now_s)))

    def _arm(self, delay_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(delay_s, self._hand_over)

    def _hand_over(self, *, whole: bool = False) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        groups, thens = self._groups, self._thens
        now_s = self._loop.time()
        self._groups, self._thens = [], []
        self._in_writing, self._gathered = self._gathered, {}
        # With several processes nearly every record has terms, and a batch with terms is written whole.
        if self.members.is_alone:
            self._sharing.note(groups, now_s)
            if self._sharing.is_shared(now_s) and not whole:
                groups, self._groups = shares.divide(groups)
            if self._groups:
                thens, self._thens = shares.thens_of(groups), shares.thens_of(self._groups)
                for saved in shares.documents_of(self._groups):
                    tables.keep_newest(self._gathered, saved)
        self._is_written_for = bool(thens)
        self._spacing.begin(now_s, len(thens), has_left=bool(self._groups))
        self._is_writing, self._handed_over_s = True, time.monotonic()
        self._batches.put((groups, thens))

    def _reported(self, thens: list[Then], error: UnavailableError | None, rung: set[str]) -> None:
        """Run the callbacks of a batch in order, then hand over the next batch."""
        self._is_writing = self._is_written_for = False
        self._in_writing = {}
        self._spacing.end(self._loop.time())
        if error is not None and error is not self.failure:
            log.error("nothing more is accepted: %s", error)
            self.failure = error
            thens += self._thens
            self._groups, self._thens, self._gathered = [], [], {}
            self._loop.call_soon(self.handoffs.hear, None)  # wakes the waiters of handoffs, which get the error
        for then in thens:
            try:
                then(error)
            except Exception:  # the task boundary: one callback's fault must not affect another
                log.exception("a listener to the store failed")
        if rung:
            self._loop.call_soon(self.handoffs.hear, rung)
        if self._is_writing:  # a callback appended records and handed them over
            return
        if self._thens:
            self._loop.call_soon(self._go_on)  # later: a caller that just got its reply may make the next call
        elif self._groups:
            self._arm(FLUSH_S)

    def _go_on(self) -> None:
        if self._thens and not self._is_writing:
            self._arm_gathering() if self._gathers else self._hand_over()

    # --- writing, in the writer's thread ---

    def _write(self, connection: sqlite3.Connection) -> None:
        failure: UnavailableError | None = None
        checkpoints = Checkpoints(self.path)
        try:
            for number, (groups, thens) in enumerate(iter(self._batches.get, None), 1):
                own: set[str] = set()  # handoff topics to notify this node of
                failure = failure or self._commit(connection, [one for records, _ in groups for one in records], own)
                self._post(self._reported, thens, failure, own)
                if number % CHECKPOINT_COMMITS == 0 and failure is None:
                    checkpoints.start()
        finally:
            checkpoints.close()
            self.handoffs.silence()
            self._post(self._ended.set)

    def _commit(self, connection: sqlite3.Connection, records: list[Written], own: set[str]) -> UnavailableError | None:
        try:
            with self._syncing.commit(connection, records):
                rings = tables.write_batch(
                    connection, records, self.node_id, self._check_files, self.handoffs.perform, self.names
                )
        except Exception as error:  # noqa: BLE001  the task boundary: a writer that died silently would leave all waiting
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            message = f"the store {self.path} could not be written: {error}; restart the node once the cause is gone"
            return UnavailableError(message, code="STORE_UNAVAILABLE", retryable=False)
        if rings:
            own |= rings.pop(self.node_id, own)
            if self.handoffs.ring(rings):
                self._post(self.handoffs.hear, None)
        return None

    def _check_files(self) -> None:
        """Raise `OSError` if the database, or the lock file of this node, was removed or replaced."""
        self._files.check()
        beside = self._beside
        try:
            beside.check()
        except OSError:
            if beside is self._beside:  # else the files beside the store are being closed
                raise

    def _post(self, callback: Callable[..., None], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: no callback is left to run
            self._loop.call_soon_threadsafe(callback, *arguments)

    # --- reading ---

    def call(self, request_id: str) -> StoredCall | None:
        """Return a call by id, as of the last commit."""
        with self._reading() as connection:
            found = read_call(connection, request_id)
            if found is not None and found.settled_at is not None and not self.members.is_alone:
                self._turns.sync()  # another process may have committed this reply without syncing it yet
            return found

    def calls(self, *, limit: int) -> list[StoredCall]:
        """Return calls by users, newest first."""
        with self._reading() as connection:
            query = "SELECT open_at, body FROM calls WHERE is_root ORDER BY rowid DESC LIMIT ?"
            found = list(readable(connection.execute(query, (limit,))))
            handed_off = handoff_tables.read_calls(connection, limit)
        return sorted(found + handed_off, key=lambda call: call.created_at, reverse=True)[:limit] if handed_off else found

    def abandoned(self) -> list[StoredCall]:
        """Return the open calls of dead nodes, and assign them to this node."""
        if not self.takes_over:
            return []
        with self._reading() as connection:
            owners = connection.execute("SELECT DISTINCT open_at FROM calls WHERE open_at IS NOT NULL").fetchall()
            gone = [one for (one,) in owners if one not in {self.node_id, PAUSED_AT} and not self._is_alive(one)]
            if not gone:
                return []
            with self._aside() as writer:
                return tables.take_over(writer, gone, self.node_id)

    def open_roots(self) -> list[StoredCall]:
        """Return users' open calls that are not paused, oldest first."""
        with self._reading() as connection:
            query = "SELECT open_at, body FROM calls WHERE open_at IS NOT NULL AND open_at != ? AND is_root"
            found = readable(connection.execute(query, (PAUSED_AT,)))
            return sorted(found, key=lambda call: (call.created_at, call.request_id))

    def begun(self, request: Request) -> int:
        """Return how many calls below this one were accepted, as of the last commit."""
        with self._reading() as connection:
            return count_begun(connection, request)

    def take_paused(self, root_id: str) -> list[StoredCall]:
        """Return the open calls of a paused tree and assign them to this node; nothing if another node was first."""
        with self._reading(), self._aside() as writer:
            return tables.take_paused(writer, root_id, self.node_id)

    def load(self, kind: Document, key: str) -> tuple[int, bytes] | None:
        """Return version and data of a document, including pending writes."""
        newest = self.load_written(kind, key)
        for unwritten in (self._in_writing, self._gathered):
            saved = unwritten.get((kind, key))
            if saved is not None and (newest is None or saved.version > newest[0]):
                newest = (saved.version, saved.data)
        return newest

    def load_written(self, kind: Document, key: str) -> tuple[int, bytes] | None:
        """Return version and data of a document, without pending writes."""
        with self._reading() as connection:
            query = "SELECT version, data FROM documents WHERE kind = ? AND key = ?"
            found: tuple[int, bytes] | None = connection.execute(query, (kind.value, key)).fetchone()
        return found

    def load_session(self, key: str, *, is_written: bool = False) -> StoredSession | None:
        """Return a session, including pending writes unless `is_written`."""
        with self._reading() as connection:
            found = tables.read_session(connection, key)
        if not is_written:
            for unwritten in (self._in_writing, self._gathered):
                if (Document.SESSION, key) in unwritten:  # rows are always written with their head
                    found = with_unwritten(found, key, unwritten.values())
        return found

    def list_documents(self, kind: Document, limit: int | None = None) -> list[tuple[str, bytes]]:
        """Return the documents of a kind with their keys, in order of keys, at most `limit`."""
        query = "SELECT key FROM documents WHERE kind = ? ORDER BY key LIMIT ?"
        with self._reading() as connection:
            written = connection.execute(query, (kind.value, -1 if limit is None else limit)).fetchall()
        keys = {key for (key,) in written}
        keys |= {key for unwritten in (self._in_writing, self._gathered) for one, key in unwritten if one is kind}
        found = ((key, self.load(kind, key)) for key in sorted(keys)[:limit])
        return [(key, newest[1]) for key, newest in found if newest is not None]

    def documents_below(self, kind: Document, key: str) -> list[tuple[str, bytes]]:
        """Return the documents of a kind that belong to the one under a key, in order of keys."""
        first = below(key)
        with self._reading() as connection:
            query = "SELECT key, data FROM documents WHERE kind = ? AND key >= ? AND key < ? ORDER BY key"
            found: dict[str, bytes] = dict(connection.execute(query, (kind.value, first, f"{key} ")))  # what comes after \x1f
        for unwritten in (self._in_writing, self._gathered):
            more = {name: one.data for (of, name), one in unwritten.items() if of is kind and name.startswith(first)}
            found |= more
        return sorted(found.items())

    def erase(self, tenant_id: str, session_id: str) -> int:
        """Remove a session's documents, calls and replies for good; the audit, which holds nothing personal, stays whole."""
        with self._reading(), self._aside() as writer:
            return erasing.erase_session(writer, tenant_id, session_id)

    def remove(self, kind: Document, key: str) -> bool:
        """Erase a document; return whether there was one. No write of it may be pending."""
        with self._reading(), self._aside() as writer:
            return person.remove(writer, kind, key)

    def sessions_of(self, tenant_id: str, user_id: str) -> set[str]:
        """Return the ids of the sessions in which a user called or handed work off."""
        with self._reading() as connection:
            return person.sessions_of(connection, tenant_id, user_id)

    prunes_aside = keeps_json = True

    def prune(self, retention: Retention, now_ms: int) -> Sweep:
        """Remove what is past its retention, one slice per step, on a separate connection."""
        with self._reading(), self._aside() as connection:
            connection.execute("PRAGMA synchronous = NORMAL")  # rows that reappear after a power failure go with the next sweep
            if self._pruner is None:
                from comity.engines.sqlite.retention import Pruner  # noqa: PLC0415  few nodes remove anything

                self._pruner = Pruner(audit_key(self.path), turn=self._turns)
            for pruned in self._pruner.sweep(connection, retention, now_ms):
                yield pruned
                self._files.check()  # before the next slice

    def rows(self, *, after_id: int = 0, limit: int | None = None, root_id: str | None = None) -> list[Row]:
        """Return audit rows in order."""
        with self._reading() as connection:
            return read_rows(connection, after_id=after_id, limit=limit, root_id=root_id)

    def verify(self, tell: Tell | None = None) -> Verdict:
        """Check the whole chain against its stored head."""
        with self._reading(), self._aside() as connection:  # a separate connection, so that another thread may do it
            return verify_chain(connection, audit_key(self.path), tell=tell)

    def _is_alive(self, node_id: str) -> bool:
        return presence.is_held(presence.lock_path(self.path, node_id))

    def _aside(self) -> contextlib.closing[sqlite3.Connection]:
        """Return a separate connection, for changes that must not wait for the writer."""
        return contextlib.closing(connect(self.path, busy_timeout_ms=self._busy_timeout_ms))

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        if self._reader is None:
            raise _unavailable(f"the store {self.path} is closed")
        try:
            self._files.check()  # else it may read pages that another process replaced
        except OSError as error:
            raise self._lost(error) from error
        try:
            yield self._reader
        except (sqlite3.Error, OSError, ValueError, msgspec.DecodeError) as error:
            raise _unavailable(f"cannot use the store {self.path}: {error}") from error


def _unavailable(message: str) -> UnavailableError:
    return UnavailableError(message, code="STORE_UNAVAILABLE")
