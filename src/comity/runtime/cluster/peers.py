"""The other nodes as this one reaches them: messages that may not arrive, and tasks that end with this node."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from comity.core.cluster import messages as wire
from comity.core.cluster.messages import Message
from comity.ports import Clock, Ids, Journal, Transport

log = logging.getLogger("comity")


class Peers:
    """What the parts of a cluster share: its clock, its journal, its messages."""

    def __init__(self, journal: Journal, transport: Transport, clock: Clock, ids: Ids) -> None:
        self.journal = journal
        self.ids = ids
        self.loop = asyncio.get_running_loop()
        self.transport = transport
        self._clock = clock
        self._spawned: dict[asyncio.Task[object], None] = {}  # the loop keeps only weak references

    def now_ms(self) -> int:
        """Return the time."""
        return self._clock.now_ns() // 1_000_000

    def send(self, node_id: str, message: Message) -> None:
        """Send a message, which may not arrive."""
        self.transport.send(node_id, wire.encode(message))

    def spawn(self, work: Coroutine[Any, Any, object]) -> None:
        """Do something in the background, which ends with this node."""
        task = self.loop.create_task(work)
        self._spawned[task] = None
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[object]) -> None:
        self._spawned.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("what was begun in the background has failed: %s", error)

    def spawned(self) -> list[asyncio.Task[object]]:
        """Return what is done in the background."""
        return list(self._spawned)
