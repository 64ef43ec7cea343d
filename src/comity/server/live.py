"""What happens on a node, live: rows of calls as they begin and end, for every open page, over one reading of the audit.

Live rows are numbered by this server, so that a page resumes after the last it saw. A page that asks for a number that is gone
is notified, and reads its lists again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterable
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from comity.core.journal.audit import Row
from comity.core.reading import CallRow
from comity.errors import CallerError, ComityError
from comity.ports.reader import Reader
from comity.server.auth import seen_tenant
from comity.server.reading import Reading
from comity.server.stream import frame

KEPT_MAX: Final = 5_000
ROWS_A_TIME: Final = 500
TICK_S: Final = 0.1  # how often the audit is asked for new rows while a page is open


class EventsQuery(Struct, frozen=True):
    """From where live rows are wanted; `Last-Event-ID` says the same."""

    after: Annotated[int, Meta(ge=0)] = 0


class LiveRow(Struct, frozen=True):
    """One numbered thing that happened; `topic` is call, approval or handoff."""

    seq: int
    topic: str
    tenant_id: str
    data: Any


class LiveFeed:
    """New rows of the audit, as rows of calls. It reads while at least one stream is open, and not otherwise."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._kept: deque[LiveRow] = deque(maxlen=KEPT_MAX)
        self._seq = 0
        self._open = 0
        self._row_id: int | None = None  # the newest audit row that was read
        self._task: asyncio.Task[None] | None = None
        self._waiters: list[asyncio.Future[None]] = []
        self.is_closed = False

    def since(self, after: int) -> Iterable[LiveRow]:
        """Return the rows after a number, in order."""
        if not self._kept or self._kept[-1].seq <= after:
            return []
        return [one for one in self._kept if one.seq > after]

    def notify(self, waiter: asyncio.Future[None]) -> None:
        """Resolve `waiter` with the next row, or when the feed is closed."""
        self._waiters.append(waiter)

    @property
    def seq(self) -> int:
        """The number of the newest row."""
        return self._seq

    def has(self, after: int) -> bool:
        """Return whether every row after a number is still there."""
        return after <= self._seq and (not self._kept or after >= self._kept[0].seq - 1)

    def tell(self, topic: str, tenant_id: str, data: Any) -> None:
        """Add something that happened, and wake every stream."""
        self._seq += 1
        self._kept.append(LiveRow(self._seq, topic, tenant_id, data))
        self._wake()

    @contextlib.asynccontextmanager
    async def followed(self) -> Any:
        """Read new rows of the audit for as long as a stream is open."""
        self._open += 1
        if self._task is None and not self.is_closed:
            self._row_id = await self._reading.ask(lambda reader: reader.head_id())
            if self._task is None:
                self._task = asyncio.get_running_loop().create_task(self._read(), name="live rows")
        try:
            yield
        finally:
            self._open -= 1
            if not self._open and self._task is not None:
                self._task.cancel()
                self._task = None

    def close(self) -> None:
        """End every stream."""
        self.is_closed = True
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._wake()

    async def _read(self) -> None:
        while True:
            with contextlib.suppress(ComityError):  # a store that cannot be read for the moment is asked again
                while await self._take():
                    pass
            await asyncio.sleep(TICK_S)

    async def _take(self) -> bool:
        """Tell of the next rows of the audit; return whether there may be more."""
        after = self._row_id or 0
        rows, calls = await self._reading.ask(lambda reader: _news(reader, after))
        for row in rows:
            self._row_id = row.id
            if row.kind == "paused":
                self.tell("approval", row.tenant_id, {"request_id": row.request_id, "root_id": row.root_id})
        for call in calls:
            self.tell("call", call.tenant_id, call)
        return len(rows) == ROWS_A_TIME

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


def _news(reader: Reader, after: int) -> tuple[list[Row], list[CallRow]]:
    """Return new rows of the audit, and each call they tell of once, as it stands now."""
    rows = reader.rows_after(after, ROWS_A_TIME)
    ids = dict.fromkeys(row.request_id for row in rows if row.request_id)
    return rows, reader.call_rows(ids)


async def follow(ask: Any) -> None:
    """Stream the calls of the sender's tenant as they begin and end, and what waits for a person."""
    feed: LiveFeed = ask.state.live
    tenant_id, told = seen_tenant(ask.principal), ask.heads.last_event_id
    after = ask.query.after if told is None else int(told) if told.isdigit() and len(told) <= 18 else -1
    if after < 0 or not (after == 0 or feed.has(after)):
        raise CallerError("the events after this number are gone: read the lists again", code="HTTP_EVENTS_GONE")

    def show(row: LiveRow) -> bytes | None:
        return frame(row.topic, row.data, row.seq) if tenant_id in {None, row.tenant_id} else None

    async with feed.followed():
        await ask.state.streams.serve(ask.scope, ask.send, feed, after or feed.seq, show)
