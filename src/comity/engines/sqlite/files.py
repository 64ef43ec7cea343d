"""Detects that the files of an open store were removed or replaced.

A process keeps such a file open and would go on writing to a file that no other process can find. Without SQLite's
shared-memory file, two processes even overwrite each other's pages, and the process that closes the database last copies a
stale WAL over it.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from weakref import WeakSet

# How many bytes SQLite locks for readers of a database, and where: "The Lock-Byte Page" in https://sqlite.org/fileformat2.html
_READERS: Final = (510, 0x4000_0002)
_READ: Final = (
    "import fcntl, sys; file = open(sys.argv[1], 'rb'); fcntl.lockf(file, fcntl.LOCK_SH, *map(int, sys.argv[2:]));"
    "print('held', flush=True); sys.stdin.read()"
)


def database_files(path: Path) -> tuple[Path, Path, Path]:
    """Return the files of a SQLite database in use: itself, its WAL, and its shared memory."""
    real = path.resolve()  # SQLite puts them beside the file, not beside a link to it
    return path, real.with_name(f"{real.name}-wal"), real.with_name(f"{real.name}-shm")


class StoreFiles:
    """Remembers the identity (device and inode) of opened files."""

    __slots__ = ("__weakref__", "_is_inherited", "_known")

    def __init__(self, *paths: Path) -> None:
        """Remember these files. Raises `OSError` if one is missing."""
        self._known: dict[Path, tuple[int, int] | None] = {}
        self._is_inherited = False
        self.add(*paths)
        _open.add(self)

    def add(self, *paths: Path) -> None:
        """Watch further files. Raises `OSError` if one is missing."""
        found = {path: _identity(path) for path in paths}
        if missing := [str(path) for path, identity in found.items() if identity is None]:
            raise FileNotFoundError(f"{missing[0]} is not there")
        self._known |= found

    def check(self) -> None:
        """Raise `OSError` if one of the files was removed or replaced, or if another process opened them."""
        if self._is_inherited:
            raise OSError("a forked child cannot use what its parent has opened: open the store in the child")
        for path, known in self._known.items():
            found = _identity(path)
            if found != known:
                raise OSError(f"{path} was {'removed' if found is None else 'replaced'}")

    def close(self, connection: sqlite3.Connection, path: Path) -> None:
        """Close the last connection to a database of which these are the files.

        This copies the WAL into the database, unless another process may have used the database without this shared memory.
        """
        own, log, shared = (_identity(one) == self._known.get(one) for one in database_files(path))
        # SQLite touches neither file if the database was replaced. If the shared-memory file is missing, only this process has
        # used the database, unless another process removed the WAL too.
        if own and not shared and (database_files(path)[2].exists() or not log):
            with _read_elsewhere(path):
                connection.close()
        else:
            connection.close()


@contextmanager
def _read_elsewhere(path: Path) -> Iterator[None]:
    """Context manager: a subprocess holds a reader's lock, so that closing here does not act as the last user."""
    import subprocess  # noqa: PLC0415  hardly any process needs it

    command = [sys.executable, "-I", "-S", "-c", _READ, str(path), *map(str, _READERS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:  # noqa: S603  all of it is ours
        assert reader.stdout is not None
        reader.stdout.readline()
        yield


_open: WeakSet[StoreFiles] = WeakSet()


def _disown() -> None:
    for files in _open:
        files._is_inherited = True  # noqa: SLF001  the handler is theirs


os.register_at_fork(after_in_child=_disown)


def _identity(path: Path) -> tuple[int, int] | None:
    """Return device and inode of a file; None if it does not exist."""
    try:
        found = os.stat(path)  # noqa: PTH116  with every commit
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino
