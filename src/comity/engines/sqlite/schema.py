"""The versions of a store's files, and the steps from each version to the next.

`steps[n]` turns version `n` into version `n + 1`. A new file takes every step from nothing, an old one the steps it lacks, so
both end up with the same tables. There is no way back: a file of a later version is refused.

**To add a version**, append a step to the `steps` of `tables.SCHEMA` (or `spans/rows.SCHEMA` for spans): the statements, or a
function of the connection where SQL alone cannot do it, such as filling a new column. Then `test_old_stores.py`
brings the recorded stores of every release forward and reads everything in them; add what your version is to keep. A step
that a release had is never changed. Views are not part of a step: `views` are dropped and made anew after the steps, so a
further field of the audit needs an empty step (`()`) and nothing else.

No version is needed for a further kind of document, nor for a further field with a default in a stored JSON value, as long as
an earlier program may go on reading the rest.

An old file is copied before it is changed: `store.db` of version 1 is kept as `store.db.v1.bak` beside it, and the log says
so. All steps are one transaction, so a crash leaves the file as it was.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from comity.engines.sqlite import liveness as presence

log = logging.getLogger("comity.store")  # of its own: the command line shows it, whatever else it hides

Step = str | tuple[str, ...] | Callable[[sqlite3.Connection], None]
_PAGES_A_TIME: Final = 4_096  # 32 MiB


class Schema(NamedTuple):
    """The steps to the newest version of a file, and where the file says which version it has."""

    what: str  # "its schema", as an error says it
    table: str  # where the version is
    read_version: str  # a query for one number
    write_version: str  # a statement with one mark
    steps: tuple[Step, ...]
    views: tuple[tuple[str, str], ...] = ()  # name and statement

    @property
    def version(self) -> int:
        """The newest version: what this program reads and writes."""
        return len(self.steps)

    def version_of(self, connection: sqlite3.Connection) -> int:
        """Return the version of a file; 0 if its tables are not there. Raises `DatabaseError` if it is of no known version."""
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (self.table,)).fetchone() is None:
            return 0
        found = connection.execute(self.read_version).fetchone()
        version = int(found[0]) if found is not None and str(found[0]).isdecimal() else 0
        if version < 1:
            raise sqlite3.DatabaseError(f"{self.what} has no version")
        if version > self.version:
            raise sqlite3.DatabaseError(
                f"a later program wrote it: {self.what} is version {version}, this program knows up to version {self.version}"
            )
        return version

    def prepare(self, connection: sqlite3.Connection) -> None:
        """Make the tables of a new file, or bring those of an old one to the newest version."""
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = self.version_of(connection)
            if version < self.version:
                ((_, _, file), *_) = connection.execute("PRAGMA database_list").fetchall()
                if version and file:  # a database without a file is a copy already
                    _keep_copy(Path(file), version, self.version)
                self._climb(connection, version)
            connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise

    def _climb(self, connection: sqlite3.Connection, version: int) -> None:
        for step in self.steps[version:]:
            if callable(step):
                step(connection)
                continue
            for statement in step.split(";") if isinstance(step, str) else step:
                if statement.strip():
                    connection.execute(statement)
        for name, statement in self.views:
            connection.execute(f"DROP VIEW IF EXISTS {name}")
            connection.execute(statement)
        connection.execute(self.write_version, (str(self.version),))


def _keep_copy(path: Path, version: int, newest: int) -> None:
    """Copy a file that is about to be changed. Raises `DatabaseError` while a node, which may be an old one, has it open."""
    store = path.with_suffix("") if path.suffix == ".spans" else path
    if held := [lock.name for lock in presence.locks(store) if presence.looks_held(lock)]:
        raise sqlite3.DatabaseError(
            f"it is version {version} and has to become version {newest}, but another node has it open ({held[0]}): "
            "stop that node first"
        )
    kept = _unused(path, version)
    with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as source:
        copy(source, kept)
    log.warning("%s is brought from version %d to version %d; as it was it is kept in %s", path, version, newest, kept)


def _unused(path: Path, version: int) -> Path:
    names = (path.with_name(f"{path.name}.v{version}{'' if number == 1 else f'.{number}'}.bak") for number in range(1, 1_000))
    return next(name for name in names if not name.exists())


def copy(source: sqlite3.Connection, target: Path, progress: Callable[[int, int], object] | None = None) -> None:
    """Copy a database that others may be writing, as it is at this moment, into a new file that is its owner's alone.

    `progress` is called with how many pages are left and how many there are. Nothing of the name is there until all of it is.
    """
    unnamed = target.with_name(f"{target.name}.part")
    os.close(os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with _reading(source), contextlib.closing(sqlite3.connect(unnamed, isolation_level=None)) as made:
            # In one state of the source: without the transaction each write of another process would begin the copy anew.
            tell = None if progress is None else lambda _, left, pages: progress(left, pages)
            source.backup(made, pages=_PAGES_A_TIME, progress=tell, sleep=0)
            made.execute("PRAGMA journal_mode = DELETE")  # one file, complete in itself
        with unnamed.open("rb") as file:
            os.fsync(file.fileno())
        unnamed.rename(target)
    finally:
        unnamed.unlink(missing_ok=True)
    folder = os.open(target.absolute().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextlib.contextmanager
def _reading(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN")
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        yield
    finally:
        connection.rollback()
