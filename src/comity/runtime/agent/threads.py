"""Runs plain functions in threads, so that they cannot block the event loop.

At most `threads_max` run at a time; others wait for a slot. A function that waits for a call or a tool gives up its slot
meanwhile, so plain functions that call each other cannot deadlock on slots.

A thread cannot be stopped. If its call ends first, the caller gets its reply on time, and every use of `ctx` in the function
raises CALL_CANCELLED. The function keeps its slot here and at its agent until it returns; the watchdog reports it.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import Context as Variables
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any

from comity.core.agent.declaration import DeclarationError, shown
from comity.core.agent.running import name_of
from comity.core.call.machine import RUNNING
from comity.core.document.foreign_errors import ENDINGS
from comity.errors import RefusedError
from comity.ports import Threads
from comity.runtime.agent import forked

if TYPE_CHECKING:
    from comity.runtime.call.call import Call

log = logging.getLogger("comity")

Ask = Callable[[Callable[[], Any]], Any]  # runs a function in the loop for a thread, and returns its result
Late = Callable[[Any, BaseException | None], None]  # called with the result or exception of an abandoned function


class Answer:
    """A request of a thread to the loop, and its result."""

    __slots__ = ("error", "gate", "task", "value")

    def __init__(self) -> None:
        self.gate = threading.Lock()
        self.gate.acquire()
        self.value: Any = None
        self.error: BaseException | None = None
        self.task: asyncio.Task[Any] | None = None


class Job:
    """A function that runs in a thread."""

    __slots__ = (
        "answers",
        "call",
        "error",
        "has_place",
        "has_returned",
        "is_over",
        "late",
        "name",
        "result",
        "waiter",
        "waiting",
    )

    def __init__(self, call: Call, name: str) -> None:
        self.call = call
        self.name = name
        self.answers: dict[Answer, None] = {}  # pending requests
        self.waiting = 0  # how many of them are awaitable, for which it gave up its slot
        self.has_place = True
        self.is_over = False  # abandoned: its requests are refused
        self.has_returned = False
        self.result: Any = None
        self.error: BaseException | None = None
        self.waiter: asyncio.Future[None] | None = None
        self.late: Late | None = None

    @property
    def described(self) -> str:
        """Its function and call, for log messages."""
        request = self.call.request
        return f"{self.name} of {request.target} {request.capability} (request {request.request_id})"


class FunctionThreads:
    """The plain functions of one node that run in threads."""

    def __init__(
        self, threads: Threads, threads_max: int, twin: Callable[[Any, Ask], Any], notice: Callable[[Job], None] | None = None
    ) -> None:
        if type(threads_max) is not int or threads_max < 1:
            raise DeclarationError(f"threads_max must be a whole number of at least 1, not {shown(threads_max)}")
        self._threads = threads
        self._twin = twin  # makes the `SyncContext` of a context
        self._free = threads_max
        self._queue: deque[Callable[[], None]] = deque()
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._jobs: dict[Job, None] = {}
        self._idle: asyncio.Future[None] | None = None  # resolved when the last function has returned, for `close`
        self._notice = notice  # callback for an abandoned function

    async def run(
        self,
        call: Call,
        function: Callable[..., Any],
        arguments: dict[str, Any],
        ctx: Any = None,
        late: Late | None = None,
        waits: bool = False,
    ) -> Any:
        """Run a function in a thread for a call and return its result.

        If this is cancelled because the call has ended, it still waits until the function returns: the agent is busy until
        then. If the call still runs, or `late` is given to receive the outcome, the function is abandoned at once. With `ctx`
        the function gets a `SyncContext`; `waits` is True if it uses one that it has from elsewhere.
        """
        await self._place()
        job = Job(call, name_of(function))
        given = () if ctx is None else (self._twin(ctx, partial(self._ask, job)),)
        variables = copy_context()
        work = partial(variables.run, partial(function, *given, **arguments))
        self._jobs[job] = None
        self._threads.start(partial(self._do, job, work, variables), waits=waits or ctx is not None)
        is_cancelled = False
        try:
            while not job.has_returned:
                job.waiter = self._loop.create_future()
                try:
                    await job.waiter
                except asyncio.CancelledError:
                    is_cancelled = True
                    if late is not None or call.state is RUNNING:
                        job.late = late
                        raise
                    self._leave_behind(job)
        finally:
            self._leave_behind(job)
        if job.error is not None:
            raise asyncio.CancelledError if is_cancelled else job.error
        if not inspect.isawaitable(job.result):
            return job.result  # if the call has ended, it is recorded as late
        return await _unless(job.result, is_cancelled)

    def runs(self, call: Call) -> bool:
        """Return whether a function of a call runs in a thread."""
        return any(job.call is call for job in self._jobs)

    async def close(self, wait_s: float) -> None:
        """Wait at most `wait_s` for running functions; log those that are abandoned."""
        if self._jobs and wait_s > 0:
            self._idle = self._loop.create_future()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._idle
        for job in tuple(self._jobs):
            log.warning("%s still runs in a thread, which nothing can stop; the node closes without it", job.described)
            job.late = None  # its outcome cannot be recorded: the store is about to close
            self._returned(job, None, asyncio.CancelledError())
        self._threads.close()

    # --- in the thread ---

    def _do(self, job: Job, work: Callable[[], Any], variables: Variables) -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = work()
        except (StopIteration, *ENDINGS) as raised:  # no future can carry the first; Ctrl-C reaches the main thread alone
            error = RuntimeError(f"{job.name} raised {type(raised).__name__}")
            error.__cause__ = raised
        except BaseException as raised:  # noqa: BLE001  the thread boundary
            error = raised
        if forked.is_child():
            forked.leave(error)
        with suppress(RuntimeError):  # the loop has been closed: no waiter is left
            self._loop.call_soon_threadsafe(self._returned, job, result, error, context=variables)

    def _ask(self, job: Job, make: Callable[[], Any]) -> Any:
        """Run `make` in the loop for a function and return its result; a coroutine is awaited first."""
        if threading.get_ident() == self._loop_thread:  # a coroutine that the function returned: it runs in the loop
            return make()
        if job.is_over or forked.is_child():
            raise _ended(job)
        answer = Answer()
        job.answers[answer] = None
        try:
            self._loop.call_soon_threadsafe(self._serve, job, answer, make, context=copy_context())
        except RuntimeError:
            raise _ended(job) from None
        self._threads.wait(answer.gate)
        if answer.error is not None:
            raise answer.error
        return answer.value

    # --- in the loop ---

    def _serve(self, job: Job, answer: Answer, make: Callable[[], Any]) -> None:
        if job.is_over:
            self._answer(job, answer, None, _ended(job))
            return
        try:
            value = make()
        except BaseException as raised:  # noqa: BLE001  it is the function's to deal with
            self._answer(job, answer, None, raised)
            return
        if not inspect.iscoroutine(value):
            self._answer(job, answer, value, None)
            return
        job.waiting += 1
        if job.waiting == 1:
            self._give_up_place(job)
        answer.task = self._loop.create_task(value)
        answer.task.add_done_callback(partial(self._asked, job, answer))

    def _asked(self, job: Job, answer: Answer, task: asyncio.Task[Any]) -> None:
        error = _ended(job) if task.cancelled() else task.exception()
        value = None if error is not None else task.result()
        job.waiting -= 1
        if job.waiting or job.is_over:
            self._answer(job, answer, value, error)
        else:
            self._take(partial(self._go_on, job, answer, value, error))

    def _go_on(self, job: Job, answer: Answer, value: Any, error: BaseException | None) -> None:
        job.has_place = True
        if job.has_returned:  # it was abandoned while it waited for a slot
            self._give_up_place(job)
        self._answer(job, answer, value, error)

    def _answer(self, job: Job, answer: Answer, value: Any, error: BaseException | None) -> None:
        if answer in job.answers:  # else it was already refused because its call has ended
            del job.answers[answer]
            answer.value, answer.error = value, error
            self._threads.go_on(answer.gate)

    def _leave_behind(self, job: Job) -> None:
        """Abandon a function: its call or attempt has ended. Refuse its pending requests."""
        if job.is_over:
            return
        job.is_over = True
        for answer in tuple(job.answers):
            self._answer(job, answer, None, _ended(job))
            if answer.task is not None:
                answer.task.cancel()
        if self._notice is not None and not job.has_returned:
            self._notice(job)

    def _returned(self, job: Job, result: Any, error: BaseException | None) -> None:
        if job.has_returned:  # the node closed without it
            return
        del self._jobs[job]
        was_over = job.is_over
        job.result, job.error, job.has_returned = result, error, True
        self._leave_behind(job)
        if job.has_place:
            self._give_up_place(job)
        if was_over and job.late is not None:
            job.late(result, error)
        if job.waiter is not None and not job.waiter.done():
            job.waiter.set_result(None)
        if self._idle is not None and not self._jobs and not self._idle.done():
            self._idle.set_result(None)

    # --- places ---

    async def _place(self) -> None:
        if self._free > 0:
            self._free -= 1
            return
        waiter = self._loop.create_future()
        self._take(partial(_release, waiter, self._give))
        if stuck := [job.described for job in self._jobs if job.is_over]:
            log.warning("all threads are busy; left behind by ended calls and still running: %s", ", ".join(stuck))
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():  # it was given one in the same step
                self._give()
            raise

    def _take(self, then: Callable[[], None]) -> None:
        """Take a slot and call `then`, at once or when a slot is free."""
        if self._free > 0:
            self._free -= 1
            then()
        else:
            self._queue.append(then)

    def _give(self) -> None:
        if self._queue:
            self._queue.popleft()()
        else:
            self._free += 1

    def _give_up_place(self, job: Job) -> None:
        job.has_place = False
        self._give()


async def _unless(awaitable: Awaitable[Any], is_cancelled: bool) -> Any:
    if is_cancelled:
        if inspect.iscoroutine(awaitable):
            awaitable.close()
        raise asyncio.CancelledError
    return await awaitable


def _release(waiter: asyncio.Future[None], give: Callable[[], None]) -> None:
    if waiter.done():  # the waiter was cancelled
        give()
    else:
        waiter.set_result(None)


def _ended(job: Job) -> RefusedError:
    return RefusedError(f"the call {job.call.request.request_id} has ended", code="CALL_CANCELLED")
