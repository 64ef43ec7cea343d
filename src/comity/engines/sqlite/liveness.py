"""Which nodes of a store are alive.

Each node holds a lock on a file of its own beside the store. The system drops the locks of a process that dies, however it
dies, so a lock that can be had belongs to a node that is gone.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Final
from urllib.parse import quote

GRAIN_NS: Final = 1_000_000_000  # within this a folder's time of change may not show a further change
TICK_NS: Final = 20_000_000  # nor within this where times are as fine as the kernel's clock

_held: set[int] = set()


def lock_path(store: Path, node_id: str) -> Path:
    """Return where the node of this name has its lock."""
    return store.with_name(f"{store.name}.{quote(node_id, safe='')}.lock")


def enter(path: Path) -> int:
    """Take a lock that nobody has and return it."""
    if is_held(path):
        raise FileExistsError(f"another node of this name is alive: {path}")
    # Locked before it has its name, so that nobody ever finds it unlocked while its node lives.
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
    """Return whether a living process holds the lock; a lock file that nobody holds is removed."""
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


class Company:
    """Whether other nodes of a store are alive, or were meanwhile. Looked up again when the folder has changed."""

    def __init__(self, store: Path, own: Path) -> None:
        self._store = store
        self._own = own
        self._looked_at = 0  # the folder's time of change then
        self._others: list[Path] = []
        self._folder = str(store.parent)
        self._visits = 0
        self._asked_at = 0  # ms
        self._visited_at = 0  # the folder's time of change when this was last asked

    def visits(self) -> int:
        """Return a number that grows once another node may have written since it was last asked.

        Who enters or leaves changes the folder. Nobody does both and is done within the millisecond in which this was asked.
        """
        now_ns = time.time_ns()
        now_ms = now_ns // 1_000_000
        if self._others or now_ms != self._asked_at:
            self._asked_at = now_ms
            changed_at = os.stat(self._folder).st_mtime_ns  # noqa: PTH116  asked with every call in a session
            if self._others or changed_at != self._visited_at or now_ns - changed_at < TICK_NS:
                self._visited_at = changed_at
                self._visits += 1
                self.is_there()
        return self._visits

    def is_there(self) -> bool:
        """Return whether another lock is held at this moment."""
        changed_at = self._store.parent.stat().st_mtime_ns
        # A folder's time has a coarse grain: one that changed just now may have changed again within the same tick.
        if changed_at != self._looked_at or time.time_ns() - changed_at < GRAIN_NS:
            self._looked_at = changed_at
            self._others = [path for path in locks(self._store) if path != self._own]
        return any(is_held(path) for path in self._others)


def _let_go() -> None:
    for file in _held:
        os.close(file)
    _held.clear()


# A forked child would keep its parent's locks held after the parent's death.
os.register_at_fork(after_in_child=_let_go)
