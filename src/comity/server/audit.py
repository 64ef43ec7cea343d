"""The audit over HTTP: its rows, a walk over the whole chain, and an export."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Struct

from comity.core.journal.audit import Row, Verdict
from comity.core.reading import AuditFilter, Page
from comity.core.reading.page import ROWS_DEFAULT, Limit
from comity.server.auth import seen_tenant
from comity.server.guard import SAFE_HEADERS
from comity.server.routes import Ask
from comity.server.stream import frame

ROWS_A_TIME: Final = 1_000
PROGRESS_S: Final = 0.1  # how often a walk along the chain says how far it is
_encode = msgspec.json.Encoder().encode


class AuditQuery(Struct, frozen=True):
    """Which rows are wanted; times are epoch milliseconds."""

    kind: str | None = None
    root: str | None = None
    request: str | None = None
    user: str | None = None
    agent: str | None = None
    since: int | None = None
    until: int | None = None
    limit: Limit = ROWS_DEFAULT
    cursor: str | None = None


class AuditRows(Struct, frozen=True):
    """Rows, newest first."""

    items: list[dict[str, Any]]
    next: str | None


class Checked(Struct, frozen=True):
    """Whether the chain is whole; `row_id` is the first row that does not fit."""

    ok: bool
    rows: int
    row_id: int | None
    reason: str


async def find(ask: Ask) -> AuditRows:
    """Return a page of the audit."""
    query: AuditQuery = ask.query
    page = await ask.state.reading.ask(_reading(ask, query, query.cursor, query.limit))
    return AuditRows([row._asdict() for row in page.items], page.next)


async def verify(ask: Ask) -> Checked:
    """Walk the chain from its first row to its last."""
    verdict: Verdict = await ask.state.node.audit.verified()
    return Checked(verdict.ok, verdict.rows, verdict.row_id, verdict.reason)


class Progress:
    """How far a walk along the chain is: told by the thread that walks, read as the source of a stream."""

    def __init__(self) -> None:
        self.seq = 0
        self.is_closed = False
        self._told = self._shown = (0, 0)

    def tell(self, checked: int, of: int) -> None:
        """Take how many rows were checked, of how many."""
        self._told = (checked, of)

    def since(self, after: int) -> list[Progress]:
        """Return how far the walk is, if that is news."""
        if self._told == self._shown:
            return []
        self.seq = after + 1
        return [self]

    def show(self) -> bytes:
        """Return the event."""
        self._shown = checked, of = self._told
        return frame("progress", {"checked": checked, "of": of})

    def notify(self, waiter: asyncio.Future[None]) -> None:
        """Resolve `waiter` a moment later: rows pass faster than a page can show."""
        asyncio.get_running_loop().call_later(PROGRESS_S, _resolve, waiter)


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


async def follow(ask: Ask) -> None:
    """Walk the chain: say how far the walk is, then what it found."""
    progress = Progress()

    async def walk() -> Checked:
        try:
            verdict = await ask.state.node.audit.verified(progress.tell)
            return Checked(verdict.ok, verdict.rows, verdict.row_id, verdict.reason)
        finally:
            progress.is_closed = True

    task = asyncio.get_running_loop().create_task(walk(), name="walk the audit")

    async def last() -> bytes:
        return frame("verdict", await task)

    await ask.state.streams.serve(ask.scope, ask.send, progress, 0, Progress.show, last)


async def export(ask: Ask) -> None:
    """Write every row that is wanted, one JSON object a line, as fast as the client takes them."""
    headers = [(b"content-type", b"application/x-ndjson"), *SAFE_HEADERS]
    cursor: str | None = ask.query.cursor
    is_begun = False
    while True:
        page = await ask.state.reading.ask(_reading(ask, ask.query, cursor, ROWS_A_TIME))
        if not is_begun:  # a cursor that no page gave raises an error before the answer begins
            await ask.send({"type": "http.response.start", "status": 200, "headers": headers})
            is_begun = True
        body = b"".join(_encode(row._asdict()) + b"\n" for row in page.items)
        await ask.send({"type": "http.response.body", "body": body, "more_body": page.next is not None})
        cursor = page.next
        if cursor is None:
            return


def _reading(ask: Ask, query: AuditQuery, cursor: str | None, limit: int) -> Callable[[Any], Page[Row]]:
    wanted = AuditFilter(
        kind=query.kind,
        root_id=query.root,
        request_id=query.request,
        tenant_id=seen_tenant(ask.principal),
        user_id=query.user,
        target=query.agent,
        since=query.since,
        until=query.until,
    )
    return lambda reader: reader.audit_page(wanted, cursor, limit)
