"""Notifications between processes that share a store: each has a named pipe, into which committing processes write.

The pipes are beside the store. A waiting process sleeps in its event loop until its pipe is readable; no process polls the
store. A message names the handoffs to read. A pipe without a reader belongs to a dead process: writing to it fails at once,
which reveals the death. If a pipe is full, its reader will wake up anyway.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote

from comity.core.handoff.holder import node_of
from comity.core.handoff.machine import ENDED, Handoff, State

EVERY: Final = "*"
_PENDING, _COMPLETED = State.PENDING, State.COMPLETED  # a name of its own is found faster than one in a class
_CHUNK_BYTES: Final = 4096  # written whole or not at all
_PIPE_BYTES: Final = 65536
_UNNAMED: Final = ".bell-new"
_NAMED_WITHIN_S: Final = 60
_NOBODY: Final = frozenset({errno.ENOENT, errno.ENXIO, errno.EPIPE})

Rings = dict[str, set[str]]  # node to topics: `+lane` has something free; of an id, `=` changed, `!` ended, `-` lost
Heard = Callable[[set[str] | None], None]  # the topics, or None: anything may have happened


def rings_of(touched: Iterable[tuple[Handoff | None, Handoff]], listeners: Mapping[str, tuple[str, ...]]) -> Rings:
    """Return the topics to send to each node: only those that it waits for."""
    rings: Rings = {node_id: set() for node_id in listeners}
    listening = [rings[node_id] for node_id, lanes in listeners.items() if EVERY in lanes]
    unknown: set[str] = set()
    freed: dict[str, str] = {}  # to which lane, of those that no node has taken in the same transaction
    for before, after in touched:
        handoff_id, state, holder = after.request.request_id, after.state, after.holder
        # That it is completed is no news to its holder, who did it.
        is_news = before is not None and before.holder and state is not _COMPLETED
        if is_news and (before.holder != holder or before.fence != after.fence):  # type: ignore[union-attr]
            rings.get(node_of(before.holder), unknown).add(f"-{handoff_id}")  # type: ignore[union-attr]
        if state in ENDED:
            rings.get(after.made_by, unknown).add(f"!{handoff_id}")
            for told in listening:
                told.add(f"!{handoff_id}")
        elif before is None or before.history is not after.history:  # more than a lease that was renewed
            for told in listening:
                told.add(f"={handoff_id}")
            if before is not None and before.question is not after.question:  # who asked may be told
                rings.get(node_of(holder), unknown).add(f"={handoff_id}")
        if state is not _PENDING or holder:
            freed.pop(handoff_id, None)
        elif before is None or not before.is_free:
            freed[handoff_id] = after.lane
    for lane in set(freed.values()):
        for node_id, lanes in listeners.items():
            if lane in lanes:
                rings[node_id].add(f"+{lane}")
    return {node_id: topics for node_id, topics in rings.items() if topics}


def bell_path(store: Path, node_id: str) -> Path:
    """Return the path of a node's pipe."""
    return store.with_name(f"{store.name}.{quote(node_id, safe='')}.bell")


class Bell:
    """The pipe of this process, read in its event loop."""

    def __init__(self, path: Path, heard: Heard) -> None:
        self._path = path
        self._heard = heard
        # Renamed once it is open, so no process can see it without a reader while its node is alive.
        unnamed = path.with_suffix(_UNNAMED)
        os.mkfifo(unnamed, 0o600)
        # Held open for writing too, or the loop would see end-of-file again and again.
        self._file = os.open(unnamed, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        unnamed.rename(path)
        from asyncio import get_running_loop  # noqa: PLC0415  who only reads the queue has no loop

        self._loop = get_running_loop()
        self._loop.add_reader(self._file, self._read)

    def close(self) -> None:
        """Stop listening."""
        self._loop.remove_reader(self._file)
        os.close(self._file)
        self._path.unlink(missing_ok=True)

    def _read(self) -> None:
        data = b""
        with contextlib.suppress(BlockingIOError):
            while len(data) < _PIPE_BYTES:
                data += os.read(self._file, _PIPE_BYTES)
        # A pipe that was nearly full may have turned a writer away.
        is_whole = len(data) < _PIPE_BYTES - _CHUNK_BYTES
        self._heard(set(data.decode().split("\n")[:-1]) if is_whole else None)


class Ringer:
    """Writes into the pipes of others. Belongs to one thread."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._files: dict[str, int] = {}

    def ring(self, rings: Rings) -> list[str]:
        """Send each node its topics; return the dead nodes."""
        return [node_id for node_id, topics in rings.items() if not self._tell(node_id, topics)]

    def close(self) -> None:
        """Close all pipes."""
        for file in self._files.values():
            os.close(file)
        self._files.clear()

    def _tell(self, node_id: str, topics: set[str]) -> bool:
        try:
            file = self._files.get(node_id)
            if file is None:
                path = bell_path(self._store, node_id)
                file = self._files[node_id] = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            for chunk in _chunks(topics):
                os.write(file, chunk)
        except BlockingIOError:
            return True  # full: its reader will read everything
        except OSError as error:
            if error.errno not in _NOBODY:
                return True  # cannot be notified; it reads the queue again after a while
            if (file := self._files.pop(node_id, None)) is not None:
                os.close(file)
            bell_path(self._store, node_id).unlink(missing_ok=True)
            return False
        return True


def _chunks(topics: Iterable[str]) -> list[bytes]:
    chunks = [b""]
    for topic in topics:
        line = f"{topic}\n".encode()
        if len(chunks[-1]) + len(line) > _CHUNK_BYTES:
            chunks.append(b"")
        chunks[-1] += line
    return chunks


def clear(store: Path) -> None:
    """Remove the pipes of nodes that died."""
    for path in store.parent.iterdir():
        if path.name.startswith(f"{store.name}.") and (path.suffix == ".bell" or _was_never_named(path)):
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            except OSError as error:
                if error.errno in _NOBODY:
                    path.unlink(missing_ok=True)


def _was_never_named(path: Path) -> bool:
    """Return whether a pipe was left by a node that died while it made it."""
    try:
        return path.suffix == _UNNAMED and time.time() - path.stat().st_mtime > _NAMED_WITHIN_S
    except FileNotFoundError:
        return False
