"""Notices code that blocks the event loop, and says whose it is.

A timer in the loop leaves a mark while calls are under way; a thread looks whether the mark is old. When it is, the task the
loop is stuck in names the call to blame, and its stack the line of code. With no calls under way both are parked. Nothing can
interrupt such code: until it awaits something, no other agent runs and no deadline of this node comes.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from comity.core.agent.running import LOOP, THREAD, RunIn
from comity.runtime.agent.threads import Job
from comity.runtime.call.call import Call

log = logging.getLogger("comity")

LAGS_KEPT_MAX: Final = 100
LINES_TOLD: Final = 4
AGAIN_AFTER: Final = 10  # code that goes on blocking is named again after this many times as long


class Lag(Struct, frozen=True):
    """One time a call blocked the loop, or a thread after its end, and for how long when that was noticed."""

    request_id: str
    target: str
    capability: str
    blocked_ms: float
    where: RunIn = LOOP


class Watchdog:
    """Watches one event loop."""

    def __init__(self, calls: Mapping[str, Call], *, threshold_ms: int) -> None:
        self.lags: deque[Lag] = deque(maxlen=LAGS_KEPT_MAX)
        self.is_parked = True
        self._calls = calls
        self._threshold_s = threshold_ms / 1000
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._beat = time.monotonic()
        self._awake = threading.Event()
        self._closed = threading.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Begin to watch: a call has come."""
        self.is_parked = False
        if self._thread is None:
            self._thread = threading.Thread(target=self._look, name="comity-watchdog", daemon=True)
            self._thread.start()
        self._mark()
        self._awake.set()

    def close(self) -> None:
        """Stop watching for good."""
        self._closed.set()
        if self._timer is not None:
            self._timer.cancel()
        self._awake.set()
        if self._thread is not None:
            self._thread.join()

    def left_behind(self, job: Job) -> None:
        """Report a function that still runs in its thread a while after its call has ended."""
        self._loop.call_later(self._threshold_s, self._look_at, job)

    def _look_at(self, job: Job) -> None:
        if job.has_returned:
            return
        request, late_ms = job.call.request, self._threshold_s * 1000
        self.lags.append(Lag(request.request_id, request.target, request.capability, late_ms, THREAD))
        log.warning(
            "%s still runs %.0f ms after its call ended; it keeps its thread until it returns. Let it use ctx, or look at"
            ' ctx.left_ms, now and then; declared with run_in="process" it would be killed',
            job.described,
            late_ms,
        )

    def _mark(self) -> None:
        self._beat = time.monotonic()
        if self._calls:
            self._timer = self._loop.call_later(self._threshold_s / 4, self._mark)
        else:
            self.is_parked = True
            self._awake.clear()

    def _look(self) -> None:
        seen, due_s = 0.0, self._threshold_s
        while True:
            self._awake.wait()
            if self._closed.wait(self._threshold_s / 2):  # and not a sleep: a node that closes waits for this thread
                return
            beat = self._beat
            if beat != seen:
                seen, due_s = beat, self._threshold_s
            blocked_s = time.monotonic() - beat
            if blocked_s > due_s and not self.is_parked:
                self._report(blocked_s, is_first=due_s == self._threshold_s)
                due_s *= AGAIN_AFTER

    def _report(self, blocked_s: float, *, is_first: bool) -> None:
        task = asyncio.current_task(self._loop)
        call = self._calls.get(task.get_name()) if task is not None else None
        name = "something" if task is None else task.get_name()  # of a task that an agent began itself its code says more
        if call is not None:
            request = call.request
            name = f"{request.target} {request.capability}"
            if is_first:
                self.lags.append(Lag(request.request_id, request.target, request.capability, blocked_s * 1000))
        log.warning(
            "%s has blocked the event loop for %.0f ms, at %s; every other agent waits. Make what blocks a plain function,"
            ' which runs in a thread, or declare run_in="process"',
            name,
            blocked_s * 1000,
            self._place(),
        )

    def _place(self) -> str:
        """Return the line of code that the loop's thread is at, and those that led there, the newest first."""
        frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001  there is no other way to ask
        lines: list[str] = []
        while frame is not None and len(lines) < LINES_TOLD:
            lines.append(f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}")
            frame = frame.f_back
        return ", from ".join(lines)
