"""The same queries against a Grafana Tempo, over its HTTP API.

    tempo = TempoStore("http://localhost:3200", tenant="team-a")
    InsightQuerier(tempo).query(project_id="checkout-service", insight_type="decision", time_range="24h")

A lenient query is sent in its strict form, times in whole seconds, and ids come back padded. Reading changes nothing, so what
failed for the moment is tried again. Tempo only ever looks at a stretch of time: without a start, it is the last week.
"""

from __future__ import annotations

import http.client
import json
import logging
import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar
from urllib.parse import urlencode, urlsplit

from comity.core.tracing.query import (
    Fault,
    Query,
    QueryError,
    SearchResult,
    Series,
    decode_search,
    decode_series,
    lenient,
    matched_spans,
    search,
)
from comity.core.tracing.query.rewrite import newest_first
from comity.core.tracing.query.search import LIMIT_DEFAULT, SPANS_PER_SPANSET_DEFAULT
from comity.core.tracing.span import Span, SpanError, decode_spans
from comity.engines.clock import SystemClock
from comity.errors import CallerError, UnavailableError
from comity.ports import Clock

log = logging.getLogger("comity")

ATTEMPTS_MAX: Final = 4
RETRY_S_FIRST: Final = 0.5
RETRY_S_MAX: Final = 10.0
RETRYABLE: Final = frozenset({429, 502, 503, 504})
TIMEOUT_S: Final = 30.0
ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
# What Tempo searches at most unless it is configured otherwise.
LOOKBACK_S: Final = 7 * 24 * 60 * 60
# Traces that `find` looks at, and how many it fetches at a time.
TRACES_MAX: Final = 5_000
PARALLEL_MAX: Final = 8
# Tempo refuses more spans per spanset than this.
SPANS_PER_SPANSET_MAX: Final = 100
TENANT_HEADER: Final = "X-Scope-OrgID"

Read = TypeVar("Read")

_SECOND_NS: Final = 10**9
_PLACE: Final = re.compile(r"line (\d+), col (\d+): (.*)", re.DOTALL)


class TempoStore:
    """Spans in a Tempo."""

    is_far = True

    def __init__(
        self,
        url: str,
        *,
        tenant: str = "",
        headers: Mapping[str, str] | None = None,
        timeout_s: float = TIMEOUT_S,
        retry_s: float = RETRY_S_FIRST,
        clock: Clock | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._address = urlsplit(url)
        if self._address.scheme not in ("http", "https") or not self._address.hostname:
            raise CallerError(f"{url!r} is not the address of a Tempo, such as http://localhost:3200", field="url")
        self.url = url
        self._headers = {"Accept": "application/json"} | ({TENANT_HEADER: tenant} if tenant else {}) | dict(headers or {})
        self._timeout_s = timeout_s
        self._retry_s = retry_s
        self._clock = clock or SystemClock()
        self._sleep = sleep

    def trace(self, trace_id: str) -> list[Span]:
        """Return the spans of a trace; none if it is unknown. Leading zeros may be missing."""
        if not re.fullmatch("[0-9a-fA-F]{1,32}", trace_id):
            return []
        found = self._get(f"/api/traces/{trace_id.lower().rjust(32, '0')}", {}, is_missing_fine=True)
        return [] if found is None else self._read(decode_spans, found)

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
        """Return the traces a query finds, with of each span what the query asked for; `find` returns whole spans."""
        parameters = self._range(start_ns, end_ns) | {
            "q": str(lenient(query, strict=strict)),
            "limit": limit or TRACES_MAX,
            "spss": min(spss, SPANS_PER_SPANSET_MAX) or SPANS_PER_SPANSET_MAX,
        }
        return self._read(decode_search, self._get("/api/search", parameters))

    def find(self, query: str | Query, *, start_ns: int | None = None, end_ns: int | None = None, limit: int = 0) -> list[Span]:
        """Return every span a query finds, whole: Tempo names the traces, and the query runs here on those.

        With a `limit`, only the spans of the newest `limit` traces. Of more than `TRACES_MAX` traces the rest is left out, and
        the log says so.
        """
        prepared = lenient(query)
        most = min(limit or TRACES_MAX, TRACES_MAX)
        asked = newest_first(prepared) if limit else prepared
        named = self.search(asked, start_ns=start_ns, end_ns=end_ns, limit=most, spss=1)
        if len(named.traces) >= most and most != limit:
            log.warning("%s has more than %d traces for %s; the rest is left out", self.url, most, prepared)
        with ThreadPoolExecutor(PARALLEL_MAX) as pool:
            traces = list(pool.map(self.trace, (trace.trace_id for trace in named.traces)))
        return matched_spans(search(prepared, traces, start_ns=start_ns, end_ns=end_ns, limit=0, spans_per_spanset=0))

    def query_range(
        self, query: str | Query, *, start_ns: int, end_ns: int, step_ns: int, strict: bool = False
    ) -> tuple[Series, ...]:
        """Return the time series of a metrics query; the step is rounded up to whole seconds."""
        parameters = self._range(start_ns, end_ns) | {
            "q": str(lenient(query, strict=strict)),
            "step": f"{max(-(-step_ns // _SECOND_NS), 1)}s",
        }
        return self._read(decode_series, self._get("/api/metrics/query_range", parameters))

    def _range(self, start_ns: int | None, end_ns: int | None) -> dict[str, Any]:
        """Return a time range in whole seconds that covers what was asked."""
        end_s = -(-(self._clock.now_ns() if end_ns is None else end_ns) // _SECOND_NS)
        start_s = end_s - LOOKBACK_S if start_ns is None else start_ns // _SECOND_NS
        return {"start": max(start_s, 0), "end": max(end_s, start_s + 1)}

    # --- asking ---

    def _get(self, path: str, parameters: Mapping[str, Any], *, is_missing_fine: bool = False) -> Any:
        """Return the JSON of an answer, tried again while Tempo is busy; None for what is missing where that is fine."""
        failures = 0
        while True:
            why, after_s = "", None
            try:
                status, headers, body = self._request(path, parameters)
            except (OSError, http.client.HTTPException) as error:
                why = f"{type(error).__name__}: {error}"
            else:
                if status == 200:
                    return self._read(json.loads, body)
                if status == 404 and is_missing_fine:
                    return None
                if status == 400:
                    raise _refused(body)
                if status not in RETRYABLE:
                    raise _unavailable(f"{self.url} answered HTTP {status} to {path}: {_shortened(body)}")
                why, retry_after = f"HTTP {status}", headers.get("Retry-After") or ""
                after_s = float(retry_after) if retry_after.isdecimal() else None
            failures += 1
            if failures == ATTEMPTS_MAX:
                raise _unavailable(f"{self.url} cannot be asked: {why}, {ATTEMPTS_MAX} times")
            self._sleep(min(max(self._retry_s * 2 ** (failures - 1), after_s or 0.0), RETRY_S_MAX))

    def _request(self, path: str, parameters: Mapping[str, Any]) -> tuple[int, http.client.HTTPMessage, bytes]:
        address = self._address
        connect = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
        connection = connect(address.hostname or "", address.port, timeout=self._timeout_s)
        try:
            query = f"?{urlencode(parameters)}" if parameters else ""
            connection.request("GET", f"{address.path.rstrip('/')}{path}{query}", headers=self._headers)
            answer = connection.getresponse()
            body = answer.read(ANSWER_BYTES_MAX + 1)
            if len(body) > ANSWER_BYTES_MAX:
                raise _unavailable(f"{self.url} answered more than {ANSWER_BYTES_MAX:,} bytes to {path}")
            return answer.status, answer.headers, body
        finally:
            connection.close()

    def _read(self, read: Callable[[Any], Read], answer: Any) -> Read:
        try:
            return read(answer)
        except (SpanError, ValueError, RecursionError) as error:
            raise _unavailable(f"{self.url} answered what no Tempo does: {error}") from None


def _refused(body: bytes) -> QueryError:
    """Return Tempo's own refusal with the place it names."""
    text = _shortened(body).removeprefix("invalid TraceQL query: ")
    found = _PLACE.search(text)
    if found is None:
        return QueryError(text, fault=Fault.INVALID)
    return QueryError(found[3].strip(), line=int(found[1]), column=int(found[2]))


def _shortened(body: bytes) -> str:
    return body[:500].decode(errors="replace").strip()


def _unavailable(message: str) -> UnavailableError:
    return UnavailableError(message)
