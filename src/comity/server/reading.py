"""The reader of a server: one view of the store, used by one thread, so that no list keeps a call waiting."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from comity import Node
from comity.errors import ComityError
from comity.ports.reader import Reader

Read = TypeVar("Read")
REST_S: Final = 0.05  # after each part of an index that is made, so that calls have the processor
STALE_S: Final = 5.0  # how often an index is caught up that no list asks for
# What a node does that is busy: from then on its index waits, unless a list was asked for in the last while.
BUSY_ROWS_PER_S: Final = 400  # of the audit, which has two for each call
ASKED_S: Final = 60.0
MISSING_ROWS_MAX: Final = 50_000  # in an index that waits: 1.6 s of CPU to catch up, beside calls in parts


class Reading:
    """Asks the reader of a node; in a thread of its own where reading waits for a disk."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._reader: Reader | None = None
        self._thread: ThreadPoolExecutor | None = None
        self.asked_at = -math.inf  # by the event loop's time

    async def ask(self, work: Callable[[Reader], Read]) -> Read:
        """Return what `work` reads. Raises what the reader raises."""
        loop = asyncio.get_running_loop()
        self.asked_at = loop.time()
        if self._reader is None:
            reader = self._node.open_reader()
            self._thread = ThreadPoolExecutor(1, "comity-reading") if reader.is_aside else None
            self._reader = reader
        if self._thread is None:
            return work(self._reader)
        return await loop.run_in_executor(self._thread, work, self._reader)

    def close(self) -> None:
        """Let go of the store."""
        if self._thread is not None and self._reader is not None:
            self._thread.submit(self._reader.close)
            self._thread.shutdown()
        elif self._reader is not None:
            self._reader.close()
        self._reader = self._thread = None


def is_due(missing: int, rows_per_s: float, unasked_s: float) -> bool:
    """Return whether the index of calls is caught up now: in a rest, while lists are asked for, or since too much is missing.

    A busy node has its processor for calls; lists take from the audit what is missing in the index. See ADR 153.
    """
    return rows_per_s < BUSY_ROWS_PER_S or unasked_s < ASKED_S or missing > MISSING_ROWS_MAX


async def keep_index(node: Node, lists: Reading) -> None:
    """Make and keep the index of calls of a node, in bounded parts, by a reader and a thread of its own, for those of `lists`.

    A store may have grown by a million calls while no server looked at it; lists are answered from the audit meanwhile.
    """
    reading, now_s = Reading(node), asyncio.get_running_loop().time
    known: int | None = None  # the newest audit row that is in the index with all before it
    head = 0  # the newest of all when the store was last looked at
    looked_at = now_s()
    try:
        while True:
            is_whole = True
            with contextlib.suppress(ComityError):  # a store that cannot be read for the moment is asked again
                before, before_s = head, looked_at
                head, looked_at = await reading.ask(lambda reader: reader.head_id()), now_s()
                rows_per_s = (head - before) / max(looked_at - before_s, REST_S)
                if known is None or is_due(head - known, rows_per_s, looked_at - lists.asked_at):
                    is_whole = await reading.ask(lambda reader: reader.catch_up())
                    known = head if is_whole else known
            await asyncio.sleep(STALE_S if is_whole else REST_S)
    finally:
        reading.close()
