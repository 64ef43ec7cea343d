"""A node elsewhere, used as one here: calls, their events, sessions, approvals, the audit."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Self, Unpack
from urllib.parse import quote

import msgspec

from comity.client.connection import Connection, problem
from comity.core.envelope.codec import decode_reply
from comity.core.envelope.envelope import Reply
from comity.errors import UnavailableError
from comity.runtime.call.events import Event
from comity.runtime.call.options import RootOptions

_TRACE = ("traceparent", "tracestate")
_decode_event = msgspec.json.Decoder(Event).decode


class RemoteCall:
    """A call that runs on the server: follow it, cancel it, or wait for its reply. It is there after a lost connection too."""

    def __init__(self, connection: Connection, request_id: str, reply: Reply[Any] | None = None) -> None:
        self._connection = connection
        self._reply = reply
        self.request_id = request_id

    async def events(self, after: int = 0) -> AsyncIterator[Event]:
        """Yield what happens in this call and below it, beginning after sequence number `after`."""
        if self._reply is not None and not after:
            return
        async for _, name, data in self._connection.events(f"{_place(self.request_id)}/events", after):
            if name == "reply":
                self._reply = decode_reply(data)
            elif name not in {"gap", "drain"}:
                yield _decode_event(data)

    async def reply(self) -> Reply[Any]:
        """Wait for the reply."""
        if self._reply is None:
            async for _ in self.events():
                pass
        if self._reply is None:
            raise UnavailableError(f"{self._connection.url} ended the stream", code="NODE_UNREACHABLE")
        return self._reply

    async def cancel(self) -> bool:
        """Withdraw the call and everything below it; return whether it was still under way."""
        told = await self._connection.value("POST", f"{_place(self.request_id)}/cancel", is_safe=True)
        return bool(told["cancelled"])


class AsyncClient:
    """A client of a served node.

    async with AsyncClient("http://127.0.0.1:7654", token) as node:
        reply = await node.call("ANL", "ANL_NPV", {...}, user_id="u1")

    What fails raises the error class that says who must act, as a node's own methods do.
    """

    def __init__(self, url: str, token: str) -> None:
        self._connection = Connection(url, token)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; calls that were started go on."""
        await self._connection.close()

    async def call(
        self,
        target: str,
        capability: str,
        inputs: dict[str, Any] | None = None,
        *,
        user_id: str | None = None,
        **options: Unpack[RootOptions],
    ) -> Reply[Any]:
        """Call an agent for a user and wait for the reply; the options are those of `Node.call`.

        The request has an id of its own, so that sending it again after a broken connection runs nothing twice. Without
        `user_id` it is made for the token's own user.
        """
        body, trace = _asked(target, capability, inputs, user_id, options)
        status, raw, kind = await self._connection.ask("POST", "/v1/calls", body=body, is_safe=True, headers=trace)
        if kind != "application/json":
            raise problem(status, raw, self._connection.url)
        return decode_reply(raw)

    async def start_call(
        self,
        target: str,
        capability: str,
        inputs: dict[str, Any] | None = None,
        *,
        user_id: str | None = None,
        **options: Unpack[RootOptions],
    ) -> RemoteCall:
        """Begin a call for a user and return a handle to watch, cancel or await it."""
        body, trace = _asked(target, capability, inputs, user_id, options)
        status, raw, kind = await self._connection.ask(
            "POST", "/v1/calls", body=body, query={"wait": False}, is_safe=True, headers=trace
        )
        if kind != "application/json":
            raise problem(status, raw, self._connection.url)
        told = msgspec.json.decode(raw)
        if "events" in told:
            return RemoteCall(self._connection, told["request_id"])
        return RemoteCall(self._connection, body["request_id"], decode_reply(raw))  # it was refused at once

    async def find_call(self, request_id: str) -> dict[str, Any]:
        """Return a call as the server lists it. Raises `CallerError` where there is none."""
        return await self._object(_place(request_id))

    async def agents(self, words: str = "") -> list[dict[str, Any]]:
        """Return the agents in which every one of some words occurs."""
        return list((await self._object("/v1/agents", q=words or None))["items"])

    async def session(self, session_id: str, *, tenant_id: str | None = None) -> dict[str, Any]:
        """Return a session as it is now."""
        return await self._object(f"/v1/sessions/{quote(session_id, safe='')}", tenant_id=tenant_id)

    async def approvals(self, *, state: str = "all") -> list[dict[str, Any]]:
        """Return the questions tools have asked: `waiting`, `decided` or `all`."""
        return list((await self._object("/v1/approvals", state=state))["items"])

    async def decide(self, approval_id: str, *, granted: bool) -> dict[str, Any]:
        """Answer a question and go on with the call that asked it."""
        verb = "grant" if granted else "deny"
        place = f"/v1/approvals/{quote(approval_id, safe='')}/{verb}"
        return dict(await self._connection.value("POST", place, body={}, is_safe=True))

    async def calls(self, **wanted: Any) -> AsyncIterator[dict[str, Any]]:
        """Yield calls, newest first, page by page; `wanted` are the query parameters of `GET /v1/calls`."""
        async for one in self._pages("/v1/calls", wanted):
            yield one

    async def audit_rows(self, **wanted: Any) -> AsyncIterator[dict[str, Any]]:
        """Yield audit rows, newest first, page by page; `wanted` are the query parameters of `GET /v1/audit`."""
        async for one in self._pages("/v1/audit", wanted):
            yield one

    async def verify_audit(self) -> dict[str, Any]:
        """Return whether the audit's chain is whole."""
        return await self._object("/v1/audit/verify")

    async def _object(self, path: str, **query: Any) -> dict[str, Any]:
        return dict(await self._connection.value("GET", path, query=query, is_safe=True))

    async def _pages(self, path: str, wanted: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        cursor: str | None = None
        while True:
            page = await self._object(path, **wanted, cursor=cursor)
            for one in page["items"]:
                yield one
            if (cursor := page["next"]) is None:
                return


def _asked(
    target: str, capability: str, inputs: dict[str, Any] | None, user_id: str | None, options: Any
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the body of a call, with an id if it has none, and the headers of the trace it belongs to."""
    body: dict[str, Any] = {"target": target, "capability": capability, "inputs": inputs or {}}
    told = {name: value for name, value in options.items() if value is not None and name not in _TRACE}
    if user_id is not None:
        body["user_id"] = user_id
    body |= told
    body.setdefault("request_id", uuid.uuid4().hex)
    trace = {name: ",".join([said] if isinstance(said, str) else said) for name in _TRACE if (said := options.get(name))}
    return body, trace


def _place(request_id: str) -> str:
    return f"/v1/calls/{quote(request_id, safe='')}"
