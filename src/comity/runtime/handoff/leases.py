"""The leases of handoffs that receivers of this node hold: renewed while they work; a callback reports a lost lease."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol

from comity.core.handoff.holder import Holder
from comity.core.handoff.machine import Handoff, Renew
from comity.core.handoff.queue import Step
from comity.core.units import NS_PER_MS
from comity.ports import Clock, Handoffs
from comity.runtime.agent.clock_watch import ClockWatch

Lost = Callable[[str], None]  # called with a handoff id


class Receiver(Protocol):
    """A receiver of handoffs on a node."""

    async def stop(self) -> None:
        """Cancel its work and release its handoffs: the node closes."""
        ...


class Leases:
    """Renews the leases of one node's receivers."""

    def __init__(
        self,
        queue: Handoffs,
        append: Callable[..., None],
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        watch: ClockWatch,
    ) -> None:
        self._queue = queue
        self._append = append  # of the journal with the queue
        self._clock = clock
        self._loop = loop
        self._held: dict[str, tuple[Holder, int, Lost]] = {}  # by handoff id: holder, lease in ms, callback
        self._heartbeat: asyncio.TimerHandle | None = None
        self._watch = watch
        watch.join(self)

    def close(self) -> None:
        """Stop renewing leases."""
        self._watch.leave(self)
        if self._heartbeat is not None:
            self._heartbeat.cancel()

    def hold(self, handoff: Handoff, lease_ms: int, lost: Lost) -> None:
        """Keep the lease of a handoff alive; `lost` is called once if it is lost or the handoff ends without its receiver."""
        self._held[handoff.id] = (Holder(handoff.holder, handoff.fence), lease_ms, lost)
        if self._heartbeat is None:
            self._heartbeat = self._loop.call_later(lease_ms / 3000, self._beat)
        if self._watch.is_parked:
            self._watch.wake()

    @property
    def is_armed(self) -> bool:
        """Whether there is a lease to renew."""
        return bool(self._held)

    def set_anew(self) -> None:
        """Renew all leases now, and report lost ones: the wall clock and the loop's clock drifted apart."""
        if self._heartbeat is not None:
            self._heartbeat.cancel()
        self._beat()

    def let_go(self, handoff_id: str) -> None:
        """Stop renewing the lease of a handoff."""
        self._held.pop(handoff_id, None)

    def look_after(self, topics: set[str] | None) -> None:
        """Check the leases of handoffs that the queue rang about; None means all."""
        for handoff_id in tuple(self._held) if topics is None else [one[1:] for one in topics if one[0] == "-"]:
            if handoff_id in self._held:
                self._look_after(handoff_id)

    def _look_after(self, handoff_id: str) -> None:
        holder, _, _ = self._held[handoff_id]
        handoff = self._queue.get(handoff_id)
        if handoff is None or (handoff.holder, handoff.fence) != (holder.name, holder.fence):
            self._lose(handoff_id)

    def _beat(self) -> None:
        self._heartbeat = None
        if not self._held:
            return
        now_ms = self._clock.now_ns() // NS_PER_MS
        steps = [
            Step(handoff_id=one, change=Renew(by, now_ms + lease_ms), now_ms=now_ms)
            for one, (by, lease_ms, _) in self._held.items()
        ]
        shortest = min(lease_ms for _, lease_ms, _ in self._held.values())
        self._append(steps, partial(self._renewed, steps))  # if the journal has failed, all leases are lost
        self._heartbeat = self._loop.call_later(shortest / 3000, self._beat)

    def _renewed(self, steps: list[Step], error: Exception | None) -> None:
        for step in steps:
            if error is not None or step.outcome.refusal is not None:
                self._lose(step.handoff_id)

    def _lose(self, handoff_id: str) -> None:
        held = self._held.pop(handoff_id, None)
        if held is not None:
            held[2](handoff_id)
