"""The handoff queue of an engine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from comity.core.handoff.machine import Handoff, State
from comity.core.handoff.queue import Step
from comity.core.journal.records import Record
from comity.core.reading.page import ROWS_DEFAULT
from comity.ports.journal import Then


class Handoffs(Protocol):
    """Reads the handoff queue of a journal. Steps, which go through the journal, change it."""

    @property
    def knows_of_the_dead(self) -> bool:
        """Whether nodes were found dead whose handoffs no node has released yet."""
        ...

    def look_for_the_dead(self) -> None:
        """Find dead nodes among those that hold handoffs or subscribe to lanes."""
        ...

    def open(self, heard: Callable[[set[str] | None], None]) -> None:
        """Open the queue; call `heard` with topics: `+lane` has a free handoff, `=id` has changed, `!id` has ended,
        `-id` was lost by its holder; None means that anything may have changed.
        """
        ...

    def close(self) -> None:
        """Stop notifications."""
        ...

    def get(self, handoff_id: str) -> Handoff | None:
        """Return a handoff."""
        ...

    def get_again(self, handoffs: Collection[Handoff]) -> list[Handoff]:
        """Return the current versions of these handoffs, without those that are gone."""
        ...

    def by_trace(self, trace_id: str) -> list[Handoff]:
        """Return the handoffs that belong to a trace, or whose result was recorded in it."""
        ...

    def find(self, *, states: Collection[State] = ..., lane: str | None = None, limit: int = ROWS_DEFAULT) -> list[Handoff]:
        """Return handoffs, newest first."""
        ...

    def count_free(self, lane: str) -> int:
        """Return the number of free handoffs in a lane."""
        ...

    def next_due(self) -> int | None:
        """Return the next deadline or lease expiry, or None."""
        ...


class HandoffJournal(Protocol):
    """A journal that keeps a handoff queue."""

    @property
    def node_id(self) -> str:
        """The id of this node, new each time the journal is opened."""
        ...

    @property
    def handoffs(self) -> Handoffs:
        """The queue."""
        ...

    def append(self, records: Sequence[Record | Step], then: Then | None = None) -> None:
        """Write records and apply steps, after all earlier ones."""
        ...
