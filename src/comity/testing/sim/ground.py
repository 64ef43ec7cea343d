"""What simulated processes stand on: a disk, a network, a lease service, and beside them a witness."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import Any

from comity.core.envelope.envelope import Reply
from comity.core.units import NS_PER_MS
from comity.testing.sim.faults import Fault, Firing, Kind
from comity.testing.sim.journal import Disk
from comity.testing.sim.loop import Life
from comity.testing.sim.network import SimLeaseService, SimNetwork
from comity.testing.sim.scene import SKEW_MS_MAX, Scene
from comity.testing.sim.witness import Witness

CURRENT: ContextVar[Any] = ContextVar("comity_world")  # the world that the code that asks is in


class Ground(Scene):
    """A scene with everything that its processes share."""

    def __init__(
        self,
        seed: int,
        faults: Sequence[Fault],
        only: Iterable[Firing] | None,
        *,
        is_swarm: bool,
        steps_max: int,
        cut_at_append: int | None,
    ) -> None:
        super().__init__(seed, faults, only, is_swarm=is_swarm, steps_max=steps_max, cut_at_append=cut_at_append)
        self.context.run(CURRENT.set, self)
        self.disk = Disk()
        self.network = SimNetwork(self)
        self.leases = SimLeaseService(self)
        self.witness = Witness(self, self.disk.handoffs)

    def life(self, name: str, number: int) -> Life:
        """Begin the life of a process of this world."""
        life = Life(name, number)
        life.context.run(CURRENT.set, self)
        return life

    def skew_of(self, life: Life) -> int:
        """Return how far the clock of a new process is off, in nanoseconds."""
        chance = self.strikes(Kind.CLOCK_SKEW, life.name)
        return 0 if chance is None else chance.randint(-SKEW_MS_MAX, SKEW_MS_MAX) * NS_PER_MS

    def told(self, reply: Reply) -> None:
        """A client has its reply."""
        self.witness.told(reply.request_id, reply, is_written=self._is_no_end(reply) or self.is_written(reply))

    def _is_no_end(self, reply: Reply) -> bool:
        """Whether a reply leaves its call where it was: refused, or asked about while it may go on already."""
        return reply.status == "refused" or (reply.status == "needs_input" and self.disk.knows(reply.request_id))

    def is_written(self, reply: Reply) -> bool:
        """Return whether the disk has a reply."""
        known = self.disk.call(reply.request_id)
        return known is not None and known.reply is not None and known.reply.status == reply.status
