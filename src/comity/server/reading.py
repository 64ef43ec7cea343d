"""The reader of a server: one view of the store, used by one thread, so that no list keeps a call waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from comity import Node
from comity.ports.reader import Reader

Read = TypeVar("Read")


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
