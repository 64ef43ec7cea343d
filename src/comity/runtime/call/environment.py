"""The collaborators that the call path shares (journal, clock, sessions and so on); complete before the first call."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from comity.core.agent.registry import Registry
from comity.core.call.guardrail import Guardrail
from comity.core.call.inheritance import Inheritance
from comity.core.call.limits import Limits
from comity.core.envelope.usage import Prices
from comity.core.journal.records import Record
from comity.core.journal.terms import Terms
from comity.core.units import NS_PER_MS
from comity.ports import Clock, Ids, Journal
from comity.ports.observer import Observer
from comity.runtime.agent.threads import FunctionThreads
from comity.runtime.agent.watchdog import Watchdog
from comity.runtime.agent.workers import RunInProcess
from comity.runtime.call.slices import Slices
from comity.runtime.call.tasks import release
from comity.runtime.session.memory import Memories
from comity.runtime.session.privacy import Answers, Privacy
from comity.runtime.session.sessions import Sessions
from comity.runtime.tracing.recorder import Recorder

if TYPE_CHECKING:
    from comity.runtime.guidance.guidance import LiveGuidance


class Environment(Struct, frozen=True, kw_only=True):
    """The collaborators of a node's calls."""

    registry: Registry
    journal: Journal
    clock: Clock
    ids: Ids
    limits: Limits
    loop: asyncio.AbstractEventLoop
    sessions: Sessions
    memories: Memories
    recorder: Recorder
    threads: FunctionThreads
    run_in_process: RunInProcess
    slices: Slices
    inheritance: Inheritance
    identity_key: bytes
    privacy: Privacy | None = None
    answers: Answers | None = None  # hides personal data in replies; None where nothing is hidden
    guardrails: tuple[Guardrail, ...] = ()
    prices: Prices | None = None  # of tokens; without them costs are unknown
    guidance: LiveGuidance | None = None
    watchdog: Watchdog | None = None
    observer: Observer | None = None

    def now_ms(self) -> int:
        """Return the time in epoch milliseconds."""
        return self.clock.now_ns() // NS_PER_MS

    async def durable(self, records: Sequence[Record] = (), terms: Terms | None = None) -> None:
        """Append `records` and wait until they and all earlier records are durable. Raises the journal's error."""
        waiter: asyncio.Future[None] = self.loop.create_future()
        self.journal.append(records, partial(release, waiter), terms)
        await waiter
