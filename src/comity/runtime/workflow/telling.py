"""Telling a run something: answers, cancellations and events, here or through the store to the process that holds the run.

Of several processes that answer one question, the store decides which was first: each writes its answer under the key of the
question, where the first one stays until it is durable in the history of the run (ADR 208).
"""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from functools import partial
from typing import Any, Final

import jsonschema_rs

from comity.core.call.limits import MESSAGE_BYTES_MAX
from comity.core.document.payload import text_problem
from comity.core.document.schema import errors_of
from comity.core.insight.insight import time_text
from comity.core.journal.records import Noted, below
from comity.core.workflow import history
from comity.core.workflow.history import Event
from comity.errors import CallerError, RefusedError
from comity.ports import Journal
from comity.runtime.call.path import CallPath
from comity.runtime.workflow.run import Run
from comity.runtime.workflow.store import SIGNALS_MAX
from comity.runtime.workflow.travel import TimeTravel

log = logging.getLogger("comity")

CANCEL: Final = "cancel-"  # before the name of a signal that cancels a run


class Telling(TimeTravel):
    """What people and other processes can tell a run."""

    def __init__(self, path: CallPath, journal: Journal) -> None:
        super().__init__(path, journal)
        self.loop = path.loop
        self._runs: dict[str, Run] = {}  # in memory
        self._woken: set[str] = set()  # in memory, while the store has them as runs that wait
        self._hearing: asyncio.Task[None] | None = None  # while runs are given what other processes sent
        self._hears = asyncio.Lock()  # held while signals are given to runs: none is given twice, and their order stays
        self._given: dict[str, tuple[Run, asyncio.Future[None]]] = {}  # by key: signals that a run has and the store still has

    @abstractmethod
    def _unpark(self, run_id: str) -> Run | None:
        """Go on with a run that is not in memory; None if it cannot go on now, or not here."""

    def hear(self) -> None:
        """Give the runs that are held here what other processes sent them since the last time."""
        if (self._hearing is None or self._hearing.done()) and self.store.signalled():
            self._hearing = self.loop.create_task(self._hear(), name="what other processes sent to runs")

    def stop_hearing(self) -> None:
        """Leave what other processes sent in the store."""
        if self._hearing is not None:
            self._hearing.cancel()

    async def answer(self, run_id: str, question_id: str, answer: Any, *, by: str = "") -> None:
        """Answer an open question of a run; the first answer stands. Returns once the answer is durable.

        Raises `CallerError` for a question that is not open or was answered (the error says by whom and when), for a run to be
        cancelled, and for an answer that its options or its schema do not allow.
        """
        _check_texts(by=by)
        await self._catch_up(run_id)
        record = self.get(run_id)
        question = next((one for one in record.questions if one.question_id == str(question_id)), None)
        self._check_unanswered(run_id, str(question_id))
        if question is None:
            open_ = ", ".join(one.question_id for one in record.questions) or "none"
            what = f"run {run_id} has no open question {question_id}; open are: {open_}"
            raise CallerError(what, code="WORKFLOW_STATE_CONFLICT")
        self._check_not_cancelled(run_id)
        if question.options and not question.is_clarification and not any(_is_same(answer, one) for one in question.options):
            raise CallerError(f"the answer must be one of {', '.join(map(str, question.options))}")
        if question.schema is not None and (errors := errors_of(jsonschema_rs.validator_for(question.schema), answer)):
            raise CallerError(f"the answer does not fit: {errors[0].message}")
        await self._claim(run_id, history.Answered(self.now_ms(), int(question.question_id), answer, by))

    async def cancel(self, run_id: str, *, reason: str = "", by: str = "") -> None:
        """Cancel a run: what runs is stopped, what was done is taken back. Returns once the wish is durable."""
        _check_texts(reason=reason, by=by)
        if not self.get(run_id).status.has_ended:
            await self._tell(run_id, history.Cancelled(self.now_ms(), reason, by))

    def withdraw(self, run_id: str, reason: str) -> None:
        """Cancel a run that this node holds, without waiting until the wish is durable; do nothing for any other.

        reason: in the platform's words, since personal data in it is not looked for.
        """
        if (run := self._held(run_id)) is not None:
            run.push(history.Cancelled(self.now_ms(), reason, ""))

    async def signal(self, run_id: str, event: str, data: Any = None) -> None:
        """Send an event to a run; a node of it that waits for it goes on, and a node that will wait finds it.

        Returns once the event is durable; the run takes it after the step that is under way. Raises `CallerError` for a run
        that has ended, and for an event that no node waits for where the run keeps as many of those as it may.
        """
        _check_texts(event=event)
        if self.get(run_id).status.has_ended:
            raise CallerError(f"run {run_id} has ended", code="WORKFLOW_STATE_CONFLICT")
        self._check_not_cancelled(run_id)
        await self._tell(run_id, history.Received(self.now_ms(), event, data))

    async def _claim(self, run_id: str, event: history.Answered) -> None:
        """Write an answer under the key of its question, and give the run the answer that is there: the first one."""
        name = f"answer-{event.question}"
        await self._write(run_id, name, event)
        self._check_unanswered(run_id, str(event.question), event)
        await self._catch_up(run_id)
        if (given := self._given.get(below(run_id, name))) is not None:
            await asyncio.wait({given[1]})
            await self.path.durable()

    async def _tell(self, run_id: str, event: Event) -> None:
        """Give an event to a run: here, or through the store, where it waits for another process or for the end of a step."""
        await self._catch_up(run_id)
        sent = event
        if (run := self._held(run_id)) is not None:
            event = await self.told.event(run.call, event)
            run = self._held(run_id)  # it may have left meanwhile
        if isinstance(event, history.Received):
            self._check_room(run_id)
        if run is not None and (run.takes_at_once or isinstance(event, history.Cancelled)):
            ack: asyncio.Future[None] = self.loop.create_future()
            self._push(run, event, ack)
            await ack
            await self.path.durable()
        else:
            kind = CANCEL if isinstance(event, history.Cancelled) else ""
            await self._write(run_id, f"{kind}{event.at_ms:015d}-{self.path.ids.span_id()}", sent)
            await self._catch_up(run_id)

    async def _write(self, run_id: str, name: str, event: Event) -> None:
        """Write an event to the store for the process that holds the run, which hides what the run must not say."""
        self.told.check(event)
        self.journal.append((self.store.signal(run_id, name, event),))
        await self.path.durable()

    def _check_unanswered(self, run_id: str, question_id: str, mine: history.Answered | None = None) -> None:
        """Raise `CallerError` if a question has an answer other than `mine`, which is in the store or in the history."""
        sent = self.store.signals(run_id, f"answer-{question_id}")  # before the history, into which they move
        for _, event in sent:
            if isinstance(event, history.Answered) and str(event.question) == question_id and event != mine:
                raise _answered(run_id, event)
        for event in self.store.happened(run_id, history.Answered):  # without personal data, which `mine` may have
            if isinstance(event, history.Answered) and str(event.question) == question_id:
                if mine is None or (event.at_ms, event.by) != (mine.at_ms, mine.by):
                    raise _answered(run_id, event)
                return

    def _check_not_cancelled(self, run_id: str) -> None:
        """Raise `CallerError` if the process that holds a run has still to learn that it is cancelled."""
        for _, event in self.store.signals(run_id, CANCEL):
            if isinstance(event, history.Cancelled):
                who = f"by {event.by} " if event.by else ""
                what = f"run {run_id} was cancelled {who}at {time_text(event.at_ms)}"
                raise CallerError(what, code="WORKFLOW_STATE_CONFLICT")

    def _check_room(self, run_id: str) -> None:
        """Raise `CallerError` if the store keeps as many signals for a run as it may."""
        if self.store.count_signals(run_id) >= SIGNALS_MAX:
            what = f"{SIGNALS_MAX} events wait for run {run_id}; send more once it has taken them"
            raise CallerError(what, code="WORKFLOW_STATE_CONFLICT")

    def _push(self, run: Run, event: Event, ack: asyncio.Future[None] | None = None) -> None:
        """Give an event to a run in memory; the audit says who answered or cancelled it."""
        self._wake(run, event, ack)
        if isinstance(event, history.Answered | history.Cancelled) and event.by:
            did = "question answered" if isinstance(event, history.Answered) else "cancelled"
            self._note(run.run_id, f"{did} by {self.journal.names.of(event.by)}")

    def _wake(self, run: Run, event: Event, ack: asyncio.Future[None] | None = None) -> None:
        """Give an event to a run in memory; the first one after it waited makes the store say that it goes on."""
        if run.run_id in self._woken:
            self._woken.discard(run.run_id)
            ack = ack or self.loop.create_future()
            ack.add_done_callback(partial(self._keep, run))
        run.push(event, ack)

    def _keep(self, run: Run, ack: asyncio.Future[None]) -> None:
        """Write the record of a run that has taken an event after it waited."""
        is_taken = not ack.cancelled() and ack.exception() is None
        if is_taken and self._runs.get(run.run_id) is run and not run.record.status.has_ended:
            self.journal.append(self.store.save(run.view()), None, run.call.terms)

    def _note(self, run_id: str, note: str) -> None:
        call = self._runs[run_id].call
        self.journal.append((Noted(call.request, note, self.now_ms()),), None, call.terms)

    def _held(self, run_id: str) -> Run | None:
        """Return a run that this node holds, back in memory."""
        return self._runs.get(run_id) or (self._unpark(run_id) if run_id in self._parked else None)

    async def _catch_up(self, run_id: str) -> None:
        """Give a run that is held here what other processes sent before: it comes first."""
        if self.store.count_signals(run_id):
            await self._hear(run_id)

    async def _hear(self, only: str | None = None) -> None:
        """Give the runs that are held here, or one of them, what other processes sent them, in order."""
        async with self._hears:
            for run_id in self.store.signalled() if only is None else [only]:
                for key, sent in self.store.signals(run_id):
                    if await self._is_done_with(run_id, key, sent):
                        self._forget_signal(key)

    async def _is_done_with(self, run_id: str, key: str, sent: Event) -> bool:
        """Give a signal to its run if that is held here; return whether the store need not keep the signal."""
        if (run := self._held(run_id)) is None:  # another process may hold it
            return (record := self.store.record(run_id)) is None or record.status.has_ended
        if key in self._given and self._given[key][0] is run:
            return False
        try:
            event = await self.told.event(run.call, sent)
        except (CallerError, RefusedError) as error:
            log.warning("what another process sent to run %s is dropped: %s", run_id, error)
            return True
        if (run := self._held(run_id)) is None:
            return False
        if self._has_happened(run_id, event):
            return True
        self._give(run, key, event)
        return False

    def _has_happened(self, run_id: str, event: Event) -> bool:
        """Return whether the history of a run has an event, or another answer to its question: a signal outlives a crash."""
        if isinstance(event, history.Answered):
            answers = self.store.happened(run_id, history.Answered)
            return any(isinstance(one, history.Answered) and one.question == event.question for one in answers)
        assert isinstance(event, history.Received | history.Cancelled)
        return event in self.store.happened(run_id, type(event))

    def _give(self, run: Run, key: str, event: Event) -> None:
        """Give a run a signal, which leaves the store once the event is durable in the history."""
        ack: asyncio.Future[None] = self.loop.create_future()
        ack.add_done_callback(partial(self._taken, key))
        self._given[key] = (run, ack)
        self._push(run, event, ack)

    def _taken(self, key: str, ack: asyncio.Future[None]) -> None:
        """Remove a signal that the run has taken or refused; the signal of a run that left stays for the run's next process."""
        error = ack.exception()
        if isinstance(error, CallerError):
            log.warning("what another process sent is dropped: %s", error)
        if error is None or isinstance(error, CallerError):
            self._forget_signal(key)
        else:
            self._given.pop(key, None)

    def _forget_signal(self, key: str) -> None:
        """Remove a signal, once all that was appended before is durable."""
        self.journal.append((), partial(self._forgotten, key))

    def _forgotten(self, key: str, error: Exception | None) -> None:
        self._given.pop(key, None)
        if error is None:
            self.store.forget_signal(key)


def _check_texts(**given: Any) -> None:
    """Raise `CallerError` for arguments that are no text."""
    for name, value in given.items():
        if (problem := text_problem(value, path=name, bytes_max=MESSAGE_BYTES_MAX)) is not None:
            raise CallerError(f"{problem.path} {problem.message}", problems=(problem,))


def _is_same(answer: Any, option: Any) -> bool:
    """Return whether an answer is an option: a truth value is no number, as in conditions."""
    return bool(answer == option) and isinstance(answer, bool) is isinstance(option, bool)


def _answered(run_id: str, first: history.Answered) -> CallerError:
    who = f"by {first.by} " if first.by else ""
    what = f"question {first.question} of run {run_id} was answered {who}at {time_text(first.at_ms)}; the first answer stands"
    return CallerError(what, code="WORKFLOW_STATE_CONFLICT")
