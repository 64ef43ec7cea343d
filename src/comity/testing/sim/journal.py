"""A faulty journal on a simulated disk: what the memory engine keeps, behind a cache that a crash empties.

`Disk` is what survives; all nodes of a simulation share it. `SimJournal` is one process's way to it and behaves as the embedded
store does: it gathers, writes in batches, reports once, reads what has been written, and stops for good at the first failed
write.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from comity.core.envelope.envelope import Request
from comity.core.handoff.queue import Step
from comity.core.journal.audit import Pseudonyms, Row, Tell, Verdict
from comity.core.journal.records import (
    HANDED_AT,
    Accepted,
    Document,
    Paused,
    Record,
    Resumed,
    Saved,
    Settled,
    StoredCall,
    StoredSession,
    below,
    stored,
    with_unwritten,
)
from comity.core.journal.retention import Retention, Sweep
from comity.core.journal.terms import Terms, breach, taken
from comity.engines.memory.journal import MemoryJournal
from comity.errors import CallChangedError, ComityError, RefusedError, StaleLeaseError, UnavailableError
from comity.ports import Then
from comity.testing.sim.faults import Kind
from comity.testing.sim.handoffs import DiskHandoffs, SimHandoffs
from comity.testing.sim.loop import Killed, Life
from comity.testing.sim.scene import Scene
from comity.testing.sim.witness import Witness

# How long records are gathered, and how long a healthy disk takes to write them.
GATHER_S: Final = 0.001
FLUSH_S: Final = 0.02
WRITE_S_MAX: Final = 0.002
SLOW_S_MAX: Final = 3.0


class _Append(NamedTuple):
    records: tuple[Record | Step, ...]
    then: Then | None
    terms: Terms | None


class Disk(MemoryJournal):
    """What has been written, by all nodes."""

    handoffs: DiskHandoffs

    def __init__(self) -> None:
        super().__init__("disk")
        self.handoffs = DiskHandoffs()
        self.nodes: dict[str, None] = {}  # that have the store open
        self._writer = ""  # the node that writes now
        self._ended_by: dict[str, str] = {}  # request id to node

    def write(
        self, records: Sequence[Record], terms: Terms | None, node_id: str
    ) -> tuple[Sequence[Record], ComityError | None]:
        """Take what one append of a node brought, if its terms hold; return what was taken, or why nothing was."""
        if terms is not None:
            refusal = breach(terms, self._is_open, self.begun, self.load)
            if refusal is not None:
                return (), refusal
            records = taken(records, terms, self._is_open, self._below(terms.ends))
        self._writer = node_id
        self.append(records)
        return records, None

    def _settle(self, record: Settled) -> None:
        self._ended_by.setdefault(record.request.request_id, self._writer)
        super()._settle(record)

    def _stored(self, record: Accepted | Settled | Paused | Resumed) -> StoredCall:
        found = super()._stored(record)
        return (
            found if type(record) is not Settled else replace(found, node_id=record.node_id or self._ended_by[found.request_id])
        )

    def knows(self, request_id: str) -> bool:
        """Whether a call was ever accepted, as far as the disk knows."""
        return request_id in self._open or request_id in self._settled

    def take_over(self, node_id: str) -> list[StoredCall]:
        """Give the open calls of nodes that are gone to another, oldest first."""
        alive = {*self.nodes, HANDED_AT}
        gone = [one for one in self._open.values() if not isinstance(one, Paused) and one.node_id not in alive]
        for one in gone:
            self._open[one.request.request_id] = Resumed(one.request, node_id, one.at_ms)
        return sorted((stored(one, node_id) for one in gone), key=lambda call: call.created_at)


class SimJournal:
    """One process's way to the disk."""

    def __init__(self, world: Scene, disk: Disk, witness: Witness, life: Life, *, is_clustered: bool = False) -> None:
        self.node_id = f"{life}"
        self.failure: UnavailableError | None = None
        self._world = world
        self._disk = disk
        self._witness = witness
        self._life = life
        self._chance = world.stream(f"disk {life}")
        self._gathered: list[_Append] = []
        self._in_writing: list[_Append] = []
        self._is_armed = False
        self._is_clustered = is_clustered
        self.handoffs = SimHandoffs(
            world, disk.handoffs, life, self._chance, node_id=self.node_id, alive=disk.nodes, read=self.read
        )

    forgot: Callable[[Sequence[str]], None] | None = None

    @property
    def names(self) -> Pseudonyms:
        """How names stand in the audit."""
        return self._disk.names

    @names.setter
    def names(self, names: Pseudonyms) -> None:
        self._disk.names = names

    @property
    def is_idle(self) -> bool:
        """Whether everything that was appended is on the disk."""
        return not self._gathered and not self._in_writing

    @property
    def is_awaited(self) -> bool:
        """Whether a caller waits until something that was appended is on the disk."""
        return any(one.then is not None for one in (*self._in_writing, *self._gathered))

    def open(self) -> None:
        """Take part; fails as a store that cannot be read does."""
        self.read("open")
        self._disk.nodes[self.node_id] = None

    async def close(self) -> None:
        """Write what is left and leave."""
        self._write_now([*self._in_writing, *self._gathered], None)
        self._in_writing, self._gathered = [], []
        self.failure = self.failure or _unavailable("the store is closed")
        self._disk.nodes.pop(self.node_id, None)

    # --- writing ---

    def append(self, records: Sequence[Record | Step], then: Then | None = None, terms: Terms | None = None) -> None:
        """Gather records; they are written together or not at all."""
        if self._life.is_dead:
            return  # the process that unwinds here is gone already
        if self.failure is not None:
            if then is not None:
                then(self.failure)
            return
        world = self._world
        if records and (chance := world.strikes(Kind.NODE_CRASH_IN_WRITE, self._life.name)) is not None:
            if chance.random() < 0.5:  # it had got as far as that
                self._gathered.append(_Append(tuple(records), None, terms))
            self.cut()
        world.appends += 1
        if world.appends == world.cut_at_append:
            self.cut()
        self._gathered.append(_Append(tuple(records), then, terms))
        if then is not None:
            self._arm(GATHER_S)
        elif not self._is_armed:
            self._arm(FLUSH_S)
        world.worked(self._life)

    def cut(self) -> None:
        """Let the process die in the middle of what it does."""
        self._world.crash(self._life)
        raise Killed

    def _arm(self, delay_s: float) -> None:
        if not self._in_writing and not (self._is_armed and delay_s == FLUSH_S):
            self._is_armed = True
            self._world.loop.call_later(delay_s * self._chance.random(), self._hand_over)

    def _hand_over(self) -> None:
        if self._in_writing or not self._gathered:
            return
        self._is_armed = False
        self._in_writing, self._gathered = self._gathered, []
        latency_s = WRITE_S_MAX * self._chance.random()
        if (chance := self._world.strikes(Kind.STORE_SLOW, self._life.name)) is not None:
            latency_s += SLOW_S_MAX * chance.random()
        self._world.loop.call_later(latency_s, self._written)

    def _written(self) -> None:
        batch, self._in_writing = self._in_writing, []
        error = None
        for kind, why in ((Kind.STORE_WRITE_FAILED, "input/output error"), (Kind.STORE_FULL, "no space left on device")):
            if self._world.strikes(kind, self._life.name) is not None:
                error = error or write_failed(why)
        if error is None:
            outcomes: Sequence[Exception | None] = self._write_now(batch, None)
        else:
            self.failure = error
            batch += self._gathered
            self._gathered = []
            outcomes = [error] * len(batch)
        for one, outcome in zip(batch, outcomes, strict=True):
            if one.then is not None:
                one.then(outcome)
        if self._gathered and not self._in_writing:
            self._arm(GATHER_S)

    def _write_now(self, appends: Sequence[_Append], chance: random.Random | None) -> list[Exception | None]:
        """Put appends on the disk and say what became of each; a crash may have kept only the first of them."""
        outcomes: list[Exception | None] = []
        for one in appends[: len(appends) if chance is None else chance.randrange(len(appends))]:
            steps = [record for record in one.records if type(record) is Step]
            records, rings = self.handoffs.do(one.records) if steps else (one.records, {})
            written, refusal = self._disk.write(records, one.terms, self.node_id)  # type: ignore[arg-type]  # no steps any more
            outcomes.append(refusal)
            if type(refusal) is StaleLeaseError:
                self._world.reached("zombie refused")
            elif type(refusal) is CallChangedError and _is_of(one.records, refusal.facts["request_id"]):
                self._world.reached("duplicate refused")
            elif type(refusal) is RefusedError:
                self._world.reached("budget refused by the store")
            if written:
                self._witness.committed(self._life, written)
            if steps:
                self._witness.handed(self._life, steps)
            if rings and not self._life.is_dead:  # a process that dies rings no other
                self.handoffs.ring(rings)
        return outcomes

    def crashed(self) -> None:
        """The process is gone: decide what had reached the disk."""
        self._disk.nodes.pop(self.node_id, None)
        self.handoffs.close()
        unwritten = [one for one in (*self._in_writing, *self._gathered) if one.records]
        self._in_writing, self._gathered = [], []
        if not unwritten:
            return
        world, name = self._world, self._life.name
        if world.strikes(Kind.STORE_UNFLUSHED_LOST, name) is not None:
            world.reached("unflushed writes lost")
        elif (chance := world.strikes(Kind.STORE_TORN_TAIL, name)) is not None:
            # What is left of the last append has no seal, so the next reader of the disk drops it.
            world.reached("torn tail")
            self._write_now(unwritten, chance)
        elif (chance := world.strikes(Kind.STORE_PARTIAL_WRITE, name)) is not None:
            world.reached("partial write")
            self._write_now(unwritten, chance)
        else:
            self._write_now(unwritten, None)

    # --- reading ---

    def call(self, request_id: str) -> StoredCall | None:
        """Return a call as it was last written."""
        self.read("call")
        return self._disk.call(request_id)

    def calls(self, *, limit: int) -> list[StoredCall]:
        """Return calls by users, newest first."""
        self.read("calls")
        return self._disk.calls(limit=limit)

    def abandoned(self) -> list[StoredCall]:
        """Return open calls whose node is gone, and make them this node's own."""
        self.read("abandoned")
        if self._is_clustered:  # no node can tell here which nodes are gone; leases do
            return []
        taken = self._disk.take_over(self.node_id)
        if taken:
            self._world.reached("calls of a dead node taken up")
        return taken

    def take_paused(self, root_id: str) -> list[StoredCall]:
        """Return the open calls of a paused tree and make them this node's own."""
        self.read("take_paused")
        return self._disk.take_paused(root_id, self.node_id)

    def begun(self, request: Request) -> int:
        """Return how many calls below this one were accepted."""
        self.read("begun")
        return self._disk.begun(request)

    def open_roots(self) -> list[StoredCall]:
        """Return the open calls by users, whichever node runs them."""
        self.read("open_roots")
        return self._disk.open_roots()

    def load(self, kind: Document, key: str) -> tuple[int, bytes] | None:
        """Return version and data of a document, written or on its way."""
        self.read("load")
        newest = self._disk.load(kind, key)
        for one in (*self._in_writing, *self._gathered):
            for record in one.records:
                if type(record) is Saved and (record.kind, record.key) == (kind, key):
                    newest = max(newest or (0, b""), (record.version, record.data), key=lambda one: one[0])
        return newest

    def load_written(self, kind: Document, key: str) -> tuple[int, bytes] | None:
        """Return version and data of a document as it is on the disk."""
        self.read("load")
        return self._disk.load(kind, key)

    def load_session(self, key: str, *, is_written: bool = False) -> StoredSession | None:
        """Return a session, with what is on its way unless it is asked for as it is on the disk."""
        self.read("load")
        on_its_way = () if is_written else (*self._in_writing, *self._gathered)
        saved = [record for one in on_its_way for record in one.records if type(record) is Saved]
        return with_unwritten(self._disk.load_session(key), key, saved)

    def list_documents(self, kind: Document, limit: int | None = None) -> list[tuple[str, bytes]]:
        """Return the documents of a kind with their keys, in order of keys, at most `limit`."""
        self.read("list_documents")
        keys = {key: None for key, _ in self._disk.list_documents(kind)}
        for one in (*self._in_writing, *self._gathered):
            keys |= {record.key: None for record in one.records if type(record) is Saved and record.kind is kind}
        found = ((key, self.load(kind, key)) for key in sorted(keys)[:limit])
        return [(key, newest[1]) for key, newest in found if newest is not None]

    def documents_below(self, kind: Document, key: str) -> list[tuple[str, bytes]]:
        """Return the documents of a kind that belong to the one under a key, in order of keys."""
        self.read("documents_below")
        found = dict(self._disk.documents_below(kind, key))
        for one in (*self._in_writing, *self._gathered):
            for record in one.records:
                if type(record) is Saved and record.kind is kind and record.key.startswith(below(key)):
                    found[record.key] = record.data
        return sorted(found.items())

    def erase(self, tenant_id: str, session_id: str) -> int:
        """Remove a session for good."""
        self._witness.erased(tenant_id, session_id)
        return self._disk.erase(tenant_id, session_id)

    def remove(self, kind: Document, key: str) -> bool:
        """Remove a document for good."""
        return self._disk.remove(kind, key)

    def sessions_of(self, tenant_id: str, user_id: str) -> set[str]:
        """Return the ids of the sessions of a user."""
        return self._disk.sessions_of(tenant_id, user_id)

    prunes_aside = keeps_json = False

    def prune(self, retention: Retention, now_ms: int) -> Sweep:
        """Remove what is kept no longer."""
        self.read("prune")
        return self._disk.prune(retention, now_ms)

    def rows(self, *, after_id: int = 0, limit: int | None = None, root_id: str | None = None) -> list[Row]:
        """Return audit rows in order."""
        return self._disk.rows(after_id=after_id, limit=limit, root_id=root_id)

    def verify(self, tell: Tell | None = None) -> Verdict:
        """Check the whole audit chain."""
        return self._disk.verify(tell)

    def read(self, what: str) -> None:
        """Fail as a store that cannot be read does, if that is what happens now."""
        if self._world.strikes(Kind.STORE_READ_FAILED, self._life.name) is not None:
            raise _unavailable(f"the store could not be read: {what}")


def _is_of(records: Sequence[Record | Step], request_id: str) -> bool:
    """Whether records are about a call itself: it was opened or ended before."""
    return any(type(one) in (Accepted, Settled) and one.request.request_id == request_id for one in records)  # type: ignore[union-attr]


def _unavailable(message: str) -> UnavailableError:
    return UnavailableError(message, code="STORE_UNAVAILABLE")


def write_failed(why: str) -> UnavailableError:
    """Return what ends a journal for good."""
    return UnavailableError(f"the store could not be written: {why}", code="STORE_UNAVAILABLE", retryable=False)
