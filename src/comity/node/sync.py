"""The sync twin of a node, for scripts: the same calls, without `await`."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Self, Unpack, overload

from comity.core.agent.agent import Agent
from comity.core.envelope.envelope import Reply
from comity.errors import UnavailableError
from comity.node.audit import Audit
from comity.node.blocking import Blocking, LoopThread, awaited
from comity.node.node import Node
from comity.runtime.call.binding import Bound, Given, Result
from comity.runtime.call.options import RootOptions


def _asked(method: Callable[Concatenate[Node, Given], Result]) -> Callable[Concatenate[Blocking[Node], Given], Result]:
    """Return a twin of a sync method of `Node`, which runs in the node's loop."""

    @functools.wraps(method)
    async def there(node: Node, /, *given: Given.args, **more: Given.kwargs) -> Result:
        return method(node, *given, **more)

    return awaited(there)


class SyncNode(Blocking[Node]):
    """A node whose event loop runs in a thread of its own; takes what `Node` takes.

    with SyncNode(agents=[analyst]) as node:
        reply = node.call("ANL", "ANL_NPV", {...}, user_id="u1")
    """

    def __init__(self, agents: Iterable[Agent] = (), **more: Any) -> None:
        self._target = Node(agents, **more)

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
        return self._run(work)

    def _running(self) -> LoopThread:
        if self._thread is None:
            raise UnavailableError("the node is not running; use `with SyncNode(...)`", code="NODE_CLOSED")
        return self._thread

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
        call = awaited(Node.call)

    receive = awaited(Node.receive)
    add = _asked(Node.add)
    approvals = _asked(Node.approvals)
    decide = awaited(Node.decide)
    session = _asked(Node.session)
    history = _asked(Node.history)
    resume_session = _asked(Node.resume_session)
    export_session = _asked(Node.export_session)
    erase_session = awaited(Node.erase_session)
    erase_person = awaited(Node.erase_person)

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems of the declarations, found when the node started."""
        return self._target.problems

    @property
    def failure(self) -> UnavailableError | None:
        """Why the node accepts nothing; None while it works."""
        return self._target.failure

    @property
    def audit(self) -> Audit:
        """The audit trail."""
        return self._target.audit
