"""Retention sweeps of a running node, in small slices with a pause after each."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from comity.core.journal.retention import Pruned, Retention, Sweep
from comity.core.units import NS_PER_MS
from comity.errors import UnavailableError
from comity.ports import Clock, Journal
from comity.runtime.call.tasks import aside
from comity.runtime.session.sessions import Sessions
from comity.runtime.tracing.recorder import Recorder

log = logging.getLogger("comity")

# How long after one sweep the next begins.
SWEEP_EVERY_S: Final = 5.0
# The pause after a slice is as long as the slice, but at least this; a sweep that is behind pauses only this long.
PAUSE_S_LEAST: Final = 0.002


class Upkeep:
    """Sweeps the journal and the spans of a node repeatedly."""

    def __init__(self, retention: Retention, journal: Journal, recorder: Recorder, sessions: Sessions, clock: Clock) -> None:
        self._retention = retention
        self._journal = journal
        self._recorder = recorder
        self._sessions = sessions
        self._clock = clock
        self.removed = Pruned()  # since the node started
        loop = asyncio.get_running_loop()
        # When the next sweep is due; a sweep that still runs then is behind.
        self._due_s = loop.time() + SWEEP_EVERY_S
        self._task = loop.create_task(self._run(), name="comity-upkeep")

    async def close(self) -> None:
        """Stop, at the latest after the current slice."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def sweep(self) -> Pruned:
        """Remove everything that is kept no longer and return how much that was."""
        now_ms = self._clock.now_ns() // NS_PER_MS
        removed = await self._drain(self._journal.prune(self._retention, now_ms), is_aside=self._journal.prunes_aside)
        if self._retention.spans.is_bounded:
            spans = self._recorder.spans.prune(self._retention.spans, now_ms)
            removed += await self._drain(spans, is_aside=self._recorder.has_store)
        return removed

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(max(self._due_s - loop.time(), PAUSE_S_LEAST))
            self._due_s = loop.time() + SWEEP_EVERY_S
            try:
                await self.sweep()
            except UnavailableError as error:  # a store that is locked or full now may not be so at the next sweep
                log.warning("what is kept no longer could not be removed: %s", error)
            except Exception:  # the task boundary: a sweep that fails must not be the last
                log.exception("what is kept no longer could not be removed")

    async def _drain(self, sweep: Sweep, *, is_aside: bool) -> Pruned:
        removed = Pruned()
        loop = asyncio.get_running_loop()
        try:
            while True:
                begun_s = loop.time()
                slice_ = await aside(next, sweep, None) if is_aside else next(sweep, None)
                if slice_ is None:
                    return removed
                if slice_.session_keys:
                    self._sessions.pruned(slice_.session_keys)
                removed += slice_
                self.removed += slice_
                now_s = loop.time()
                await asyncio.sleep(PAUSE_S_LEAST if now_s > self._due_s else max(now_s - begun_s, PAUSE_S_LEAST))
        finally:
            sweep.close()
