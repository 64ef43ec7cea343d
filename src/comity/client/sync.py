"""The client for code that cannot await: the same names, each waiting for what it gives."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from comity.client.client import AsyncClient, RemoteCall
from comity.core.envelope.envelope import Reply
from comity.node.sync import LoopThread
from comity.runtime.call.events import Event
from comity.runtime.call.options import RootOptions

Item = TypeVar("Item")
_END = object()


class SyncCall:
    """A call that runs on the server."""

    def __init__(self, thread: LoopThread, call: RemoteCall) -> None:
        self._thread, self._call = thread, call
        self.request_id = call.request_id

    def events(self, after: int = 0) -> Iterator[Event]:
        """Yield what happens in this call and below it, beginning after sequence number `after`."""
        return _each(self._thread, self._call.events(after))

    def reply(self) -> Reply[Any]:
        """Wait for the reply."""
        return self._thread.run(self._call.reply())

    def cancel(self) -> bool:
        """Withdraw the call and everything below it; return whether it was still under way."""
        return self._thread.run(self._call.cancel())


class Client:
    """A client of a served node, for scripts.

    with Client("http://127.0.0.1:7654", token) as node:
        reply = node.call("ANL", "ANL_NPV", {...}, user_id="u1")
    """

    def __init__(self, url: str, token: str) -> None:
        self._client = AsyncClient(url, token)
        self._thread = LoopThread()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; calls that were started go on."""
        self._thread.run(self._client.close())
        self._thread.stop()

    def call(
        self,
        target: str,
        capability: str,
        inputs: dict[str, Any] | None = None,
        *,
        user_id: str | None = None,
        **options: Unpack[RootOptions],
    ) -> Reply[Any]:
        """Call an agent for a user and wait for the reply; see `AsyncClient.call`."""
        return self._thread.run(self._client.call(target, capability, inputs, user_id=user_id, **options))

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
        return SyncCall(
            self._thread, self._thread.run(self._client.start_call(target, capability, inputs, user_id=user_id, **options))
        )

    def find_call(self, request_id: str) -> dict[str, Any]:
        """Return a call as the server lists it. Raises `CallerError` where there is none."""
        return self._thread.run(self._client.find_call(request_id))

    def agents(self, words: str = "") -> list[dict[str, Any]]:
        """Return the agents in which every one of some words occurs."""
        return self._thread.run(self._client.agents(words))

    def session(self, session_id: str, *, tenant_id: str | None = None) -> dict[str, Any]:
        """Return a session as it is now."""
        return self._thread.run(self._client.session(session_id, tenant_id=tenant_id))

    def approvals(self, *, state: str = "all") -> list[dict[str, Any]]:
        """Return the questions tools have asked: `waiting`, `decided` or `all`."""
        return self._thread.run(self._client.approvals(state=state))

    def decide(self, approval_id: str, *, granted: bool) -> dict[str, Any]:
        """Answer a question and go on with the call that asked it."""
        return self._thread.run(self._client.decide(approval_id, granted=granted))

    def calls(self, **wanted: Any) -> Iterator[dict[str, Any]]:
        """Yield calls, newest first, page by page."""
        return _each(self._thread, self._client.calls(**wanted))

    def audit_rows(self, **wanted: Any) -> Iterator[dict[str, Any]]:
        """Yield audit rows, newest first, page by page."""
        return _each(self._thread, self._client.audit_rows(**wanted))

    def verify_audit(self) -> dict[str, Any]:
        """Return whether the audit's chain is whole."""
        return self._thread.run(self._client.verify_audit())


def _each(thread: LoopThread, items: AsyncIterator[Item]) -> Iterator[Item]:
    async def following() -> Any:
        return await anext(items, _END)

    while (item := thread.run(following())) is not _END:
        yield item
