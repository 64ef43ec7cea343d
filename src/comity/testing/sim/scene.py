"""Where a simulation plays: one seed, its chance, its time, the faults that strike, and the trace of what happened."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextvars import Context

from comity.core.units import MS_PER_S, NS_PER_MS
from comity.testing.sim.chance import EPOCH_NS, stream
from comity.testing.sim.faults import Fault, Faults, Firing, Kind, Pace
from comity.testing.sim.invariants import ViolationError
from comity.testing.sim.loop import Life, SimLoop
from comity.testing.sim.trace import Trace

# How far the clocks of two processes may lie apart, in each direction.
SKEW_MS_MAX = 200


class Scene(ABC):
    """What every simulated thing needs of the run it is part of."""

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
        self.seed = seed
        self.faults = Faults(seed, faults, only, is_swarm=is_swarm)
        self.trace = Trace()
        self.marks: dict[str, int] = {}
        self.violation: ViolationError | None = None
        self.context = Context()  # of what belongs to no process
        self.loop = SimLoop(self.stream("order"), is_shuffled=self.stream("mode").random() < 0.5, steps_max=steps_max)
        self.loop.on_cut = self.crash
        self.appends = 0  # how many journals were asked for
        self.cut_at_append = cut_at_append
        self.skew_ms = 2 * SKEW_MS_MAX if self.faults.has(Kind.CLOCK_SKEW) else 0

    @abstractmethod
    def crash(self, life: Life) -> None:
        """Let a process die where it stands."""

    @abstractmethod
    def worked(self, life: Life, *, has_ended: bool = False) -> None:
        """Note that an agent of a process has done something, or ended a call."""

    def stream(self, name: str) -> random.Random:
        """Return a stream of chance that no other draw shifts."""
        return stream(self.seed, name)

    def reached(self, mark: str) -> None:
        """Note that something worth testing has happened: a mark that no seed reaches shows that nothing was tested."""
        self.marks[mark] = self.marks.get(mark, 0) + 1

    def strikes(self, kind: Kind, where: str, pace: Pace | None = None) -> random.Random | None:
        """Ask whether a fault strikes here and now."""
        chance = self.faults.strikes(kind, where, self.loop.time(), pace)
        if chance is not None:
            self.note("fault", "strikes", f"{self.faults.fired[-1]} at {where}")
        return chance

    def now_ms(self) -> int:
        """Return the time of the world, which no process knows."""
        return EPOCH_NS // NS_PER_MS + round(self.loop.time() * MS_PER_S)

    def note(self, who: str, what: str, about: str) -> None:
        """Add a line to the trace."""
        self.trace.add(self.loop.time(), who, what, about)
