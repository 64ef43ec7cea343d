"""The client for code that cannot await: the same names, each waiting for what it gives."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self, Unpack

from comity.client.client import AsyncClient, RemoteCall
from comity.node.blocking import Blocking, LoopThread, awaited
from comity.runtime.call.events import Event
from comity.runtime.call.options import RootOptions


class SyncCall(Blocking[RemoteCall]):
    """A call that runs on the server."""

    def __init__(self, thread: LoopThread, call: RemoteCall) -> None:
        self._thread, self._target = thread, call
        self.request_id = call.request_id

    def events(self, after: int = 0) -> Iterator[Event]:
        """Yield what happens in this call and below it, beginning after sequence number `after`."""
        return self._each(self._target.events(after))

    reply = awaited(RemoteCall.reply)
    cancel = awaited(RemoteCall.cancel)


class Client(Blocking[AsyncClient]):
    """A client of a served node, for scripts.

    with Client("http://127.0.0.1:7654", token) as node:
        reply = node.call("ANL", "ANL_NPV", {...}, user_id="u1")
    """

    def __init__(self, url: str, token: str) -> None:
        self._target = AsyncClient(url, token)
        self._thread = LoopThread()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; calls that were started go on."""
        self._run(AsyncClient.close)
        self._running().stop()

    call = awaited(AsyncClient.call)
    find_call = awaited(AsyncClient.find_call)
    agents = awaited(AsyncClient.agents)
    session = awaited(AsyncClient.session)
    approvals = awaited(AsyncClient.approvals)
    decide = awaited(AsyncClient.decide)
    verify_audit = awaited(AsyncClient.verify_audit)

    def start_call(
        self,
        target: str,
        capability: str,
        inputs: dict[str, Any] | None = None,
        *,
        user_id: str | None = None,
        **options: Unpack[RootOptions],
    ) -> SyncCall:
        """Begin a call for a user and return a handle to watch, cancel or await it."""
        begun = self._run(lambda client: client.start_call(target, capability, inputs, user_id=user_id, **options))
        return SyncCall(self._running(), begun)

    def calls(self, **wanted: Any) -> Iterator[dict[str, Any]]:
        """Yield calls, newest first, page by page."""
        return self._each(self._target.calls(**wanted))

    def audit_rows(self, **wanted: Any) -> Iterator[dict[str, Any]]:
        """Yield audit rows, newest first, page by page."""
        return self._each(self._target.audit_rows(**wanted))
