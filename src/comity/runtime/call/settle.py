"""The end of a call: it settles once, together with all calls below it, in one append; then its waiters get the reply.

A result that comes later is recorded as late and not delivered. For a root, and for a capability declared to have effects,
delivery waits until the journal has made the end durable.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from comity.core.call import guardrail, settling, unfinished
from comity.core.call.admission import Refused
from comity.core.call.endings import end_leftovers, outlined, unknown_outcomes
from comity.core.call.limits import WARNINGS_MAX
from comity.core.call.machine import CANCEL, EXPIRE, FINISH, PAUSE, PAUSED, QUEUED, RUNNING, Event, State, advance
from comity.core.document.payload import PayloadError
from comity.core.document.slices import Sliced, whole
from comity.core.envelope.envelope import Error, Reply, Request, Status, encode
from comity.core.journal.records import Accepted, Late, Noted, Record, Settled, StoredCall
from comity.core.journal.records import Paused as PausedRecord
from comity.core.tracing.telemetry import CallEnd
from comity.core.units import MS_PER_S, NS_PER_MS
from comity.errors import ComityError, UnavailableError
from comity.runtime.agent.breakers import Breakers
from comity.runtime.agent.failure_log import log_place
from comity.runtime.call import events
from comity.runtime.call.call import Call, Deadlines
from comity.runtime.call.environment import Environment
from comity.runtime.call.pace import user_of
from comity.runtime.call.placement import Placement
from comity.runtime.call.run import complete
from comity.runtime.call.slices import LONG_BYTES
from comity.runtime.session.live import Live
from comity.runtime.session.privacy import hide_verdict, reveal_sliced
from comity.runtime.session.sessions import says

if TYPE_CHECKING:
    from comity.runtime.call.tools import Approval

log = logging.getLogger("comity")

# How long after its deadline a call accepts a result that was stored before the deadline (a suspended process wakes late).
ANSWER_MS_MAX: Final = 500


class Settlement:
    """Ends calls and hands out their replies."""

    def __init__(self, env: Environment, calls: dict[str, Call], stop: Callable[[Call], None]) -> None:
        observer = env.observer
        self._observer = observer
        self.calls = calls
        self.breakers = Breakers(env.clock, env.limits, None if observer is None else observer.moved)
        self.deadlines = Deadlines(env.clock, env.loop, self._expire, env.slices.pace)
        self.placement = Placement()  # replaced when the node joins a cluster
        self._journal, self._clock, self._loop = env.journal, env.clock, env.loop
        self._keeps_json = getattr(env.journal, "keeps_json", False)  # a journal of another package may lack it
        self._sessions, self._memories = env.sessions, env.memories
        self._guardrails, self._privacy = env.guardrails, env.privacy
        self.ended = env.recorder.ended  # callback for every call that has ended; None without tracing
        self._stop = stop
        self._deliver = self.deliver  # bound once
        self._keeps_content = env.recorder.settings.captures_content  # whether spans hold inputs and replies
        self._slices = env.slices
        self._delivering: dict[asyncio.Task[None], None] = {}

    def cancel(self, call: Call, why: str) -> bool:
        """Cancel a call and all calls below it; return whether it was still in progress."""
        error = Error.of("CALL_CANCELLED", f"{call.request.capability} of {call.request.target} was cancelled: {why}")
        return self.settle(call, CANCEL, Reply(status=Status.CANCELLED, error=error, data=unfinished.data_of(call)))

    def _expire(self, call: Call) -> None:
        if _is_answered(call, self._clock.now_ns() // NS_PER_MS):  # its answer is stored; its waiter settles this call shortly
            self._loop.call_later(ANSWER_MS_MAX / MS_PER_S, self._expire, call)
            return
        if not self.placement.answered_in_store(call):
            self.settle(call, EXPIRE, unfinished.timed_out(call))

    def settle(self, call: Call, event: Event, reply: Reply) -> bool:
        """Settle a call and all calls below it. If it has settled or timed out, record the reply as late and return False."""
        now_ns = call.ended_ns or self._clock.now_ns()
        now_ms = now_ns // NS_PER_MS
        if call.state is not RUNNING:  # a running call accepts every event
            if call.arriving is not None and call.way.on_terms:  # no other node knows of it
                self.take_back(call, complete(reply, call, now_ns, data=reply.data))
                return True
            if advance(call.state, event) is None:
                if event is FINISH and call.state is not PAUSED:  # a paused call has not settled
                    self._late(call, reply, now_ms)
                return False
        deadline_at = call.request.deadline_at
        if now_ms >= deadline_at and event is FINISH and now_ns > deadline_at * NS_PER_MS and _is_overdue(call, now_ms):
            self._expire(call)
            self._late(call, reply, now_ms)
            return False
        records: list[Record] = []
        ends: list[settling.End[Call]] = []
        if call.children or event is not FINISH:
            ends = settling.settle(call, event, reply, now_ms)
            for end in ends:
                self._interrupt(end.call, end.event, now_ms, records)
                self._close(end.call, end.event, end.reply, now_ns, now_ms, records)
        else:  # the usual case: its code returned, and it has no open child call
            self._close(call, event, reply, now_ns, now_ms, records)
        if call.way.on_terms:
            self.placement.ended(call, event, records)
        elif call.parent is None or call.capability.effects:
            self._journal.append(records, partial(self._deliver, call))
        else:
            self._journal.append(records)
            self.deliver(call, None)
        for end in ends[:-1]:  # the calls below it
            end.call.way.note_end()
            self.deliver(end.call, None)
        return True

    def _late(self, call: Call, reply: Reply, now_ms: int) -> None:
        if not self.placement.late(call, reply):
            self._journal.append((Late(call.request, reply, now_ms),))

    def _close(self, call: Call, event: Event, reply: Reply, now_ns: int, now_ms: int, records: list[Record]) -> None:
        """Settle one call whose children have settled: everything but delivery."""
        request = call.request
        if self._observer is not None:
            self._observer.settling(call, event)
        if call.uses_state:
            reply = self._save_state(call, reply, records)
        call.move(event)
        if reply.request_id != request.request_id:
            reply = complete(reply, call, now_ns, data=reply.data)
        if self._guardrails:
            reply = self._judged(call, event, reply, now_ns, now_ms, records)
            call.written = None  # a guardrail may have changed the data itself
        if call.warnings:
            reply = replace(reply, warnings=(*reply.warnings, *call.warnings)[:WARNINGS_MAX])
        # `thought` is kept in the store for audits; no caller sees it.
        call.reply = replace(reply, thought="") if reply.thought else reply
        parent = call.parent
        if parent is not None:
            call.leave(parent, call.reply)
        self.deadlines.discard(call)
        if self.breakers.known or reply.error is not None or call.primary is not None:
            self.breakers.tell(call, reply, now_ms)
        live = call.live
        if live is not None:
            if request.message or reply.message or live.vault is not None or request.source is not None or call.way.on_terms:
                records.extend(self._session_records(call, live, reply, now_ms))
            else:  # the usual case: a user's call without a message
                self._sessions.note(live, call.said or request, reply, now_ms, call.reply_bytes)
        if reply.new_facts and reply.ok and call.is_here:
            records.extend(self._memories.reported(request, reply, None if live is None else live.vault, now_ms))
        if len(request.body) > LONG_BYTES or len(request.message) > LONG_BYTES:
            request = outlined(request)  # drop its content, which the records of its end would keep in memory
        is_written = self._keeps_json and not call.way.on_terms  # with terms, the record may go to other nodes
        records.append(Settled(request, call.as_written(reply) if is_written else reply, now_ms, "", call.reply_bytes))
        root = call if call.root is None else call.root
        if root.leftovers:
            records.extend(end_leftovers(root, request.request_id, now_ms))
        if call.uses:
            records.extend(unknown_outcomes(call.uses.values(), request.target, now_ms))
            call.uses = None
        if (ended := self.ended) is not None:
            told = replace(reply, data=None) if call.reply_bytes and not self._keeps_content else reply
            asked = call.request if self._keeps_content else request
            ended(CallEnd(asked, told, call.started_ns, now_ns, call.remote, call.handed, call.agent.about, call.reported))
        if call.log is not None and parent is not None:
            call.log.add(events.Kind.SETTLED, now_ms, request, _outline(reply))
        if self._observer is not None:
            self._observer.settled(call)

    def _interrupt(self, call: Call, event: Event, now_ms: int, records: list[Record]) -> None:
        """Stop a call that ends before it finished: its PII scan, its place in the queue, or its code."""
        if call.arriving is not None:
            _stop_looking(call, call.arriving)
            records.append(Accepted(call.request, now_ms, self._journal.node_id, "it ended before it was looked through"))
        elif call.state is QUEUED:
            call.seat.mailbox.remove(call, call.request.priority)
        elif event is not FINISH and call.task is not None:
            self._stop(call)

    def _judged(self, call: Call, event: Event, reply: Reply, now_ns: int, now_ms: int, records: list[Record]) -> Reply:
        """Return the reply as the guardrails release it; record their verdict and the model steps that waited for it."""
        judged = guardrail.release(call.request, reply, self._guardrails)
        for step in call.unjudged or ():
            # No guardrail judged the output of a call that was cancelled or timed out.
            told = step if event is FINISH and not judged.is_withheld else step.without_words()
            records += (told.accepted, told.settled)
            if self.ended is not None and told.end is not None:
                self.ended(told.end)
        if judged.note:
            records.append(Noted(call.request, judged.note, now_ms))
        if judged.is_withheld and call.log is not None:
            call.log.drop_aside()
        released = judged.reply
        if released is reply:
            return reply
        if self._privacy is not None:
            released = hide_verdict(self._privacy, self._sessions, call, released)
        return complete(released, call, now_ns, data=released.data)

    def _session_records(self, call: Call, live: Live, reply: Reply, now_ms: int) -> tuple[Record, ...]:
        """Return the session records of a call's end: the turn, the facts, and the vault of hidden values."""
        records: tuple[Record, ...] = ()
        request, above = call.request, None
        if call.parent is not None and request.parent_session_id is not None:  # delegated to a session of its own
            above = call.parent.session_head.live
        try:
            if call.is_here:  # else the node that ran it has recorded them
                records = self._note_end(call, live, above, reply, now_ms)
        except UnavailableError as error:  # the call ends all the same
            log.warning("what %s was told is not in its session: %s", request.request_id, error)
        if live.vault is None:
            return records
        if above is None or above is live:
            return (*records, *self._sessions.saved_vault(live))
        self._sessions.vault(above).learn(live.vault)  # its reply goes to that session, hidden values included
        return (*records, *self._sessions.saved_vault(live), *self._sessions.saved_vault(above))

    def _note_end(self, call: Call, live: Live, above: Live | None, reply: Reply, now_ms: int) -> tuple[Record, ...]:
        """Return the session records of a call that says something to the user; note any other end in memory.

        In-memory notes wait until the store has taken the end (`Way.at_end`): it refuses the end if another node holds the
        agent by now and has ended the call.
        """
        asked, sessions = call.said or call.request, self._sessions
        if says(asked, reply):
            records: tuple[Record, ...] = sessions.told(live, asked, reply)
            notes: tuple[Callable[[], None], ...] = ()
        else:
            records, notes = (), (partial(sessions.ended, live, asked, reply, now_ms, call.reply_bytes),)
        if above is not None:
            notes += (partial(sessions.answered, above, call.request, reply, call.reply_bytes),)
        call.way.at_end(notes)
        return records

    def pause(self, root: Call, approval: Approval, then: Callable[[], None]) -> None:
        """Pause a whole tree until a person has answered: it leaves memory and stays open in the store; then call `then`."""
        if root.state is not RUNNING:
            return
        now_ns = self._clock.now_ns()
        question = f"Allow {approval.use}?"
        about = {"approval_id": approval.id, "tool": approval.tool, "inputs": approval.inputs}
        reply = complete(Reply.needs_input(question, data=about), root, now_ns, data=about)
        arriving = {call for call in _below(root) if call.arriving is not None}  # not recorded yet
        elsewhere = {call for call in _below(root) if call.state is State.SENT}  # recorded by the nodes that run them
        aside = [call for call in self.put_aside(root) if call not in arriving and call not in elsewhere]
        requests = [call.request for call in aside]
        # Tool uses in progress, and calls of an earlier run that are not replayed yet, are paused with their tree.
        requests += [use for call in aside for use in (call.uses or {}).values()]
        requests += (root.leftovers or {}).values()
        for call in aside:
            call.uses = None
        records: list[Record] = [PausedRecord(request, reply, now_ns // NS_PER_MS) for request in requests]
        if root.live is not None:
            records.extend(self._session_records(root, root.live, reply, now_ns // NS_PER_MS))
        root.reply = reply
        self._sessions.append(records, partial(self._paused, root, then), root.terms)

    def _paused(self, root: Call, then: Callable[[], None], error: Exception | None) -> None:
        if error is None:
            root.way.note_end()
        self.deliver(root, error)
        if error is None:
            then()

    def put_aside(self, top: Call) -> list[Call]:
        """Remove a call and all calls below it from memory without settling them; return them all."""
        below = _below(top)
        if self._observer is not None:
            self._observer.putting_aside(below)
        for call in below:
            if call.arriving is not None:
                _stop_looking(call, call.arriving)
            elif call.state is QUEUED:
                call.seat.mailbox.remove(call, call.request.priority)
            elif call.task is not None and call.task is not asyncio.current_task():
                self._stop(call)
            self.breakers.release(call)
            call.move(PAUSE)
            call.children = None
            self.deadlines.discard(call)
            if call is not top:
                self.calls.pop(call.request.request_id, None)
        if self._observer is not None:
            self._observer.put_aside(below)
        return below

    def move(self, call: Call) -> None:
        """Give up a call and all calls below it: the node that holds its agent now resumes it under the same ids."""
        # Besides its caller, another node that was asked for the same request may wait for it.
        for one in self._take_out(call):
            self.release_moved(one)

    def take_back(self, call: Call, reply: Reply) -> None:
        """Deliver a refusal for a call whose `Accepted` record the store rejected. It never started, so nothing settles."""
        for one in self._take_out(call)[1:]:
            self.release_moved(one)
        call.reply = reply
        self.deliver(call, None)

    def _take_out(self, call: Call) -> list[Call]:
        """Remove a call from memory and from its parent; return it with all calls below it."""
        below = self.put_aside(call)
        call.detach()
        return below

    def release_moved(self, call: Call) -> None:
        """Resolve the waiters of a call that another node resumes, with the error LEASE_STALE."""
        call.way.note_moved()
        error = Error.of("LEASE_STALE", f"{call.request.target} has moved to another node")
        call.reply = Reply(status=Status.ERROR, error=error, request_id=call.request.request_id)
        self.calls.pop(call.request.request_id, None)
        call.is_delivered = True
        _wake(call)

    def _save_state(self, call: Call, reply: Reply, records: list[Record]) -> Reply:
        try:
            call.seat.keep()
            records.extend(call.seat.changes())
        except PayloadError as error:  # the state stays as it was last saved
            what = f"the state of {call.request.target} cannot be kept: {error}"
            if reply.error is not None:  # it has failed already, or its time is up
                return replace(reply, warnings=(*reply.warnings, what)[-WARNINGS_MAX:])
            failure = Error.of("OUTPUT_VALIDATION_FAILED", what, problems=error.problems)
            return Reply(status=Status.ERROR, error=failure, message=failure.message)
        return reply

    def deliver(self, call: Call, error: Exception | None, *, is_shown: bool = False) -> None:
        """Resolve the waiters with the reply, or with `error` if the end could not be recorded. A root's end is durable."""
        if error is not None:
            call.reply = Reply(status=Status.ERROR, error=self.unrecorded(error), request_id=call.request.request_id)
        elif call.live is not None and call.live.vault is not None and not is_shown and not self._show(call):
            return
        call.is_delivered = True
        self.calls.pop(call.request.request_id, None)
        for waiter in call.waiters or ():
            if not waiter.done():
                waiter.set_result(None)
        if call.live is not None and call.live.session.id == call.request.request_id:
            self._sessions.rest(call.live)
        if call.log is not None and call.parent is None and call.reply is not None:
            call.log.show_aside()
            call.log.add(events.Kind.SETTLED, self._clock.now_ns() // NS_PER_MS, call.request, _outline(call.reply))
            call.log.close()

    def _show(self, call: Call) -> bool:
        """Restore a session's hidden values in a user's reply; return False if the reply is long and delivered later."""
        reply = call.reply
        if call.parent is not None or reply is None or call.way.is_served:
            return True
        try:
            work = self._shown(reply, call.request)
            if len(encode(reply)) > LONG_BYTES:
                self._deliver_later(call, work)
                return False
            call.reply = whole(work)
        except Exception as error:  # noqa: BLE001  the caller must not wait for ever
            call.reply = self._not_shown(call, error)
        return True

    def _not_shown(self, call: Call, error: Exception) -> Reply:
        """Return the error for a reply that cannot be shown. The call has settled: a retry with its id returns the reply."""
        request_id = call.request.request_id
        if isinstance(error, UnavailableError):
            return Reply(status=Status.ERROR, error=self.unrecorded(error), request_id=request_id)
        log_place(error, "the reply to %s could not be shown", request_id)
        failed = Error.of("TARGET_CRASHED", "the reply could not be shown; the log has why")
        return Reply(status=Status.ERROR, error=failed, request_id=request_id)

    def _deliver_later(self, call: Call, work: Sliced[Reply]) -> None:
        """Restore the hidden values of a long reply in slices, then deliver it."""
        task = self._loop.create_task(self._deliver_slowly(call, work), name=f"{call.request.request_id} is delivered")
        self._delivering[task] = None
        task.add_done_callback(self._delivering.pop)

    async def _deliver_slowly(self, call: Call, work: Sliced[Reply]) -> None:
        try:
            call.reply = await self._slices.run(work, user_of(call.request))
        except Exception as error:  # noqa: BLE001  the caller must not wait for ever
            call.reply = self._not_shown(call, error)
        self.deliver(call, None, is_shown=True)

    async def delivered(self) -> None:
        """Wait until long replies have been delivered."""
        for task in list(self._delivering):
            await task

    def unrecorded(self, error: Exception) -> Error:
        """Return the error for a call that cannot be recorded. It is not retryable if the journal has failed for good."""
        message = error.message if isinstance(error, ComityError) else str(error)
        can_help = getattr(error, "retryable", None) if self._journal.failure is None else False
        return Error.of("STORE_UNAVAILABLE", message, retryable=can_help)

    def stopped(self) -> Refused | None:
        """Return the refusal of every call if the journal has failed."""
        return None if self._journal.failure is None else self.unavailable(self._journal.failure)

    def unavailable(self, error: Exception) -> Refused:
        """Return the refusal of a call that cannot be recorded and therefore must not start."""
        failed = self.unrecorded(error)
        return Refused(failed.code, failed.message, retryable=failed.retryable)

    def shown(self, reply: Reply, request: Request | StoredCall) -> Reply:
        """Return a reply as the session's user may see it: personal data restored, `thought` removed."""
        return whole(self._shown(reply, request))

    def _shown(self, reply: Reply, request: Request | StoredCall) -> Sliced[Reply]:
        # A retry with the same request id need not name the session of the first attempt.
        live = self._sessions.find(request.tenant_id, reply.session_id or request.session_id)
        if live is not None and live.vault is not None and live.session.user_id == request.user_id and len(live.vault):
            reply = yield from reveal_sliced(reply, live.vault)
        return replace(reply, thought="") if reply.thought else reply


def _below(top: Call) -> list[Call]:
    """Return a call and everything below it."""
    below = [top]
    for call in below:
        below.extend(call.waits_for)
    return below


def _stop_looking(call: Call, looking: asyncio.Task[None]) -> None:
    """Stop the PII scan of a long request."""
    if looking is not asyncio.current_task():
        looking.cancel()
    call.arriving = None
    call.seat.coming -= 1


def _wake(call: Call) -> None:
    for waiter in call.waiters or ():
        if not waiter.done():
            waiter.set_result(None)


def _is_answered(call: Call, now_ms: int) -> bool:
    """Whether a result was stored before the deadline, and `ANSWER_MS_MAX` after the deadline is not over."""
    return call.has_answer is not None and now_ms - call.request.deadline_at <= ANSWER_MS_MAX and call.has_answer()


def _is_overdue(call: Call, now_ms: int) -> bool:
    """Whether a result came after the deadline, although its timer has not fired: a suspended process sees results first."""
    if call.has_answer is not None:
        return not _is_answered(call, now_ms)
    return call.is_here


def _outline(reply: Reply) -> dict[str, Any]:
    return {"status": str(reply.status), "code": reply.error.code if reply.error else None, "ms": reply.duration_ms}
