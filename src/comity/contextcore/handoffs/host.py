"""Where a manager or receiver of handoffs lives: on a node that runs, or on one of its own."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from comity.core.agent.agent import Agent
from comity.node.node import Node
from comity.runtime.handoff.desk import Handoffs
from comity.runtime.handoff.host import DeskHost

STORE: Final = "comity.db"


class HandoffHost(DeskHost):
    """Begins with first use, or as `async with`. Without a node it has one of its own on the store, which ends with it."""

    def __init__(self, node: Node | None, store: str | Path | None, agents: Iterable[Agent] = ()) -> None:
        known = tuple(agents)
        if node is not None and (store is not None or known):
            raise ValueError("give a node, or a store and the agents that are known, not both")
        where = store or os.environ.get("COMITY_STORE") or STORE
        DeskHost.__init__(self)
        self._node = Node(known, store=where, lag_ms=None, takes_handoffs=False) if node is None else node
        self._is_own = node is None
        self._is_started = node is not None

    async def _find_desk(self) -> Handoffs:
        """Return the handoffs of the node, which is started if need be."""
        if not self._is_started:
            self._is_started = True
            await self._node.start()
        return self._node.handoffs

    async def __aenter__(self) -> Self:
        await self.desk()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End, and with it every waiting here; a node of its own ends with it."""
        await super().close()
        if self._is_own and self._is_started:
            await self._node.close()
