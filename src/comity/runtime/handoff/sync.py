"""The calls as ContextCore writes them: without `await`, but for watching, which is an async iterator in any loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Coroutine, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from comity.core.envelope import ExpectedOutput, Priority
from comity.core.handoff import LEASE_MS, Entry, Handoff
from comity.runtime.handoff.handoffs import TIMEOUT_MS
from comity.runtime.handoff.manager import AsyncHandoffManager
from comity.runtime.handoff.receiver import Arrivals, AsyncHandoffReceiver
from comity.runtime.sync import LoopThread

Result = TypeVar("Result")
Twin = TypeVar("Twin", AsyncHandoffManager, AsyncHandoffReceiver)


class _Sync(Generic[Twin]):
    """Runs the async twin in a thread of its own, from the first call until it is closed or the program ends."""

    def __init__(self, twin: Twin) -> None:
        self._twin: Twin = twin
        self._thread: LoopThread | None = None

    def __enter__(self) -> Self:
        self._run(self._open())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End it."""
        if self._thread is not None:
            self._run(self._twin.close())
            self._thread.stop()
            self._thread = None

    async def _open(self) -> None:
        await self._twin.desk()

    def _running(self) -> LoopThread:
        if self._thread is None:
            self._thread = LoopThread()
        return self._thread

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self._running().run(work)


class HandoffManager(_Sync[AsyncHandoffManager]):
    """Hands work off on behalf of an agent and one user.

    manager = HandoffManager(project_id="checkout-service", agent_id="orchestrator")
    handoff_id = manager.create_handoff(to_agent="o11y", capability_id="investigate_error", task="Find the root cause")
    result = manager.await_result(handoff_id)
    """

    def __init__(
        self,
        project_id: str = "",
        agent_id: str | None = None,
        *,
        store: str | Path | None = None,
        user_id: str | None = None,
        tenant_id: str = "default",
        session_id: str | None = None,
        **more: Any,
    ) -> None:
        """Hand off for an agent and a user; takes what the async twin takes, but for a node."""
        super().__init__(
            AsyncHandoffManager(
                project_id, agent_id, store=store, user_id=user_id, tenant_id=tenant_id, session_id=session_id, **more
            )
        )

    def create_handoff(
        self,
        to_agent: str | None = None,
        capability_id: str = "",
        task: str = "",
        inputs: Mapping[str, Any] | None = None,
        expected_output: Mapping[str, Any] | ExpectedOutput | None = None,
        priority: Priority | str = "normal",
        timeout_ms: int = TIMEOUT_MS,
        **more: Any,
    ) -> str:
        """Hand work off and return its id once it is durable; takes what the async twin takes."""
        return self._run(
            self._twin.create_handoff(to_agent, capability_id, task, inputs, expected_output, priority, timeout_ms, **more)
        )

    def receive(self, document: Any) -> str:
        """Hand off what a contextcore message says, and return its id."""
        return self._run(self._twin.receive(document))

    def get_handoff_status(self, handoff_id: str) -> Handoff:
        """Return a handoff as it stands."""
        return self._run(self._twin.get_handoff_status(handoff_id))

    def await_result(self, handoff_id: str, timeout_ms: int | None = None) -> Handoff:
        """Wait until a handoff has ended, or for so long, and return it as it stands then."""
        return self._run(self._twin.await_result(handoff_id, timeout_ms))

    def create_and_await(self, to_agent: str | None = None, capability_id: str = "", task: str = "", **more: Any) -> Handoff:
        """Hand work off and wait for its end."""
        return self._run(self._twin.create_and_await(to_agent, capability_id, task, **more))

    def get_result(self, handoff_id: str) -> Any:
        """Return the result of a completed handoff; raise the error class that says why there is none."""
        return self._run(self._twin.get_result(handoff_id))

    def get_result_from_trace(self, trace_id: str) -> Any:
        """Return the result that is in a trace."""
        return self._run(self._twin.get_result_from_trace(trace_id))

    def events(self, handoff_id: str, after: int = 0) -> Iterator[Entry]:
        """Yield what happens to a handoff until it has ended."""
        yield from _each(self._running(), self._twin.events(handoff_id, after))

    def provide_input(self, handoff_id: str, answer: Any) -> Handoff:
        """Answer what the receiver asked."""
        return self._run(self._twin.provide_input(handoff_id, answer))

    def cancel(self, handoff_id: str, reason: str = "it is no longer needed") -> Handoff:
        """Withdraw a handoff, whoever has it."""
        return self._run(self._twin.cancel(handoff_id, reason))

    def list_handoffs(self, **which: Any) -> list[Handoff]:
        """Return this user's handoffs, newest first."""
        return self._run(self._twin.list_handoffs(**which))

    def dead_letters(self, *, limit: int = 100) -> list[Handoff]:
        """Return the handoffs that ended without a result though nobody withdrew them; each says why."""
        return self._run(self._twin.dead_letters(limit=limit))


class HandoffReceiver(_Sync[AsyncHandoffReceiver]):
    """Takes work for an agent, and work that anybody with one of its capabilities may do.

    receiver = HandoffReceiver(agent_id="o11y", capabilities=["investigate_error"])
    async for handoff in receiver.watch_handoffs():      # or: for handoff in receiver.handoffs()
        receiver.accept(handoff.id)
        receiver.complete(handoff.id, result=...)
    """

    def __init__(
        self,
        agent_id: str,
        capabilities: Collection[str] = (),
        *,
        store: str | Path | None = None,
        tenant_id: str = "default",
        lease_ms: int = LEASE_MS,
    ) -> None:
        super().__init__(AsyncHandoffReceiver(agent_id, capabilities, store=store, tenant_id=tenant_id, lease_ms=lease_ms))

    def watch_handoffs(self) -> AsyncIterator[Handoff]:
        """Yield handoffs as they come, most urgent first, in the caller's own event loop."""
        source = self._twin.watch_handoffs()
        return Arrivals(lambda: asyncio.wrap_future(self._running().submit(_following(source))))

    def handoffs(self) -> Iterator[Handoff]:
        """Yield handoffs as they come, for code without an event loop."""
        yield from _each(self._running(), self._twin.watch_handoffs())

    def poll_handoffs(self, most: int = 100) -> list[Handoff]:
        """Return what waits for this receiver now, without taking anything."""
        return self._run(self._twin.poll(most))

    def take(self, most: int = 1) -> list[Handoff]:
        """Wait for work and return it, accepted."""
        return self._run(self._twin.take(most))

    def accept(self, handoff_id: str) -> Handoff:
        """Take a handoff. Raises `RefusedError` HANDOFF_TAKEN if another receiver was first."""
        return self._run(self._twin.accept(handoff_id))

    def reject(self, handoff_id: str, reason: str) -> Handoff:
        """Say that it is not for this receiver; only before it is accepted."""
        return self._run(self._twin.reject(handoff_id, reason))

    def progress(self, handoff_id: str, data: Any) -> None:
        """Tell whoever handed it off how far it is."""
        self._run(self._twin.progress(handoff_id, data))

    def request_input(self, handoff_id: str, question: str, **more: Any) -> Any:
        """Ask whoever handed it off, wait, and return the answer."""
        return self._run(self._twin.request_input(handoff_id, question, **more))

    def complete(self, handoff_id: str, result: Any = None, result_trace_id: str | None = None, **more: Any) -> Handoff:
        """End it with a result. Raises `TargetError` if that is not what was asked for; then it goes on."""
        return self._run(self._twin.complete(handoff_id, result, result_trace_id, **more))

    def fail(self, handoff_id: str, reason: str, **more: Any) -> Handoff:
        """End it without a result."""
        return self._run(self._twin.fail(handoff_id, reason, **more))

    def release(self, handoff_id: str, reason: str = "its receiver gave it back") -> None:
        """Give it back; the next receiver may have it."""
        self._run(self._twin.release(handoff_id, reason))


async def _following(source: AsyncIterator[Result]) -> Result:
    return await anext(source)


def _each(thread: LoopThread, source: AsyncIterator[Result]) -> Iterator[Result]:
    while True:
        try:
            yield thread.run(_following(source))
        except StopAsyncIteration:
            return
