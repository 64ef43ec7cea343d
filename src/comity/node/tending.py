"""What a node that runs sees to by itself: idle agents, sessions to be saved, calls that other nodes left open, its files."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Final

from comity.engines.cipher import key_file
from comity.engines.sqlite.files import database_files
from comity.engines.sqlite.journal import SqliteJournal
from comity.engines.sqlite.spans.path import spans_path
from comity.errors import UnavailableError
from comity.node.hosting import Hosting
from comity.runtime.call.replay import take_over

# How often a node looks for agents that are idle, and for calls of nodes that are gone.
SWEEP_S_MAX: Final = 5.0
SAVED_AT_ONCE: Final = 8  # sessions in which calls without words have ended: each takes up to a few milliseconds
SAVING_S: Final = 0.005  # between two such


class Tending(Hosting):
    """The part of a node that works while nobody asks anything of it."""

    _sweep: asyncio.TimerHandle | None = None
    _saving: asyncio.TimerHandle | None = None

    def _watch_files(self) -> None:
        """Let the journal watch the files beside it as well: the spans, and the key if it is in a file."""
        if self._store is not None and isinstance(self._journal, SqliteJournal):
            store = Path(self._store)
            key = key_file(store)
            self._journal.watch(*database_files(spans_path(store)), *(() if key is None else (key,)))

    def _unwatch_files(self) -> None:
        """Let the journal watch its own files alone: the spans are closed before it, and their log goes."""
        if isinstance(self._journal, SqliteJournal):
            self._journal.unwatch()

    def disown(self) -> asyncio.AbstractEventLoop:
        """Accept and record nothing in this process, which is a forked child; return the loop that the parent runs in."""
        path = self._running()
        path.is_closed = True
        if isinstance(self._journal, SqliteJournal):
            message = "this process was forked from the one that opened the store, and is no node"
            self._journal.failure = UnavailableError(message, code="NODE_CLOSED")
        return path.loop

    def _resume(self) -> None:
        """Take up what an earlier life of the store left open."""
        self._take_over()

    def _take_over(self) -> None:
        """Take up what nodes that are gone left open. Where several share the work, leases say whose it is."""
        assert self._journal is not None and self._path is not None  # noqa: PT018
        # A node without agents could only give up what another may go on with.
        if self._path.cluster is None and len(self.registry) and self._journal.failure is None:
            take_over(self._path, self._journal)

    def _sweep_idle(self) -> None:
        shortest = min((agent.idle_ms for agent in self.registry), default=int(SWEEP_S_MAX * 1000))
        delay = min(max(shortest / 2000, 0.05), SWEEP_S_MAX)
        self._sweep = asyncio.get_running_loop().call_later(delay, self._sweep_idle)  # first: what fails here fails once
        self._running().activations.put_away_idle()
        if self._saving is None:
            self._save_sessions()
        with contextlib.suppress(UnavailableError):  # a store that cannot be read now may be the next time
            self._take_over()
            if self._workflows is not None:
                self._workflows.sweep()

    def _save_sessions(self) -> None:
        """Save a few sessions, and the others a little later: calls go on meanwhile."""
        self._saving = None
        with contextlib.suppress(UnavailableError):  # as above
            if self._running().sessions.save_ended(SAVED_AT_ONCE):
                self._saving = asyncio.get_running_loop().call_later(SAVING_S, self._save_sessions)

    def _stop_tending(self) -> None:
        for timer in (self._sweep, self._saving):
            if timer is not None:
                timer.cancel()
