"""Sinks and sources of spans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from comity.core.journal.retention import Keep, Sweep
from comity.core.tracing.span import Span
from comity.core.tracing.telemetry import ExportStats

if TYPE_CHECKING:  # loaded where guidance and queries are used
    from comity.core.tracing.query import Query, SearchResult, Series


class SpanSink(Protocol):
    """Stores spans."""

    def ingest(self, spans: Iterable[Span]) -> int:
        """Take spans and return how many were new."""
        ...


class SpanSource(Protocol):
    """Answers queries for spans: the embedded store, a node's memory, or a remote Tempo."""

    @property
    def is_far(self) -> bool:
        """Whether reading a trace costs a request to another machine."""
        ...

    def trace(self, trace_id: str) -> list[Span]:
        """Return the spans of a trace; leading zeros of its id may be missing."""
        ...

    def find(self, query: str | Query, *, start_ns: int | None = None, end_ns: int | None = None, limit: int = 0) -> list[Span]:
        """Return every span a query finds, whole; with a `limit`, only the spans of the newest `limit` traces."""
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


class KeptSpans(SpanSource, Protocol):
    """The spans that a node keeps."""

    def erase(self, session_id: str, *, tenant_id: str = "default") -> int:
        """Remove every span of a session and return how many."""
        ...

    def prune(self, keep: Keep, now_ms: int) -> Sweep:
        """Remove spans past their retention, one slice per step."""
        ...


class SpanFile(KeptSpans, Protocol):
    """Spans in a file."""

    def check(self) -> None:
        """Raise if the file was removed or replaced."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


class SpanExporter(Protocol):
    """Sends spans to a collector, from a thread of its own."""

    @property
    def stats(self) -> ExportStats:
        """The statistics of the export."""
        ...

    def offer(self, spans: Sequence[Any], /) -> None:
        """Take what was recorded."""
        ...

    def close(self) -> None:
        """Send pending spans, within a time limit."""
        ...


class SpanDrain(Protocol):
    """Writes spans into a file and passes them on to an exporter, from a thread of its own."""

    last_error: str

    @property
    def dropped(self) -> int:
        """How many spans the file could not take."""
        ...

    def offer(self, batch: Sequence[Any], /) -> None:
        """Take what was recorded."""
        ...

    def when_done(self, then: Callable[[], object]) -> None:
        """Call `then` when all spans offered so far are written or lost."""
        ...

    def close(self, then: Callable[[], object] | None = None) -> None:
        """Write pending spans, close the exporter, and call `then`."""
        ...
