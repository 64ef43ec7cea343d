"""`ctx` of a plain function, which runs in a thread: the methods of `Context`, without `await`.

Each method runs in the event loop while the function's thread blocks; the loop is not blocked.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Protocol, Unpack, cast, overload

from comity.core.call.limits import Limits
from comity.core.envelope.envelope import Reply, Request
from comity.ports.ambient import standing_at
from comity.runtime.call.binding import AnyContext, Bound, Given, Result, Result_co
from comity.runtime.call.context import Context
from comity.runtime.call.options import CallOptions

if TYPE_CHECKING:
    from comity.core.guidance.guidance import Guidance
    from comity.ports import Clock
    from comity.runtime.call.text_stream import TextStream
    from comity.runtime.session.view import MemoryView, SessionView
    from comity.runtime.tracing.recorder import OpenSpan


class Ask(Protocol):
    """Runs a function in the event loop on behalf of a thread."""

    def __call__(self, make: Callable[[], Any], /) -> Any:
        """Call `make` in the loop and return its result; a coroutine is awaited first."""
        ...


class OnLoop:
    """A proxy of an object for a thread: attributes are read and methods run in the event loop."""

    __slots__ = ("_ask", "_target")

    def __init__(self, target: object, ask: Ask) -> None:
        self._target = target
        self._ask = ask

    def __getattr__(self, name: str) -> Any:
        target, ask = self._target, self._ask
        found = ask(lambda: getattr(target, name))
        if not callable(found):
            return found

        @functools.wraps(found)
        def method(*given: Any, **more: Any) -> Any:
            return ask(lambda: found(*given, **more))

        return method


@overload
def _twin(
    method: Callable[Concatenate[Context, Given], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[SyncContext, Given], Result]: ...
@overload
def _twin(method: Callable[Concatenate[Context, Given], Result]) -> Callable[Concatenate[SyncContext, Given], Result]: ...
def _twin(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a blocking twin of a `Context` method: it runs in the loop and returns the awaited result."""

    @functools.wraps(method)
    def twin(self: SyncContext, /, *given: Any, **more: Any) -> Any:
        return self._ask(lambda: method(self._ctx, *given, **more))

    return twin


class StartedCall(Generic[Result_co]):
    """A call that a plain function has started; `reply` waits for it."""

    __slots__ = ("_ask", "_task")

    def __init__(self, task: asyncio.Task[Reply[Result_co]], ask: Ask) -> None:
        self._task = task
        self._ask = ask

    def reply(self) -> Reply[Result_co]:
        """Wait for the reply and return it."""
        return cast("Reply[Result_co]", self._ask(lambda: _ended(self._task)))


async def _ended(task: asyncio.Task[Reply]) -> Reply:
    return await asyncio.shield(task)


class SyncContext:
    """Given to a plain function whose first parameter is `ctx`: the blocking twin of `Context`.

    Once its call has ended, every use raises `RefusedError` CALL_CANCELLED: a thread cannot be cancelled otherwise.
    """

    __slots__ = ("_ask", "_ctx")

    def __init__(self, ctx: Context, ask: Ask) -> None:
        self._ctx = ctx
        self._ask = ask

    def __repr__(self) -> str:
        return f"Sync{self._ctx!r}"

    @property
    def request(self) -> Request:
        """The request being served."""
        return self._ctx.request

    @property
    def session(self) -> SessionView:
        """The session of this call: what is known already; this agent can add what it finds."""
        return cast("SessionView", OnLoop(self._ask(lambda: self._ctx.session), self._ask))

    @property
    def memory(self) -> MemoryView:
        """What is remembered of the user across sessions; this agent can add what it finds out."""
        return cast("MemoryView", OnLoop(self._ask(lambda: self._ctx.memory), self._ask))

    @property
    def limits(self) -> Limits:
        """What is left from here: hops below, further parallel calls, milliseconds, and the tree's calls and tokens."""
        return cast("Limits", self._ask(lambda: self._ctx.limits))

    @property
    def state(self) -> dict[str, Any]:
        """The agent's private state at this address. What it holds when the call settles is saved with the settlement."""
        return cast("dict[str, Any]", self._ask(lambda: self._ctx.state))

    @property
    def guidance(self) -> Guidance:
        """The node's current guidance for its agents; empty if it has none."""
        return cast("Guidance", self._ask(lambda: self._ctx.guidance))

    @property
    def token(self) -> str:
        """A signed token with which an agent outside this process may call back on behalf of this call."""
        return cast("str", self._ask(lambda: self._ctx.token))

    @property
    def traceparent(self) -> str:
        """Where this call stands in its trace, as the W3C header."""
        return cast("str", self._ask(lambda: self._ctx.traceparent))

    @property
    def tracestate(self) -> str:
        """What other tracing systems sent along, to be passed on unchanged."""
        return cast("str", self._ask(lambda: self._ctx.tracestate))

    @property
    def project_id(self) -> str:
        """The project this call works for: the node's (`COMITY_PROJECT`), else the tenant."""
        return cast("str", self._ask(lambda: self._ctx.project_id))

    @property
    def clock(self) -> Clock:
        """The node's clock; in a simulation its time is the simulation's."""
        return cast("Clock", self._ask(lambda: self._ctx.clock))

    @property
    def left_ms(self) -> int:
        """Milliseconds until the deadline."""
        return cast("int", self._ask(lambda: self._ctx.left_ms))

    @property
    def tokens_left(self) -> int | None:
        """Tokens this call may still use; None without a limit."""
        return cast("int | None", self._ask(lambda: self._ctx.tokens_left))

    if TYPE_CHECKING:

        @overload
        def call(
            self, target: str, capability: str, inputs: dict[str, Any] | None = None, **options: Unpack[CallOptions]
        ) -> Reply[Any]: ...
        @overload
        def call(self, target: Bound[Result], /, **options: Unpack[CallOptions]) -> Reply[Result]: ...
        @overload
        def call(
            self,
            target: Callable[Given, Awaitable[Reply[Result]] | Reply[Result]],
            /,
            *args: Given.args,
            **inputs: Given.kwargs,
        ) -> Reply[Result]: ...
        @overload
        def call(
            self,
            target: Callable[Concatenate[AnyContext, Given], Awaitable[Reply[Result]] | Reply[Result]],
            /,
            *args: Given.args,
            **inputs: Given.kwargs,
        ) -> Reply[Result]: ...
        @overload
        def call(
            self, target: Callable[Given, Awaitable[Result]], /, *args: Given.args, **inputs: Given.kwargs
        ) -> Reply[Result]: ...
        @overload
        def call(
            self,
            target: Callable[Concatenate[AnyContext, Given], Awaitable[Result]],
            /,
            *args: Given.args,
            **inputs: Given.kwargs,
        ) -> Reply[Result]: ...
        @overload
        def call(self, target: Callable[Given, Result], /, *args: Given.args, **inputs: Given.kwargs) -> Reply[Result]: ...
        @overload
        def call(
            self, target: Callable[Concatenate[AnyContext, Given], Result], /, *args: Given.args, **inputs: Given.kwargs
        ) -> Reply[Result]: ...
        def call(self, target: Any, *args: Any, **more: Any) -> Any:  # type: ignore[misc]
            """Call another agent and wait for its reply; see `Context.call`."""

    else:
        call = _twin(Context.call)

    hand_off = _twin(Context.hand_off)
    use_tool = _twin(Context.use_tool)
    insight = _twin(Context.insight)
    insights = _twin(Context.insights)
    answer_question = _twin(Context.answer_question)
    history = _twin(Context.history)
    guidance_text = _twin(Context.guidance_text)
    note = _twin(Context.note)
    progress = _twin(Context.progress)
    report_usage = _twin(Context.report_usage)

    @overload
    def start_call(
        self, target: str, capability: str, inputs: dict[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> StartedCall[Any]: ...
    @overload
    def start_call(self, target: Bound[Result], /, **options: Unpack[CallOptions]) -> StartedCall[Result]: ...
    @overload
    def start_call(
        self, target: Callable[Given, Awaitable[Reply[Result]] | Reply[Result]], /, *args: Given.args, **inputs: Given.kwargs
    ) -> StartedCall[Result]: ...
    @overload
    def start_call(
        self,
        target: Callable[Concatenate[AnyContext, Given], Awaitable[Reply[Result]] | Reply[Result]],
        /,
        *args: Given.args,
        **inputs: Given.kwargs,
    ) -> StartedCall[Result]: ...
    @overload
    def start_call(
        self, target: Callable[Given, Awaitable[Result]], /, *args: Given.args, **inputs: Given.kwargs
    ) -> StartedCall[Result]: ...
    @overload
    def start_call(
        self, target: Callable[Concatenate[AnyContext, Given], Awaitable[Result]], /, *args: Given.args, **inputs: Given.kwargs
    ) -> StartedCall[Result]: ...
    @overload
    def start_call(
        self, target: Callable[Given, Result], /, *args: Given.args, **inputs: Given.kwargs
    ) -> StartedCall[Result]: ...
    @overload
    def start_call(
        self, target: Callable[Concatenate[AnyContext, Given], Result], /, *args: Given.args, **inputs: Given.kwargs
    ) -> StartedCall[Result]: ...
    def start_call(self, target: Any, *args: Any, **more: Any) -> StartedCall[Any]:  # type: ignore[misc]
        """Begin a call and return at once; takes what `call` takes. `gather` waits for several of them."""
        begin = functools.partial(self._ctx.call, target, *args, **more)
        return StartedCall(self._ask(lambda: asyncio.get_running_loop().create_task(begin())), self._ask)

    def gather(self, *calls: StartedCall[Result] | Reply[Result]) -> list[Reply[Result]]:
        """Return the replies to calls that `start_call` began, in order; a call that fails does not stop the others."""
        for place, one in enumerate(calls, 1):
            if not isinstance(one, StartedCall | Reply):
                what = f"argument {place} is a {type(one).__name__}"
                raise TypeError(f"ctx.gather takes calls, as in ctx.gather(ctx.start_call(…), ctx.start_call(…)); {what}")
        return [one.reply() if isinstance(one, StartedCall) else one for one in calls]

    def once(self, target: str, capability: str, make: Callable[[], Reply[Result]]) -> Reply[Result]:
        """Run `make` as a durable step and return its reply; on replay return the recorded one. See `Context.once`."""
        ctx = self._ctx
        return cast("Reply[Result]", self._ask(lambda: ctx.once(target, capability, lambda: ctx._in_thread(make))))  # noqa: SLF001

    def write(self) -> TextStream:
        """Begin a text that watchers can follow; on a timeout the text so far is the reply's partial data."""
        return cast("TextStream", OnLoop(self._ask(self._ctx.write), self._ask))

    @contextmanager
    def span(self, name: str, *, kind: str = "internal", attributes: Mapping[str, Any] | None = None) -> Iterator[OpenSpan]:
        """Record the block as a child span of this call. Send its `headers` with outgoing requests."""
        span = self._ctx.span(name, kind=kind, attributes=attributes)
        run = copy_context().run  # the span must exit in the same contextvars context as it entered
        opened = self._ask(lambda: run(span.__enter__))
        try:
            with standing_at(opened.context):
                yield opened
        except BaseException as raised:
            ended = functools.partial(run, span.__exit__, type(raised), raised, raised.__traceback__)
            self._ask(ended)
            raise
        self._ask(lambda: run(span.__exit__, None, None, None))
