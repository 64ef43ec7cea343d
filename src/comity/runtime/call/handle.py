"""`CallHandle`, which `start_call` returns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Generic

from comity.core.agent.agent import Capability
from comity.core.envelope.envelope import Reply, Request, Status
from comity.core.journal.records import StoredCall
from comity.runtime.call.binding import Result_co, typed
from comity.runtime.call.call import Call
from comity.runtime.call.errand import Errand
from comity.runtime.call.events import Event, EventLog
from comity.runtime.call.path import CallPath


class CallHandle(Generic[Result_co]):
    """A call in progress: watch it, cancel it, or wait for its reply."""

    def __init__(
        self,
        path: CallPath,
        opened: Call | Reply | Errand,
        log: EventLog,
        request_id: str,
        read: Capability | None = None,
        stored: StoredCall | None = None,
    ) -> None:
        self._path = path
        self._opened = opened
        self._log = log
        self._read = read  # the capability whose type the data is to have
        self._stored = stored
        self.request_id = request_id

    @property
    def asked(self) -> Request | StoredCall | None:
        """The request, or the stored call if it had ended before; None for a refused call."""
        if isinstance(self._opened, Call):
            return self._opened.request
        return self._opened.arrival.request if isinstance(self._opened, Errand) else self._stored

    def events(self, after: int = 0) -> AsyncIterator[Event]:
        """Yield the events of this call and of the calls below it, from sequence number `after` + 1."""
        return self._log.watch(after)

    @property
    def log(self) -> EventLog:
        """The event log of this call, for a reader that keeps its own sequence number."""
        return self._log

    async def updates(self) -> AsyncIterator[str]:
        """Yield progress texts that may be shown to the user: the capabilities' own words, no codes."""
        async for event in self._log.watch():
            if event.text:
                yield event.text

    def cancel(self) -> bool:
        """Cancel the call and all calls below it; return whether it was still in progress."""
        if isinstance(self._opened, Errand):
            return self._path.placement.withdraw(self._opened)
        return isinstance(self._opened, Call) and self._path.settlement.cancel(self._opened, "its caller cancelled it")

    @property
    def refusal(self) -> Reply[Any] | None:
        """The reply of a call that was refused before it ran, else None."""
        return self._opened if isinstance(self._opened, Reply) and self._opened.status is Status.REFUSED else None

    async def reply(self) -> Reply[Result_co]:
        """Wait for the reply."""
        return typed(await self._reply(), self._read)

    async def _reply(self) -> Reply[Any]:
        if isinstance(self._opened, Call):
            return await self._path.reply_of(self._opened)
        if isinstance(self._opened, Errand):
            assert self._opened.task is not None  # `Placement.start_root` returns an errand that runs
            return await asyncio.shield(self._opened.task)
        return await self._path.told(self._opened)
