"""The reader of a server: one view of the store, used by one thread, so that no list keeps a call waiting."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from comity import Node
from comity.errors import ComityError
from comity.ports.reader import Reader

Read = TypeVar("Read")
REST_S: Final = 0.05  # after each part of an index that is made, so that calls have the processor
STALE_S: Final = 5.0  # how often an index is caught up that no list asks for


class Reading:
    """Asks the reader of a node; in a thread of its own where reading waits for a disk."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._reader: Reader | None = None
        self._thread: ThreadPoolExecutor | None = None

    async def ask(self, work: Callable[[Reader], Read]) -> Read:
        """Return what `work` reads. Raises what the reader raises."""
        if self._reader is None:
            reader = self._node.open_reader()
            self._thread = ThreadPoolExecutor(1, "comity-reading") if reader.is_aside else None
            self._reader = reader
        if self._thread is None:
            return work(self._reader)
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, self._reader)

    def close(self) -> None:
        """Let go of the store."""
        if self._thread is not None and self._reader is not None:
            self._thread.submit(self._reader.close)
            self._thread.shutdown()
        elif self._reader is not None:
            self._reader.close()
        self._reader = self._thread = None


async def keep_index(node: Node) -> None:
    """Make and keep the index of calls of a node, in bounded parts, by a reader and a thread of its own.

    A store may have grown by a million calls while no server looked at it; lists are answered from the audit meanwhile.
    """
    reading = Reading(node)
    try:
        while True:
            is_whole = True
            with contextlib.suppress(ComityError):  # a store that cannot be read for the moment is asked again
                is_whole = await reading.ask(lambda reader: reader.catch_up())
            await asyncio.sleep(STALE_S if is_whole else REST_S)
    finally:
        reading.close()
