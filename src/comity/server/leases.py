"""Receivers behind HTTP: what each holds, and for how long without a word of it.

A receiver in this process keeps its lease while the process lives. One behind HTTP may die without closing anything, so the
server holds the handoff for it and gives it back when no heartbeat has come within the lease. The lease's id is the proof that
the client that ends a handoff is the receiver that holds it.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from typing import Any, Final

from comity import Node
from comity.contextcore.handoffs.receiver import AsyncHandoffReceiver
from comity.core.agent.declaration import DeclarationError
from comity.core.call.limits import CITED_CHARS_MAX
from comity.core.handoff.machine import Handoff
from comity.core.units import MS_PER_S
from comity.errors import CallerError, ComityError, RefusedError, UnavailableError

LEASE_MS: Final = 30_000
RECEIVERS_MAX: Final = 1_000
HELD_MAX: Final = 10_000


def lease_lost(handoff_id: str) -> RefusedError:
    """Return the error of a lease that holds nothing."""
    return RefusedError(f"the lease of {ascii(handoff_id)[:CITED_CHARS_MAX]} has ended", code="HANDOFF_LEASE_LOST")


class Held:
    """One handoff that a receiver behind HTTP has."""

    __slots__ = ("handoff_id", "id", "lease_ms", "question", "receiver", "timer", "until")

    def __init__(self, handoff_id: str, receiver: AsyncHandoffReceiver, lease_ms: int) -> None:
        self.id = secrets.token_urlsafe(18)
        self.handoff_id = handoff_id
        self.receiver = receiver
        self.lease_ms = lease_ms
        self.until = 0
        self.timer: asyncio.TimerHandle | None = None
        self.question: tuple[str, asyncio.Future[Any]] | None = None  # what it asked, and the answer to come


class Receivers:
    """The receivers that a server stands in for, and what they hold."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._receivers: dict[tuple[str, str, tuple[str, ...]], AsyncHandoffReceiver] = {}
        self._held: dict[str, Held] = {}  # by id of the handoff
        self._tasks: set[asyncio.Task[None]] = set()

    def receiver(self, tenant_id: str, agent_id: str, capabilities: tuple[str, ...]) -> AsyncHandoffReceiver:
        """Return the receiver that stands in for an agent. Raises `CallerError` for names that cannot be one."""
        key = (tenant_id, agent_id, tuple(sorted(set(capabilities))))
        found = self._receivers.get(key)
        if found is None:
            if len(self._receivers) >= RECEIVERS_MAX:
                raise UnavailableError(f"this server stands in for {RECEIVERS_MAX} receivers already", code="AGENT_BUSY")
            try:
                found = AsyncHandoffReceiver(agent_id, key[2], node=self._node, tenant_id=tenant_id)
            except DeclarationError as error:
                raise CallerError(str(error), code="INPUT_VALIDATION_FAILED") from None
            self._receivers[key] = found
        return found

    def hold(self, handoff: Handoff, receiver: AsyncHandoffReceiver, lease_ms: int, now_ms: int) -> Held:
        """Hold a handoff that was just accepted, for as long as heartbeats come."""
        if len(self._held) >= HELD_MAX:
            raise UnavailableError(f"this server holds {HELD_MAX:,} handoffs already", code="AGENT_BUSY")
        if (before := self._held.get(handoff.id)) is not None and before.timer is not None:
            before.timer.cancel()
        held = self._held[handoff.id] = Held(handoff.id, receiver, lease_ms)
        self.renew(held, now_ms)
        return held

    def held(self, handoff_id: str, lease: str) -> Held:
        """Return what a lease holds. Raises `RefusedError` HANDOFF_LEASE_LOST where it holds nothing any more."""
        found = self._held.get(handoff_id)
        if found is None or not secrets.compare_digest(found.id.encode(), lease.encode()):
            raise lease_lost(handoff_id)
        return found

    def renew(self, held: Held, now_ms: int) -> None:
        """Let a lease last from now on."""
        if held.timer is not None:
            held.timer.cancel()
        held.until = now_ms + held.lease_ms
        held.timer = asyncio.get_running_loop().call_later(held.lease_ms / MS_PER_S, self._fall_silent, held)

    def drop(self, held: Held) -> None:
        """Hold a handoff no longer: it has ended or was given back."""
        if held.timer is not None:
            held.timer.cancel()
        if held.question is not None:
            held.question[1].cancel()
            held.question = None
        if self._held.get(held.handoff_id) is held:
            del self._held[held.handoff_id]

    def _fall_silent(self, held: Held) -> None:
        self.drop(held)
        task = asyncio.get_running_loop().create_task(self._give_back(held))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _give_back(self, held: Held) -> None:
        with contextlib.suppress(ComityError):  # it has ended, or another receiver has it
            await held.receiver.release(held.handoff_id, "its receiver fell silent")

    def close(self) -> None:
        """Watch no lease any more; the node gives back what its receivers hold when it closes."""
        for held in tuple(self._held.values()):
            self.drop(held)
