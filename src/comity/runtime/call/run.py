"""Runs a capability: tasks, implementations in order, retries of transient errors, and reading the result into a reply."""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import Context, copy_context
from types import coroutine
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from msgspec import UNSET, Struct

from comity.core.agent.agent import Implementation
from comity.core.agent.disclosure import spoken
from comity.core.agent.running import LOOP, THREAD
from comity.core.call.limits import REPLY_BYTES_MAX, WARNINGS_MAX
from comity.core.call.machine import RUNNING
from comity.core.call.unfinished import warnings_of
from comity.core.document.payload import PayloadError, Problem, check_repeats, pack, unpack, unpack_long
from comity.core.document.slices import ONE_GO_BYTES, Sliced, in_one_go, whole
from comity.core.envelope.confidence import Band, at_most
from comity.core.envelope.envelope import NEEDS_INPUT, PARTIAL, SUCCESS, Error, Reply, Status, artifact_problems, copied
from comity.core.envelope.reserved import VERDICTS, passed_on, problem_of, reserved_error, without_marks
from comity.core.units import MS_PER_S, NS_PER_MS
from comity.errors import CallerError, ComityError, RefusedError, UnavailableError, family
from comity.ports import Clock, Ids
from comity.ports.observer import Observer
from comity.runtime.agent import forked
from comity.runtime.agent.threads import FunctionThreads
from comity.runtime.agent.workers import RunInProcess
from comity.runtime.call.failures import classify, hidden, is_fault, message_of
from comity.runtime.call.pace import user_of
from comity.runtime.call.slices import LONG_BYTES, Slices
from comity.runtime.call.tasks import PASSES, is_own
from comity.runtime.call.tools import Paused

if TYPE_CHECKING:
    from comity.runtime.call.call import Call
    from comity.runtime.session.privacy import Answers

Code = Coroutine[Any, Any, None]
Batch = deque[tuple["Call", Context]]
_NOTHING_RAN: Final = Error.of("TARGET_FAILED", "no implementation could run")
WRITTEN_BYTES_LEAST: Final = 256  # smaller data is encoded again instead of keeping its JSON
STANDS_IN: Final = "The usual source was not available. This answer comes from a substitute and may be less exact or older."


class Batches:
    """Starts the code of calls: calls that start in one turn of the loop share a task until one of them suspends.

    Most calls of a busy node never suspend, and a task of its own costs such a call a tenth of its time. A call that suspends
    keeps the task it runs in; the rest of the batch continues in a new task. Each call has its own contextvars, copied from the
    code that started it. A cancelled task starts no further call. See ADR 149.
    """

    __slots__ = ("_handed", "_holds", "_latest", "_loop", "_run", "_task", "coming")

    def __init__(self, loop: asyncio.AbstractEventLoop, run: Callable[[Call], Code]) -> None:
        self._loop = loop
        self._run = run
        self._latest: Batch = deque()  # accepts calls until its task begins
        self._task: asyncio.Task[None] | None = None  # the task of `_latest`
        self.coming: dict[asyncio.Task[None], None] = {}  # tasks that have not begun
        self._holds = False  # `hold` was called: the next call that starts goes to `_handed`
        self._handed: Handed | None = None

    def start(self, call: Call) -> None:
        """Run the code of a call in the next turn of the loop; after `hold`, keep it for `handed` instead."""
        if self._holds:
            self._holds, self._handed = False, Handed(call, copy_context())
            return
        self._add(call, copy_context())

    def _add(self, call: Call, context: Context) -> None:
        batch = self._latest
        batch.append((call, context))
        if self._task is None or self._task.done():  # done without having begun: the program cancelled it
            self._task = self._begin(batch)

    def hold(self) -> None:
        """Let the code that starts the next call run it in its own task; `handed` returns it and ends this."""
        self._holds = True

    def handed(self, call: object) -> Handed | None:
        """Return `call` if it started since `hold`: awaiting it runs its code in this task. Start any other as usual."""
        handed, self._handed, self._holds = self._handed, None, False
        if handed is None or handed.call is call:
            return handed
        self._add(handed.call, handed.context)
        return None

    def _begin(self, batch: Batch) -> asyncio.Task[None]:
        task = self._loop.create_task(self._work(batch))
        self.coming[task] = None
        return task

    async def _work(self, batch: Batch) -> None:
        if batch is self._latest:
            self._latest, self._task = deque(), None
        task = cast("asyncio.Task[None]", asyncio.current_task())
        del self.coming[task]
        try:
            while True:
                call, context = batch.popleft()
                call.task = task
                task.set_name(call.request.request_id)  # by which the watchdog finds the call
                code = self._run(call)
                try:
                    waits_for = context.run(code.send, None)
                except StopIteration:
                    if not batch or task.cancelling():
                        return
                else:
                    break
        finally:  # also on KeyboardInterrupt or SystemExit
            if batch:
                self._begin(batch)
        await self._go_on(call, code, context, waits_for)

    @coroutine
    def _go_on(self, call: Call, code: Code, context: Context, waits_for: Any) -> Generator[Any, Any, None]:
        """Run suspended code to its end, each step in its contextvars; first run the code of a child call that it awaits."""
        try:
            while True:
                if type(waits_for) is Handed:
                    handed = waits_for
                    suspended = self._run_handed(call, code, context, handed)
                    if suspended is not None:  # the child keeps this task; its caller waits in a new one
                        self._move(call, code, context)
                        call, code, context, waits_for = handed.call, *suspended
                        continue
                    # The child ended or paused its caller, or cancelled the shared task.
                    if call.state is not RUNNING or cast("asyncio.Task[None]", call.task).cancelling():
                        self._move(call, code, context)
                        return
                    waits_for = context.run(code.send, None)
                    continue
                try:
                    yield waits_for
                except BaseException as raised:  # noqa: BLE001  for the code to handle
                    waits_for = context.run(code.throw, raised)
                else:
                    waits_for = context.run(code.send, None)
        except StopIteration:
            return

    def _run_handed(self, by: Call, by_code: Code, by_context: Context, handed: Handed) -> tuple[Code, Context, Any] | None:
        """Run a child call's code in its caller's task; if it suspends, return its code, contextvars and awaited future."""
        call, task = handed.call, cast("asyncio.Task[None]", asyncio.current_task())
        by.task, call.task = None, task  # if the child ends its caller, the caller is cancelled in `_go_on`
        task.set_name(call.request.request_id)
        code = self._run(call)
        try:
            waits_for = handed.context.run(code.send, None)
        except StopIteration:
            by.task = task
            task.set_name(by.request.request_id)
            return None
        except BaseException:  # KeyboardInterrupt or SystemExit
            self._move(by, by_code, by_context)
            raise
        return code, handed.context, waits_for

    def _move(self, call: Call, code: Code, context: Context) -> None:
        """Continue suspended code in a new task."""
        moved = self._moved(call, code, context)
        moved.send(None)  # up to its first await, so that a cancellation before the task begins still reaches the code
        call.task = self._loop.create_task(moved, name=call.request.request_id)
        if call.state is not RUNNING:
            call.task.cancel()

    async def _moved(self, call: Call, code: Code, context: Context) -> None:
        await self._go_on(call, code, context, None)


class Handed(Struct, frozen=True, eq=False):
    """A started child call, for its caller to run in the caller's own task by awaiting this object."""

    call: Call
    context: Context

    def __await__(self) -> Generator[Any, Any, None]:
        yield self


class Execution:
    """Runs the implementations of capabilities; one per node."""

    __slots__ = ("_clock", "_hide", "_ids", "_observer", "_run_in_process", "_slices", "_threads")

    def __init__(
        self,
        clock: Clock,
        ids: Ids,
        threads: FunctionThreads,
        run_in_process: RunInProcess,
        hide: Answers | None,
        slices: Slices,
        observer: Observer | None = None,
    ) -> None:
        self._observer = observer
        self._threads = threads
        self._slices = slices
        self._hide = hide
        self._clock = clock
        self._ids = ids
        self._run_in_process = run_in_process

    async def run(self, call: Call, ctx: Any) -> Reply:
        """Run implementations in order and return the first reply that is no failure, marked degraded if from a fallback."""
        error = _NOTHING_RAN
        failed: Reply | None = None  # a failed reply that an implementation returned, not raised
        is_told = False  # whether the agent raised a `ComityError`, whose text the user may see
        implementations = call.capability.implementations
        for implementation in implementations:
            is_first = implementation is implementations[0]
            if is_first and call.skips_primary:
                continue
            failures, was_told = 0, False
            while True:
                try:
                    if self._observer is not None:
                        await self._observer.runs(call)
                    result = await self._invoke(call, ctx, implementation)
                    read = read_result(call, result, self._clock.now_ns(), self._hide)
                    reply: Reply = read if isinstance(read, Reply) else await self._slices.run(read, user_of(call.request))
                    failed = reply
                    if reply.status is NEEDS_INPUT and (known := ctx.session.answers_to(reply)):
                        if not was_told and _fill_in(call, known):
                            was_told = True
                            continue
                        reply = _with_known(reply, known)
                    if reply.error is None or not is_fault(reply.error):
                        return reply if is_first else _instead(reply, call, implementation, ctx)
                    error = reply.error
                except (*PASSES, Paused) as raised:
                    if not is_own(raised, call.task):
                        raise
                    error, failed, is_told = classify(raised, call, self._hide), None, issubclass(type(raised), ComityError)
                except BaseException as raised:  # noqa: BLE001  the task boundary: an agent's failure is a value to its caller
                    if forked.is_child():
                        forked.leave(raised)
                    error, failed, is_told = classify(raised, call, self._hide), None, issubclass(type(raised), ComityError)
                failures += 1
                pause_ms = self._pause_ms(call, implementation, error, failures)
                if pause_ms is None:
                    break
                await asyncio.sleep(pause_ms / MS_PER_S)
            if is_first:
                call.primary = error
            if issubclass(family(error.code), (CallerError, RefusedError)):
                break  # a bad request or a refusal: another implementation would get the same error
        if failed is not None:
            return failed
        if self._hide is not None:
            error = hidden(self._hide, call, error)
        return Reply(status=Status.ERROR, error=error, message=message_of(error, is_told=is_told))

    def _invoke(self, call: Call, ctx: Any, implementation: Implementation) -> Awaitable[Any]:
        function = implementation.function
        if not implementation.is_async or implementation.run_in is not LOOP or implementation.timeout_ms is not None:
            running = self._begin(call, ctx, implementation, function)
            timeout_ms = implementation.timeout_ms
            return running if timeout_ms is None else _within(running, implementation.name, timeout_ms)
        if call.capability.wants_context[function]:
            return function(ctx, **call.arguments)  # type: ignore[no-any-return]
        return function(**call.arguments)  # type: ignore[no-any-return]

    def _begin(self, call: Call, ctx: Any, implementation: Implementation, function: Callable[..., Any]) -> Awaitable[Any]:
        if implementation.run_in is not LOOP:
            if implementation.run_in is THREAD:
                given = ctx if call.capability.wants_context[function] else None
                return self._threads.run(call, function, call.arguments, given)
            return self._run_in_process(function, call.arguments)
        if not implementation.is_async:
            return _plain(function, ctx if call.capability.wants_context[function] else None, call.arguments)
        if call.capability.wants_context[function]:
            return function(ctx, **call.arguments)  # type: ignore[no-any-return]
        return function(**call.arguments)  # type: ignore[no-any-return]

    def _pause_ms(self, call: Call, implementation: Implementation, error: Error, failures: int) -> float | None:
        if not error.retryable:
            return None
        left_ms = call.request.deadline_at - self._clock.now_ns() / NS_PER_MS
        return implementation.retry.pause_ms(failures, left_ms=left_ms, chance=self._ids.chance())


def _fill_in(call: Call, known: dict[str, Any]) -> bool:
    """Fill missing inputs from facts of the session; return whether the call can run once more with them.

    Only if the call has made no calls and used no tools, which would be repeated. A capability with effects waits for the
    user's own answer, since facts often come from agents.
    """
    if call.calls_made or call.tools_used or call.capability.effects:
        return False
    given = unpack(call.request.body)
    takes = call.capability.inputs.json_schema().get("properties", {})
    new = {key: value for key, value in known.items() if key in takes and key not in given}
    for values in (new, {key: _as_number(value) for key, value in new.items()}) if new else ():
        checked = call.capability.inputs.check(msgspec.json.encode(given | values))
        if not checked.problems:
            call.arguments = checked.value
            return True
    return False


def _as_number(value: Any) -> Any:
    """Return the number that a text spells, else the value itself: facts about users are stored as text."""
    try:
        return msgspec.json.decode(value, type=int | float) if isinstance(value, str) else value
    except msgspec.MsgspecError:
        return value


def _with_known(reply: Reply, known: dict[str, Any]) -> Reply:
    """Return a `needs_input` reply with a warning that names the facts already known, so the caller can answer."""
    warning = f"known already: {', '.join(sorted(known))}"
    return msgspec.structs.replace(reply, warnings=(*reply.warnings, warning)[:WARNINGS_MAX])


async def _plain(function: Callable[..., Any], ctx: Any, arguments: dict[str, Any]) -> Any:
    """Run a function that is not `async` in the loop, and await its result if that is awaitable."""
    result = function(**arguments) if ctx is None else function(ctx, **arguments)
    return await result if inspect.isawaitable(result) else result


async def _within(running: Awaitable[Any], name: str, timeout_ms: int) -> Any:
    """Wait for an implementation. Raises `UnavailableError` after `timeout_ms`."""
    try:
        async with asyncio.timeout(timeout_ms / MS_PER_S) as timer:
            return await running
    except TimeoutError:
        if not timer.expired():  # raised by the implementation itself
            raise
        raise UnavailableError(f"{name} did not answer within {timeout_ms} ms") from None


def read_result(call: Call, value: Any, now_ns: int, hide: Answers | None) -> Reply | Sliced[Reply]:
    """Return a capability's result as a reply, its data checked and copied; as sliced work if it is long.

    Raises `PayloadError` for an invalid result.
    """
    if type(value) is not dict and isinstance(value, Reply):  # most results are dicts, for which `isinstance` is slow
        try:
            reply = copied(value)
        except PayloadError as error:
            raise PayloadError("OUTPUT_VALIDATION_FAILED", error.problems) from None
        if problems := artifact_problems(reply.artifacts):
            raise PayloadError("OUTPUT_VALIDATION_FAILED", problems)
        raw, _ = _packed(call, value.data, reply.ok)
        if hide is None:
            data = None if raw is None else _unpacked(raw, value.data)
            return complete(_said(call, reply, data), call, now_ns, data)
        work = _read_long(call, reply, raw, value.data, now_ns, hide)
        return work if len(raw or b"") > LONG_BYTES or _says_much(reply) else whole(work)
    raw, data = _packed(call, value, True)
    if raw is None:
        return complete(None, call, now_ns, None)
    if hide is None:
        return complete(None, call, now_ns, _unpacked(raw, value))
    if len(raw) > LONG_BYTES:
        return _read_long(call, None, raw, value, now_ns, hide)
    told = hide.data(call, raw) if hide.may_hold(raw) else raw
    if data is UNSET or told is not raw:
        data = unpack(told)
    if type(value) is dict and len(data) != len(value):  # two keys may have become one
        _check_outermost(raw)
    if len(told) >= WRITTEN_BYTES_LEAST:
        call.written = (data, told)
    call.ended_ns = now_ns
    return complete(None, call, now_ns, data)


def _says_much(reply: Reply) -> bool:
    """Return whether it may take long to look through a reply's words."""
    texts = (reply.message, reply.summary, reply.thought, reply.next_step_hint, *reply.warnings, *reply.new_facts)
    return sum(map(len, texts)) > LONG_BYTES or bool(reply.artifacts or reply.sources or reply.metadata)


def _read_long(call: Call, reply: Reply | None, raw: bytes | None, value: Any, now_ns: int, hide: Answers) -> Sliced[Reply]:
    data = None
    if raw is not None:
        if len(raw) > ONE_GO_BYTES:
            yield  # packing has just used a slice
        raw = yield from hide.data_sliced(call, raw)
        yield
        data = in_one_go(lambda read: _unpacked(read, value), raw)
        if WRITTEN_BYTES_LEAST <= len(raw) <= LONG_BYTES:
            call.written = (data, raw)
        yield
    if reply is not None:
        reply = yield from hide.words(call, _said(call, reply, data))
    return complete(reply, call, now_ns, data)


def _said(call: Call, reply: Reply, data: Any) -> Reply:
    """Return an agent's reply with the node's own metadata. Raises as `_own` does."""
    if call.has_answer is None and (reply.error is not None or reply.metadata or reply.status is NEEDS_INPUT):
        reply = _own(reply, data, call)  # else the node's own queue made the reply of a handoff
    if call.marks is not None:
        reply = msgspec.structs.replace(reply, metadata={**reply.metadata, **call.marks})
    return reply


def _own(reply: Reply, data: Any, call: Call) -> Reply:
    """Return an agent's reply. Raises `PayloadError` if it uses a reserved code or metadata name that the node did not give it.

    A refusal, timeout or cancellation of a child call becomes an error of the call that passes it on, since that call ran.
    """
    if what := problem_of(reply, data, call.told or ()):
        said = reply.message if reply.error is None else reply.error.message
        wrong = reserved_error(f"holds {what}", said)
        raise PayloadError(wrong.code, (Problem("reply", wrong.message),))
    changes: dict[str, Any] = {}
    if reply.metadata:
        changes["metadata"] = without_marks(reply.metadata)
    error, message = reply.error, reply.message
    if error is not None:
        if reply.status in VERDICTS:
            changes["status"] = Status.ERROR
            if message == f"{error.message}. {error.advice}":  # the node's advice to agents, not for users
                changes["message"] = spoken(error, message, is_below=True)
        changes["error"] = passed_on(error, call.request.target)
    return msgspec.structs.replace(reply, **changes)


def complete(reply: Reply | None, call: Call, now_ns: int, data: Any) -> Reply:
    """Return the reply with the ids, duration and usage of the call; for None, a plain success."""
    request = call.request
    usage = call.usage() if call.calls_below else call.used
    duration_ms = (now_ns - call.started_ns) / NS_PER_MS
    if reply is None:
        return Reply(
            status=SUCCESS,
            data=data,
            confidence=call.capability.confidence,
            usage=usage,
            request_id=request.request_id,
            duration_ms=duration_ms,
            source=request.target,
            session_id=request.session_id,
            warnings=warnings_of(call) if call.has_missed else (),  # the reply does not say so itself
        )
    return msgspec.structs.replace(
        reply,
        data=data,
        usage=usage,
        request_id=request.request_id,
        duration_ms=duration_ms,
        source=request.target,
        session_id=request.session_id,
    )


def _packed(call: Call, value: Any, is_result: bool) -> tuple[bytes | None, Any]:
    """Return data as JSON, and decoded again if its check decoded it, else `UNSET`."""
    outputs = call.capability.output_checker if is_result else None  # prepared when the inputs were checked
    if value is None and outputs is None:
        return None, None
    try:
        raw = pack(value, "data", REPLY_BYTES_MAX, type(value) is dict)
    except PayloadError as error:
        code = "OUTPUT_TOO_LARGE" if error.code == "ENVELOPE_TOO_LARGE" else "OUTPUT_VALIDATION_FAILED"
        raise PayloadError(code, error.problems) from None
    data: Any = UNSET
    if outputs is not None:
        checked = outputs.check(raw)
        if checked.problems:
            raise PayloadError("OUTPUT_VALIDATION_FAILED", checked.problems)
        if outputs.is_plain:
            data = checked.value
    if len(raw) > LONG_BYTES:
        call.reply_bytes = len(raw)
    return raw, data


def _unpacked(raw: bytes, value: Any) -> Any:
    data = unpack_long(raw)
    if type(value) is dict and len(data) != len(value):  # two keys may have become one
        _check_outermost(raw)
    return data


def _check_outermost(raw: bytes) -> None:
    try:
        check_repeats(raw, "data")
    except PayloadError as error:
        raise PayloadError("OUTPUT_VALIDATION_FAILED", error.problems) from None


def _instead(reply: Reply, call: Call, implementation: Implementation, ctx: Any) -> Reply:
    """Return the reply of a fallback implementation, marked degraded unless the fallback is declared equivalent."""
    why = "is switched off by its breaker" if call.primary is None else f"failed with {call.primary.code}"
    ctx.note(f"{implementation.name} answered; the first implementation {why}")  # for operators
    if implementation.equivalent:
        return reply
    warnings = (implementation.warning or STANDS_IN, *reply.warnings)[:WARNINGS_MAX]
    if not reply.ok or reply.confidence is None:
        return msgspec.structs.replace(reply, degraded=True, warnings=warnings)
    sure = at_most(Band.MEDIUM, reply.confidence)
    return msgspec.structs.replace(reply, status=PARTIAL, degraded=True, warnings=warnings, confidence=sure)
