"""Which processes have a store open, and which of them are alive.

Each node locks a file of its own beside the store. The operating system releases the locks of a process that dies, so a lock
file that is not locked belongs to a dead node.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from comity.core.cluster.lease import LEASE_MS
from comity.core.units import NS_PER_MS

_ALONE: Final = "alone "  # as long as the other word, which overwrites it
_SHARES: Final = "shares"

_held: set[int] = set()


def lock_path(store: Path, node_id: str) -> Path:
    """Return the path of a node's lock file."""
    return store.with_name(f"{store.name}.{quote(node_id, safe='')}.lock")


def enter(path: Path) -> int:
    """Create and lock a lock file; return its descriptor. Raises `FileExistsError` if another process holds it."""
    if is_held(path):
        raise FileExistsError(f"another node of this name is alive: {path}")
    # Locked before it gets its name, so no process can see it unlocked while its node is alive.
    unnamed = path.with_suffix(".new")
    file = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    _held.add(file)
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    unnamed.rename(path)
    return file


def leave(path: Path, file: int) -> None:
    """Release a lock and remove its file."""
    path.unlink(missing_ok=True)
    _held.discard(file)
    os.close(file)


def is_held(path: Path) -> bool:
    """Return whether a live process holds the lock; remove the file if none does."""
    if looks_held(path):
        return True
    path.unlink(missing_ok=True)
    return False


def looks_held(path: Path) -> bool:
    """Return whether a live process holds the lock, without changing anything."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    except PermissionError:
        return True  # another user's file: assume that the process is alive
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: concurrent checks are not mistaken for the owner
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def locks(store: Path) -> list[Path]:
    """Return the lock files beside a store, in order."""
    names = (path for path in store.parent.iterdir() if path.name.startswith(f"{store.name}.") and path.suffix == ".lock")
    return sorted(names)


def clear(store: Path) -> None:
    """Remove the lock files of nodes that died."""
    for path in locks(store):
        is_held(path)


class Members:
    """This process among those that have a store open; the others read its lock file.

    The first process runs without leases until a second one comes. Before the second begins, the first has taken leases of its
    active addresses and says so in its lock file. From then on each sends heartbeats: a process that was suspended too long
    loses its leases although it still has its lock.
    """

    def __init__(self, store: Path, node_id: str, *, lease_ms: int = LEASE_MS) -> None:
        self.path = lock_path(store, node_id)
        self.is_alone = True
        self._store = store
        self._node_id = node_id
        self._lease_ms = lease_ms
        self._file = -1

    def enter(self) -> None:
        """Take the lock. Call it while no other process can enter, so that at most one believes to be alone."""
        self._file = enter(self.path)
        self.is_alone = not self.others()
        self._say(_ALONE if self.is_alone else _SHARES)
        if self.is_alone:
            os.utime(self._file, ns=(0, 0))  # no heartbeat
        else:
            self.beat()

    def leave(self) -> None:
        """Release the lock."""
        if self._file >= 0:
            leave(self.path, self._file)
            self._file = -1

    def share(self) -> None:
        """Write into the lock file that this process works under leases from now on."""
        self.is_alone = False
        self._say(_SHARES)
        self.beat()

    def others(self) -> list[str]:
        """Return the node ids of other live processes, sorted."""
        found = [node_of(self._store, path) for path in locks(self._store) if path != self.path and looks_held(path)]
        return [one for one in found if one != self._node_id]

    def is_alive(self, node_id: str) -> bool:
        """Return whether a process holds its lock, even if its heartbeat is too old."""
        return looks_held(lock_path(self._store, node_id))

    def unshared(self) -> list[str]:
        """Return the other live processes whose lock files say that they work without leases."""
        return [one for one in self.others() if not _said(lock_path(self._store, one)).endswith(_SHARES)]

    def process_of(self, node_id: str) -> str:
        """Return the process id in a node's lock file, as text."""
        return _said(lock_path(self._store, node_id)).strip().partition(" ")[0] or "unknown"

    def beat(self) -> int | None:
        """Send a heartbeat; return for how many ms it is valid, or None if it came too late."""
        was_over = self._beaten_ms(self.path) > 0 and self.left_ms(self._node_id) <= 0
        now_ns = time.monotonic_ns()  # one clock for all processes of a machine; it stands still while the machine does
        os.utime(self._file, ns=(now_ns, now_ns))
        return None if was_over else self._lease_ms

    def left_ms(self, node_id: str) -> int:
        """Return for how many ms a process still counts as alive; 0 if it is dead."""
        path = lock_path(self._store, node_id)
        if node_id != self._node_id and not looks_held(path):
            return 0
        age_ms = max(time.monotonic_ns() // NS_PER_MS - self._beaten_ms(path), 0)  # `_say` sets a later time
        return max(self._lease_ms - age_ms, 0)

    def _say(self, what: str) -> None:
        """Write the lock file's text. That sets its mtime to the wall clock, so a heartbeat time must be set afterwards."""
        os.pwrite(self._file, f"{os.getpid():>10} {what}".encode(), 0)

    @staticmethod
    def _beaten_ms(path: Path) -> int:
        try:
            return path.stat().st_mtime_ns // NS_PER_MS
        except FileNotFoundError:
            return 0


def node_of(store: Path, path: Path) -> str:
    """Return the node id of a lock file."""
    return unquote(path.name[len(store.name) + 1 : -len(path.suffix)])


def _said(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _let_go() -> None:
    for file in _held:
        os.close(file)
    _held.clear()


# A forked child would keep its parent's locks held after the parent's death.
os.register_at_fork(after_in_child=_let_go)
