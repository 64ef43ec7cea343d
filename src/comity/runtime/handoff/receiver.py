"""`Receiver`: takes handoffs and ends them. Its methods are named as in ContextCore."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from functools import partial
from typing import Any, Final

from comity.core.agent.declaration import DeclarationError
from comity.core.agent.mailbox import TURNS
from comity.core.call.limits import INPUTS_BYTES_MAX, MESSAGE_BYTES_MAX, PROGRESS_BYTES_MAX, TIMEOUT_MS_CEILING
from comity.core.document.foreign_errors import ENDINGS, told
from comity.core.document.payload import readable, text_problem, unpack_long
from comity.core.envelope.envelope import is_id
from comity.core.envelope.reserved import CODE as RESERVED
from comity.core.envelope.reserved import is_raised_by_platform, is_reserved, reserved_error
from comity.core.handoff.checks import (
    check_id,
    confidence_problem,
    name_problem,
    number_problem,
    options_problem,
    packed,
    reason_problem,
    refuse,
)
from comity.core.handoff.holder import Holder, desk_name
from comity.core.handoff.machine import (
    LEASE_MS,
    Accept,
    Ask,
    Complete,
    Fail,
    Handoff,
    Progress,
    Question,
    Reject,
    Release,
    State,
)
from comity.core.handoff.queue import Step, Take, Want
from comity.core.handoff.trace import place_of
from comity.errors import CallerError, ComityError, RefusedError, UnavailableError
from comity.ports.ambient import standing_at
from comity.runtime.agent.failure_log import log_raised
from comity.runtime.call.tasks import PASSES, all_ended, is_own
from comity.runtime.handoff.desk import Handoffs, lane_of
from comity.runtime.handoff.host import DeskHost

log = logging.getLogger("comity")

CAPABILITIES_MAX: Final = 100
PEEK_MAX: Final = 10_000
GONE_MAX: Final = 1_000  # lost handoffs that are kept, so that a late result can be recorded
Doing = Callable[[], Awaitable[Any]]
Work = Callable[[Handoff], Any]  # a function, async or not, that does the work and returns the result


class Arrivals(AsyncIterator[Handoff]):
    """Yields the results of `following` without end. It holds no resource between two steps, so a loop may simply break."""

    def __init__(self, following: Callable[[], Awaitable[Handoff]]) -> None:
        self._following = following

    async def __anext__(self) -> Handoff:
        return await self._following()


class Receiver(DeskHost):
    """Takes handoffs for an agent, and for the capabilities that it lists."""

    def __init__(
        self,
        agent_id: str,
        capabilities: Collection[str] = (),
        *,
        tenant_id: str = "default",
        lease_ms: int = LEASE_MS,
        keeps: bool = False,
    ) -> None:
        DeskHost.__init__(self)  # not `super()`: the other base of a receiver with its own node is already initialized
        if isinstance(capabilities, str) or len(capabilities) > CAPABILITIES_MAX or not all(map(is_id, capabilities)):
            raise DeclarationError(f"capabilities must be a list of at most {CAPABILITIES_MAX} names")
        problems = (
            name_problem(agent_id, "agent_id"),
            name_problem(tenant_id, "tenant_id"),
            number_problem(lease_ms, "lease_ms", 1, TIMEOUT_MS_CEILING),
        )
        for problem in filter(None, problems):
            raise DeclarationError(f"{problem.path} {problem.message}")
        self.agent_id, self.tenant_id = agent_id, tenant_id
        self.lease_ms = TIMEOUT_MS_CEILING if keeps else lease_ms
        self._keeps = keeps
        lanes = tuple(lane_of(tenant_id, one) for one in capabilities)
        self._want = Want(lane_of(tenant_id, agent_id), tuple(capabilities), lanes)
        self._turns = dict(TURNS)
        self._holder = ""
        self._held: dict[str, Handoff] = {}  # as of when it took them
        self._gone: dict[str, Handoff] = {}  # recently lost: a late result for one is still recorded
        self._running: dict[str, asyncio.Task[None]] = {}  # tasks of `serve`
        self._is_stopping = False  # takes no more handoffs

    async def desk(self) -> Handoffs:
        """Return the node's desk; on first use, subscribe to this receiver's lanes."""
        desk = await super().desk()
        if not self._holder:
            self._holder = desk_name(self.agent_id) if self._keeps else desk.new_holder()
            desk.receivers[self] = None
            await self._listen(desk, 1)
        return desk

    async def _listen(self, desk: Handoffs, step: int) -> None:
        await desk.listen((self._want.own_lane, *self._want.lanes), step)

    def _may_take(self, desk: Handoffs) -> bool:  # noqa: ARG002  for those that stand back for others
        return not self._is_stopping

    async def stop(self) -> None:
        """Cancel the work, wait for it, and release the handoffs, so the next receiver need not wait for the leases."""
        desk = self._desk
        if desk is None or self._is_stopping:
            return
        self._is_stopping = True
        desk.receivers.pop(self, None)
        tasks = {task: f"{self.agent_id} (handoff {handoff_id})" for handoff_id, task in self._running.items()}
        for task in tasks:
            task.cancel()
        await all_ended(tasks)
        for handoff_id in () if self._keeps else tuple(self._held):
            with contextlib.suppress(ComityError):  # it has ended, or another receiver has it
                await self.release(handoff_id, "its receiver was closed")
        with contextlib.suppress(ComityError):  # a failed store sends no notifications anyway
            await self._listen(desk, -1)

    async def close(self) -> None:
        """Do what `stop` does, and close the receiver's own node if it has one."""
        await self.stop()
        await super().close()

    # --- getting work ---

    def watch_handoffs(self) -> AsyncIterator[Handoff]:
        """Yield handoffs for this receiver as they come, most urgent first, without polling.

        A yielded handoff is reserved until it is accepted or rejected, or until its lease expires.
        """

        async def following() -> Handoff:
            (handoff,) = await self._next(1, reserves=True)
            self._got(handoff)
            return handoff

        return Arrivals(following)

    def peek_handoffs(self) -> AsyncIterator[Handoff]:
        """Yield queued handoffs for this receiver as they come, each once, without reserving them."""
        seen: set[str] = set()
        waiting: list[Handoff] = []  # newest first

        async def following() -> Handoff:
            desk = await self.desk()
            with desk.ear(self._ears, *(f"+{lane}" for lane in (self._want.own_lane, *self._want.lanes))) as ear:
                while not waiting:
                    waiting.extend(one for one in await self.poll(PEEK_MAX) if one.id not in seen)
                    if not waiting:
                        await ear.wait(desk.queue.next_due())
            seen.add(waiting[-1].id)
            return waiting.pop()

        return Arrivals(following)

    async def take(self, most: int = 1) -> list[Handoff]:
        """Wait for handoffs, accept from one to `most` of them in one step, and return them."""
        refuse(number_problem(most, "most", 1, PEEK_MAX))
        taken = await self._next(most, reserves=False)
        for handoff in taken:
            self._got(handoff)
        return taken

    async def poll(self, most: int = 100) -> list[Handoff]:
        """Return the queued handoffs for this receiver, without reserving them."""
        refuse(number_problem(most, "most", 1, PEEK_MAX))
        desk = await self.desk()
        lanes = (self._want.own_lane, *self._want.lanes)
        found = [one for lane in lanes for one in desk.queue.find(states=(State.PENDING,), lane=lane, limit=most)]
        return [one for one in found if one.is_free and self._want.matches(one)][:most]

    async def _next(self, most: int, *, reserves: bool) -> list[Handoff]:
        desk = await self.desk()
        lanes = (self._want.own_lane, *self._want.lanes)
        has_looked = False
        with desk.ear(self._ears, *(f"+{lane}" for lane in lanes)) as ear:
            while True:
                now_ms = desk.now_ms
                has_work = any(map(desk.is_coming, lanes))
                if not (has_work and has_looked):  # reading the queue costs a query
                    due_at, has_looked = desk.queue.next_due(), True
                    if desk.queue.knows_of_the_dead or (due_at is not None and due_at <= now_ms):
                        await desk.sweep()
                        due_at = desk.queue.next_due()
                    has_work = has_work or any(map(desk.queue.count_free, lanes))
                if has_work and self._may_take(desk):
                    accept = Accept(self._holder, self.agent_id, now_ms + self.lease_ms, reserves)
                    step = await desk.perform(Step(change=Take(self._want, accept, most, self._turns), now_ms=now_ms))
                    self._turns = step.turns or self._turns
                    taken = [one.handoff for one in step.outcomes if one.refusal is None and one.handoff is not None]
                    if taken:
                        return taken
                    due_at = desk.queue.next_due()
                await ear.wait(due_at)

    def _got(self, handoff: Handoff) -> None:
        self._held[handoff.id] = handoff
        if handoff.state is not State.PENDING and not self._keeps and self._desk is not None:
            self._desk.leases.hold(handoff, self.lease_ms, self._lost)

    def _lost(self, handoff_id: str) -> None:
        """Cancel the work for a handoff whose lease was lost or that ended otherwise."""
        if (mine := self._held.pop(handoff_id, None)) is not None:
            self._gone[handoff_id] = mine
            if len(self._gone) > GONE_MAX:
                del self._gone[next(iter(self._gone))]
        if (task := self._running.get(handoff_id)) is not None:
            task.cancel()

    # --- doing it ---

    async def accept(self, handoff_id: str) -> Handoff:
        """Take a handoff. Raises `RefusedError` HANDOFF_TAKEN if another receiver was first."""
        desk = await self.desk()
        self._check_wanted(desk, handoff_id)
        handoff = await desk.change(handoff_id, Accept(self._holder, self.agent_id, desk.now_ms + self.lease_ms))
        self._got(handoff)
        return handoff

    def _check_wanted(self, desk: Handoffs, handoff_id: str) -> None:
        found = desk.get(handoff_id)
        if found is None or not self._want.matches(found):
            raise CallerError(f"no handoff {handoff_id!r} for {self.agent_id}", code="HANDOFF_UNKNOWN")

    async def reject(self, handoff_id: str, reason: str) -> Handoff:
        """End a handoff as rejected; only before it is accepted."""
        check_id(handoff_id)
        refuse(reason_problem(reason))
        desk = await self.desk()
        if handoff_id not in self._held:
            self._check_wanted(desk, handoff_id)
            accept = Accept(self._holder, self.agent_id, desk.now_ms + self.lease_ms, reserves=True)
            self._got(await desk.change(handoff_id, accept))
        return await self._end(desk, handoff_id, Reject(by(self._mine(handoff_id)), desk.masked(reason)))

    async def progress(self, handoff_id: str, data: Any) -> None:
        """Report progress to the caller of the handoff."""
        desk = await self.desk()
        mine = self._mine(handoff_id)
        raw, saved = desk.content.hidden(mine.request, packed(data, "progress", PROGRESS_BYTES_MAX))
        await desk.change(handoff_id, Progress(by(mine), unpack_long(raw), saved))

    async def request_input(
        self,
        handoff_id: str,
        question: str,
        *,
        input_type: str = "text",
        options: Collection[str] = (),
        default: Any = None,
    ) -> Any:
        """Ask the agent that handed off `handoff_id`, wait, and return the answer; `default` if it gives none.

        `question` is for people; `input_type` and `options` say which answers are valid. Raises `RefusedError`
        HANDOFF_LEASE_LOST if the handoff ends or is lost first.
        """
        refuse(
            text_problem(question, path="question", bytes_max=MESSAGE_BYTES_MAX),
            name_problem(input_type, "input_type"),
            options_problem(options),
        )
        desk = await self.desk()
        mine = self._mine(handoff_id)
        asked = {"text": question, "input_type": input_type, "options": list(options), "default": default}
        raw, saved = desk.content.hidden(mine.request, packed(asked, "question", INPUTS_BYTES_MAX))
        plain = unpack_long(raw) | {"options": tuple(options)}
        with desk.ear(self._ears, f"={handoff_id}", f"-{handoff_id}") as ear:
            await desk.change(handoff_id, Ask(by(mine), Question(**plain), saved))
            while True:
                handoff = desk.queue.get(handoff_id)
                if handoff is None or handoff_id not in self._held:
                    raise RefusedError(f"{handoff_id} ended before it was answered", code="HANDOFF_LEASE_LOST")
                if handoff.question is not None and handoff.question.is_answered:
                    return handoff.question.answer
                await ear.wait(handoff.due_at)

    async def complete(
        self,
        handoff_id: str,
        result: Any = None,
        result_trace_id: str | None = None,
        *,
        message: str = "",
        confidence: float = 1.0,
    ) -> Handoff:
        """End the handoff `handoff_id` with a `result`. Raises `TargetError` for an invalid result; the handoff stays open.

        `result_trace_id` is the trace that produced the result, `message` is a text for people, `confidence` is from 0 to 1.
        """
        refuse(
            None if not result_trace_id else name_problem(result_trace_id, "result_trace_id"),
            text_problem(message, path="message", bytes_max=MESSAGE_BYTES_MAX),
            confidence_problem(confidence),
        )
        desk = await self.desk()
        mine = self._mine(handoff_id)
        reply, saved = desk.content.answer(mine.request, result, message=message, confidence=confidence)
        return await self._end(desk, handoff_id, Complete(by(mine), reply, result_trace_id or "", saved))

    async def fail(self, handoff_id: str, reason: str, *, code: str = "TARGET_FAILED") -> Handoff:
        """End the handoff `handoff_id` without a result, with a `reason` in words and an error `code`.

        A code that is reserved for the platform becomes OUTPUT_RESERVED.
        """
        refuse(reason_problem(reason), name_problem(code, "code"))
        if is_reserved(code):
            error = reserved_error(f"{self.agent_id} failed with {code}", reason)
            reason, code = error.message, error.code
        return await self._fail(handoff_id, reason, code)

    async def _fail(self, handoff_id: str, reason: str, code: str) -> Handoff:
        desk = await self.desk()
        mine = self._mine(handoff_id)
        raw, saved = desk.content.hidden(mine.request, packed(reason, "reason", INPUTS_BYTES_MAX))
        failed = Fail(by(mine), desk.content.failure(mine.request, unpack_long(raw), code), saved)
        return await self._end(desk, handoff_id, failed)

    async def release(self, handoff_id: str, reason: str = "its receiver gave it back") -> None:
        """Return a handoff to the queue for another receiver."""
        refuse(reason_problem(reason))
        desk = await self.desk()
        await self._end(desk, handoff_id, Release(by(self._mine(handoff_id)), desk.masked(reason)))

    async def serve(self, work: Work, *, concurrency: int = 1) -> None:
        """Take handoffs and run `work` for each, `concurrency` at once, until cancelled. An exception fails the handoff.

        If a handoff is lost or cancelled, its work is cancelled. `work` runs within the handoff's trace.
        """
        refuse(number_problem(concurrency, "concurrency", 1, PEEK_MAX))
        is_async = inspect.iscoroutinefunction(work)
        try:
            while True:
                while len(self._running) >= concurrency:
                    await asyncio.wait(self._running.values(), return_when=asyncio.FIRST_COMPLETED)
                taken = await self._next(concurrency - len(self._running), reserves=False)
                if is_async:
                    for handoff in taken:
                        self._spawn(handoff, partial(_standing_async, work, handoff))
                else:
                    self._do_at_once(await self.desk(), taken, work)
        finally:
            for task in self._running.values():
                task.cancel()

    def _spawn(self, handoff: Handoff, doing: Doing) -> None:
        self._got(handoff)
        task = asyncio.create_task(self._do(handoff.id, doing), name=handoff.id)
        self._running[handoff.id] = task
        task.add_done_callback(lambda _: self._running.pop(handoff.id, None))

    def _do_at_once(self, desk: Handoffs, taken: list[Handoff], work: Work) -> None:
        """Run a plain function for each handoff without a task; use a task only for what must be awaited."""
        rest, done = deque(taken), list[Step]()
        try:
            while rest:
                handoff = rest[0]
                try:
                    result = contextvars.copy_context().run(_standing, work, handoff)
                    if hasattr(result, "__await__"):
                        self._spawn(handoff, partial(_itself, result))
                    else:
                        reply, saved = desk.content.answer(handoff.request, result)
                        done.append(desk.step(Complete(by(handoff), reply, "", saved), handoff.request.request_id))
                except (asyncio.CancelledError, *ENDINGS):
                    raise
                except BaseException as error:  # noqa: BLE001  the task boundary
                    self._spawn(handoff, partial(_raised, error))
                rest.popleft()
        finally:
            if done:
                desk.post(*done)
            for handoff in rest:  # KeyboardInterrupt or SystemExit: closing releases them
                self._got(handoff)

    async def _do(self, handoff_id: str, doing: Doing) -> None:
        task = asyncio.current_task()
        try:
            try:
                await self._deliver(handoff_id, await doing())
            except BaseException as error:  # the task boundary
                if isinstance(error, PASSES) and not is_own(error, task):
                    raise
                if handoff_id not in self._held:
                    raise
                if isinstance(error, ComityError):
                    code = error.code if is_id(error.code) else error.default_code
                    if is_reserved(code) and not is_raised_by_platform(error):
                        code = RESERVED
                else:
                    code = "TARGET_CRASHED"
                    desk = self._desk
                    hide = None if desk is None else desk.hide_trace
                    log_raised(error, hide, "%s raised (handoff %s)", self.agent_id, handoff_id)
                await self._fail(handoff_id, readable(told(error), MESSAGE_BYTES_MAX), code)
        except ComityError as error:  # it ended or was lost meanwhile
            log.info("%s: %s", handoff_id, error)

    async def _deliver(self, handoff_id: str, result: Any) -> None:
        await self.complete(handoff_id, result)

    # --- inside ---

    def _mine(self, handoff_id: str) -> Handoff:
        check_id(handoff_id)
        mine = self._held.get(handoff_id) or self._gone.get(handoff_id)
        if mine is None and self._desk is not None:  # a receiver with a persistent name may have taken it in another process
            found = self._desk.queue.get(handoff_id)
            kept = None if found is None else (found.holder, found.request.tenant_id)
            mine = found if kept == (self._holder, self.tenant_id) else None
        if mine is None:
            raise self._not_mine(handoff_id)
        return mine

    def _not_mine(self, handoff_id: str) -> RefusedError:
        return RefusedError(f"{self.agent_id} does not have {handoff_id}", code="HANDOFF_LEASE_LOST")

    async def _end(self, desk: Handoffs, handoff_id: str, change: Complete | Fail | Reject | Release) -> Handoff:
        desk.leases.let_go(handoff_id)  # first: its end must not be reported to this receiver as a loss
        mine = self._mine(handoff_id)
        self._held.pop(handoff_id, None)
        is_lost = self._gone.pop(handoff_id, None) is mine
        try:
            return await desk.change(handoff_id, change)
        except CallerError as error:
            if error.code == "HANDOFF_STATE_CONFLICT":  # this change is invalid, and the handoff stays open
                self._got(mine)
            raise
        except UnavailableError:
            if is_lost:  # the late result cannot be recorded
                raise self._not_mine(handoff_id) from None
            raise


def _standing(work: Work, handoff: Handoff) -> Any:
    """Run the work within the handoff's trace, so that calls, insights and further handoffs belong to it."""
    with standing_at(place_of(handoff.request)):
        return work(handoff)


async def _standing_async(work: Work, handoff: Handoff) -> Any:
    with standing_at(place_of(handoff.request)):
        return await work(handoff)


async def _raised(error: BaseException) -> Any:
    raise error


async def _itself(result: Awaitable[Any]) -> Any:
    return await result


def by(handoff: Handoff) -> Holder:
    """Return the holder of a handoff, with its lease."""
    return Holder(handoff.holder, handoff.fence)
