"""What `comity sim` plays: scenarios by name, and which of them the seeds of a long run play in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from comity.testing.sim.faults import Fault
from comity.testing.sim.world import Outcome, Scenario, World


class Play(NamedTuple):
    """A scenario, the faults it is played with, and the marks that a long run of it must reach, as well as every transition of
    these machines."""

    scenario: Scenario
    faults: Sequence[Fault] = ()
    marks: Sequence[str] = ()
    machines: Sequence[str] = ()
    is_swarm: bool = False

    def run(self, seed: int, **more: Any) -> Outcome:
        """Play it with a seed."""
        return World(seed, faults=self.faults, is_swarm=self.is_swarm, **more).run(self.scenario)


class Campaign(NamedTuple):
    """Scenarios by name. A seed of a long run plays those of its turn in `in_turn`.

    `comity sim --complete` wants a long run to reach every fault, mark and transition of `whole`, and these `refusals`.
    """

    plays: Mapping[str, Play]
    in_turn: Sequence[tuple[str, ...]]
    whole: Play
    refusals: Sequence[str] = ()
