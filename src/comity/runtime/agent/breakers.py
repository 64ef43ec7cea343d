"""The circuit breakers of one node: fed by the ends of calls, they refuse calls to failing capabilities and probe them.

A timeout counts against a capability only if the call had at least the capability's own timeout. Otherwise a caller could open
the breaker for all others by asking for one millisecond.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from comity.core.agent.breaker import CLOSED, OPEN, Breaker
from comity.core.units import MS_PER_S, NS_PER_MS
from comity.errors import Breaker as Effect
from comity.errors import breaker_effect
from comity.ports import Clock
from comity.runtime.call.tasks import PASSES, is_own

if TYPE_CHECKING:
    from comity.core.agent.agent import Agent
    from comity.core.call.limits import Limits
    from comity.core.envelope.envelope import Reply
    from comity.runtime.call.call import Call

log = logging.getLogger("comity")

Probe = Callable[[], Any]  # returns whether a capability works again

PROBE_MS_MAX: Final = 10_000
# The default timeout of a capability shrinks by its callers' margins, by about this factor per hop.
_HOP: Final = 0.9
_TIMEOUTS: Final = frozenset({"CALL_TIMEOUT", "MODEL_TIMEOUT"})


class Breakers:
    """The breakers of those capabilities that have ever failed here."""

    __slots__ = ("_clock", "_limits", "_moved", "_probes", "known")

    def __init__(self, clock: Clock, limits: Limits, moved: Callable[[str, str, str], None] | None = None) -> None:
        self._moved = moved
        self.known: dict[tuple[str, str], Breaker] = {}  # by agent and capability
        self._clock = clock
        self._limits = limits
        self._probes: dict[tuple[str, str], asyncio.Task[None]] = {}

    def gate(self, agent: Agent, code: str, now_ms: int) -> tuple[Breaker | None, int | None, bool]:
        """Return a capability's breaker if it ever failed, how many ms it refuses calls, and whether a fallback runs."""
        breaker = self.known.get((agent.id, code))
        wait_ms = None if breaker is None else breaker.retry_after_ms(now_ms)
        if wait_ms is not None and code in agent.capabilities and len(agent.capabilities[code].implementations) > 1:
            return breaker, None, True
        return breaker, wait_ms, False

    def tell(self, call: Call, reply: Reply, now_ms: int) -> None:
        """Count the end of a call as success or failure."""
        if call.skips_primary:
            return
        key, error = (call.agent.id, call.capability.code), call.primary or reply.error
        breaker = self.known.get(key)
        effect = None if error is None else breaker_effect(error.code, retryable=error.retryable)
        if effect is None:
            if breaker is not None:
                breaker.succeeded(now_ms, probe=call.probe)
        elif effect is Effect.IGNORES or (self._is_timeout(call, error) and not self._had_time(call)):
            if breaker is not None:
                breaker.released(probe=call.probe)
        else:
            if breaker is None:
                breaker = self.known[key] = Breaker(call.capability.breaker, self._moved)
            breaker.failed(now_ms, probe=call.probe, trips=effect is Effect.TRIPS)
            if breaker.state is OPEN and (probe := call.capability.probe) is not None:
                self._watch(key, breaker, probe, call.capability.timeout_ms)

    def release(self, call: Call) -> None:
        """Withdraw a half-open probe whose call is paused: it has no outcome, and enters again when it resumes."""
        if call.probe:
            self.known[call.agent.id, call.capability.code].released(probe=call.probe)
            call.probe = 0

    def reset(self, agent_id: str, code: str) -> bool:
        """Close a breaker at once; return whether the capability ever failed."""
        key = agent_id, code
        if key not in self.known:
            return False
        self.known[key] = Breaker(self.known[key].policy)
        task = self._probes.pop(key, None)
        if task is not None:
            task.cancel()
        return True

    def close(self) -> list[asyncio.Task[None]]:
        """Cancel all probes, and return their tasks."""
        tasks = list(self._probes.values())
        for task in tasks:
            task.cancel()
        return tasks

    @staticmethod
    def _is_timeout(call: Call, error: Any) -> bool:
        return call.gave_up or error.code in _TIMEOUTS

    def _had_time(self, call: Call) -> bool:
        """Return whether a call had its capability's full timeout from when it left the queue."""
        capability, request = call.capability, call.request
        if call.began_ms < 0:  # it never ran
            return False
        limits = self._limits.narrow(call.agent.limits).narrow(capability.limits)
        own_ms: float
        if capability.timeout_ms is not None:
            own_ms = min(capability.timeout_ms, limits.timeout_ms_max)
        else:
            own_ms = min(limits.timeout_ms, limits.timeout_ms_max) * _HOP**request.depth
        return request.deadline_at - (call.began_ms or call.started_ns // NS_PER_MS) >= own_ms

    # --- probes ---

    def _watch(self, key: tuple[str, str], breaker: Breaker, probe: Probe, timeout_ms: int | None) -> None:
        task = self._probes.get(key)
        if task is None or task.done():
            name = f"probe {' '.join(key)}"
            work = self._recover(breaker, partial(_probed, probe, timeout_ms), name)
            self._probes[key] = asyncio.get_running_loop().create_task(work, name=name)

    async def _recover(self, breaker: Breaker, probed: Callable[[], Awaitable[bool]], name: str) -> None:
        """Probe a capability whenever its breaker is half-open and no call comes, until the breaker is closed."""
        while breaker.state is not CLOSED:
            wait_ms = breaker.retry_after_ms(self._now_ms())
            if wait_ms is not None:
                await asyncio.sleep(wait_ms / MS_PER_S)
                continue
            probe = breaker.enter(self._now_ms())
            try:
                is_well = await probed()
            except BaseException as raised:  # the task boundary
                if isinstance(raised, PASSES) and not is_own(raised, asyncio.current_task()):
                    breaker.released(probe=probe)
                    raise
                log.info("%s raised %s", name, type(raised).__name__)  # the message may hold personal data
                is_well = False
            if is_well:
                breaker.succeeded(self._now_ms(), probe=probe)
            else:
                breaker.failed(self._now_ms(), probe=probe)

    def _now_ms(self) -> int:
        return self._clock.now_ns() // NS_PER_MS


async def _probed(probe: Probe, timeout_ms: int | None) -> bool:
    """Run a capability's probe; return False if it raises, times out or returns False."""
    async with asyncio.timeout(min(timeout_ms or PROBE_MS_MAX, PROBE_MS_MAX) / MS_PER_S):
        result = await (probe() if asyncio.iscoroutinefunction(probe) else asyncio.to_thread(probe))
    return result is not False
