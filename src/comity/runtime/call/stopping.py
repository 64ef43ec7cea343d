"""Stopping the code of calls that have ended.

Code is cancelled with its call and may clean up. Code that ignores the cancellation cannot be stopped: after a grace period it
is named in the log and in the audit, and its concurrency slot goes to the next call. The grace period is shorter if a call
queued at that agent would time out first. `node.strays` lists such code until it ends, and its `ctx` refuses everything. A
function in a thread cannot be cancelled and keeps its slot: else one agent could fill all threads of the node.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from comity.core.call.machine import SETTLED
from comity.core.journal.records import RUNS_ON, Noted
from comity.core.units import MS_PER_S, NS_PER_MS
from comity.ports import Clock, Journal
from comity.runtime.agent.activations import Activations
from comity.runtime.call.call import Call

log = logging.getLogger("comity")

SEAT_GRACE_S: Final = 1.0  # how long cancelled code keeps its slot at its agent
PRESSED_GRACE_S: Final = 0.2  # the same, if a queued call would time out within `SEAT_GRACE_S`


class Stray(Struct, frozen=True):
    """A call that has ended while its code still runs, without a slot at its agent."""

    request_id: str
    target: str
    capability: str
    noticed_at: int  # epoch milliseconds


class Stopping:
    """Cancels code, and takes its slot back if it does not stop."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        activations: Activations[Call],
        is_in_thread: Callable[[Call], bool],
    ) -> None:
        self._journal = journal
        self._clock = clock
        self._loop = loop
        self._activations = activations
        self._is_in_thread = is_in_thread
        self._cancelled: deque[tuple[float, Call]] = deque()  # each with the loop's time of its cancellation
        self._timer: asyncio.TimerHandle | None = None

    def stop(self, call: Call) -> None:
        """Cancel the code of a call."""
        if call.task is None:  # nothing runs
            return
        call.task.cancel()
        self._cancelled.append((self._loop.time(), call))
        if self._timer is None:
            self._timer = self._loop.call_later(min(PRESSED_GRACE_S, SEAT_GRACE_S), self._look)

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._timer = None
        now_s = self._loop.time()
        stuck = []
        cancelled, self._cancelled = self._cancelled, deque()
        for since_s, call in cancelled:
            if call.task is None or call not in call.seat.holders:
                continue  # it has stopped
            left_s = since_s + SEAT_GRACE_S - now_s
            if left_s <= 0 or (now_s - since_s >= PRESSED_GRACE_S and self._is_pressed(call, left_s)):
                stuck.append(call)
            else:
                self._cancelled.append((since_s, call))
        if self._cancelled:
            left_s = self._cancelled[0][0] + SEAT_GRACE_S - now_s
            self._timer = self._loop.call_later(min(PRESSED_GRACE_S, left_s), self._look)
        for call in stuck:  # last: it starts other calls
            self._report(call)

    def _is_pressed(self, call: Call, left_s: float) -> bool:
        """Return whether a call queued at this call's agent has its deadline within the next `left_s`."""
        ends_at = self._clock.now_ns() // NS_PER_MS + left_s * MS_PER_S
        return call.seat.is_full and any(one.request.deadline_at <= ends_at for one in call.seat.mailbox)

    def _report(self, call: Call) -> None:
        if call.state is SETTLED:  # a paused call may run again by now
            self._journal.append((Noted(call.request, RUNS_ON, self._clock.now_ns() // NS_PER_MS),), None, call.held)
        if self._is_in_thread(call):  # the watchdog has named it
            return
        log.warning(
            "%s still runs after its call ended: it does not heed its cancellation. Its place goes to the next call",
            described(call),
        )
        self._activations.take_back(call)


def described(call: Call) -> str:
    """Return agent, capability and request id of a call, for log messages."""
    request = call.request
    return f"{request.target} {request.capability} (request {request.request_id})"
