"""Detects code that blocks the event loop, and names its call.

While calls are in progress, a timer in the loop sets a timestamp and a thread checks its age. If it is too old, the loop's
current task names the call, and its stack the line of code. Without calls both are parked. Such code cannot be interrupted:
until it awaits, no other agent runs and no deadline of this node fires.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import sysconfig
import threading
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Final

from msgspec import Struct

from comity.core.agent.running import LOOP, THREAD, RunIn
from comity.core.units import MS_PER_S
from comity.runtime.agent.threads import Job
from comity.runtime.call.call import Call

log = logging.getLogger("comity")

OWN: Final = f"{Path(__file__).parents[2]}{os.sep}"
LIBRARIES: Final = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), "<frozen ")
# Where agents' code is called: what runs below these, in a library or not, is an agent's.
RUNS_AGENTS: Final = frozenset(
    (str(Path("runtime", "call", "run.py")), name) for name in ("_work", "_go_on", "_run_handed", "_invoke", "_plain", "run")
)
LAGS_KEPT_MAX: Final = 100
LINES_TOLD: Final = 4
AGAIN_AFTER: Final = 10  # code that keeps blocking is reported again after this many times the first duration


class Lag(Struct, frozen=True):
    """One report: a call blocked the loop, or a thread after its end, for this long so far."""

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
        self._threshold_s = threshold_ms / MS_PER_S
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._beat = time.monotonic()
        self._awake = threading.Event()
        self._closed = threading.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Start watching: a call has started."""
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
        request, late_ms = job.call.request, self._threshold_s * MS_PER_S
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
            if self._closed.wait(self._threshold_s / 2):  # not `sleep`: closing must not wait for it
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
        name = "something" if task is None else task.get_name()  # a task that the agent started has its own name
        if call is not None:
            request = call.request
            name = f"{request.target} {request.capability}"
            if is_first:
                self.lags.append(Lag(request.request_id, request.target, request.capability, blocked_s * MS_PER_S))
        frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001  there is no other way to ask
        if is_own_work(frame):  # a pattern compiled at its first use, a module imported: no agent can do anything about it
            log.info("Comity has blocked the event loop for %.0f ms for %s, at %s", blocked_s * MS_PER_S, name, _place(frame))
            return
        log.warning(
            "%s has blocked the event loop for %.0f ms, at %s; every other agent waits. Make what blocks a plain function,"
            ' which runs in a thread, or declare run_in="process"',
            name,
            blocked_s * MS_PER_S,
            _place(frame),
        )


def is_own_work(frame: FrameType | None) -> bool:
    """Return whether a stack of the loop is Comity's own, libraries aside: no frame of an agent or another program is in it."""
    is_own = False
    while frame is not None and frame.f_code.co_name != "_run_once":  # above it is the code that runs the loop
        file = frame.f_code.co_filename
        if file.startswith(OWN):
            if (file.removeprefix(OWN), frame.f_code.co_name) in RUNS_AGENTS:
                return is_own
            is_own = True
        elif not file.startswith(LIBRARIES):
            return False
        frame = frame.f_back
    return is_own


def _place(frame: FrameType | None) -> str:
    """Return a stack in words, innermost line first."""
    lines: list[str] = []
    while frame is not None and len(lines) < LINES_TOLD:
        lines.append(f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}")
        frame = frame.f_back
    return ", from ".join(lines)
