"""What `node.workflows.start` returns: a run under way."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from comity.core.envelope.envelope import Reply
from comity.runtime.workflow.host import Runs
from comity.runtime.workflow.store import RunRecord
from comity.runtime.workflow.watching import RunEvent


class RunHandle:
    """A run: look at it, wait for it, answer its questions, cancel it."""

    def __init__(self, flows: Runs, run_id: str) -> None:
        self._flows = flows
        self.run_id = run_id

    @property
    def record(self) -> RunRecord:
        """The run as it stands now."""
        return self._flows.get(self.run_id)

    async def result(self) -> Reply[Any]:
        """Wait for the end of the run, however often it waits meanwhile, and return its reply."""
        return await self._flows.result(self.run_id)

    def events(self) -> AsyncGenerator[RunEvent, None]:
        """Yield what happened to the run, then what happens, until it has ended."""
        return self._flows.events(self.run_id)

    async def answer(self, question_id: str, answer: Any, *, by: str = "") -> None:
        """Answer an open question."""
        await self._flows.answer(self.run_id, question_id, answer, by=by)

    async def cancel(self, *, reason: str = "", by: str = "") -> None:
        """Cancel the run."""
        await self._flows.cancel(self.run_id, reason=reason, by=by)

    async def signal(self, event: str, data: Any = None) -> None:
        """Send an event to the run."""
        await self._flows.signal(self.run_id, event, data)
