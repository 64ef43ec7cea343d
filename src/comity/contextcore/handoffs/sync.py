"""The calls as ContextCore writes them: without `await`, but for watching, which is an async iterator in any loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from comity.contextcore.handoffs.manager import AsyncHandoffManager
from comity.contextcore.handoffs.receiver import AsyncHandoffReceiver
from comity.core.agent.agent import Agent
from comity.core.handoff.machine import LEASE_MS, Entry, Handoff
from comity.node.blocking import Blocking, awaited
from comity.ports import SpanSource
from comity.runtime.handoff.receiver import Arrivals

Result = TypeVar("Result")
Twin = TypeVar("Twin", AsyncHandoffManager, AsyncHandoffReceiver)


class _Sync(Blocking[Twin]):
    """Runs the async twin in a thread of its own, from the first call until it is closed or the program ends."""

    def __init__(self, twin: Twin) -> None:
        self._target: Twin = twin

    def __enter__(self) -> Self:
        try:
            self._run(lambda twin: twin.desk())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End it."""
        if self._thread is not None:
            try:
                self._run(lambda twin: twin.close())
            finally:
                self._stop()


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
        traces: SpanSource | None = None,
        tempo_url: str | None = None,
        agents: Iterable[Agent] = (),
    ) -> None:
        """Hand off for an agent and a user; takes what the async twin takes, but for a node."""
        super().__init__(
            AsyncHandoffManager(
                project_id,
                agent_id,
                store=store,
                user_id=user_id,
                tenant_id=tenant_id,
                session_id=session_id,
                traces=traces,
                tempo_url=tempo_url,
                agents=agents,
            )
        )

    create_handoff = awaited(AsyncHandoffManager.create_handoff)
    receive = awaited(AsyncHandoffManager.receive)
    get_handoff_status = awaited(AsyncHandoffManager.get_handoff_status)
    await_result = awaited(AsyncHandoffManager.await_result)
    create_and_await = awaited(AsyncHandoffManager.create_and_await)
    get_result = awaited(AsyncHandoffManager.get_result)
    get_result_from_trace = awaited(AsyncHandoffManager.get_result_from_trace)
    provide_input = awaited(AsyncHandoffManager.provide_input)
    cancel = awaited(AsyncHandoffManager.cancel)
    list_handoffs = awaited(AsyncHandoffManager.list_handoffs)
    dead_letters = awaited(AsyncHandoffManager.dead_letters)

    def events(self, handoff_id: str, after: int = 0, *, in_clear: bool = True) -> Iterator[Entry]:
        """Yield what happens to a handoff until it has ended; see `AsyncHandoffManager.events`."""
        yield from self._each(self._target.events(handoff_id, after, in_clear=in_clear))


class HandoffReceiver(_Sync[AsyncHandoffReceiver]):
    """Takes work for an agent, and work that any agent with one of its capabilities may do.

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
        source = self._target.watch_handoffs()
        return Arrivals(lambda: asyncio.wrap_future(self._running().submit(_following(source))))

    def handoffs(self) -> Iterator[Handoff]:
        """Yield handoffs as they come, for code without an event loop."""
        yield from self._each(self._target.watch_handoffs())

    poll_handoffs = awaited(AsyncHandoffReceiver.poll)
    take = awaited(AsyncHandoffReceiver.take)
    accept = awaited(AsyncHandoffReceiver.accept)
    reject = awaited(AsyncHandoffReceiver.reject)
    progress = awaited(AsyncHandoffReceiver.progress)
    request_input = awaited(AsyncHandoffReceiver.request_input)
    complete = awaited(AsyncHandoffReceiver.complete)
    fail = awaited(AsyncHandoffReceiver.fail)
    release = awaited(AsyncHandoffReceiver.release)


async def _following(source: AsyncIterator[Result]) -> Result:
    return await anext(source)
