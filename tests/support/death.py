"""How a node ends when its process is killed, without killing the test's own."""

from __future__ import annotations

import asyncio
import os

from comity import Node
from comity.engines.sqlite import liveness


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
    if path.recorder._drain is not None:
        path.recorder._drain.close()  # a thread of a dead process warns of nothing in a later test
        path.recorder._store.close()  # nor does its connection
    await node._engine.leave()
    let_go(journal.members)
    await journal.close()
    await asyncio.sleep(0)


def let_go(members: liveness.Members) -> None:
    """Release the lock of a node and leave its file, as the death of its process does."""
    liveness._held.discard(members._file)  # else a later fork of this process closes whatever has the number then
    os.close(members._file)
    members._file = -1


def _nowhere(records, then=None, terms=None):
    pass
