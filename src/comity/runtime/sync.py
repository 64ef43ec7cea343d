"""The sync twin of a node, for scripts: the same calls, without `await`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from comity.core.agent import Agent
from comity.core.envelope import Reply
from comity.core.limits import Limits
from comity.runtime.audit import Audit
from comity.runtime.node import Node
from comity.runtime.workers import check_guarded

Result = TypeVar("Result")


class LoopThread:
    """An event loop in a thread of its own, for code that cannot wait in one."""

    def __init__(self) -> None:
        check_guarded()  # here: what leaves a program in another thread leaves nobody but that thread
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="comity-node", daemon=True)
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Begin a coroutine there."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine there and wait for it."""
        return self.submit(work).result()

    def stop(self) -> None:
        """End the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class SyncNode:
    """A node whose event loop runs in a thread of its own.

    with SyncNode(agents=[analyst]) as node:
        reply = node.call("ANL", "ANL_NPV", {...}, user_id="u1")
    """

    def __init__(self, agents: Iterable[Agent] = (), *, store: str | Path | None = None, limits: Limits | None = None) -> None:
        self._node = Node(agents, store=store, limits=limits)

    def __enter__(self) -> Self:
        self._thread = LoopThread()
        try:
            self._thread.run(self._node.start())
        except BaseException:
            self._thread.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        try:
            self._thread.run(self._node.close())
        finally:
            self._thread.stop()

    def call(self, target: str, capability: str, inputs: dict[str, Any] | None = None, *, user_id: str, **more: Any) -> Reply:
        """Call an agent for a user and wait for the reply; takes what `Node.call` takes."""
        return self._thread.run(self._node.call(target, capability, inputs, user_id=user_id, **more))

    @property
    def audit(self) -> Audit:
        """The audit trail."""
        return self._node.audit
