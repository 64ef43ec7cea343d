"""What a store keeps of runs: the definition each is pinned to, its record, and its events, which are its whole truth."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from comity.core.journal.records import Document, Saved, below
from comity.core.workflow.graph import Program, compile_program
from comity.core.workflow.history import Event, Settled, decode_event, encode_event
from comity.core.workflow.model import Definition, content_hash
from comity.core.workflow.read import definition_of
from comity.errors import CallerError
from comity.ports import Journal

_PROGRAMS_MAX: Final = 256
OUTLINE_BYTES: Final = 1_024  # of an event: data that the record of a call has too is not written twice
BELOW: Final = below("")  # between the key of a run and the number of an event


class Status(StrEnum):
    """How a run stands."""

    RUNNING = "running"
    WAITING = "waiting"  # for a person, a time or an event
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def has_ended(self) -> bool:
        """Whether nothing follows."""
        return self in {Status.COMPLETED, Status.FAILED, Status.CANCELLED}


class Question(Struct, frozen=True, omit_defaults=True):
    """A question to a person that is open."""

    question_id: str
    place: str
    node: str
    text: str
    options: tuple[Any, ...] = ()
    schema: dict[str, Any] | None = None
    due_at: int | None = None
    asked_at: int = 0
    is_clarification: bool = False


class RunRecord(Struct, frozen=True, omit_defaults=True):
    """One run, as lists show it."""

    run_id: str
    workflow: str
    version: str
    definition: str  # the content hash of the version it goes on with
    status: Status
    user_id: str
    tenant_id: str
    session_id: str
    created_at: int
    updated_at: int
    ended_at: int | None = None
    due_at: int | None = None  # when it goes on by itself
    events: int = 0
    steps: int = 0
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    questions: tuple[Question, ...] = ()
    waits_for: tuple[str, ...] = ()  # events from outside
    active: tuple[str, ...] = ()  # activations under way
    error_code: str = ""
    error_message: str = ""
    forked_from: str = ""
    began_as: str = ""  # the version it began with, if it has moved


_decode_record = msgspec.json.Decoder(RunRecord).decode
_encode = msgspec.json.Encoder().encode


class RunStore:
    """Reads and writes runs through the journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._programs: dict[str, Program] = {}
        self._pinned: dict[int, tuple[Definition, Program]] = {}  # by identity: most runs are of the same few
        self._stored: set[str] = set()

    # --- definitions ---

    def pin(self, definition: Definition, library: Mapping[str, Definition]) -> Program:
        """Return a definition compiled with its parts, under its content hash. Raises `CallerError` if a part is missing."""
        known = self._pinned.get(id(definition))
        if known is not None and known[0] is definition:
            return known[1]
        parts: dict[str, Definition] = {}
        waiting = list(definition.uses)
        while waiting:
            name = waiting.pop()
            if name not in parts:
                if name not in library:
                    what = f"{definition.name} runs the workflow {name}, which the node does not know"
                    raise CallerError(what, code="WORKFLOW_UNKNOWN")
                parts[name] = library[name]
                waiting += library[name].uses
        key = content_hash(_bundle(definition, parts))
        program = self._programs.get(key) or self._keep(compile_program(definition, parts, key))
        if len(self._pinned) >= _PROGRAMS_MAX:
            self._pinned.clear()
        self._pinned[id(definition)] = (definition, program)
        return program

    def unpin(self) -> None:
        """Look parts up again: the library has changed."""
        self._pinned.clear()

    def kept(self, program: Program) -> tuple[Saved, ...]:
        """Return the record that keeps a definition, if it is not in the store yet."""
        if program.hash in self._stored:
            return ()
        self._stored.add(program.hash)
        parts = {name: graph.definition for name, graph in program.parts.items()}
        return (Saved(Document.WORKFLOW, program.hash, 1, _encode(_bundle(program.graph.definition, parts))),)

    def program(self, key: str) -> Program:
        """Return the definition under a content hash. Raises `CallerError` if the store does not have it."""
        found = self._programs.get(key)
        if found is not None:
            return found
        stored = self._journal.load(Document.WORKFLOW, key)
        if stored is None:
            raise CallerError(f"the store has no definition {key[:12]}", code="WORKFLOW_UNKNOWN")
        bundle = msgspec.json.decode(stored[1])
        library = {name: definition_of(one) for name, one in bundle["parts"].items()}
        return self._keep(compile_program(definition_of(bundle["definition"]), library, key))

    def _keep(self, program: Program) -> Program:
        if len(self._programs) >= _PROGRAMS_MAX:
            self._programs.pop(next(iter(self._programs)))
        self._programs[program.hash] = program
        return program

    # --- runs ---

    def save(self, record: RunRecord, *more: Saved) -> tuple[Saved, ...]:
        """Return the records that keep a run as it stands now."""
        version = record.events * 2 + record.status.has_ended + 1
        return (*more, Saved(Document.RUN, record.run_id, version, _encode(record)))

    def record(self, run_id: str) -> RunRecord | None:
        """Return a run as it was last kept."""
        stored = self._journal.load(Document.RUN, run_id)
        return None if stored is None else _decode_record(stored[1])

    def records(self) -> list[RunRecord]:
        """Return every run as it was last kept, newest first."""
        found = [_decode_record(data) for _, data in self._journal.list_documents(Document.RUN)]
        return sorted(found, key=lambda one: (one.created_at, one.run_id), reverse=True)

    def event(self, run_id: str, number: int, event: Event) -> Saved:
        """Return the record that keeps an event."""
        return Saved(Document.RUN_EVENT, f"{run_id}{BELOW}{number:08d}", 1, encode_event(event))

    def outline(self, run_id: str, number: int, event: Settled) -> Saved:
        """Return the record that keeps the end of a step without its data, which the record of its call has."""
        return self.event(run_id, number, replace(event, reply={**event.reply, "data": None}, is_outlined=True))

    def events(self, run_id: str) -> list[Event]:
        """Return what happened to a run, in order. Data that its retention has removed, or that no commit has yet, is None."""
        found = [decode_event(data) for _, data in self._journal.documents_below(Document.RUN_EVENT, run_id)]
        return [self._whole(run_id, one) if isinstance(one, Settled) and one.is_outlined else one for one in found]

    def _whole(self, run_id: str, event: Settled) -> Settled:
        """Return an event with the data that the record of its call has."""
        stored = self._journal.call(f"{run_id}.{event.step}")
        data = None if stored is None or stored.reply is None else stored.reply.data
        return replace(event, reply={**event.reply, "data": data}, is_outlined=False)

    # --- signals from other processes ---

    def signal(self, run_id: str, name: str, event: Event) -> Saved:
        """Return the record by which another process notifies the process that holds a run of an event."""
        return Saved(Document.RUN_SIGNAL, below(run_id, name), 1, encode_event(event))

    def signals(self) -> list[tuple[str, str, Event]]:
        """Return what other processes sent: the run, the key of the signal, and the event."""
        found = self._journal.list_documents(Document.RUN_SIGNAL, 1_000)
        return [(key.partition(BELOW)[0], key, decode_event(data)) for key, data in found]

    def forget_signal(self, key: str) -> None:
        """Remove a signal that is in the history of its run."""
        self._journal.remove(Document.RUN_SIGNAL, key)


def _bundle(definition: Definition, parts: Mapping[str, Definition]) -> dict[str, Any]:
    return {"definition": definition.document, "parts": {name: one.document for name, one in parts.items()}}
