"""Where spans go, and where they are asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from comity.core.tracing.span import Span

if TYPE_CHECKING:  # loaded where guidance and queries are used
    from comity.core.tracing.query import Query, SearchResult, Series


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
