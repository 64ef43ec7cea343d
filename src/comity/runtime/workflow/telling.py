"""Telling a run something: answers, cancellations and events, here or through the store to the process that holds the run."""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

import jsonschema_rs

from comity.core.journal.records import Noted
from comity.core.workflow import history
from comity.core.workflow.history import Event
from comity.errors import CallerError, RefusedError
from comity.ports import Journal
from comity.runtime.call.path import CallPath
from comity.runtime.workflow.run import Run
from comity.runtime.workflow.travel import TimeTravel

log = logging.getLogger("comity")


class Telling(TimeTravel):
    """What people and other processes can tell a run."""

    def __init__(self, path: CallPath, journal: Journal) -> None:
        super().__init__(path, journal)
        self.loop = path.loop
        self._runs: dict[str, Run] = {}  # in memory
        self._hearing: asyncio.Task[None] | None = None  # while runs are given what other processes sent

    @abstractmethod
    def _unpark(self, run_id: str) -> Run | None:
        """Go on with a run that is not in memory; None if it cannot go on now, or not here."""

    def hear(self) -> None:
        """Give the runs that are held here what other processes sent them since the last time."""
        if (self._hearing is None or self._hearing.done()) and (signals := self.store.signals()):
            self._hearing = self.loop.create_task(self._hear(signals), name="what other processes sent to runs")

    def stop_hearing(self) -> None:
        """Leave what other processes sent in the store."""
        if self._hearing is not None:
            self._hearing.cancel()

    async def answer(self, run_id: str, question_id: str, answer: Any, *, by: str = "") -> None:
        """Answer an open question of a run; the first answer stands. Returns once the answer is durable.

        Raises `CallerError` for a question that is not open, and for an answer that its options or its schema do not allow.
        """
        record = self.get(run_id)
        question = next((one for one in record.questions if one.question_id == str(question_id)), None)
        if question is None:
            open_ = ", ".join(one.question_id for one in record.questions) or "none"
            what = f"run {run_id} has no open question {question_id}; open are: {open_}"
            raise CallerError(what, code="WORKFLOW_STATE_CONFLICT")
        if question.options and not question.is_clarification and answer not in question.options:
            raise CallerError(f"the answer must be one of {', '.join(map(str, question.options))}")
        if question.schema is not None:
            error = next(iter(jsonschema_rs.validator_for(question.schema).iter_errors(answer)), None)
            if error is not None:
                raise CallerError(f"the answer does not fit: {error.message}")
        await self._tell(run_id, history.Answered(self.now_ms(), int(question.question_id), answer, by))

    async def cancel(self, run_id: str, *, reason: str = "", by: str = "") -> None:
        """Cancel a run: what runs is stopped, what was done is taken back. Returns once the wish is durable."""
        if not self.get(run_id).status.has_ended:
            await self._tell(run_id, history.Cancelled(self.now_ms(), reason, by))

    def withdraw(self, run_id: str, reason: str) -> None:
        """Cancel a run that this node holds, without waiting until the wish is durable; do nothing for any other.

        reason: in the platform's words, since personal data in it is not looked for.
        """
        if (run := self._held(run_id)) is not None:
            run.push(history.Cancelled(self.now_ms(), reason, ""))

    async def signal(self, run_id: str, event: str, data: Any = None) -> None:
        """Send an event to a run; a node of it that waits for it goes on, and a node that will wait finds it."""
        if self.get(run_id).status.has_ended:
            raise CallerError(f"run {run_id} has ended", code="WORKFLOW_STATE_CONFLICT")
        await self._tell(run_id, history.Received(self.now_ms(), event, data))

    async def _tell(self, run_id: str, event: Event) -> None:
        """Give an event to a run: here, or through the store to the process that holds it, which hides what it must not say."""
        if (run := self._held(run_id)) is not None:
            event = await self.told.event(run.call, event)
            run = self._held(run_id)  # it may have left meanwhile
        if run is not None:
            ack: asyncio.Future[None] = self.loop.create_future()
            self._push(run, event, ack)
            await ack
        else:
            self.told.check(event)
            name = f"{event.at_ms:015d}-{self.path.ids.span_id()}"
            self.journal.append((self.store.signal(run_id, name, event),))
        await self.path.durable()

    def _push(self, run: Run, event: Event, ack: asyncio.Future[None] | None = None) -> None:
        """Give an event to a run in memory; the audit says who answered or cancelled it."""
        run.push(event, ack)
        if isinstance(event, history.Answered | history.Cancelled) and event.by:
            did = "question answered" if isinstance(event, history.Answered) else "cancelled"
            self._note(run.run_id, f"{did} by {self.journal.names.of(event.by)}")

    def _note(self, run_id: str, note: str) -> None:
        call = self._runs[run_id].call
        self.journal.append((Noted(call.request, note, self.now_ms()),), None, call.terms)

    def _held(self, run_id: str) -> Run | None:
        """Return a run that this node holds, back in memory."""
        return self._runs.get(run_id) or (self._unpark(run_id) if run_id in self._parked else None)

    async def _hear(self, signals: Iterable[tuple[str, str, Event]]) -> None:
        """Give the runs that are held here what other processes sent them, in order."""
        for run_id, key, sent in signals:
            if (run := self._held(run_id)) is not None:
                try:
                    event = await self.told.event(run.call, sent)
                except (CallerError, RefusedError) as error:
                    log.warning("what another process sent to run %s is dropped: %s", run_id, error)
                else:
                    if (run := self._held(run_id)) is None:
                        continue
                    self._push(run, event)
            elif (record := self.store.record(run_id)) is not None and not record.status.has_ended:
                continue  # another process holds it
            self.store.forget_signal(key)
