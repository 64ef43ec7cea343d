"""What the runtime needs from outside. Engines supply it for real, `comity.testing` supplies faulty twins.

Timers and tasks come from the running asyncio event loop, which a simulation replaces as a whole; everything else that could
differ from run to run comes in through here.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from comity.core.audit import Pseudonyms, Row, Verdict
from comity.core.envelope import Request
from comity.core.fencing import Terms
from comity.core.handoff import Handoff, State
from comity.core.handoff_queue import Step
from comity.core.journal import Document, Record, StoredCall
from comity.core.lease import Lease
from comity.core.model import Completion, Prompt
from comity.core.retention import Retention, Sweep
from comity.core.span import Span
from comity.errors import UnavailableError

if TYPE_CHECKING:  # loaded where guidance and queries are used
    from comity.core.guidance import Guidance
    from comity.core.payload import Problem
    from comity.core.query import Query, SearchResult, Series

Then = Callable[[Exception | None], None]
Receive = Callable[[str, bytes], None]  # the sender's node id, and what it sent


class SpanSink(Protocol):
    """Where spans go."""

    def ingest(self, spans: Iterable[Span]) -> int:
        """Take spans and return how many were new."""
        ...


class SpanSource(Protocol):
    """Where spans are asked for: the embedded store, a node's memory, or a Tempo elsewhere."""

    @property
    def is_far(self) -> bool:
        """Whether every trace that is read costs a request to another machine."""
        ...

    def trace(self, trace_id: str) -> list[Span]:
        """Return the spans of a trace; leading zeros of its id may be missing."""
        ...

    def find(self, query: str | Query, *, start_ns: int | None = None, end_ns: int | None = None, limit: int = 0) -> list[Span]:
        """Return every span a query finds, whole; with a `limit`, those of so many traces, the newest of them."""
        ...

    def search(
        self,
        query: str | Query,
        *,
        start_ns: int | None = None,
        end_ns: int | None = None,
        limit: int = 20,
        spss: int = 3,
        strict: bool = False,
    ) -> SearchResult:
        """Return the traces a query finds, and of each the first spans."""
        ...

    def query_range(
        self, query: str | Query, *, start_ns: int, end_ns: int, step_ns: int, strict: bool = False
    ) -> tuple[Series, ...]:
        """Return the time series of a metrics query."""
        ...


class Clock(Protocol):
    """Time that never runs backwards, anchored to the epoch."""

    def now_ns(self) -> int:
        """Return nanoseconds since the epoch."""
        ...


class Ids(Protocol):
    """Names nobody used before, and chance."""

    def new_request(self, now_ms: int) -> tuple[str, str]:
        """Return a new request id, which sorts after those made earlier, and the trace id that goes with it."""
        ...

    def trace_id(self) -> str:
        """Return 32 hex digits."""
        ...

    def span_id(self) -> str:
        """Return 16 hex digits."""
        ...

    def entropy(self) -> bytes:
        """Return 16 bytes nobody can guess."""
        ...

    def chance(self) -> float:
        """Return a number from 0 to below 1."""
        ...


class Handoffs(Protocol):
    """The handoff queue of a journal, as it is read. It is changed by steps, which go through the journal."""

    @property
    def knows_of_the_dead(self) -> bool:
        """Whether nodes were found dead whose handoffs nobody has released yet."""
        ...

    def look_for_the_dead(self) -> None:
        """See which nodes are gone of those that hold something or listen."""
        ...

    def open(self, heard: Callable[[set[str] | None], None]) -> None:
        """Make ready and begin to hear: `+lane` has something free, `=id` has changed, `!id` has
        ended, `-id` is no longer its holder's; None: anything may have happened.
        """
        ...

    def close(self) -> None:
        """Hear no more."""
        ...

    def get(self, handoff_id: str) -> Handoff | None:
        """Return a handoff."""
        ...

    def get_again(self, handoffs: Collection[Handoff]) -> list[Handoff]:
        """Return those of these that there still are as they stand now."""
        ...

    def by_trace(self, trace_id: str) -> list[Handoff]:
        """Return the handoffs that belong to a trace, or whose result was recorded in it."""
        ...

    def find(self, *, states: Collection[State] = ..., lane: str | None = None, limit: int = 100) -> list[Handoff]:
        """Return handoffs, newest first."""
        ...

    def count_free(self, lane: str) -> int:
        """Return how many wait in a lane."""
        ...

    def next_due(self) -> int | None:
        """Return when somebody has to look at the queue, unless something happens before."""
        ...


class HandoffJournal(Protocol):
    """A journal that keeps a handoff queue."""

    @property
    def node_id(self) -> str:
        """Name of this holder of the journal."""
        ...

    @property
    def handoffs(self) -> Handoffs:
        """The queue."""
        ...

    def append(self, records: Sequence[Record | Step], then: Then | None = None) -> None:
        """Write records and do steps, after all earlier ones."""
        ...


class Journal(Protocol):
    """Where records go, in order, and where they are read back.

    `append` never waits. Records of one `append` become durable together or not at all. `then` is called in the event loop once
    they and all before them are durable, or with the error that stopped the journal; after an error nothing is accepted.

    An append on terms is checked against the store, also against what other nodes wrote, in the same step in which it is
    written. Where they do not hold nothing of it is written, `then` is told `StaleLeaseError` or `CallChangedError`, and the
    journal goes on. What such an append amounts to, `core.fencing.taken` says.
    """

    @property
    def node_id(self) -> str:
        """Name of this holder of the journal, new each time it is opened."""
        ...

    names: Pseudonyms  # how names stand in the audit; set by the node, which has the key, before it appends anything

    @property
    def failure(self) -> UnavailableError | None:
        """Why nothing is accepted any more, once that is so: it stays so until the node is restarted."""
        ...

    @property
    def has_company(self) -> bool:
        """Whether other nodes may be writing to the same store at this moment."""
        ...

    def visits(self) -> int:
        """Return a generation counter; it changes when another process may have written since the previous call.

        What a node keeps in memory of sessions and states is then read again. Always the same where nobody else can write, and
        where nodes pass calls on to each other and read again with each.
        """
        ...

    def open(self) -> None:
        """Make ready. Raises `UnavailableError` if the store cannot be used."""
        ...

    async def close(self) -> None:
        """Make everything durable and let go."""
        ...

    def append(self, records: Sequence[Record], then: Then | None = None, terms: Terms | None = None) -> None:
        """Write records after all earlier ones, if the terms hold."""
        ...

    def call(self, request_id: str) -> StoredCall | None:
        """Return a call by id."""
        ...

    def calls(self, *, limit: int) -> list[StoredCall]:
        """Return calls by users, newest first."""
        ...

    def abandoned(self) -> list[StoredCall]:
        """Return open calls whose node is gone, and make them this node's own."""
        ...

    def open_roots(self) -> list[StoredCall]:
        """Return the open calls by users that no person is asked about, whichever node runs them, oldest first."""
        ...

    def begun(self, request: Request) -> int:
        """Return how many calls below this one were accepted, ended or not, as of the last commit."""
        ...

    def take_paused(self, root_id: str) -> list[StoredCall]:
        """Return the open calls of a paused tree and make them this node's own; nothing if another node was first."""
        ...

    def load(self, kind: Document, key: str) -> tuple[int, bytes] | None:
        """Return version and data of a document."""
        ...

    def list_documents(self, kind: Document, limit: int | None = None) -> list[tuple[str, bytes]]:
        """Return the documents of a kind with their keys, in order of keys, at most `limit`."""
        ...

    def erase(self, tenant_id: str, session_id: str) -> int:
        """Remove a session's documents, calls and replies for good and return how many; the audit stays whole."""
        ...

    def remove(self, kind: Document, key: str) -> bool:
        """Remove a document for good; return whether there was one. Nothing of it may be on its way to the store."""
        ...

    def sessions_of(self, tenant_id: str, user_id: str) -> set[str]:
        """Return the ids of the sessions in which a user called or handed work off, also of calls that named none."""
        ...

    @property
    def prunes_aside(self) -> bool:
        """Whether a sweep may be stepped through in another thread than the event loop's, and should be, since it waits."""
        ...

    def prune(self, retention: Retention, now_ms: int) -> Sweep:
        """Remove what is kept no longer, a slice with each step; spans aside. What is still needed stays."""
        ...

    def rows(self, *, after_id: int = 0, limit: int | None = None, root_id: str | None = None) -> list[Row]:
        """Return audit rows in order."""
        ...

    def verify(self) -> Verdict:
        """Check the whole audit chain."""
        ...


class Leases(Protocol):
    """Who holds which address, decided in one place, for a limited time by that place's own clock.

    A token is given out once: each grant of an address to another holder, or to the same one after its lease ran out, carries a
    greater token than every grant before. `core.lease` has the rules as pure functions. Any method may take long or raise
    `UnavailableError`; then nobody knows whether it happened, and the caller asks again.
    """

    async def acquire(self, address: str, holder: str) -> Lease:
        """Ask for an address. Return who holds it now and for how long: `holder` itself if it was free, had run out or was
        `holder`'s already (its token stays), and otherwise somebody else."""
        ...

    async def find(self, address: str) -> Lease | None:
        """Return who holds an address, without asking for it; None if nobody does."""
        ...

    async def renew(self, lease: Lease) -> Lease | None:
        """Extend a lease that `lease.holder` has under `lease.token`; None if it ran out or is another's."""
        ...

    async def release(self, lease: Lease) -> None:
        """Give a lease back before its time; one that was lost already changes nothing."""
        ...


class Transport(Protocol):
    """Carries messages between nodes. It promises nothing: each may be lost, late, doubled or overtaken by a later one.

    What it does promise is who sent a message, and that one it delivers is whole. The runtime numbers, repeats and expires.
    """

    async def open(self, node_id: str, receive: Receive) -> None:
        """Take part under a name; `receive` is called in the event loop with each message that arrives."""
        ...

    async def close(self) -> None:
        """Leave; what has not arrived yet never will."""
        ...

    def send(self, node_id: str, message: bytes) -> None:
        """Send a message. Never waits, and says nothing about a node that is not there."""
        ...

    def peers(self) -> Sequence[str]:
        """Return the other nodes that take part, sorted, as far as is known: some may be gone."""
        ...


class Threads(Protocol):
    """Threads beside the event loop. A loop that keeps its own time brings its own as its attribute `threads`."""

    def start(self, work: Callable[[], None], *, waits: bool) -> None:
        """Run `work`, which never raises, beside the loop; `waits` if it may call `wait`. Called in the loop."""
        ...

    def wait(self, gate: threading.Lock) -> None:
        """Wait, in a thread that was started, until the loop has opened the gate, which is a lock that is held."""
        ...

    def go_on(self, gate: threading.Lock) -> None:
        """Open the gate. Called in the loop."""
        ...

    def close(self) -> None:
        """Let go of the threads that are idle."""
        ...


class Model(Protocol):
    """A language model. Everything an agent needs of one is this.

    `stream` yields pieces of the text as they come, then the whole answer, once, and ends. A model that cannot stream yields
    the answer alone. Closing the generator, or cancelling who reads it, closes the connection. What goes wrong is raised as
    `core.model.model_error`; a stream that breaks off without an answer is `MODEL_FAILED`. Nothing is retried here: who asks
    knows the deadline. A model that keeps connections has a coroutine `aclose` as well, which a node awaits when it closes;
    it can be asked again afterwards.
    """

    @property
    def name(self) -> str:
        """How the model is named to people, such as `openai:gpt-5`."""
        ...

    def stream(self, prompt: Prompt) -> AsyncGenerator[str | Completion, None]:
        """Ask, and yield pieces of the answer's text and last the whole answer."""
        ...


class GuidanceSource(Protocol):
    """Where people keep a project's guidance, and agents answer."""

    def read(self) -> tuple[dict[str, Any], Guidance, tuple[Problem, ...]]:
        """Return the document, its guidance and what is wrong with it. Raises `ComityError` if it cannot be read at all."""
        ...

    def change(self, how: Callable[[Guidance], Guidance]) -> Guidance:
        """Apply a change to what the document says now, whoever else changes it at the same time, and return the result."""
        ...

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` from another thread whenever the document may have changed; return what ends that.

        When it raises `UnavailableError` it is called again after a while.
        """
        ...
