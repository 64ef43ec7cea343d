"""Which processes have a store open, and which of them are alive.

Each node holds a lock on a file of its own beside the store. The system drops the locks of a process that dies, however it
dies, so a lock that can be had belongs to a node that is gone.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from comity.core.cluster.lease import LEASE_MS

_ALONE: Final = "alone "  # of one length: it is written over the other
_SHARES: Final = "shares"

_held: set[int] = set()


def lock_path(store: Path, node_id: str) -> Path:
    """Return where the node of this name has its lock."""
    return store.with_name(f"{store.name}.{quote(node_id, safe='')}.lock")


def enter(path: Path) -> int:
    """Take a lock that no process holds and return it."""
    if is_held(path):
        raise FileExistsError(f"another node of this name is alive: {path}")
    # Locked before it has its name, so that no process ever finds it unlocked while its node lives.
    unnamed = path.with_suffix(".new")
    file = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    _held.add(file)
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    unnamed.rename(path)
    return file


def leave(path: Path, file: int) -> None:
    """Give a lock up."""
    path.unlink(missing_ok=True)
    _held.discard(file)
    os.close(file)


def is_held(path: Path) -> bool:
    """Return whether a living process holds the lock; a lock file that no process holds is removed."""
    if looks_held(path):
        return True
    path.unlink(missing_ok=True)
    return False


def looks_held(path: Path) -> bool:
    """Return whether a living process holds the lock, and change nothing."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    except PermissionError:
        return True  # another user's; nothing says that it is gone
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: two who look at once do not take each other for the owner
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
    """This process among those that have a store open. What its lock file says, others read.

    The first process is alone: it runs without leases until another comes. Before that one begins, the first has taken the
    leases of what it runs and says so. From then on each beats: a process that stood still too long loses what it held, though
    it still has its lock.
    """

    def __init__(self, store: Path, node_id: str, *, lease_ms: int = LEASE_MS) -> None:
        self.path = lock_path(store, node_id)
        self.is_alone = True
        self._store = store
        self._node_id = node_id
        self._lease_ms = lease_ms
        self._file = -1

    def enter(self) -> None:
        """Take the lock. Called while no other process can enter, so that one of two is alone at most."""
        self._file = enter(self.path)
        self.is_alone = not self.others()
        self._say(_ALONE if self.is_alone else _SHARES)
        if self.is_alone:
            os.utime(self._file, ns=(0, 0))  # it does not beat
        else:
            self.beat()

    def leave(self) -> None:
        """Give the lock up."""
        if self._file >= 0:
            leave(self.path, self._file)
            self._file = -1

    def share(self) -> None:
        """Let others read that this process works under leases from now on."""
        self.is_alone = False
        self._say(_SHARES)
        self.beat()

    def others(self) -> list[str]:
        """Return the other living processes, in order."""
        found = [node_of(self._store, path) for path in locks(self._store) if path != self.path and looks_held(path)]
        return [one for one in found if one != self._node_id]

    def is_alive(self, node_id: str) -> bool:
        """Return whether a process holds its lock, however long it stood still."""
        return looks_held(lock_path(self._store, node_id))

    def unshared(self) -> list[str]:
        """Return the other living processes that do not work under leases yet, as their lock files say."""
        return [one for one in self.others() if not _said(lock_path(self._store, one)).endswith(_SHARES)]

    def process_of(self, node_id: str) -> str:
        """Return the number of the process that has a lock, as far as its file says."""
        return _said(lock_path(self._store, node_id)).strip().partition(" ")[0] or "unknown"

    def beat(self) -> int | None:
        """Say that this process lives and return for how many milliseconds that counts; None if its time was over."""
        was_over = self._beaten_ms(self.path) > 0 and self.left_ms(self._node_id) <= 0
        now_ns = time.monotonic_ns()  # one clock for all processes of a machine; it stands still while the machine does
        os.utime(self._file, ns=(now_ns, now_ns))
        return None if was_over else self._lease_ms

    def left_ms(self, node_id: str) -> int:
        """Return for how many milliseconds a process still counts as alive; 0 if it is gone."""
        path = lock_path(self._store, node_id)
        if node_id != self._node_id and not looks_held(path):
            return 0
        age_ms = max(time.monotonic_ns() // 1_000_000 - self._beaten_ms(path), 0)  # what `_say` writes is younger than any beat
        return max(self._lease_ms - age_ms, 0)

    def _say(self, what: str) -> None:
        """Write what others read. That sets the file's time to the calendar's: a beat, or its lack, has to follow."""
        os.pwrite(self._file, f"{os.getpid():>10} {what}".encode(), 0)

    @staticmethod
    def _beaten_ms(path: Path) -> int:
        try:
            return path.stat().st_mtime_ns // 1_000_000
        except FileNotFoundError:
            return 0


def node_of(store: Path, path: Path) -> str:
    """Return the name of the node that has this lock."""
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
