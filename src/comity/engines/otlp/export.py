"""Sending spans to an OpenTelemetry collector: OTLP over HTTP, in a thread of its own, from a queue with a bound.

A collector that is away costs nothing but the queue: what waits is neither converted nor encoded, and attempts come further
and further apart. What does not fit into the queue, what the collector refuses and what is left at the end is counted.
"""

from __future__ import annotations

import gzip
import http.client
import json
import logging
import random
import struct
import threading
from collections import deque
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from comity.core.tracing.call_spans import span_of
from comity.core.tracing.links import id_problem
from comity.core.tracing.otlp import CONTENT_TYPE, decode_partial, encode_request
from comity.core.tracing.span import Span, SpanError, encode_spans
from comity.core.tracing.telemetry import JSON, ExportStats, Recorded, Settings
from comity.core.units import MS_PER_S

log = logging.getLogger("comity")

RETRY_S_FIRST: Final = 1.0
RETRY_S_MAX: Final = 30.0
RETRYABLE: Final = frozenset({429, 502, 503, 504})
OF_CONTENT: Final = frozenset({400, 413, 422})  # what is sent is at fault, be it one span of it
# How often one batch is cut in two: enough to find one bad span, and no flood where all are refused.
SPLITS_MAX: Final = 32
ANSWER_BYTES_MAX: Final = 64 * 1024


_UNSOUND: Final = (ValueError, TypeError, AttributeError, KeyError, OverflowError, AssertionError, struct.error)


class _RetryLaterError(Exception):
    """The collector cannot take it now; it may have said when it can."""

    def __init__(self, why: str, after_s: float | None = None) -> None:
        super().__init__(why)
        self.after_s = after_s


class _RefusedError(Exception):
    """The collector will not take it, however often it is asked."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.is_worth_splitting = status in OF_CONTENT


class OtlpExporter:
    """Sends to one collector."""

    def __init__(self, settings: Settings, *, retry_s: float = RETRY_S_FIRST) -> None:
        self._settings = settings
        self._retry_s = retry_s
        self._waiting: deque[Recorded] = deque()
        self._changed = threading.Condition()
        self._connection: http.client.HTTPConnection | None = None
        self._is_closing = False
        self._gives_up = threading.Event()
        self._sending = 0
        self._stats = ExportStats()
        self._told = 0  # of the losses, by `take_losses`
        self._thread = threading.Thread(target=self._run, name="comity-export", daemon=True)
        self._thread.start()

    @property
    def stats(self) -> ExportStats:
        """How it goes."""
        with self._changed:
            return replace(self._stats, waiting=len(self._waiting) + self._sending)

    def take_losses(self) -> int:
        """Return how many spans were lost since this was last asked."""
        with self._changed:
            lost = self._stats.dropped + self._stats.refused
            new, self._told = lost - self._told, lost
            return new

    def offer(self, spans: Sequence[Recorded]) -> None:
        """Put spans into the queue; what does not fit is dropped and counted."""
        with self._changed:
            room = max(self._settings.queue_max - len(self._waiting) - self._sending, 0)
            self._waiting.extend(spans[:room])
            if len(spans) > room:
                self._stats = replace(self._stats, dropped=self._stats.dropped + len(spans) - room)
            self._changed.notify()

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything offered so far is done with, and return whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._sending, timeout_s)

    def close(self) -> None:
        """Try to send what is left for as long as one request may take; the rest is counted as dropped."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join(self._settings.timeout_ms / MS_PER_S)
        self._gives_up.set()
        with self._changed:
            self._changed.notify()
            left = len(self._waiting) + self._sending
            self._waiting.clear()
            self._sending = 0
            self._stats = replace(self._stats, dropped=self._stats.dropped + left)
        if left:
            log.warning("%d spans were not sent to %s: %s", left, self._settings.endpoint, self._stats.last_error)

    # --- in the thread ---

    def _run(self) -> None:
        while batch := self._next():
            try:
                spans = self._sound(batch)
                while not self._try(spans):
                    if self._gives_up.is_set():
                        return
            except Exception as error:  # the boundary of the thread: one bad batch must not end the export
                self._ended(refused=len(batch), why=f"{type(error).__name__}: {error}")
                log.exception("%d spans were not sent", len(batch))
        self._disconnect()

    def _next(self) -> list[Recorded]:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closing)
            count = min(len(self._waiting), self._settings.batch_max)
            batch = [self._waiting.popleft() for _ in range(count)]
            self._sending = count
            return batch

    def _sound(self, batch: Sequence[Recorded]) -> list[Span]:
        """Return the spans of a batch that can be sent. Others are counted, and the log says what is wrong with each."""
        spans = [span for one in batch if (span := self._checked(one)) is not None]
        try:
            encode_request(spans)
        except _UNSOUND:  # one of them, so each is looked at
            spans = [span for span in spans if self._checked(span, encodes=True) is not None]
        return spans

    def _checked(self, one: Recorded, *, encodes: bool = False) -> Span | None:
        try:
            span = span_of(one, self._settings)
            problem = id_problem(span) if isinstance(one, Span) else ""  # the ids of a call are Comity's own
            if encodes:
                encode_request((span,))
        except _UNSOUND as error:
            problem = f"{type(error).__name__}: {error}"
        if not problem:
            return span
        with self._changed:
            stats = self._stats
            self._stats = replace(stats, refused=stats.refused + 1, unsound=stats.unsound + 1, last_error=problem)
        log.warning("a span is not sent, since it cannot be encoded: %s", problem)
        return None

    def _encode(self, spans: Sequence[Span]) -> bytes:
        is_json = self._settings.protocol == JSON
        body = msgspec.json.encode(encode_spans(spans)) if is_json else encode_request(spans)
        return gzip.compress(body, 1) if self._settings.is_gzipped else body

    def _try(self, spans: Sequence[Span]) -> bool:
        """Return whether spans are done with: taken, or refused for good."""
        try:
            refused, why = self._send_parts(spans)
        except _RetryLaterError as error:
            self._wait_after(error)
            return False
        self._ended(exported=len(spans) - refused, refused=refused, why=why)
        return True

    def _send_parts(self, spans: Sequence[Span]) -> tuple[int, str]:
        """Send spans; where the collector refuses them all, send halves, so that a span it cannot take costs no others."""
        parts, refused, why, splits_left = [spans] if spans else [], 0, "", SPLITS_MAX
        while parts:
            part = parts.pop()
            try:
                count, reason = self._send(self._encode(part), len(part))
            except _RefusedError as error:
                if len(part) > 1 and splits_left and error.is_worth_splitting:
                    splits_left -= 1
                    middle = len(part) // 2
                    parts += (part[middle:], part[:middle])
                    continue
                count, reason = len(part), str(error)
            refused, why = refused + count, reason or why
        return refused, why

    def _send(self, body: bytes, count: int) -> tuple[int, str]:
        """Send one request and return how many of its spans were refused, and why."""
        address = urlsplit(self._settings.endpoint)
        kind = "application/json" if self._settings.protocol == JSON else CONTENT_TYPE
        headers = {"Content-Type": kind, "User-Agent": "comity"} | dict(self._settings.headers)
        if self._settings.is_gzipped:
            headers["Content-Encoding"] = "gzip"
        try:
            if self._connection is None:
                connect = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
                timeout_s = self._settings.timeout_ms / MS_PER_S
                self._connection = connect(address.hostname or "", address.port, timeout=timeout_s)
            path = f"{address.path or '/'}{'?' if address.query else ''}{address.query}"
            self._connection.request("POST", path, body, headers)
            answer = self._connection.getresponse()
            content = answer.read(ANSWER_BYTES_MAX)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._disconnect()
            raise _RetryLaterError(f"{type(error).__name__}: {error}") from error
        if answer.status in RETRYABLE:
            raise _RetryLaterError(f"HTTP {answer.status}", _seconds(answer.headers.get("Retry-After")))
        if not 200 <= answer.status < 300:
            self._disconnect()
            raise _RefusedError(answer.status)
        refused = min(_refused(content, answer.headers.get("Content-Type", "")), count)
        return refused, "the collector took only some of them" if refused else ""

    def _ended(self, *, exported: int = 0, refused: int = 0, why: str = "") -> None:
        with self._changed:
            stats = self._stats
            self._sending = 0
            self._changed.notify_all()
            if refused:
                log.warning("%d spans were refused by %s: %s", refused, self._settings.endpoint, why)
            self._stats = replace(
                stats,
                exported=stats.exported + exported,
                refused=stats.refused + refused,
                failures=0,
                last_error=why if refused else stats.last_error,
            )

    def _wait_after(self, error: _RetryLaterError) -> None:
        with self._changed:
            failures = self._stats.failures + 1
            self._stats = replace(self._stats, failures=failures, last_error=str(error))
        if failures == 1:
            log.warning("spans wait for %s: %s", self._settings.endpoint, error)
        pause_s = min(self._retry_s * 2 ** min(failures - 1, 16), RETRY_S_MAX)
        pause_s *= 0.5 + random.random() / 2  # noqa: S311  so that many nodes do not come back at once
        if error.after_s is not None:
            pause_s = max(pause_s, min(error.after_s, RETRY_S_MAX))
        self._gives_up.wait(pause_s)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isdecimal() else None


def _refused(content: bytes, kind: str) -> int:
    """Return how many spans a collector says it did not take; an answer that cannot be read says none."""
    try:
        if "json" in kind:
            return int(json.loads(content or b"{}").get("partialSuccess", {}).get("rejectedSpans", 0))
        return decode_partial(content)
    except (SpanError, ValueError, AttributeError, TypeError):
        return 0
