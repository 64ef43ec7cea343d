"""The handoff queue on a simulated disk: the memory engine's shelf, shared by processes that die, stand still and come back.

Steps are done where the journal writes them, by the same pure code as in every engine. Who is to hear of them is rung as the
embedded store does it: a process that rings notices which processes are gone; a process that dies after writing rings none.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

from comity.core.handoff.holder import is_process, node_of
from comity.core.handoff.machine import Handoff, State
from comity.core.handoff.queue import Step, perform_all
from comity.core.journal.records import Record
from comity.core.reading.page import ROWS_DEFAULT
from comity.engines.sqlite.handoffs import MemoryHandoffs, sweeps
from comity.engines.sqlite.wakeups import Heard, Rings, rings_of
from comity.testing.sim.faults import Kind
from comity.testing.sim.loop import Life
from comity.testing.sim.scene import Scene

RING_S_MAX: Final = 0.002


class _Topics(set[str]):
    """What is heard, in an order that does not depend on hashes."""

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(super().__iter__()))


class DiskHandoffs(MemoryHandoffs):
    """What has been written of the queue, by all nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.bells: dict[str, tuple[Life, Heard]] = {}  # of the nodes that hear
        self._gone: Collection[str] = ()  # nodes found dead by the process that writes now

    def do(self, records: Sequence[Record | Step], gone: Collection[str]) -> tuple[list[Record], Rings]:
        """Do the steps among the records; return the records with what the steps add, and who is to hear of it."""
        self._gone = gone
        written, touched = perform_all(self, records)
        self._gone = ()
        for node_id in gone:
            self.listen(node_id, ())
        return written, rings_of(touched, self._listeners) if touched else {}

    def due(self, now_ms: int) -> list[Handoff]:
        """Return those whose time has come, and those of nodes that are gone."""
        found = super().due(now_ms)
        if self._gone:
            known = {one.id for one in found}
            found += [one for one in self._shelf.values() if node_of(one.holder) in self._gone and one.id not in known]
        return found

    def hear(self, node_id: str, topics: set[str] | None) -> None:
        """Let a node hear, if it still does."""
        bell = self.bells.get(node_id)
        if bell is not None:
            bell[1](topics)

    def nodes(self) -> list[str]:
        """Return the nodes that hold something or listen."""
        holders = (node_of(one.holder) for one in self._shelf.values() if one.holder)
        return sorted(node_id for node_id in {*holders, *self._listeners} if is_process(node_id))


class SimHandoffs:
    """One process's way to the queue."""

    def __init__(
        self,
        world: Scene,
        queue: DiskHandoffs,
        life: Life,
        chance: random.Random,
        *,
        node_id: str,
        alive: Mapping[str, None],
        read: Callable[[str], None],
    ) -> None:
        self._world = world
        self._queue = queue
        self._node_id = node_id
        self._alive = alive  # the nodes that have the store open
        self._read = read  # of the store, which may fail
        self._life = life
        self._loop = world.loop
        self._chance = chance
        self._gone: dict[str, None] = {}

    # --- opening and closing ---

    def open(self, heard: Heard) -> None:
        """Begin to hear."""
        self.look_for_the_dead()
        self._queue.bells[self._node_id] = (self._life, heard)

    def close(self) -> None:
        """Hear no more."""
        self._queue.bells.pop(self._node_id, None)

    def look_for_the_dead(self) -> None:
        """See which nodes are gone of those that hold something or listen."""
        self._read("look_for_the_dead")
        self._gone |= {one: None for one in self._queue.nodes() if one not in self._alive}

    # --- writing, when the journal does ---

    def do(self, records: Sequence[Record | Step]) -> tuple[list[Record], Rings]:
        """Do the steps among the records on the disk."""
        gone = tuple(self._gone) if sweeps(records) else ()
        self._gone = {} if gone else self._gone
        return self._queue.do(records, gone)

    def ring(self, rings: Rings) -> None:
        """Wake those whom it concerns; who does not answer is dead."""
        is_news = False
        for node_id, topics in rings.items():
            bell = self._queue.bells.get(node_id)
            if bell is not None:
                self._tell(bell[0], node_id, topics)
            elif node_id != self._node_id:
                is_news = True
                self._gone[node_id] = None
        if is_news:
            self._loop.call_soon(self._queue.hear, self._node_id, None)

    def _tell(self, life: Life, node_id: str, topics: set[str]) -> None:
        """Let a process hear, within that process: a dead one hears nothing, a paused one later."""
        heard: set[str] | None = _Topics(topics)
        if (chance := self._world.strikes(Kind.RING_LOST, f"{self._life.name}>{life.name}")) is not None:
            if chance.random() < 0.5:
                return
            heard = None  # all that it hears is that something happened
        delay_s = RING_S_MAX * self._chance.random()
        self._loop.call_later(delay_s, self._queue.hear, node_id, heard, context=life.context.copy())

    # --- reading ---

    @property
    def knows_of_the_dead(self) -> bool:
        """Whether nodes were found dead whose handoffs no process has released yet."""
        return bool(self._gone)

    def get(self, handoff_id: str) -> Handoff | None:
        """Return a handoff."""
        self._read("handoff")
        return self._queue.get(handoff_id)

    def get_again(self, handoffs: Collection[Handoff]) -> list[Handoff]:
        """Return those of these that there still are as they stand now."""
        self._read("handoffs")
        return self._queue.get_again(handoffs)

    def by_trace(self, trace_id: str) -> list[Handoff]:
        """Return the handoffs that belong to a trace, or whose result was recorded in it."""
        self._read("handoffs by trace")
        return self._queue.by_trace(trace_id)

    def find(
        self, *, states: Collection[State] = tuple(State), lane: str | None = None, limit: int = ROWS_DEFAULT
    ) -> list[Handoff]:
        """Return handoffs, newest first."""
        self._read("handoffs by state")
        return self._queue.find(states=states, lane=lane, limit=limit)

    def count_free(self, lane: str) -> int:
        """Return how many wait in a lane."""
        self._read("handoffs that wait")
        return self._queue.count_free(lane)

    def next_due(self) -> int | None:
        """Return when a node has to look at the queue, unless the queue changes before."""
        self._read("handoffs that are due")
        return self._queue.next_due()
