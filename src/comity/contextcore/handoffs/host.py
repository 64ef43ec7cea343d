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
from comity.runtime.handoff.listening import Ear, closed

STORE: Final = "comity.db"


class HandoffHost:
    """Begins with first use, or as `async with`. Without a node it has one of its own on the store, which ends with it."""

    def __init__(self, node: Node | None, store: str | Path | None, agents: Iterable[Agent] = ()) -> None:
        known = tuple(agents)
        if node is not None and (store is not None or known):
            raise ValueError("give a node, or a store and the agents that are known, not both")
        where = store or os.environ.get("COMITY_STORE") or STORE
        self._owned = Node(known, store=where, lag_ms=None, takes_handoffs=False) if node is None else None
        self._node = node or self._owned
        self._is_started = node is not None
        self._is_closed = False
        self._desk: Handoffs | None = None  # once it is known
        self._ears: dict[Ear, None] = {}  # of those who wait here

    async def desk(self) -> Handoffs:
        """Return the handoffs of the node, which is started if need be."""
        if self._is_closed:
            raise closed()
        assert self._node is not None
        if not self._is_started:
            self._is_started = True
            await self._node.start()
        self._desk = self._node.handoffs
        return self._desk

    async def __aenter__(self) -> Self:
        await self.desk()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End, and with it every waiting here; a node of its own ends with it."""
        self._is_closed = True
        self._desk = None
        for ear in tuple(self._ears):
            ear.fail(closed())
        if self._owned is not None and self._is_started:
            await self._owned.close()
