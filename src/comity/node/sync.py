"""The sync twin of a node, for scripts: the same calls, without `await`."""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Self, Unpack, overload

from comity.core.agent.agent import Agent
from comity.core.envelope.envelope import Reply
from comity.errors import UnavailableError
from comity.node.audit import Audit
from comity.node.node import Node
from comity.runtime.agent.workers import check_guarded
from comity.runtime.call.binding import Bound, Given, Result
from comity.runtime.call.options import RootOptions

log = logging.getLogger("comity")


class LoopThread:
    """An event loop in a thread of its own, for blocking code."""

    def __init__(self) -> None:
        check_guarded()  # here: an exit in another thread ends only that thread, not the program
        self._loop = asyncio.new_event_loop()
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name="comity-node", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_stopped:
            try:
                self._loop.run_forever()
            except (KeyboardInterrupt, SystemExit):  # of some code in this thread: Ctrl-C reaches the main thread alone
                log.exception("code in the event loop tried to end the program; the loop goes on")

    def submit(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Start a coroutine in the loop and return its future."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine in the loop and return its result."""
        return self.submit(work).result()

    def stop(self) -> None:
        """Stop the loop and its thread."""
        self._is_stopped = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _awaited(
    method: Callable[Concatenate[Node, Given], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[SyncNode, Given], Result]:
    """Return a blocking twin of an async method of `Node`."""

    @functools.wraps(method)
    def twin(self: SyncNode, /, *given: Given.args, **more: Given.kwargs) -> Result:
        return self.run(lambda node: method(node, *given, **more))

    return twin


def _asked(method: Callable[Concatenate[Node, Given], Result]) -> Callable[Concatenate[SyncNode, Given], Result]:
    """Return a twin of a sync method of `Node`, which runs in the node's loop."""

    @functools.wraps(method)
    async def there(node: Node, /, *given: Given.args, **more: Given.kwargs) -> Result:
        return method(node, *given, **more)

    return _awaited(there)


class SyncNode:
    """A node whose event loop runs in a thread of its own; takes what `Node` takes.

    with SyncNode(agents=[analyst]) as node:
        reply = node.call("ANL", "ANL_NPV", {...}, user_id="u1")
    """

    def __init__(self, agents: Iterable[Agent] = (), **more: Any) -> None:
        self._node = Node(agents, **more)
        self._thread: LoopThread | None = None

    def __enter__(self) -> Self:
        self._thread = LoopThread()
        try:
            self.run(Node.start)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        try:
            self.run(Node.close)
        finally:
            self._stop()

    def run(self, work: Callable[[Node], Awaitable[Result]]) -> Result:
        """Do something with the node in its own thread and wait for it: `node.run(lambda node: node.flush_spans())`."""
        if self._thread is None:
            raise UnavailableError("the node is not running; use `with SyncNode(...)`", code="NODE_CLOSED")

        async def there() -> Result:
            return await work(self._node)

        return self._thread.run(there())

    if TYPE_CHECKING:

        @overload
        def call(
            self,
            target: str,
            capability: str,
            inputs: dict[str, Any] | None = None,
            *,
            user_id: str,
            **options: Unpack[RootOptions],
        ) -> Reply[Any]: ...
        @overload
        def call(self, target: Bound[Result], /, *, user_id: str, **options: Unpack[RootOptions]) -> Reply[Result]: ...
        @overload
        def call(
            self, target: Callable[..., Awaitable[Reply[Result]] | Reply[Result]], /, *args: Any, user_id: str, **inputs: Any
        ) -> Reply[Result]: ...
        @overload
        def call(
            self, target: Callable[..., Awaitable[Result]], /, *args: Any, user_id: str, **inputs: Any
        ) -> Reply[Result]: ...
        @overload
        def call(self, target: Callable[..., Result], /, *args: Any, user_id: str, **inputs: Any) -> Reply[Result]: ...
        def call(self, target: Any, *args: Any, **more: Any) -> Any:  # type: ignore[misc]
            """Call an agent for a user and wait for the reply; see `Node.call`."""

    else:
        call = _awaited(Node.call)

    receive = _awaited(Node.receive)
    add = _asked(Node.add)
    approvals = _asked(Node.approvals)
    decide = _awaited(Node.decide)
    session = _asked(Node.session)
    history = _asked(Node.history)
    resume_session = _asked(Node.resume_session)
    export_session = _asked(Node.export_session)
    erase_session = _awaited(Node.erase_session)
    erase_person = _awaited(Node.erase_person)

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems of the declarations, found when the node started."""
        return self._node.problems

    @property
    def failure(self) -> UnavailableError | None:
        """Why the node accepts nothing; None while it works."""
        return self._node.failure

    @property
    def audit(self) -> Audit:
        """The audit trail."""
        return self._node.audit

    def _stop(self) -> None:
        if self._thread is not None:
            self._thread.stop()
            self._thread = None
