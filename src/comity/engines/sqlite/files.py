"""Detects that the files of an open store were removed or replaced.

A process keeps such a file open and would go on writing to a file that no other process can find. Without SQLite's
shared-memory file, two processes even overwrite each other's pages, and the process that closes the database last copies a
stale WAL over it.

Every commit checks this, and each look at a file releases the GIL, which the writer's thread gets back late while the event
loop is busy. So the files of a folder are looked at only if the folder's time of change differs from that of the last look: it
changes whenever a file of the folder is removed, renamed or replaced.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from weakref import WeakSet

# How many bytes SQLite locks for readers of a database, and where: "The Lock-Byte Page" in https://sqlite.org/fileformat2.html
_READERS: Final = (510, 0x4000_0002)
# A folder's time of change tells of a later change only if it is older than the file system's clock is coarse: 2 s on FAT.
_SETTLED_NS: Final = 3 * 10**9
_READ: Final = (
    "import fcntl, sys; file = open(sys.argv[1], 'rb'); fcntl.lockf(file, fcntl.LOCK_SH, *map(int, sys.argv[2:]));"
    "print('held', flush=True); sys.stdin.read()"
)


Stamp = tuple[int, int, int]


def database_files(path: Path) -> tuple[Path, Path, Path]:
    """Return the files of a SQLite database in use: itself, its WAL, and its shared memory."""
    real = path.resolve()  # SQLite puts them beside the file, not beside a link to it
    return path, real.with_name(f"{real.name}-wal"), real.with_name(f"{real.name}-shm")


class StoreFiles:
    """Remembers the identity (device and inode) of opened files."""

    __slots__ = ("__weakref__", "_folders", "_is_inherited", "_known", "_seen")

    def __init__(self, *paths: Path) -> None:
        """Remember these files. Raises `OSError` if one is missing."""
        self._known: dict[Path, tuple[int, int] | None] = {}
        self._folders: dict[Path, list[Path]] = {}  # of these files; a link is alone, as what it leads to is elsewhere
        self._seen: dict[Path, Stamp] = {}  # by folder: its stamp at the last look, if a later change cannot have the same
        self._is_inherited = False
        self.add(*paths)
        _open.add(self)

    def add(self, *paths: Path) -> None:
        """Watch further files. Raises `OSError` if one is missing."""
        found = {path: _identity(path) for path in paths}
        if missing := [str(path) for path, identity in found.items() if identity is None]:
            raise FileNotFoundError(f"{missing[0]} is not there")
        self._known |= found
        for path in found:
            self._folders.setdefault(path if path.is_symlink() else path.parent, []).append(path)
        self._seen = {}

    def check(self) -> None:
        """Raise `OSError` if one of the files was removed or replaced, or if another process opened them."""
        if self._is_inherited:
            raise OSError("a forked child cannot use what its parent has opened: open the store in the child")
        for folder, paths in self._folders.items():
            stamp = _stamp(folder)
            if stamp is not None and self._seen.get(folder) == stamp:
                continue
            for path in paths:
                found = _identity(path)
                if found != self._known[path]:
                    raise OSError(f"{path} was {'removed' if found is None else 'replaced'}")
            if stamp is not None and time.time_ns() - stamp[2] > _SETTLED_NS:
                self._seen[folder] = stamp

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


def _stamp(folder: Path) -> Stamp | None:
    """Return a folder's device, inode and time of change; None for a path that is no folder, or does not exist."""
    try:
        found = os.stat(folder)  # noqa: PTH116  with every commit
    except (FileNotFoundError, NotADirectoryError):
        return None
    return (found.st_dev, found.st_ino, found.st_mtime_ns) if stat.S_ISDIR(found.st_mode) else None
