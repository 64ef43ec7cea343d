"""The handoff queue of a journal: reads, notifications, and the in-memory variant.

Steps go through the journal, so that a change and its audit row are one transaction.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path
from typing import Any

from comity.core.agent.mailbox import TURNS
from comity.core.call.limits import SETTLED_KEPT_MAX
from comity.core.envelope.envelope import Request
from comity.core.handoff.holder import is_process, node_of
from comity.core.handoff.machine import Handoff, State
from comity.core.handoff.queue import Step, Sweep, Want, perform
from comity.core.journal.records import Record
from comity.core.journal.retention import Keep, is_doomed
from comity.core.reading.page import ROWS_DEFAULT
from comity.engines.sqlite import handoff_rows as handoff_tables
from comity.engines.sqlite import wakeups as bells
from comity.engines.sqlite.wakeups import Bell, Heard, Ringer, Rings, rings_of

_Connection = AbstractContextManager[sqlite3.Connection]


class SqliteHandoffs:
    """The queue in a store file."""

    def __init__(
        self,
        store: Path,
        node_id: str,
        reading: Callable[[], _Connection],
        writing: Callable[[], _Connection],
        is_alive: Callable[[str], bool],
    ) -> None:
        self._store = store
        self._node_id = node_id
        self._reading = reading
        self._writing = writing
        self._is_alive = is_alive
        self._ringer = Ringer(store)  # used by the writer's thread only
        self._memory = handoff_tables.Memory()  # used by the writer's thread only
        self._gone: set[str] = set()
        self._heard: Heard | None = None
        self._bell: Bell | None = None

    # --- opening and closing, in the event loop ---

    def open(self, heard: Heard) -> None:
        """Create the queue's tables if they are missing, and subscribe `heard` to notifications."""
        with self._reading(), self._writing() as connection:
            handoff_tables.prepare(connection)
        self.look_for_the_dead()
        bells.clear(self._store)
        self._heard = heard
        self._bell = Bell(bells.bell_path(self._store, self._node_id), heard)

    def close(self) -> None:
        """Hear no more."""
        if self._bell is not None:
            self._bell.close()
            self._bell = self._heard = None

    def look_for_the_dead(self) -> None:
        """Find dead nodes among those that hold handoffs or subscribe to lanes."""
        with self._reading() as connection:
            holders = connection.execute("SELECT DISTINCT holder FROM handoffs WHERE due_at IS NOT NULL").fetchall()
            listeners = connection.execute("SELECT node_id FROM handoff_bells").fetchall()
        nodes = {node_of(one) for (one,) in (*holders, *listeners)} - {self._node_id}
        self._gone |= {node_id for node_id in nodes if is_process(node_id) and not self._is_alive(node_id)}

    def hear(self, topics: set[str] | None) -> None:
        """Notify this node of its own changes; with None, let it read everything, as after a node's death."""
        if self._heard is not None:
            self._heard(topics)

    # --- in the writer's thread ---

    def perform(self, connection: sqlite3.Connection, records: Sequence[Any]) -> tuple[list[Any], Rings]:
        """Apply the steps among the records, within their transaction."""
        gone = tuple(self._gone) if self._gone and sweeps(records) else ()
        written, rings = handoff_tables.perform_steps(connection, records, gone, self._memory)
        self._gone.difference_update(gone)
        return written, rings

    def ring(self, rings: Rings) -> bool:
        """Notify other nodes of a committed transaction; return whether one of them was found dead."""
        gone = self._ringer.ring(rings)
        self._gone.update(gone)
        return bool(gone)

    def silence(self) -> None:
        """Stop notifying other nodes."""
        self._ringer.close()

    # --- reading ---

    @property
    def knows_of_the_dead(self) -> bool:
        """Whether nodes were found dead whose handoffs no node has released yet."""
        return bool(self._gone)

    def get(self, handoff_id: str) -> Handoff | None:
        """Return a handoff."""
        with self._reading() as connection:
            return handoff_tables.get(connection, handoff_id)

    def get_again(self, handoffs: Collection[Handoff]) -> list[Handoff]:
        """Return those of these that there still are as they stand now."""
        with self._reading() as connection:
            return handoff_tables.read_again(connection, handoffs)

    def by_trace(self, trace_id: str) -> list[Handoff]:
        """Return the handoffs that belong to a trace, or whose result was recorded in it."""
        with self._reading() as connection:
            return handoff_tables.read_trace(connection, trace_id)

    def find(
        self, *, states: Collection[State] = tuple(State), lane: str | None = None, limit: int = ROWS_DEFAULT
    ) -> list[Handoff]:
        """Return handoffs, newest first."""
        marks = ",".join("?" * len(states))
        where, values = (" AND lane = ?", (lane,)) if lane is not None else ("", ())
        return self._read(f"WHERE state IN ({marks}){where} ORDER BY seq DESC LIMIT ?", *states, *values, limit)

    def count_free(self, lane: str) -> int:
        """Return how many wait in a lane."""
        query = "SELECT count(*) FROM handoffs WHERE state = 'pending' AND holder = '' AND lane = ?"
        with self._reading() as connection:
            (count,) = connection.execute(query, (lane,)).fetchone()
        return int(count)

    def next_due(self) -> int | None:
        """Return when a node has to look at the queue, unless something happens before."""
        with self._reading() as connection:
            (due_at,) = connection.execute("SELECT min(due_at) FROM handoffs WHERE due_at IS NOT NULL").fetchone()
        return None if due_at is None else int(due_at)

    def _read(self, rest: str, *values: object) -> list[Handoff]:
        with self._reading() as connection:
            return handoff_tables.read(connection, rest, values)


def sweeps(records: Sequence[object]) -> bool:
    """Return whether a step among the records releases the handoffs of dead nodes, which may be forgotten then."""
    return any(isinstance(one, Step) and isinstance(one.change, Sweep) for one in records)


class MemoryHandoffs:
    """The queue of a node without a store."""

    def __init__(self) -> None:
        self._shelf: dict[str, Handoff] = {}
        self._ended: deque[str] = deque()  # oldest first; only the newest are kept
        self._listeners: dict[str, tuple[str, ...]] = {}
        self._heard: list[Heard] = []  # one for each node of this process

    def open(self, heard: Heard) -> None:
        """Begin to hear."""
        self._heard.append(heard)

    def close(self) -> None:
        """Hear no more."""
        self._heard.clear()

    def leave(self, heard: Heard) -> None:
        """Unsubscribe one of several nodes."""
        self._heard.remove(heard)

    knows_of_the_dead = False  # nothing outlives the process

    def look_for_the_dead(self) -> None:
        """Do nothing: no node outlives the process."""

    def perform(self, step: Step) -> Sequence[Record]:
        """Apply a step; subscribers are notified in a later turn of the loop."""
        records = perform(self, step)
        if step.touched and self._heard:
            for topics in rings_of(step.touched, self._listeners).values():
                asyncio.get_running_loop().call_soon(self._hear, topics)
        return records

    def _hear(self, topics: set[str]) -> None:
        for heard in tuple(self._heard):
            heard(topics)

    def erase(self, tenant_id: str, session_id: str) -> list[str]:
        """Forget the handoffs of a session and return their ids."""
        of_session = [
            one.id for one in self._shelf.values() if (one.request.tenant_id, one.request.session_id) == (tenant_id, session_id)
        ]
        for handoff_id in of_session:
            del self._shelf[handoff_id]
        return of_session

    def requests(self) -> list[Request]:
        """Return the requests of all handoffs."""
        return [one.request for one in self._shelf.values()]

    def prune(self, keep: Keep, needed: Collection[str], now_ms: int) -> list[tuple[str, str]]:
        """Drop ended handoffs past their retention unless their tree is in progress; return tenants and ids."""
        surplus = 0 if keep.count is None else len(self._shelf) - keep.count
        ended = [one for one in self._shelf.values() if one.has_ended and one.request.root_id not in needed]
        gone = [one for number, one in enumerate(ended) if is_doomed(keep, one.changed_at, number < surplus, now_ms)]
        for one in gone:
            del self._shelf[one.id]
        return [(one.request.tenant_id, one.id) for one in gone]

    # --- the shelf ---

    def get(self, handoff_id: str) -> Handoff | None:
        """Return a handoff."""
        return self._shelf.get(handoff_id)

    def put(self, before: Handoff | None, after: Handoff) -> None:  # noqa: ARG002  the shelf's contract
        """Keep one as it is now."""
        self._shelf[after.id] = after
        if after.has_ended:
            self._ended.append(after.id)
            if len(self._ended) > SETTLED_KEPT_MAX:
                self._shelf.pop(self._ended.popleft(), None)

    def due(self, now_ms: int) -> list[Handoff]:
        """Return those whose time has come."""
        found = [one for one in self._shelf.values() if one.due_at is not None and one.due_at <= now_ms]
        return sorted(found, key=lambda one: one.due_at or 0)

    def free(self, want: Want, limit: int) -> list[Handoff]:
        """Return the handoffs that wait for such a receiver, at most `limit` of each priority, oldest first."""
        free = [one for one in self._shelf.values() if one.is_free and want.matches(one)]
        return [one for priority in TURNS for one in islice((one for one in free if one.request.priority is priority), limit)]

    def listen(self, node_id: str, lanes: tuple[str, ...]) -> None:
        """Note what a node wants to hear."""
        if lanes:
            self._listeners[node_id] = lanes
        else:
            self._listeners.pop(node_id, None)

    # --- reading ---

    def get_again(self, handoffs: Collection[Handoff]) -> list[Handoff]:
        """Return those of these that there still are as they stand now."""
        return [self._shelf[one.id] for one in handoffs if one.id in self._shelf]

    def by_trace(self, trace_id: str) -> list[Handoff]:
        """Return the handoffs that belong to a trace, or whose result was recorded in it."""
        return [one for one in self._shelf.values() if one.result_trace_id == trace_id]

    def find(
        self, *, states: Collection[State] = tuple(State), lane: str | None = None, limit: int = ROWS_DEFAULT
    ) -> list[Handoff]:
        """Return handoffs, newest first."""
        newest = reversed(self._shelf.values())
        return list(islice((one for one in newest if one.state in states and lane in {None, one.lane}), limit))

    def count_free(self, lane: str) -> int:
        """Return how many wait in a lane."""
        return sum(one.is_free and one.lane == lane for one in self._shelf.values())

    def next_due(self) -> int | None:
        """Return when a node has to look at the queue, unless something happens before."""
        return min((one.due_at for one in self._shelf.values() if one.due_at is not None), default=None)
