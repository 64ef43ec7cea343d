"""Spans kept in memory and asked as the store is asked, for a node without one. The newest stay."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from comity.core.journal.retention import Keep, Pruned, Sweep
from comity.core.tracing.call_spans import span_of
from comity.core.tracing.query import Query, SearchResult, Series, lenient, matched_spans
from comity.core.tracing.query import query_instant as run_instant
from comity.core.tracing.query import query_range as run_range
from comity.core.tracing.query import search as run_search
from comity.core.tracing.query.rewrite import newest_first
from comity.core.tracing.query.search import LIMIT_DEFAULT, SPANS_PER_SPANSET_DEFAULT
from comity.core.tracing.span import Span, group_by_trace
from comity.core.tracing.telemetry import CallEnd, Ended, Recorded, Settings, is_of_session, tenant_of
from comity.core.units import NS_PER_MS


class MemorySpans:
    """The newest spans of one process."""

    is_far = False

    def __init__(self, settings: Settings, kept: deque[Recorded], tenant_id: str | None = None) -> None:
        self._settings = settings
        self._kept = kept
        self._tenant_id = tenant_id  # None: all of them

    def of_tenant(self, tenant_id: str) -> MemorySpans:
        """Return these spans as one tenant sees them."""
        return MemorySpans(self._settings, self._kept, tenant_id)

    def ingest(self, spans: Iterable[Span]) -> int:
        """Keep spans and return how many came; the oldest make room."""
        new = list(spans)
        self._kept.extend(new)
        return len(new)

    def erase(self, session_id: str, *, tenant_id: str = "default") -> int:
        """Remove every span of a session and return how many."""
        left = [one for one in self._kept if not _is_of(one, session_id, tenant_id)]
        erased = len(self._kept) - len(left)
        self._kept.clear()
        self._kept.extend(left)
        return erased

    def prune(self, keep: Keep, now_ms: int) -> Sweep:
        """Remove spans that are kept no longer; these are few, and go in one step."""
        before = keep.before_ms(now_ms)
        old = 0
        while before is not None and old < len(self._kept) and self._kept[old].end_ns < before * NS_PER_MS:
            old += 1  # they are kept in the order they ended
        if keep.count is not None:
            old = max(old, len(self._kept) - keep.count)
        for _ in range(old):
            self._kept.popleft()
        if old:
            yield Pruned(spans=old)

    def count(self) -> int:
        """Return how many spans are kept."""
        return len(self._spans())

    def trace(self, trace_id: str) -> list[Span]:
        """Return the spans of a trace; leading zeros may be missing."""
        wanted = trace_id.rjust(32, "0")
        return [span for span in self._spans() if span.trace_id == wanted]

    def search(
        self,
        query: str | Query,
        *,
        start_ns: int | None = None,
        end_ns: int | None = None,
        limit: int = LIMIT_DEFAULT,
        spss: int = SPANS_PER_SPANSET_DEFAULT,
        strict: bool = False,
    ) -> SearchResult:
        """Return the traces a query finds, those that came last first until the limit; 0 means no limit."""
        traces = reversed(group_by_trace(self._spans()))
        prepared = lenient(query, strict=strict)
        return run_search(prepared, traces, start_ns=start_ns, end_ns=end_ns, limit=limit, spans_per_spanset=spss)

    def find(self, query: str | Query, *, start_ns: int | None = None, end_ns: int | None = None, limit: int = 0) -> list[Span]:
        """Return every span a query finds, whole; with a `limit`, only the spans of the newest `limit` traces."""
        asked = newest_first(lenient(query)) if limit else query
        return matched_spans(self.search(asked, start_ns=start_ns, end_ns=end_ns, limit=limit, spss=0))

    def query_range(
        self, query: str | Query, *, start_ns: int, end_ns: int, step_ns: int, strict: bool = False
    ) -> tuple[Series, ...]:
        """Return the time series of a metrics query."""
        traces = group_by_trace(self._spans())
        return run_range(lenient(query, strict=strict), traces, start_ns=start_ns, end_ns=end_ns, step_ns=step_ns)

    def query_instant(self, query: str | Query, *, start_ns: int, end_ns: int, strict: bool = False) -> tuple[Series, ...]:
        """Return one sample for each series of a metrics query, over the whole range."""
        return run_instant(lenient(query, strict=strict), group_by_trace(self._spans()), start_ns=start_ns, end_ns=end_ns)

    def _spans(self) -> list[Span]:
        settings = self._settings
        spans = [
            span_of(one, settings)
            for one in tuple(self._kept)
            if not isinstance(one, CallEnd) or settings.samples(one.request.trace_id, one.remote)
        ]
        if self._tenant_id is None:
            return spans
        return [span for span in spans if tenant_of(span.attributes) == self._tenant_id]


def _is_of(one: Recorded, session_id: str, tenant_id: str) -> bool:
    if isinstance(one, CallEnd):
        return (one.request.session_id, one.request.tenant_id) == (session_id, tenant_id)
    if isinstance(one, Ended):
        return (one.session_id, one.tenant_id) == (session_id, tenant_id)
    return is_of_session(one.attributes, session_id, tenant_id)
