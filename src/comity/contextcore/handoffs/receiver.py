"""A receiver of handed-off work, as ContextCore has it; `comity.HandoffReceiver` is the sync twin."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from comity.contextcore.handoffs.host import HandoffHost
from comity.core.handoff.machine import LEASE_MS
from comity.node.node import Node
from comity.runtime.handoff.receiver import Receiver


class AsyncHandoffReceiver(Receiver, HandoffHost):
    """Takes work for an agent, and work that any agent with one of its capabilities may do.

    receiver = AsyncHandoffReceiver(agent_id="o11y", capabilities=["investigate_error"], store="work.db")
    async for handoff in receiver.watch_handoffs():
        await receiver.accept(handoff.id)
        await receiver.complete(handoff.id, result=investigate(handoff.inputs))

    `node` is a running node to use; without one the receiver runs its own on `store`. It takes work of `tenant_id` alone.
    A receiver that dies or falls silent for `lease_ms` loses what it has to the next one; while it works, its lease is renewed.
    One that `keeps` what it accepts is a person or a script: it may end, and another for its agent goes on, until the deadline.
    """

    def __init__(
        self,
        agent_id: str,
        capabilities: Collection[str] = (),
        *,
        node: Node | None = None,
        store: str | Path | None = None,
        tenant_id: str = "default",
        lease_ms: int = LEASE_MS,
        keeps: bool = False,
    ) -> None:
        HandoffHost.__init__(self, node, store)
        Receiver.__init__(self, agent_id, capabilities, tenant_id=tenant_id, lease_ms=lease_ms, keeps=keeps)
