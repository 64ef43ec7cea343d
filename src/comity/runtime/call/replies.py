"""The reply to a request: a known one under the same id, the reply of a running call, or a refusal.

The caller gets each of them once it is durable where the node promises that.
"""

from __future__ import annotations

import asyncio
import contextlib

from comity.core.agent.disclosure import spoken
from comity.core.call import admission
from comity.core.call.endings import end_leftovers
from comity.core.call.machine import CANCEL
from comity.core.call.refusal import as_recorded
from comity.core.envelope.envelope import Reply, Request, Status
from comity.core.envelope.request_id import as_asked
from comity.core.journal.records import Refused, is_same
from comity.core.tracing.telemetry import CallEnd
from comity.core.units import NS_PER_MS
from comity.errors import UnavailableError
from comity.runtime.call import events
from comity.runtime.call.call import Call
from comity.runtime.call.environment import Environment
from comity.runtime.call.replay import known, reused
from comity.runtime.call.serving import Serving
from comity.runtime.call.settle import Settlement


class Replies(Serving):
    """The calls in progress on one node as their callers see them."""

    __slots__ = ("_journal", "calls", "durable", "loop", "now_ms", "recorder", "settlement")

    def __init__(self, env: Environment, calls: dict[str, Call], settlement: Settlement) -> None:
        super().__init__(env, settlement.placement)
        self.calls = calls  # by request id, until the reply has been delivered
        self.settlement = settlement
        self.loop, self.recorder = env.loop, env.recorder
        self.durable, self.now_ms = env.durable, env.now_ms
        self._journal = env.journal

    def seen(self, request: Request) -> Call | Reply | None:
        """Return the call or reply known under this request's id; a refusal if the id belongs to a different request."""
        running = self.calls.get(request.request_id)
        found = known(request, self._journal, self.placement.meets_open) if running is None else running
        if isinstance(found, Call) and not is_same(request, found.request):
            found = reused(request)
        if isinstance(found, admission.Refused):
            asked = as_asked(request)
            return self.refuse(asked, reused(asked) if found.code == reused(request).code else found)
        is_root = request.parent_id is None
        return self.settlement.shown(found, request) if isinstance(found, Reply) and is_root else found

    def unread(self, request: Request, error: UnavailableError, *, is_again: bool = False) -> Call | Reply:
        """Answer a call that could not be opened because the store cannot be read: refuse it, or end it if it was accepted.

        On replay (`is_again`) raise `error`: the call may have settled, so its caller must not see a refusal.
        """
        call = self.calls.get(request.request_id)
        if call is None and is_again:
            raise error
        if call is None:
            return self.refuse(request, self.settlement.unavailable(error))
        failed = self.settlement.unrecorded(error)
        self.settlement.settle(call, CANCEL, Reply(status=Status.ERROR, error=failed, message=failed.message))
        return call

    def refuse(self, request: Request, refusal: admission.Refused, log: events.EventLog | None = None) -> Reply:
        """Refuse a request: one audit row, one reply that says what to do instead, and nothing else."""
        recorded, hidden = as_recorded(request, refusal)
        # A calling agent gets the reply that is stored: a replay must give it the same one.
        error = (refusal if request.parent_id is None else hidden).error
        advice = f"{error.message}. {error.advice}"
        reply = Reply(
            status=Status.REFUSED,
            error=error,
            message=spoken(error, advice) if request.parent_id is None else advice,
            request_id=request.request_id,
            source=request.target if request.parent_id is None else recorded.target,
        )
        now_ns = self.clock.now_ns()
        now_ms = now_ns // NS_PER_MS
        root = None if request.parent_id is None else self.calls.get(request.root_id)
        # Calls that an earlier run began under this id are not resumed: they end before the caller gets the refusal.
        begun = () if root is None or not root.leftovers else end_leftovers(root, request.request_id, now_ms)
        terms = self.placement.refusal_terms(request)
        self._journal.append((*begun, Refused(as_asked(recorded), reply, now_ms, refusal.reason)), None, terms)
        if self.recorder.ended is not None:
            self.recorder.ended(CallEnd(recorded, reply, now_ns, now_ns))
        if log is not None:
            log.add(events.Kind.REFUSED, now_ms, request, {"code": error.code, "message": error.message})
        return reply

    async def reply_of(self, call: Call) -> Reply:
        """Wait for a call's reply. If its last waiter is cancelled, the call is cancelled too, unless a handle holds it."""
        waiter: asyncio.Future[None] = self.loop.create_future()
        self.wait_with(call, waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            self.stop_waiting(call, waiter)
            raise
        return call.delivered

    def wait_with(self, call: Call, waiter: asyncio.Future[None]) -> None:
        """Resolve the waiter once the reply has been delivered."""
        if call.is_delivered:
            waiter.set_result(None)
        elif call.waiters is None:
            call.waiters = [waiter]
        else:
            call.waiters.append(waiter)

    def stop_waiting(self, call: Call, waiter: asyncio.Future[None]) -> None:
        """Remove a waiter. If it was the last one of a call that is not detached, cancel the call."""
        if call.waiters is not None and waiter in call.waiters:
            call.waiters.remove(waiter)
            if not call.waiters and not call.is_detached:
                self.settlement.cancel(call, "its caller stopped waiting")

    async def recorded(self) -> None:
        """Wait until a refusal is on disk. Ignore a failed store: then the refusal already says so."""
        with contextlib.suppress(UnavailableError):
            await self.durable()

    async def told(self, reply: Reply) -> Reply:
        """Return an already-known reply after flushing the journal; re-read `needs_input`: the call may have resumed."""
        await self.recorded()
        return await self._newest(reply) if reply.status is Status.NEEDS_INPUT else reply

    async def _newest(self, reply: Reply) -> Reply:
        """Return the current reply of a paused call: its final reply if it has resumed and ended meanwhile."""
        running = self.calls.get(reply.request_id)
        if running is not None:
            return await self.reply_of(running)
        with contextlib.suppress(UnavailableError):
            stored = self._journal.call(reply.request_id)
            if stored is not None and stored.settled_at is not None and stored.reply is not None:
                return self.settlement.shown(stored.reply, stored)
        return reply
