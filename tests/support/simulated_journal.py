"""A journal of the simulator that stands alone, for suites that write what no node would."""

from __future__ import annotations

from comity.testing import World
from comity.testing.sim.journal import SimJournal
from comity.testing.sim.loop import Life


class Named(Life):
    """A process whose name does not change from life to life."""

    def __str__(self) -> str:
        return self.name


class Unwatched(SimJournal):
    """A journal that takes what no node would ever write."""

    def __init__(self, world: World) -> None:
        super().__init__(world, world.disk, world.witness, Named("node", 1))
        world.witness.violate = lambda *_: None
        self.loop = world.loop

    def bury(self) -> None:
        """Let its world end."""
        self.loop.bury()
