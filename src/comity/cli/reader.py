"""A store read from outside, while nodes may be writing it: never created, never changed."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from comity.cli.ui.exits import CliError, Exit
from comity.core.journal.audit import Row, Verdict
from comity.core.journal.records import Document
from comity.engines.cipher import audit_key, key_for
from comity.engines.sqlite import audit_rows
from comity.engines.sqlite import file as store_file
from comity.engines.sqlite.audit_rows import read_rows
from comity.engines.sqlite.reader import SEPARATOR, StoreReader
from comity.engines.sqlite.spans.path import spans_path
from comity.engines.sqlite.tables import SCHEMA
from comity.errors import UnavailableError

if TYPE_CHECKING:  # what takes long to load is loaded by the commands that need it
    from comity.core.redaction import Vault
    from comity.core.session.memory import Memory
    from comity.runtime.call.tools import Approval
    from comity.runtime.session.remembered import StoredMemory

log = logging.getLogger("comity.store")

# Rows read at a time while looking for the newest calls.
_PAGE_ROWS: Final = 2_000
_NAME_IT: Final = "Name the store with --store or COMITY_STORE."
_One = TypeVar("_One")


class Store(StoreReader):
    """A read-only view of one store file that tells what is wrong as a command does."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not is_file(path):
            hint = "`comity demo` and `comity call` make one; --store or COMITY_STORE names another."
            raise CliError(Exit.NOT_FOUND, f"the store {path} does not exist", hint=hint)
        super().__init__(path)
        try:
            with self._reading():
                self._check_kind()
        except CliError:
            self._connection.close()
            raise

    # --- audit ---

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

    # --- documents ---

    def vault(self, tenant_id: str, session_id: str) -> Vault | None:
        """Return what a session hides, opened with the key of the store; None if it hides nothing."""
        from comity.node.store_key import vault_cipher
        from comity.runtime.session.sealing import open_vault

        found = self._documents(Document.VAULT, "AND key = ?", f"{tenant_id}{SEPARATOR}{session_id}")
        return next((open_vault(vault_cipher(key_for(self.path, may_make=False)), *one) for one in found), None)

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
        from comity.node.store_key import memory_cipher
        from comity.runtime.session.remembered import opened

        found = self._documents(Document.MEMORY, "AND key = ?", f"{tenant_id}{SEPARATOR}{user_id}")
        return opened(memory_cipher(key_for(self.path, may_make=False)), *found[0]) if found else Memory()

    def check_whole(self) -> None:
        """Raise `CliError` if something was left out because it cannot be read."""
        if self.unreadable:
            what = "; ".join(f"{name}: {why}" for name, why in self.unreadable.items())
            hint = "`comity sessions erase SESSION_ID --yes` removes a session that cannot be read."
            raise CliError(Exit.DAMAGED, f"left out, since it cannot be read: {what}", hint=hint)

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
