"""Time travel: runs are replayed, explained, forked at any event, and moved to a new version."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from comity.core.document.slices import Sliced, whole
from comity.core.envelope.envelope import Reply
from comity.core.envelope.request_id import chosen_id_problem
from comity.core.workflow import history
from comity.core.workflow.graph import Program
from comity.core.workflow.history import Event, encode_event
from comity.core.workflow.model import Definition
from comity.core.workflow.replay import Difference, Moment, difference, fold, forked, moments
from comity.core.workflow.response import given_response, response_of
from comity.core.workflow.why import Decision, decisions
from comity.errors import CallerError, RefusedError
from comity.ports import Journal
from comity.runtime.call.path import CallPath
from comity.runtime.workflow.handle import RunHandle
from comity.runtime.workflow.library import Library, check_input
from comity.runtime.workflow.store import Pages, RunRecord
from comity.runtime.workflow.told import Told
from comity.runtime.workflow.watching import RunEvent, Watchers


class TimeTravel(Library, ABC):
    """What can be done with the history of a run."""

    def __init__(self, path: CallPath, journal: Journal) -> None:
        super().__init__(path, journal)
        self.watchers = Watchers()
        self.told = Told(path)
        self._parked: dict[str, int] = {}  # held here and not in memory: how many events each has

    @abstractmethod
    def get(self, run_id: str) -> RunRecord:
        """Return a run as it stands."""

    @abstractmethod
    def _note(self, run_id: str, note: str) -> None:
        """Write a note about a run that is in memory into the audit."""

    @abstractmethod
    async def _hold_address(self) -> None:
        """Take the address of the runs that begin here."""

    @abstractmethod
    def _begin(
        self,
        definition: Definition,
        data: Any,
        user_id: str,
        tenant_id: str,
        session_id: str | None,
        run_id: str | None,
        events: Iterable[Event] = (),
        forked_from: str = "",
        *,
        program: Program | None = None,
    ) -> RunHandle:
        """Begin a run, with a history and the compiled version that made it where it is forked from another."""

    def replay(self, run_id: str) -> list[Moment]:
        """Return every event of a run with what followed from it. Nothing is called."""
        return list(self._walk(run_id))

    def events(self, run_id: str) -> AsyncGenerator[RunEvent, None]:
        """Yield what happened to a run, then what happens, until it has ended."""
        record = self.get(run_id)
        return self.watchers.watch(run_id, self._walk, has_ended=record.status.has_ended)

    def past(self, run_id: str) -> AsyncGenerator[RunEvent, None]:
        """Yield what has happened to a run. A long history is replayed in slices: others have their turn meanwhile."""
        self.get(run_id)
        return self.watchers.watch(run_id, self._walk, has_ended=True)

    def _walk(self, run_id: str) -> Iterator[Moment]:
        return moments(self._first_program(self.get(run_id)), self.store.walk(run_id), self.store.program)

    def why(self, run_id: str, place: str | None = None) -> list[Decision]:
        """Return how the edges of a run, or of one node, were decided, on what values, and what would have had to differ.

        Raises `CallerError` for a node that the workflow does not have.
        """
        record = self.get(run_id)
        program = self.store.program(record.definition)
        found = decisions(program, self.store.events(run_id), place)
        if place is not None and not found:
            _check_node(record, program, place)
        return found

    def counted(self, record: RunRecord) -> RunRecord:
        """Return a record with the steps, calls and tokens of its history: a run that was killed did not write them."""
        planner, _ = fold(self._first_program(record), self.store.walk(record.run_id), self.store.program)
        return replace(record, steps=planner.steps, calls=planner.calls, tokens=planner.used.total_tokens)

    async def fork(
        self,
        run_id: str,
        *,
        at: int | None = None,
        input: Any = ...,  # noqa: A002
        replies: Mapping[str, Reply | dict[str, Any]] | None = None,
        workflow: Definition | str | None = None,
        new_run_id: str | None = None,
        user_id: str | None = None,
        by: str = "",
    ) -> RunHandle:
        """Start a run that did the same as another until its event `at` (all of them if not given) and goes on from there.

        It acts for the user of that run, in the same session. `user_id` is the user for whom it is started, where that must be
        checked: `RefusedError` IDENTITY_MISMATCH for any other user. `by` is the person who forks, for the audit.

        input, replies: what is different: another input, or other replies by activation such as `{"score": {"data": …}}`.
        workflow: another version to go on with.
        """
        if new_run_id is not None and (problem := chosen_id_problem(new_run_id)):
            raise CallerError(f"new_run_id {problem}", code="IDENTITY_INVALID")
        record = self.get(run_id)
        if user_id not in {None, record.user_id}:
            raise RefusedError(f"run {run_id} belongs to another user, who alone may fork it", code="IDENTITY_MISMATCH")
        events = self.store.events(run_id)
        old = self._first_program(record)
        if workflow is None:
            new = self.store.program(record.definition)
        else:
            new = self.store.pin(self._found(workflow), self._library)
        definition = new.graph.definition
        changed = {
            place: response_of(one) if isinstance(one, Reply) else given_response(one, f"replies.{place}")
            for place, one in (replies or {}).items()
        }
        if changed:
            changed = await self.told.value(record, changed, "replies")
        if input is not ...:
            check_input(new, input)
            input = await self.told.value(record, input, "input")  # noqa: A001
        made_id = new_run_id or self.path.ids.new_request(self.now_ms())[0]
        made = await self.path.slices.run(
            forked(
                old,
                new,
                events,
                at=len(events) if at is None else at,
                run_id=made_id,
                data=input,
                replies=changed,
                programs=self.store.program,
            ),
            (record.tenant_id, record.user_id),
        )
        started = made[0]
        assert isinstance(started, history.Started)
        await self._hold_address()
        handle = self._begin(
            definition,
            started.input,
            record.user_id,
            record.tenant_id,
            record.session_id,
            made_id,
            made,
            forked_from=run_id,
            program=new,
        )
        if by:
            self._note(made_id, f"forked from {run_id} by {self.journal.names.of(by)}")
        await self.path.durable()
        return handle

    def compare(self, run_id: str, workflow: Definition | str) -> Difference | None:
        """Return where a new version would have done something else in this run; None if it may move there."""
        return whole(self._difference(self.get(run_id), workflow))

    def _difference(self, record: RunRecord, workflow: Definition | str) -> Sliced[Difference | None]:
        new = self.store.pin(self._found(workflow), self._library)
        return difference(self._first_program(record), new, self.store.events(record.run_id), self.store.program)

    async def migrate(self, run_id: str, workflow: Definition | str) -> RunRecord:
        """Move a waiting run to a new version, if its history proves that both agree so far.

        Raises `CallerError` WORKFLOW_MIGRATION_REFUSED with the step at which they differ.
        """
        record = self.get(run_id)
        if record.status.has_ended:
            raise CallerError(f"run {run_id} has ended", code="WORKFLOW_STATE_CONFLICT")
        count = self._parked.get(run_id)
        found = await self.path.slices.run(self._difference(record, workflow), (record.tenant_id, record.user_id))
        if found is not None:
            raise CallerError(
                f"run {run_id} stays with its version: {found}", code="WORKFLOW_MIGRATION_REFUSED", event=found.number
            )
        definition = self._found(workflow)
        new = self.store.pin(definition, self._library)
        if count is None or self._parked.get(run_id) != count:  # it may have gone on while its history was read
            raise CallerError(f"run {run_id} does not wait here; move it while it waits", code="WORKFLOW_STATE_CONFLICT")
        moved = history.Migrated(self.now_ms(), new.hash)
        self._parked[run_id] = count + 1
        record = replace(
            record,
            began_as=record.began_as or record.definition,
            definition=new.hash,
            version=definition.version,
            workflow=definition.name,
            events=count + 1,
        )
        self.journal.append((*self.store.kept(new), Pages(run_id, count).add(encode_event(moved)), *self.store.save(record)))
        await self.path.durable()
        return record

    def _first_program(self, record: RunRecord) -> Program:
        """Return the version a run began with: its record has the one it goes on with."""
        return self.store.program(record.began_as or record.definition)


def _check_node(record: RunRecord, program: Program, place: str) -> None:
    """Raise `CallerError` for a place (`node`, `node@2`, `each[3]/node`) whose node no workflow of the program has."""
    names = [one.spec.name for one in program.graph.nodes]
    inner = [one.spec.name for part in program.parts.values() for one in part.nodes]
    if re.split(r"[@\[]", place.rpartition("/")[2])[0] not in {*names, *inner}:
        raise CallerError(f"the workflow {record.workflow} has no node {place!r}; its nodes are {', '.join(names)}")
