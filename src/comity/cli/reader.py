"""A store read from outside, while nodes may be writing it: never created, never changed."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from comity.cli.ui.exits import CliError, Exit
from comity.core.handoff.machine import Handoff, State
from comity.core.journal.audit import Row, Verdict
from comity.core.journal.records import PAUSED_AT, RUNS_ON, Document, StoredCall
from comity.core.session.session import Session
from comity.engines.cipher import TRIED_MAX, audit_key, key_for
from comity.engines.sqlite import audit_rows
from comity.engines.sqlite import file as store_file
from comity.engines.sqlite import handoff_rows as handoff_tables
from comity.engines.sqlite import liveness as presence
from comity.engines.sqlite.audit_rows import read_rows
from comity.engines.sqlite.spans.path import spans_path
from comity.engines.sqlite.tables import SCHEMA, calls_of_session, connect_anywhere, read_call
from comity.errors import UnavailableError

if TYPE_CHECKING:  # what takes long to load is loaded by the commands that need it
    from types import TracebackType
    from typing import Self

    from comity.core.redaction import Vault
    from comity.core.session.memory import Memory
    from comity.runtime.call.tools import Approval
    from comity.runtime.session.remembered import StoredMemory

log = logging.getLogger("comity.store")

SEPARATOR: Final = "\x1f"  # between tenant and session in the key of a document
# Short ids are looked for in this many of the newest audit rows.
RECENT_ROWS: Final = 20_000
# Rows read at a time while looking for the newest calls.
_PAGE_ROWS: Final = 2_000
_NAME_IT: Final = "Name the store with --store or COMITY_STORE."
_One = TypeVar("_One")
_decode_session = msgspec.json.Decoder(Session).decode


class Store:
    """A read-only view of one store file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unreadable: dict[str, str] = {}  # what was left out because it cannot be read, and why
        self._connection: sqlite3.Connection
        if not is_file(path):
            hint = "`comity demo` and `comity call` make one; --store or COMITY_STORE names another."
            raise CliError(Exit.NOT_FOUND, f"the store {path} does not exist", hint=hint)
        with self._reading():
            self._connection = connect_anywhere(path)
        try:
            with self._reading():
                self._check_kind()
        except CliError:
            self._connection.close()
            raise

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection, for what reads more of the file than a command shows."""
        return self._connection

    def measured(self, measure: Callable[..., _One], now_ms: int) -> _One:
        """Return what measures this store and its spans."""
        with self._reading():
            return measure(self.path, self._connection, spans_path(self.path), now_ms)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._connection.close()

    # --- audit ---

    def head_id(self) -> int:
        """Return the id of the newest audit row; 0 if there is none."""
        with self._reading():
            (found,) = self._connection.execute("SELECT max(id) FROM audit").fetchone()
        return int(found or 0)

    def row_count(self) -> int:
        """Return how many audit rows there are; none is missing between the first and the last."""
        with self._reading():
            (first,) = self._connection.execute("SELECT min(id) FROM audit").fetchone()
        return 0 if first is None else self.head_id() - int(first) + 1

    def rows(self, *, root_id: str) -> list[Row]:
        """Return the audit rows of one call tree, in order."""
        with self._reading():
            return read_rows(self._connection, root_id=root_id)

    def newest_rows(self, limit: int) -> list[Row]:
        """Return the newest audit rows, oldest of them first."""
        with self._reading():
            return read_rows(self._connection, after_id=max(self.head_id() - limit, 0), limit=limit)

    def ran_on(self, newest: int) -> list[Row]:
        """Return those of the newest audit rows that tell of code which ran on after its call had ended."""
        note = RUNS_ON.encode()
        with self._reading():
            query = "SELECT id FROM audit WHERE id > ? AND instr(body, ?)"
            found = self._connection.execute(query, (self.head_id() - newest, note)).fetchall()
            rows = [read_rows(self._connection, after_id=number - 1, limit=1) for (number,) in found]
        return [row for one in rows for row in one if row.note == RUNS_ON]

    def verify(self, newest: int | None = None, key: bytes | None = None) -> Verdict:
        """Check the whole chain, or its newest rows, with another key than the one beside the store if there is one."""
        from comity.engines.sqlite.audit_parts import parts_of, walk_parts

        parts = parts_of(self.row_count()) if self.version == SCHEMA.version else 1
        walker = partial(walk_parts, self.path, parts) if parts > 1 else None
        try:
            with self._reading():
                return audit_rows.verify_chain(self._connection, key or audit_key(self.path), newest, walker)
        except TypeError:  # a head or a row of the wrong kind: nothing that was ever written
            raise _damaged(self.path, "its audit cannot be read") from None

    # --- calls ---

    def calls(self, limit: int) -> list[Row]:
        """Return the newest calls by users, newest first: each as the row that says how it ended, or how it began."""
        found: dict[tuple[str, bool], Row] = {}
        high = self.head_id()
        while high > 0 and len(found) < limit:
            low = max(high - _PAGE_ROWS, 0)
            with self._reading():
                page = read_rows(self._connection, after_id=low, limit=high - low)
            for row in reversed(page):
                if row.parent_id is None and row.kind not in {"late", "cut"}:
                    # A refusal under an id that was used before is an event of its own.
                    found.setdefault((row.request_id, row.kind == "refused"), row)
            high = low
        return list(found.values())[:limit]

    def call(self, request_id: str) -> StoredCall | None:
        """Return what is stored of an accepted call."""
        with self._reading():
            return read_call(self._connection, request_id)

    def abandoned(self) -> set[str]:
        """Return the ids of open calls whose node is gone; the next node that stays takes them up."""
        with self._reading():
            owners = [
                name for (name,) in self._connection.execute("SELECT DISTINCT open_at FROM calls WHERE open_at IS NOT NULL")
            ]
            gone = [one for one in owners if one != PAUSED_AT and not presence.looks_held(presence.lock_path(self.path, one))]
            query = f"SELECT request_id FROM calls WHERE open_at IN ({','.join('?' * len(gone))})"  # noqa: S608
            return {str(request_id) for (request_id,) in self._connection.execute(query, gone)}

    def calls_of(self, tenant_id: str, session_id: str) -> list[StoredCall]:
        """Return the calls of a session, those that were handed off aside."""
        with self._reading():
            return calls_of_session(self._connection, tenant_id, session_id)

    def recent_ids(self) -> set[str]:
        """Return the ids of calls in the newest audit rows, as many as short ids are looked for in."""
        with self._reading():
            query = "SELECT DISTINCT request_id FROM audit_rows WHERE id > ?"
            return {str(one) for (one,) in self._connection.execute(query, (self.head_id() - RECENT_ROWS,))}

    def root_of(self, request_id: str) -> str | None:
        """Return the id of the root of the tree a call belongs to; None if the store does not know the call."""
        call = self.call(request_id)
        if call is not None:
            return call.root_id
        with self._reading():  # a refused call is in the audit only, and so is one whose call was removed as too old
            return audit_rows.root_of(self._connection, request_id)

    # --- handoffs ---

    def handoffs(self, *, states: Collection[State], target: str | None, limit: int) -> list[Handoff]:
        """Return handoffs, newest first."""
        marks = ",".join("?" * len(states))
        lane = ("", ()) if target is None else (" AND lane LIKE '%' || char(31) || ?", (target,))
        return self._handoffs(f"WHERE state IN ({marks}){lane[0]} ORDER BY seq DESC LIMIT ?", *states, *lane[1], limit)

    def handoff(self, handoff_id: str) -> Handoff | None:
        """Return a handoff."""
        with self._reading():
            return handoff_tables.get(self._connection, handoff_id) if handoff_tables.exists(self._connection) else None

    def recent_handoff_ids(self) -> list[str]:
        """Return the ids of the newest handoffs, as many as short ids are looked for in."""
        with self._reading():
            if not handoff_tables.exists(self._connection):
                return []
            query = "SELECT id FROM handoffs ORDER BY seq DESC LIMIT ?"
            return [str(one) for (one,) in self._connection.execute(query, (RECENT_ROWS,))]

    def unreadable_handoffs(self) -> list[str]:
        """Return the ids of handoffs that were set aside because they cannot be read."""
        with self._reading():
            return handoff_tables.set_aside(self._connection) if handoff_tables.exists(self._connection) else []

    def handoffs_of(self, tenant_id: str, session_id: str) -> list[Handoff]:
        """Return the handoffs of a session."""
        return self._handoffs("WHERE tenant_id = ? AND session_id = ? ORDER BY seq", tenant_id, session_id)

    def _handoffs(self, rest: str, *values: object) -> list[Handoff]:
        with self._reading():
            return handoff_tables.read(self._connection, rest, values) if handoff_tables.exists(self._connection) else []

    # --- documents ---

    def sessions(self, limit: int | None = None) -> list[Session]:
        """Return the sessions that are remembered, the latest used first; those that hide results of handoffs are nobody's."""
        found: list[Session] = []
        page, skipped = -1 if limit is None else limit, 0
        while True:
            rest = "INDEXED BY documents_used WHERE kind = 'session' ORDER BY used_at DESC LIMIT ? OFFSET ?"
            some, seen = self._sessions(rest, page, skipped)
            found += [one for one in some if one.id.isprintable()]
            skipped += seen
            if limit is None or seen < page or len(found) >= limit:
                return found[:limit]

    def session_count(self) -> int:
        """Return how many sessions are remembered, of every kind."""
        with self._reading():
            (count,) = self._connection.execute(
                "SELECT count(*) FROM documents INDEXED BY documents_used WHERE kind = 'session'"
            ).fetchone()
        return int(count)

    def session(self, tenant_id: str, session_id: str) -> Session | None:
        """Return a session with its last use."""
        return next(iter(self._sessions("WHERE kind = 'session' AND key = ?", f"{tenant_id}{SEPARATOR}{session_id}")[0]), None)

    def vault(self, tenant_id: str, session_id: str) -> Vault | None:
        """Return what a session hides, opened with the key of the store; None if it hides nothing."""
        from comity.runtime.session.vault_key import open_vault, vault_cipher

        found = self._documents(Document.VAULT, "AND key = ?", f"{tenant_id}{SEPARATOR}{session_id}")
        return next((open_vault(vault_cipher(key_for(self.path, may_make=False)), *one) for one in found), None)

    def vaults(self) -> list[tuple[str, bytes]]:
        """Return the first vaults as they are stored, encrypted: as many as a key is tried on."""
        return self._documents(Document.VAULT, "ORDER BY key LIMIT ?", TRIED_MAX)

    def _sessions(self, rest: str, *values: object) -> tuple[list[Session], int]:
        """Return the sessions that a query finds and can be read, and how many it found."""
        query = f"SELECT key, data, used_at FROM documents {rest}"  # noqa: S608
        with self._reading():
            found = self._connection.execute(query, values).fetchall()
        used = {key: used_at or 0 for key, _, used_at in found}
        read = self._readable("session", _decode_session, [(key, bytes(data)) for key, data, _ in found])
        return [msgspec.structs.replace(one, used_at=max(one.used_at, used[key])) for key, one in read], len(found)

    def approvals(self) -> list[Approval]:
        """Return every question a tool has asked, in order of asking."""
        from comity.runtime.call.tools import Approval

        read = self._readable("approval", msgspec.json.Decoder(Approval).decode, self._documents(Document.APPROVAL))
        return sorted((one for _, one in read), key=lambda one: one.asked_at)

    def memories(self) -> list[tuple[str, str, StoredMemory]]:
        """Return of whom something is remembered: tenant, user, and what can be read of it without the key."""
        from comity.runtime.session.remembered import decode

        read = self._readable("memory of", decode, self._documents(Document.MEMORY, "ORDER BY key"))
        return [(*key.split(SEPARATOR, 1), one) for key, one in read]  # type: ignore[misc]

    def memory(self, tenant_id: str, user_id: str) -> Memory:
        """Return what is remembered of a user, decrypted with the key of the store."""
        from comity.core.session.memory import Memory
        from comity.runtime.session.remembered import opened
        from comity.runtime.session.vault_key import memory_cipher

        found = self._documents(Document.MEMORY, "AND key = ?", f"{tenant_id}{SEPARATOR}{user_id}")
        return opened(memory_cipher(key_for(self.path, may_make=False)), *found[0]) if found else Memory()

    def remembered(self) -> list[tuple[str, bytes]]:
        """Return the first memories as they are stored, encrypted: as many as a key is tried on."""
        return self._documents(Document.MEMORY, "ORDER BY key LIMIT ?", TRIED_MAX)

    def check_whole(self) -> None:
        """Raise `CliError` if something was left out because it cannot be read."""
        if self.unreadable:
            what = "; ".join(f"{name}: {why}" for name, why in self.unreadable.items())
            hint = "`comity sessions erase SESSION_ID --yes` removes a session that cannot be read."
            raise CliError(Exit.DAMAGED, f"left out, since it cannot be read: {what}", hint=hint)

    def _readable(self, what: str, decode: Callable[[bytes], _One], found: list[tuple[str, bytes]]) -> list[tuple[str, _One]]:
        read = []
        for key, data in found:
            try:
                read.append((key, decode(data)))
            except (msgspec.MsgspecError, ValueError) as error:
                self.unreadable[f"{what} {key.rpartition(SEPARATOR)[2]}"] = str(error)
        return read

    def _documents(self, kind: Document, rest: str = "", *values: object) -> list[tuple[str, bytes]]:
        query = f"SELECT key, data FROM documents WHERE kind = ? {rest}"  # noqa: S608
        with self._reading():
            found = self._connection.execute(query, (kind.value, *values)).fetchall()
        return [(str(key), bytes(data)) for key, data in found]

    # --- inside ---

    def _check_kind(self) -> None:
        names = {name for (name,) in self._connection.execute("SELECT name FROM sqlite_master")}
        if not names >= {"meta", "audit", "calls"}:
            raise CliError(
                Exit.DAMAGED,
                f"{self.path} is a database, but not a Comity store",
                hint=_NAME_IT,
            )
        try:
            version = SCHEMA.version_of(self._connection)
        except sqlite3.DatabaseError as error:
            raise CliError(Exit.DAMAGED, f"the store {self.path} cannot be read: {error}") from None
        self.version = version  # of the file
        if version < SCHEMA.version:  # the next node changes the file; who only reads changes a copy, gone when it is closed
            log.warning("%s has version %d: each command reads a copy until `comity store upgrade`", self.path, version)
            copy = sqlite3.connect("", isolation_level=None)
            self._connection.backup(copy)
            SCHEMA.prepare(copy)
            self._connection.close()
            self._connection = copy

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or "busy" in str(error):
                raise CliError(Exit.DAMAGED, f"the store {self.path} is locked by another program; try again") from error
            raise _damaged(self.path, str(error)) from error
        except (sqlite3.Error, msgspec.MsgspecError, ValueError) as error:
            raise _damaged(self.path, str(error)) from error


def is_file(path: Path) -> bool:
    """Return whether there is a file at the path of a store. Anything else that stands there is an error."""
    try:
        return store_file.is_file(path)
    except OSError as error:
        raise _damaged(path, f"unable to open it: {error.strerror}") from None
    except UnavailableError as error:
        raise CliError(Exit.DAMAGED, error.message, hint=_NAME_IT) from None


def spans_beside(store: str) -> Path:
    """Return where the spans of a store are, or would be made. What is not a store has none."""
    path = Path(store)
    if is_file(path) and path.stat().st_size:  # a node that has just begun makes an empty file first
        with Store(path):
            pass
    return spans_path(path)


def _damaged(path: Path, why: str) -> CliError:
    if "not a database" in why:
        return CliError(Exit.DAMAGED, f"{path} is not a Comity store: {why}", hint=_NAME_IT)
    hint = "`comity audit verify` names the first damaged row."
    if "disk image" in why:
        hint = "The file itself is damaged; use its backup."
    elif "unable to open" in why or "readonly" in why:
        hint = "Check the permissions of the file and its directory."
    return CliError(Exit.DAMAGED, f"the store {path} cannot be read: {why}", hint=hint)
