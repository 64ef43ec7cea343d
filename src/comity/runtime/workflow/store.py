"""What a store keeps of runs: the definition each is pinned to, its record, and its events, which are its whole truth."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from comity.core.journal.records import Document, Saved, below
from comity.core.workflow.graph import Program, compile_program
from comity.core.workflow.history import Answered, Cancelled, Event, Received, Settled, decode_event, encode_event
from comity.core.workflow.model import Definition, content_hash
from comity.core.workflow.read import definition_of
from comity.errors import CallerError, UnavailableError
from comity.ports import Journal
from comity.runtime.session.sealing import Seal

log = logging.getLogger("comity")

_PROGRAMS_MAX: Final = 256
SIGNALS_MAX: Final = 256  # that wait in the store for one run
PAGE_EVENTS_MAX: Final = 32  # kept in one document, which is written anew with each event: most share a commit
PAGE_BYTES_MAX: Final = 4_096  # a longer page is followed by another
OUTLINE_BYTES: Final = 1_024  # of an event: data that the record of a call has too is not written twice
UNCOMMITTED_BYTES_MAX: Final = 8_388_608  # of such data, until the record of the call is written
BELOW: Final = below("")  # between the key of a run and the number of an event
Sent = Answered | Cancelled | Received  # what people and programs send to a run
_RUN, _RUN_EVENT = Document.RUN, Document.RUN_EVENT  # looking an enum's member up takes four times as long


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
        return self in _ENDED


_ENDED: Final = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})
# With the same events a run that waits is newer than one that runs: a fork may wait without any event of its own.
_RANKS: Final = {Status.RUNNING: 1, Status.WAITING: 2, **dict.fromkeys(_ENDED, 3)}


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


class RunRecord(Struct, frozen=True, omit_defaults=True, gc=False):
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
    cost: float = 0.0  # of the tokens, without those that have no price
    currency: str = ""  # empty where the definition has the prices
    unpriced_tokens: int = 0
    questions: tuple[Question, ...] = ()
    waits_for: tuple[str, ...] = ()  # events from outside
    active: tuple[str, ...] = ()  # activations under way
    error_code: str = ""
    error_message: str = ""
    forked_from: str = ""
    began_as: str = ""  # the version it began with, if it has moved


_decode_record = msgspec.json.Decoder(RunRecord).decode
_encode = msgspec.json.Encoder().encode
_NEXT: Final = b"\n"  # between the events of a page, each of which is a line of JSON


class Pages:
    """The history of a run as it is written: pages of a few events, the last of which grows.

    A journal keeps the newest version of a page, so that the events of one commit are one row.
    """

    __slots__ = ("_count", "_key", "_page", "_run_id", "number")

    def __init__(self, run_id: str, number: int = 0) -> None:
        self.number = number  # of the next event, which begins a page
        self._run_id = run_id
        self._key = ""
        self._page = b""
        self._count = PAGE_EVENTS_MAX

    def add(self, event: bytes) -> Saved:
        """Return the record that keeps the next event."""
        page, count = self._page, self._count
        if count >= PAGE_EVENTS_MAX or len(page) > PAGE_BYTES_MAX:
            self._key = f"{self._run_id}{BELOW}{self.number:08d}"
            page, count = event, 1
        else:
            page, count = _NEXT.join((page, event)), count + 1  # formatting takes four times as long
        self._page, self._count = page, count
        self.number += 1
        return Saved(_RUN_EVENT, self._key, count, page)


class RunStore:
    """Reads and writes runs through the journal."""

    def __init__(self, journal: Journal, seal: Seal | None = None) -> None:
        self._journal = journal
        self._seal = seal  # None where nothing is sent between processes
        self._programs: dict[str, Program] = {}
        self._pinned: dict[int, tuple[Definition, Program]] = {}  # by identity: most runs are of the same few
        self._stored: set[str] = set()
        self._uncommitted: dict[
            str, tuple[int, Any]
        ] = {}  # by request id: size and data of long replies that no commit may have
        self._uncommitted_bytes = 0

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
        version = record.events * 3 + _RANKS[record.status]
        return (*more, Saved(_RUN, record.run_id, version, _encode(record)))

    def record(self, run_id: str) -> RunRecord | None:
        """Return a run as it was last kept."""
        stored = self._journal.load(Document.RUN, run_id)
        return None if stored is None else _read_record(run_id, stored[1])

    def records(self) -> list[RunRecord]:
        """Return every run as it was last kept, newest first."""
        found = (_read_record(key, data) for key, data in self._journal.list_documents(Document.RUN))
        return sorted(filter(None, found), key=lambda one: (one.created_at, one.run_id), reverse=True)

    def outline(self, run_id: str, event: Settled, size: int) -> bytes:
        """Return the end of a step without its data, which the record of its call has, or will have with the next commit."""
        if self._journal.is_idle:
            self._uncommitted.clear()
            self._uncommitted_bytes = 0
        self._uncommitted[f"{run_id}.{event.step}"] = (size, event.reply.get("data"))
        self._uncommitted_bytes += size
        while self._uncommitted_bytes > UNCOMMITTED_BYTES_MAX:
            self._uncommitted_bytes -= self._uncommitted.pop(next(iter(self._uncommitted)))[0]
        return encode_event(replace(event, reply={**event.reply, "data": None}, is_outlined=True))

    def count(self, run_id: str) -> int:
        """Return how many events a run has."""
        return sum(page.count(_NEXT) + 1 for _, page in self._journal.documents_below(Document.RUN_EVENT, run_id))

    def events(self, run_id: str) -> list[Event]:
        """Return what happened to a run, in order. Data that its retention has removed is None."""
        return list(self.walk(run_id))

    def walk(self, run_id: str) -> Iterator[Event]:
        """Return what has happened to a run until now as an iterator, which decodes one event after the other."""
        pages = self._journal.documents_below(Document.RUN_EVENT, run_id)
        found = (decode_event(line) for _, page in pages for line in page.split(_NEXT))
        return (self._whole(run_id, one) if isinstance(one, Settled) and one.is_outlined else one for one in found)

    def happened(self, run_id: str, kind: type[Sent]) -> Iterator[Event]:
        """Return the events of one kind in the history of a run; no other event is decoded, since a history may be long."""
        mark = b'{"type":"%s"' % str(kind.__struct_config__.tag).encode()
        for _, page in self._journal.documents_below(Document.RUN_EVENT, run_id):
            for line in page.split(_NEXT):
                if line.startswith(mark):
                    yield decode_event(line)

    def _whole(self, run_id: str, event: Settled) -> Settled:
        """Return an event with the data that the record of its call has."""
        request_id = f"{run_id}.{event.step}"
        stored = self._journal.call(request_id)
        is_there = stored is not None and stored.reply is not None and stored.settled_at is not None
        data = stored.reply.data if is_there else self._uncommitted.get(request_id, (0, None))[1]  # type: ignore[union-attr]
        return replace(event, reply={**event.reply, "data": data}, is_outlined=False)

    # --- signals from other processes ---

    def signal(self, run_id: str, name: str, event: Event) -> Saved:
        """Return the record by which another process notifies the process that holds a run of an event."""
        key, data = below(run_id, name), encode_event(event)
        return Saved(Document.RUN_SIGNAL, key, 1, data if self._seal is None else self._seal.sealed(f"signal {key}", data))

    def signalled(self) -> list[str]:
        """Return the runs to which other processes sent something that is not in their history yet."""
        keys = (key for key, _ in self._journal.list_documents(Document.RUN_SIGNAL))
        return list(dict.fromkeys(key.partition(BELOW)[0] for key in keys))

    def count_signals(self, run_id: str) -> int:
        """Return how many signals wait for a run."""
        return len(self._journal.documents_below(Document.RUN_SIGNAL, run_id))

    def signals(self, run_id: str, name: str = "") -> list[tuple[str, Event]]:
        """Return what other processes sent to a run, in the order of their times: the key of each signal, and the event.

        name: what the names of the signals begin with. A signal that cannot be read is logged and left out.
        """
        sent: list[tuple[str, Event]] = []
        for key, data in self._journal.documents_below(Document.RUN_SIGNAL, run_id):
            if not key.startswith(below(run_id, name)):
                continue
            try:
                opened = data if self._seal is None else self._seal.opened(f"signal {key}", data)
                sent.append((key, decode_event(opened)))
            except (msgspec.DecodeError, UnavailableError) as error:
                log.warning("what was sent to run %s cannot be read: %s", run_id, error)
        return sorted(sent, key=lambda one: one[1].at_ms)

    def forget_signal(self, key: str) -> None:
        """Remove a signal that is in the history of its run."""
        self._journal.remove(Document.RUN_SIGNAL, key)


def _read_record(run_id: str, data: bytes) -> RunRecord | None:
    """Return the record of a run; None, with a line in the log, for a record that cannot be read."""
    try:
        record: RunRecord = _decode_record(data)
    except msgspec.DecodeError as error:
        log.error("the record of run %s cannot be read, and the run is left out: %s", run_id, error)  # noqa: TRY400
        return None
    return record


def _bundle(definition: Definition, parts: Mapping[str, Definition]) -> dict[str, Any]:
    return {"definition": definition.document, "parts": {name: one.document for name, one in parts.items()}}
