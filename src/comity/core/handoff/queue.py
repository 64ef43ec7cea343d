"""The queue of handoffs: what a step does to it, and who is next.

An engine keeps handoffs on a `Shelf` and lets `perform` change them, within one transaction. Which priority is next follows the
rule of the mailbox: each round gives every priority its turns, so no handoff starves. The turns are the receiver's own.
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
    """What a receiver can do: everything in its own lane that is one of its capabilities, and the lanes of those."""

    own_lane: str
    capabilities: tuple[str, ...]  # none: whatever comes
    lanes: tuple[str, ...]  # of its capabilities

    def matches(self, handoff: Handoff) -> bool:
        """Return whether it can do this."""
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
    """Look for deadlines and leases that have passed."""


class Listen(Struct, frozen=True):
    """Let a node hear of handoffs that become free in these lanes; of every change if there is `*` among them."""

    node_id: str
    lanes: tuple[str, ...]


class Step(Struct, eq=False, kw_only=True, gc=False):
    """One thing to be done to the queue, decided where it is written, and what came of it."""

    change: Change | Take | Sweep | Listen
    now_ms: int
    handoff_id: str = ""
    outcomes: Sequence[Outcome] = ()
    turns: dict[Priority, int] | None = None  # after a `Take`
    touched: Sequence[tuple[Handoff | None, Handoff]] = ()  # each handoff it changed, before and after

    @property
    def needs_sync(self) -> bool:
        """Whether what it does must survive a loss of power. Who holds what need not: no holder does."""
        return not isinstance(self.change, (Take, Renew, Listen))

    @property
    def outcome(self) -> Outcome:
        """Of a change to one handoff."""
        return self.outcomes[0]


class Shelf(Protocol):
    """Where the handoffs are, for the length of one transaction."""

    def get(self, handoff_id: str) -> Handoff | None:
        """Return one."""
        ...

    def put(self, before: Handoff | None, after: Handoff) -> None:
        """Keep one as it is now."""
        ...

    def due(self, now_ms: int) -> list[Handoff]:
        """Return those whose deadline or lease has passed, or whose holder is known to be gone."""
        ...

    def free(self, want: Want, limit: int) -> list[Handoff]:
        """Return those that wait for such a receiver, oldest first; of each priority no more than `limit` are needed."""
        ...

    def listen(self, node_id: str, lanes: tuple[str, ...]) -> None:
        """Note what a node wants to hear."""
        ...


def perform(shelf: Shelf, step: Step) -> Sequence[Record]:
    """Do one step and return what is to be written to the journal with it."""
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
    """Do the steps among the records; return the records with what the steps add in their place, and what was touched."""
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
