"""What the processes of `process_lives` share before they are forked: everything imported, and built once by a node in memory."""

from __future__ import annotations

import asyncio
from importlib import import_module

from process_lives import team

from comity import Node


async def _warm() -> None:
    async with Node(team()) as node:
        (await node.call("FRONT", "VIA", {"key": 1, "operation": "o"}, user_id="u")).unwrap()
        (await node.call("CLERK", "message", message="m", session_id="s", user_id="u")).unwrap()


asyncio.run(_warm())
for name in ("comity.engines.sqlite.engine", "comity.runtime.cluster.cluster", "comity.runtime.cluster.sharing"):
    import_module(name)
