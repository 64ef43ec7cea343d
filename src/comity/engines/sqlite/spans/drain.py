"""The thread that takes recorded spans off the event loop's hands: into the store's inbox, and on to the exporter.

When nothing comes for a while it sorts the inbox in, so that questions find an index. While a node is busy that waits, up to
a bound, since it costs as much as the calls themselves.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Final

from comity.core.tracing.span import Span
from comity.core.tracing.telemetry import Ended, Settings
from comity.core.units import NS_PER_MS
from comity.engines.otlp.export import OtlpExporter
from comity.engines.sqlite.spans import inbox as span_inbox
from comity.engines.sqlite.spans import losses as span_losses
from comity.engines.sqlite.spans.store import SpanStore
from comity.errors import UnavailableError

log = logging.getLogger("comity")

# Recorded spans that may wait for this thread; more are counted and dropped.
WAITING_MAX: Final = 65_536
# How long nothing must have come before the inbox is sorted in, and how much may be in it before that happens anyway.
IDLE_S: Final = 10.0
INBOX_SPANS_MAX: Final = 200_000

_IN_TIME: Final = "the store could not take them in time"
_NOT_STORED: Final = "they could not be stored"
_NOT_SENT: Final = "the collector could not be reached in time"

_Recorded = Ended | Span  # of an end, what goes into its span and no more


class SpanDrain:
    """Carries spans from a node to its store and its exporter."""

    def __init__(self, settings: Settings, store: SpanStore, exporter: OtlpExporter | None) -> None:
        self._settings = settings
        self._store = store
        self._exporter = exporter
        self._batches: SimpleQueue[Sequence[_Recorded] | Callable[[], object] | None] = SimpleQueue()
        self._offered = 0  # counted by the loop
        self._done = 0  # counted by the thread
        self._posted = 0  # in the inbox, as far as this thread put them there
        self._crowded_out = 0  # counted by the loop
        self._unstored = 0  # counted by the thread
        self._counted = (0, 0)  # of both, as far as they are in what follows or in the store
        self._unnoted: Counter[str] = Counter()  # lost for this reason, and not in the store yet
        self.last_error = ""  # why spans could not be stored
        self._then: Callable[[], object] | None = None
        self._thread = threading.Thread(target=self._run, name="comity-spans", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """How many spans did not get into the store."""
        return self._crowded_out + self._unstored

    def offer(self, batch: Sequence[_Recorded]) -> None:
        """Take a batch without waiting; if too many wait already, it is dropped and counted. Insights are never dropped."""
        if self._offered - self._done + len(batch) > WAITING_MAX:
            kept = [one for one in batch if isinstance(one, Span) and "insight.id" in one.attributes]
            self._crowded_out += len(batch) - len(kept)
            batch = kept
        self._offered += len(batch)
        self._batches.put(batch)

    def when_done(self, then: Callable[[], object]) -> None:
        """Call `then`, in the thread, once everything offered so far is in the store."""
        self._batches.put(then)

    def close(self, then: Callable[[], object] | None = None) -> None:
        """Write and send pending spans, then end the thread; wait for that, or call `then` afterwards."""
        self._then = then
        self._batches.put(None)
        if then is None:
            self._thread.join()

    def _run(self) -> None:
        self._note_losses()  # of an earlier process that could not
        while True:
            try:
                batch = self._batches.get(timeout=IDLE_S if self._posted else None)
            except Empty:
                self._sort_in()
                self._note_losses()
                continue
            if batch is None:
                break
            if callable(batch):
                with contextlib.suppress(RuntimeError):  # the loop that asked may be gone
                    batch()
                continue
            try:
                self._write(batch)
            except Exception as error:  # the boundary of the thread: one bad batch must not end recording
                self._lose(len(batch), error)
                log.exception("%d spans are lost", len(batch))
            self._done += len(batch)
            if self._posted > INBOX_SPANS_MAX and self._is_inbox_full():
                self._sort_in()
        if self._exporter is not None:
            self._exporter.close()
        self._note_losses()
        if self._then is not None:
            self._then()

    def _write(self, batch: Sequence[_Recorded]) -> None:
        ended: Sequence[Ended] = batch  # type: ignore[assignment]
        spans: Sequence[Span] = ()
        if Span in set(map(type, batch)):  # most batches hold nothing but calls
            ended = [one for one in batch if isinstance(one, Ended)]
            spans = [one for one in batch if isinstance(one, Span)]
        if ended or spans:
            self._post(ended, spans)
        if self._exporter is not None:
            self._exporter.offer(batch)
        self._note_losses()

    def _post(self, ended: Sequence[Ended], spans: Sequence[Span]) -> None:
        """Store a batch. If it cannot be encoded, store its spans one by one, so that a bad span does not lose the others."""
        origin = self._settings.origin
        try:
            try:
                self._store.post(origin, ended, spans)
            except span_inbox.UNSOUND:
                ended, spans, bad = span_inbox.sound(origin, ended, spans)
                for error in bad:
                    self._lose(1, error)
                self._store.post(origin, ended, spans)
        except UnavailableError as error:
            self._lose(len(ended) + len(spans), error)
        else:
            self._posted += len(ended) + len(spans)

    def _lose(self, spans: int, why: Exception) -> None:
        self._unstored += spans
        self.last_error = str(getattr(why, "message", why))
        log.warning("%d spans could not be stored: %s", spans, why)

    def _is_inbox_full(self) -> bool:
        """Return whether that many spans wait in fact: a retention may have removed some, which then need no sorting."""
        with contextlib.suppress(UnavailableError):
            self._posted = self._store.waiting()
        return self._posted > INBOX_SPANS_MAX

    def _sort_in(self) -> None:
        try:
            if not self._store.sort_in():
                self._posted = 0
        except UnavailableError as error:  # it stays in the inbox; the next reader tries again
            self._posted = 0
            log.warning("spans wait in the inbox: %s", error)

    def _note_losses(self) -> None:
        """Record the number of lost spans in the store; retry later if that fails."""
        crowded_out, unstored = self._crowded_out, self._unstored
        self._unnoted[_IN_TIME] += crowded_out - self._counted[0]
        self._unnoted[_NOT_STORED] += unstored - self._counted[1]
        self._counted = (crowded_out, unstored)
        if self._exporter is not None:
            self._unnoted[_NOT_SENT] += self._exporter.take_losses()
        aside, _ = span_losses.read(self._store.path)
        if not aside and not any(self._unnoted.values()):
            return
        at_ms = time.time_ns() // NS_PER_MS
        try:
            if aside:
                self._store.note_loss(span_losses.WHY, aside, at_ms=at_ms)
                span_losses.clear(self._store.path)
            for why in [why for why, lost in self._unnoted.items() if lost]:
                self._store.note_loss(why, self._unnoted[why], at_ms=at_ms)
                del self._unnoted[why]
        except (UnavailableError, OSError):
            self._put_aside()

    def _put_aside(self) -> None:
        """Count lost spans in the size of a sparse file, which needs no disk space."""
        lost = sum(self._unnoted.values())
        try:
            if lost:
                span_losses.add(self._store.path, lost)
            self._unnoted.clear()
        except OSError as error:
            log.warning("%d spans were lost, which could not be written down: %s", lost, error)
