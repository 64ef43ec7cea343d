"""Messages to other nodes, which may be lost, and background tasks, which end with this node."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from comity.core.cluster import messages as wire
from comity.core.cluster.messages import Message
from comity.core.units import NS_PER_MS
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
        """Return the time in epoch milliseconds."""
        return self._clock.now_ns() // NS_PER_MS

    def send(self, node_id: str, message: Message) -> None:
        """Send a message, which may be lost."""
        self.transport.send(node_id, wire.encode(message))

    def spawn(self, work: Coroutine[Any, Any, object]) -> None:
        """Run `work` in a background task, which is cancelled when this node closes."""
        task = self.loop.create_task(work)
        self._spawned[task] = None
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[object]) -> None:
        self._spawned.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("a background task of the cluster failed: %s", error)

    def spawned(self) -> list[asyncio.Task[object]]:
        """Return the background tasks."""
        return list(self._spawned)
