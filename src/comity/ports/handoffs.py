"""The handoff queue of an engine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from comity.core.handoff.machine import Handoff, State
from comity.core.handoff.queue import Step
from comity.core.journal.records import Record
from comity.ports.journal import Then


class Handoffs(Protocol):
    """The handoff queue of a journal, as it is read. It is changed by steps, which go through the journal."""

    @property
    def knows_of_the_dead(self) -> bool:
        """Whether nodes were found dead whose handoffs no node has released yet."""
        ...

    def look_for_the_dead(self) -> None:
        """See which nodes are gone of those that hold something or listen."""
        ...

    def open(self, heard: Callable[[set[str] | None], None]) -> None:
        """Make ready and begin to hear: `+lane` has something free, `=id` has changed, `!id` has
        ended, `-id` is no longer its holder's; None: anything may have happened.
        """
        ...

    def close(self) -> None:
        """Hear no more."""
        ...

    def get(self, handoff_id: str) -> Handoff | None:
        """Return a handoff."""
        ...

    def get_again(self, handoffs: Collection[Handoff]) -> list[Handoff]:
        """Return those of these that there still are as they stand now."""
        ...

    def by_trace(self, trace_id: str) -> list[Handoff]:
        """Return the handoffs that belong to a trace, or whose result was recorded in it."""
        ...

    def find(self, *, states: Collection[State] = ..., lane: str | None = None, limit: int = 100) -> list[Handoff]:
        """Return handoffs, newest first."""
        ...

    def count_free(self, lane: str) -> int:
        """Return how many wait in a lane."""
        ...

    def next_due(self) -> int | None:
        """Return when a node has to look at the queue, unless something happens before."""
        ...


class HandoffJournal(Protocol):
    """A journal that keeps a handoff queue."""

    @property
    def node_id(self) -> str:
        """Name of this holder of the journal."""
        ...

    @property
    def handoffs(self) -> Handoffs:
        """The queue."""
        ...

    def append(self, records: Sequence[Record | Step], then: Then | None = None) -> None:
        """Write records and do steps, after all earlier ones."""
        ...
