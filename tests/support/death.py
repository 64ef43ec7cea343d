"""How a node ends when its process is killed, without killing the test's own."""

from __future__ import annotations

import asyncio
import os

from comity import Node


async def die(node: Node) -> None:
    """End a node the way a killed process does: nothing is settled, its lock is gone, what was appended is durable."""
    await node._path.durable()
    path, journal = node._path, node._journal
    journal.append = _nowhere  # a dead process writes nothing
    for call in list(path.calls.values()):
        if call.task is not None:
            call.task.cancel()
    path.settlement.deadlines.close()
    node._runtime.tending.stop()
    if node._runtime.workflows is not None:
        node._runtime.workflows.timers.close()
    node._runtime.workers.close()
    if path.watchdog is not None:
        path.watchdog.close()
    await node._engine.leave()
    os.close(journal.members._file)
    journal.members._file = -1
    await journal.close()
    await asyncio.sleep(0)


def _nowhere(records, then=None, terms=None):
    pass
