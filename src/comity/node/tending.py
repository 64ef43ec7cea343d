"""Periodic work of a running node: deactivate idle agents, save sessions, resume calls of dead nodes, watch its files."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from comity.core.units import MS_PER_S
from comity.engines.cipher import key_file
from comity.engines.sqlite.files import database_files
from comity.engines.sqlite.journal import SqliteJournal
from comity.engines.sqlite.spans.path import spans_path
from comity.errors import UnavailableError
from comity.ports import Journal
from comity.runtime.call.path import CallPath
from comity.runtime.call.resume import take_over

log = logging.getLogger("comity")

# How often a node looks for idle agents and for open calls of dead nodes.
SWEEP_S_MAX: Final = 5.0
HOLDUP_S: Final = 5.0  # how long the writer may have one batch before the node logs a warning
SAVED_AT_ONCE: Final = 8  # sessions per step; each takes up to a few milliseconds
SAVING_S: Final = 0.005  # pause between two steps


class Tending:
    """Runs the periodic work of a node."""

    def __init__(self, path: CallPath, journal: Journal, sweep_workflows: Callable[[], None]) -> None:
        self._path = path
        self._sweep_workflows = sweep_workflows
        self._journal = journal
        self._sweeping: asyncio.TimerHandle | None = None  # the next time, from when it has begun
        self._saving: asyncio.TimerHandle | None = None  # while sessions are left to be saved
        self._is_held_up = False  # the store could not be written when the node last looked

    def begin(self) -> None:
        """Start the periodic work, now and repeatedly until `stop`."""
        self.sweep()

    def stop(self) -> None:
        """Stop the periodic work."""
        for timer in (self._sweeping, self._saving):
            if timer is not None:
                timer.cancel()

    def take_over(self) -> None:
        """Resume open calls of dead nodes. In a cluster, leases decide which node does so."""
        path = self._path
        # A node without agents could only end calls that another node can resume.
        if path.placement.takes_over and len(path.registry) and self._journal.failure is None:
            take_over(path, self._journal)

    def sweep(self) -> None:
        """Deactivate idle agents, save sessions, resume open calls, and schedule the next sweep."""
        shortest = min((agent.idle_ms for agent in self._path.registry), default=int(SWEEP_S_MAX * MS_PER_S))
        delay = min(max(shortest / 2000, 0.05), SWEEP_S_MAX)
        self._sweeping = self._path.loop.call_later(delay, self.sweep)  # first: an exception below must not stop the sweeps
        self._path.activations.put_away_idle()
        self._tell_holdup()
        if self._saving is None:
            self.save_sessions()
        with contextlib.suppress(UnavailableError):  # an unreadable store is tried again next time
            self.take_over()
            self._sweep_workflows()

    def _tell_holdup(self) -> None:
        """Log, once per holdup, that the store cannot be written at the moment."""
        journal, was_held_up = self._journal, self._is_held_up
        self._is_held_up = isinstance(journal, SqliteJournal) and journal.under_way_s >= HOLDUP_S
        if isinstance(journal, SqliteJournal) and self._is_held_up and not was_held_up:
            others = ", ".join(journal.members.process_of(one) for one in journal.members.others())
            cause = f"process {others}, if it is stopped within a commit, or for the disk" if others else "the disk"
            log.warning(
                "the store %s has not been written for %.0f s: calls wait for %s", journal.path, journal.under_way_s, cause
            )

    def save_sessions(self) -> None:
        """Save a few sessions, and the others after a pause, in which calls run."""
        self._saving = None
        with contextlib.suppress(UnavailableError):  # as above
            if self._path.sessions.save_ended(SAVED_AT_ONCE):
                self._saving = self._path.loop.call_later(SAVING_S, self.save_sessions)


def watch_files(journal: Journal, store: Path | None) -> Callable[[], None]:
    """Let the journal watch the files of spans and key; return a function that ends that.

    Spans are closed before the journal, and closing removes their WAL.
    """
    if not isinstance(journal, SqliteJournal) or store is None:
        return _nothing
    key = key_file(store)
    journal.watch(*database_files(spans_path(store)), *(() if key is None else (key,)))
    return journal.unwatch


def _nothing() -> None:
    """Undo nothing."""
