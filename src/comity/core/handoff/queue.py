"""The queue of handoffs: its steps, and which handoff is next.

An engine keeps handoffs on a `Shelf`, and `perform` changes them within one transaction. Priorities are served as in an agent's
mailbox: each round gives every priority its turns, so no handoff starves. Each receiver counts its own turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from msgspec import Struct

from comity.core.agent.mailbox import TURNS, Mailbox
from comity.core.envelope.envelope import Priority
from comity.core.handoff.machine import (
    Accept,
    Change,
    Expire,
    Handoff,
    Outcome,
    Release,
    Renew,
    apply,
)
from comity.core.journal.records import Record


class Want(Struct, frozen=True, gc=False):
    """What a receiver accepts: handoffs in its agent's lane for its capabilities, and the lanes of those capabilities."""

    own_lane: str
    capabilities: tuple[str, ...]  # empty: all
    lanes: tuple[str, ...]  # of its capabilities

    def matches(self, handoff: Handoff) -> bool:
        """Return whether the receiver accepts this handoff."""
        if handoff.lane == self.own_lane:
            return not self.capabilities or handoff.request.capability in self.capabilities
        return handoff.lane in self.lanes


class Take(Struct, frozen=True, gc=False):
    """Get the next handoffs, at most `most` of them."""

    want: Want
    accept: Accept
    most: int
    turns: dict[Priority, int]


class Sweep(Struct, frozen=True):
    """Record expired deadlines and leases."""


class Listen(Struct, frozen=True):
    """Subscribe a node to handoffs that become free in these lanes; with `*`, to every change."""

    node_id: str
    lanes: tuple[str, ...]


class Step(Struct, eq=False, kw_only=True, gc=False):
    """One change of the queue, decided in the transaction that writes it, and its outcome."""

    change: Change | Take | Sweep | Listen
    now_ms: int
    handoff_id: str = ""
    outcomes: Sequence[Outcome] = ()
    turns: dict[Priority, int] | None = None  # after a `Take`
    touched: Sequence[tuple[Handoff | None, Handoff]] = ()  # each handoff it changed, before and after

    @property
    def needs_sync(self) -> bool:
        """Whether it must survive a power failure. Leases need not, since no holder survives one."""
        return not isinstance(self.change, (Take, Renew, Listen))

    @property
    def outcome(self) -> Outcome:
        """The outcome of a change to one handoff."""
        return self.outcomes[0]


class Shelf(Protocol):
    """The storage of handoffs, within one transaction."""

    def get(self, handoff_id: str) -> Handoff | None:
        """Return a handoff, or None."""
        ...

    def put(self, before: Handoff | None, after: Handoff) -> None:
        """Store the new version of a handoff."""
        ...

    def due(self, now_ms: int) -> list[Handoff]:
        """Return the handoffs with an expired deadline or lease, or a dead holder."""
        ...

    def free(self, want: Want, limit: int) -> list[Handoff]:
        """Return the free handoffs for a receiver, oldest first, at most `limit` per priority."""
        ...

    def listen(self, node_id: str, lanes: tuple[str, ...]) -> None:
        """Store the lanes that a node subscribes to."""
        ...


def perform(shelf: Shelf, step: Step) -> Sequence[Record]:
    """Apply one step and return the records to write with it."""
    change = step.change
    if isinstance(change, Take):
        return _change_all(shelf, step, [(handoff, change.accept) for handoff in _next(shelf, step, change)])
    if isinstance(change, Sweep):
        return _change_all(shelf, step, _overdue(shelf, step))
    if isinstance(change, Listen):
        shelf.listen(change.node_id, change.lanes)
        return ()
    before = shelf.get(step.handoff_id)
    outcome = apply(before, change, now_ms=step.now_ms)
    step.outcomes = (outcome,)
    after = outcome.handoff
    if after is not None and after is not before:
        shelf.put(before, after)
        step.touched = ((before, after),)
    return outcome.records


def perform_all(shelf: Shelf, records: Iterable[Record | Step]) -> tuple[list[Record], list[tuple[Handoff | None, Handoff]]]:
    """Apply the steps among the records; return the records with each step replaced by its own, and the changed handoffs."""
    written: list[Record] = []
    touched: list[tuple[Handoff | None, Handoff]] = []
    for record in records:
        if isinstance(record, Step):
            written += perform(shelf, record)
            touched += record.touched
        else:
            written.append(record)
    return written, touched


def _change_all(shelf: Shelf, step: Step, changes: Iterable[tuple[Handoff, Change]]) -> list[Record]:
    outcomes: list[Outcome] = []
    touched: list[tuple[Handoff | None, Handoff]] = []
    records: list[Record] = []
    for before, change in changes:
        outcome = apply(before, change, now_ms=step.now_ms)
        outcomes.append(outcome)
        after = outcome.handoff
        if after is not None and after is not before:
            shelf.put(before, after)
            touched.append((before, after))
        records += outcome.records
    step.outcomes, step.touched = outcomes, touched
    return records


def _overdue(shelf: Shelf, step: Step) -> Iterator[tuple[Handoff, Change]]:
    for handoff in shelf.due(step.now_ms):
        is_over = handoff.request.deadline_at <= step.now_ms
        why = f"{handoff.receiver} ({handoff.holder}) was not heard of any more"
        yield handoff, Expire() if is_over else Release(None, why)


def _next(shelf: Shelf, step: Step, take: Take) -> list[Handoff]:
    waiting: Mailbox[Handoff] = Mailbox(take.turns or TURNS)
    for handoff in shelf.free(take.want, take.most):
        if handoff.request.deadline_at > step.now_ms:  # a sweep ends it
            waiting.offer(handoff, handoff.request.priority)
    taken = [one for _ in range(take.most) if (one := waiting.take()) is not None]
    step.turns = waiting.turns
    return taken
