"""Telling that a file has changed, whichever process changed it.

On Linux the kernel says so (inotify) and nothing runs in between. Elsewhere, and where the kernel has no watch left to give,
the file is looked at every `POLL_S` seconds; `is_push` says which. The folder is watched rather than the file, because editors,
`GuidanceFile` and Kubernetes' mounted volumes put a new file in the place of the old one.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import struct
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from comity.core.units import MS_PER_S
from comity.errors import UnavailableError

POLL_S: Final = 1.0
_EVENT: Final = struct.Struct("iIII")  # watch, mask, cookie, bytes of the name that follows
_IGNORED: Final = 0x8000
_EVENTS_BYTES: Final = 64 * 1024
# Closed after writing, moved away, moved here, deleted; the folder itself deleted, moved. Not made and not written to: what
# a process is still writing would be read half.
_EVENTS: Final = 0x8 | 0x40 | 0x80 | 0x200 | 0x400 | 0x800

Stamp = tuple[int, int, int]


def stamp(path: Path) -> Stamp | None:
    """Return what changes when a file does; None if there is none. Raises `OSError` if the system cannot tell."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


class FileWatch:
    """Calls `changed` from a thread of its own whenever the file is written, replaced, made or removed."""

    def __init__(self, path: Path, changed: Callable[[], None]) -> None:
        self._path = path
        self._changed = changed
        self._wake, self._woken = os.pipe()
        self._events = _inotify({path.parent, path.resolve().parent})
        self.is_push = self._events is not None
        self._folder = path.parent.stat().st_ino
        self._seen = self._look()
        self._thread = threading.Thread(target=self._run, name=f"watch {path.name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop; the thread has ended when this returns, unless the caller is that thread."""
        with contextlib.suppress(OSError):
            os.write(self._woken, b"x")
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        poller = select.poll()
        poller.register(self._wake, select.POLLIN)
        if self._events is not None:
            poller.register(self._events, select.POLLIN)
        is_pending = False
        try:
            while True:
                ready = poller.poll(None if self._events is not None and not is_pending else POLL_S * MS_PER_S)
                if any(descriptor == self._wake for descriptor, _ in ready):
                    return
                if self._events is not None and (_lost_a_folder(self._events) or not self._has_same_folder()):
                    # The watch went with its folder; one made again under the name is another, even if it has the old number.
                    poller.unregister(self._events)
                    os.close(self._events)
                    self._events, self.is_push = None, False
                now = self._look()  # after the above: the callback of a change can see how the next change is noticed
                if is_pending or now != self._seen:
                    self._seen = now
                    is_pending = not self._tell()
        finally:
            for descriptor in (self._wake, self._woken, self._events):
                if descriptor is not None:
                    os.close(descriptor)

    def _tell(self) -> bool:
        try:
            self._changed()
        except UnavailableError:  # a disk that may be back in a while
            return False
        return True

    def _look(self) -> Stamp | None:
        try:
            return stamp(self._path)
        except OSError:
            return None

    def _has_same_folder(self) -> bool:
        try:
            return self._path.parent.stat().st_ino == self._folder
        except OSError:
            return False


def _lost_a_folder(events: int) -> bool:
    """Read what happened and return whether the system stopped watching a folder; a file's stamp says which file it was."""
    try:
        told = os.read(events, _EVENTS_BYTES)
    except BlockingIOError:
        return False
    at, is_lost = 0, False
    while at < len(told):
        _, mask, _, name_bytes = _EVENT.unpack_from(told, at)
        is_lost = is_lost or bool(mask & _IGNORED)
        at += _EVENT.size + name_bytes
    return is_lost


def _inotify(folders: set[Path]) -> int | None:
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    events: int = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    if events < 0:
        return None
    if any(libc.inotify_add_watch(events, os.fsencode(folder), _EVENTS) < 0 for folder in folders):
        os.close(events)
        return None
    return events
