"""The event loop of a simulation: its own time, an order that a seed decides, and processes that can stop at any step.

No selector, no thread, no wall clock: when nothing is ready, time jumps to the next timer. Everything a simulated process
starts carries its `Life`, so the whole of it can be cut off between two steps as `kill -9` does, or held as `SIGSTOP` does.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import random
from collections.abc import Callable
from contextvars import Context, ContextVar
from typing import Any, Final, TypeVar

from comity.testing.turns import TurnThreads, as_a_step

Result = TypeVar("Result")

# asyncio throws cancelled timers away as soon as they are many; so must a loop that replaces asyncio's.
_CANCELLED_TIMERS_MAX: Final = 100
_TASKS_MIN: Final = 256  # tasks kept before those that are done are thrown away


class Life:
    """One run of a simulated process, from its start to its crash."""

    __slots__ = ("context", "held", "is_dead", "is_paused", "name", "number", "steps_left")

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.is_dead = False
        self.is_paused = False
        self.held: list[asyncio.Handle] = []  # what became ready while it was paused
        self.steps_left = -1  # it is cut off when this many steps are done; -1: never
        self.context = Context()
        self.context.run(LIFE.set, self)

    def __str__(self) -> str:
        return f"{self.name}.{self.number}"


LIFE: ContextVar[Life | None] = ContextVar("comity_life", default=None)


class Killed(GeneratorExit):
    """Unwinds a step of a process that was cut off in the middle of it. What the unwinding does reaches no other process.

    As when a coroutine is thrown away: nothing on its way takes it for a failure of the agent that was running.
    """


class LivelockError(AssertionError):
    """More steps than the run was given: something goes round and round."""


class StuckError(AssertionError):
    """Nothing is ready and no timer is set: everything waits for something that never comes."""


class SimTask(asyncio.Task[Any]):
    """A task whose place in a set does not depend on where it lies in memory, and which knows whose it is."""

    def __init__(self, coro: Any, *, loop: SimLoop, name: str | None, context: Context | None) -> None:
        self.number = loop.next_number()  # first: asyncio puts a task into a set while it is being made
        self.life = LIFE.get() if context is None else context.get(LIFE)
        super().__init__(coro, loop=loop, name=name or f"task-{self.number}", context=context)

    def __hash__(self) -> int:
        return self.number


class SimFuture(asyncio.Future[Any]):
    """A future whose place in a set does not depend on where it lies in memory."""

    def __init__(self, *, loop: SimLoop) -> None:
        self.number = loop.next_number()
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self.number


async def _run_inline(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Run what is declared for a process of its own as a step of this one."""
    await asyncio.sleep(0)
    return function(**arguments)


class SimLoop(asyncio.BaseEventLoop):
    """See the module."""

    def __init__(self, chance: random.Random, *, is_shuffled: bool, steps_max: int) -> None:
        super().__init__()
        self.steps = 0
        self.failures: list[dict[str, Any]] = []  # the errors that no task caught
        self.on_cut: Callable[[Life], None] = kill
        self._chance = chance.random
        self._is_shuffled = is_shuffled
        self._steps_max = steps_max
        self._now_s = 0.0
        self._numbers = 0
        self._timers = 0  # in the order in which they were set; a heap of these is much faster than one of timers
        self._tasks: list[SimTask] = []  # that may still run; asyncio knows only those of all loops together
        self._tasks_max = _TASKS_MIN
        self._graveyard: list[SimTask] = []
        self.threads = TurnThreads(self)  # of plain functions
        self.run_in_process = _run_inline  # of what is declared for a process of its own

    # --- what asyncio asks of a loop ---

    def time(self) -> float:
        """Return virtual seconds since the loop was made."""
        return self._now_s

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call back after `delay` virtual seconds."""
        return self.call_at(self._now_s + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call back at a virtual time; of those for the same moment the first comes first."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        timer._scheduled = True  # type: ignore[attr-defined]
        self._timers += 1
        heapq.heappush(self._scheduled, (when, self._timers, timer))  # type: ignore[attr-defined]
        return timer

    def create_task(self, coro: Any, *, name: Any = None, context: Context | None = None, **_: Any) -> SimTask:
        """Make a task, named within this loop and not within this process."""
        task = SimTask(coro, loop=self, name=name, context=context)
        if task.life is not None and task.life.is_dead:
            self._graveyard.append(task)
            return task
        tasks = self._tasks
        tasks.append(task)
        if len(tasks) > self._tasks_max:
            tasks[:] = [one for one in tasks if not one.done()]
            self._tasks_max = max(2 * len(tasks), _TASKS_MIN)
        return task

    def create_future(self) -> SimFuture:
        """Make a future."""
        return SimFuture(loop=self)

    def run_in_executor(self, _: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Run it as one step of its own: threads live in real time."""
        return as_a_step(self, func, *args)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep an error that no task caught, unless its process is dead."""
        life = LIFE.get()
        task = context.get("task") or context.get("future")
        if isinstance(task, SimTask):
            life = task.life
        elif task is not None:
            return  # whose it was cannot be told any more; a task that waited for it has failed too
        if isinstance(context.get("exception"), Killed) or (life is not None and life.is_dead):
            return
        self.failures.append(context)

    def _asyncgen_finalizer_hook(self, agen: Any) -> None:
        """Close an abandoned generator, unless its process is dead: a killed one runs no `finally`."""
        self._asyncgens.discard(agen)  # type: ignore[attr-defined]
        life = LIFE.get()
        if not self.is_closed() and (life is None or not life.is_dead):
            self.create_task(agen.aclose())

    def next_number(self) -> int:
        """Number the tasks and futures of this loop."""
        self._numbers += 1
        return self._numbers

    def _process_events(self, event_list: Any) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Do nothing: this loop never sleeps, so no thread has to wake it."""

    def _run_once(self) -> None:
        ready = self._ready  # type: ignore[attr-defined]
        if not ready:
            self._jump()
        while ready and not self._stopping:  # type: ignore[attr-defined]
            if self._is_shuffled and len(ready) > 1:
                ready.rotate(-int(self._chance() * len(ready)))
            handle = ready.popleft()
            if handle._cancelled:
                continue
            life = handle._context.get(LIFE)
            if life is not None and not self._may_run(life, handle):
                continue
            self.steps += 1
            if self.steps > self._steps_max:
                raise LivelockError(f"{self._steps_max} steps and no end{_where_it_stands(handle)}")
            handle._run()
        handle = None

    # --- processes ---

    def _may_run(self, life: Life, handle: asyncio.Handle) -> bool:
        if life.is_dead:
            return False
        if life.is_paused:
            life.held.append(handle)
            return False
        if life.steps_left >= 0:
            life.steps_left -= 1
            if life.steps_left < 0:
                self.on_cut(life)
                return False
        return True

    def keep_dead(self, life: Life) -> None:
        """Hold on to the tasks of a dead process: a coroutine that is thrown away runs its `finally`, a killed one does not."""
        self._graveyard += [task for task in self._tasks if task.life is life and not task.done()]

    def go_on(self, life: Life) -> None:
        """Let a paused process run again; what it missed comes first."""
        life.is_paused = False
        self._ready.extend(life.held)  # type: ignore[attr-defined]
        life.held = []

    def bury(self) -> None:
        """End every task that is left, once the run is over."""
        self._graveyard += [task for task in self._tasks if not task.done()]
        self._tasks = []
        dead = Life("(over)", 0)
        dead.is_dead = True
        asyncio._set_running_loop(
            self
        )  # for `finally` blocks: without it `asyncio.gather` makes a real loop, and leaves it open
        try:
            while self._graveyard:
                task = self._graveyard.pop()
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                with contextlib.suppress(BaseException):
                    dead.context.run(_close, task.get_coro())
        finally:
            asyncio._set_running_loop(None)
        self._ready.clear()  # type: ignore[attr-defined]
        self._scheduled.clear()  # type: ignore[attr-defined]
        self.close()

    # --- time ---

    def _jump(self) -> None:
        """Move to the next timer and make ready what is due then."""
        scheduled = self._scheduled  # type: ignore[attr-defined]
        if self._timer_cancelled_count > max(_CANCELLED_TIMERS_MAX, len(scheduled) // 2):  # type: ignore[has-type]
            scheduled[:] = [one for one in scheduled if not one[2]._cancelled]
            heapq.heapify(scheduled)
            self._timer_cancelled_count = 0
        ready = self._ready  # type: ignore[attr-defined]
        while scheduled:
            when, _, timer = scheduled[0]
            if timer._cancelled:
                self._timer_cancelled_count = max(self._timer_cancelled_count - 1, 0)
            elif not ready:
                self._now_s = max(self._now_s, when)
            elif when > self._now_s:
                return
            heapq.heappop(scheduled)
            timer._scheduled = False
            if not timer._cancelled:
                ready.append(timer)
        if not ready:
            raise StuckError("nothing is ready and no timer is set: everything waits for something that never comes")


def kill(life: Life) -> None:
    """Cut a process off: none of its steps runs any more."""
    life.is_dead = True
    life.held.clear()


def _close(coroutine: Any) -> None:
    coroutine.close()


def _where_it_stands(handle: asyncio.Handle) -> str:
    """Return the place in a user's code that the task of this step waits at, for a message."""
    task = getattr(handle._callback, "__self__", None)  # type: ignore[attr-defined]
    awaited: Any = task.get_coro() if isinstance(task, SimTask) else None
    found = ""
    while (frame := getattr(awaited, "cr_frame", None)) is not None:
        if not frame.f_globals.get("__name__", "").startswith(("comity.", "asyncio.")):
            found = f"; the last was of {frame.f_code.co_name}, {frame.f_code.co_filename}:{frame.f_lineno}"
        awaited = awaited.cr_await
    return found
